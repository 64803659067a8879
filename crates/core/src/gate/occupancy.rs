//! The admission rule, the one place that says who may join whom. An [`Occupancy`] starts with those inside and is shown the
//! waiters in order; it admits each or not, and counts those it admits as inside from then on.
//!
//! For every rule but rooms the first waiter that does not fit closes the gate for all behind it: that is what keeps a
//! large request from being starved by small ones. In a room gate the waiters of other rooms do not close it for
//! those of the present room: the *door* does. It is open while nobody of another room waits, and then as long as the
//! room's leader (its first member) stays. A member admitted meanwhile delays nobody by entering, since the leader
//! is inside anyway.

use super::definition::{Definition, Rule};
use super::mode::Mode;
use crate::name::Name;

/// Who is inside, as far as the rule needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Occupancy<'a> {
    definition: &'a Definition,
    count: u32,
    units: u64,
    exclusive: bool,
    room: Option<PresentRoom<'a>>,
    /// The room is not inside yet: one of its sets waits elsewhere and only keeps its place.
    room_is_kept: bool,
    closed: bool,
}

/// The room inside and what it still allows.
#[derive(Clone, Debug)]
pub(crate) struct PresentRoom<'a> {
    pub(crate) name: &'a Name,
    pub(crate) door_open: bool,
    /// What remains of its longest stay.
    pub(crate) left_ms: Option<u64>,
}

impl<'a> Occupancy<'a> {
    /// A gate with `count` sessions inside, which have `units` permits together; one of them may be exclusive.
    pub(crate) fn inside(
        definition: &'a Definition,
        count: u32,
        units: u64,
        exclusive: bool,
        room: Option<PresentRoom<'a>>,
    ) -> Occupancy<'a> {
        Occupancy {
            definition,
            count,
            units,
            exclusive,
            room,
            room_is_kept: false,
            closed: false,
        }
    }

    /// Whether nobody further down the queue can be admitted.
    pub(crate) fn closed(&self) -> bool {
        self.closed
    }

    /// Shows the next waiter. If it may enter, it counts as inside from now on.
    pub(crate) fn admit(&mut self, mode: &'a Mode, needs_ms: Option<u64>) -> bool {
        if self.closed {
            return false;
        }
        let fits = match (self.definition.rule, mode) {
            (Rule::Mutex | Rule::Shared, Mode::Shared) => !self.exclusive,
            (Rule::Mutex | Rule::Shared | Rule::Election, _) => self.count == 0,
            (Rule::Permits(k), _) => self.units + mode.units() <= u64::from(k),
            (Rule::Rooms, Mode::Room(room)) => return self.admit_to_room(room, needs_ms),
            (Rule::Rooms, _) => false,
        };
        if fits {
            self.count += 1;
            self.units += mode.units();
            self.exclusive = mode.exclusive();
        } else {
            self.closed = true;
        }
        fits
    }

    fn admit_to_room(&mut self, room: &'a Name, needs_ms: Option<u64>) -> bool {
        let Some(present) = &self.room else {
            self.room = Some(PresentRoom {
                name: room,
                door_open: true,
                left_ms: self.definition.stay_ms,
            });
            self.room_is_kept = true;
            self.count = 1;
            return true;
        };
        if present.name != room {
            // A room that is not even inside holds no door open.
            self.closed = self.room_is_kept;
            return false;
        }
        if !present.door_open || self.definition.capacity.is_some_and(|c| self.count >= c) {
            self.closed = true;
            return false;
        }
        // A member that needs longer than what remains waits for the next round; one that needs less may still join. A member
        // that does not say needs some time at least.
        if present
            .left_ms
            .is_some_and(|left| needs_ms.unwrap_or(1) > left)
        {
            return false;
        }
        self.count += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(name: &str) -> Mode {
        Mode::Room(Name::new(name).unwrap())
    }

    fn admitted(definition: &Definition, modes: &[Mode]) -> Vec<bool> {
        let mut occupancy = Occupancy::inside(definition, 0, 0, false, None);
        modes
            .iter()
            .map(|mode| occupancy.admit(mode, None))
            .collect()
    }

    #[test]
    fn a_writer_closes_the_gate_for_the_readers_behind_it() {
        let gate = Definition::new(Rule::Shared);
        let modes = [Mode::Shared, Mode::Shared, Mode::Exclusive, Mode::Shared];
        assert_eq!(admitted(&gate, &modes), [true, true, false, false]);
    }

    #[test]
    fn a_large_request_closes_the_gate_for_the_small_ones_behind_it() {
        let gate = Definition::new(Rule::Permits(3));
        let modes = [Mode::Permits(1), Mode::Permits(3), Mode::Permits(1)];
        assert_eq!(admitted(&gate, &modes), [true, false, false]);
    }

    #[test]
    fn members_of_a_room_enter_past_those_of_another_once_it_is_inside() {
        let gate = Definition::new(Rule::Rooms);
        let modes = [room("red"), room("blue"), room("red")];
        assert_eq!(admitted(&gate, &modes), [true, false, false]);
        let red = PresentRoom {
            name: &Name::new("red").unwrap(),
            door_open: true,
            left_ms: None,
        };
        let mut inside = Occupancy::inside(&gate, 1, 1, false, Some(red));
        assert!(!inside.admit(&modes[1], None) && inside.admit(&modes[2], None));
    }

    #[test]
    fn capacity_and_stay_bound_a_room() {
        let mut gate = Definition::new(Rule::Rooms);
        gate.capacity = Some(2);
        assert_eq!(
            admitted(&gate, &[room("red"), room("red"), room("red")]),
            [true, true, false]
        );
        gate.stay_ms = Some(100);
        let red = room("red");
        let mut occupancy = Occupancy::inside(&gate, 0, 0, false, None);
        assert!(occupancy.admit(&red, Some(100)));
        assert!(!occupancy.admit(&red, Some(101)));
        assert!(occupancy.admit(&red, Some(50)));
    }
}
