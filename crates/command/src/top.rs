//! `testigo top`: who is inside, who waits and how often, again and again, on the whole terminal.

mod frame;
mod screen;
mod snapshot;

use std::io::{IsTerminal, stdout};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use crossterm::terminal;
use signal_hook::consts::SIGTERM;
use testigo_client::{Client, Value};
use tokio::time::timeout;

use crate::exit::{Failure, Outcome, UNREACHABLE};
use crate::reach::{Ended, Reach, ended, runtime};
use crate::show::json;
use crate::span::Span;
use frame::{Page, Sort, View, frame, length};
use screen::Screen;
use snapshot::Snapshot;

/// The longest that a look at the node may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often a signal is looked for.
const SLICE: Duration = Duration::from_millis(200);
/// A picture that nobody sees at once is this wide.
const WIDTH: usize = 120;
const FILTER_CHARS_MAX: usize = 60;

/// Watch a node: gates in use with holders and waiters, queues, sessions, rates.
///
/// Keys: q quit, p pause, s sort, / filter, Tab gates, queues or sessions, arrows and Page Up or Down
/// scroll. The user of --user sees what it may see.
/// Exit code 0: ended by q; 2: no terminal, or not allowed; 69: no node reachable at the start.
///
/// Example: testigo top --interval 500ms
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Top {
    /// How often to look.
    #[arg(long, value_name = "SPAN", default_value = "1s")]
    interval: Span,
    /// Show only names with this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// Print one picture, whole, and end.
    #[arg(long)]
    once: bool,
    /// Print the state as JSON and end.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

impl Top {
    pub(crate) fn run(self) -> Outcome {
        let runtime = runtime()?;
        let look = |client: &Client| runtime.block_on(look(client));
        let first = runtime.block_on(self.reach.connect());
        let (client, text) = match first.and_then(|client| Ok((look(&client)?, client))) {
            Ok((text, client)) => (client, text),
            Err(end) => return ended(Err(end)),
        };
        if self.json {
            println!("{text}");
            return Ok(ExitCode::SUCCESS);
        }
        let now = read(&text)?;
        let view = self.view();
        if self.once {
            for (_, line) in frame(&view, None, &now, WIDTH, None) {
                println!("{line}");
            }
            return Ok(ExitCode::SUCCESS);
        }
        if !stdout().is_terminal() {
            return Err("standard output is not a terminal; use --once or --json".into());
        }
        let mut eye = Eye {
            view,
            before: None,
            now,
            interval: self.interval.0.max(SLICE),
        };
        eye.watch(&mut || look(&client))
    }

    fn view(&self) -> View {
        View {
            address: self.reach.resp.to_string(),
            page: Page::Gates,
            sort: Sort::Waiting,
            filter: self.filter.chars().take(FILTER_CHARS_MAX).collect(),
            typing: false,
            paused: false,
            scrolled: 0,
            trouble: None,
        }
    }
}

/// Asks the node for its state.
async fn look(client: &Client) -> Result<String, Ended> {
    let late = |_| {
        let why = format!("no answer within {}", Span(PATIENCE));
        Ended::new(UNREACHABLE, why)
    };
    let state = timeout(PATIENCE, client.call(["STATE"]))
        .await
        .map_err(late)??;
    let Value::Text(text) = state else {
        return Err(Ended::bad_input("the node's state cannot be read"));
    };
    // Whoever may not look at flows sees no queues.
    let queues = timeout(PATIENCE, client.call(["QUEUE", "LIST", "*"]));
    let queues = queues.await.map_err(late)?;
    let queues = queues.unwrap_or(Value::List(Vec::new()));
    let mut state: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| Ended::bad_input(format!("the node's state cannot be read: {error}")))?;
    state["queues"] = json(&queues);
    Ok(state.to_string())
}

fn read(text: &str) -> Result<Snapshot, Failure> {
    let read = serde_json::from_str(text);
    read.map_err(|error| format!("the node's state cannot be read: {error}").into())
}

/// Whoever watches.
struct Eye {
    view: View,
    before: Option<Snapshot>,
    now: Snapshot,
    interval: Duration,
}

impl Eye {
    fn watch(&mut self, look: &mut dyn FnMut() -> Result<String, Ended>) -> Outcome {
        let over = Arc::new(AtomicBool::new(false));
        // SIGHUP ends the process as it always does: its terminal is gone, and reading keys from that would never end.
        signal_hook::flag::register(SIGTERM, Arc::clone(&over))?;
        let screen = Screen::take()?;
        let mut due = Instant::now() + self.interval;
        while !over.load(Ordering::Relaxed) {
            let (width, height) = terminal::size()?;
            let (width, height) = (width.into(), usize::from(height));
            let lines = frame(
                &self.view,
                self.before.as_ref(),
                &self.now,
                width,
                Some(height),
            );
            screen.draw(&lines)?;
            let left = due.saturating_duration_since(Instant::now());
            if event::poll(left.min(SLICE))?
                && let Event::Key(key) = event::read()?
                && self.press(key, height)
            {
                break;
            }
            if Instant::now() >= due {
                due = Instant::now() + self.interval;
                if !self.view.paused {
                    self.take(look());
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn take(&mut self, looked: Result<String, Ended>) {
        let seen = looked.map_err(|end| end.why);
        let seen = seen.and_then(|text| serde_json::from_str(&text).map_err(|e| e.to_string()));
        match seen {
            Ok(now) => {
                self.before = Some(std::mem::replace(&mut self.now, now));
                self.view.trouble = None;
            }
            Err(why) => self.view.trouble = Some(why),
        }
    }

    /// What a key does; true when it ends the watch.
    fn press(&mut self, key: KeyEvent, height: usize) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            return true;
        }
        if self.view.typing {
            self.type_filter(key.code);
            return false;
        }
        let view = &mut self.view;
        let end = length(view, &self.now);
        let scroll = |by: isize| view.scrolled.min(end).saturating_add_signed(by).min(end);
        let page = isize::try_from(height / 2).unwrap_or(1);
        match key.code {
            KeyCode::Char('q') => return true,
            KeyCode::Char('p' | ' ') => view.paused = !view.paused,
            KeyCode::Char('s') => view.sort = view.sort.next(),
            KeyCode::Char('/') => view.typing = true,
            KeyCode::Esc => view.filter.clear(),
            KeyCode::Tab => {
                view.scrolled = 0;
                view.page = view.page.next();
            }
            KeyCode::Down | KeyCode::Char('j') => view.scrolled = scroll(1),
            KeyCode::Up | KeyCode::Char('k') => view.scrolled = scroll(-1),
            KeyCode::PageDown => view.scrolled = scroll(page),
            KeyCode::PageUp => view.scrolled = scroll(-page),
            KeyCode::Home => view.scrolled = 0,
            KeyCode::End => view.scrolled = end,
            _ => {}
        }
        false
    }

    fn type_filter(&mut self, code: KeyCode) {
        let View {
            filter,
            typing,
            scrolled,
            ..
        } = &mut self.view;
        *scrolled = 0;
        match code {
            KeyCode::Char(c) if filter.chars().count() < FILTER_CHARS_MAX => filter.push(c),
            KeyCode::Backspace => drop(filter.pop()),
            KeyCode::Enter => *typing = false,
            KeyCode::Esc => {
                filter.clear();
                *typing = false;
            }
            _ => {}
        }
    }
}
