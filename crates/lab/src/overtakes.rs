//! How often each request that waits has been overtaken by a later one. An entry costs time in
//! proportion to the logarithm of the number of users, so that large runs stay fast.

use testigo_protocol::UserId;

/// Requests that wait, in the order of asking, and the later ones that entered before them.
#[derive(Clone, Debug)]
pub(crate) struct Overtakes {
    /// Every user's place in the order of asking, from 1; 0 for one that does not wait.
    places: Vec<u32>,
    /// Overtakes from before the places were last given anew.
    earlier: Vec<u64>,
    /// A Fenwick tree over the places of requests that have entered.
    entered: Vec<u32>,
    entered_total: u32,
    place_last: u32,
}

impl Overtakes {
    /// Places for few users are not given anew all the time.
    const PLACES_MIN: usize = 64;

    pub(crate) fn new(users: usize) -> Overtakes {
        Overtakes {
            places: vec![0; users],
            earlier: vec![0; users],
            entered: vec![0; (2 * users).max(Self::PLACES_MIN) + 1],
            entered_total: 0,
            place_last: 0,
        }
    }

    /// A user asks: it is behind everybody who waits.
    pub(crate) fn asked(&mut self, user: UserId) {
        if self.place_last as usize + 1 == self.entered.len() {
            self.place_anew();
        }
        self.place_last += 1;
        self.places[user.index()] = self.place_last;
        self.earlier[user.index()] = 0;
    }

    /// A user that waits enters, before all who wait since earlier. Returns how often it was overtaken
    /// itself.
    pub(crate) fn entered(&mut self, user: UserId) -> u64 {
        let overtaken = self.of(user);
        let mut place = std::mem::take(&mut self.places[user.index()]) as usize;
        self.entered_total += 1;
        while let Some(count) = self.entered.get_mut(place) {
            *count += 1;
            place += place & place.wrapping_neg();
        }
        overtaken
    }

    /// A user that waits is gone. Returns how often it was overtaken.
    pub(crate) fn gave_up(&mut self, user: UserId) -> u64 {
        let overtaken = self.of(user);
        self.places[user.index()] = 0;
        overtaken
    }

    /// How often the request of a user that waits has been overtaken; 0 for one that does not wait.
    pub(crate) fn of(&self, user: UserId) -> u64 {
        let mut place = self.places[user.index()] as usize;
        if place == 0 {
            return 0;
        }
        let mut sooner = 0;
        while place > 0 {
            sooner += self.entered[place];
            place &= place - 1;
        }
        self.earlier[user.index()] + u64::from(self.entered_total - sooner)
    }

    /// All places are given away: those who wait get the first ones, in the same order. That happens
    /// once per as many requests as there are users.
    fn place_anew(&mut self) {
        let users = UserId::all(self.places.len());
        let mut waiting: Vec<(u32, UserId)> = users
            .map(|user| (self.places[user.index()], user))
            .filter(|(place, _)| *place > 0)
            .collect();
        waiting.sort_unstable_by_key(|(place, _)| *place);
        for (_, user) in &waiting {
            self.earlier[user.index()] = self.of(*user);
        }
        for ((_, user), place) in waiting.iter().zip(1..) {
            self.places[user.index()] = place;
        }
        self.place_last = waiting.len() as u32;
        self.entered.fill(0);
        self.entered_total = 0;
    }
}

#[cfg(test)]
mod tests {
    use testigo_sim::Generator;

    use super::*;

    /// The plain way: look at everybody who waits at every entry.
    #[derive(Default)]
    struct Plain {
        asked: u64,
        waiting: Vec<(u64, UserId, u64)>,
    }

    impl Plain {
        fn asked(&mut self, user: UserId) {
            self.asked += 1;
            self.waiting.push((self.asked, user, 0));
        }

        fn taken(&mut self, user: UserId) -> (u64, u64) {
            let at = self.waiting.iter().position(|(_, other, _)| *other == user);
            let (number, _, overtaken) = self.waiting.remove(at.expect("waits"));
            (number, overtaken)
        }

        fn entered(&mut self, user: UserId) -> u64 {
            let (mine, overtaken) = self.taken(user);
            for (number, _, overtaken) in &mut self.waiting {
                *overtaken += u64::from(*number < mine);
            }
            overtaken
        }
    }

    #[test]
    fn counts_as_looking_at_everybody_does() {
        for users in [1, 3, 40, 200] {
            let mut generator = Generator::new(users);
            let (mut overtakes, mut plain) = (Overtakes::new(users as usize), Plain::default());
            let mut most = 0;
            for _ in 0..20_000 {
                let user = UserId(generator.below(users) as u32);
                let waits = plain.waiting.iter().any(|(_, other, _)| *other == user);
                match (waits, generator.below(10)) {
                    (false, _) => {
                        overtakes.asked(user);
                        plain.asked(user);
                    }
                    (true, 0) => assert_eq!(overtakes.gave_up(user), plain.taken(user).1),
                    (true, 1..4) => {
                        let overtaken = overtakes.entered(user);
                        assert_eq!(overtaken, plain.entered(user));
                        most = most.max(overtaken);
                    }
                    _ => {}
                }
                for (_, user, overtaken) in &plain.waiting {
                    assert_eq!(overtakes.of(*user), *overtaken);
                }
            }
            assert!(users == 1 || most > 10, "{users} users: {most} overtakes");
        }
    }
}
