//! Rules that tests break on purpose, to prove that they would notice. No release has any of this.

use testigo_core::estate::Broken;

use super::House;

impl House {
    /// Breaks a rule, if one is named.
    pub(crate) fn break_on_purpose(&mut self, broken: Option<Broken>) {
        let Some(broken) = broken else { return };
        if let Some(estate) = self.services.estate_mut() {
            estate.broken = Some(broken);
        }
        if let Some(member) = &mut self.member {
            member.break_on_purpose(broken);
        }
    }
}

impl House {
    /// Whether proposals are answered before the log has decided.
    pub(crate) fn decides_early(&self) -> bool {
        let broken = self.services.estate().and_then(|estate| estate.broken);
        broken == Some(Broken::EarlyDecision)
    }

    /// Whether a message of a group is withheld from listeners here.
    pub(crate) fn skips_delivery(&self, number: u64) -> bool {
        let broken = self.services.estate().and_then(|estate| estate.broken);
        broken == Some(Broken::SkippedDelivery) && number.is_multiple_of(5)
    }
}

/// For tests of real nodes only: names the rule that a member breaks.
#[cfg(debug_assertions)]
const BROKEN: &str = "TESTIGO_TEST_BROKEN";

/// The rule to break.
#[cfg(debug_assertions)]
pub(crate) fn broken_on_purpose() -> Result<Option<Broken>, String> {
    let Some(name) = std::env::var_os(BROKEN) else {
        return Ok(None);
    };
    let broken: Broken = name
        .to_string_lossy()
        .parse()
        .map_err(|why| format!("{BROKEN}: {why}"))?;
    log::warn!("{BROKEN}: this node leaves the rule {broken:?} out on purpose");
    Ok(Some(broken))
}
