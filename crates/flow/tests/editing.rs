//! Editing a flow: what is refused at once, and that the text keeps what people wrote.

use testigo_flow::{
    Document, Flow, Graph, Name, Process, Queue, Rule, check, parse, plan, revise, revise_config,
};

fn name(text: &str) -> Name {
    Name::new(text).expect(text)
}

/// Part 1, check 3, V10; part 2, section 5.4.
#[test]
fn a_queue_that_is_used_cannot_be_removed() {
    let mut graph = parse("a -> [q] -> b\nflow { reject [r] }\nqueue r")
        .expect("valid")
        .into_graph();
    let before = graph.clone();
    let refusal = graph.remove_queue(&name("q")).expect_err("used");
    assert_eq!(refusal.rule, Rule::InUse);
    assert!(refusal.message.contains("a, b"), "{refusal}");
    let refusal = graph.remove_queue(&name("r")).expect_err("used");
    assert_eq!(refusal.rule, Rule::InUse);
    assert_eq!(graph, before, "a refused change changes nothing");
    graph.set_reject(None).expect("allowed");
    graph.remove_queue(&name("r")).expect("unused");
}

#[test]
fn names_are_neither_doubled_nor_missing() {
    let mut graph = parse("a -> [q] -> b").expect("valid").into_graph();
    let before = graph.clone();
    let takes = |queue: &str| Process {
        takes: [name(queue)].into(),
        ..Process::default()
    };
    let refusals = [
        graph.add_queue(name("q"), Queue::default()),
        graph.add_process(name("a"), takes("q")),
        graph.add_process(name("c"), takes("nowhere")),
        graph.change_process(&name("c"), takes("q")),
        graph.remove_process(&name("c")),
        graph.remove_queue(&name("nowhere")),
        graph.change_queue(&name("nowhere"), Queue::default()),
        graph.set_reject(Some(name("nowhere"))),
    ];
    let rules: Vec<Rule> = refusals
        .into_iter()
        .map(|r| r.expect_err("refused").rule)
        .collect();
    use Rule::{Duplicate, RejectQueue, UnknownName};
    let wanted = [
        Duplicate,
        Duplicate,
        UnknownName,
        UnknownName,
        UnknownName,
        UnknownName,
        UnknownName,
        RejectQueue,
    ];
    assert_eq!(rules, wanted);
    assert_eq!(graph, before);
}

#[test]
fn a_flow_can_be_built_from_nothing() {
    let mut graph = Graph::default();
    graph.add_queue(name("q"), Queue::default()).expect("new");
    assert!(!check(&graph).is_empty(), "not valid yet");
    let creator = Process {
        creates: [name("q")].into(),
        ..Process::default()
    };
    let deleter = Process {
        deletes: [name("q")].into(),
        ..Process::default()
    };
    graph.add_process(name("a"), creator).expect("new");
    graph.add_process(name("b"), deleter).expect("new");
    assert_eq!(
        Flow::new(graph).expect("valid").to_string(),
        "a -> [q] -> b\n"
    );
}

const TEXT: &str = "\
# Why this flow is there.
a -> [q] -> b  # the usual way

# Sometimes.
a -> [r] -> c -> [q] -> b
queue q { limit 5 }  # small
# Done.
";

#[test]
fn a_changed_flow_keeps_the_words_of_its_text() {
    let document = Document::parse(TEXT).expect("readable");
    let flow = parse(TEXT).expect("valid");
    assert_eq!(revise(&document, &flow).to_string(), TEXT);

    let mut graph = flow.into_graph();
    graph.remove_process(&name("c")).expect("there");
    let mut a = graph.processes["a"].clone();
    a.creates.remove("r");
    a.passes.remove("r");
    graph.change_process(&name("a"), a).expect("there");
    graph.remove_queue(&name("r")).expect("unused");
    graph.queues.get_mut("q").expect("there").limit = Some(6);
    graph.add_queue(name("s"), Queue::default()).expect("new");
    graph.set_reject(Some(name("s"))).expect("there");
    let flow = Flow::new(graph).expect("valid");
    let revised = revise(&document, &flow).to_string();
    let wanted = "\
# Why this flow is there.
a -> [q] -> b  # the usual way
queue q { limit 6 }  # small
flow { reject [s] }
queue s
# Done.
";
    assert_eq!(revised, wanted);
    assert_eq!(parse(&revised), Ok(flow));
}

/// Any change of one flow into another, by way of the first one's text, gives the second.
#[test]
fn revising_gives_the_flow_that_is_wanted() {
    let mut generator = testigo_sim::Generator::new(8);
    let mut sentence = || {
        let mut text = String::new();
        for _ in 0..generator.between(1, 4) {
            text.push_str(&format!("p{}", generator.below(4)));
            for _ in 0..generator.between(1, 4) {
                text.push_str(&format!(
                    " -> [q{}] -> p{}",
                    generator.below(4),
                    generator.below(4)
                ));
            }
            text.push('\n');
        }
        text
    };
    for _ in 0..2_000 {
        let (old, new) = (sentence(), sentence());
        let wanted = parse(&new).expect("valid");
        let revised = revise(&Document::parse(&old).expect("readable"), &wanted).to_string();
        let flow = parse(&revised).unwrap_or_else(|errors| panic!("{errors:?}\n{revised}"));
        assert!(
            plan(&wanted, &flow, &Default::default()).is_empty(),
            "{old}{new}{revised}"
        );
        assert_eq!(flow, wanted);
    }
}

/// Part 1, check 16; part 2, scenario 16, as far as the comparison goes.
#[test]
fn a_plan_names_the_jobs_of_a_queue_that_vanishes() {
    let old = parse("a -> [q] -> b -> [r] -> c").expect("valid");
    let new = parse("a -> [q] -> c").expect("valid");
    let jobs = [(name("q"), 4), (name("r"), 2)].into();
    let mut plan = plan(&old, &new, &jobs);
    assert_eq!(plan.stranded.len(), 1);
    assert_eq!(
        (plan.stranded[0].queue.as_str(), plan.stranded[0].jobs),
        ("r", 2)
    );
    for (names, said) in [
        (vec![], "2 jobs in it;"),
        (vec!["j-1"], "2 jobs in it (j-1 and 1 more);"),
        (vec!["j-1", "j-2"], "2 jobs in it (j-1, j-2);"),
    ] {
        plan.stranded[0].names = names.into_iter().map(str::to_owned).collect();
        let line = plan.stranded[0].to_string();
        assert!(line.contains(said), "{line}");
    }
}

/// What a page draws is a graph, sent as JSON.
#[test]
fn text_to_drawing_to_text_is_the_identity() {
    let texts = testigo_flow::MODELS.map(|model| model.text);
    for text in texts.into_iter().chain([TEXT]) {
        let document = Document::parse(text).expect("readable");
        let drawn = serde_json::to_string(parse(text).expect("valid").graph()).expect("JSON");
        let graph: Graph = serde_json::from_str(&drawn).expect("a graph");
        let flow = Flow::new(graph).expect("valid");
        assert_eq!(revise(&document, &flow).to_string(), text);
    }
}

/// What stands above the first statement is about the text.
#[test]
fn the_head_of_a_text_stays_when_its_first_chain_goes() {
    let text = "# Why this flow is there.\na -> [q] -> b\n\n# The other way.\nc -> [r] -> d\n";
    let document = Document::parse(text).expect("readable");
    let flow = parse("c -> [r] -> d").expect("valid");
    assert_eq!(
        revise(&document, &flow).to_string(),
        "# Why this flow is there.\n\n# The other way.\nc -> [r] -> d\n"
    );
}

const CONFIG: &str = "\
# Our orders.

cantcolas= 2, cantproctype= 3  # counted
colarechazo=
BeginCola
# Orders wait here.
orders, /srv/orders, 700, 701  # large
done, Harcodeado, 9, 10
EndCola
BeginProceso

# The clerk's.
pay
e: orders,  # in
s: done  # out
fin
make
s: orders
fin
end
e: done
fin  # the end
EndProceso
# Nothing follows.
";

#[test]
fn a_configuration_file_keeps_its_comments_order_and_numbers() {
    let mut graph = parse(CONFIG).expect("valid").into_graph();
    graph.queues.get_mut("orders").expect("there").data = Some("/data".into());
    graph
        .add_queue(name("failed"), Queue::default())
        .expect("new");
    graph.set_reject(Some(name("failed"))).expect("there");
    let flow = Flow::new(graph).expect("valid");
    let revised = revise_config(CONFIG, &flow).expect("plain names");
    let wanted = CONFIG
        .replace("cantcolas= 2", "cantcolas= 3")
        .replace("colarechazo=", "colarechazo=failed")
        .replace("/srv/orders", "/data")
        .replace("EndCola", "failed, Harcodeado, 702, 703\nEndCola")
        .replace("e: orders,  # in\ns: done", "# in\ne: orders, s: done");
    assert_eq!((revised.text, revised.unsaid), (wanted.clone(), vec![]));
    assert_eq!(parse(&wanted), Ok(flow.clone()));
    let again = revise_config(&wanted, &flow).expect("plain names");
    assert_eq!(again.text, wanted, "what was written so stays so");
    let empty = revise_config("", &flow).expect("plain names");
    assert_eq!(Ok(empty), testigo_flow::config(&flow));
}

#[test]
fn the_comments_of_a_configuration_file_come_along_into_the_language() {
    let text = testigo_flow::read(CONFIG)
        .document
        .expect("readable")
        .to_string();
    assert!(text.starts_with("# Our orders.\n# counted\n# Orders wait here.\n"));
    assert!(
        text.contains("# Nothing follows.\n\nmake -> [orders] -> pay"),
        "{text}"
    );
}
