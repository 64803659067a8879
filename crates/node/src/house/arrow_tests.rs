//! Counts per arrow: which process put jobs into a queue and which took them out, where several processes share it.

use testigo_core::Name;

use super::tests::Stage;
use super::*;

/// Two processes feed the queue `orders`, and two drain it.
const SHOP: &str = r"web -> [orders] -> pack -> [packed] -> ship\nphone -> [orders] -> give";
const SHOP_WITHOUT_PHONE: &str =
    r"web -> [orders] -> pack -> [packed] -> ship\nweb -> [orders] -> give";

impl Stage {
    fn with_flow() -> (Stage, ClientId) {
        let mut stage = Stage::new();
        stage.at(10_000);
        let admin = stage.client();
        stage.apply(admin, "shop", SHOP);
        (stage, admin)
    }

    pub(super) fn apply(&mut self, admin: ClientId, flow: &str, text: &str) {
        let applied = self.logged(admin, &format!("FLOW APPLY {flow} \"{text}\""));
        assert_eq!(applied, "+OK\r\n");
    }

    fn worker(&mut self, process: &str) -> ClientId {
        let client = self.client();
        let presented = self.say(client, &format!("PRESENT shop {process}"));
        assert_eq!(presented, "+OK\r\n");
        client
    }

    /// Gives a command that goes through the log.
    pub(super) fn logged(&mut self, client: ClientId, command: &str) -> String {
        assert_eq!(self.say(client, command), "", "{command}");
        self.deliver();
        self.hear(client)
    }

    pub(super) fn create(&mut self, client: ClientId, jobs: usize) {
        for _ in 0..jobs {
            let created = self.logged(client, "JOB CREATE shop/orders * body");
            assert!(created.starts_with(':'), "{created}");
        }
    }

    /// Takes a job; returns its ID and attempt.
    pub(super) fn take(&mut self, client: ClientId, queue: &str) -> String {
        let taken = self.say(client, &format!("JOB TAKE shop/{queue}"));
        let numbers: Vec<&str> = taken
            .lines()
            .filter_map(|line| line.strip_prefix(':'))
            .collect();
        assert_eq!(numbers.len(), 2, "{taken}");
        numbers.join(" ")
    }

    fn delete(&mut self, client: ClientId, queue: &str, jobs: usize) {
        for _ in 0..jobs {
            let job = self.take(client, queue);
            assert_eq!(self.logged(client, &format!("JOB DELETE {job}")), "+OK\r\n");
        }
    }

    fn pass(&mut self, client: ClientId, jobs: usize) {
        for _ in 0..jobs {
            let job = self.take(client, "orders");
            let passed = self.logged(client, &format!("JOB PASS {job} packed"));
            assert_eq!(passed, "+OK\r\n");
        }
    }

    /// What has gone along every arrow of the flow since the start, and per second.
    fn arrows(&self) -> Vec<(String, u64, f64)> {
        let (house, name) = (&self.house, Name::new("shop").unwrap());
        let arrows = house.arrows_of(&name, house.replicated().flow("shop").unwrap());
        let told = arrows.map(|(process, queue, into, arrow)| {
            let counted = arrow.map(|arrow| house.stats.arrows.counted(house.now, arrow));
            let (count, per_second) = counted.unwrap_or_default();
            let words = match into {
                true => format!("{process} -> [{queue}]"),
                false => format!("[{queue}] -> {process}"),
            };
            (words, count, per_second)
        });
        told.collect()
    }

    fn counts(&self) -> String {
        let arrows = self.arrows().into_iter();
        let counts = arrows.map(|(words, count, _)| format!("{words} {count}"));
        counts.collect::<Vec<_>>().join(", ")
    }

    /// What arrived at a queue and left it, by the queue's own counts and by its arrows.
    fn arrived_and_left(&self, queue: &str) -> [(u64, u64); 2] {
        let flow = self.house.replicated().flow("shop").unwrap();
        let totals = self.house.stats.totals(flow.queue(queue).unwrap());
        let arrows = self.arrows();
        let sum = |fits: &dyn Fn(&str) -> bool| {
            let fitting = arrows.iter().filter(|(words, ..)| fits(words));
            fitting.map(|(_, count, _)| count).sum()
        };
        let into = sum(&|words| words.ends_with(&format!("[{queue}]")));
        let out = sum(&|words| words.starts_with(&format!("[{queue}]")));
        [(totals.arrivals, totals.departures), (into, out)]
    }
}

#[test]
fn every_arrow_of_a_shared_queue_has_its_own_count_and_rate() {
    let (mut stage, _) = Stage::with_flow();
    let [web, phone, pack, give, ship] =
        ["web", "phone", "pack", "give", "ship"].map(|process| stage.worker(process));
    stage.create(web, 4);
    stage.create(phone, 1);
    // `phone` creates one more in a unit of work.
    stage.say(phone, "MULTI");
    stage.say(phone, "JOB CREATE shop/orders * body");
    assert!(stage.logged(phone, "EXEC").starts_with("*1"));
    stage.pass(pack, 3);
    stage.delete(give, "orders", 2);
    stage.delete(ship, "packed", 1);
    // A job that is given back has not left.
    let job = stage.take(give, "orders");
    assert_eq!(stage.say(give, &format!("JOB BACK {job}")), "+OK\r\n");
    let right = "[orders] -> give 2, pack -> [packed] 3, [orders] -> pack 3, phone -> [orders] 2, \
                 [packed] -> ship 1, web -> [orders] 4";
    assert_eq!(stage.counts(), right);
    // Only processes were at work, so the arrows account for everything that the queues counted.
    assert_eq!(stage.arrived_and_left("orders"), [(6, 5); 2]);
    assert_eq!(stage.arrived_and_left("packed"), [(3, 1); 2]);

    stage.at(11_000);
    let tenths = |stage: &Stage| -> Vec<u64> {
        let arrows = stage.arrows().into_iter();
        let tenths = arrows.map(|(.., per_second)| (per_second * 10.0).round() as u64);
        tenths.collect()
    };
    assert_eq!(tenths(&stage), [2, 3, 3, 2, 1, 4]);
    stage.at(21_000);
    assert_eq!(tenths(&stage), [0; 6]);
    assert_eq!(stage.counts(), right);
}

#[test]
fn what_no_process_does_belongs_to_no_arrow() {
    let (mut stage, admin) = Stage::with_flow();
    let pack = stage.worker("pack");
    stage.create(admin, 4);
    stage.delete(admin, "orders", 1);
    assert_eq!(stage.logged(admin, "JOB MOVE 2 shop/packed"), "+OK\r\n");
    assert_eq!(stage.logged(admin, "JOB DELETE 2"), "+OK\r\n");
    stage.pass(pack, 1);
    let right = "[orders] -> give 0, pack -> [packed] 1, [orders] -> pack 1, phone -> [orders] 0, \
                 [packed] -> ship 0, web -> [orders] 0";
    assert_eq!(stage.counts(), right);
    assert_eq!(stage.arrived_and_left("orders"), [(4, 3), (0, 1)]);
}

#[test]
fn a_process_that_is_gone_when_the_log_has_spoken_is_counted() {
    let (mut stage, _) = Stage::with_flow();
    let web = stage.worker("web");
    assert_eq!(stage.say(web, "JOB CREATE shop/orders * body"), "");
    stage.house.farewell(web);
    stage.deliver();
    assert_eq!(stage.arrived_and_left("orders"), [(1, 0); 2]);
}

#[test]
fn a_changed_flow_keeps_the_counts_of_the_arrows_that_stay() {
    let (mut stage, admin) = Stage::with_flow();
    let (web, phone) = (stage.worker("web"), stage.worker("phone"));
    stage.create(web, 2);
    stage.create(phone, 1);
    stage.apply(admin, "shop", SHOP_WITHOUT_PHONE);
    stage.apply(admin, "other", "phone -> [orders] -> give");
    stage.create(web, 1);
    stage.apply(admin, "shop", SHOP);
    let right = "[orders] -> give 0, pack -> [packed] 0, [orders] -> pack 0, phone -> [orders] 0, \
                 [packed] -> ship 0, web -> [orders] 3";
    assert_eq!(stage.counts(), right);
}
