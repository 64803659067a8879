//! Text to drawing to text: the identity on canonical texts, and nothing that people wrote is lost.

use testigo_flow::fuzz::Hostile;
use testigo_flow::{
    Flow, Graph, MODELS, Name, Process, Queue, Reject, Rule, Sketch, canonical, lay_out, parse,
    sketch,
};
use testigo_sim::Generator;

/// The samples of the thesis, in all notations, and the flows of the examples.
const SAMPLES: [&str; 8] = [
    include_str!("data/sample-1.classic"),
    include_str!("data/sample-1.config"),
    include_str!("data/sample-1.flow"),
    include_str!("data/sample-2.classic"),
    include_str!("data/sample-2.config"),
    include_str!("../../../examples/flows/orders/orders.flow"),
    include_str!("../../../examples/flows/pictures/pictures.flow"),
    include_str!("../../../examples/flows/scheme/scheme.flow"),
];

fn name(text: &str) -> Name {
    Name::new(text).expect(text)
}

/// Through JSON, as it travels between the editor and the node.
fn travelled(sketch: &Sketch) -> Sketch {
    let json = serde_json::to_string(sketch).expect("JSON");
    serde_json::from_str(&json).expect("the same")
}

/// A text drawn and written again, with and without the old text.
fn there_and_back(text: &str) -> (String, String) {
    let sketched = sketch(text).expect("small enough");
    let drawing = travelled(&sketched.sketch.expect("readable"));
    let (with, without) = (drawing.write(Some(text)), drawing.write(None));
    (with.text.expect("a flow"), without.text.expect("a flow"))
}

fn identity_on(flow: &Flow) {
    let text = canonical(flow);
    let (with, without) = there_and_back(&text);
    assert_eq!(with, text);
    assert_eq!(without, text);
}

#[test]
fn canonical_texts_come_back_as_they_were() {
    let models = MODELS.iter().map(|model| model.text);
    for text in models.chain(SAMPLES) {
        identity_on(&parse(text).expect("valid"));
    }
}

#[test]
fn what_people_wrote_comes_back_too() {
    let models = MODELS.iter().map(|model| model.text);
    let examples = SAMPLES[5..].iter().copied();
    for text in models.chain(examples) {
        let (with, _) = there_and_back(text);
        assert_eq!(with, text, "comments, order and all");
    }
}

/// A graph of a few processes and queues with any arrows and declarations; it need not keep the rules.
fn random_graph(chance: &mut Generator) -> Graph {
    let mut graph = Graph::default();
    let queues: Vec<Name> = (0..chance.between(1, 5))
        .map(|n| name(&format!("q{n}")))
        .collect();
    for queue in &queues {
        let some = |chance: &mut Generator, most: u64| {
            chance.chance(0.3).then(|| chance.between(1, most) as u32)
        };
        let declared = Queue {
            limit: some(chance, 100),
            retries: some(chance, 9),
            reject: match chance.below(6) {
                0 => Reject::Never,
                1 => Reject::To(queues[chance.below(queues.len() as u64) as usize].clone()),
                _ => Reject::Inherited,
            },
            data: chance.chance(0.1).then(|| "/srv/\"odd\\".into()),
            rights: chance
                .chance(0.1)
                .then(|| name("ann"))
                .into_iter()
                .collect(),
            ..Queue::default()
        };
        graph.queues.insert(queue.clone(), declared);
    }
    for n in 0..chance.between(1, 5) {
        let mut process = Process::default();
        for queue in &queues {
            match chance.below(6) {
                0 => {
                    process.passes.insert(queue.clone());
                }
                1 => {
                    process.passes.insert(queue.clone());
                    process.creates.insert(queue.clone());
                }
                2 => {
                    process.takes.insert(queue.clone());
                }
                3 => {
                    process.takes.insert(queue.clone());
                    process.deletes.insert(queue.clone());
                }
                _ => {}
            }
        }
        graph.processes.insert(name(&format!("p{n}")), process);
    }
    if chance.chance(0.3) {
        graph.defaults.reject = Some(queues[chance.below(queues.len() as u64) as usize].clone());
    }
    graph
}

#[test]
fn random_flows_come_back_and_random_drawings_are_judged_as_their_graphs() {
    const GRAPHS: usize = 20_000;
    let mut chance = Generator::new(2024);
    let (mut flows, mut last) = (0, None);
    for _ in 0..GRAPHS {
        let graph = random_graph(&mut chance);
        let drawing = Sketch::of(&graph, &lay_out(&graph, None).expect("small"));
        assert_eq!(
            travelled(&drawing).graph(),
            Ok(graph.clone()),
            "nothing is lost"
        );
        let written = drawing.write(None);
        match Flow::new(graph) {
            Err(problems) => {
                assert_eq!(written.text, None);
                assert!(!written.findings.is_empty() && !problems.is_empty());
            }
            Ok(flow) => {
                flows += 1;
                identity_on(&flow);
                // A drawing that was changed into this one: the text means this one, whatever it was before.
                if let Some(before) = last.replace(canonical(&flow)) {
                    let text = drawing.write(Some(&before)).text.expect("a flow");
                    assert_eq!(parse(&text).as_ref(), Ok(&flow), "from\n{before}to\n{text}");
                }
            }
        }
    }
    assert!(flows > GRAPHS / 200, "too few are flows: {flows}");
}

#[test]
fn hostile_texts_are_drawn_or_not_and_what_is_drawn_means_the_same() {
    let mut hostile = Hostile::new(77);
    for _ in 0..5_000 {
        let text = hostile.text();
        let sketched = sketch(&text).expect("small");
        let Some(drawing) = sketched.sketch else {
            assert!(!sketched.findings.is_empty(), "{text}");
            continue;
        };
        if let Ok(flow) = parse(&text) {
            let again = drawing.write(Some(&text)).text.expect("a flow");
            assert_eq!(parse(&again), Ok(flow), "{text}");
        }
    }
}

/// No word is reserved, and names of the other notations are names here.
#[test]
fn odd_names_come_back() {
    let names = [
        "PROCa",
        "COLAb",
        "proc1",
        "flow",
        "queue",
        "process",
        "limit",
        "none",
        "cantcolas",
        "1",
        "_",
        "ñ",
        "a.b-c",
    ];
    for creator in names {
        for queue in names {
            let mut graph = Graph::default();
            let creates = Process {
                creates: [name(queue)].into(),
                ..Process::default()
            };
            let deletes = Process {
                deletes: [name(queue)].into(),
                ..Process::default()
            };
            graph.add_queue(name(queue), Queue::default()).expect("new");
            graph.add_process(name(creator), creates).expect("new");
            graph.add_process(name("z"), deletes).expect("new");
            identity_on(&Flow::new(graph).expect("valid"));
        }
    }
}

/// Drawings spoilt byte by byte: refused, or written as what they say.
#[test]
fn spoilt_drawings_are_refused_or_mean_what_they_say() {
    const DRAWINGS: usize = 20_000;
    let mut chance = Generator::new(1998);
    let good: Vec<Vec<u8>> = MODELS
        .iter()
        .map(|model| {
            let drawing = sketch(model.text).expect("small").sketch;
            serde_json::to_vec(&drawing.expect("readable")).expect("JSON")
        })
        .collect();
    let pieces: [&[u8]; 10] = [
        b"\"",
        b"{",
        b"]",
        b",",
        b":",
        b"null",
        b"0",
        b"-1",
        b"\"create\"",
        b"1e308",
    ];
    let (mut read, mut flows) = (0, 0);
    for _ in 0..DRAWINGS {
        let mut json = good[chance.below(good.len() as u64) as usize].clone();
        for _ in 0..chance.between(1, 2) {
            let at = chance.below(json.len() as u64) as usize;
            let end = (at + chance.between(0, 4) as usize).min(json.len());
            let piece = pieces[chance.below(pieces.len() as u64) as usize];
            let new = if chance.chance(0.5) { piece } else { &b""[..] };
            json.splice(at..end, new.iter().copied());
        }
        let Ok(drawing) = serde_json::from_slice::<Sketch>(&json) else {
            continue;
        };
        read += 1;
        let written = drawing.write(Some(MODELS[0].text));
        match written.text {
            None => assert!(!written.findings.is_empty()),
            Some(text) => {
                flows += 1;
                let flow = parse(&text).expect("what is written can be read");
                assert_eq!(Ok(flow.into_graph()), drawing.graph());
            }
        }
    }
    assert!(
        read > DRAWINGS / 100 && flows > 10,
        "{read} read, {flows} flows"
    );
}

#[test]
fn a_changed_drawing_keeps_the_words_of_its_text() {
    let text = "# Why.\na -> [q] -> b  # the usual way\nqueue q { limit 5 }  # small\n";
    let mut drawing = sketch(text).expect("small").sketch.expect("readable");
    drawing.queues[0].limit = Some(6);
    let written = drawing.write(Some(text));
    let wanted = "# Why.\na -> [q] -> b  # the usual way\nqueue q { limit 6 }  # small\n";
    assert_eq!(written.text.as_deref(), Some(wanted));
}

#[test]
fn an_unfinished_drawing_has_no_text_but_findings() {
    let mut drawing = sketch("a -> [q] -> b")
        .expect("small")
        .sketch
        .expect("readable");
    drawing.arrows.retain(|arrow| arrow.does.puts());
    let written = drawing.write(Some("a -> [q] -> b"));
    assert_eq!(written.text, None);
    let rules: Vec<Rule> = written
        .findings
        .iter()
        .map(|finding| finding.rule)
        .collect();
    assert!(
        rules.contains(&Rule::R1) && rules.contains(&Rule::R5),
        "{rules:?}"
    );
    assert_eq!(Sketch::default().write(None).text, None);
}

/// What no editor draws is refused with what is wrong.
#[test]
fn impossible_drawings_are_refused() {
    let good = sketch("a -> [q] -> b")
        .expect("small")
        .sketch
        .expect("readable");
    let spoil = |change: fn(&mut Sketch)| {
        let mut drawing = good.clone();
        change(&mut drawing);
        let written = drawing.write(None);
        assert_eq!(written.text, None);
        let [finding] = written.findings.as_slice() else {
            panic!("one reason: {:?}", written.findings);
        };
        (finding.rule, finding.message.clone())
    };
    assert_eq!(
        spoil(|s| s.queues.push(s.queues[0].clone())).0,
        Rule::Duplicate
    );
    assert_eq!(
        spoil(|s| s.processes.push(s.processes[0].clone())).0,
        Rule::Duplicate
    );
    assert_eq!(
        spoil(|s| s.arrows.push(s.arrows[0].clone())).0,
        Rule::Duplicate
    );
    let (rule, message) = spoil(|s| s.arrows[0].queue = name("nowhere"));
    assert!(
        rule == Rule::UnknownName && message.contains("no queue nowhere"),
        "{message}"
    );
    let (rule, message) = spoil(|s| s.arrows[0].process = name("nobody"));
    assert!(
        rule == Rule::UnknownName && message.contains("no process nobody"),
        "{message}"
    );
    let (rule, message) = spoil(|s| {
        for n in 0..400 {
            let mut queue = s.queues[0].clone();
            queue.name = name(&format!("q{n}"));
            s.queues.push(queue);
        }
    });
    assert!(
        rule == Rule::Limit && message.contains("at most 400"),
        "{message}"
    );
    let (rule, _) = spoil(|s| s.arrows.extend(vec![s.arrows[0].clone(); 10_001]));
    assert_eq!(rule, Rule::Limit);
}

#[test]
fn json_that_is_no_drawing_is_refused_with_why() {
    for (json, why) in [
        ("{}", "missing field `processes`"),
        ("[]", "expected struct Sketch"),
        (
            r#"{"processes":[],"queues":[],"arrows":[],"more":1}"#,
            "unknown field `more`",
        ),
        (
            r#"{"processes":[{"name":"a b"}],"queues":[],"arrows":[]}"#,
            "does not fit in a name",
        ),
        (
            r#"{"processes":[{"name":""}],"queues":[],"arrows":[]}"#,
            "a name is empty",
        ),
        (
            r#"{"processes":[{"name":"a","x":1e999}],"queues":[],"arrows":[]}"#,
            "out of range",
        ),
        (
            r#"{"processes":[{"name":"a","limit":-1}],"queues":[],"arrows":[]}"#,
            "integer `-1`",
        ),
        (
            r#"{"processes":[],"queues":[],"arrows":[{"process":"a","queue":"q","does":"eat"}]}"#,
            "unknown variant `eat`",
        ),
    ] {
        let refusal = serde_json::from_str::<Sketch>(json)
            .expect_err(json)
            .to_string();
        assert!(refusal.contains(why), "{json}: {refusal}");
    }
}

#[test]
fn a_flow_too_large_to_be_drawn_is_told_so() {
    let text: String = (0..200)
        .map(|n| format!("a{n} -> [q{n}] -> b{n}\n"))
        .collect();
    assert!(sketch(&text).is_err());
}
