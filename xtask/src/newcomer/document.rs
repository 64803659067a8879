//! What a document tells its reader to do: the commands of its `sh` and `console` blocks, each in a terminal, and keys
//! that are pressed there.
//!
//! A block's first line may say more than its language: in which terminal it is typed (`first`, `second`, `third`;
//! otherwise the second), and by `until TEXT` that its last command stays in the foreground, and what it prints when it
//! is ready. Readers do not see that. A sentence with `Ctrl-C in the first terminal` is a step too.

/// The terminals' names, in order.
pub(super) const TERMINALS: [&str; 3] = ["first", "second", "third"];
/// What readers run when they change the code.
const NOT_WALKED: &str = "cargo xtask ";
/// Where commands are typed unless the document says otherwise.
const USUAL: usize = 1;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A command whose output is not shown.
    Type { terminal: usize, command: String },
    /// A command that stays in the foreground, and what it prints when it is ready.
    Stay {
        terminal: usize,
        command: String,
        until: String,
    },
    /// A command and what it must print.
    Show {
        terminal: usize,
        command: String,
        printed: String,
    },
    /// Ctrl-C.
    Interrupt { terminal: usize },
}

/// A block that is being read.
struct Block {
    terminal: usize,
    shows: bool,
    until: Option<String>,
}

pub(super) fn steps(text: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut inside: Option<Option<Block>> = None;
    for line in text.lines() {
        if let Some(info) = line.strip_prefix("```") {
            let ended = inside.take();
            match ended {
                None => inside = Some(block(info)),
                Some(Some(Block {
                    until: Some(until), ..
                })) => stays(&mut steps, until),
                Some(_) => {}
            }
            continue;
        }
        match &inside {
            None => steps.extend(interrupt(line)),
            Some(None) => {}
            Some(Some(block)) => command(block, line, &mut steps),
        }
    }
    steps
}

/// Nothing for a block that is not typed.
fn block(info: &str) -> Option<Block> {
    let (info, until) = match info.split_once(" until ") {
        Some((info, until)) => (info, Some(until.to_owned())),
        None => (info, None),
    };
    let (language, terminal) = info.split_once(' ').unwrap_or((info, ""));
    let named = TERMINALS.iter().position(|name| *name == terminal);
    match language {
        "sh" | "console" => Some(Block {
            terminal: named.unwrap_or(USUAL),
            shows: language == "console",
            until,
        }),
        _ => None,
    }
}

fn command(block: &Block, line: &str, steps: &mut Vec<Step>) {
    let terminal = block.terminal;
    match (block.shows, line.strip_prefix("$ ")) {
        (true, Some(command)) => steps.push(Step::Show {
            terminal,
            command: command.to_owned(),
            printed: String::new(),
        }),
        (true, None) => {
            if let Some(Step::Show { printed, .. }) = steps.last_mut() {
                printed.push_str(line);
                printed.push('\n');
            }
        }
        (false, _) if line.starts_with(NOT_WALKED) => {}
        (false, _) => steps.push(Step::Type {
            terminal,
            command: line.to_owned(),
        }),
    }
}

/// The last command of a block stays in the foreground.
fn stays(steps: &mut Vec<Step>, until: String) {
    if let Some(Step::Type { terminal, command }) = steps.pop() {
        steps.push(Step::Stay {
            terminal,
            command,
            until,
        });
    }
}

fn interrupt(line: &str) -> Option<Step> {
    let (_, after) = line.split_once("Ctrl-C in the ")?;
    let name = after.split_once(" terminal")?.0;
    let terminal = TERMINALS.iter().position(|terminal| *terminal == name)?;
    Some(Step::Interrupt { terminal })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_a_list_of_steps() {
        let text = "Start it:\n```sh first until ready\ncd x\ntestigo up\ncargo xtask test\n```\n```text\nready\n```\n\
            ```console third\n$ testigo gate list\na\nb\n$ true\n```\nPress Ctrl-C in the first terminal.\n\
            ```sh\ntrue\n```\n";
        let step = |terminal, command: &str| Step::Type {
            terminal,
            command: command.into(),
        };
        let show = |command: &str, printed: &str| Step::Show {
            terminal: 2,
            command: command.into(),
            printed: printed.into(),
        };
        let expected = [
            step(0, "cd x"),
            Step::Stay {
                terminal: 0,
                command: "testigo up".into(),
                until: "ready".into(),
            },
            show("testigo gate list", "a\nb\n"),
            show("true", ""),
            Step::Interrupt { terminal: 0 },
            step(1, "true"),
        ];
        assert_eq!(steps(text), expected);
    }
}
