//! The language as a user writes it: what is read, what is refused and where, and that writing gives it back.

use testigo_flow::{Document, Flow, Name, QueueOrder, Reject, Rule, parse, read};
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
    assert_eq!(
        (orders.limit, orders.order),
        (Some(1000), QueueOrder::Priority)
    );
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
            Rule::UnknownName,
            2,
            9,
            "uses no queue",
        ),
        (
            "a -> [q] -> b\nflow { reject [r] }",
            Rule::RejectQueue,
            2,
            8,
            "[r]",
        ),
        (
            "a -> [q] -> b\nqueue x { reject [q] }\nqueue q { reject [q] }",
            Rule::RejectQueue,
            3,
            11,
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
        let first = errors.iter().find(|error| error.rule == rule);
        let first = first.unwrap_or(&errors[0]);
        assert_eq!(
            (first.rule, first.line, first.column),
            (rule, line, column),
            "{text}: {first}"
        );
        assert!(first.message.contains(part), "{text}: {first}");
        assert!(!first.mend.is_empty());
    }
}

/// What is nearly a declaration is answered with the declaration.
#[test]
fn advice_for_declarations_is_a_declaration() {
    for (text, column, wrong, mend) in [
        (
            "queue [b] { limit 3 }",
            7,
            "[ stands",
            "write queue b { … }",
        ),
        ("queue [b]", 7, "[ stands", "write queue b { … }"),
        (
            "process [a] { limit 3 }",
            9,
            "process's name",
            "write process a { … }",
        ),
        (
            "queue { limit 3 }",
            7,
            "a queue's name",
            "write queue name { … }",
        ),
        (
            "process {\n limit 3\n}",
            9,
            "a process's name",
            "write process name { … }",
        ),
        (
            "queues b { limit 3 }",
            1,
            "queues stands",
            "write queue b { … } or",
        ),
        (
            "queues b {\n  limit 3\n}",
            1,
            "queues stands",
            "write queue b { … } or",
        ),
        ("b { limit 3 }", 1, "b stands", "or process b { … }"),
        ("flow f { retries 3 }", 1, "flow stands", "write flow { … }"),
        ("queue b { limit -1 }", 17, "-1 stands", "limit 3"),
        ("queue b { retries +2 }", 19, "from 0 to 1000", "retries 3"),
        (
            "process a { limit -1 }",
            19,
            "from 1 to 1000000000",
            "limit 3",
        ),
    ] {
        let errors = parse(&format!("a -> [b] -> c\n{text}\nd -> [e] -> f\n")).expect_err(text);
        assert_eq!(errors.len(), 1, "{errors:?}");
        let error = &errors[0];
        assert_eq!((error.line, error.column), (2, column), "{error}");
        assert!(error.wrong.contains(wrong), "{error}");
        assert!(error.mend.contains(mend), "{error}");
    }
}

/// A text ends behind its last word, and both ways of telling the place say the same.
#[test]
fn a_place_is_told_once_and_inside_the_text() {
    for (text, line, column) in [
        ("a -> [b\n", 1, 8),
        ("a -> [b", 1, 8),
        ("a -> [b] ->\n\n# more\n", 1, 12),
        ("a -> [b] -> c\nqueue b {\n\n", 2, 10),
        ("a -> [b] -> c\nqueue b { reject [b] }\n", 2, 11),
        ("a -> [b] -> c\r\nqueue b { reject [b] }\r\n", 2, 11),
        ("", 1, 1),
        ("\n\n", 1, 1),
        ("cantcolas= 1, cantproctype= 2\n", 1, 30),
    ] {
        let findings = read(text).findings;
        let first = &findings[0];
        assert_eq!((first.line, first.column), (line, column), "{text}");
        let report = testigo_flow::report(&findings, text, "name", false);
        assert!(
            report.contains(&format!("name:{line}:{column}\n")),
            "{report}"
        );
    }
}

/// Advice speaks the notation of what was read, and no notation where there is no text.
#[test]
fn advice_is_in_the_notation_of_the_text() {
    let config = |queues: &str, processes: &str| {
        let (q, p) = (queues.lines().count(), processes.matches("fin").count());
        format!(
            "cantcolas= {q}, cantproctype= {p}\ncolarechazo=r\nBeginCola\n{queues}EndCola\n\
             BeginProceso\n{processes}EndProceso\n"
        )
    };
    let rows = "q, Harcodeado, 1, 2\nr, Harcodeado, 3, 4\n";
    let texts = [
        config("", ""),
        config(rows, "a\ns: q, x\nfin\n"),
        config(rows, "a\ne: q, i: r\nfin\nb\nfin\n"),
    ];
    let mut advice = String::new();
    for text in texts {
        for finding in read(&text).findings {
            advice.push_str(&format!("{finding}\n"));
        }
    }
    for flow_language in ["chain", "->", "declare", "write"] {
        assert!(!advice.contains(flow_language), "{advice}");
    }
    for part in [
        "behind s: of a process",
        "between BeginCola and EndCola",
        "i: the queues",
    ] {
        assert!(advice.contains(part), "{advice}");
    }
    let problems = testigo_flow::check(&testigo_flow::Graph::default());
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "R4: no process creates jobs; let a process create into a queue",
            "R5: no process deletes jobs; let a process delete from a queue"
        ]
    );
    let errors = parse("").expect_err("nothing");
    assert_eq!(errors[0].mend, "write a chain; its first process creates");
}

#[test]
fn a_queue_that_a_configuration_file_does_not_list_is_shown_where_it_is_named() {
    let text = "cantcolas= 1, cantproctype= 2\ncolarechazo=\nBeginCola\nq, Harcodeado, 1, 2\nEndCola\n\
        BeginProceso\na\ns: q, x\nfin\nb\ne: q\nfin\nEndProceso\n";
    let errors = parse(text).expect_err("x");
    let undefined = errors.iter().find(|error| error.rule == Rule::UnknownName);
    let place = undefined.map(|error| (error.line, error.column));
    assert_eq!(place, Some((8, 7)));
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
