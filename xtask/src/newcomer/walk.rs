//! Takes the steps of a document, one after the other.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::document::{Step, TERMINALS};
use super::shown::steady;
use super::terminal::Terminal;

/// Commands that only look. What they show may come a moment later than this walks, which is faster than people.
const LOOKS: [&str; 2] = ["testigo gate show ", "testigo owner "];
const LOOK_AGAIN: Duration = Duration::from_millis(200);
const LOOK_PATIENCE: Duration = Duration::from_secs(30);

/// Walks in a folder. Without sources, the commands of cargo are those of the program that is there.
pub(super) fn walk(steps: &[Step], folder: &Path, builds: bool) -> Result<(), String> {
    let open = |name: &&str| Terminal::open(name, folder);
    let mut terminals: Vec<Terminal> = TERMINALS.iter().map(open).collect::<Result<_, _>>()?;
    for terminal in &mut terminals {
        terminal.type_in(r#"export PATH="$PWD/target/release:$PATH""#)?;
    }
    for (number, step) in steps.iter().enumerate() {
        take(step, &mut terminals, builds).map_err(|why| format!("step {}: {why}", number + 1))?;
    }
    Ok(())
}

fn take(step: &Step, terminals: &mut [Terminal], builds: bool) -> Result<(), String> {
    match step {
        Step::Type { terminal, command } => {
            let Some(command) = walked(command, builds) else {
                return Ok(());
            };
            println!("  {}: {command}", TERMINALS[*terminal]);
            for (at, other) in terminals.iter_mut().enumerate() {
                // What is exported in one terminal is exported in all, as the documents say.
                if at != *terminal && command.starts_with("export ") {
                    other.type_in(&command)?;
                }
            }
            let terminal = &mut terminals[*terminal];
            terminal.type_in(&command)?;
            let done = terminal.until(|_, code| code == Some(0));
            done.map_err(|said| format!("`{command}` did not succeed:\n{said}"))
        }
        Step::Stay {
            terminal,
            command,
            until,
        } => {
            let command = walked(command, builds).unwrap_or_default();
            println!("  {}: {command}", TERMINALS[*terminal]);
            let terminal = &mut terminals[*terminal];
            terminal.type_in(&command)?;
            let ready = terminal.until(|said, _| said.contains(until.as_str()));
            ready.map_err(|said| format!("`{command}` did not print {until:?}:\n{said}"))
        }
        Step::Show {
            terminal,
            command,
            printed,
        } => {
            println!("  {}: {command}", TERMINALS[*terminal]);
            let terminal = &mut terminals[*terminal];
            terminal.type_in(command)?;
            let wanted = steady(printed);
            let deadline = Instant::now() + LOOK_PATIENCE;
            while LOOKS.iter().any(|look| command.starts_with(look)) && Instant::now() < deadline {
                terminal.until(|_, code| code.is_some())?;
                if steady(&terminal.said().0) == wanted {
                    return Ok(());
                }
                thread::sleep(LOOK_AGAIN);
                terminal.type_in(command)?;
            }
            let shown = terminal.until(|said, code| code.is_some() && steady(said) == wanted);
            shown.map_err(|said| format!("`{command}` should print\n{printed}and not\n{said}"))
        }
        Step::Interrupt { terminal } => {
            println!("  {}: Ctrl-C", TERMINALS[*terminal]);
            terminals[*terminal].interrupt()
        }
    }
}

/// The command without its comment, or nothing where there is nothing to build.
fn walked(command: &str, builds: bool) -> Option<String> {
    let command = command.split("  # ").next().unwrap_or(command).trim();
    match (builds, command.strip_prefix("cargo run --release -- ")) {
        (false, Some(rest)) => Some(format!("testigo {rest}")),
        (false, None) if command.starts_with("cargo ") => None,
        _ => Some(command.to_owned()),
    }
}
