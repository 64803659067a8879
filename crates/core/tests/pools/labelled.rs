//! Slots with labels, for random runs.

use testigo_core::pool::SlotNames;

pub(crate) const LABELS: [&str; 3] = ["even", "most", "rare"];

pub(crate) fn has_label(slot: u32, label: &str) -> bool {
    match label {
        "even" => slot.is_multiple_of(2),
        "most" => slot != 1,
        _ => slot == 0,
    }
}

/// Called by their numbers, and with labels.
pub(crate) fn labelled(slots: u32) -> SlotNames {
    let slots = (0..slots).map(|slot| {
        let labels = LABELS.iter().filter(|label| has_label(slot, label));
        let labels: Vec<&str> = labels.copied().collect();
        match labels.is_empty() {
            true => slot.to_string(),
            false => format!("{slot}:{}", labels.join(",")),
        }
    });
    let slots: Vec<String> = slots.collect();
    SlotNames::read(slots.iter().map(String::as_str))
}
