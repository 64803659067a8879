//! What a leader does: it appends commands, copies its log to the others, and commits what a majority holds.

use super::{Command, Config, Flaw, LogEntry, Raft, Role, Rpc};
use crate::{NodeId, Output};

impl Raft {
    /// The leader appends a command, unless it has been applied or was already appended in this term.
    pub(super) fn propose(&mut self, command: Command, config: &Config, out: &mut Output<Self>) {
        let command = Some(command);
        let done = |(at, entry): (usize, &LogEntry)| {
            entry.command == command && (at < self.applied || entry.term == self.term)
        };
        if self.log.iter().enumerate().any(done) {
            return;
        }
        self.log.push(LogEntry {
            term: self.term,
            command,
        });
        self.tell_log_from(self.log.len(), out);
        self.append_at_all(config, out);
        self.commit_what_a_majority_holds(config, out);
    }

    pub(super) fn append_at_all(&self, config: &Config, out: &mut Output<Self>) {
        for server in self.id.others(config.servers) {
            self.append_at(server, out);
        }
    }

    pub(super) fn append_at(&self, server: NodeId, out: &mut Output<Self>) {
        let Role::Leader { next, .. } = &self.role else {
            return;
        };
        let prev = next[server.index()] - 1;
        let message = Rpc::AppendEntries {
            term: self.term,
            prev_index: prev as u32,
            prev_term: self.term_at(prev),
            entries: self.log[prev..].to_vec(),
            commit: self.commit as u32,
        };
        out.send(server, message);
    }

    pub(super) fn appended(
        &mut self,
        from: NodeId,
        success: bool,
        index: usize,
        config: &Config,
        out: &mut Output<Self>,
    ) {
        let Role::Leader { next, matches } = &mut self.role else {
            return;
        };
        let server = from.index();
        if success {
            matches[server] = matches[server].max(index);
            next[server] = next[server].max(matches[server] + 1);
            self.commit_what_a_majority_holds(config, out);
        } else if next[server] == index + 1 && index > matches[server] {
            next[server] = index;
            self.append_at(from, out);
        }
    }

    pub(super) fn commit_what_a_majority_holds(&mut self, config: &Config, out: &mut Output<Self>) {
        let Role::Leader { matches, .. } = &self.role else {
            return;
        };
        let held = |&index: &usize| {
            let others = matches.iter().filter(|&&matched| matched >= index);
            let own_term = self.term_at(index) == self.term;
            others.count() + 1 >= config.majority()
                && (own_term || config.flaw == Some(Flaw::CountsOldTerms))
        };
        if let Some(index) = (self.commit + 1..=self.log.len()).rev().find(held) {
            self.commit = index;
            self.apply(out);
        }
    }
}
