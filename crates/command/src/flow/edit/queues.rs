//! The menu of queues.

use testigo_flow::limits::{LIMIT_MAX, RETRIES_MAX};
use testigo_flow::{Name, Queue, QueueOrder, Reject};

use super::editor::{Editor, MENU};
use super::screen::{Gone, Screen};

impl Editor {
    pub(super) fn queues(&mut self, screen: &mut Screen) -> Result<(), Gone> {
        let mut at = 0;
        loop {
            let lines: Vec<String> = self
                .graph
                .queues
                .iter()
                .map(|(name, queue)| line(name, queue))
                .collect();
            let page = self.page("queues", lines);
            match screen.choose(page, &mut at, MENU)?.as_str() {
                "a" => self.add_queue(screen)?,
                "c" => self.change_queue(screen)?,
                "r" => self.remove_queue(screen)?,
                "b" => return Ok(()),
                _ => {}
            }
        }
    }

    fn add_queue(&mut self, screen: &mut Screen) -> Result<(), Gone> {
        let Some(name) = screen.ask_name("Name of the new queue:")? else {
            return Ok(());
        };
        if self.graph.queues.contains_key(&name) {
            screen.tell(format!("there is a queue {name} already"));
            return Ok(());
        }
        let queue = ask(screen, &Queue::default())?;
        let question = format!("Add the queue {name}?");
        self.change(screen, &question, |graph| graph.add_queue(name, queue))
    }

    fn change_queue(&mut self, screen: &mut Screen) -> Result<(), Gone> {
        let Some(name) = screen.ask_name("Queue to change:")? else {
            return Ok(());
        };
        let Some(old) = self.graph.queues.get(&name).cloned() else {
            screen.tell(format!("there is no queue {name}"));
            return Ok(());
        };
        let queue = ask(screen, &old)?;
        let question = format!("Change the queue {name}?");
        self.change(screen, &question, |graph| graph.change_queue(&name, queue))
    }

    fn remove_queue(&mut self, screen: &mut Screen) -> Result<(), Gone> {
        let Some(name) = screen.ask_name("Queue to remove:")? else {
            return Ok(());
        };
        let question = format!("Remove the queue {name}?");
        self.change(screen, &question, |graph| graph.remove_queue(&name))
    }
}

fn line(name: &Name, queue: &Queue) -> String {
    let mut line = format!("[{name}]");
    if let Some(limit) = queue.limit {
        line.push_str(&format!("  limit {limit}"));
    }
    if queue.order != QueueOrder::Arrival {
        line.push_str(&format!("  order {}", queue.order.word()));
    }
    if let Some(path) = &queue.data {
        line.push_str(&format!("  data {path}"));
    }
    line
}

/// Enter keeps a value, - clears it.
fn ask(screen: &mut Screen, old: &Queue) -> Result<Queue, Gone> {
    let number = |low: u32, high: u32| {
        move |text: &str| match text.parse::<u32>() {
            Ok(number) if (low..=high).contains(&number) => Ok(number),
            _ => Err(format!("a number from {low} to {high} is wanted")),
        }
    };
    let order = |text: &str| {
        let found = QueueOrder::ALL
            .into_iter()
            .find(|order| order.word() == text);
        found.ok_or("arrival, priority or key is wanted".to_owned())
    };
    let reject = |text: &str| match text {
        "none" => Ok(Reject::Never),
        name => Name::new(name)
            .map(Reject::To)
            .map_err(|why| why.to_string()),
    };
    let shown = |reject: &Reject| match reject {
        Reject::Never => "none".to_owned(),
        Reject::To(name) => name.to_string(),
        Reject::Inherited => "-".to_owned(),
    };
    let path = |text: &str| match text.len() <= testigo_flow::limits::PATH_BYTES_MAX {
        true => Ok(text.to_owned()),
        false => Err("the path is too long".to_owned()),
    };
    let own = Some(old.reject.clone()).filter(|reject| *reject != Reject::Inherited);
    Ok(Queue {
        data: screen.ask_value("Data directory", &old.data, Clone::clone, path)?,
        limit: screen.ask_value(
            "Limit",
            &old.limit,
            ToString::to_string,
            number(1, LIMIT_MAX),
        )?,
        order: screen
            .ask_value(
                "Order (arrival, priority, key)",
                &Some(old.order),
                |order| order.word().to_owned(),
                order,
            )?
            .unwrap_or_default(),
        retries: screen.ask_value(
            "Retries",
            &old.retries,
            ToString::to_string,
            number(0, RETRIES_MAX),
        )?,
        reject: screen
            .ask_value("Reject queue of its own (or none)", &own, shown, reject)?
            .unwrap_or_default(),
        rights: screen.ask_users("Users that may administer its jobs", &old.rights)?,
    })
}
