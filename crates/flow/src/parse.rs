//! Reading a flow: the text, its graph, the rules.

use crate::advice::Advice;
use crate::check::check_as;
use crate::config::read_config;
use crate::limits::DIAGNOSTICS_MAX;
use crate::text::Built;
use crate::{Diagnostic, Document, Flow, Graph, Notation, Problem, Weight};

/// Reads a flow that may run, in any [`Notation`], or says all that is wrong with it and where.
pub fn parse(text: &str) -> Result<Flow, Vec<Diagnostic>> {
    let Reading {
        flow, mut findings, ..
    } = read(text);
    findings.retain(|finding| finding.weight == Weight::Error);
    flow.ok_or(findings)
}

/// What reading a text gave.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The statements, when the text could be read at all.
    pub document: Option<Document>,
    /// What the text describes as far as it could be read, whether it keeps the rules or not.
    pub graph: Graph,
    /// The flow, when it keeps the rules.
    pub flow: Option<Flow>,
    /// Errors and warnings, in the order of the text.
    pub findings: Vec<Diagnostic>,
}

impl Reading {
    pub(crate) fn unreadable(findings: Vec<Diagnostic>) -> Reading {
        Reading {
            document: None,
            graph: Graph::default(),
            flow: None,
            findings,
        }
    }
}

/// Reads a text with everything that there is to say about it.
pub fn read(text: &str) -> Reading {
    let document = match Notation::of(text) {
        Notation::Flow => Document::parse(text),
        Notation::Classic => Document::parse_classic(text),
        Notation::Config => return read_config(text),
    };
    let document = match document {
        Ok(document) => document,
        Err(findings) => {
            return Reading::unreadable(findings);
        }
    };
    let built = Built::from_document(text, &document);
    finish(text, Some(document), built)
}

/// The rules, and all findings in the order of the text.
pub(crate) fn finish(text: &str, document: Option<Document>, built: Built) -> Reading {
    let Built {
        graph,
        places,
        errors: mut findings,
    } = built;
    if findings.is_empty() {
        let mut problems = check_as(&graph, Advice(Some(Notation::of(text))));
        // Errors first, so that warnings never push one out.
        let place = |problem: &Problem| places.of(&problem.about).start;
        problems.sort_by_key(|problem| (problem.weight, place(problem), problem.rule));
        problems.truncate(DIAGNOSTICS_MAX);
        let found = problems
            .into_iter()
            .map(|problem| places.diagnostic(text, problem));
        findings.extend(found);
    }
    findings.sort_by_key(|finding| (finding.span.start, finding.rule));
    let valid = findings
        .iter()
        .all(|finding| finding.weight == Weight::Warning);
    Reading {
        document,
        flow: valid.then(|| Flow::checked(graph.clone())),
        graph,
        findings,
    }
}
