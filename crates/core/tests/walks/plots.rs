//! What people do: close a circle, or come and go as they like.

use testigo_core::estate::Broken;
use testigo_core::{Ask, Rule};

use crate::town::{NODES, Tally, Town};

/// How somebody in a circle stands in the way of the one before it.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Inside, alone.
    Alone,
    /// Inside with all permits but too few.
    Permits,
    /// Inside with one of two permits; another member of the circle has the other one.
    Both,
    /// A reader, beside another one who waits for the same.
    Readers,
    /// In another room.
    Room,
    /// Inside with one of two permits, and ahead of the next one somebody waits for two.
    Ahead,
}

/// Two to five people in a circle, some of them doubled, and some who only wait for it.
pub(crate) fn circle(seed: u64, broken: Option<Broken>) -> Result<Tally, String> {
    let mut town = Town::new(seed, broken);
    let count = town.random.between(2, 5) as usize;
    let last = town.random.below(count as u64) as usize;
    let ways: Vec<Way> = (0..count)
        .map(|at| match town.random.below(9) {
            // One at least is no reader, to be the one that closes the circle.
            _ if at == last => Way::Alone,
            0 => Way::Permits,
            1 => Way::Both,
            2 => Way::Readers,
            3 => Way::Room,
            4 => Way::Ahead,
            _ => Way::Alone,
        })
        .collect();
    let mut gates = Vec::new();
    for way in &ways {
        let rule = match way {
            Way::Alone => Rule::Mutex,
            Way::Permits | Way::Both | Way::Ahead => Rule::Permits(2),
            Way::Readers => Rule::Shared,
            Way::Room => Rule::Rooms,
        };
        let owner = town.random.below(NODES as u64) as usize;
        gates.push(town.make_gate(rule, owner));
    }
    town.plain = ways.iter().all(|way| matches!(way, Way::Alone));
    let spare = town.make_gate(Rule::Mutex, 0);
    town.pass(100)?;
    let arrive = |town: &mut Town| {
        let home = town.random.below(NODES as u64) as usize;
        town.arrive(home)
    };
    // Each is inside its own gate; some have a double there.
    let mut members: Vec<(usize, usize)> = Vec::new();
    for (at, way) in ways.iter().enumerate() {
        let own = match way {
            Way::Alone => Ask::Plain,
            Way::Permits => Ask::Permits(2),
            Way::Both | Way::Ahead => Ask::Permits(1),
            Way::Readers => Ask::Shared,
            Way::Room => Ask::Room("red"),
        };
        let who = arrive(&mut town);
        // One in a few has its gate as part of a set.
        match at == 0 && town.random.one_in(3) {
            true => town.lock(who, &[(&spare, Ask::Plain), (&gates[at], own)], None)?,
            false => town.lock(who, &[(&gates[at], own)], None)?,
        }
        members.push((who, at));
        if matches!(way, Way::Both | Way::Readers) {
            let double = arrive(&mut town);
            town.lock(double, &[(&gates[at], own)], None)?;
            members.push((double, at));
        }
    }
    town.pass(200)?;
    for (at, way) in ways.iter().enumerate() {
        if let Way::Ahead = way {
            let ahead = arrive(&mut town);
            town.people[ahead].last = true;
            town.lock(ahead, &[(&gates[at], Ask::Permits(2))], None)?;
        }
    }
    town.pass(100)?;
    // Each asks for the gate of the next one, in any order.
    let mut turns = Vec::new();
    while !members.is_empty() {
        let next = town.random.below(members.len() as u64) as usize;
        turns.push(members.swap_remove(next));
    }
    // Two readers are in the way together, in two circles: the last one closes both at once.
    turns.sort_by_key(|(_, at)| *at == last);
    for (who, at) in turns {
        let next = (at + 1) % count;
        let wanted = match ways[next] {
            Way::Alone | Way::Readers => Ask::Plain,
            Way::Permits | Way::Both | Way::Ahead => Ask::Permits(1),
            Way::Room => Ask::Room("blue"),
        };
        town.people[who].last = true;
        town.lock(who, &[(&gates[next], wanted)], None)?;
        let pause = town.random.below(400);
        town.pass(pause)?;
        // Whoever was refused at once gives everything back.
        give_back(&mut town)?;
    }
    // Some wait for the circle without being part of it.
    for _ in 0..town.random.below(3) {
        let who = arrive(&mut town);
        let gate = gates[town.random.below(count as u64) as usize].clone();
        let ask = match town.gate(&gate).map(|gate| gate.definition.rule) {
            Some(Rule::Rooms) => Ask::Room("green"),
            _ => Ask::Plain,
        };
        town.people[who].last = true;
        town.lock(who, &[(&gate, ask)], None)?;
    }
    for _ in 0..100 {
        town.pass(50)?;
        give_back(&mut town)?;
    }
    let stuck = town.people.iter().filter(|person| person.waits.is_some());
    if stuck.count() > 0 {
        return Err(format!("somebody still waits: {:#?}", town.people));
    }
    match (town.tally.deadlocks, town.tally.victims) {
        (1.., victims) if victims == town.tally.deadlocks => Ok(town.tally),
        (deadlocks, victims) => Err(format!(
            "{victims} victims of {deadlocks} deadlocks, {ways:?}: {:#?}",
            town.people
        )),
    }
}

/// Whoever has what it wants, or was refused, gives everything back.
fn give_back(town: &mut Town) -> Result<(), String> {
    for who in 0..town.people.len() {
        let person = &town.people[who];
        // Those who have not asked for a second gate yet keep their first.
        let done = person.refused || person.last;
        if done && person.waits.is_none() {
            while !town.people[who].held.is_empty() {
                town.unlock(who)?;
            }
        }
    }
    Ok(())
}

/// People who come, take one gate after the other in any order, wait, change their minds and leave.
pub(crate) fn crowd(seed: u64, broken: Option<Broken>) -> Result<Tally, String> {
    let mut town = Town::new(seed ^ 0xc0ffee, broken);
    town.slow_one_in = 12;
    let rules = [
        Rule::Mutex,
        Rule::Mutex,
        Rule::Permits(2),
        Rule::Shared,
        Rule::Rooms,
    ];
    let count = town.random.between(3, 5);
    for at in 0..count {
        let owner = town.random.below(NODES as u64) as usize;
        town.make_gate(rules[at as usize % rules.len()], owner);
    }
    town.pass(100)?;
    for _ in 0..town.random.between(3, 7) {
        let home = town.random.below(NODES as u64) as usize;
        town.arrive(home);
    }
    let gates = town.gates.clone();
    for _ in 0..150 {
        let pause = town.random.between(5, 80);
        town.pass(pause)?;
        let who = town.random.below(town.people.len() as u64) as usize;
        if let Some((_, ticket)) = town.people[who].waits.clone() {
            if town.random.one_in(4) {
                let cancel = testigo_core::Command::Cancel { ticket };
                let _ = town.ask(who, &cancel)?;
            }
            continue;
        }
        let held = town.people[who].held.len();
        if held > 0 && town.random.one_in(3) || held > 2 {
            town.unlock(who)?;
            continue;
        }
        let free = gates.iter().enumerate().filter(|(_, gate)| {
            let held = &town.people[who].held;
            held.iter().all(|(own, _)| own != *gate)
        });
        let free: Vec<usize> = free.map(|(at, _)| at).collect();
        if free.is_empty() {
            continue;
        }
        let at = free[town.random.below(free.len() as u64) as usize];
        let ask = match rules[at % rules.len()] {
            Rule::Permits(_) => Ask::Permits(town.random.between(1, 2) as u32),
            Rule::Shared if town.random.one_in(2) => Ask::Shared,
            Rule::Rooms if town.random.one_in(2) => Ask::Room("red"),
            Rule::Rooms => Ask::Room("blue"),
            _ => Ask::Plain,
        };
        let wait_ms = town.random.one_in(3).then_some(700);
        town.lock(who, &[(&gates[at], ask)], wait_ms)?;
    }
    Ok(town.tally)
}

/// A wait is cancelled behind the back of a walk, and the circle closes only then: it never was one.
pub(crate) fn late_cancel(broken: Option<Broken>) -> Result<Tally, String> {
    let mut town = Town::new(1, broken);
    let gates = [0; 3].map(|owner| town.make_gate(Rule::Mutex, owner));
    let [first, second, third] = gates.each_ref().map(|gate| [(&**gate, Ask::Plain)]);
    town.pass(100)?;
    let (patient, fickle, walker) = (town.arrive(2), town.arrive(1), town.arrive(0));
    town.lock(walker, &first, None)?;
    town.lock(fickle, &second, None)?;
    town.lock(patient, &third, None)?;
    town.pass(100)?;
    town.lock(fickle, &third, None)?;
    town.pass(50)?;
    town.lock(walker, &second, None)?;
    // The walk comes to the last home late.
    town.slow_down(0, 2, 600);
    town.pass(350)?;
    let (_, ticket) = town.people[fickle].waits.take().expect("it waits");
    let cancelled = town.ask(fickle, &testigo_core::Command::Cancel { ticket })?;
    cancelled.map_err(|refusal| refusal.to_string())?;
    town.pass(60)?;
    town.lock(patient, &first, None)?;
    town.pass(400)?;
    match town.tally.deadlocks {
        0 => Ok(town.tally),
        _ => Err("there was a deadlock after all".into()),
    }
}

/// What a holder has given back is still in its owner's books.
pub(crate) fn late_release(broken: Option<Broken>) -> Result<Tally, String> {
    let mut town = Town::new(1, broken);
    let gates = [1, 0].map(|owner| town.make_gate(Rule::Mutex, owner));
    let [first, second] = gates.each_ref().map(|gate| [(&**gate, Ask::Plain)]);
    town.pass(100)?;
    let (leaver, walker) = (town.arrive(2), town.arrive(0));
    town.lock(leaver, &first, None)?;
    town.lock(walker, &second, None)?;
    town.pass(100)?;
    town.lock(walker, &first, None)?;
    town.pass(100)?;
    town.slow_down(2, 1, 900);
    town.unlock(leaver)?;
    town.lock(leaver, &second, None)?;
    town.pass(1_500)?;
    match town.people[walker].held.len() {
        2 => Ok(town.tally),
        _ => Err("the release did not arrive".into()),
    }
}

/// A circle of so many people. The youngest, who is to be refused, is the only one at its home, so a walk from there has to
/// go all the way round.
pub(crate) fn long_circle(count: usize) -> Result<Tally, String> {
    let mut town = Town::new(1, None);
    town.found_ms = 4_000;
    town.plain = true;
    let gates: Vec<String> = (0..count)
        .map(|at| town.make_gate(Rule::Mutex, at % NODES))
        .collect();
    town.pass(100)?;
    let mut people: Vec<usize> = (1..count).map(|at| town.arrive(1 + at % 2)).collect();
    town.make_gate(Rule::Permits(1), 0);
    people.insert(0, town.arrive(0));
    close(&mut town, &people, &gates)?;
    town.pass(6_000)?;
    Ok(town.tally)
}

/// A circle of two, at whose home many others wait, each for a gate of its own.
pub(crate) fn circle_in_a_crowd() -> Result<Tally, String> {
    let mut town = Town::new(2, None);
    town.found_ms = 8_000;
    let crowd: Vec<[String; 2]> = (0..100)
        .map(|_| [1, 2].map(|owner| town.make_gate(Rule::Mutex, owner)))
        .collect();
    let gates = [1, 2].map(|owner| town.make_gate(Rule::Mutex, owner));
    town.pass(200)?;
    let keeper = town.arrive(1);
    for [own, wanted] in &crowd {
        let who = town.arrive(0);
        town.lock(keeper, &[(wanted, Ask::Plain)], None)?;
        town.lock(who, &[(own, Ask::Plain)], None)?;
        town.pass(50)?;
        town.lock(who, &[(wanted, Ask::Plain)], None)?;
    }
    let other = town.arrive(1);
    town.make_gate(Rule::Permits(1), 0);
    let people = [town.arrive(0), other];
    close(&mut town, &people, &gates)?;
    town.pass(10_000)?;
    Ok(town.tally)
}

/// Each enters a gate, and asks for that of the next one.
fn close(town: &mut Town, people: &[usize], gates: &[String]) -> Result<(), String> {
    town.pass(200)?;
    for (who, gate) in people.iter().zip(gates) {
        town.lock(*who, &[(gate, Ask::Plain)], None)?;
    }
    town.pass(200)?;
    for (at, who) in people.iter().enumerate() {
        town.people[*who].last = true;
        let next = &gates[(at + 1) % gates.len()];
        town.lock(*who, &[(next, Ask::Plain)], None)?;
    }
    Ok(())
}
