//! Findings as people read them: the line of the text, the place marked, the rule, and how to mend it.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::{Diagnostic, Weight};

/// All findings of a text; `name` is what the text is called. Colour is for terminals.
pub fn report(findings: &[Diagnostic], text: &str, name: &str, colour: bool) -> String {
    let renderer = match colour {
        true => Renderer::styled(),
        false => Renderer::plain(),
    };
    let mut report = String::new();
    for finding in findings {
        report.push_str(&renderer.render(&[group(finding, text, name)]));
        report.push_str("\n\n");
    }
    report.truncate(report.trim_end().len());
    report
}

fn group<'a>(finding: &'a Diagnostic, text: &'a str, name: &'a str) -> Group<'a> {
    let level = match finding.weight {
        Weight::Error => Level::ERROR,
        Weight::Warning => Level::WARNING,
    };
    let label = finding.rule.sentence();
    let mark = AnnotationKind::Primary
        .span(finding.span.clone())
        .label(label);
    let snippet = Snippet::source(text).path(name).annotation(mark);
    level
        .primary_title(&finding.wrong)
        .id(finding.rule.word())
        .element(snippet)
        .element(Level::HELP.message(&finding.mend))
}
