//! A state of a whole cluster as a short list of numbers, and what each of them means.

use testigo_protocol::Shape;

use crate::line::UserLine;

/// A state, as numbers; a [`View`] gives them their meaning.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct State(Box<[u32]>);

/// A user that was told what no well-formed node says.
pub(crate) const ILL_FORMED: u32 = u32::MAX;
pub(crate) const WORDS_PER_TIMER: usize = 4;
/// Down nodes, liars, and how many crashes, restarts, losses and copies there may still be.
pub(crate) const WORDS_OF_FAULTS: usize = 6;
pub(crate) const WORDS_PER_MESSAGE: usize = 2;

/// How many words there are of each kind that does not change in size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    nodes: usize,
    users: usize,
    places: usize,
    /// Whether it is kept what nodes and messages know, and how often users were passed.
    pub(crate) knowledge: bool,
    /// Whether there are faults.
    pub(crate) faults: bool,
}

/// A state's words by their meaning.
pub(crate) struct View<'a> {
    pub(crate) nodes: &'a [u32],
    pub(crate) users: &'a [u32],
    /// How often each user may still ask.
    pub(crate) left: &'a [u32],
    /// Places in the lines of users that share a node.
    places: &'a [u32],
    /// The requests that each node knows of, and how often each user was passed.
    known: &'a [u32],
    pub(crate) passed: &'a [u32],
    /// The number of what the problem's monitor remembers, or of the promise that was broken.
    pub(crate) monitor: &'a [u32],
    pub(crate) faults: &'a [u32],
    pub(crate) timeouts_left: u32,
    /// Node, timer, and where time counts how long until it fires.
    pub(crate) timers: &'a [[u32; WORDS_PER_TIMER]],
    /// Link and message, sorted by link.
    pub(crate) messages: &'a [[u32; WORDS_PER_MESSAGE]],
    /// The requests that each message brings word of.
    pub(crate) word_of: &'a [u32],
}

impl Layout {
    pub(crate) fn new(shape: &Shape, knowledge: bool, faults: bool) -> Layout {
        Layout {
            nodes: shape.nodes(),
            users: shape.users,
            places: UserLine::places(shape),
            knowledge,
            faults,
        }
    }

    pub(crate) fn view<'a>(&self, state: &'a State) -> View<'a> {
        let (nodes, rest) = state.0.split_at(self.nodes);
        let (users, rest) = rest.split_at(self.users);
        let (left, rest) = rest.split_at(self.users);
        let (places, rest) = rest.split_at(self.places);
        let (known, rest) = rest.split_at(if self.knowledge { self.nodes } else { 0 });
        let (passed, rest) = rest.split_at(if self.knowledge { self.users } else { 0 });
        let (monitor, rest) = rest.split_at(usize::from(self.knowledge));
        let (faults, rest) = rest.split_at(if self.faults { WORDS_OF_FAULTS } else { 0 });
        let timeouts_left = rest[0];
        let (timers, rest) = rest[2..].split_at(WORDS_PER_TIMER * rest[1] as usize);
        let words = WORDS_PER_MESSAGE + usize::from(self.knowledge);
        let (messages, word_of) = rest.split_at(rest.len() / words * WORDS_PER_MESSAGE);
        View {
            nodes,
            users,
            left,
            places,
            known,
            passed,
            monitor,
            faults,
            timeouts_left,
            timers: timers.as_chunks().0,
            messages: messages.as_chunks().0,
            word_of,
        }
    }
}

/// A state in the making.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) nodes: Vec<u32>,
    pub(crate) users: Vec<u32>,
    pub(crate) left: Vec<u32>,
    pub(crate) places: Vec<u32>,
    pub(crate) known: Vec<u32>,
    pub(crate) passed: Vec<u32>,
    pub(crate) monitor: Vec<u32>,
    pub(crate) faults: Vec<u32>,
    pub(crate) timeouts_left: u32,
    pub(crate) timers: Vec<[u32; WORDS_PER_TIMER]>,
    pub(crate) messages: Vec<[u32; WORDS_PER_MESSAGE]>,
    pub(crate) word_of: Vec<u32>,
}

impl Draft {
    pub(crate) fn copy(&mut self, view: &View<'_>) {
        let again = |words: &mut Vec<u32>, from: &[u32]| {
            words.clear();
            words.extend_from_slice(from);
        };
        again(&mut self.nodes, view.nodes);
        again(&mut self.users, view.users);
        again(&mut self.left, view.left);
        again(&mut self.places, view.places);
        again(&mut self.known, view.known);
        again(&mut self.passed, view.passed);
        again(&mut self.monitor, view.monitor);
        again(&mut self.faults, view.faults);
        self.timeouts_left = view.timeouts_left;
        self.timers.clear();
        self.timers.extend_from_slice(view.timers);
        self.messages.clear();
        self.messages.extend_from_slice(view.messages);
        again(&mut self.word_of, view.word_of);
    }

    pub(crate) fn done(&self) -> State {
        let parts: [&[u32]; 12] = [
            &self.nodes,
            &self.users,
            &self.left,
            &self.places,
            &self.known,
            &self.passed,
            &self.monitor,
            &self.faults,
            &[self.timeouts_left, self.timers.len() as u32],
            self.timers.as_flattened(),
            self.messages.as_flattened(),
            &self.word_of,
        ];
        let mut words = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
        for part in parts {
            words.extend_from_slice(part);
        }
        State(words.into_boxed_slice())
    }
}
