//! SIGHUP: users and rights are read again, and a wrong file changes nothing.

mod up;

use std::process::Stdio;

use rustix::process::Signal;
use up::{Up, command};

const ROOT: &str = "password = root\nresp = 127.0.0.1:0\n";
const ALICE: &str = "user.alice.password = alice\nuser.alice.rights = deploy/* : use\n";

#[test]
fn sighup_reloads_users_and_a_wrong_file_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("testigo.conf");
    let write = |text: &str| std::fs::write(&config, text).unwrap();
    write(&format!("{ROOT}{ALICE}"));
    let path = config.to_str().unwrap();
    let mut command = command(&folder.path().join("data"), &["--config", path]);
    let mut node = Up::of({
        command.stderr(Stdio::piped());
        command
    });
    let mut said = node.complaints();
    let mut alice = node.client();
    assert_eq!(alice.call(&["AUTH", "alice", "alice"]), up::ok());

    for (text, line, wrong) in [
        ("nonsense = 1\n", 3, "unknown"),
        ("user.bob.password = x\n", 3, "user.bob.rights"),
        ("user.bob.rights = * : fly\n", 3, "none of show"),
    ] {
        write(&format!("{ROOT}{text}"));
        node.tell(Signal::HUP);
        let complaint = said.find(|said| said.contains("not reloaded")).unwrap();
        let place = format!("testigo.conf: line {line}: ");
        assert!(complaint.contains(&place), "{complaint}");
        assert!(complaint.contains(wrong), "{complaint}");
        assert!(alice.call(&["LOCK", "deploy/x"]).int() > 0);
        assert_eq!(alice.call(&["UNLOCK", "deploy/x"]), up::ok());
    }

    // What counts only from the next start on is said.
    write(&format!("{ROOT}waiters = 5\n"));
    node.tell(Signal::HUP);
    let warned = said.find(|said| said.contains("next start")).unwrap();
    assert!(warned.contains("limits"), "{warned}");
    assert!(alice.is_closed());
    let mut gone = node.client();
    let answer = gone.call(&["AUTH", "alice", "alice"]).to_string();
    assert!(answer.starts_with("-WRONGPASS"), "{answer}");
    assert_eq!(node.client().call(&["AUTH", "root"]), up::ok());
    drop(said);
    assert!(node.signal(Signal::TERM).success());
}
