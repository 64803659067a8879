//! The contract of `testigo lab` with scripts: fields, exit codes, errors.

use std::process::{Command, Output};

use serde_json::Value;

/// Runs `testigo lab …` in a directory of its own.
fn lab(arguments: &str) -> (Output, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let output = Command::new(env!("CARGO_BIN_EXE_testigo"))
        .arg("lab")
        .args(arguments.split_whitespace())
        .current_dir(folder.path())
        .output()
        .expect("the binary runs");
    (output, folder)
}

fn code(arguments: &str) -> i32 {
    lab(arguments).0.status.code().expect("an exit code")
}

fn json(arguments: &str) -> Value {
    let (output, _folder) = lab(arguments);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "{arguments}: {error}: {}",
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

fn error(arguments: &str) -> String {
    let (output, _folder) = lab(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments}");
    assert!(
        output.stdout.is_empty(),
        "{arguments}: an error goes to standard error alone"
    );
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn run_prints_every_field_of_the_contract() {
    let report = json("run ricart-agrawala --nodes 5 --json");
    assert_eq!(report["algorithm"], "ricart-agrawala");
    assert_eq!(report["problem"], "mutex");
    assert_eq!(
        (report["nodes"].as_u64(), report["seed"].as_u64()),
        (Some(5), Some(1))
    );
    assert_eq!(report["entries"], 100);
    for field in ["safe", "live", "ordered", "well_formed"] {
        assert_eq!(report[field], true, "{field}");
    }
    assert_eq!(report["messages"], 800);
    assert_eq!(report["messages_per_entry"], 8.0);
    assert_eq!(report["published_messages_per_entry"]["min"], 8.0);
    assert_eq!(report["published_messages_per_entry"]["max"], 8.0);
    for field in [
        "message_bytes",
        "entry_delay",
        "waiting_time",
        "response_time",
        "synchronisation_delay",
    ] {
        assert!(
            report[field].as_f64().is_some_and(|value| value > 0.0),
            "{field}"
        );
    }
    assert!(report["overtakes_max"].is_u64());
    assert_eq!(report["violations"], serde_json::json!([]));
    assert_eq!(json("run central --nodes 3 --json")["ordered"], Value::Null);
}

#[test]
fn check_prints_every_field_of_the_contract() {
    let checked = json("check central --nodes 3 --entries 2 --json");
    assert_eq!(
        (checked["nodes"].as_u64(), checked["entries"].as_u64()),
        (Some(3), Some(2))
    );
    assert!(
        checked["states"]
            .as_u64()
            .is_some_and(|states| states > 1_000)
    );
    assert_eq!(checked["complete"], true);
    for field in ["safety", "deadlock_freedom", "lockout_freedom"] {
        assert_eq!(checked[field], "holds", "{field}");
    }
    assert_eq!(checked["counterexample"], Value::Null);
    assert_eq!(
        json("check central --nodes 2 --json")["entries"],
        1,
        "the default"
    );

    let refuted = json("check maekawa-slides --json");
    assert_eq!(refuted["safety"], "refuted");
    assert_eq!(
        refuted["counterexample"],
        "maekawa-slides.counterexample.trace"
    );
    assert_eq!(refuted["counterexample_steps"], 6);
}

#[test]
fn list_and_claims_and_compare_print_lists() {
    let listed = json("list --problem mutex --json");
    let names: Vec<&str> = listed
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|e| e["name"].as_str())
        .collect();
    for name in [
        "central",
        "token-ring",
        "lamport",
        "ricart-agrawala",
        "maekawa",
        "sanders",
    ] {
        assert!(names.contains(&name), "{name}");
    }
    assert!(listed[0]["source"].is_string() && listed[0]["specimen"] == false);

    let claims = json("claims central central-lifo --json");
    let finding = |algorithm: &str, claim: &str| {
        let all = claims.as_array().expect("a list");
        all.iter()
            .find(|c| c["algorithm"] == algorithm && c["claim"] == claim)
            .expect("claimed")
            .clone()
    };
    assert_eq!(finding("central", "messages per entry")["holds"], true);
    assert_eq!(finding("central-lifo", "lockout freedom")["holds"], false);
    for field in ["published", "measured", "nodes"] {
        assert!(!finding("central", "safety")[field].is_null(), "{field}");
    }

    let rows = json("compare central lamport --nodes 4,8 --json");
    assert_eq!(rows.as_array().map(Vec::len), Some(4));
    assert_eq!(rows[3]["messages_per_entry"], 21.0);
}

#[test]
fn many_runs_give_a_mean_its_interval_and_percentiles() {
    let line = "run maekawa --nodes 4..16x2 --seeds 1..12 --latency exponential:1";
    let samples = json(&format!("{line} --json"));
    let nodes: Vec<_> = (0..3).map(|at| samples[at]["nodes"].as_u64()).collect();
    assert_eq!(nodes, [Some(4), Some(8), Some(16)]);
    assert_eq!(samples.as_array().map(Vec::len), Some(3));
    let waiting = &samples[2]["measures"]["waiting_time"];
    assert_eq!(waiting["runs"], 12);
    let values = ["min", "p5", "p25", "p50", "p75", "p95", "max"];
    let values = values.map(|name| waiting[name].as_f64().expect(name));
    assert!(values.is_sorted() && values[0] < values[6], "{values:?}");
    let interval = ["low", "mean", "high"].map(|name| waiting[name].as_f64().expect(name));
    assert!(interval[0] < interval[1] && interval[1] < interval[2]);

    let (output, _folder) = lab(&format!("{line} --csv"));
    let text = String::from_utf8(output.stdout).expect("text");
    let head =
        "algorithm,nodes,measure,runs,mean,low,high,deviation,min,p5,p25,p50,p75,p95,max,safe,live";
    assert_eq!(text.lines().next(), Some(head));
    let begin = "maekawa,16,waiting_time,12,";
    let row = text.lines().find_map(|line| line.strip_prefix(begin));
    let row = row.expect("a row for every measure").split(',');
    let printed: Vec<f64> = row.filter_map(|cell| cell.parse().ok()).collect();
    let named = ["mean", "low", "high", "deviation"];
    let named = named.map(|name| waiting[name].as_f64().expect(name));
    let expected = named.iter().chain(&values);
    assert_eq!(printed.len(), 4 + values.len());
    let close = |(left, right): (&f64, &f64)| (left - right).abs() < 1e-9;
    assert!(printed.iter().zip(expected).all(close), "{printed:?}");
    assert_eq!(text.lines().count(), 1 + 3 * 8);
}

#[test]
fn any_number_can_be_swept_in_a_comparison() {
    let line = "compare box-office --nodes 2,3 --overtakes 1..3 --readers 0.2..0.6+0.2";
    let samples = json(&format!("{line} --json"));
    let samples = samples.as_array().expect("a list");
    assert_eq!(samples.len(), 2 * 3 * 3);
    assert_eq!(
        samples[17]["swept"],
        serde_json::json!({"overtakes": "3", "readers": "0.6"})
    );
    let (output, _folder) = lab(&format!("{line} --seeds 1..2"));
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(
        text.lines()
            .next()
            .is_some_and(|head| head.contains("OVERTAKES  READERS  MEASURE"))
    );
    assert_eq!(
        code("run maekawa-basic --nodes 7 --seeds 0..9 --latency exponential:1"),
        1
    );
    assert!(error("run central --nodes 3 --seeds 9..1").contains("1..20"));
    assert!(error("run central --nodes 9..3").contains("4..64x2"));
    assert!(error("run central --nodes 3,4 --trace a.trace").contains("show one run"));
    assert!(error("check box-office --overtakes 1,2").contains("2 combinations"));
    assert!(error("run box-office --nodes 1..1000 --overtakes 1..1000").contains("at most 10000"));
}

#[test]
fn what_is_outside_of_its_published_range_is_marked() {
    let marked = |line: &str| {
        let (output, _folder) = lab(line);
        String::from_utf8(output.stdout)
            .expect("text")
            .contains("3, OUTSIDE")
    };
    let faulty = "central --nodes 3 --entries 6 --fault halt:3@4";
    assert!(marked(&format!("run {faulty}")));
    assert!(marked(&format!("run {faulty} --seeds 1..2")));
    assert!(marked(&format!("compare {faulty}")));
    assert!(!marked("run central --nodes 3"));
    assert_eq!(json(&format!("run {faulty} --json"))["as_published"], false);
    assert_eq!(
        json(&format!("compare {faulty} --json"))[0]["as_published"],
        false
    );
}

#[test]
fn exit_codes_mean_something() {
    assert_eq!(code("run central --nodes 3"), 0);
    assert_eq!(
        code("run central --nodes 3 --fault halt:3@2"),
        1,
        "not live"
    );
    assert_eq!(code("run maekawa-slides --nodes 3"), 1, "not safe");
    assert_eq!(code("run central --nodes 0"), 2);
    assert_eq!(code("check token-ring"), 0);
    assert_eq!(code("check sanders-printed"), 1);
    assert_eq!(
        code("claims central-lifo"),
        0,
        "a refuted claim is reported, not a failure"
    );
    assert_eq!(code("replay nothing.trace"), 2);
}

/// A run that gets nowhere has its report and says so, with a trace too.
#[test]
fn a_run_without_progress_is_not_good_and_no_bad_input() {
    let stuck = "run tree-quorum --nodes 3 --entries 3 --partition 0|1,2@1..2";
    for arguments in [stuck.to_owned(), format!("{stuck} --trace run.trace")] {
        let (output, _) = lab(&arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments}");
        let report = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(report.contains("no progress"), "{report}");
    }
    let stopped = json("run token-ring --nodes 3 --max-events 50 --json");
    assert_eq!(
        (stopped["safe"].as_bool(), stopped["live"].as_bool()),
        (Some(true), Some(false))
    );
    assert!(error("run central --nodes 3 --max-events 0").contains("max-events"));
}

#[test]
fn a_broken_bound_is_shown_and_is_not_good() {
    let arguments =
        "run box-office-growing-session --nodes 3 --classes query,query,reservation --entries 300";
    let (output, _) = lab(arguments);
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert!(
        report.contains("bounded NO") && report.contains("VIOLATION          bounds at"),
        "{report}"
    );
}

#[test]
fn bad_input_says_what_would_be_right() {
    assert!(error("run lamprt --nodes 3").contains("did you mean lamport"));
    assert!(error("run maekawa --nodes 8 --quorum plane").contains("7, 13"));
    assert!(error("run lamport --nodes 3 --reorder").contains("FIFO"));
    assert!(error("run central --nodes 3 --latency slow").contains("fixed:D"));
    assert!(error("run central --nodes 3 --crash 1").contains("UP@9"));
    assert!(error("run central --nodes 3 --partition 0|0@1..2").contains("two sides"));
    assert!(error("run central --nodes 3 --arrivals often").contains("poisson"));
    assert!(error("check central --nodes 3 --entries 0").contains("at least 1"));
    assert!(error("list --problem chess").contains("mutex"));
}

#[test]
fn a_run_is_saved_replayed_and_drawn() {
    let (_, folder) =
        lab("run sanders --nodes 7 --entries 20 --crash 2@9:UP@30 --trace run.trace --svg run.svg");
    let again = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_testigo"))
            .arg("lab")
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .expect("the binary runs");
        output.status.code()
    };
    assert_eq!(again(&["replay", "run.trace"]), Some(0));
    assert_eq!(again(&["draw", "run.trace", "--svg", "again.svg"]), Some(0));
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("written");
    assert_eq!(read("run.svg"), read("again.svg"));
    assert!(read("run.svg").starts_with("<svg"));

    let changed = read("run.trace").replacen("Grant(", "Grant(9", 1);
    std::fs::write(folder.path().join("changed.trace"), changed).expect("writable");
    assert_eq!(again(&["replay", "changed.trace"]), Some(1));
}

#[test]
fn a_picture_fits_a_screen_unless_it_is_asked_for_whole() {
    let width = |arguments: &str| -> f64 {
        let (_, folder) = lab(&format!("{arguments} --svg run.svg"));
        let svg = std::fs::read_to_string(folder.path().join("run.svg")).expect("written");
        let value = svg.split(" width=\"").nth(1).expect("a width");
        let value = value.split('"').next().expect("an end");
        value.parse().expect("a number")
    };
    let run = "run maekawa --nodes 7 --entries 200";
    assert!(width(run) <= 1_200.0);
    assert!(width(&format!("{run} --width 500")) <= 500.0);
    assert!(width(&format!("{run} --whole")) > 5_000.0);
    assert!(error(&format!("{run} --svg run.svg --width 10")).contains("--width"));
    assert!(error(&format!("{run} --whole")).contains("--svg"));
}

#[test]
fn a_comparison_is_drawn_along_what_was_swept() {
    let (_, folder) = lab("compare box-office --nodes 3 --readers 0.1..0.9+0.4 --svg c.svg");
    let svg = std::fs::read_to_string(folder.path().join("c.svg")).expect("written");
    for words in [">readers<", ">0.1<", ">0.5<", ">0.9<", ">box-office<"] {
        assert!(svg.contains(words), "{words}");
    }
    assert!(!svg.contains("not drawn"));
}

#[test]
fn every_command_has_help_with_an_example() {
    for command in [
        "list",
        "run",
        "check",
        "compare",
        "claims",
        "reproduce",
        "replay",
        "draw",
    ] {
        let (output, _folder) = lab(&format!("{command} --help"));
        let help = String::from_utf8(output.stdout).expect("text");
        let example = help.contains("Example") && help.contains(&format!("testigo lab {command} "));
        assert!(example, "{command}: {help}");
    }
}

#[test]
fn check_searches_every_order_of_a_group_that_shares_slots() {
    let report = json("check slots --members 2 --uses 1 --json");
    assert_eq!(report["algorithm"], "slots");
    assert_eq!(
        (&report["mode"], &report["fault"]),
        (&"strict".into(), &"part".into())
    );
    let sizes = ["members", "slots", "uses"].map(|field| report[field].as_u64());
    assert_eq!(sizes, [Some(2), Some(4), Some(1)]);
    assert_eq!(
        (&report["states"], &report["complete"]),
        (&821.into(), &true.into())
    );
    for field in ["safety", "rest"] {
        assert_eq!(report[field], "holds", "{field}");
    }
    for field in ["violation", "steps"] {
        assert!(report[field].is_null(), "{field}");
    }
    let paper = "check slots --members 2 --uses 1 --mode paper --fault crash";
    let report = json(&format!("{paper} --json"));
    assert_eq!(report["safety"], "refuted");
    assert_eq!(report["steps"].as_array().map(Vec::len), Some(3));
    assert_eq!(code(paper), 1);
    let bounded = json("check slots --members 2 --states-max 100 --json");
    assert_eq!(
        (&bounded["complete"], &bounded["rest"]),
        (&false.into(), &"not covered".into())
    );
}

#[test]
fn check_refuses_what_is_for_slots_alone_or_not_for_them() {
    for (arguments, why) in [
        ("check lamport --mode paper", "--mode is for slots alone"),
        ("check slots --mode printed", "no mode `printed`"),
        (
            "check slots --fault fire",
            "no fault `fire`; there are none, part",
        ),
        ("check slots --members 1", "2 to 8 members"),
        ("check slots --entries 2", "no --entries"),
        ("check slots --svg a.svg", "--svg"),
    ] {
        assert!(error(arguments).contains(why), "{arguments}");
    }
}

#[test]
fn reproduce_lists_what_there_is_and_refuses_the_rest() {
    let listed = json("reproduce --list --json");
    let names: Vec<&str> = listed
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["name"].as_str().expect("a name"))
        .collect();
    for name in [
        "slots-table-1",
        "slots-utilisation",
        "slots-forks",
        "slots-response",
        "slots-directed",
        "threads-accesses",
        "election-table",
        "election-messages",
        "two-phase-table",
        "agreement-messages",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    let unknown = error("reproduce slots-table-2");
    for name in names {
        assert!(unknown.contains(name), "{name}: {unknown}");
    }
    assert_eq!(code("reproduce"), 2);
    assert_eq!(code("reproduce slots-forks --seeds 0"), 2);
    assert_eq!(code("reproduce slots-forks --list"), 2);
    assert!(error("reproduce election-table --seeds 2").contains("it has no --full, --seeds"));
}

#[test]
#[expect(clippy::approx_constant, reason = "a published number, not 2π")]
fn reproduce_prints_every_published_number_with_its_verdict() {
    let short = "--seeds 1 --rounds 400 --json";
    let found = json(&format!("reproduce slots-table-1 {short}"));
    assert_eq!(
        (&found["seeds"], &found["rounds"]),
        (&1.into(), &400.into())
    );
    assert_eq!(found["little_holds"], true);
    let numbers = found["numbers"].as_array().expect("numbers");
    let published: Vec<f64> = numbers
        .iter()
        .map(|number| number["published"].as_f64().expect("a number"))
        .collect();
    // Those of Table I, and that equity is above 0 at both capacities of SPREAD.
    assert_eq!(published, [11.45, 0.17, 0.73, 6.28, 1.06, 0.91, 0.0, 0.0]);
    for number in numbers {
        assert!(
            number["reached"].is_boolean() && number["found"].is_f64(),
            "{number}"
        );
        assert!(!number["why"].as_str().expect("words").is_empty());
    }
    for case in found["cases"].as_array().expect("cases") {
        for field in ["failed_ratio", "utilisation", "lifetime", "waiting"] {
            assert!(case[field]["mean"].is_f64(), "{field}: {case}");
        }
        let silent = case["algorithm"] == "static";
        assert_eq!(case["efficiency"].is_null(), silent, "{case}");
    }
    let words = found["words"][0].as_str().expect("words");
    assert!(words.contains("contradicts itself"), "{words}");
    // The table says contrast, and the paper mutual exclusion.
    let words = found["words"].to_string();
    assert!(
        words.contains("contrast is the paper's mutual exclusion"),
        "{words}"
    );
    assert_eq!(found, json(&format!("reproduce slots-table-1 {short}")));
}

#[test]
fn what_was_found_is_printed_before_the_picture_is_written() {
    let short = "reproduce slots-response --seeds 1 --rounds 100";
    let (output, _folder) = lab(&format!("{short} --svg nowhere/picture.svg"));
    assert_eq!(output.status.code(), Some(2));
    let printed = String::from_utf8(output.stdout).expect("text");
    assert!(printed.contains("2 or 3 multicasts"), "{printed}");
}

#[test]
fn a_case_of_slots_response_has_its_histogram() {
    let found = json("reproduce slots-response --seeds 2 --rounds 400 --json");
    let cases = found["cases"].as_array().expect("cases");
    for algorithm in ["strict", "contrast"] {
        let own = cases.iter().filter(|case| case["algorithm"] == algorithm);
        assert_eq!(own.count(), 6, "{algorithm}");
    }
    for case in cases {
        let counts = case["response_counts"].as_object().expect("counts");
        assert!(
            counts.values().all(|count| count.as_u64() > Some(0)),
            "{case}"
        );
        assert!(case["response_counts_nothing"].is_u64(), "{case}");
        let contrast = case["algorithm"] == "contrast";
        let (one, two) = (&case["response_1"], &case["response_2"]);
        assert_eq!(
            (one.is_null(), two.is_null()),
            (!contrast, contrast),
            "{case}"
        );
        let known = |number: &String| (number == "1") == contrast;
        assert!(counts.keys().all(known) && !counts.is_empty(), "{case}");
    }
}

#[test]
fn reproduce_counts_messages_by_kind() {
    let found = json("reproduce election-messages --json");
    let rows = found["rows"].as_array().expect("rows");
    let bully = |row: &&Value| {
        row["size"] == 8
            && row["what"]
                .as_str()
                .expect("words")
                .starts_with("bully, at worst")
    };
    let row = rows.iter().find(bully).expect("the bully at worst");
    assert_eq!(
        (&row["published"], &row["counted"]),
        (&55.0.into(), &55.0.into())
    );
    assert_eq!(
        (&row["kinds"]["Election"], &row["reached"]),
        (&28.into(), &true.into())
    );
    let (output, folder) = lab("reproduce election-table --svg it.svg");
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).expect("text");
    for part in [
        "VERDICT",
        "KINDS",
        "crash during an election",
        "refuted with a crash",
    ] {
        assert!(text.contains(part), "{part}");
    }
    let svg = std::fs::read_to_string(folder.path().join("it.svg")).expect("a picture");
    assert!(svg.starts_with("<svg") && svg.contains("Messages of an election"));
}

#[test]
fn reproduce_draws_each_experiment() {
    for (name, words) in [
        ("slots-utilisation", "Fig. 7"),
        ("slots-forks", "Fig. 8"),
        ("slots-response", "Fig. 9"),
        ("slots-directed", "directed"),
    ] {
        let (output, folder) = lab(&format!(
            "reproduce {name} --seeds 1 --rounds 400 --svg it.svg"
        ));
        assert_eq!(output.status.code(), Some(0), "{name}");
        let text = String::from_utf8(output.stdout).expect("text");
        for part in [
            "VERDICT",
            "What the paper leaves open",
            "Little's law holds",
        ] {
            assert!(text.contains(part), "{name}: {part}");
        }
        let svg = std::fs::read_to_string(folder.path().join("it.svg")).expect("a picture");
        assert!(svg.starts_with("<svg") && svg.contains(words), "{name}");
    }
}
