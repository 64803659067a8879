//! The acceptance checks of the thesis on queue architectures that concern its language, its graph and its configuration
//! file. Each test bears the sentence that it checks.

use testigo_flow::{
    Document, Flow, Graph, Name, Notation, Process, Queue, Rule, check, config, parse,
};
use testigo_sim::Generator;

const SAMPLE_1: &str = include_str!("data/sample-1.classic");
const SAMPLE_1_FLOW: &str = include_str!("data/sample-1.flow");
const SAMPLE_1_CONFIG: &str = include_str!("data/sample-1.config");
const SAMPLE_2: &str = include_str!("data/sample-2.classic");
const SAMPLE_2_CONFIG: &str = include_str!("data/sample-2.config");

fn flow(text: &str) -> Flow {
    parse(text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
}

fn exported(text: &str) -> String {
    config(&flow(text)).expect("a file can say it").text
}

/// Part 1, check 1; part 2, scenario 1.
#[test]
fn the_samples_compile_to_the_printed_files() {
    assert_eq!(exported(SAMPLE_1), SAMPLE_1_CONFIG);
    // The second sample's rows stand in order of first appearance, and its lists repeat their mark: the sets are the same.
    assert_eq!(flow(SAMPLE_2), flow(SAMPLE_2_CONFIG));
    assert_eq!(flow(SAMPLE_1), flow(SAMPLE_1_CONFIG));
    // The thesis prints P6 with an output; its own chains say otherwise, and the first rule would be broken.
    let printed = SAMPLE_1_CONFIG.replace("e: C6", "s: C6");
    let errors = parse(&printed).expect_err("as printed");
    assert_eq!(
        (errors[0].rule, errors[0].line),
        (Rule::R1, 9),
        "{errors:?}"
    );
}

/// Part 1, check 1, second half.
#[test]
fn recompiling_any_reordering_of_the_chains_gives_the_same_file() {
    let mut generator = Generator::new(1);
    let mut lines: Vec<&str> = SAMPLE_1.lines().collect();
    for _ in 0..200 {
        for last in (1..lines.len()).rev() {
            lines.swap(last, generator.below(last as u64 + 1) as usize);
        }
        // Ends of lines mean nothing.
        let separator = if generator.chance(0.5) { " " } else { "\n" };
        assert_eq!(exported(&lines.join(separator)), SAMPLE_1_CONFIG);
    }
}

#[test]
fn the_first_sample_has_the_derived_relations() {
    let flow = flow(SAMPLE_1);
    let all = |names: &std::collections::BTreeSet<Name>| -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    };
    for (process, takes, passes, creates, deletes) in [
        (
            "P1",
            vec![],
            vec!["C1", "C2", "C3", "C4"],
            vec!["C1", "C2", "C3", "C4"],
            vec![],
        ),
        ("P2", vec!["C1", "C2"], vec!["C7"], vec![], vec![]),
        ("P3", vec!["C3", "C7"], vec!["C5", "C8"], vec![], vec![]),
        (
            "P4",
            vec!["C4", "C8"],
            vec!["C3", "C5", "C6"],
            vec![],
            vec![],
        ),
        ("P5", vec!["C5"], vec![], vec![], vec!["C5"]),
        ("P6", vec!["C6"], vec![], vec![], vec!["C6"]),
    ] {
        let found = &flow.processes[process];
        assert_eq!(all(&found.takes), takes, "{process}");
        assert_eq!(all(&found.passes), passes, "{process}");
        assert_eq!(all(&found.creates), creates, "{process}");
        assert_eq!(all(&found.deletes), deletes, "{process}");
    }
}

#[test]
fn the_notations_convert_both_ways() {
    let classic = Document::parse_classic(SAMPLE_1).expect("readable");
    assert_eq!(classic.to_string(), SAMPLE_1_FLOW);
    let modern = Document::parse(SAMPLE_1_FLOW).expect("readable");
    assert_eq!(modern.classic().expect("plain names").text, SAMPLE_1);
    assert_eq!(flow(SAMPLE_1), flow(SAMPLE_1_FLOW));
}

/// Whether a string of `P` and `C` is `( P ( C P )+ )+`, by an automaton apart from the parser.
fn is_sentence(classes: &str) -> bool {
    // 0: a chain must start; 1: P read, a queue must follow; 2: C read; 3: P read, all may follow.
    let mut state = 0;
    for class in classes.chars() {
        state = match (state, class) {
            (0, 'P') | (3, 'P') => 1,
            (1, 'C') | (3, 'C') => 2,
            (2, 'P') => 3,
            _ => return false,
        };
    }
    state == 3
}

fn written(classes: &str) -> String {
    let token = |(at, class)| match class {
        'P' => format!("PROC{at}"),
        _ => format!("COLA{at}"),
    };
    let tokens: Vec<String> = classes.chars().enumerate().map(token).collect();
    tokens.join(" ")
}

/// Part 1, check 2.
#[test]
fn each_single_token_deletion_is_rejected_or_yields_another_sentence() {
    let chain = "PCPCPCPCP";
    for at in 0..chain.len() {
        let mut classes = chain.to_owned();
        classes.remove(at);
        assert_eq!(
            parse(&written(&classes)).is_ok(),
            is_sentence(&classes),
            "{classes}"
        );
    }
    for text in SAMPLE_1.lines() {
        let tokens: Vec<&str> = text.split(' ').collect();
        for at in 0..tokens.len() {
            let mut tokens = tokens.clone();
            tokens.remove(at);
            let classes: String = tokens
                .iter()
                .map(|token| token.as_bytes()[0] as char)
                .collect();
            assert_eq!(
                parse(&tokens.join(" ")).is_ok(),
                is_sentence(&classes),
                "{tokens:?}"
            );
        }
    }
}

/// Part 1, check 2, second half: every string of up to eleven tokens, and long random ones.
#[test]
fn the_parser_agrees_with_the_regular_expression() {
    let mut agreed = 0;
    for length in 1..=11 {
        for bits in 0..1_u32 << length {
            let class = |at: u32| if bits >> at & 1 == 0 { 'P' } else { 'C' };
            let classes: String = (0..length).map(class).collect();
            let accepted = parse(&written(&classes)).is_ok();
            assert_eq!(accepted, is_sentence(&classes), "{classes}");
            agreed += u32::from(accepted);
        }
    }
    assert!(agreed > 0, "some strings are sentences");
    let mut generator = Generator::new(2);
    for _ in 0..2_000 {
        // Mostly right, so that long ones get far.
        let mut classes = "P".to_owned();
        while generator.chance(0.95) {
            let likely = if classes.ends_with('P') { "CP" } else { "P" };
            let unlikely = if generator.chance(0.9) { likely } else { "C" };
            classes.push_str(unlikely);
        }
        assert_eq!(
            parse(&written(&classes)).is_ok(),
            is_sentence(&classes),
            "{classes}"
        );
    }
}

/// Part 2, scenario 2.
#[test]
fn malformed_chains_give_an_error_with_its_position() {
    for (text, rule, line, column) in [
        ("PROCa PROCb", Rule::Syntax, 1, 1),
        ("COLAa PROCb", Rule::R1, 1, 1),
        ("PROCa\n  COLAb", Rule::R1, 2, 3),
        ("PROCa COLAb COLAc PROCd", Rule::R1, 1, 7),
        ("PROCa COLAb PROCc PROCd", Rule::Syntax, 1, 19),
        ("PROCa Bcola PROCc", Rule::Syntax, 1, 7),
        ("PROC COLAb PROCc", Rule::Syntax, 1, 1),
        ("PROCa COLAb-c PROCc", Rule::Syntax, 1, 7),
    ] {
        assert_eq!(Notation::of(text), Notation::Classic, "{text}");
        let errors = parse(text).expect_err(text);
        let error = &errors[0];
        assert_eq!(
            (error.rule, error.line, error.column),
            (rule, line, column),
            "{text}: {error}"
        );
    }
}

#[test]
fn both_spellings_of_a_prefix_denote_the_same_and_names_keep_their_case() {
    assert_eq!(flow("PROCa COLAb PROCc"), flow("proca colab procc"));
    assert_ne!(flow("PROCa COLAb PROCc"), flow("PROCA COLAb PROCc"));
}

fn names(list: &[&str]) -> std::collections::BTreeSet<Name> {
    list.iter()
        .map(|text| Name::new(text).expect("a name"))
        .collect()
}

/// A graph by hand: processes with what they take, pass, create and delete.
fn graph(queues: &[&str], processes: &[(&str, [&[&str]; 4])]) -> Graph {
    let mut graph = Graph::default();
    for name in names(queues) {
        graph.queues.insert(name, Queue::default());
    }
    for (name, [takes, passes, creates, deletes]) in processes {
        let process = Process {
            takes: names(takes),
            passes: names(passes),
            creates: names(creates),
            deletes: names(deletes),
            ..Process::default()
        };
        graph
            .processes
            .insert(Name::new(name).expect("a name"), process);
    }
    graph
}

fn broken(graph: &Graph) -> Vec<Rule> {
    check(graph).iter().map(|problem| problem.rule).collect()
}

const A: (&str, [&[&str]; 4]) = ("a", [&[], &["q"], &["q"], &[]]);
const B: (&str, [&[&str]; 4]) = ("b", [&["q"], &[], &[], &["q"]]);

/// Part 1, check 3, first half: V1 to V8 and V11 on graphs; V9 is of the file, V10 of the editor.
#[test]
fn each_check_has_a_failing_configuration() {
    assert_eq!(broken(&graph(&["q"], &[A, B])), []);
    // V1
    assert_eq!(broken(&graph(&["q", "r"], &[A, B])), [Rule::R1, Rule::R1]);
    // V2
    let b = ("b", [&["q"][..], &[], &[], &["q"]]);
    let c = ("c", [&[][..], &["q"], &[], &[]]);
    assert_eq!(broken(&graph(&["q"], &[A, b, c])), [Rule::R2]);
    // V3
    let c = ("c", [&["q"][..], &[], &[], &[]]);
    assert_eq!(broken(&graph(&["q"], &[A, b, c])), [Rule::R3]);
    // V4 and V5: two processes that hand jobs to each other for ever
    let x = ("x", [&["q"][..], &["r"], &[], &[]]);
    let y = ("y", [&["r"][..], &["q"], &[], &[]]);
    assert_eq!(broken(&graph(&["q", "r"], &[x, y])), [Rule::R4, Rule::R5]);
    // V6
    let b = ("b", [&["q", "nowhere"][..], &[], &[], &["q", "nowhere"]]);
    assert_eq!(broken(&graph(&["q"], &[A, b])), [Rule::UnknownName]);
    // V7
    let mut wrong = graph(&["q"], &[A, B]);
    wrong.defaults.reject = Some(Name::new("nowhere").expect("a name"));
    assert_eq!(broken(&wrong), [Rule::RejectQueue]);
    // V11: the same two beside a flow that is right
    let x = ("x", [&["r"][..], &["s"], &[], &[]]);
    let y = ("y", [&["s"][..], &["r"], &[], &[]]);
    assert_eq!(
        broken(&graph(&["q", "r", "s"], &[A, B, x, y])),
        [Rule::Way; 4]
    );
}

/// V8 and V9, and what else can be wrong with a file.
#[test]
fn a_wrong_configuration_file_is_refused_at_its_place() {
    for (from, to, rule, line) in [
        ("cantcolas= 8", "cantcolas= 9", Rule::Count, 1),
        ("cantproctype= 6", "cantproctype= 5", Rule::Count, 1),
        ("C2, Harc", "C1, Harc", Rule::Duplicate, 5),
        ("P2\n", "P1\n", Rule::Duplicate, 17),
        ("e: C5\n", "e: C5, C9\n", Rule::UnknownName, 27),
        ("colarechazo=", "colarechazo=C9", Rule::RejectQueue, 2),
        ("e: C6\n", "C6\n", Rule::Syntax, 30),
        (
            "C1, Harcodeado, 805306372",
            "C1, Harcodeado, x",
            Rule::Syntax,
            4,
        ),
        ("EndCola\n", "", Rule::Syntax, 12),
        ("fin\nEndProceso\n", "fin\n", Rule::Syntax, 31),
        ("EndProceso\n", "EndProceso\nmore\n", Rule::Syntax, 33),
        ("BeginCola", "Begincola", Rule::Syntax, 3),
    ] {
        let text = SAMPLE_1_CONFIG.replacen(from, to, 1);
        let errors = parse(&text).expect_err(to);
        assert!(
            errors
                .iter()
                .any(|error| (error.rule, error.line) == (rule, line)),
            "{from} -> {to}: {errors:?}"
        );
    }
}

/// Part 1, check 3, second half: V1 to V5 and V11 hold for whatever the grammar makes.
#[test]
fn every_parsed_sentence_keeps_the_rules() {
    let mut generator = Generator::new(3);
    for _ in 0..5_000 {
        let mut tokens = Vec::new();
        for _ in 0..generator.between(1, 5) {
            tokens.push(format!("PROC{}", generator.below(5)));
            for _ in 0..generator.between(1, 5) {
                tokens.push(format!("COLA{}", generator.below(5)));
                tokens.push(format!("PROC{}", generator.below(5)));
            }
        }
        let text = tokens.join(" ");
        let mut graph = Graph::default();
        for chain in Document::parse_classic(&text).expect("a sentence").chains() {
            graph.add_chain(chain);
        }
        assert_eq!(check(&graph), [], "{text}");
        // The file says the same, with i: and f: where it must.
        let file = config(&Flow::new(graph.clone()).expect("checked"))
            .expect("plain names")
            .text;
        assert_eq!(*flow(&file), graph, "{file}");
    }
}

/// Configuration files carry the reject queue and the directories; what they cannot carry is said.
#[test]
fn a_file_keeps_directories_and_the_reject_queue() {
    let text = "a -> [q] -> b\nb -> [q] -> a\nflow { reject [r]; retries 2 }\nqueue q { data \"/srv/q\"; limit 5 }\nqueue r";
    let flow = flow(text);
    let file = config(&flow).expect("plain names");
    assert!(file.text.contains("colarechazo=r\n"), "{}", file.text);
    assert!(
        file.text.contains("q, /srv/q, 805306372, 805306373\n"),
        "{}",
        file.text
    );
    assert!(
        file.text.contains("a\ne: q, s: q, i: q, f: q\nfin\n"),
        "{}",
        file.text
    );
    assert_eq!(file.unsaid, ["flow { retries 2 }", "queue q { limit 5 }"]);
    let again = parse(&file.text).expect("readable");
    assert_eq!(again.queues["q"].data.as_deref(), Some("/srv/q"));
    assert_eq!(again.processes, flow.processes);
}
