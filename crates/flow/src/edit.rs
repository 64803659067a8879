//! Changes that an editor makes, one at a time. Each refuses what names nothing, names something twice or would leave a name
//! without its queue; whether the whole keeps the rules is asked when it is written, because a flow that is being built
//! does not keep them yet.

use crate::{About, Graph, Name, Problem, Process, Queue, Reject, Rule, Weight};

fn refused(rule: Rule, about: About, message: String, mend: impl Into<String>) -> Problem {
    Problem {
        rule,
        weight: Weight::Error,
        about,
        message,
        mend: mend.into(),
    }
}

impl Graph {
    /// Names the flow's reject queue, or none.
    pub fn set_reject(&mut self, queue: Option<Name>) -> Result<(), Problem> {
        if let Some(name) = &queue
            && !self.queues.contains_key(name)
        {
            let message = format!("there is no queue {name}");
            let mend = "add it first, or name another";
            return Err(refused(
                Rule::RejectQueue,
                About::Reject(name.clone()),
                message,
                mend,
            ));
        }
        self.defaults.reject = queue;
        Ok(())
    }

    pub fn add_queue(&mut self, name: Name, queue: Queue) -> Result<(), Problem> {
        if self.queues.contains_key(&name) {
            let message = format!("there is a queue {name} already");
            let about = About::Queue(name);
            return Err(refused(
                Rule::Duplicate,
                about,
                message,
                "choose another name",
            ));
        }
        self.reject_exists(&queue)?;
        self.queues.insert(name, queue);
        Ok(())
    }

    /// Changes what is declared for a queue; its name stays.
    pub fn change_queue(&mut self, name: &Name, queue: Queue) -> Result<(), Problem> {
        self.reject_exists(&queue)?;
        match self.queues.get_mut(name) {
            Some(declared) => *declared = queue,
            None => return Err(no_queue(name)),
        }
        Ok(())
    }

    /// Only a queue that nothing uses can be removed.
    pub fn remove_queue(&mut self, name: &Name) -> Result<(), Problem> {
        if !self.queues.contains_key(name) {
            return Err(no_queue(name));
        }
        let users = self.putters(name).chain(self.takers(name));
        let mut users: Vec<String> = users.map(ToString::to_string).collect();
        users.sort();
        users.dedup();
        if self.reject_queues().contains(name) {
            users.push("the flow, as a reject queue".into());
        }
        if !users.is_empty() {
            let message = format!("[{name}] is used by {}", users.join(", "));
            let about = About::Queue(name.clone());
            return Err(refused(Rule::InUse, about, message, "change these first"));
        }
        self.queues.remove(name);
        Ok(())
    }

    pub fn add_process(&mut self, name: Name, process: Process) -> Result<(), Problem> {
        if self.processes.contains_key(&name) {
            let message = format!("there is a process {name} already");
            let about = About::Process(name);
            return Err(refused(
                Rule::Duplicate,
                about,
                message,
                "choose another name",
            ));
        }
        self.put_process(name, process)
    }

    pub fn change_process(&mut self, name: &Name, process: Process) -> Result<(), Problem> {
        if !self.processes.contains_key(name) {
            return Err(no_process(name));
        }
        self.put_process(name.clone(), process)
    }

    pub fn remove_process(&mut self, name: &Name) -> Result<(), Problem> {
        match self.processes.remove(name) {
            Some(_) => Ok(()),
            None => Err(no_process(name)),
        }
    }

    /// Who creates into a queue puts into it, and who deletes from one takes from it.
    fn put_process(&mut self, name: Name, mut process: Process) -> Result<(), Problem> {
        process.passes.extend(process.creates.iter().cloned());
        process.takes.extend(process.deletes.iter().cloned());
        let mut named = process.takes.union(&process.passes);
        if let Some(queue) = named.find(|queue| !self.queues.contains_key(*queue)) {
            let message = format!("there is no queue {queue}");
            let about = About::Process(name);
            return Err(refused(Rule::UnknownName, about, message, "add it first"));
        }
        self.processes.insert(name, process);
        Ok(())
    }

    fn reject_exists(&self, queue: &Queue) -> Result<(), Problem> {
        match &queue.reject {
            Reject::To(name) if !self.queues.contains_key(name) => {
                let message = format!("there is no queue {name}");
                let about = About::Reject(name.clone());
                Err(refused(Rule::RejectQueue, about, message, "add it first"))
            }
            _ => Ok(()),
        }
    }
}

fn no_queue(name: &Name) -> Problem {
    let message = format!("there is no queue {name}");
    let about = About::Queue(name.clone());
    refused(Rule::UnknownName, about, message, "name one that is there")
}

fn no_process(name: &Name) -> Problem {
    let message = format!("there is no process {name}");
    let about = About::Process(name.clone());
    refused(Rule::UnknownName, about, message, "name one that is there")
}
