//! Bad input of every command: refused with a word about what would be right, and nothing happens.

use crate::running::nobody;
use crate::scene::{ORDERS, create, node_with};

/// Words in capitals that nobody who types a command line has ever seen.
fn wire_words(said: &str) -> Vec<&str> {
    let usage = ["error: ", "Usage: ", "  "];
    let said = said
        .lines()
        .filter(|line| !usage.iter().any(|begin| line.starts_with(begin)));
    let words = said.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    let capitals =
        |word: &&str| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_uppercase());
    let known = [
        "FLOW", "PROCESS", "HOST", "PORT", "RESP", "HTTP", "FILE", "NAME",
    ];
    words
        .filter(capitals)
        .filter(|word| !known.contains(word))
        .collect()
}

#[test]
fn nothing_that_is_refused_is_said_in_the_words_of_the_wire() {
    let node = node_with(ORDERS);
    create(&node, "f/orders", &["o-1"]);
    assert_eq!(node.run("gate create seats permits 3", "").code, 0);
    assert_eq!(node.run("gate create hall rooms --stay 1m", "").code, 0);
    assert_eq!(node.run("gate create pair shared", "").code, 0);
    let refused = |line: &str, command: &str| {
        let ended = node.run(line, command);
        let said = ended.stderr;
        assert_ne!(ended.code, 0, "{line}");
        assert_eq!(wire_words(&said), [""; 0], "{line}: {said}");
    };
    for line in [
        "gate create seats permits 4",
        "gate create none permits 0",
        "gate create none mutex --order readers",
        "gate create none mutex --capacity 3",
        "gate create none rooms --capacity 0",
        "gate create none mutex --classes 0",
        "gate create none mutex --overtakes 4000000000",
        "gate create none mutex --lease 0",
        "gate delete none",
        "gate show none",
        "session end 5",
        "job show 99",
        "job back 1 --attempt 1 --session 1",
        "job move 1 --to none",
        "flow show none",
        "flow delete f",
        "queue show none",
        "client list --flow none",
        "cluster add 1 host:1",
        "cluster remove 1 --yes",
    ] {
        refused(line, "");
    }
    for line in [
        "lock seats --permits 9",
        "lock seats --room r",
        "lock seats --shared",
        "lock hall",
        "lock pair --permits 2",
        "lock hall --room r --needs 999d",
        "lock seats --class 99",
        "lock a --wait 999d",
        "lock a --ttl 1ms",
        "lock none --permits 2",
        "work none price",
        "work f none",
    ] {
        refused(line, "true");
    }
}

#[test]
fn a_name_that_is_nearly_right_is_pointed_out() {
    let node = node_with(ORDERS);
    for (line, meant) in [
        ("queue show f/ordesr", "did you mean f/orders?"),
        ("job create ordesr x", "did you mean f/orders?"),
    ] {
        let ended = node.run(line, "");
        assert_eq!(ended.code, 2, "{line}");
        assert!(ended.stderr.contains(meant), "{line}: {}", ended.stderr);
    }
}

#[test]
fn a_body_may_come_from_standard_input_and_a_longer_one_is_bad_input() {
    let node = node_with(ORDERS);
    let long = node.file("long");
    std::fs::write(&long, vec![b'x'; 2_000_000]).expect("writable");
    let ended = node.run("job create f/orders --file long", "");
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("bytes that a body may have"),
        "{}",
        ended.stderr
    );
    let script = format!(
        "echo melons | {} job create f/orders - --name m && {0} job show 1",
        env!("CARGO_BIN_EXE_testigo")
    );
    let shown = node.run("lock stdin", &script);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.contains("melons"), "{}", shown.stdout);
}

#[test]
fn a_program_that_is_not_there_is_noticed_before_a_job_is_taken() {
    let node = node_with(ORDERS);
    create(&node, "f/orders", &["o-1"]);
    let mut command = node.command(["work", "f", "price", "--resp", &node.address()]);
    command.args(["--", "no-such-program"]);
    let ended = crate::running::Running::start(command).end();
    assert_eq!(ended.code, 127, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("no-such-program cannot run"),
        "{}",
        ended.stderr
    );
    let shown = node.run("job show 1", "");
    assert!(
        shown.stdout.contains("deaths             0"),
        "{}",
        shown.stdout
    );
}

#[test]
fn a_quiet_harness_says_nothing_when_all_goes_well() {
    let node = node_with(ORDERS);
    create(&node, "f/priced", &["o-1"]);
    let ended = node.run("work f bill --drain --quiet", "cat");
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (0, ""),
        "{}",
        ended.stderr
    );
}

#[test]
fn what_apply_did_is_said() {
    let node = node_with(ORDERS);
    let again = node.run("flow apply f f.flow", "");
    assert!(
        again.stderr.contains("f is applied as it was: "),
        "{}",
        again.stderr
    );
    std::fs::write(node.file("g.flow"), "a -> [q] -> b\n").expect("writable");
    let new = node.run("flow apply g g.flow", "");
    assert_eq!(new.stderr, "testigo: g is applied: 2 processes, 1 queues\n");
}

#[test]
fn bad_input_ends_with_2_and_says_what_is_right() {
    let node = node_with(ORDERS);
    create(&node, "f/orders", &["o-1"]);
    for (line, hint) in [
        ("flow apply f nowhere.flow", "nowhere.flow cannot be read"),
        ("flow apply a/b f.flow", "slash"),
        ("flow show g", "there is no flow g; `testigo flow apply`"),
        ("flow delete g", "there is no flow g"),
        (
            "job create nowhere x",
            "there is no queue nowhere; `testigo queue list`",
        ),
        ("job create f/orders x --name o-1", "o-1"),
        ("job create f/orders x --class 99", "--class 99 is not in"),
        (
            "job create f/orders --file nowhere",
            "nowhere cannot be read",
        ),
        ("job create f/orders --data f.flow", "no data directory"),
        ("job create f/orders x --file f.flow", "cannot be used with"),
        (
            "job take nowhere",
            "there is no queue nowhere; `testigo queue list`",
        ),
        ("job take f/orders --as price", "FLOW/PROCESS"),
        ("job take f/orders --as f/bill", "bill"),
        ("job take f/orders --wait soon", "500ms"),
        ("job take f/orders --ttl 1ms", "--ttl 1ms"),
        ("job pass 1 priced --attempt 1 --session 1", "session 1 "),
        ("job pass 1 priced", "--attempt"),
        ("job back 1 --attempt 1", "--session"),
        ("job delete", "required"),
        ("job delete 1 --find *", "cannot be used with"),
        ("job delete 1 --attempt 4", "--session"),
        ("job move 1", "--to"),
        ("job show x", "invalid digit"),
        ("job show 99", "there is no job 99"),
        ("job find", "PATTERN"),
        (
            "job find * --in nowhere",
            "there is no queue nowhere; `testigo queue list`",
        ),
        (
            "job list nowhere",
            "there is no queue nowhere; `testigo queue list`",
        ),
        (
            "job count nowhere",
            "there is no queue nowhere; `testigo queue list`",
        ),
        (
            "queue show nowhere",
            "there is no queue nowhere; `testigo queue list`",
        ),
        ("client list --flow g", "there is no flow g"),
        ("client end", "required"),
        ("client end x", "invalid digit"),
        ("client end 1 --machine m", "cannot be used with"),
    ] {
        let ended = node.run(line, "");
        assert_eq!(ended.code, 2, "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains(hint), "{line}: {}", ended.stderr);
        assert_eq!(wire_words(&ended.stderr), [""; 0], "{line}");
    }
    for (line, hint) in [
        ("work f", "PROCESS"),
        ("work g price", "there is no flow g"),
        (
            "work f nobody",
            "flow f has no process nobody; it has bill, clerk, intake, price",
        ),
        ("work f intake", "testigo job create"),
        ("work f price --exit 3", "3=rework"),
        ("work f price --exit 3=nowhere", "it may pass to priced"),
        ("work f price --exit 3=delete", "may delete from no queue"),
        (
            "work f price --exit 0=priced --exit 0=fail",
            "--exit 0=… is said twice",
        ),
        ("work f price --jobs 0", "1..=1000"),
        ("work f price --once --jobs 2", "cannot be used with"),
        ("work f price --timeout 5", "500ms"),
        ("work f price --files", "data directory for queue orders"),
    ] {
        let ended = node.run(line, "cat");
        assert_eq!(ended.code, 2, "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains(hint), "{line}: {}", ended.stderr);
    }
    let within = node.run("work f price --files", "tr a-z A-Z < {in} > {out}");
    assert_eq!(within.code, 2, "{}", within.stderr);
    let hint = "in the text of a shell write \"$TESTIGO_IN\"";
    assert!(within.stderr.contains(hint), "{}", within.stderr);
    assert_eq!(node.run("work f price", "").code, 2, "no command");
    assert_eq!(
        node.run("job count f/orders", "").stdout,
        "1\n",
        "nothing has happened"
    );
}

#[test]
fn without_a_node_every_command_ends_with_69() {
    let node = node_with(ORDERS);
    let nobody = nobody();
    for line in [
        "flow apply f f.flow",
        "flow list",
        "job create f/orders x",
        "job take f/orders",
        "job find *",
        "job retry 1",
        "queue list",
        "client list",
    ] {
        let ended = node.run(&format!("{line} --resp {nobody}"), "");
        assert_eq!(ended.code, 69, "{line}: {}", ended.stderr);
        assert!(
            ended.stderr.contains("testigo up"),
            "{line}: {}",
            ended.stderr
        );
    }
    let work = node.run(&format!("work f price --resp {nobody}"), "cat");
    assert_eq!(work.code, 69, "{}", work.stderr);
}
