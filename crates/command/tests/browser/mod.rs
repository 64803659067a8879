//! A real browser, driven by real mouse and key events over the WebDriver protocol. Needs chromium and chromedriver; says
//! loudly when they are not there. Every wait is for something to be so on the page, and ends after a bounded time.

#![allow(dead_code, reason = "every test file uses its own part of it")]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// How long a page may take to become as wanted.
const PATIENCE_MS: u64 = 50_000;
/// How long one call of the driver may take.
const CALL: Duration = Duration::from_secs(120);

/// A browser with one window; closed with the test.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _profile: tempfile::TempDir,
}

/// A point of the window.
pub(crate) type Point = (f64, f64);

impl Browser {
    /// Opens a browser, if there is one on this machine.
    pub(crate) fn open() -> Option<Browser> {
        let driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut driver) = driver else {
            println!("SKIPPED: chromedriver is not installed, so the console was not looked at");
            return None;
        };
        let port = port_of(&mut driver);
        let profile = tempfile::tempdir().expect("a temporary directory");
        let mut browser = Browser {
            driver,
            port,
            session: String::new(),
            _profile: profile,
        };
        let data = format!("--user-data-dir={}", browser._profile.path().display());
        let flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            &data,
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": flags}, "timeouts": {"script": PATIENCE_MS}}}});
        let opened = browser.call("POST", "/session", &wanted);
        browser.session = opened["sessionId"].as_str().expect("a session").to_owned();
        Some(browser)
    }

    pub(crate) fn resize(&self, width: u32, height: u32) {
        self.post("/window/rect", &json!({"width": width, "height": height}));
    }

    /// As on a machine whose pages are to be dark, or light.
    pub(crate) fn darken(&self, dark: bool) {
        let value = if dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": value}]);
        let command =
            json!({"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}});
        self.post("/goog/cdp/execute", &command);
    }

    pub(crate) fn go(&self, url: &str) {
        self.post("/url", &json!({ "url": url }));
    }

    /// What a script returns.
    pub(crate) fn script(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({"script": script, "args": []}))
    }

    /// Waits until an expression is true on the page.
    pub(crate) fn until(&self, holds: &str) {
        let script = format!(
            "const done = arguments[0];
             const holds = () => {{ try {{ return {holds}; }} catch {{ return false; }} }};
             if (holds()) return done(true);
             const look = () => holds() && (watch.disconnect(), done(true));
             const watch = new MutationObserver(look);
             document.addEventListener('focusin', look);
             watch.observe(document, {{ childList: true, subtree: true, characterData: true, attributes: true }});"
        );
        let session = &self.session;
        let path = format!("/session/{session}/execute/async");
        let answer = self.raw("POST", &path, &json!({"script": script, "args": []}));
        if answer["value"] != true {
            let page = self.script("return document.body.innerText");
            panic!(
                "never so: {holds}\n{answer}\n{}",
                page.as_str().unwrap_or_default()
            );
        }
    }

    /// Waits until something that fits the selector has this text in it.
    pub(crate) fn shows(&self, selector: &str, text: &str) {
        let (selector, text) = (json!(selector), json!(text));
        self.until(&format!(
            "[...document.querySelectorAll({selector})].some((e) => e.textContent.includes({text}))"
        ));
    }

    /// The middle of what fits the selector, once it is there, scrolled into view.
    pub(crate) fn middle(&self, selector: &str) -> Point {
        let quoted = json!(selector);
        self.until(&format!("!!document.querySelector({quoted})"));
        let place = self.script(&format!(
            "const e = document.querySelector({quoted});
             const seen = e.getBoundingClientRect();
             if (seen.top < 0 || seen.bottom > innerHeight || seen.left < 0 || seen.right > innerWidth)
               e.scrollIntoView({{ block: 'center', inline: 'nearest', behavior: 'instant' }});
             const r = e.getBoundingClientRect();
             return [r.x + r.width / 2, r.y + r.height / 2];"
        ));
        let number = |at: usize| place[at].as_f64().expect("a number");
        (number(0), number(1))
    }

    /// Presses and releases the mouse on what fits the selector.
    pub(crate) fn click(&self, selector: &str) {
        self.click_at(self.middle(selector));
    }

    pub(crate) fn click_at(&self, point: Point) {
        self.drag(point, point);
    }

    /// Presses the mouse at one point and releases it at another, going there in steps.
    pub(crate) fn drag(&self, (x0, y0): Point, (x1, y1): Point) {
        let to = |x: f64, y: f64| {
            json!({"type": "pointerMove", "duration": 0, "origin": "viewport",
                   "x": x.round() as i64, "y": y.round() as i64})
        };
        let mut actions = vec![to(x0, y0), json!({"type": "pointerDown", "button": 0})];
        if (x0, y0) != (x1, y1) {
            actions.push(to(f64::midpoint(x0, x1), f64::midpoint(y0, y1)));
            actions.push(to(x1, y1));
        }
        actions.push(json!({"type": "pointerUp", "button": 0}));
        let mouse = json!({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"},
                           "actions": actions});
        self.post("/actions", &json!({"actions": [mouse]}));
    }

    /// Types a text with the keys, into whatever has the focus.
    pub(crate) fn keys(&self, text: &str) {
        let key = |c: char| {
            [
                json!({"type": "keyDown", "value": c}),
                json!({"type": "keyUp", "value": c}),
            ]
        };
        let actions: Vec<Value> = text.chars().flat_map(key).collect();
        let keys = json!({"type": "key", "id": "keys", "actions": actions});
        self.post("/actions", &json!({"actions": [keys]}));
    }

    /// Presses keys one after the other, and releases them all together.
    pub(crate) fn chord(&self, keys: &[&str]) {
        let down = keys
            .iter()
            .map(|key| json!({"type": "keyDown", "value": key}));
        let up = keys
            .iter()
            .rev()
            .map(|key| json!({"type": "keyUp", "value": key}));
        let actions: Vec<Value> = down.chain(up).collect();
        let keys = json!({"type": "key", "id": "keys", "actions": actions});
        self.post("/actions", &json!({"actions": [keys]}));
    }

    /// Chooses an option of a select by its text.
    pub(crate) fn choose(&self, select: &str, option: &str) {
        self.middle(select);
        let path = format!(
            "//select[{select_of}]/option[.='{option}']",
            select_of = xpath(select)
        );
        let found = self.post("/element", &json!({"using": "xpath", "value": path}));
        let id = found.as_object().and_then(|found| found.values().next());
        let id = id.and_then(Value::as_str).expect("an element");
        self.post(&format!("/element/{id}/click"), &json!({}));
    }

    /// The page is no wider than its window.
    pub(crate) fn fits(&self, what: &str) {
        let overflow = self.script(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth",
        );
        assert_eq!(overflow, 0, "{what} is wider than the window");
    }

    /// Leaves a picture in the gallery, if one is wanted.
    pub(crate) fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("TESTIGO_GALLERY") else {
            return;
        };
        let path = format!("/session/{}/screenshot", self.session);
        let picture = self.call("GET", &path, &Value::Null);
        let path = std::path::Path::new(&folder).join(format!("{name}.png.base64"));
        std::fs::write(path, picture.as_str().expect("a picture")).expect("writable");
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.call("POST", &format!("/session/{}{path}", self.session), body)
    }

    /// One call of the protocol that must succeed.
    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.raw(method, path, body);
        assert!(answer["value"]["error"].is_null(), "{path}: {answer}");
        answer["value"].clone()
    }

    fn raw(&self, method: &str, path: &str, body: &Value) -> Value {
        self.try_raw(method, path, body)
            .expect("the driver answers")
    }

    fn try_raw(&self, method: &str, path: &str, body: &Value) -> io::Result<Value> {
        let port = self.port;
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(CALL))?;
        let body = match method {
            "POST" => body.to_string(),
            _ => String::new(),
        };
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )?;
        let mut answer = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            answer.read_line(&mut line)?;
            match line.trim_end().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().unwrap_or(0);
                }
                None if line.trim_end().is_empty() => break,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        answer.read_exact(&mut body)?;
        Ok(serde_json::from_slice(&body)?)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Asked to, the driver ends the browser; one that fails at that must not fail the test once more.
        let path = format!("/session/{}", self.session);
        let _ = self.try_raw("DELETE", &path, &Value::Null);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// `#id` or `[name=x]`, as a condition of XPath.
fn xpath(selector: &str) -> String {
    match selector.strip_prefix('#') {
        Some(id) => format!("@id='{id}'"),
        None => {
            let inner = selector.trim_matches(['[', ']']);
            let (name, value) = inner.split_once('=').expect("[name=value]");
            format!("@{name}='{value}'")
        }
    }
}

/// Where the driver listens: it says so once it does. What it says later is read and forgotten.
fn port_of(driver: &mut Child) -> u16 {
    let mut stdout = BufReader::new(driver.stdout.take().expect("piped"));
    let mut line = String::new();
    while !line.contains("started successfully") {
        line.clear();
        let read = stdout.read_line(&mut line).expect("text");
        assert!(read > 0, "the driver never started");
    }
    std::thread::spawn(move || io::copy(&mut stdout, &mut io::sink()));
    let digits = line.trim_end_matches(|c: char| !c.is_ascii_digit());
    let start = digits.rfind(|c: char| !c.is_ascii_digit());
    digits[start.map_or(0, |at| at + 1)..]
        .parse()
        .expect("a port")
}
