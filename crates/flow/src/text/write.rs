//! From statements back to text, in one layout: what `fmt` prints. Writing what was read from it changes nothing.

use std::fmt;

use super::document::{
    Attribute, Declaration, Document, Statement, StatementKind, Subject, Trivia, Value,
};
use crate::Chain;

/// Longer chains go on in the next line, and longer declarations take a line for each attribute.
const WIDTH: usize = 100;
const INDENT: &str = "    ";

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for statement in &self.statements {
            write!(f, "{statement}")?;
        }
        lines(f, "", &self.tail)
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        lines(f, "", &self.lead)?;
        match &self.kind {
            StatementKind::Chain { chain, .. } => f.write_str(&wrapped(chain))?,
            StatementKind::Declaration(declaration) => write!(f, "{declaration}")?,
        }
        if let Some(comment) = &self.trailing {
            write!(f, "  {comment}")?;
        }
        f.write_str("\n")
    }
}

fn lines(f: &mut fmt::Formatter<'_>, indent: &str, lines: &[Trivia]) -> fmt::Result {
    for line in lines {
        match line {
            Trivia::Blank => f.write_str("\n")?,
            Trivia::Comment(text) => writeln!(f, "{indent}{text}")?,
        }
    }
    Ok(())
}

/// `a -> [b] -> c`, broken before an arrow where it gets long.
fn wrapped(chain: &Chain) -> String {
    let mut text = String::new();
    let mut width = 0;
    for (at, step) in chain.steps().iter().enumerate() {
        let step = step.to_string();
        let length = step.chars().count() + if at == 0 { 0 } else { 4 };
        if at > 0 && width + length > WIDTH {
            text.push('\n');
            text.push_str(INDENT);
            text.push_str("-> ");
            width = INDENT.len() + length - 1;
        } else {
            text.push_str(if at == 0 { "" } else { " -> " });
            width += length;
        }
        text.push_str(&step);
    }
    text
}

impl fmt::Display for Declaration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.subject)?;
        if self.attributes.is_empty() && self.tail.is_empty() {
            return Ok(());
        }
        let values: Vec<String> = self
            .attributes
            .iter()
            .map(|a| a.value.to_string())
            .collect();
        let line = format!(" {{ {} }}", values.join("; "));
        let plain = |a: &Attribute| a.lead.is_empty() && a.trailing.is_none();
        let short = self.subject.to_string().chars().count() + line.chars().count() <= WIDTH;
        if short && self.tail.is_empty() && self.attributes.iter().all(plain) {
            return f.write_str(&line);
        }
        f.write_str(" {\n")?;
        for attribute in &self.attributes {
            lines(f, INDENT, &attribute.lead)?;
            write!(f, "{INDENT}{};", attribute.value)?;
            if let Some(comment) = &attribute.trailing {
                write!(f, "  {comment}")?;
            }
            f.write_str("\n")?;
        }
        lines(f, INDENT, &self.tail)?;
        f.write_str("}")
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Flow => f.write_str("flow"),
            Subject::Queue(name) => write!(f, "queue {name}"),
            Subject::Process(name) => write!(f, "process {name}"),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.word())?;
        match self {
            Value::Limit(number) | Value::Retries(number) => write!(f, "{number}"),
            Value::Order(order) => f.write_str(order.word()),
            Value::Reject(Some(name)) => write!(f, "[{name}]"),
            Value::Reject(None) => f.write_str("none"),
            Value::Rights(users) => {
                let users: Vec<&str> = users.iter().map(|user| user.as_str()).collect();
                f.write_str(&users.join(", "))
            }
            Value::Data(path) => {
                let escaped = path.replace('\\', "\\\\").replace('"', "\\\"");
                write!(f, "\"{escaped}\"")
            }
        }
    }
}
