//! The model against textbook values, and the simulation against the model.

use testigo_flow::{Flow, Load, MODELS, Span, model, parse, simulate};

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
    let flow = flow("a -> [q] -> b\na -> [q] -> c\nprocess c { limit 2 }");
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
        ("work b fixed:1\nwork c fixed:1", 2, "creates no jobs"),
        (
            "work b fixed:1 deaths 0.5 deaths 0.2",
            1,
            "`deaths` is said twice",
        ),
        ("work b fixed:1 workers", 1, "`workers` is no option"),
        (
            "work c fixed:1 workers 3",
            1,
            "c has 3 workers here, and the flow allows it 2",
        ),
        (
            "create a -> [q] 1/s\nwork b fixed:1\nwork c fixed:1\nroute c delete 0",
            4,
            "c has no way out for jobs from [q]",
        ),
    ] {
        let errors = Load::parse(text, &flow).expect_err(text);
        assert_eq!(errors[0].line, line, "{text}: {errors:?}");
        assert!(errors[0].message.contains(part), "{text}: {errors:?}");
    }
}

/// Means that fit a simulation: how far it may be from what is exact, within the chance of one run.
const CHANCE: f64 = 0.04;

/// Two processes that are equal are one station of two workers: M/M/2 waits 1/3 s, and both get half.
#[test]
fn equal_takers_of_one_queue_are_one_station() {
    let flow = flow("a -> [q] -> x\na -> [q] -> y");
    let load = load(
        &flow,
        "create a -> [q] 1/s\nwork x exponential:1\nwork y exponential:1",
    );
    let forecast = model(&flow, &load, 0.8).expect("steady");
    let waiting = forecast.queues[0].waiting.expect("finite");
    near(waiting, 1.0 / 3.0, 1e-9, "waiting");
    assert!(!forecast.queues[0].unequal_takers);
    let run = simulate(&flow, &load, SPAN);
    near(
        run.queues[0].waiting.expect("some"),
        1.0 / 3.0,
        CHANCE,
        "simulated",
    );
    for (simulated, computed) in run.processes.iter().zip(&forecast.processes) {
        near(computed.utilisation, 0.5, 1e-9, "utilisation");
        near(simulated.utilisation, 0.5, 0.01, "simulated utilisation");
    }
}

/// A fast and a slow one: the chain of this queue, solved by hand, has all workers busy for 24/41 of the time, and a job then
/// waits one second. The simulation is right, and the model near.
#[test]
fn takers_that_differ_are_approximated() {
    let flow = flow("a -> [q] -> fast\na -> [q] -> slow");
    let load = load(
        &flow,
        "create a -> [q] 2/s\nwork fast exponential:0.4\nwork slow exponential:2",
    );
    let forecast = model(&flow, &load, 0.8).expect("steady");
    assert!(forecast.queues[0].unequal_takers);
    let run = simulate(&flow, &load, SPAN);
    let exact = 24.0 / 41.0;
    near(
        run.queues[0].waiting.expect("some"),
        exact,
        CHANCE,
        "simulated waiting",
    );
    near(
        forecast.queues[0].waiting.expect("finite"),
        exact,
        0.10,
        "waiting",
    );
    for (at, exact) in [26.0 / 41.0, 34.0 / 41.0].into_iter().enumerate() {
        near(
            run.processes[at].utilisation,
            exact,
            0.02,
            "simulated utilisation",
        );
        near(
            forecast.processes[at].utilisation,
            exact,
            0.08,
            "utilisation",
        );
    }
}

/// Takers of several queues that overlap in part: who has more to do elsewhere gets less here.
#[test]
fn takers_with_other_work_get_less() {
    let flow = flow("a -> [q] -> x\na -> [q] -> y\na -> [r] -> y");
    let load = load(
        &flow,
        "create a -> [q] 0.8/s\ncreate a -> [r] 0.6/s\nwork x exponential:1\nwork y exponential:1",
    );
    let forecast = model(&flow, &load, 0.8).expect("steady");
    let run = simulate(&flow, &load, SPAN);
    for (simulated, computed) in run.processes.iter().zip(&forecast.processes) {
        near(
            simulated.utilisation,
            computed.utilisation,
            0.05,
            &computed.name,
        );
    }
    let taken: f64 = forecast.processes.iter().map(|process| process.taken).sum();
    near(taken, 1.4, 1e-9, "all are taken");
}

/// One worker that dies now and then: Pollaczek and Khinchine, with a service that is all attempts together.
#[test]
fn the_service_of_a_job_is_all_its_attempts() {
    let flow = flow("a -> [q] -> b");
    for (work, wanted, tolerance) in [
        // E T = 17/14, E T² = 2.8061.
        ("exponential:1 deaths 0.3", 1.0913, 1e-4),
        // With the restarts, of 3/7 a job in the mean, that the job waits for as well.
        ("fixed:1 deaths 0.3 restart fixed:1", 2.8274, 1e-4),
    ] {
        let load = load(&flow, &format!("create a -> [q] 0.4/s\nwork b {work}"));
        let forecast = model(&flow, &load, 0.8).expect("steady");
        let computed = forecast.queues[0].waiting.expect("finite");
        let run = simulate(&flow, &load, SPAN);
        let simulated = run.queues[0].waiting.expect("some");
        near(computed, wanted, tolerance, work);
        near(simulated, wanted, CHANCE, work);
    }
    let load = load(
        &flow,
        "create a -> [q] 0.8/s\nwork b erlang:2:1 deaths 0.3 restart exponential:0.5 workers 2",
    );
    let forecast = model(&flow, &load, 0.8).expect("steady");
    let run = simulate(&flow, &load, SPAN);
    near(
        forecast.queues[0].waiting.expect("finite"),
        run.queues[0].waiting.expect("some"),
        0.10,
        "two workers, by approximation",
    );
}

/// A limit counts waiting and held jobs.
#[test]
fn a_limit_that_chokes_a_flow_is_told() {
    let flow = flow("a -> [q] -> b\nqueue q { limit 2 }");
    let text = "create a -> [q] 8/s\nwork b exponential:1 workers 10";
    let choked = load(&flow, text);
    let forecast = model(&flow, &choked, 0.8).expect("steady");
    assert_eq!(forecast.queues[0].beyond_limit, Some(2));
    assert!(forecast.queues[0].is_choked() && !forecast.keeps_up());
    let span = Span {
        seconds: 20_000.0,
        ..SPAN
    };
    let run = simulate(&flow, &choked, span);
    // With 0, 1, 2 jobs, and 2 with the creator before the queue, the chain has 1, 8, 32 and 128 parts of 169.
    let through = (8.0 + 2.0 * 160.0) / 169.0;
    near(run.creators[0].created, through, 0.03, "throughput");
    near(run.creators[0].blocked, 128.0 / 169.0, 0.03, "blocked");
    // One worker, half busy, is full for a quarter of the time.
    let half = load(&flow, "create a -> [q] 0.5/s\nwork b exponential:1");
    let forecast = model(&flow, &half, 0.8).expect("steady");
    near(
        forecast.queues[0].full.expect("a limit"),
        0.25,
        1e-9,
        "full",
    );
    assert_eq!(forecast.queues[0].beyond_limit, Some(2));
    assert!(forecast.keeps_up());
    let seldom = load(&flow, "create a -> [q] 0.05/s\nwork b exponential:1");
    let forecast = model(&flow, &seldom, 0.8).expect("steady");
    assert_eq!(forecast.queues[0].beyond_limit, None);
}

#[test]
fn nothing_to_do_is_nothing_and_not_undefined() {
    let flow = flow("a -> [q] -> b");
    let mut none = load(
        &flow,
        "create a -> [q] 1/s\nwork b exponential:1\nwork a exponential:1",
    );
    none.creates.clear();
    let forecast = model(&flow, &none, 0.8).expect("steady");
    assert_eq!((forecast.time, &forecast.bottleneck), (None, &None));
    assert!(forecast.keeps_up());
    for process in &forecast.processes {
        for number in [process.taken, process.utilisation] {
            assert!(number == 0.0 && number.is_sign_positive(), "{process:?}");
        }
    }
    assert!(forecast.created.is_sign_positive());
    let run = simulate(&flow, &none, SPAN);
    assert_eq!((run.stood_still, run.created), (None, 0));
    near(run.seconds, SPAN.seconds, 1e-9, "it went to the end");
}

/// 6/s of 0.4 s are 2.4 workers, which is 80 % of 3.
#[test]
fn exactly_the_target_needs_no_more_workers() {
    let flow = flow("a -> [q] -> b");
    let load = load(
        &flow,
        "create a -> [q] 6/s\nwork b exponential:0.4 workers 3",
    );
    let forecast = model(&flow, &load, 0.8).expect("steady");
    assert_eq!(forecast.processes[0].workers_needed, 3);
    let forecast = model(&flow, &load, 0.79).expect("steady");
    assert_eq!(forecast.processes[0].workers_needed, 4);
}

/// Two jobs per second, one is done: those that were taken until 1000 s had waited 250 s in the mean.
#[test]
fn an_overloaded_queue_tells_how_long_taken_jobs_waited() {
    let flow = flow("a -> [q] -> b");
    let load = load(&flow, "create a -> [q] 2/s\nwork b exponential:1");
    let span = Span {
        seed: 1,
        seconds: 1_000.0,
        warm_up: 0.0,
    };
    let run = simulate(&flow, &load, span);
    let waiting = run.queues[0].waiting.expect("some");
    near(waiting, 250.0, 0.15, "waiting");
    near(
        waiting + 1.0,
        run.time.expect("some"),
        0.02,
        "time in the flow",
    );
}

/// A run that overflows before its warm-up is over shows what led to it.
#[test]
fn an_early_overflow_is_counted_from_the_start() {
    let flow = flow("a -> [q] -> b");
    let load = load(&flow, "create a -> [q] 1000/s\nwork b fixed:1");
    let span = Span {
        seed: 1,
        seconds: 9_000.0,
        warm_up: 2_000.0,
    };
    let run = simulate(&flow, &load, span);
    let at = run.overflowed.expect("it overflows");
    near(at, 1_000.0, 0.01, "when");
    assert_eq!(run.counted_from, 0.0);
    near(run.seconds, at, 1e-9, "counted");
    assert_eq!(run.created, run.left + run.deleted);
    near(run.queues[0].arrivals, 1e3, 0.01, "arrivals");
    near(run.queues[0].jobs, 5e5, 0.02, "jobs in the mean");
}
