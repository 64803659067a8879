//! The console in a real browser, at phone and desktop width. Needs chromium and chromedriver; says
//! loudly when they are not there.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// A child process that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads lines until one contains `word`; gives them all. What comes later is read and forgotten.
fn lines_until(child: &mut Child, word: &str) -> Vec<String> {
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut lines = Vec::new();
    while !lines
        .last()
        .is_some_and(|line: &String| line.contains(word))
    {
        let mut line = String::new();
        let read = stdout.read_line(&mut line).expect("text");
        assert!(read > 0, "{word} was never printed: {lines:?}");
        lines.push(line);
    }
    std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
    lines
}

/// A number at the end of the first line with `word`.
fn port_after(lines: &[String], word: &str) -> u16 {
    let line = lines.iter().find(|line| line.contains(word)).expect(word);
    let digits = line.trim_end_matches(|c: char| !c.is_ascii_digit());
    let start = digits
        .rfind(|c: char| !c.is_ascii_digit())
        .map_or(0, |at| at + 1);
    digits[start..].parse().expect("a port")
}

/// One call of the WebDriver protocol.
fn call(port: u16, method: &str, path: &str, body: &Value) -> Value {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("chromedriver listens");
    let body = if method == "POST" {
        body.to_string()
    } else {
        String::new()
    };
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .expect("sent");
    stream
        .set_read_timeout(Some(std::time::Duration::from_secs(60)))
        .expect("settable");
    let mut answer = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        answer.read_line(&mut line).expect("a head");
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().expect("a length");
            }
            None if line.trim_end().is_empty() => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    answer.read_exact(&mut body).expect("a body");
    let answer: Value = serde_json::from_slice(&body).expect("JSON");
    assert!(answer["value"]["error"].is_null(), "{path}: {answer}");
    answer["value"].clone()
}

/// Sends one RESP command and waits for the first bytes of its answer.
fn ask(stream: &mut TcpStream, words: &[&str]) {
    tell(stream, words);
    let mut answer = [0; 512];
    let read = stream.read(&mut answer).expect("answered");
    assert!(
        !answer[..read].starts_with(b"-"),
        "{words:?}: {}",
        String::from_utf8_lossy(&answer[..read])
    );
}

fn tell(stream: &mut TcpStream, words: &[&str]) {
    let mut frame = format!("*{}\r\n", words.len());
    for word in words {
        frame.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    stream.write_all(frame.as_bytes()).expect("sent");
}

/// Resolves when the page shows what is looked for; the driver's own time-out ends a wait in vain.
const WHEN_SHOWN: &str = "
    const [selector, text, done] = arguments;
    const shown = () => [...document.querySelectorAll(selector)].some((e) => e.textContent.includes(text));
    if (shown()) return done(true);
    new MutationObserver((_, watch) => shown() && (watch.disconnect(), done(true)))
      .observe(document.body, { childList: true, subtree: true, characterData: true });
";

#[test]
fn the_console_shows_gates_people_and_waits() {
    if Command::new("chromedriver")
        .arg("--version")
        .output()
        .is_err()
    {
        println!("SKIPPED: chromedriver is not installed, so the console was not looked at");
        return;
    }
    let data = tempfile::tempdir().expect("a temporary directory");
    let mut node = Running(
        Command::new(env!("CARGO_BIN_EXE_testigo"))
            .args([
                "up",
                "--resp",
                "127.0.0.1:0",
                "--http",
                "127.0.0.1:0",
                "--data",
            ])
            .arg(data.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary runs"),
    );
    let lines = lines_until(&mut node.0, "ready");
    let (resp, http) = (
        port_after(&lines, "RESP on"),
        port_after(&lines, "console on"),
    );

    let connect = || TcpStream::connect(("127.0.0.1", resp)).expect("the node listens");
    let (mut holder, mut waiter) = (connect(), connect());
    ask(
        &mut holder,
        &["SESSION", "OPEN", "TTL", "60000", "LABEL", "deployer"],
    );
    ask(
        &mut holder,
        &["LOCK", "deploy", "REASON", "release <b>4.2</b>"],
    );
    ask(
        &mut waiter,
        &["SESSION", "OPEN", "TTL", "60000", "LABEL", "night build"],
    );
    tell(&mut waiter, &["LOCK", "deploy", "CLASS", "2"]);

    let mut driver = Running(
        Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .spawn()
            .expect("chromedriver runs"),
    );
    let port = port_after(
        &lines_until(&mut driver.0, "started successfully"),
        "started successfully",
    );
    let profile = tempfile::tempdir().expect("a temporary directory");
    let flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        &format!("--user-data-dir={}", profile.path().display()),
    ];
    let wanted = json!({"capabilities": {"alwaysMatch": {
        "goog:chromeOptions": {"args": flags}, "timeouts": {"script": 50_000}}}});
    let session = call(port, "POST", "/session", &wanted)["sessionId"]
        .as_str()
        .expect("a session")
        .to_owned();
    let browser =
        |path: &str, body: Value| call(port, "POST", &format!("/session/{session}{path}"), &body);

    for (width, height) in [(1200, 900), (390, 844)] {
        browser("/window/rect", json!({"width": width, "height": height}));
        browser("/url", json!({"url": format!("http://127.0.0.1:{http}/")}));
        let when_shown = |selector: &str, text: &str| {
            browser(
                "/execute/async",
                json!({"script": WHEN_SHOWN, "args": [selector, text]}),
            );
        };
        when_shown("[data-gate=deploy] .inside", "deployer");
        when_shown("[data-gate=deploy] .inside", "fence 4294967297");
        when_shown("[data-gate=deploy] .inside", "release <b>4.2</b>");
        when_shown("[data-gate=deploy] .waiting", "night build");
        when_shown("[data-gate=deploy] .waiting", "class 2");
        when_shown("#graph text", "deploy");
        when_shown("#sessions td", "night build");
        let script =
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
        let overflow = browser("/execute/sync", json!({"script": script, "args": []}));
        assert_eq!(overflow, 0, "the page is wider than a window of {width}");
        if let Some(folder) = std::env::var_os("TESTIGO_GALLERY") {
            let picture = call(
                port,
                "GET",
                &format!("/session/{session}/screenshot"),
                &Value::Null,
            );
            let path = std::path::Path::new(&folder).join(format!("console-{width}.png.base64"));
            std::fs::write(path, picture.as_str().expect("a picture")).expect("writable");
        }
    }
    // What a user writes is text on the page, never markup.
    let markup = browser(
        "/execute/sync",
        json!({"script": "return document.querySelectorAll('main b b, main .inside b').length", "args": []}),
    );
    assert_eq!(markup, 0);
    // A release and the next grant reach the page by themselves.
    ask(&mut holder, &["UNLOCK", "deploy"]);
    browser(
        "/execute/async",
        json!({"script": WHEN_SHOWN, "args": ["[data-gate=deploy] .inside", "night build"]}),
    );
    call(port, "DELETE", &format!("/session/{session}"), &Value::Null);
}
