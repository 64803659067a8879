//! `testigo completions`: what a shell needs to complete command lines, and the names that it asks the node for.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, ArgAction, Args, Command};
use clap_complete::{Shell, generate};
use testigo_client::{Addresses, Connection, Target};
use tokio::time::timeout;

use crate::exit::Outcome;
use crate::names::{Kind, names};
use crate::reach::{Reach, connection_name, runtime};

/// Print the completions of a shell. Those of bash, zsh and fish know the gates, elections, queues and flows of the running node.
///
/// Example: testigo completions bash > ~/.local/share/bash-completion/completions/testigo
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, command: &mut Command) -> Outcome {
        let mut out = io::stdout();
        generate(self.shell, command, "testigo", &mut out);
        let asks = match self.shell {
            Shell::Bash => BASH,
            Shell::Zsh => ZSH,
            Shell::Fish => FISH,
            _ => "",
        };
        out.write_all(asks.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

const BASH: &str = r#"
# Where a name of the node is wanted, the node is asked for its names.
_testigo_with_names() {
    _testigo "$@"
    local names
    names=$("${COMP_WORDS[0]}" names -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if [[ -n $names ]]; then
        COMPREPLY=( $(compgen -W "$names" -- "${COMP_WORDS[COMP_CWORD]}") )
    fi
}
complete -F _testigo_with_names -o bashdefault -o default testigo
"#;

const ZSH: &str = r#"
# Where a name of the node is wanted, the node is asked for its names.
_testigo_with_names() {
    local -a names
    names=(${(f)"$(${words[1]} names -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( ${#names} )); then
        compadd -a names
    else
        _testigo "$@"
    fi
}
compdef _testigo_with_names testigo
"#;

const FISH: &str = r#"
# Where a name of the node is wanted, the node is asked for its names.
complete -c testigo -a '(testigo names -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
"#;

/// How long a shell waits for a node.
const PATIENCE: Duration = Duration::from_millis(800);

/// Print the names that may stand where a command line ends. Nothing if none may, or no node answers soon.
///
/// Example: testigo names -- gate show ''
#[derive(Args)]
pub(crate) struct Names {
    /// The command line without the program, up to the word that is being written.
    #[arg(last = true)]
    words: Vec<String>,
    #[command(flatten)]
    reach: Reach,
}

impl Names {
    pub(crate) fn run(self, command: &Command) -> Outcome {
        let end = line_end(command, &self.words);
        if let Some(LineEnd { kind, resp }) = end
            && let Ok(target) = self.reach.target()
        {
            let target = match resp {
                Some(addresses) => Target {
                    addresses,
                    ..target
                },
                None => target,
            };
            let asked = runtime()?.block_on(async {
                let ask = async {
                    let mut node = Connection::open(&target, &connection_name()).await.ok()?;
                    Some(names(&mut node, kind).await)
                };
                timeout(PATIENCE, ask).await
            });
            for name in asked.ok().flatten().unwrap_or_default() {
                println!("{name}");
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What is wanted where a command line ends, and which node it is about if it says so.
#[derive(Debug)]
struct LineEnd {
    kind: Kind,
    resp: Option<Addresses>,
}

fn line_end(command: &Command, words: &[String]) -> Option<LineEnd> {
    let (_, before) = words.split_last()?;
    let (mut command, mut path, mut positionals) = (command, Vec::new(), 0);
    let (mut open, mut resp): (Option<&Arg>, _) = (None, None);
    for word in before {
        if let Some(option) = open.take() {
            if option.get_id() == "resp" {
                resp = word.parse().ok();
            }
        } else if word == "--" {
            return None;
        } else if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').unwrap_or((long, ""));
            let option = command
                .get_arguments()
                .find(|arg| arg.get_long() == Some(name));
            let takes =
                option.filter(|arg| matches!(arg.get_action(), ArgAction::Set | ArgAction::Append));
            match long.contains('=') {
                true if name == "resp" => resp = value.parse().ok(),
                true => {}
                false => open = takes,
            }
        } else if let Some(next) = command.find_subcommand(word) {
            path.push(next.get_name().to_owned());
            command = next;
        } else if !word.starts_with('-') {
            positionals += 1;
        }
    }
    let many = |arg: &&Arg| matches!(arg.get_action(), ArgAction::Append);
    let positional = || {
        let all = command.get_positionals().filter(|arg| !arg.is_last_set());
        let all: Vec<&Arg> = all.collect();
        let last = all.last().copied().filter(many);
        all.get(positionals).copied().or(last)
    };
    let arg = open.or_else(positional)?;
    let kind = kind(path.first()?, arg.get_id().as_str())?;
    Some(LineEnd { kind, resp })
}

/// Whose name an argument of a command is.
fn kind(command: &str, argument: &str) -> Option<Kind> {
    match (command, argument) {
        ("elect", "name") => Some(Kind::Election),
        ("pool", "name") => Some(Kind::Pool),
        ("lock", "names") | ("gate" | "owner", "name") => Some(Kind::Gate),
        ("queue", "queue") | ("job", "queue" | "queues" | "to") => Some(Kind::Queue),
        ("flow", "name" | "running") | ("work" | "client", "flow") => Some(Kind::Flow),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn wanted(line: &str) -> Option<Kind> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        line_end(&crate::Cli::command(), &words).map(|end| end.kind)
    }

    #[test]
    fn the_line_says_whose_name_is_wanted() {
        for (line, kind) in [
            ("gate show ", Some(Kind::Gate)),
            ("gate show de", Some(Kind::Gate)),
            ("lock ", Some(Kind::Gate)),
            ("lock a b", Some(Kind::Gate)),
            ("lock a --wait 5s b", Some(Kind::Gate)),
            ("lock a --wait ", None),
            ("lock a -- ", None),
            ("owner ", Some(Kind::Gate)),
            ("elect ", Some(Kind::Election)),
            ("elect leader ", Some(Kind::Election)),
            ("pool show ", Some(Kind::Pool)),
            ("pool take ", Some(Kind::Pool)),
            ("elect db --value ", None),
            ("queue show ", Some(Kind::Queue)),
            ("job create ", Some(Kind::Queue)),
            ("job take a/b ", Some(Kind::Queue)),
            ("job find x --in ", Some(Kind::Queue)),
            ("job move 7 --to ", Some(Kind::Queue)),
            ("flow show ", Some(Kind::Flow)),
            ("flow plan new.flow --running ", Some(Kind::Flow)),
            ("work ", Some(Kind::Flow)),
            ("work f ", None),
            ("client list --flow ", Some(Kind::Flow)),
            ("gate ", None),
            ("", None),
        ] {
            assert_eq!(wanted(line), kind, "{line:?}");
        }
    }

    #[test]
    fn the_line_says_which_node() {
        let words = ["gate", "show", "--resp", "h:1", ""].map(str::to_owned);
        let end = line_end(&crate::Cli::command(), &words).expect("a name");
        assert_eq!(end.resp.map(|resp| resp.to_string()), Some("h:1".into()));
    }
}
