//! The thesis' own notation, `PROCa COLAb PROCc`: a process is `PROC` or `proc` with a name behind it, a queue `COLA` or
//! `cola`, and two processes side by side are the end of a chain and the start of the next. Ends of lines mean nothing.

use std::fmt::{self, Write};
use std::ops::Range;

use super::document::{Document, Statement, StatementKind, Trivia};
use super::parser::{Parser, Unreadable};
use super::token::Kind;
use crate::{Chain, Diagnostic, Name, Rule};

impl Document {
    /// Reads the thesis' notation; the prefixes are not part of the names.
    pub fn parse_classic(text: &str) -> Result<Document, Vec<Diagnostic>> {
        let mut parser = Parser::of(text)?;
        let document = parser.classic();
        parser.end(document)
    }

    /// Writes the thesis' notation. What it cannot say becomes comments.
    pub fn classic(&self) -> Result<Classic, NoClassicName> {
        let mut classic = Classic::default();
        for statement in &self.statements {
            write_lines(&mut classic.text, &statement.lead);
            let mut line = String::new();
            match &statement.kind {
                StatementKind::Chain { chain, .. } if !chain.from_reject => {
                    write_chain(&mut line, chain)?;
                }
                _ => classic.unsay(&mut line, statement),
            }
            if let Some(comment) = &statement.trailing {
                let _ = write!(line, "  {comment}");
            }
            line.push('\n');
            classic.text.push_str(&line);
        }
        write_lines(&mut classic.text, &self.tail);
        Ok(classic)
    }
}

/// A text in the thesis' notation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classic {
    pub text: String,
    /// What the notation cannot say: these statements stand in comments.
    pub unsaid: Vec<String>,
}

/// A name that the thesis' notation cannot write: it has letters and digits only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoClassicName(pub Name);

impl fmt::Display for NoClassicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoClassicName(name) = self;
        write!(
            f,
            "{name} cannot be written in the classic notation, which has the letters a to z and digits only; rename it"
        )
    }
}

impl std::error::Error for NoClassicName {}

impl Classic {
    /// A statement as comments.
    fn unsay(&mut self, line: &mut String, statement: &Statement) {
        let plain = Statement::new(statement.kind.clone()).to_string();
        let mut first = true;
        for text in plain.lines() {
            let _ = write!(line, "{}# {text}", if first { "" } else { "\n" });
            first = false;
        }
        self.unsaid.push(plain.trim_end().to_owned());
    }
}

fn write_lines(text: &mut String, lines: &[Trivia]) {
    for line in lines {
        match line {
            Trivia::Blank => text.push('\n'),
            Trivia::Comment(comment) => {
                let _ = writeln!(text, "{comment}");
            }
        }
    }
}

fn write_chain(line: &mut String, chain: &Chain) -> Result<(), NoClassicName> {
    for (at, step) in chain.steps().into_iter().enumerate() {
        let (prefix, name) = match step {
            crate::Step::Process(name) => ("PROC", name),
            crate::Step::Queue(name) => ("COLA", name),
        };
        if !is_tail(name) {
            return Err(NoClassicName(name.clone()));
        }
        let _ = write!(line, "{}{prefix}{name}", if at == 0 { "" } else { " " });
    }
    Ok(())
}

/// The name behind a prefix.
fn is_tail(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// A process or a queue, by its prefix.
struct Node {
    is_queue: bool,
    name: Name,
    span: Range<usize>,
}

impl Parser<'_> {
    /// Stops at the first error: without signs there is no place to go on from.
    fn classic(&mut self) -> Document {
        let mut document = Document::default();
        let mut lead = self.lead(0);
        while self.kind() != Kind::End {
            let start = self.at;
            let Ok((chain, spans)) = self.classic_chain() else {
                break;
            };
            lead.extend(self.comments_inside(start, self.at));
            let trailing = self.trailing();
            let skip = usize::from(trailing.is_some());
            document.statements.push(Statement {
                lead,
                kind: StatementKind::Chain { chain, spans },
                trailing,
            });
            lead = self.lead(skip);
        }
        document.tail = lead;
        while document.tail.last() == Some(&Trivia::Blank) {
            document.tail.pop();
        }
        document
    }

    fn classic_chain(&mut self) -> Result<(Chain, Vec<Range<usize>>), Unreadable> {
        let first = self.node()?;
        if first.is_queue {
            let Node { name, span, .. } = first;
            let wrong =
                format!("the chain starts with the queue {name}: nothing puts into it there");
            let mend = format!("start with the process that creates: PROCname COLA{name}");
            return Err(self.error(span, Rule::R1, wrong, mend));
        }
        let mut spans = vec![first.span.clone()];
        let (mut processes, mut queues) = (vec![first.name.clone()], Vec::new());
        while let Some(queue) = self.queue_ahead()? {
            if self.kind() == Kind::End {
                return Err(self.nothing_takes(&queue));
            }
            let process = self.node()?;
            if process.is_queue {
                return Err(self.nothing_takes(&queue));
            }
            spans.extend([queue.span, process.span]);
            queues.push(queue.name);
            processes.push(process.name);
        }
        if queues.is_empty() {
            let Node { name, span, .. } = first;
            let wrong = format!("the chain of {name} has no queue");
            let mend = format!("write PROC{name} COLAname PROCname");
            return Err(self.error(span, Rule::Syntax, wrong, mend));
        }
        let chain = Chain {
            processes,
            queues,
            from_reject: false,
        };
        Ok((chain, spans))
    }

    fn nothing_takes(&mut self, queue: &Node) -> Unreadable {
        let name = &queue.name;
        let wrong = format!("no process follows the queue {name}: nothing takes from it there");
        let mend = format!("write COLA{name} PROCname");
        self.error(queue.span.clone(), Rule::R1, wrong, mend)
    }

    /// The next node if it is a queue; a process starts the next chain.
    fn queue_ahead(&mut self) -> Result<Option<Node>, Unreadable> {
        let at = self.at;
        if self.kind() == Kind::End {
            return Ok(None);
        }
        let node = self.node()?;
        if !node.is_queue {
            self.at = at;
        }
        Ok(node.is_queue.then_some(node))
    }

    fn node(&mut self) -> Result<Node, Unreadable> {
        let word = self.word();
        let queue = word.strip_prefix("COLA").or(word.strip_prefix("cola"));
        let process = word.strip_prefix("PROC").or(word.strip_prefix("proc"));
        let tail = queue.or(process).filter(|tail| is_tail(tail));
        let is_queue = queue.is_some();
        let Some(tail) = tail.filter(|_| self.kind() == Kind::Word) else {
            let mend =
                "a process is PROC and its name, a queue COLA and its name, of letters and digits";
            return Err(self.unexpected("a process or a queue", mend));
        };
        let span = self.token().span.clone();
        match Name::new(tail) {
            Ok(name) => {
                self.advance();
                Ok(Node {
                    is_queue,
                    name,
                    span,
                })
            }
            Err(why) => {
                Err(self.error(span, Rule::Limit, why.to_string(), "choose a shorter name"))
            }
        }
    }
}
