//! The trace of a deep check, played on a node: every move is possible, and at its end nobody can go on.

use testigo_flow::{Deep, Move, Round, Standstill, deep_check, parse};

use super::tests::Stage;
use super::*;

/// The farther queue has room for more than the nearer one, and some of its jobs come from a reject queue.
const ROUND: &str = r"make -> [made] -> inspect -> [good] -> ship\nmake -> [made] -> inspect -> [bad] -> mend -> [made] -> inspect\n[scrap] -> examine -> [old] -> sort -> [scrap] -> examine\nflow { retries 0; reject [scrap] }\nqueue scrap { limit 2; reject none }\nqueue old { limit 3; reject none }\nqueue made { limit 2 }\nqueue bad { limit 3 }";

impl Stage {
    fn taken(&mut self, client: ClientId, queue: &str) -> String {
        let taken = self.say(client, &format!("JOB TAKE round/{queue}"));
        let numbers = taken.lines().filter_map(|line| line.strip_prefix(':'));
        numbers.collect::<Vec<_>>().join(" ")
    }

    fn play(&mut self, admin: ClientId, step: &Move) {
        let to = &step.to;
        for _ in 0..step.times {
            let (command, answer) = match (&step.process, &step.from) {
                (_, None) => (format!("JOB CREATE round/{to} * body"), ":"),
                (Some(_), Some(from)) => {
                    let job = self.taken(admin, from);
                    (format!("JOB PASS {job} round/{to}"), "+OK")
                }
                (None, Some(from)) => {
                    let job = self.taken(admin, from);
                    (format!("JOB BACK {job} FAILED"), "+OK")
                }
            };
            let heard = self.logged(admin, &command);
            assert!(heard.starts_with(answer), "{step}: {command}: {heard}");
        }
    }
}

#[test]
fn a_standstill_comes_about_as_it_is_told() {
    let flow = parse(&ROUND.replace(r"\n", "\n")).unwrap();
    let found = deep_check(&flow).into_iter();
    let found: Vec<Standstill> = found
        .filter_map(|deep| match deep {
            Deep::Standstill(standstill) => Some(standstill),
            Deep::Rejected { .. } => None,
        })
        .collect();
    assert_eq!(found.len(), 2, "{found:?}");
    for Standstill { cycle, trace } in found {
        let mut stage = Stage::new();
        let admin = stage.client();
        stage.apply(admin, "round", ROUND);
        for Round { times, moves } in trace {
            for _ in 0..times {
                for step in &moves {
                    stage.play(admin, step);
                }
            }
        }
        for (at, (queue, process)) in cycle.iter().enumerate() {
            let (next, _) = &cycle[(at + 1) % cycle.len()];
            let worker = stage.client();
            let presented = stage.say(worker, &format!("PRESENT round {process}"));
            assert_eq!(presented, "+OK\r\n");
            let job = stage.taken(worker, queue);
            let passed = stage.say(worker, &format!("JOB PASS {job} round/{next}"));
            assert!(passed.starts_with("-FULL"), "{passed}");
        }
    }
}
