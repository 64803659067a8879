//! The model against textbook values, and the simulation against the model.

use testigo_flow::{Deep, Flow, Load, MODELS, Move, Span, deep_check, model, parse, simulate};

fn flow(text: &str) -> Flow {
    parse(text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn load(flow: &Flow, text: &str) -> Load {
    Load::parse(text, flow).unwrap_or_else(|errors| panic!("{errors:?}"))
}

const SPAN: Span = Span {
    seed: 7,
    seconds: 200_000.0,
    warm_up: 2_000.0,
};

fn near(found: f64, wanted: f64, tolerance: f64, what: &str) {
    assert!(
        (found / wanted - 1.0).abs() < tolerance,
        "{what}: {found} instead of {wanted}"
    );
}

/// One server, 0.8 busy: a job waits ρ/(μ−λ) = 4 s.
#[test]
fn one_worker_waits_as_in_the_textbook() {
    let flow = flow("a -> [q] -> b");
    let load = load(
        &flow,
        "create a -> [q] 0.8/s\nwork b exponential:1 workers 1",
    );
    let forecast = model(&flow, &load, 0.8).expect("steady");
    near(
        forecast.queues[0].waiting.expect("finite"),
        4.0,
        1e-9,
        "waiting",
    );
    near(
        forecast.time.expect("finite"),
        5.0,
        1e-9,
        "time in the flow",
    );
    let run = simulate(&flow, &load, SPAN);
    near(
        run.queues[0].waiting.expect("some"),
        4.0,
        0.05,
        "simulated waiting",
    );
    near(
        run.processes[0].utilisation,
        0.8,
        0.02,
        "simulated utilisation",
    );
    near(run.time.expect("some"), 5.0, 0.05, "simulated time");
}

/// Without variation the wait is half of that (Pollaczek and Khinchine).
#[test]
fn fixed_times_halve_the_wait() {
    let flow = flow("a -> [q] -> b");
    let load = load(&flow, "create a -> [q] 0.8/s\nwork b fixed:1");
    let forecast = model(&flow, &load, 0.8).expect("steady");
    near(
        forecast.queues[0].waiting.expect("finite"),
        2.0,
        1e-9,
        "waiting",
    );
    let run = simulate(&flow, &load, SPAN);
    near(
        run.queues[0].waiting.expect("some"),
        2.0,
        0.05,
        "simulated waiting",
    );
}

/// A quarter of the parts comes back: the station sees 1/(1−¼) as many.
#[test]
fn rework_is_counted_by_model_and_simulation_alike() {
    let flow = flow(
        "make -> [made] -> inspect -> [good] -> ship\nmake -> [made] -> inspect -> [bad] -> mend -> [made] -> inspect -> [good] -> ship",
    );
    let text = "create make -> [made] 3/s\nwork inspect exponential:0.5 workers 3\nwork mend erlang:2:0.8 workers 2\n\
        work ship uniform:0:0.4\nroute inspect -> [good] 3\nroute inspect -> [bad] 1";
    let load = load(&flow, text);
    let forecast = model(&flow, &load, 0.8).expect("steady");
    let arrivals: Vec<f64> = forecast.queues.iter().map(|queue| queue.arrivals).collect();
    for (found, wanted) in arrivals.iter().zip([1.0, 3.0, 4.0]) {
        near(*found, wanted, 1e-9, "arrivals");
    }
    assert_eq!(forecast.bottleneck.as_deref(), Some("inspect"));
    let needed: Vec<u32> = forecast
        .processes
        .iter()
        .map(|process| process.workers_needed)
        .collect();
    assert_eq!(needed, [3, 1, 1]);
    let run = simulate(&flow, &load, SPAN);
    for (simulated, computed) in run.processes.iter().zip(&forecast.processes) {
        near(
            simulated.utilisation,
            computed.utilisation,
            0.02,
            &computed.name,
        );
        near(simulated.taken, computed.taken, 0.02, &computed.name);
    }
    for (simulated, computed) in run.queues.iter().zip(&forecast.queues) {
        near(simulated.arrivals, computed.arrivals, 0.02, &computed.name);
        near(
            simulated.waiting.expect("some"),
            computed.waiting.expect("finite"),
            0.15,
            &computed.name,
        );
    }
    near(
        run.time.expect("some"),
        forecast.time.expect("finite"),
        0.05,
        "time",
    );
}

/// Jobs that kill their workers come back, and after their retries go to the reject queue.
#[test]
fn deaths_cost_attempts_and_end_in_the_reject_queue() {
    let flow = flow("a -> [q] -> b\nflow { retries 1; reject [r] }\n[r] -> c");
    let load = load(
        &flow,
        "create a -> [q] 0.5/s\nwork b exponential:1 deaths 0.5 restart fixed:0.2\nwork c fixed:1",
    );
    let forecast = model(&flow, &load, 0.8).expect("steady");
    near(
        forecast.processes[0].taken,
        0.75,
        1e-9,
        "attempts: 1 + 1/2 each",
    );
    near(forecast.queues[1].arrivals, 0.125, 1e-9, "rejected: 1/4");
    let run = simulate(&flow, &load, SPAN);
    near(run.processes[0].taken, 0.75, 0.02, "simulated attempts");
    near(
        run.rejected as f64 / run.seconds,
        0.125,
        0.05,
        "simulated rejects",
    );
    near(
        run.processes[0].utilisation,
        forecast.processes[0].utilisation,
        0.05,
        "utilisation",
    );
}

#[test]
fn nothing_is_lost_and_one_seed_gives_one_run() {
    for text in MODELS.map(|model| model.text) {
        let flow = flow(text);
        let load = load(&flow, &Load::template(&flow));
        let span = Span {
            seed: 3,
            seconds: 500.0,
            warm_up: 0.0,
        };
        let run = simulate(&flow, &load, span);
        assert_eq!(run.created, run.deleted + run.left, "{text}");
        assert!(run.created > 100);
        assert_eq!(run, simulate(&flow, &load, span));
        let other = simulate(&flow, &load, Span { seed: 4, ..span });
        assert_ne!(run, other);
    }
}

#[test]
fn what_cannot_be_kept_up_with_is_said() {
    let flow = flow("a -> [q] -> b -> [r] -> c");
    let load = load(
        &flow,
        "create a -> [q] 3/s\nwork b fixed:1 workers 2\nwork c fixed:0.1",
    );
    let forecast = model(&flow, &load, 0.8).expect("arrivals can be computed");
    assert_eq!(forecast.bottleneck.as_deref(), Some("b"));
    assert_eq!((forecast.processes[0].waiting, forecast.time), (None, None));
    assert_eq!(forecast.processes[0].workers_needed, 4);
    let endless = parse("a -> [q] -> b -> [q] -> b").expect("valid");
    let load = Load::parse(
        "create a -> [q] 1/s\nwork b fixed:1\nroute b -> [q] 1\nroute b delete 0",
        &endless,
    )
    .expect("readable");
    assert!(model(&endless, &load, 0.8).is_err());
}

#[test]
fn a_wrong_load_is_refused_at_its_line() {
    let flow = flow("a -> [q] -> b");
    for (text, line, part) in [
        ("create a -> [q] 5", 1, "rate"),
        ("\ncreate b -> [q] 5/s", 2, "does not create"),
        ("create a -> q 5/s", 1, "[q]"),
        ("work x fixed:1", 1, "no process x"),
        ("work b fixed", 1, "fixed:S"),
        ("work b fixed:1 workers 0", 1, "from 1 to"),
        ("work b fixed:1 deaths 1", 1, "below 1"),
        ("work b fixed:1\nwork b fixed:1", 2, "before"),
        ("route b -> [q] 1", 1, "does not pass"),
        ("route a delete 1", 1, "does not delete"),
        ("go", 1, "nothing"),
        ("create a -> [q] 1/s", 1, "how b works"),
        ("work b fixed:1", 1, "creates no jobs"),
    ] {
        let errors = Load::parse(text, &flow).expect_err(text);
        assert_eq!(errors[0].line, line, "{text}: {errors:?}");
        assert!(errors[0].message.contains(part), "{text}: {errors:?}");
    }
}

const ROUND: &str = "make -> [made] -> inspect -> [good] -> ship\n\
    make -> [made] -> inspect -> [bad] -> mend -> [made] -> inspect -> [good] -> ship\n\
    queue made { limit 3 }\nqueue bad { limit 2 }";

/// Plays a trace under the limits: every move must be possible.
fn play(flow: &Flow, trace: &[Move]) -> std::collections::BTreeMap<String, u32> {
    let mut jobs = std::collections::BTreeMap::new();
    // The moves of one filling are done job by job, from the creator on.
    let mut fillings: Vec<Vec<&Move>> = Vec::new();
    for step in trace {
        match step.from {
            None => fillings.push(vec![step]),
            Some(_) => fillings.last_mut().expect("a start").push(step),
        }
    }
    for filling in fillings {
        for _ in 0..filling[0].times {
            for step in &filling {
                if let (Some(process), None) = (&step.process, &step.from) {
                    assert!(flow.processes[process].creates.contains(&step.to));
                }
                if let Some(from) = &step.from {
                    let process = &flow.processes[step.process.as_ref().expect("someone passes")];
                    assert!(process.takes.contains(from) && process.passes.contains(&step.to));
                    let left: &mut u32 = jobs.get_mut(from.as_str()).expect("filled before");
                    *left = left.checked_sub(1).expect("a job to pass");
                }
                let there = jobs.entry(step.to.to_string()).or_insert(0);
                *there += 1;
                let limit = flow.queues[&step.to].limit.unwrap_or(u32::MAX);
                assert!(*there <= limit, "[{}] is full", step.to);
            }
        }
    }
    jobs
}

#[test]
fn a_cycle_of_full_queues_is_found_with_a_trace_that_can_be_played() {
    let flow = flow(ROUND);
    let found = deep_check(&flow);
    let [Deep::Standstill(standstill)] = &found[..] else {
        panic!("{found:?}");
    };
    let jobs = play(&flow, &standstill.trace);
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
        let flow = flow(&text);
        let standstills = deep_check(&flow);
        assert_eq!(!standstills.is_empty(), has_limited_cycle(&flow), "{text}");
        found[usize::from(standstills.is_empty())] += 1;
        for deep in standstills {
            let Deep::Standstill(standstill) = deep else {
                continue;
            };
            let jobs = play(&flow, &standstill.trace);
            for (queue, _) in &standstill.cycle {
                assert_eq!(
                    Some(jobs[queue.as_str()]),
                    flow.queues[queue].limit,
                    "{text}"
                );
            }
        }
    }
    assert!(found.iter().all(|n| *n > 100), "{found:?}");
}

/// The player refuses a trace that fills the nearer queue first: jobs for the farther one cannot come through.
#[test]
#[should_panic(expected = "is full")]
fn a_trace_in_the_wrong_order_is_not_played() {
    let flow = flow(ROUND);
    let found = deep_check(&flow);
    let [Deep::Standstill(standstill)] = &found[..] else {
        panic!("{found:?}");
    };
    let fill_made = standstill.trace.last().expect("a move").clone();
    let mut trace = vec![fill_made];
    trace.extend(standstill.trace.clone());
    play(&flow, &trace);
}
