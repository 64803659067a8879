//! A disk that is really full: a small file system of its own. What was acknowledged stays, what is refused is refused
//! clearly, deletes still work, and the node goes on by itself when there is room again.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::up::{Client, Up, Value, command};

/// A file system in memory, unmounted at the end.
struct Disk<'a>(&'a Path);

impl<'a> Disk<'a> {
    /// Nothing where this user may not mount.
    fn mount(at: &'a Path, size: &str) -> Option<Disk<'a>> {
        let options = format!("size={size}");
        mount(&["-t", "tmpfs", "-o", &options, "testigo", at.to_str()?]).then_some(Disk(at))
    }

    fn resize(&self, size: &str) {
        let options = format!("remount,size={size}");
        assert!(mount(&["-o", &options, self.0.to_str().unwrap()]));
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.0).status();
        // A later unmount by hand is all that is left then.
        let _ = unmounted;
    }
}

fn mount(arguments: &[&str]) -> bool {
    let mounted = Command::new("mount").args(arguments).output();
    mounted.is_ok_and(|output| output.status.success())
}

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
