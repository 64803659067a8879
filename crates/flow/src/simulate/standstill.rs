//! Standstill: workers before full queues that only they themselves could empty.

use super::state::Run;

impl Run<'_> {
    /// Whether no job can ever leave a queue again: none is being worked on, whoever holds one stands before such a queue,
    /// and so do all workers who could take one. One way out that is open is enough, so it is sought.
    pub(super) fn is_stuck(&self, queue: usize) -> bool {
        let mut seen = vec![false; self.queues.len()];
        let mut open = vec![queue];
        while let Some(queue) = open.pop() {
            if std::mem::replace(&mut seen[queue], true) {
                continue;
            }
            if self.queues[queue].jobs < self.limits[queue] {
                return false;
            }
            let (mut held, waiting) = (0, self.queues[queue].waiting.len());
            for process in &self.index.takers[queue] {
                let state = &self.processes[*process];
                let mut blocked = 0;
                for ((from, before), workers) in &state.blocked_at {
                    blocked += workers;
                    if *from == queue {
                        held += *workers as usize;
                    }
                    if *from == queue || waiting > 0 {
                        open.push(*before);
                    }
                }
                let workers = state.work.map_or(0, |work| work.workers);
                if waiting > 0 && blocked < workers {
                    return false;
                }
            }
            if self.queues[queue].jobs > held + waiting {
                return false;
            }
        }
        true
    }
}
