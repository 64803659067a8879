//! The contract of `testigo flow` with scripts: fields, exit codes, files.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

const ORDERS: &str = "intake -> [orders] -> price -> [priced] -> bill\n";

/// Runs `testigo flow …` in a directory.
fn flow(folder: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_testigo"))
        .arg("flow")
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .expect("the binary runs")
}

/// A directory with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary directory");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("written");
    }
    folder
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("an exit code")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

#[test]
fn check_gives_its_answer_as_json_and_as_exit_code() {
    let folder = folder(&[
        ("good.flow", ORDERS),
        ("bad.flow", "a -> [b] -> c\n\n  d -> [e]\n"),
    ]);
    let output = flow(folder.path(), "check good.flow --json");
    assert_eq!(code(&output), 0);
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["valid"], json!(true));
    assert_eq!(answer["errors"], json!([]));
    assert_eq!(answer["processes"][0]["name"], "bill");
    assert_eq!(answer["processes"][0]["deletes"], json!(["priced"]));
    assert_eq!(answer["processes"][1]["creates"], json!(["orders"]));
    assert_eq!(answer["queues"][0]["name"], "orders");
    assert_eq!(answer["queues"][0]["retries"], json!(3));

    let output = flow(folder.path(), "check bad.flow --json");
    assert_eq!(code(&output), 1);
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["valid"], json!(false));
    let error = &answer["errors"][0];
    assert_eq!(
        (&error["rule"], &error["line"], &error["column"]),
        (&json!("R1"), &json!(3), &json!(8))
    );
    assert!(error["message"].as_str().expect("text").contains("[e]"));

    for unreadable in ["check nowhere.flow", "check nowhere.flow --json", "check ."] {
        let output = flow(folder.path(), unreadable);
        assert_eq!(code(&output), 2, "{unreadable}");
        assert!(
            output.stdout.is_empty() && !output.stderr.is_empty(),
            "{unreadable}"
        );
    }
}

#[test]
fn findings_show_the_place_without_colour() {
    let folder = folder(&[("bad.flow", "a -> [b] -> c\nd -> [e]\n")]);
    let output = flow(folder.path(), "check bad.flow");
    let text = stdout(&output);
    for part in [
        "error[R1]",
        "bad.flow:2:6",
        "2 | d -> [e]",
        "^^^",
        "help: ",
        "not valid",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn what_is_no_text_is_unreadable() {
    let folder = folder(&[]);
    fs::write(folder.path().join("noise"), [0xff, 0xfe, 0x00]).expect("written");
    fs::write(folder.path().join("long"), vec![b'#'; 1 << 21]).expect("written");
    assert_eq!(code(&flow(folder.path(), "check noise")), 2);
    assert_eq!(code(&flow(folder.path(), "check long")), 2);
}

#[test]
fn fmt_lays_out_checks_and_converts() {
    let folder = folder(&[("wild.flow", "a->[b]  ->c#x\n\n\n\nqueue b{limit 3}")]);
    let checked = flow(folder.path(), "fmt wild.flow --check");
    assert_eq!(
        (code(&checked), stdout(&checked).as_str()),
        (1, "wild.flow: not laid out\n")
    );
    let wanted = "a -> [b] -> c  #x\n\nqueue b { limit 3 }\n";
    assert_eq!(stdout(&flow(folder.path(), "fmt wild.flow")), wanted);
    assert_eq!(code(&flow(folder.path(), "fmt wild.flow --write")), 0);
    assert_eq!(
        fs::read_to_string(folder.path().join("wild.flow")).expect("there"),
        wanted
    );
    let checked = flow(folder.path(), "fmt wild.flow --check");
    assert_eq!(
        (code(&checked), stdout(&checked).as_str()),
        (0, "wild.flow: laid out\n")
    );
    let classic = flow(folder.path(), "fmt wild.flow --classic");
    assert_eq!(
        stdout(&classic),
        "PROCa COLAb PROCc  #x\n\n# queue b { limit 3 }\n"
    );
    assert!(String::from_utf8_lossy(&classic.stderr).contains("cannot say: queue b { limit 3 }"));
    let config = stdout(&flow(folder.path(), "fmt wild.flow --config"));
    fs::write(folder.path().join("config.server"), &config).expect("written");
    assert_eq!(
        stdout(&flow(folder.path(), "fmt config.server --config")),
        config
    );
    assert_eq!(
        stdout(&flow(folder.path(), "fmt config.server")),
        "a -> [b] -> c\n"
    );
}

/// Part 2 of the queue architecture, scenario 2: nothing is written on an error.
#[test]
fn an_invalid_flow_writes_nothing() {
    let folder = folder(&[
        ("bad.flow", "a -> b\n"),
        ("empty.flow", ""),
        ("unused.flow", "a ->[b] -> c\nqueue x\n"),
        ("kept.svg", "kept"),
    ]);
    for arguments in [
        "fmt bad.flow --write",
        "fmt bad.flow --config",
        "graph bad.flow --svg kept.svg",
    ] {
        let output = flow(folder.path(), arguments);
        assert_eq!(code(&output), 1, "{arguments}");
        assert!(output.stdout.is_empty(), "{arguments}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("a -> [queue] -> b"),
            "{arguments}"
        );
    }
    assert_eq!(
        fs::read_to_string(folder.path().join("bad.flow")).expect("there"),
        "a -> b\n"
    );
    for arguments in ["fmt", "fmt --check", "fmt --write", "fmt --classic"] {
        for file in ["empty.flow", "unused.flow"] {
            let output = flow(folder.path(), &format!("{arguments} {file}"));
            assert_eq!(code(&output), 1, "{arguments} {file}");
            assert!(output.stdout.is_empty(), "{arguments} {file}");
            assert!(stderr(&output).contains("error[R"), "{arguments} {file}");
        }
    }
    assert_eq!(
        fs::read_to_string(folder.path().join("kept.svg")).expect("there"),
        "kept"
    );
}

#[test]
fn graph_draws_and_gives_places() {
    let folder = folder(&[("orders.flow", ORDERS)]);
    let svg = stdout(&flow(folder.path(), "graph orders.flow"));
    assert!(
        svg.starts_with("<svg")
            && svg.contains("data-queue=\"priced\"")
            && svg.contains(">orders</text>")
    );
    assert_eq!(
        code(&flow(folder.path(), "graph orders.flow --svg orders.svg")),
        0
    );
    assert_eq!(
        fs::read_to_string(folder.path().join("orders.svg")).expect("there"),
        svg
    );
    let answer: Value =
        serde_json::from_slice(&flow(folder.path(), "graph orders.flow --json").stdout)
            .expect("JSON");
    assert_eq!(answer["nodes"].as_array().map(Vec::len), Some(5));
    assert_eq!(answer["arrows"].as_array().map(Vec::len), Some(4));
}

#[test]
fn every_model_can_be_started_from_and_nothing_is_overwritten() {
    let folder = folder(&[]);
    for model in ["pipeline", "router", "rework", "review"] {
        let file = format!("{model}.flow");
        assert_eq!(
            code(&flow(folder.path(), &format!("new {file} --from {model}"))),
            0
        );
        assert_eq!(
            code(&flow(folder.path(), &format!("check {file}"))),
            0,
            "{model}"
        );
        assert_eq!(code(&flow(folder.path(), &format!("new {file}"))), 2);
        let text = fs::read_to_string(folder.path().join(&file)).expect("there");
        assert_eq!(
            stdout(&flow(folder.path(), &format!("new --from {model}"))),
            text
        );
    }
    assert_eq!(code(&flow(folder.path(), "new --from nothing")), 2);
}

#[test]
fn plan_tells_changes_and_stranded_jobs() {
    let new = "intake -> [orders] -> bill\nqueue orders { limit 5 }\n";
    let folder = folder(&[("old.flow", ORDERS), ("new.flow", new)]);
    let output = flow(folder.path(), "plan new.flow --against old.flow");
    assert_eq!(code(&output), 0);
    assert_eq!(
        stdout(&output),
        "- queue priced\n- process price\n+ [orders] -> bill\n+ bill deletes from [orders]\n- [orders] -> price\n- \
         [priced] -> bill\n- bill deletes from [priced]\n- price -> [priced]\n+ queue orders: limit 5\n"
    );
    let output = flow(
        folder.path(),
        "plan new.flow --against old.flow --jobs priced=2 --json",
    );
    assert_eq!(code(&output), 1);
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        answer["stranded"],
        json!([{"queue": "priced", "jobs": 2, "names": []}])
    );
    assert_eq!(
        answer["changes"][0],
        json!({"kind": "removed", "what": "queue priced"})
    );
    let output = flow(folder.path(), "plan old.flow --against old.flow");
    assert_eq!(
        (code(&output), stdout(&output).as_str()),
        (0, "nothing would change\n")
    );
    let output = flow(
        folder.path(),
        "plan new.flow --against old.flow --jobs orders=1 --jobs q9=3",
    );
    assert_eq!(code(&output), 2);
    assert_eq!(
        stderr(&output),
        "testigo: --jobs: old.flow has no queue q9; it has orders, priced\n"
    );
    let output = flow(folder.path(), "plan new.flow");
    assert_eq!(code(&output), 2);
    let said = stderr(&output);
    assert!(
        said.contains("--running <NAME>") && said.contains("--against <FILE>"),
        "{said}"
    );
    let both = flow(
        folder.path(),
        "plan new.flow --against old.flow --running f",
    );
    assert_eq!(code(&both), 2);
    let jobs = flow(folder.path(), "plan new.flow --running f --jobs orders=1");
    assert_eq!(code(&jobs), 2);
    assert!(
        stderr(&jobs).contains("cannot be used with"),
        "{}",
        stderr(&jobs)
    );
}

#[test]
fn a_hyphen_is_standard_output() {
    let folder = folder(&[("orders.flow", ORDERS)]);
    let model = stdout(&flow(folder.path(), "new - --from rework"));
    assert_eq!(model, stdout(&flow(folder.path(), "new --from rework")));
    let svg = stdout(&flow(folder.path(), "graph orders.flow --svg -"));
    assert!(svg.starts_with("<svg"), "{svg}");
    let files = fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(files, 1, "no file is called so");
}

#[test]
fn a_flow_may_come_on_standard_input() {
    use std::io::Write;
    use std::process::Stdio;
    let mut child = Command::new(env!("CARGO_BIN_EXE_testigo"))
        .args(["flow", "check", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(ORDERS.as_bytes()).expect("read");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(stdout(&output), "-: valid, 3 processes, 2 queues\n");
}

#[test]
fn a_deep_check_tells_how_a_flow_comes_to_stand_still() {
    let round = "make -> [made] -> inspect -> [good] -> ship\n\
        make -> [made] -> inspect -> [bad] -> mend -> [made] -> inspect -> [good] -> ship\n\
        queue made { limit 3 }\nqueue bad { limit 2 }\n";
    let folder = folder(&[("round.flow", round), ("good.flow", ORDERS)]);
    assert_eq!(code(&flow(folder.path(), "check round.flow")), 0);
    let output = flow(folder.path(), "check round.flow --deep");
    assert_eq!(code(&output), 1);
    assert!(
        stdout(&output).contains("  inspect passes 2 jobs from [made] to [bad]\n"),
        "{}",
        stdout(&output)
    );
    let output = flow(folder.path(), "check round.flow --deep --json");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (&answer["valid"], &answer["deep"][0]["kind"]),
        (&json!(true), &json!("standstill"))
    );
    assert_eq!(code(&flow(folder.path(), "check good.flow --deep")), 0);
}

#[test]
fn model_and_simulation_start_from_a_load() {
    let load = "create intake -> [orders] 1/s\nwork price exponential:0.5\nwork bill fixed:0.2\n";
    let overload =
        "create intake -> [orders] 3/s\nwork price exponential:0.5\nwork bill fixed:0.2\n";
    let files = [
        ("orders.flow", ORDERS),
        ("orders.load", load),
        ("over.load", overload),
        ("bad.load", "go\n"),
    ];
    let folder = folder(&files);
    let output = flow(folder.path(), "model orders.flow --load orders.load --json");
    assert_eq!(code(&output), 0);
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["bottleneck"], "price");
    assert_eq!(answer["processes"][1]["utilisation"], json!(0.5));
    let over = flow(folder.path(), "model orders.flow --load over.load");
    assert_eq!(code(&over), 1);
    assert!(stdout(&over).contains("grows"));
    // A queue that grows for ever runs into its limit, of which the model knows nothing.
    let limited = format!("{ORDERS}queue orders {{ limit 10 }}\n");
    fs::write(folder.path().join("limited.flow"), limited).expect("written");
    let over = flow(folder.path(), "model limited.flow --load over.load");
    assert!(stdout(&over).contains("BEYOND LIMIT"), "{}", stdout(&over));
    let fits = flow(folder.path(), "model limited.flow --load orders.load");
    assert!(!stdout(&fits).contains("BEYOND LIMIT"), "{}", stdout(&fits));
    let run = "simulate orders.flow --load orders.load --time 1000";
    let output = flow(folder.path(), run);
    assert_eq!(
        code(&output),
        0,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(
        stdout(&output),
        stdout(&flow(folder.path(), run)),
        "one seed, one run"
    );
    let output = flow(folder.path(), &format!("{run} --json"));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["simulation"]["stood_still"], Value::Null);
    assert_eq!(answer["model"]["bottleneck"], "price");
    assert_eq!(
        code(&flow(folder.path(), "model orders.flow --load bad.load")),
        1
    );
    assert_eq!(
        code(&flow(folder.path(), "model orders.flow --load nowhere")),
        2
    );
    assert_eq!(code(&flow(folder.path(), "simulate orders.flow")), 2);
    let template = stdout(&flow(folder.path(), "model orders.flow --template"));
    fs::write(folder.path().join("new.load"), template).expect("written");
    assert_eq!(
        code(&flow(folder.path(), "model orders.flow --load new.load")),
        0
    );
}

/// What is contradictory is refused, and what the flow cannot do has the exit code that the help says.
#[test]
fn a_model_says_what_is_wrong_with_its_input_and_with_the_flow() {
    let load = "create a -> [q] 8/s\nwork b exponential:1 workers 10\n";
    let files = [
        ("one.flow", "a -> [q] -> b\n"),
        ("limited.flow", "a -> [q] -> b\nqueue q { limit 2 }\n"),
        ("few.flow", "a -> [q] -> b\nprocess b { limit 2 }\n"),
        ("round.flow", "a -> [q] -> b -> [q] -> b\n"),
        ("one.load", load),
        (
            "round.load",
            "create a -> [q] 1/s\nwork b fixed:0.1\nroute b -> [q] 1\n",
        ),
    ];
    let folder = folder(&files);
    for (words, code, part) in [
        ("model one.flow --load one.load", 0, "bottleneck         b"),
        ("model limited.flow --load one.load", 1, "BEYOND LIMIT"),
        (
            "model few.flow --load one.load",
            1,
            "b has 10 workers here, and the flow allows it 2",
        ),
        (
            "model round.flow --load round.load",
            1,
            "jobs go round for ever",
        ),
        ("model one.flow --load one.load --since 5m", 2, "--since"),
        ("simulate one.flow --load one.load --since 5m", 2, "--since"),
        ("model one.flow --template --since 5m", 2, "--running"),
        ("model one.flow --template --json", 2, "--json"),
        ("model one.flow --template --load one.load", 2, "--load"),
    ] {
        let output = flow(folder.path(), words);
        let said = stdout(&output) + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(self::code(&output), code, "{words}: {said}");
        assert!(said.contains(part), "{words}: {said}");
    }
}

#[test]
fn a_simulation_tells_a_standstill_and_who_stood() {
    let round = "make -> [made] -> inspect -> [good] -> ship\n\
        make -> [made] -> inspect -> [bad] -> mend -> [made] -> inspect -> [good] -> ship\n\
        queue made { limit 2 }\nqueue bad { limit 2 }\n";
    let load = "create make -> [made] 100/s\nwork inspect fixed:1\nwork mend fixed:1\nwork ship fixed:1\n\
        route inspect -> [bad] 1\n";
    let folder = folder(&[("round.flow", round), ("round.load", load)]);
    let output = flow(folder.path(), "simulate round.flow --load round.load");
    assert_eq!(code(&output), 1);
    let said = stdout(&output);
    for part in [
        "STOOD STILL        at ",
        " s: [bad] [made] full for ever",
        "from 0.000 s on",
        "CREATOR  QUEUE  CREATED",
    ] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn every_help_has_an_example_and_its_exit_codes() {
    let folder = folder(&[]);
    for command in [
        "new", "check", "fmt", "graph", "plan", "edit", "model", "simulate", "stats",
    ] {
        let help = stdout(&flow(folder.path(), &format!("{command} --help")));
        assert!(
            help.contains(&format!("Example: testigo flow {command}")),
            "{help}"
        );
        assert!(help.contains("Exit code 0:"), "{help}");
    }
}
