//! Transitional sets: members that move together from one view to the next deliver the same messages, also where all components
//! change at once.

mod slots_group;

use std::collections::BTreeMap;

use slots_group::{Group, p};
use testigo_lab::slots::SlotsFault;
use testigo_protocol::quorum::NodeSet;
use testigo_protocol::slots::{Delivery, SlotsPlan};
use testigo_sim::Generator;

const MEMBERS: usize = 6;

/// What members have heard since their last view, and what was heard between two views by those that were in both.
#[derive(Default)]
struct Heard {
    since: BTreeMap<u32, (u64, Vec<Delivery>)>,
    between: BTreeMap<(u64, u64), Vec<Delivery>>,
    /// How often somebody else had heard the same.
    compared: u32,
}

impl Heard {
    /// Lets a member take in one thing.
    fn hear(&mut self, group: &mut Group, member: u32) {
        let Some(next) = group.world.next(p(member)).cloned() else {
            return;
        };
        let (view, heard) = self.since.entry(member).or_default();
        match &next {
            Delivery::Letter { .. } => heard.push(next),
            Delivery::View { group, .. } => {
                let key = (std::mem::replace(view, group.view), group.view);
                let heard = std::mem::take(heard);
                if let Some(other) = self.between.insert(key, heard.clone()) {
                    assert_eq!(heard, other, "between views {key:?}, at {member}");
                    self.compared += 1;
                }
            }
        }
        group.hear(member);
        assert_eq!(group.wrong, None);
    }

    fn calm(&mut self, group: &mut Group) {
        for _ in 0..3_000 {
            for member in group.members() {
                self.hear(group, member);
            }
            if group.world.is_quiet() {
                return assert_eq!(group.verdict(), Ok(()));
            }
        }
        panic!("it does not come to rest");
    }
}

fn components(group: &Group) -> Vec<NodeSet> {
    let mut components: Vec<NodeSet> = Vec::new();
    for member in group.members() {
        let component = group.world.component_of(p(member));
        if !components.contains(&component) {
            components.push(component);
        }
    }
    components
}

/// All components become these, with nothing delivered in between. Returns whether some members of at least two old components
/// parted, and some of at least two met.
fn regroup(group: &mut Group, sets: &[NodeSet], mut lost: impl FnMut() -> u32) -> bool {
    let before = components(group);
    for mut rest in before.clone() {
        for set in sets {
            let away = rest.intersection(*set);
            if !away.is_empty() && away != rest {
                let lost = [lost(), lost()];
                group.strike(SlotsFault::Part { away, lost });
                rest = rest.minus(away);
            }
        }
    }
    for set in sets {
        let mut members = set.iter().map(|member| p(member as u32));
        let Some(one) = members.next() else { continue };
        for other in members {
            let fault = SlotsFault::Merge { one, other };
            if group.world.may(&fault) {
                group.strike(fault);
            }
        }
    }
    let crosses = |set: &&NodeSet, others: &[NodeSet]| {
        let meets = others.iter().filter(|other| other.meets(**set));
        meets.count() > 1
    };
    let parted = before.iter().filter(|set| crosses(set, sets)).count();
    let met = sets.iter().filter(|set| crosses(set, &before)).count();
    parted > 1 && met > 1
}

#[test]
fn two_pairs_become_two_other_pairs_at_once() {
    for lost in 0..3 {
        let pair = |one: usize, other: usize| [one, other].into_iter().collect::<NodeSet>();
        let mut group = Group::started(SlotsPlan::strict(4, 16, 1));
        let mut heard = Heard::default();
        group.part(&[2, 3], [0, 0]);
        heard.calm(&mut group);
        // A request is under way in each pair.
        for member in [1, 3] {
            group.take_all(member);
            heard.hear(&mut group, member - 1);
        }
        assert!(regroup(&mut group, &[pair(0, 2), pair(1, 3)], || lost));
        heard.calm(&mut group);
        let (one, other) = (group.sharer(0), group.sharer(1));
        assert_eq!(one.state().component, pair(0, 2));
        assert_eq!(other.state().component, pair(1, 3));
        assert!(regroup(&mut group, &[pair(0, 3), pair(1, 2)], || lost));
        regroup(&mut group, &[NodeSet::first(4)], || lost);
        heard.calm(&mut group);
        assert_eq!(group.owned(0).iter().sum::<u32>(), 16);
    }
}

#[test]
fn who_moves_together_delivers_the_same_whatever_becomes_of_the_components() {
    let (mut compared, mut at_once) = (0, 0);
    for seed in 1..=40 {
        let mut chance = Generator::new(seed);
        let mut group = Group::started(SlotsPlan::strict(MEMBERS, 30, 2));
        let mut heard = Heard::default();
        for _ in 0..60 {
            for _ in 0..chance.between(5, 200) {
                let member = chance.below(MEMBERS as u64) as u32;
                match chance.below(4) {
                    0 => drop(group.take(member)),
                    1 => {
                        if let Some(slot) = group.sharer(member).used().first() {
                            group.give(member, slot);
                        }
                    }
                    _ => heard.hear(&mut group, member),
                }
            }
            let mut sets = [NodeSet::EMPTY; 3];
            for member in 0..MEMBERS {
                let set = &mut sets[chance.below(3) as usize];
                *set = set.with(member);
            }
            at_once += u32::from(regroup(&mut group, &sets, || chance.below(6) as u32));
            if chance.below(4) == 0 {
                heard.calm(&mut group);
            }
        }
        regroup(&mut group, &[NodeSet::first(MEMBERS)], || 0);
        heard.calm(&mut group);
        assert_eq!(group.owned(0).iter().sum::<u32>(), 30, "seed {seed}");
        compared += heard.compared;
    }
    println!("{compared} compared; all components changed at once {at_once} times");
    assert!(compared > 1_000 && at_once > 100);
}
