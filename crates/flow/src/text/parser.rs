//! Statements from tokens, by recursive descent without recursion: the language does not nest. Each token is looked at a
//! bounded number of times, so reading is linear in the text.

use std::ops::Range;

use super::document::{Document, Statement, StatementKind, Subject, Trivia};
use super::token::{Kind, Token, Tokens};
use crate::limits::{DIAGNOSTICS_MAX, TEXT_BYTES_MAX};
use crate::{Chain, Diagnostic, Name, Rule, Weight};

impl Document {
    /// Reads a text of the language, or says all that is wrong with how it is written. Whether the flow keeps the rules
    /// is another question; see [`crate::parse()`].
    pub fn parse(text: &str) -> Result<Document, Vec<Diagnostic>> {
        let mut parser = Parser::of(text)?;
        let document = parser.document();
        parser.end(document)
    }
}

pub(crate) fn too_long(text: &str) -> Diagnostic {
    let wrong = format!("the text has {} bytes", text.len());
    let mend = format!("at most {TEXT_BYTES_MAX} are read");
    Diagnostic::new(text, 0..0, Rule::Limit, Weight::Error, wrong, mend)
}

const MEND_CHAIN: &str =
    "a chain is process -> [queue] -> process, and so on; it ends with a process";

/// The statement cannot be read; the reason is already on record.
pub(super) struct Unreadable;

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    tokens: Vec<Token>,
    comments: Vec<super::token::Comment>,
    pub(super) at: usize,
    /// Inside the braces of a declaration.
    pub(super) in_block: bool,
    errors: Vec<Diagnostic>,
}

impl<'a> Parser<'a> {
    pub(super) fn of(text: &'a str) -> Result<Parser<'a>, Vec<Diagnostic>> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(vec![too_long(text)]);
        }
        let Tokens {
            tokens,
            comments,
            errors,
        } = Tokens::of(text);
        Ok(Parser {
            text,
            tokens,
            comments,
            at: 0,
            in_block: false,
            errors,
        })
    }

    /// The document, unless there were errors.
    pub(super) fn end(mut self, document: Document) -> Result<Document, Vec<Diagnostic>> {
        if self.errors.is_empty() {
            return Ok(document);
        }
        self.errors.sort_by_key(|error| error.span.start);
        self.errors.truncate(DIAGNOSTICS_MAX);
        Err(self.errors)
    }
}

impl Parser<'_> {
    fn document(&mut self) -> Document {
        let mut document = Document::default();
        let mut lead = self.lead(0);
        while self.kind() != Kind::End {
            let start = self.at;
            match self.statement() {
                Ok(kind) => {
                    lead.extend(self.inner_comments(start, &kind));
                    let trailing = self.trailing();
                    document.statements.push(Statement {
                        lead,
                        kind,
                        trailing: trailing.clone(),
                    });
                    lead = self.lead(usize::from(trailing.is_some()));
                }
                Err(Unreadable) => {
                    self.recover(start);
                    lead = self.lead(0);
                }
            }
            if self.errors.len() > DIAGNOSTICS_MAX {
                break;
            }
        }
        document.tail = lead;
        while document.tail.last() == Some(&Trivia::Blank) {
            document.tail.pop();
        }
        document
    }

    fn statement(&mut self) -> Result<StatementKind, Unreadable> {
        self.in_block = false;
        let next = self.peek(1);
        let subject = match (self.kind(), self.word()) {
            (Kind::Word, "flow") if matches!(next, Kind::OpenBlock) => Some(Subject::Flow),
            (Kind::Word, "queue") if next == Kind::Word => {
                self.advance();
                Some(Subject::Queue(self.name("a queue's name")?.0))
            }
            (Kind::Word, "process") if next == Kind::Word => {
                self.advance();
                Some(Subject::Process(self.name("a process's name")?.0))
            }
            _ => {
                self.check_declaration()?;
                None
            }
        };
        let kind = match subject {
            Some(subject) => StatementKind::Declaration(self.declaration(subject)?),
            None => self.chain()?,
        };
        if self.kind() != Kind::End && !self.token().first {
            let mend = match kind {
                StatementKind::Chain { .. } => "put -> before it, or start a new line",
                StatementKind::Declaration(_) => "start a new line",
            };
            return Err(self.unexpected("the end of the line", mend));
        }
        Ok(kind)
    }

    /// Whether a token starts a line, or is the end.
    pub(super) fn starts_line(&self, ahead: usize) -> bool {
        let token = self.tokens.get(self.at + ahead);
        token.is_none_or(|token| token.first || token.kind == Kind::End)
    }

    /// `P -> [C] -> P …`: the shape is checked here, and with it the first three rules.
    fn chain(&mut self) -> Result<StatementKind, Unreadable> {
        let (mut processes, mut queues, mut spans) = (Vec::new(), Vec::new(), Vec::new());
        let mut from_reject = false;
        let mut last: Option<(bool, Name, Range<usize>)> = None;
        loop {
            let is_queue = self.kind() == Kind::OpenQueue;
            let (name, span) = match is_queue {
                true => self.queue()?,
                false => self.name_or("a process, or a [queue]", MEND_CHAIN)?,
            };
            match &last {
                None => from_reject = is_queue,
                Some((true, before, before_span)) if is_queue => {
                    return Err(self.error(
                        before_span.start..span.end,
                        Rule::R1,
                        format!("no process stands between [{before}] and [{name}], to take from one and put into the other"),
                        format!("write [{before}] -> process -> [{name}]"),
                    ));
                }
                Some((false, before, before_span)) if !is_queue => {
                    return Err(self.error(
                        before_span.start..span.end,
                        Rule::Syntax,
                        format!("no queue stands between {before} and {name}: jobs go from process to process through a queue"),
                        format!("write {before} -> [queue] -> {name}"),
                    ));
                }
                Some(_) => {}
            }
            match is_queue {
                true => queues.push(name.clone()),
                false => processes.push(name.clone()),
            }
            spans.push(span.clone());
            last = Some((is_queue, name, span));
            if self.kind() != Kind::Arrow {
                break;
            }
            self.advance();
        }
        match last {
            Some((true, name, span)) if self.kind() == Kind::End || self.token().first => {
                let wrong = format!("the chain ends in [{name}]: nothing takes from it there");
                let mend = format!("go on to the process that deletes: [{name}] -> process");
                Err(self.error(span, Rule::R1, wrong, mend))
            }
            Some((false, name, span)) if queues.is_empty() => {
                let wrong = format!("the chain of {name} has no queue");
                let mend = format!("write {name} -> [queue] -> process");
                Err(self.error(span, Rule::Syntax, wrong, mend))
            }
            _ => Ok(StatementKind::Chain {
                chain: Chain {
                    processes,
                    queues,
                    from_reject,
                },
                spans,
            }),
        }
    }

    /// `[name]`
    pub(super) fn queue(&mut self) -> Result<(Name, Range<usize>), Unreadable> {
        let start = self.token().span.start;
        self.expect(Kind::OpenQueue, "[", "a queue is written [name]")?;
        let (name, _) = self.name("a queue's name")?;
        let end = self.token().span.end;
        self.expect(Kind::CloseQueue, "]", "a queue is written [name]")?;
        Ok((name, start..end))
    }

    pub(super) fn name(&mut self, what: &str) -> Result<(Name, Range<usize>), Unreadable> {
        self.name_or(what, "write a name of letters, digits, _ - and .")
    }

    /// A name, or this advice.
    fn name_or(&mut self, what: &str, mend: &str) -> Result<(Name, Range<usize>), Unreadable> {
        if self.kind() != Kind::Word {
            return Err(self.unexpected(what, mend));
        }
        let span = self.token().span.clone();
        match Name::new(self.word()) {
            Ok(name) => {
                self.advance();
                Ok((name, span))
            }
            Err(why) => {
                Err(self.error(span, Rule::Limit, why.to_string(), "choose a shorter name"))
            }
        }
    }

    pub(super) fn expect(&mut self, kind: Kind, what: &str, mend: &str) -> Result<(), Unreadable> {
        if self.kind() != kind {
            return Err(self.unexpected(what, mend));
        }
        self.advance();
        Ok(())
    }

    /// Goes on at the next statement.
    fn recover(&mut self, start: usize) {
        self.at = self.at.max(start + 1);
        while self.kind() != Kind::End {
            if self.in_block && self.kind() == Kind::CloseBlock {
                self.advance();
                self.in_block = false;
                continue;
            }
            let starts = self.token().first && matches!(self.kind(), Kind::Word | Kind::OpenQueue);
            let declares = ["queue", "process", "flow"].contains(&self.word());
            if starts && (!self.in_block || declares) {
                break;
            }
            self.advance();
        }
    }

    // Comments.

    /// What stands before the current token, without the comments that are already placed.
    pub(super) fn lead(&self, skip: usize) -> Vec<Trivia> {
        let token = self.token();
        let mut lines = Vec::new();
        for comment in self.comments[token.comments.clone()].iter().skip(skip) {
            push_blank(&mut lines, comment.breaks);
            lines.push(Trivia::Comment(comment.text.clone()));
        }
        push_blank(&mut lines, token.breaks);
        if self.at == 0 && lines.first() == Some(&Trivia::Blank) {
            lines.remove(0);
        }
        lines
    }

    /// The comment behind what was read last, on the same line.
    pub(super) fn trailing(&self) -> Option<String> {
        let first = self.comments[self.token().comments.clone()].first()?;
        (first.breaks == 0 && self.at > 0).then(|| first.text.clone())
    }

    /// Comments in the middle of a chain or before a brace go above the statement.
    fn inner_comments(&self, start: usize, kind: &StatementKind) -> Vec<Trivia> {
        let end = match kind {
            StatementKind::Chain { .. } => self.at,
            StatementKind::Declaration(_) => {
                let inside = &self.tokens[start..self.at];
                let open = inside.iter().position(|t| t.kind == Kind::OpenBlock);
                open.map_or(self.at, |open| start + open + 1)
            }
        };
        self.comments_inside(start, end)
    }

    /// The comments behind the token `start` and before the last one below `end`.
    pub(super) fn comments_inside(&self, start: usize, end: usize) -> Vec<Trivia> {
        let from = self.tokens[start].comments.end;
        let to = self.tokens[end - 1].comments.end;
        let comments = self.comments[from..to].iter();
        comments.map(|c| Trivia::Comment(c.text.clone())).collect()
    }

    // Tokens.

    pub(super) fn token(&self) -> &Token {
        &self.tokens[self.at]
    }

    /// The place of the token before the current one.
    pub(super) fn before(&self) -> Range<usize> {
        self.tokens[self.at.saturating_sub(1)].span.clone()
    }

    pub(super) fn kind(&self) -> Kind {
        self.token().kind
    }

    pub(super) fn word(&self) -> &str {
        &self.text[self.token().span.clone()]
    }

    pub(super) fn peek(&self, ahead: usize) -> Kind {
        self.tokens
            .get(self.at + ahead)
            .map_or(Kind::End, |token| token.kind)
    }

    pub(super) fn peek_word(&self, ahead: usize) -> &str {
        let token = self.tokens.get(self.at + ahead);
        token.map_or("", |token| &self.text[token.span.clone()])
    }

    /// Never beyond the end.
    pub(super) fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    pub(super) fn unexpected(&mut self, wanted: &str, mend: &str) -> Unreadable {
        let found = match self.kind() {
            Kind::End => "the text ends".to_owned(),
            _ => format!("{} stands", self.word()),
        };
        let mut span = self.token().span.clone();
        if self.kind() == Kind::End {
            // A text ends behind its last token, not below it; what is no token there has been told.
            let end = self.before().end;
            if self.errors.iter().any(|error| error.span.start >= end) {
                return Unreadable;
            }
            span = end..end;
        }
        self.error(
            span,
            Rule::Syntax,
            format!("{found} where {wanted} is wanted"),
            mend,
        )
    }

    pub(super) fn error(
        &mut self,
        span: Range<usize>,
        rule: Rule,
        wrong: impl Into<String>,
        mend: impl Into<String>,
    ) -> Unreadable {
        let error = Diagnostic::new(self.text, span, rule, Weight::Error, wrong, mend);
        self.errors.push(error);
        Unreadable
    }
}

fn push_blank(lines: &mut Vec<Trivia>, breaks: usize) {
    if breaks > 1 && lines.last() != Some(&Trivia::Blank) {
        lines.push(Trivia::Blank);
    }
}
