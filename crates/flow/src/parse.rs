//! Reading a flow: the text, its graph, the rules.

use crate::limits::DIAGNOSTICS_MAX;
use crate::text::Built;
use crate::{Diagnostic, Document, Flow, Weight, check};

/// Reads a flow that may run, or says all that is wrong with it and where.
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
    /// The flow, when it keeps the rules.
    pub flow: Option<Flow>,
    /// Errors and warnings, in the order of the text.
    pub findings: Vec<Diagnostic>,
}

/// Reads a text with everything that there is to say about it.
pub fn read(text: &str) -> Reading {
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(findings) => {
            return Reading {
                document: None,
                flow: None,
                findings,
            };
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
        let problems = check(&graph);
        findings.extend(
            problems
                .into_iter()
                .map(|problem| places.diagnostic(text, problem)),
        );
    }
    findings.sort_by_key(|finding| (finding.span.start, finding.rule));
    let valid = findings
        .iter()
        .all(|finding| finding.weight == Weight::Warning);
    findings.truncate(DIAGNOSTICS_MAX);
    Reading {
        document,
        flow: valid.then(|| Flow::checked(graph)),
        findings,
    }
}
