//! Standstill: what the deep check finds, with traces that are played move by move, and what the simulation makes of it.

use std::collections::BTreeMap;

use testigo_flow::{
    Deep, Flow, Load, MODELS, Move, Round, Simulation, Span, Standstill, deep_check, parse,
    simulate,
};

fn flow(text: &str) -> Flow {
    parse(text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn load(flow: &Flow, text: &str) -> Load {
    Load::parse(text, flow).unwrap_or_else(|errors| panic!("{errors:?}"))
}

const ROUND: &str = "make -> [made] -> inspect -> [good] -> ship\n\
    make -> [made] -> inspect -> [bad] -> mend -> [made] -> inspect -> [good] -> ship\n\
    queue made { limit 3 }\nqueue bad { limit 2 }";

/// Plays a trace under the limits, one move after the other as it is written: each must be possible.
fn play(flow: &Flow, trace: &[Round]) -> BTreeMap<String, u32> {
    let mut jobs = BTreeMap::new();
    for Round { times, moves } in trace {
        for _ in 0..*times {
            moves
                .iter()
                .for_each(|step| play_one(flow, step, &mut jobs));
        }
    }
    jobs
}

fn play_one(flow: &Flow, step: &Move, jobs: &mut BTreeMap<String, u32>) {
    let Move { to, times, .. } = step;
    let process = step.process.as_ref().map(|name| &flow.processes[name]);
    match (process, &step.from) {
        (Some(process), None) => assert!(process.creates.contains(to)),
        (Some(process), Some(from)) => {
            assert!(process.takes.contains(from) && process.passes.contains(to));
        }
        (None, Some(from)) => assert_eq!(flow.reject(from), Some(to)),
        (None, None) => panic!("a job comes from nowhere: {step:?}"),
    }
    if let Some(from) = &step.from {
        let left: &mut u32 = jobs.get_mut(from.as_str()).expect("filled before");
        *left = left.checked_sub(*times).expect("jobs to move");
    }
    let there = jobs.entry(to.to_string()).or_insert(0);
    *there += times;
    let limit = flow.queues[to].limit.unwrap_or(u32::MAX);
    assert!(*there <= limit, "[{to}] is full");
}

/// Plays a standstill, and finds every queue of its cycle full.
fn confirm(flow: &Flow, standstill: &Standstill) {
    let jobs = play(flow, &standstill.trace);
    for (at, (queue, process)) in standstill.cycle.iter().enumerate() {
        let (next, _) = &standstill.cycle[(at + 1) % standstill.cycle.len()];
        let process = &flow.processes[process];
        assert!(process.takes.contains(queue) && process.passes.contains(next));
        assert_eq!(
            Some(jobs[queue.as_str()]),
            flow.queues[queue].limit,
            "[{queue}] is full"
        );
    }
}

/// The only one.
fn standstill(flow: &Flow) -> Standstill {
    let mut found = deep_check(flow);
    found.retain(Deep::is_grave);
    match found.pop() {
        Some(Deep::Standstill(standstill)) if found.is_empty() => standstill,
        other => panic!("{other:?} {found:?}"),
    }
}

#[test]
fn a_cycle_of_full_queues_is_found_with_a_trace_that_can_be_played() {
    let flow = flow(ROUND);
    let found = deep_check(&flow);
    let [Deep::Standstill(standstill)] = &found[..] else {
        panic!("{found:?}");
    };
    confirm(&flow, standstill);
    assert!(
        found[0]
            .to_string()
            .contains("mend takes from [bad] and wants to pass to [made], which is full")
    );
}

/// The same flow stands still in the simulation when everything is found bad.
#[test]
fn the_simulation_stands_still_where_the_deep_check_says_so() {
    let load_text = "create make -> [made] 10/s\nwork inspect fixed:1\nwork mend fixed:1\nwork ship fixed:1\n\
        route inspect -> [bad] 1";
    let span = Span {
        seed: 1,
        seconds: 1_000.0,
        warm_up: 0.0,
    };
    let limited = flow(ROUND);
    let run = simulate(&limited, &load(&limited, load_text), span);
    assert!(run.stood_still.is_some(), "{run:?}");
    let open = flow(&ROUND.replace("queue made { limit 3 }\n", ""));
    assert_eq!(deep_check(&open), []);
    let run = simulate(&open, &load(&open, load_text), span);
    assert_eq!(run.stood_still, None);
}

#[test]
fn what_only_rejected_jobs_reach_is_told() {
    let flow = flow("a -> [q] -> b\nflow { reject [r] }\n[r] -> c -> [s] -> d");
    let found: Vec<String> = deep_check(&flow).iter().map(ToString::to_string).collect();
    assert_eq!(found, ["only jobs that were rejected come to [s]"]);
}

#[test]
fn no_model_of_the_library_can_stand_still() {
    for model in MODELS {
        let found = deep_check(&flow(model.text));
        assert!(
            found.iter().all(|deep| !deep.is_grave()),
            "{}: {found:?}",
            model.name
        );
    }
}

/// Whether limited queues, two or more, form a cycle: by removing queues that cannot lie on one.
fn has_limited_cycle(flow: &Flow) -> bool {
    let mut left: Vec<&str> = flow
        .queues
        .iter()
        .filter(|(_, queue)| queue.limit.is_some())
        .map(|(name, _)| name.as_str())
        .collect();
    let leads = |from: &str, to: &str| {
        from != to
            && flow
                .processes
                .values()
                .any(|process| process.takes.contains(from) && process.passes.contains(to))
    };
    loop {
        let before = left.len();
        let kept = left.clone();
        left.retain(|queue| kept.iter().any(|next| leads(queue, next)));
        if left.len() == before {
            return before > 0;
        }
    }
}

#[test]
fn standstills_are_found_exactly_where_limited_queues_form_a_cycle() {
    let mut generator = testigo_sim::Generator::new(9);
    let mut found = [0, 0];
    for _ in 0..2_000 {
        let mut text = String::new();
        for _ in 0..generator.between(1, 4) {
            text.push_str(&format!("p{}", generator.below(5)));
            for _ in 0..generator.between(1, 4) {
                text.push_str(&format!(
                    " -> [q{}] -> p{}",
                    generator.below(5),
                    generator.below(5)
                ));
            }
            text.push('\n');
        }
        for queue in 0..5 {
            if text.contains(&format!("[q{queue}]")) && generator.chance(0.6) {
                text.push_str(&format!(
                    "queue q{queue} {{ limit {} }}\n",
                    generator.between(1, 3)
                ));
            }
        }
        if generator.chance(0.3) {
            let queue = generator.below(5);
            text.push_str(&format!("flow {{ reject [q{queue}] }}\n"));
        }
        let Ok(flow) = parse(&text) else {
            continue;
        };
        let standstills = deep_check(&flow);
        let grave = standstills.iter().any(Deep::is_grave);
        assert_eq!(grave, has_limited_cycle(&flow), "{text}");
        found[usize::from(grave)] += 1;
        for deep in standstills {
            let Deep::Standstill(standstill) = deep else {
                continue;
            };
            confirm(&flow, &standstill);
        }
    }
    assert!(found.iter().all(|n| *n > 100), "{found:?}");
}

/// The player refuses a trace that fills the nearer queue first: jobs for the farther one cannot come through.
#[test]
#[should_panic(expected = "is full")]
fn a_trace_in_the_wrong_order_is_not_played() {
    let flow = flow(ROUND);
    let mut trace = standstill(&flow).trace;
    let fill_made = trace.last().expect("a round").clone();
    trace.insert(0, fill_made);
    play(&flow, &trace);
}

/// A nearer queue with less room than the farther one needs is passed through in several rounds.
#[test]
fn a_trace_never_finds_a_full_queue() {
    let narrow = ROUND
        .replace("limit 3", "limit 2")
        .replace("bad { limit 2", "bad { limit 7");
    let narrow = flow(&narrow);
    let found = standstill(&narrow);
    confirm(&narrow, &found);
    let told = Deep::Standstill(found).to_string();
    let right = "  3 times:\n    make creates 2 jobs into [made]\n    inspect passes 2 jobs from [made] to [bad]\n  \
        make creates 1 job into [made]\n  inspect passes 1 job from [made] to [bad]\n  make creates 2 jobs into [made]\n";
    assert!(told.contains(right), "{told}");
}

/// What is rejected has been somewhere before.
#[test]
fn a_trace_through_a_reject_queue_starts_with_a_creator() {
    let flow = flow(
        "a -> [q] -> b\n[r] -> c -> [s] -> d -> [r] -> c -> [s] -> e\nflow { reject [r] }\nqueue q { limit 1 }\n\
        queue r { limit 2; reject none }\nqueue s { limit 2; reject none }",
    );
    let found = standstill(&flow);
    confirm(&flow, &found);
    let told = found.trace[0].moves[1].to_string();
    assert_eq!(told, "1 job of [q] is rejected into [r]");
}

/// Everything that is made is found bad: soon all stand.
const ALL_BAD: &str = "create make -> [made] 100/s\nwork inspect fixed:1\nwork mend fixed:1\nwork ship fixed:1\n\
    route inspect -> [bad] 1";

fn run(flow: &Flow, load_text: &str, warm_up: f64) -> Simulation {
    let span = Span {
        seed: 1,
        seconds: 1_000.0,
        warm_up,
    };
    simulate(flow, &load(flow, load_text), span)
}

/// A standstill is told with its time and with what led to it, whatever the warm-up.
#[test]
fn an_early_standstill_is_not_forgotten() {
    let flow = flow(ROUND);
    let (cold, warm) = (run(&flow, ALL_BAD, 0.0), run(&flow, ALL_BAD, 100.0));
    let at = cold.stood_still.expect("it stands still");
    assert!(at < 20.0, "{at}");
    assert_eq!(warm.stood_still, Some(at));
    assert_eq!((warm.counted_from, warm.seconds), (0.0, cold.seconds));
    assert_eq!(warm.stuck, cold.stuck);
    let stuck: Vec<&str> = warm.stuck.iter().map(|name| name.as_str()).collect();
    assert_eq!(stuck, ["bad", "made"]);
    assert_eq!((warm.created, warm.left), (cold.created, 5));
    assert!(warm.created >= 5 && warm.queues[2].arrivals > 0.0);
    // Until the creator comes to stand there, too.
    assert!(warm.creators[0].blocked > 0.5, "{:?}", warm.creators);
}

/// The rest of the flow goes on, and the standstill is told with the time that it came about.
#[test]
fn a_standstill_of_a_part_is_told() {
    let alone = flow(ROUND);
    let both = flow(&format!("other -> [o] -> end\n{ROUND}"));
    let load = format!("{ALL_BAD}\ncreate other -> [o] 1/s\nwork end exponential:0.1");
    let run = run(&both, &load, 100.0);
    let at = run.stood_still.expect("a part stands still");
    assert!(at < 20.0, "{at}");
    let stuck: Vec<&str> = run.stuck.iter().map(|name| name.as_str()).collect();
    assert_eq!(stuck, ["bad", "made"]);
    let end = &run.processes[0];
    assert!(end.name.as_str() == "end" && end.taken > 0.9, "{end:?}");
    assert_eq!(self::run(&alone, ALL_BAD, 0.0).stuck, run.stuck);
}

/// Workers that wait for a slow one behind them do not stand still, however long that takes.
#[test]
fn waiting_for_a_full_queue_is_no_standstill() {
    let flow = flow(
        "a -> [q] -> b -> [r] -> c -> [s] -> d\nqueue q { limit 1 }\nqueue r { limit 1 }\nqueue s { limit 1 }",
    );
    let load = "create a -> [q] 10/s\nwork b fixed:0.1\nwork c fixed:0.1\nwork d fixed:50 deaths 0.1 restart fixed:5";
    let run = run(&flow, load, 100.0);
    assert_eq!((run.stood_still, run.stuck), (None, vec![]));
    assert!(run.processes[0].blocked > 0.9, "{:?}", run.processes);
}
