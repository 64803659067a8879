//! Commands sent without waiting are answered as if each had waited for the one before it: a walk of random commands is
//! made one by one on one node, then sent at once to another, and the replies must be the same.

mod support;

use support::{Client, House, Value};

const FLOW: &str = "intake -> [orders] -> price -> [priced] -> bill
price -> [scrap] -> waste
queue orders { limit 12 }
queue priced { limit 6 }";
const COMMANDS: usize = 400;

/// A small generator of numbers, the same for the same seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }
}

/// The next command; `taken` are the jobs that were given, some of which are no longer held.
fn command(draw: &mut Draw, taken: &[(String, String)]) -> Vec<String> {
    let queue = format!("shop/{}", draw.of(&["orders", "orders", "priced", "scrap"]));
    let gate = format!("gate{}", draw.below(4));
    let name = match draw.below(3) {
        0 => "*".to_owned(),
        _ => format!("job{}", draw.below(20)),
    };
    let id = draw.below(40).to_string();
    let held = match taken.len() {
        0 => (id.clone(), "7".to_owned()),
        many => taken[many - 1 - draw.below(many.min(4))].clone(),
    };
    let (job, attempt) = (held.0.as_str(), held.1.as_str());
    let words: &[&str] = match draw.below(22) {
        0..=6 => &["JOB", "CREATE", &queue, &name, "body"],
        7..=9 => &["JOB", "TAKE", &queue],
        10..=11 => &["JOB", "PASS", job, attempt, &queue],
        12 => &["JOB", "PASS", job, attempt, &queue, "another body"],
        13 => &["JOB", "DELETE", job, attempt],
        14 => &["JOB", "DELETE", &id],
        15 => &["JOB", "MOVE", &id, &queue],
        16 => &["JOB", "BACK", job, attempt, "FAILED"],
        17 => &["JOB", "BACK", job, attempt],
        18 => &["GATE", "CREATE", &gate, draw.of(&["MUTEX", "SHARED"])],
        19 => &["GATE", "DELETE", &gate],
        20 => &["JOB", "COUNT", &queue],
        _ => &[draw.of(&["PING", "JOB", "GATE", "NONSENSE"])],
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn ready(house: &House) -> Client {
    let mut client = house.client();
    let applied = client.call(&["FLOW", "APPLY", "shop", FLOW]);
    assert_eq!(applied, Value::Simple("OK".into()));
    client
}

/// Commands with the replies that they got one by one.
fn walk(seed: u64) -> Vec<(Vec<String>, Value)> {
    let house = House::open();
    let mut client = ready(&house);
    let mut draw = Draw(seed);
    let mut taken = Vec::new();
    let mut walk = Vec::new();
    for _ in 0..COMMANDS {
        let command = command(&mut draw, &taken);
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let reply = client.call(&words);
        if let (["JOB", "TAKE", ..], Value::List(job)) = (&words[..], &reply) {
            taken.push((job[0].to_string(), job[1].to_string()));
        }
        walk.push((command, reply));
    }
    walk
}

#[test]
fn pipelined_commands_are_answered_as_if_each_had_waited() {
    for seed in 1..=6 {
        let walk = walk(seed);
        let refused = |(_, reply): &&(_, Value)| matches!(reply, Value::Error(_));
        assert!(walk.iter().filter(refused).count() > COMMANDS / 20);
        let house = House::open();
        let mut client = ready(&house);
        let mut bytes = Vec::new();
        for (command, _) in &walk {
            bytes.extend(format!("*{}\r\n", command.len()).bytes());
            for word in command {
                bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
            }
        }
        client.send_bytes(&bytes).unwrap();
        for (nth, (command, reply)) in walk.iter().enumerate() {
            assert_eq!(client.read(), *reply, "seed {seed}, {nth}: {command:?}");
        }
    }
}

#[test]
fn what_was_sent_before_the_end_of_the_input_is_done_and_answered() {
    let house = House::open();
    let mut client = ready(&house);
    for _ in 0..100 {
        client.send(&["JOB", "CREATE", "shop/scrap", "*", "body"]);
    }
    client.end_input();
    for job in 1..=100 {
        assert_eq!(client.read(), Value::Int(job));
    }
    assert!(client.is_closed());
    let count = house.client().call(&["JOB", "COUNT", "shop/scrap"]);
    assert_eq!(count, Value::Int(100));
}

#[test]
fn a_protocol_error_behind_changes_is_answered_behind_them() {
    for wrong in ["*-9\r\n", "GET / HTTP/1.1\r\n", "POST / x\r\n", "\0"] {
        let house = House::open();
        let mut client = ready(&house);
        let create = "JOB CREATE shop/scrap * body\r\n".repeat(5);
        client
            .send_bytes(format!("{create}{wrong}").as_bytes())
            .unwrap();
        for job in 1..=5 {
            assert_eq!(client.read(), Value::Int(job), "{wrong:?}");
        }
        // Who speaks HTTP is answered in HTTP.
        if !wrong.contains('/') {
            let error = client.read();
            assert!(error.error().starts_with("BADARG protocol"), "{error}");
        }
        assert!(client.is_closed());
    }
}

#[test]
fn an_end_of_the_input_that_comes_with_an_answer_of_the_log_cuts_nothing_off() {
    let house = House::open();
    ready(&house);
    for round in 0..100 {
        let mut client = house.client();
        let create = "JOB CREATE shop/scrap * body\r\n";
        let commands = format!("{}PING\r\n{create}", create.repeat(3));
        client.send_bytes(commands.as_bytes()).unwrap();
        // The end comes while the log answers, now earlier and now later.
        (0..round * 500).for_each(|_| std::hint::spin_loop());
        client.end_input();
        let replies: Vec<bool> = (0..5)
            .map(|_| matches!(client.read(), Value::Int(_)))
            .collect();
        assert_eq!(replies, [true, true, true, false, true], "round {round}");
    }
}

#[test]
fn commands_that_wait_for_their_answers_to_be_read_are_served_after_the_end_of_the_input() {
    let house = House::with(|config| config.wire.output_bytes_soft = 1_000);
    let mut client = ready(&house);
    let text = "x".repeat(10_000);
    let echo = format!("ECHO {text}\r\n").repeat(30);
    let commands = format!("{echo}JOB CREATE shop/scrap * body\r\n");
    client.send_bytes(commands.as_bytes()).unwrap();
    client.end_input();
    for _ in 0..30 {
        assert_eq!(client.read(), Value::Text(text.clone()));
    }
    assert_eq!(client.read(), Value::Int(1));
}
