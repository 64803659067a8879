//! A disk that is really full: a small file system of its own. What was acknowledged stays, what is refused is refused
//! clearly, deletes still work, and the node goes on by itself when there is room again.

use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Resource, Rlimit, prlimit};

use crate::up::disk::Disk;
use crate::up::{Client, Up, Value, command, refused};

fn create(client: &mut Client, name: &str, body: &str) -> Value {
    client.call(&["JOB", "CREATE", "orders", name, body])
}

#[test]
fn a_full_disk_loses_nothing_and_is_over_when_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::mount(dir.path(), "160m") else {
        println!("SKIPPED: this user may not mount a small file system to fill");
        return;
    };
    let node = Up::start(&dir.path().join("data"), &[]);
    let mut client = node.client();
    client.call(&["FLOW", "APPLY", "shop", "intake -> [orders] -> bill"]);
    let body = "x".repeat(400 << 10);
    let mut created = 0;
    let refusal = loop {
        match create(&mut client, &format!("j{created}"), &body) {
            Value::Int(_) => created += 1,
            Value::Error(error) => break error,
            other => panic!("{other}"),
        }
    };
    assert!(refusal.starts_with("UNAVAILABLE"), "{refusal}");
    assert!(refusal.contains("full"), "{refusal}");
    assert!(created > 10, "{created} jobs found room");
    // Locks need no disk, and a job can still be finished.
    assert!(client.call(&["LOCK", "deploy", "WAIT", "0"]).int() > 0);
    let taken = client.call(&["JOB", "TAKE", "orders"]);
    let (id, attempt) = (taken.list()[0].int(), taken.list()[3].int());
    let done = client.call(&["JOB", "DELETE", &id.to_string(), &attempt.to_string()]);
    assert_eq!(done, Value::Simple("OK".into()));

    disk.resize("600m");
    assert!(create(&mut client, "after", &body).int() > 0);
    drop(client);
    node.kill();
    let node = Up::start(&dir.path().join("data"), &[]);
    let count = node.client().call(&["JOB", "COUNT", "orders"]).int();
    assert_eq!(count, created, "one was deleted, one came after");
    node.kill();
}

/// What the node itself must write down, a death and the end of a session, is not forgotten when there is no room at all.
#[test]
fn who_dies_while_the_disk_is_full_gives_back_what_he_held() {
    let dir = tempfile::tempdir().unwrap();
    let Some(_disk) = Disk::mount(dir.path(), "100m") else {
        println!("SKIPPED: this user may not mount a small file system to fill");
        return;
    };
    let node = Up::start(&dir.path().join("data"), &[]);
    let mut client = node.client();
    client.call(&["FLOW", "APPLY", "shop", "intake -> [orders] -> bill"]);
    assert!(create(&mut client, "j", "body").int() > 0);
    let mut holder = node.client();
    assert!(holder.call(&["SESSION", "OPEN", "TTL", "100"]).int() > 0);
    assert!(holder.call(&["LOCK", "deploy"]).int() > 0);
    let mut worker = node.client();
    let taken = worker.call(&["JOB", "TAKE", "orders"]);
    let id = taken.list()[0].int().to_string();

    let fill = dir.path().join("fill");
    let mut file = File::create(&fill).unwrap();
    while file.write_all(&[0; 64 << 10]).is_ok() {}
    drop((holder, worker, file));
    let refused = create(&mut client, "k", "body");
    assert!(refused.to_string().contains("full"), "{refused}");
    let state = |client: &mut Client| client.call(&["JOB", "SHOW", &id]).to_string();
    while !state(&mut client).contains("settling") {}
    let status = client.call(&["STATUS"]).to_string();
    assert!(status.contains("the disk is nearly full"), "{status}");

    std::fs::remove_file(&fill).unwrap();
    let again = client.call(&["JOB", "TAKE", "orders", "WAIT", "10000"]);
    assert_eq!(again.list()[0].int().to_string(), id);
    let lock = client.call(&["LOCK", "deploy", "WAIT", "10000"]);
    assert!(lock.int() > 0, "{lock}");
    let status = client.call(&["STATUS"]).to_string();
    assert!(!status.contains("full"), "{status}");
    node.kill();
}

#[test]
fn a_node_whose_words_find_no_room_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = command(dir.path(), &["--log", "info"]);
    command.stderr(File::options().write(true).open("/dev/full").unwrap());
    let node = Up::of(command);
    let mut holder = node.client();
    assert!(holder.call(&["SESSION", "OPEN", "TTL", "100"]).int() > 0);
    assert!(holder.call(&["LOCK", "deploy"]).int() > 0);
    drop(holder);
    // That the session ran out is something to tell.
    let lock = node.client().call(&["LOCK", "deploy", "WAIT", "10000"]);
    assert!(lock.int() > 0, "{lock}");
}

/// A node whose files may not grow any more cannot write, and no room that anybody makes will help: that stands for every
/// failure of a disk. Whoever held a lock and died would hold it for ever if the node went on.
#[test]
fn a_failed_disk_ends_the_node_with_code_3_and_a_dead_holders_lock_is_free_after_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let mut start = command(dir.path(), &[]);
    start.stderr(Stdio::piped());
    let node = Up::of(start);
    let mut holder = node.client();
    assert!(holder.call(&["SESSION", "OPEN", "TTL", "1000"]).int() > 0);
    assert!(holder.call(&["LOCK", "deploy"]).int() > 0);
    let none = Rlimit {
        current: Some(0),
        maximum: None,
    };
    prlimit(Some(node.pid()), Resource::Fsize, none).unwrap();
    drop(holder);
    // The end of the holder's session is the first thing that the node wants to write.
    let (code, said) = node.end();
    assert_eq!(code, Some(3), "{said}");
    let last = said.lines().last().unwrap_or_default();
    assert!(
        last.contains(" testigo: error: ended: the disk failed"),
        "{said}"
    );

    let node = Up::start(dir.path(), &[]);
    let lock = node.client().call(&["LOCK", "deploy", "WAIT", "20000"]);
    assert!(lock.int() > 0, "{lock}");
    node.kill();
}

#[test]
fn a_limit_on_the_length_of_files_is_named_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let mut start = Command::new("sh");
    let testigo = env!("CARGO_BIN_EXE_testigo");
    start.args(["-c", "ulimit -f 2000; exec \"$@\"", "sh", testigo, "up"]);
    start.args(["--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data"]);
    let output = start.arg(dir.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("ulimit -f"), "{said}");
    assert!(!dir.path().join("witness").exists(), "nothing was begun");
}

#[test]
fn a_start_without_a_byte_free_says_so_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let Some(_disk) = Disk::mount(dir.path(), "100m") else {
        println!("SKIPPED: this user may not mount a small file system to fill");
        return;
    };
    let data = dir.path().join("data");
    Up::start(&data, &[]).kill();
    let mut file = File::create(dir.path().join("fill")).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    drop(file);
    let bytes = || {
        ["witness", "store/000000000000.log"].map(|name| std::fs::read(data.join(name)).unwrap())
    };
    let before = bytes();
    for data in [&data, &dir.path().join("new")] {
        let (code, said) = refused(data, &[]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("the disk is full"), "{said}");
        assert!(said.contains(data.to_str().unwrap()), "{said}");
    }
    assert!(bytes() == before);
    std::fs::remove_file(dir.path().join("fill")).unwrap();
    Up::start(&data, &[]).kill();
}

#[test]
fn files_with_secrets_that_others_may_read_are_warned_about_and_data_is_closed_to_them() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let config = dir.path().join("testigo.conf");
    std::fs::write(&config, "resp = 127.0.0.1:0\npassword = secret\n").unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for (open, warned) in [(0o644, true), (0o600, false)] {
        std::fs::set_permissions(&config, Permissions::from_mode(open)).unwrap();
        let mut start = command(&data, &["--config", config.to_str().unwrap()]);
        start.stderr(Stdio::piped());
        let node = Up::of(start);
        assert_eq!(mode(&data), 0o700);
        for file in ["witness", "store/000000000000.log", "lock"] {
            assert_eq!(mode(&data.join(file)), 0o600, "{file}");
        }
        rustix::process::kill_process(node.pid(), rustix::process::Signal::TERM).unwrap();
        let (_, said) = node.end();
        let warning = "passwords or their hashes and is open to others (mode 644)";
        assert_eq!(said.contains(warning), warned, "{said}");
    }
    std::fs::set_permissions(&data, Permissions::from_mode(0o755)).unwrap();
    let mut start = command(&data, &[]);
    start.stderr(Stdio::piped());
    let node = Up::of(start);
    assert_eq!(mode(&data), 0o700);
    rustix::process::kill_process(node.pid(), rustix::process::Signal::TERM).unwrap();
    let (_, said) = node.end();
    assert!(said.contains("was open to others (mode 755)"), "{said}");
}

fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

#[test]
fn a_start_that_cannot_say_why_it_failed_ends_with_code_2() {
    let dir = tempfile::tempdir().unwrap();
    let node = Up::start(dir.path(), &[]);
    // The data directory is in use; and what is listened on in the clear is worth a warning.
    let mut start = command(dir.path(), &["--resp", "0.0.0.0:0"]);
    let status = start.stdout(Stdio::null()).stderr(full()).status().unwrap();
    assert_eq!(status.code(), Some(2), "{status}");
    node.kill();
}

#[test]
fn a_node_that_cannot_say_that_it_is_ready_says_so_and_leaves_its_data_alone() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let output = command(&data, &[]).stdout(full()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("cannot write to standard output"), "{said}");
    assert!(said.contains("nothing was started"), "{said}");
    assert!(!data.exists(), "nothing was begun");
}

/// A file on a disk that is full, unlike `/dev/full`, shows it only when something is written.
#[test]
fn a_node_that_finds_no_room_to_say_ready_stops_again_cleanly() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, data) = (dir.path().join("disk"), dir.path().join("data"));
    std::fs::create_dir(&disk).unwrap();
    let Some(_disk) = Disk::mount(&disk, "1m") else {
        println!("SKIPPED: this user may not mount a small file system to fill");
        return;
    };
    let out = File::create(disk.join("out")).unwrap();
    let mut file = File::create(disk.join("fill")).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    let output = command(&data, &[]).stdout(out).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("the node was stopped again"), "{said}");
    let node = Up::start(&data, &[]);
    let recovers = |line: &String| line.starts_with("recovering");
    assert!(!node.said.iter().any(recovers), "the stop was clean");
    node.kill();
}

#[test]
fn a_command_whose_output_finds_no_room_says_so_and_ends_with_code_2() {
    let testigo = env!("CARGO_BIN_EXE_testigo");
    let mut list = Command::new(testigo);
    let output = list.args(["lab", "list"]).stdout(full()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let why = "testigo: cannot write to standard output: ";
    assert!(said.starts_with(why), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}
