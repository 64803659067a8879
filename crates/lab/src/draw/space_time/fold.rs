//! Folding: of many lanes, those that show nothing of their own get one place together. Messages of one
//! kind between such a place and a lane become one, with their number.

use rustc_hash::FxHashMap;

use crate::draw::{
    space_time::{
        Arrow, BarStyle, MarkKind, SpaceTime, kinds,
        shown::{MOMENTS_MAX, Shown, counted},
    },
    text,
};

/// So many lanes keep a place of their own, the fewer the more messages there are between them.
const LANES_KEPT: std::ops::RangeInclusive<usize> = 4..=8;
/// Nobody can follow more messages than this.
const ARROWS_READ_MAX: usize = 80;

/// Gives lanes that show nothing of their own a common place. `near` is how far apart messages of
/// one kind may be and still become one there.
pub(super) fn fold(shown: &mut Shown, near: u64) {
    let whole = shown.clone();
    for count in LANES_KEPT.rev() {
        *shown = whole.clone();
        fold_all_but(shown, count, near);
        if shown.run.arrows.len() <= ARROWS_READ_MAX {
            break;
        }
    }
}

fn fold_all_but(shown: &mut Shown, count: usize, near: u64) {
    let kept = kept_lanes(&shown.run, count);
    let whole = std::mem::take(&mut shown.run.lanes);
    let noun = match shown.run.lane_noun.as_str() {
        "" => "lanes".to_string(),
        noun => noun.to_string(),
    };
    let mut places = Vec::new();
    let mut names: Vec<String> = Vec::new();
    shown.folded.clear();
    for (lane, name) in whole.iter().enumerate() {
        if kept[lane] {
            names.push(name.clone());
            shown.folded.push(false);
        } else if lane == 0 || kept[lane - 1] {
            let until = (lane..kept.len()).find(|&other| kept[other]);
            let count = until.unwrap_or(kept.len()) - lane;
            let like = if lane > 0 { lane - 1 } else { count };
            let like = text::cut(&whole[like], 10);
            names.push(format!("… {count} {noun} like {like}"));
            shown.folded.push(true);
        }
        places.push(names.len() - 1);
    }
    let place = |lane: usize| places.get(lane).copied().unwrap_or(usize::MAX);
    let folded = shown.folded.clone();
    let is_fold = |place: usize| folded.get(place).copied().unwrap_or(false);
    let run = &mut shown.run;
    for arrow in &mut run.arrows {
        arrow.from.lane = place(arrow.from.lane);
        arrow.to.lane = place(arrow.to.lane);
    }
    let among = merge(&mut run.arrows, is_fold, near);
    run.marks.retain_mut(|mark| {
        mark.place.lane = place(mark.place.lane);
        !is_fold(mark.place.lane) || mark.kind == MarkKind::Violation
    });
    for bar in &mut run.bars {
        let lane = place(bar.lane);
        if let (true, Some(name)) = (is_fold(lane), whole.get(bar.lane)) {
            bar.label.clone_from(name);
        }
        bar.lane = lane;
    }
    run.bars
        .retain(|bar| !is_fold(bar.lane) || bar.style == BarStyle::Solid);
    let gaps = run.gaps.len();
    run.gaps.retain_mut(|gap| {
        gap.lane = place(gap.lane);
        !is_fold(gap.lane)
    });
    let gaps = gaps - run.gaps.len();
    run.lanes = names;
    if among > 0 {
        let messages = counted(among, "message", "messages");
        shown
            .notes
            .push(format!("not drawn: {messages} between folded {noun}"));
    }
    if gaps > 0 {
        let gaps = counted(gaps, "crash or pause", "crashes and pauses");
        shown
            .notes
            .push(format!("not drawn: {gaps} of folded {noun}"));
    }
}

/// Makes one of the messages of a kind that have the same lane, the same fold and nearly the same times,
/// and says how many were between folds; those are gone.
fn merge(arrows: &mut Vec<Arrow>, is_fold: impl Fn(usize) -> bool, near: u64) -> usize {
    let mut among = 0;
    let mut merged: FxHashMap<_, (usize, usize)> = FxHashMap::default();
    let mut kept: Vec<Arrow> = Vec::new();
    for arrow in std::mem::take(arrows) {
        let ends = (arrow.from.lane, arrow.to.lane);
        match (is_fold(ends.0), is_fold(ends.1)) {
            (true, true) => among += 1,
            (false, false) => kept.push(arrow),
            _ => {
                let kind = kinds::kind(&arrow.label);
                let times = (arrow.from.time / near, arrow.to.time / near);
                let fate = std::mem::discriminant(&arrow.fate);
                let (index, count) = *(merged.entry((kind.clone(), ends, times, fate)))
                    .and_modify(|(_, count)| *count += 1)
                    .or_insert((kept.len(), 1));
                match count {
                    1 => kept.push(arrow),
                    _ => kept[index].label = format!("{kind} ×{count}"),
                }
            }
        }
    }
    *arrows = kept;
    among
}

/// The first entries decide which lanes are kept.
const ENTRIES_SEEN: usize = 32;

/// By lane, whether it keeps a place of its own: those with violations and faults, then those that
/// enter first, then those with the most messages.
fn kept_lanes(run: &SpaceTime, count: usize) -> Vec<bool> {
    let mut weights = vec![0_u64; run.lanes.len()];
    let mut add = |lane: usize, weight: u64| {
        if let Some(weights) = weights.get_mut(lane) {
            *weights = weights.saturating_add(weight);
        }
    };
    for arrow in &run.arrows {
        add(arrow.from.lane, 1);
        add(arrow.to.lane, 1);
    }
    let mut entries: Vec<_> = (run.bars.iter())
        .filter(|bar| bar.style == BarStyle::Solid)
        .map(|bar| (bar.from, bar.lane))
        .collect();
    entries.sort_unstable();
    for (i, (_, lane)) in entries.into_iter().take(ENTRIES_SEEN).enumerate() {
        add(lane, 1 << (40 - i));
    }
    for gap in run.gaps.iter().take(MOMENTS_MAX) {
        add(gap.lane, 1 << 50);
    }
    for mark in &run.marks {
        if mark.kind == MarkKind::Violation {
            add(mark.place.lane, 1 << 55);
        }
    }
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|&lane| (std::cmp::Reverse(weights[lane]), lane));
    let mut kept = vec![false; weights.len()];
    for &lane in order.iter().take(count) {
        kept[lane] = true;
    }
    // A fold of one lane would save nothing.
    for lane in 0..kept.len() {
        let before = lane == 0 || kept[lane - 1];
        let after = kept.get(lane + 1).copied().unwrap_or(true);
        kept[lane] |= before && after;
    }
    kept
}
