//! A worker that is a process of its own, and dies as one: by `kill -9`. It asks the node what it is told to, over its own
//! connection, and puts every answer into a pipe, where it stays when the process is gone. The process is this program
//! itself, called with the address of the node.

use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::FLOW_NAME;
use crate::up::{Client, Value, ok};

const NODE: &str = "TESTIGO_JOBS_TEST_NODE";
const PROCESS: &str = "TESTIGO_JOBS_TEST_PROCESS";
const READY: &str = "ready";

/// A running worker; killed if it is dropped.
pub(crate) struct Worker {
    child: Child,
    words: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    /// A worker that is connected, and presented as that process of the flow.
    pub(crate) fn start(node: SocketAddr, process: Option<&str>) -> io::Result<Worker> {
        let mut child = Command::new(env::current_exe()?)
            .args(["--exact", "worker::the_process_of_a_worker", "--nocapture"])
            .env(NODE, node.to_string())
            .env(PROCESS, process.unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (words, answers) = (child.stdin.take(), child.stdout.take());
        let mut worker = Worker {
            words: words.expect("a pipe"),
            answers: BufReader::new(answers.expect("a pipe")),
            child,
        };
        // Whoever runs tests has something to print first.
        while worker.line()? != READY {}
        Ok(worker)
    }

    /// Tells it what to ask. No word has a blank.
    pub(crate) fn tell(&mut self, words: &[&str]) -> io::Result<()> {
        writeln!(self.words, "{}", words.join(" "))
    }

    /// The answer that it got, also if it is dead by now.
    pub(crate) fn answer(&mut self) -> io::Result<Value> {
        self.line().map(|line| read(&line))
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let whole = line.strip_suffix('\n').map(str::to_owned);
        whole.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What such a process does. Called by itself it has nothing to do.
#[test]
fn the_process_of_a_worker() {
    let Ok(node) = env::var(NODE) else { return };
    // Who loses the node ends, and is started again at the next one. What a test prints at its end is no answer.
    let lost = work(node.parse().unwrap(), &env::var(PROCESS).unwrap());
    std::process::exit(i32::from(lost.is_err()));
}

fn work(node: SocketAddr, process: &str) -> io::Result<()> {
    let mut client = Client::try_connect(node)?;
    if !process.is_empty() && client.try_call(&["PRESENT", FLOW_NAME, process])? != ok() {
        return Ok(());
    }
    let mut out = io::stdout();
    out.write_all(format!("\n{READY}\n").as_bytes())?;
    for line in io::stdin().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let answer = client.try_call(&words)?;
        out.write_all(format!("{}\n", write(&answer)).as_bytes())?;
    }
    Ok(())
}

/// An answer as a line: its kind, and what it says. What a list holds has tabs between.
fn write(answer: &Value) -> String {
    match answer {
        Value::Simple(text) => format!("+{text}"),
        Value::Error(text) => format!("-{text}"),
        Value::Int(number) => format!(":{number}"),
        Value::Text(text) => format!("${text}"),
        Value::Nil => "_".to_owned(),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(write).collect();
            format!("*{}", items.join("\t"))
        }
        other => panic!("{other} is no answer to a worker"),
    }
}

fn read(line: &str) -> Value {
    let (kind, rest) = line.split_at(1);
    match kind {
        "+" => Value::Simple(rest.to_owned()),
        "-" => Value::Error(rest.to_owned()),
        ":" => Value::Int(rest.parse().unwrap()),
        "$" => Value::Text(rest.to_owned()),
        "_" => Value::Nil,
        "*" => Value::List(rest.split('\t').map(read).collect()),
        _ => panic!("{line:?} is no answer of a worker"),
    }
}
