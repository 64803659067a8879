//! Declarations: `queue orders { limit 100; order priority }`.

use std::ops::Range;

use super::document::{Attribute, Declaration, Subject, Trivia, Value};
use super::parser::{Parser, Unreadable};
use super::token::Kind;
use crate::limits::{LIMIT_MAX, PATH_BYTES_MAX, RETRIES_MAX, RIGHTS_MAX};
use crate::{Name, QueueOrder, Rule};

/// The attributes that a subject may have, for messages too.
fn words(subject: &Subject) -> &'static [&'static str] {
    match subject {
        Subject::Flow => &["retries", "reject"],
        Subject::Queue(_) => &["limit", "order", "retries", "reject", "rights", "data"],
        Subject::Process(_) => &["limit", "rights"],
    }
}

impl Parser<'_> {
    /// From behind the name on; for `flow`, from the word on.
    pub(super) fn declaration(&mut self, subject: Subject) -> Result<Declaration, Unreadable> {
        if subject == Subject::Flow {
            self.advance();
        }
        let span = self.before();
        let mut declaration = Declaration {
            subject,
            span,
            attributes: Vec::new(),
            tail: Vec::new(),
        };
        if self.kind() != Kind::OpenBlock {
            return Ok(declaration);
        }
        self.in_block = true;
        self.advance();
        let mut placed = 0;
        while self.kind() != Kind::CloseBlock {
            let mut lead = without_blanks(self.lead(placed));
            let start = self.at;
            let (value, span) = self.attribute(&declaration.subject)?;
            lead.extend(self.comments_inside(start, self.at));
            let mut trailing = self.trailing();
            placed = usize::from(trailing.is_some());
            if self.kind() == Kind::Semicolon {
                lead.extend(without_blanks(self.lead(placed)));
                self.advance();
                placed = 0;
                if trailing.is_none() {
                    trailing = self.trailing();
                    placed = usize::from(trailing.is_some());
                }
            } else if self.kind() != Kind::CloseBlock {
                let mend = "separate attributes with ;";
                return Err(self.unexpected("; or }", mend));
            }
            if declaration
                .attributes
                .iter()
                .any(|a| a.value.word() == value.word())
            {
                let wrong = format!("{} is declared twice", value.word());
                return Err(self.error(span, Rule::Duplicate, wrong, "keep one of them"));
            }
            declaration.attributes.push(Attribute {
                lead,
                value,
                span,
                trailing,
            });
        }
        declaration.tail = without_blanks(self.lead(placed));
        self.advance();
        self.in_block = false;
        Ok(declaration)
    }

    /// Refuses what was meant as a declaration and is none, with the one that it should be.
    pub(super) fn check_declaration(&mut self) -> Result<(), Unreadable> {
        use Kind::{CloseQueue, OpenBlock, OpenQueue, Word};
        let first = self.word().to_owned();
        let declares = matches!(first.as_str(), "queue" | "process");
        let kinds = [0, 1, 2, 3, 4].map(|ahead| self.peek(ahead));
        let (wanted, mend) = match kinds {
            [Word, OpenBlock, ..] if declares => {
                self.advance();
                let wanted = format!("a {first}'s name");
                (wanted, format!("write {first} name {{ … }}"))
            }
            [Word, OpenQueue, Word, CloseQueue, last]
                if declares
                    && !self.starts_line(1)
                    && (last == OpenBlock || self.starts_line(4)) =>
            {
                let name = self.peek_word(2).to_owned();
                self.advance();
                let wanted = format!("a {first}'s name");
                (wanted, format!("write {first} {name} {{ … }}"))
            }
            [Word, OpenBlock, ..] | [Word, Word, OpenBlock, ..] => {
                let behind = if kinds[1] == Word { 1 } else { 0 };
                let name = self.peek_word(behind);
                let mend = match first.as_str() {
                    "flow" => "the flow has no name here: write flow { … }".to_owned(),
                    _ => format!("write queue {name} {{ … }} or process {name} {{ … }}"),
                };
                ("a declaration".to_owned(), mend)
            }
            _ => return Ok(()),
        };
        self.in_block = kinds.contains(&OpenBlock);
        Err(self.unexpected(&wanted, &mend))
    }

    fn attribute(&mut self, subject: &Subject) -> Result<(Value, Range<usize>), Unreadable> {
        let known = words(subject);
        let word = self.word().to_owned();
        let start = self.token().span.start;
        if self.kind() != Kind::Word || !known.contains(&word.as_str()) {
            let mend = match subject {
                Subject::Flow => "a flow declares retries and reject",
                Subject::Queue(_) => {
                    "a queue declares limit, order, retries, reject, rights and data"
                }
                Subject::Process(_) => "a process declares limit and rights",
            };
            return Err(self.unexpected("an attribute", mend));
        }
        self.advance();
        let value = match word.as_str() {
            "limit" => Value::Limit(self.number("limit", 1, LIMIT_MAX)?),
            "retries" => Value::Retries(self.number("retries", 0, RETRIES_MAX)?),
            "order" => Value::Order(self.order()?),
            "reject" => Value::Reject(self.reject()?),
            "rights" => Value::Rights(self.rights()?),
            _ => Value::Data(self.data()?),
        };
        Ok((value, start..self.before().end))
    }

    fn number(&mut self, what: &str, low: u32, high: u32) -> Result<u32, Unreadable> {
        let wanted = format!("a number from {low} to {high}");
        let digits = self.kind() == Kind::Word && self.word().bytes().all(|b| b.is_ascii_digit());
        if !digits {
            let mend = format!("write {what} {}", low.max(3));
            return Err(self.unexpected(&wanted, &mend));
        }
        match self.word().parse::<u32>() {
            Ok(number) if (low..=high).contains(&number) => {
                self.advance();
                Ok(number)
            }
            _ => {
                let span = self.token().span.clone();
                let wrong = format!("{what} {} is out of range", self.word());
                Err(self.error(span, Rule::Limit, wrong, format!("write {wanted}")))
            }
        }
    }

    fn order(&mut self) -> Result<QueueOrder, Unreadable> {
        let order = QueueOrder::ALL
            .into_iter()
            .find(|o| o.word() == self.word());
        match order {
            Some(order) => {
                self.advance();
                Ok(order)
            }
            None => Err(self.unexpected("an order", "write arrival, priority or key")),
        }
    }

    fn reject(&mut self) -> Result<Option<Name>, Unreadable> {
        if self.kind() == Kind::Word && self.word() == "none" {
            self.advance();
            return Ok(None);
        }
        if self.kind() != Kind::OpenQueue {
            return Err(self.unexpected("a [queue] or none", "write reject [queue] or reject none"));
        }
        Ok(Some(self.queue()?.0))
    }

    fn rights(&mut self) -> Result<Vec<Name>, Unreadable> {
        let mut users = vec![self.name("a user's name")?.0];
        while self.kind() == Kind::Comma {
            self.advance();
            let (user, span) = self.name("a user's name")?;
            if users.len() == RIGHTS_MAX {
                let wrong = format!("there are more than {RIGHTS_MAX} users");
                return Err(self.error(span, Rule::Limit, wrong, "name fewer"));
            }
            users.push(user);
        }
        users.sort();
        users.dedup();
        Ok(users)
    }

    fn data(&mut self) -> Result<String, Unreadable> {
        if self.kind() != Kind::Text {
            let mend = "write data \"/srv/orders\"";
            return Err(self.unexpected("a path in quotes", mend));
        }
        let span = self.token().span.clone();
        let path = unquoted(self.word());
        if let Err(wrong) = check_path(&path) {
            let mend = "name a directory";
            return Err(self.error(span, Rule::Limit, wrong, mend));
        }
        self.advance();
        Ok(path)
    }
}

/// What is wrong with a data directory's path.
pub(crate) fn check_path(path: &str) -> Result<(), String> {
    if path.is_empty() {
        return Err("the path is empty".into());
    }
    if path.len() > PATH_BYTES_MAX {
        let bytes = path.len();
        return Err(format!(
            "the path has {bytes} bytes; at most {PATH_BYTES_MAX} are allowed"
        ));
    }
    match path.chars().find(|c| c.is_control()) {
        Some(c) => Err(format!("the path holds {c:?}, a control character")),
        None => Ok(()),
    }
}

fn unquoted(text: &str) -> String {
    let inner = text.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
    let mut path = String::new();
    let mut chars = inner.unwrap_or(text).chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => path.extend(chars.next()),
            c => path.push(c),
        }
    }
    path
}

fn without_blanks(mut lines: Vec<Trivia>) -> Vec<Trivia> {
    lines.retain(|line| *line != Trivia::Blank);
    lines
}
