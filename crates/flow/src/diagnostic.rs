//! What is wrong with a text, where, and how to mend it.

use std::fmt;
use std::ops::Range;

use serde::Serialize;

use crate::{Rule, Weight};

/// One finding in a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    pub rule: Rule,
    #[serde(skip)]
    pub weight: Weight,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What is wrong and how to mend it.
    pub message: String,
    /// How to mend it, alone.
    #[serde(skip)]
    pub mend: String,
    /// What is wrong, alone.
    #[serde(skip)]
    pub wrong: String,
    /// The bytes that it is about.
    #[serde(skip)]
    pub span: Range<usize>,
}

impl Diagnostic {
    pub(crate) fn new(
        text: &str,
        span: Range<usize>,
        rule: Rule,
        weight: Weight,
        wrong: impl Into<String>,
        mend: impl Into<String>,
    ) -> Diagnostic {
        let (wrong, mend) = (wrong.into(), mend.into());
        let (line, column) = place(text, span.start);
        Diagnostic {
            rule,
            weight,
            line,
            column,
            message: format!("{wrong}; {mend}"),
            mend,
            wrong,
            span,
        }
    }
}

/// Line and column of a byte, from 1; the column counts characters.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = 1 + before.bytes().filter(|b| *b == b'\n').count();
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, 1 + before[start..].chars().count())
}

/// `line 3, column 8: R1: nothing takes from [orders]; …`
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Diagnostic {
            line,
            column,
            rule,
            message,
            ..
        } = self;
        write!(f, "line {line}, column {column}: {rule}: {message}")
    }
}

/// All findings of one reading, as an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, diagnostic) in self.0.iter().enumerate() {
            let separator = if at == 0 { "" } else { "\n" };
            write!(f, "{separator}{diagnostic}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
