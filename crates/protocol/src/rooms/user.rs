//! The words of rooms, their user, and the property.

use super::Door;
use crate::{Next, Phase, Problem, Tally, UserId};

/// The problem of rooms.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rooms;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ask {
    /// Into the room of this number.
    Enter(u32),
    Leave,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tell {
    /// The room was opened for this user, the leader of the round, or it joins one.
    Entered { leads: bool },
}

impl Problem for Rooms {
    const NAME: &'static str = "rooms";
    type Ask = Ask;
    type Tell = Tell;
    type User = User;
    type Monitor = ();

    fn violation(users: &[User]) -> Option<String> {
        let inside = || {
            users
                .iter()
                .enumerate()
                .filter(|(_, user)| user.phase == Phase::Inside)
        };
        let (first, one) = inside().next()?;
        let (second, other) = inside().find(|(_, user)| user.room != one.room)?;
        let (room, another) = (one.room, other.room);
        Some(format!(
            "p{first} in room {room} and p{second} in room {another} are inside together"
        ))
    }

    /// Concurrent entering, as the door policy promises it: nobody waits for others to leave a room that
    /// the policy keeps open.
    fn violation_at_rest(users: &[User]) -> Option<String> {
        let (waits, waiting) = users
            .iter()
            .enumerate()
            .find(|(_, user)| user.phase == Phase::Waiting)?;
        let mut within = users
            .iter()
            .filter(|user| user.phase == Phase::Inside && user.room == waiting.room);
        let open = match waiting.door {
            Door::Leader => within.any(|user| user.leads),
            Door::OpenWhileUncontended => {
                let elsewhere =
                    |user: &User| user.phase == Phase::Waiting && user.room != waiting.room;
                within.next().is_some() && !users.iter().any(elsewhere)
            }
        };
        let (room, door) = (waiting.room, waiting.door);
        open.then(|| format!("p{waits} waits before room {room}, whose door is open ({door})"))
    }

    fn may_violate(tally: &Tally) -> bool {
        tally.kinds_inside() > 1
    }

    fn may_violate_at_rest(tally: &Tally) -> bool {
        tally.kinds_divided() > 0
    }

    /// Counted in rounds: a round is passed by whoever waits for another room.
    fn bypass_max(users: &[User], entered: UserId, waiting: UserId) -> Option<u32> {
        let (passer, passed) = (&users[entered.index()], &users[waiting.index()]);
        let passes = passer.leads && passer.room != passed.room;
        passed.rounds_max.filter(|_| passes)
    }

    fn kind_name(kind: u32) -> String {
        format!("room {kind}")
    }
}

/// A user: idle, then waiting before a room, then inside, then idle again; another time, perhaps another room.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct User {
    phase: Phase,
    room: u32,
    leads: bool,
    rooms: u32,
    door: Door,
    /// How many rounds of other rooms may go before it, where that is promised.
    rounds_max: Option<u32>,
}

impl User {
    pub fn new(rooms: u32, door: Door, rounds_max: Option<u32>) -> User {
        User {
            phase: Phase::Idle,
            room: 0,
            leads: false,
            rooms,
            door,
            rounds_max,
        }
    }
}

impl Default for User {
    fn default() -> Self {
        User::new(2, Door::default(), None)
    }
}

impl crate::User<Rooms> for User {
    fn next(&self) -> Next<Ask> {
        self.choose(0)
    }

    fn choices(&self) -> u32 {
        match self.phase {
            Phase::Idle => self.rooms,
            _ => 1,
        }
    }

    fn choose(&self, room: u32) -> Next<Ask> {
        match self.phase {
            Phase::Idle => Next::May(Ask::Enter(room)),
            Phase::Waiting => Next::Nothing,
            Phase::Inside => Next::Must(Ask::Leave),
        }
    }

    fn asked(&mut self, ask: Ask) {
        (self.phase, self.room) = match ask {
            Ask::Enter(room) => (Phase::Waiting, room),
            // Where it has been does not matter any more.
            Ask::Leave => (Phase::Idle, 0),
        };
        self.leads = false;
    }

    fn told(&mut self, Tell::Entered { leads }: Tell) -> Result<(), String> {
        if self.phase != Phase::Waiting {
            return Err("told Entered without having asked".into());
        }
        (self.phase, self.leads) = (Phase::Inside, leads);
        Ok(())
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn kind(&self) -> u32 {
        self.room
    }

    fn opens_round(&self) -> Option<bool> {
        Some(self.leads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::User as _;

    fn user(room: u32, door: Door, told: Option<bool>) -> User {
        let mut user = User::new(3, door, Some(1));
        user.asked(Ask::Enter(room));
        if let Some(leads) = told {
            user.told(Tell::Entered { leads }).expect("asked");
        }
        user
    }

    #[test]
    fn two_rooms_are_a_violation_and_one_is_not() {
        let inside = |room| user(room, Door::Leader, Some(false));
        assert_eq!(Rooms::violation(&[inside(1), inside(1)]), None);
        assert!(Rooms::violation(&[inside(1), inside(2)]).is_some());
    }

    #[test]
    fn whoever_waits_before_an_open_door_was_promised_more() {
        for door in Door::ALL {
            let waits = user(1, door, None);
            let [leader, member] = [true, false].map(|leads| user(1, door, Some(leads)));
            let wrong = |others: &[User]| Rooms::violation_at_rest(others).is_some();
            assert!(wrong(&[waits, leader]), "{door}");
            assert!(!wrong(&[waits, user(2, door, Some(true))]), "{door}");
            assert_eq!(wrong(&[waits, member]), door == Door::OpenWhileUncontended);
            assert!(!wrong(&[waits, member, user(2, door, None)]), "{door}");
        }
    }

    #[test]
    fn a_round_of_another_room_passes() {
        let passes =
            |entered, waiting| Rooms::bypass_max(&[entered, waiting], UserId(0), UserId(1));
        let waits = user(1, Door::Leader, None);
        assert_eq!(passes(user(2, Door::Leader, Some(true)), waits), Some(1));
        assert_eq!(passes(user(2, Door::Leader, Some(false)), waits), None);
        assert_eq!(passes(user(1, Door::Leader, Some(true)), waits), None);
    }
}
