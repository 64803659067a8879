//! Bad input of every command: refused with a word about what would be right, and nothing happens.

use crate::running::nobody;
use crate::scene::{ORDERS, create, node_with};

#[test]
fn bad_input_ends_with_2_and_says_what_is_right() {
    let node = node_with(ORDERS);
    create(&node, "f/orders", &["o-1"]);
    for (line, hint) in [
        ("flow apply f nowhere.flow", "nowhere.flow cannot be read"),
        ("flow apply a/b f.flow", "slash"),
        ("flow show g", "NOFLOW"),
        ("flow delete g", "NOFLOW"),
        ("job create nowhere x", "NOQUEUE"),
        ("job create f/orders x --name o-1", "DUPLICATE"),
        ("job create f/orders x --class 99", "CLASS 99"),
        (
            "job create f/orders --file nowhere",
            "nowhere cannot be read",
        ),
        ("job create f/orders --data f.flow", "no data directory"),
        ("job create f/orders x --file f.flow", "cannot be used with"),
        ("job take nowhere", "NOQUEUE"),
        ("job take f/orders --as price", "FLOW/PROCESS"),
        ("job take f/orders --as f/bill", "NORIGHT"),
        ("job take f/orders --wait soon", "500ms"),
        ("job take f/orders --ttl 1ms", "TTL"),
        ("job pass 1 priced --attempt 1 --session 1", "STALE"),
        ("job pass 1 priced", "--attempt"),
        ("job back 1 --attempt 1", "--session"),
        ("job delete", "required"),
        ("job delete 1 --find *", "cannot be used with"),
        ("job delete 1 --attempt 4", "--session"),
        ("job move 1", "--to"),
        ("job show x", "invalid digit"),
        ("job show 99", "NOJOB"),
        ("job find", "PATTERN"),
        ("job find * --in nowhere", "NOQUEUE"),
        ("job list nowhere", "NOQUEUE"),
        ("job count nowhere", "NOQUEUE"),
        ("queue show nowhere", "NOQUEUE"),
        ("client list --flow g", "NOFLOW"),
        ("client end", "required"),
        ("client end x", "invalid digit"),
        ("client end 1 --machine m", "cannot be used with"),
    ] {
        let ended = node.run(line, "");
        assert_eq!(ended.code, 2, "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains(hint), "{line}: {}", ended.stderr);
    }
    for (line, hint) in [
        ("work f", "PROCESS"),
        ("work g price", "NOFLOW"),
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
