//! The box office as the slides print it, statement by statement (w1–w18, r1–r16, c1–c6), each block up to
//! a wait as one step; what is kinder than the slides: the stray statement of c5 is read into its branch, a
//! return goes to the issuer, and `send_token`, whose body is not given, sends one format and clears `token`.
//!
//! Source: box office §8, with the defects of §9; a dozen of them break safety, the first one W8.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::readers::seats::users;
use crate::readers::{Ask, Class, Readers, Tell, box_office};
use crate::{Algorithm, Input, Message, NodeId, Output, Profile, Protocol, WordOf, erase_for};

pub(crate) const ALGORITHM: Algorithm<Readers> = Algorithm {
    profile: Profile {
        name: "box-office-slides",
        title: "The box office as the slides print it",
        source: "box office §8",
        specimen: Some("unsafe: with the token at hand, any number of processes walk in"),
        ..box_office::ALGORITHM.profile
    },
    machine: |setup| {
        let (shape, first) = users(setup)?;
        Ok(erase_for::<Slides>(
            shape,
            |user| first[user.index()],
            setup.users,
        ))
    },
};

/// A row for each class, a column for each node.
type Table = [Vec<u32>; 3];

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Slides {
    me: NodeId,
    p: Table,
    a: Table,
    reqno: u32,
    token: bool,
    qtoken: bool,
    token_prio: usize,
    in_cs: bool,
    reader_cs: bool,
    wants: [u32; 3],
    /// `lista`: the one entry that an assignment leaves in it.
    out: Option<NodeId>,
    issuer: NodeId,
    /// Processes that wait in `receive`, and tokens that nobody has received.
    receiving: VecDeque<Class>,
    unread: VecDeque<(Table, bool, usize, NodeId)>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Slide {
    Request { class: Class, number: u32 },
    TokenReturn,
    Token { a: Table, query: bool, prio: usize },
}

impl Message for Slide {
    fn word_of(&self) -> WordOf {
        match self {
            Slide::Request { class, .. } => WordOf::Own(class.index() as u32),
            Slide::TokenReturn | Slide::Token { .. } => WordOf::Nothing,
        }
    }
}

impl Protocol for Slides {
    type Problem = Readers;
    type Message = Slide;
    type Config = usize;

    fn new(me: NodeId, &nodes: &usize) -> Self {
        let none: Table = std::array::from_fn(|_| vec![0; nodes]);
        Slides {
            me,
            p: none.clone(),
            a: none,
            reqno: 0,
            token: me == NodeId(0),
            qtoken: false,
            token_prio: 0,
            in_cs: false,
            reader_cs: false,
            wants: [0; 3],
            out: None,
            issuer: me,
            receiving: VecDeque::new(),
            unread: VecDeque::new(),
        }
    }

    fn step(&mut self, input: Input<Self>, &nodes: &usize, out: &mut Output<Self>) {
        match input {
            Input::Ask(Ask::Enter(class)) => self.enter(class, nodes, out),
            Input::Ask(Ask::Leave(Class::Query)) => self.reader_leaves(nodes, out),
            Input::Ask(Ask::Leave(class)) => self.writer_leaves(class, nodes, out),
            Input::Message { from, message } => match message {
                Slide::Request { class, number } => self.on_request(from, class, number, out),
                Slide::TokenReturn => self.out = self.out.filter(|other| *other != from), // c3
                Slide::Token { a, query, prio } => {
                    self.unread.push_back((a, query, prio, from));
                    self.receive(out);
                }
            },
            Input::Start | Input::Timer(_) => {}
        }
    }
}

impl Slides {
    /// w3–w10 and r2–r11.
    fn enter(&mut self, class: Class, nodes: usize, out: &mut Output<Self>) {
        let prio = class.index();
        self.wants[prio] += 1;
        let reads = class == Class::Query;
        if reads && self.token {
            self.reader_cs = true;
        }
        let lesser = prio > self.token_prio;
        let must_ask = match reads {
            true => !self.token && !self.qtoken || lesser,
            false => !self.token || lesser || self.token_prio == 2,
        };
        if !must_ask {
            self.in_cs = true;
            out.tell(Tell::Entered(class));
            return;
        }
        self.reqno += 1;
        let number = self.reqno;
        out.send_all(self.me.others(nodes), &Slide::Request { class, number });
        self.receiving.push_back(class);
        self.receive(out);
    }

    /// w7–w10 and r7–r11, by whoever receives first, whatever the token is for.
    fn receive(&mut self, out: &mut Output<Self>) {
        while let (Some(_), Some(&class)) = (self.unread.front(), self.receiving.front()) {
            let Some((a, query, prio, from)) = self.unread.pop_front() else {
                return;
            };
            self.receiving.pop_front();
            let row = class.index();
            let copied = self.a[row].len() - 1; // 0..N−2
            self.a[row][..copied].copy_from_slice(&a[row][..copied]);
            match (class == Class::Query, query) {
                (true, true) => (self.issuer, self.qtoken) = (from, true),
                _ => self.token = true,
            }
            self.token_prio = if class == Class::Query { 2 } else { prio };
            self.in_cs = true;
            out.tell(Tell::Entered(class));
        }
    }

    /// w11–w18.
    fn writer_leaves(&mut self, class: Class, nodes: usize, out: &mut Output<Self>) {
        let prio = class.index();
        self.wants[prio] -= 1;
        if self.wants[..=prio].iter().all(|&wants| wants == 0) {
            self.a[prio][self.me.index()] = self.reqno;
        }
        self.in_cs = false;
        self.scan(nodes, out);
    }

    /// r12–r16.
    fn reader_leaves(&mut self, nodes: usize, out: &mut Output<Self>) {
        self.wants[2] -= 1;
        if self.wants[2] == 0 {
            self.a[2][self.me.index()] = self.reqno;
        }
        self.in_cs = false;
        if self.out.is_none() {
            self.reader_cs = false;
        }
        if self.qtoken {
            out.send(self.issuer, Slide::TokenReturn);
            self.qtoken = false;
        }
        self.scan(nodes, out);
    }

    /// w16–w18: the first node behind this one with a request of the best class, from the holder or not.
    fn scan(&mut self, nodes: usize, out: &mut Output<Self>) {
        for class in Class::ALL {
            let mut node = self.me.next(nodes);
            while node != self.me {
                let (c, n) = (class.index(), node.index());
                if self.p[c][n] > self.a[c][n] {
                    self.send_token(node, false, c, out);
                    return;
                }
                node = node.next(nodes);
            }
        }
    }

    /// c2–c6.
    fn on_request(&mut self, from: NodeId, class: Class, number: u32, out: &mut Output<Self>) {
        let (c, n) = (class.index(), from.index());
        self.p[c][n] = self.p[c][n].max(number);
        if class == Class::Query && self.reader_cs {
            self.out = Some(from);
            self.send_token(from, true, c, out);
        } else if self.token && !self.in_cs && self.p[c][n] > self.a[c][n] {
            self.send_token(from, false, c, out);
        }
    }

    fn send_token(&mut self, to: NodeId, query: bool, prio: usize, out: &mut Output<Self>) {
        self.token &= query;
        let a = self.a.clone();
        out.send(to, Slide::Token { a, query, prio });
    }
}
