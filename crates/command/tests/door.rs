//! The RESP door of a real node: a page in a real browser that would like to use it, and a system without descriptors.

mod browser;
mod up;

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use browser::Browser;
use up::{Up, Value, command, ok};

/// Only a broken node makes a test wait for it.
const PATIENCE: Duration = Duration::from_secs(60);

const FLOW: &str = "intake -> [orders] -> bill";
/// Tries all ways that a page has to send something to a port, and says when it has. None is ever answered.
const PAGE: &str = r#"<!doctype html><title>trying</title><iframe name=frame></iframe>
<form method=post enctype=text/plain target=frame><textarea name=x></textarea></form><script>
const at = "ADDRESS", evil = "\r\nFLOW DELETE victim\r\n";
const results = [];
const trial = (promise) => promise.then(() => results.push("answered"), () => results.push("failed"));
const post = (more) => fetch(`http://${at}/`, { method: "POST", body: evil, ...more });
const data = new FormData();
data.append("x", new Blob([evil]));
const socket = new Promise((done, failed) => {
  const socket = new WebSocket(`ws://${at}/`);
  socket.onopen = () => { socket.send(evil); done(); };
  socket.onerror = failed;
});
const form = document.forms[0];
form.action = `http://${at}/`;
form.x.value = evil;
Promise.all([
  trial(post({ mode: "no-cors" })),
  trial(post({})),
  trial(post({ mode: "no-cors", body: data })),
  trial(post({ method: "DELETE" })),
  trial(post({ headers: { "content-type": "application/json" } })),
  trial(fetch(`http://${at}/%0d%0aFLOW%20DELETE%20victim%0d%0a`, { mode: "no-cors" })),
  trial(fetch(`http://${at}/${"x".repeat(100000)}`, { mode: "no-cors" })),
  trial(fetch(`https://${at}/`, { mode: "no-cors" })),
  trial(socket),
]).then(() => {
  navigator.sendBeacon(`http://${at}/`, evil);
  form.submit();
  document.title = results.join(" ");
});
</script>"#;

/// Serves the page to whoever asks, from an origin of its own.
fn stranger(page: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream: TcpStream = stream;
            let _ = stream.read(&mut [0; 4096]);
            let length = page.len();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\
                 Connection: close\r\n\r\n{page}"
            );
        }
    });
    format!("http://{address}/")
}

/// Asks for the status until a number is at least so large.
fn until(node: &Up, name: &str, least: i64) -> Value {
    let mut client = node.client();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let status = client.call(&["STATUS"]);
        if status.at(name).int() >= least {
            return status;
        }
        assert!(
            Instant::now() < deadline,
            "{name} stays below {least}: {status}"
        );
    }
}

#[test]
fn a_page_in_a_browser_cannot_use_the_resp_door() {
    let Some(browser) = Browser::open() else {
        return;
    };
    let data = tempfile::tempdir().unwrap();
    let log = data.path().join("log");
    let mut node = command(&data.path().join("data"), &[]);
    node.stderr(File::create(&log).unwrap());
    let node = Up::of(node);
    let mut client = node.client();
    assert_eq!(client.call(&["FLOW", "APPLY", "victim", FLOW]), ok());
    let page = PAGE.replace("ADDRESS", &node.address.to_string());
    browser.go(&stranger(page));
    browser.until("document.title !== 'trying'");
    let title = browser.script("return document.title");
    assert_eq!(title, ["failed"; 9].join(" "));
    // The beacon and the form come after all others, each on a connection of its own.
    until(&node, "closed_http_ever", 9);
    let flow = client.call(&["FLOW", "SHOW", "victim"]);
    assert_eq!(flow.at("text"), &Value::Text(FLOW.into()));
    let warnings = std::fs::read_to_string(log).unwrap();
    let warnings = warnings.lines().filter(|line| line.contains("speaks HTTP"));
    assert_eq!(warnings.count(), 1, "a flood is one warning");
}

/// Without descriptors nobody can come in, but whoever is there goes on, the log stays short, and whoever waits comes in
/// as soon as there are some again.
#[test]
fn a_shortage_of_descriptors_is_said_once_and_passes() {
    let data = tempfile::tempdir().unwrap();
    let log = data.path().join("log");
    let mut node = command(&data.path().join("data"), &[]);
    node.stderr(File::create(&log).unwrap());
    let node = Up::of(node);
    let mut inside = node.client();
    assert_eq!(inside.call(&["PING"]), Value::Simple("PONG".into()));
    let limit = |most: &str| {
        let pid = format!("--pid={}", node.id());
        let limited = Command::new("prlimit").args([&pid, most]).status();
        limited.is_ok_and(|limited| limited.success())
    };
    if !limit("--nofile=3:4096") {
        println!("SKIPPED: prlimit is not there, so a shortage of descriptors was not tried");
        return;
    }
    let mut waiting = node.client();
    waiting.send(&["PING"]);
    let deadline = Instant::now() + PATIENCE;
    while inside.call(&["STATUS"]).at("unaccepted_ever").int() < 5 {
        assert!(Instant::now() < deadline, "nobody was turned away");
    }
    assert!(limit("--nofile=4096:4096"));
    assert_eq!(waiting.read(), Value::Simple("PONG".into()));
    let warnings = std::fs::read_to_string(log).unwrap();
    let warnings = warnings
        .lines()
        .filter(|line| line.contains("no connection could be taken"));
    assert_eq!(warnings.count(), 1, "it is said once");
}
