//! The language as a user writes it: what is read, what is refused and where, and that writing gives it back.

use testigo_flow::{Document, Flow, Name, Order, Reject, Rule, parse, read};
use testigo_sim::Generator;

const ORDERS: &str = "\
# Orders come in, are priced and billed.
flow { retries 5; reject [failed] }

intake -> [orders] -> price -> [priced] -> bill
intake -> [orders] -> price -> [rework] -> fix -> [orders] -> price -> [priced] -> bill  # once more
[failed] -> clerk -> [orders] -> price -> [priced] -> bill

queue orders { limit 1000; order priority; data \"/srv/orders\" }
queue rework {
    # Only a few may be mended at a time.
    limit 10;
    retries 0;  # no second chance
    reject none;
}
process price { limit 4; rights alice, bob }
# The end.
";

fn name(text: &str) -> Name {
    Name::new(text).expect(text)
}

#[test]
fn a_flow_says_what_every_process_may_do() {
    let flow = parse(ORDERS).expect("valid");
    let price = &flow.processes["price"];
    assert!(price.creates.is_empty() && price.deletes.is_empty());
    assert!(price.takes.iter().eq(["orders"].map(name).iter()));
    assert!(
        price
            .passes
            .iter()
            .eq(["priced", "rework"].map(name).iter())
    );
    assert_eq!((price.limit, price.rights.len()), (Some(4), 2));
    assert!(flow.processes["intake"].creates.contains("orders"));
    assert!(flow.processes["bill"].deletes.contains("priced"));
    assert!(
        flow.processes["clerk"].creates.is_empty(),
        "the node creates there"
    );
    let orders = &flow.queues["orders"];
    assert_eq!((orders.limit, orders.order), (Some(1000), Order::Priority));
    assert_eq!(orders.data.as_deref(), Some("/srv/orders"));
    assert_eq!(flow.queues["rework"].reject, Reject::Never);
    assert_eq!(flow.reject("orders"), Some(&name("failed")));
    assert_eq!((flow.reject("rework"), flow.reject("failed")), (None, None));
    assert_eq!((flow.retries("orders"), flow.retries("rework")), (5, 0));
}

#[test]
fn writing_gives_back_what_was_read() {
    let document = Document::parse(ORDERS).expect("readable");
    assert_eq!(document.to_string(), ORDERS);
}

#[test]
fn comments_survive_wherever_they_stand() {
    let text = "\
# 1

# 2
a # 3
  -> [b] # 4
  # 5
  -> c # 6

# 7
queue # 8
  b # 9
  { # 10
  limit # 11
   5 # 12
   ; # 13
   # 14
   retries 1 # 15
   # 16
} # 17
# 18
process a { # 19
}

# 20


# 21
";
    let once = Document::parse(text).expect("readable").to_string();
    for number in 1..=21 {
        let comment = format!("# {number}\n");
        assert_eq!(once.matches(&comment).count(), 1, "{comment} in\n{once}");
    }
    let twice = Document::parse(&once).expect("readable").to_string();
    assert_eq!(once, twice);
    assert_eq!(parse(&once), parse(text));
}

#[test]
fn errors_say_which_rule_where_and_how_to_mend_it() {
    for (text, rule, line, column, part) in [
        ("", Rule::R4, 1, 1, "no process creates"),
        ("a -> [q]", Rule::R1, 1, 6, "nothing takes"),
        ("[q] -> b", Rule::R1, 1, 1, "nothing puts"),
        ("a -> [q] -> b\n  [r] -> b", Rule::R1, 2, 3, "[r]"),
        (
            "a -> [q] -> [r] -> b",
            Rule::R1,
            1,
            6,
            "between [q] and [r]",
        ),
        ("a -> b", Rule::Syntax, 1, 1, "a -> [queue] -> b"),
        ("a", Rule::Syntax, 1, 1, "a -> [queue] -> process"),
        ("a ->", Rule::Syntax, 1, 5, "the text ends"),
        ("a -> [q] b", Rule::Syntax, 1, 10, "put ->"),
        ("a -> [q -> b", Rule::Syntax, 1, 9, "]"),
        ("a -> [ñ\u{f1}q] -> b ! c", Rule::Syntax, 1, 17, "\"!\""),
        (
            "a -> [q] -> b\nqueue r",
            Rule::R1,
            2,
            7,
            "nothing puts into [r]",
        ),
        (
            "a -> [q] -> b\nprocess c",
            Rule::Undefined,
            2,
            9,
            "in no chain",
        ),
        (
            "a -> [q] -> b\nflow { reject [r] }",
            Rule::RejectQueue,
            2,
            8,
            "[r]",
        ),
        (
            "a -> [q] -> b\nqueue q { reject [q] }",
            Rule::RejectQueue,
            1,
            6,
            "its own",
        ),
        (
            "a -> [q] -> b\nqueue q\nqueue q",
            Rule::Duplicate,
            3,
            7,
            "twice",
        ),
        (
            "a -> [q] -> b\nqueue q { limit 1; limit 2 }",
            Rule::Duplicate,
            2,
            20,
            "twice",
        ),
        (
            "a -> [q] -> b\nqueue q { limit 0 }",
            Rule::Limit,
            2,
            17,
            "from 1 to",
        ),
        (
            "a -> [q] -> b\nqueue q { limit x }",
            Rule::Syntax,
            2,
            17,
            "limit 3",
        ),
        (
            "a -> [q] -> b\nqueue q { size 2 }",
            Rule::Syntax,
            2,
            11,
            "limit, order",
        ),
        (
            "a -> [q] -> b\nqueue q { order up }",
            Rule::Syntax,
            2,
            17,
            "arrival",
        ),
        (
            "a -> [q] -> b\nqueue q { limit 1 order key }",
            Rule::Syntax,
            2,
            19,
            ";",
        ),
        (
            "a -> [q] -> b\nqueue q { data \"x }",
            Rule::Syntax,
            2,
            16,
            "close it",
        ),
        (
            "a -> [q] -> b\nprocess a { order key }",
            Rule::Syntax,
            2,
            13,
            "limit and rights",
        ),
    ] {
        let errors = parse(text).expect_err(text);
        let first = &errors[0];
        assert_eq!(
            (first.rule, first.line, first.column),
            (rule, line, column),
            "{text}: {first}"
        );
        assert!(first.message.contains(part), "{text}: {first}");
        assert!(!first.mend.is_empty());
    }
}

#[test]
fn one_reading_reports_several_errors() {
    let text = "a -> b\nqueue q {\n  limit x\n}\nc -> [q]\nx -> [y] -> z\n";
    let lines: Vec<usize> = parse(text)
        .expect_err("wrong")
        .iter()
        .map(|e| e.line)
        .collect();
    assert_eq!(lines, [1, 3, 5]);
}

#[test]
fn a_reject_queue_that_nobody_empties_is_doubtful_only() {
    let reading = read("a -> [q] -> b\nflow { reject [r] }\nqueue r");
    assert!(reading.flow.is_some());
    assert_eq!(reading.findings.len(), 1);
    assert!(reading.findings[0].message.contains("reject queue [r]"));
}

/// A random sentence: chains over few names, so that they meet.
pub fn sentence(generator: &mut Generator) -> String {
    let mut text = String::new();
    for _ in 0..generator.between(1, 6) {
        text.push_str(&format!("p{}", generator.below(6)));
        for _ in 0..generator.between(1, 6) {
            text.push_str(&format!(
                " -> [q{}] -> p{}",
                generator.below(6),
                generator.below(6)
            ));
        }
        text.push('\n');
    }
    text
}

#[test]
fn the_canonical_text_is_the_flow() {
    let mut generator = Generator::new(11);
    for _ in 0..5_000 {
        let text = sentence(&mut generator);
        let flow = parse(&text).expect("every sentence is a flow");
        let canonical = flow.to_string();
        let again: Flow = canonical.parse().expect("readable");
        assert_eq!(again, flow, "{text}\n{canonical}");
        assert_eq!(again.to_string(), canonical);
        assert_eq!(
            Document::parse(&canonical).expect("readable").to_string(),
            canonical
        );
    }
    let flow = parse(ORDERS).expect("valid");
    assert_eq!(flow.to_string().parse(), Ok(flow));
}
