//! Times of any distribution, of work and between jobs: the simulation against textbook values, and the model's formula.

use testigo_flow::{Flow, Load, Span, model, parse, simulate};

const SPAN: Span = Span {
    seed: 7,
    seconds: 400_000.0,
    warm_up: 2_000.0,
};

/// How long a job waits for the one worker: by the model, and in the simulation.
fn waits(flow: &Flow, text: &str) -> (f64, f64) {
    let load = Load::parse(text, flow).unwrap_or_else(|errors| panic!("{errors:?}"));
    assert_eq!(Load::parse(&load.text(), flow).as_ref(), Ok(&load));
    let forecast = model(flow, &load, 0.8).expect("steady");
    let run = simulate(flow, &load, SPAN);
    let [by_model, simulated] = [forecast.queues[0].waiting, run.queues[0].waiting];
    (by_model.expect("finite"), simulated.expect("some"))
}

fn near(found: f64, wanted: f64, tolerance: f64, what: &str) {
    assert!(
        (found / wanted - 1.0).abs() < tolerance,
        "{what}: {found} instead of {wanted}"
    );
}

/// One worker whose jobs come by chance waits ρ/(1−ρ)·(1+c²)/2 of a service, whatever the times are (Pollaczek and Khinchine).
#[test]
fn any_time_of_work_waits_by_its_spread() {
    let flow = parse("a -> [q] -> b").expect("a flow");
    for (time, variability) in [
        ("lognormal:1:1", 1.0),
        ("pareto:6:1", 1.0 / 24.0),
        ("values:0.5,0.5,0.5,2.5", 0.75),
    ] {
        let text = format!("create a -> [q] 0.7/s\nwork b {time}");
        let wanted = 0.7 / 0.3 * (1.0 + variability) / 2.0;
        let (by_model, simulated) = waits(&flow, &text);
        near(by_model, wanted, 1e-9, time);
        near(simulated, wanted, 0.05, time);
    }
}

/// Jobs that come at fixed times to an exponential worker wait σ/(1−σ) services, where σ = exp(−(1−σ)/ρ).
#[test]
fn jobs_that_come_regularly_wait_less() {
    let flow = parse("a -> [q] -> b").expect("a flow");
    let (by_model, simulated) = waits(
        &flow,
        "create a -> [q] every fixed:1.25\nwork b exponential:1",
    );
    let mut sigma: f64 = 0.5;
    for _ in 0..200 {
        sigma = (-(1.0 - sigma) / 0.8).exp();
    }
    near(simulated, sigma / (1.0 - sigma), 0.05, "D/M/1");
    // Allen and Cunneen: half of what it is by chance.
    near(by_model, 2.0, 1e-9, "the model");
}

#[test]
fn jobs_that_come_in_bursts_wait_longer() {
    let flow = parse("a -> [q] -> b").expect("a flow");
    let bursts = "create a -> [q] every mixed:0.9:0.5:8\nwork b exponential:1";
    let (by_model, simulated) = waits(&flow, bursts);
    // 0.8 a second either way; by chance it would be 4 s.
    assert!(by_model > 10.0 && simulated > 8.0, "{by_model} {simulated}");
}

#[test]
fn times_without_a_variance_have_no_mean_wait() {
    let flow = parse("a -> [q] -> b").expect("a flow");
    let text = "create a -> [q] 0.5/s\nwork b pareto:1.5:1";
    let load = Load::parse(text, &flow).expect("a load");
    let forecast = model(&flow, &load, 0.8).expect("steady");
    assert_eq!(forecast.queues[0].waiting, None);
    assert_eq!(forecast.processes[0].utilisation, 0.5);
}

#[test]
fn jobs_must_come_with_some_time_between_them() {
    let flow = parse("a -> [q] -> b").expect("a flow");
    for (line, why) in [
        ("create a -> [q] every fixed:0", "it is 0"),
        ("create a -> [q] every", "no rate"),
        ("create a -> [q] every often", "a time in seconds"),
        ("create a -> [q] fixed:1", "5/s"),
    ] {
        let errors = Load::parse(line, &flow).expect_err(line);
        assert!(errors[0].message.contains(why), "{line}: {errors:?}");
    }
}
