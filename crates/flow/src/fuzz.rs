//! Hostile texts: a source of them, and what must hold whatever a text says. Tests run a bounded number, and a chaos run
//! as many as it likes.

use testigo_sim::Generator;

use crate::{Document, MODELS, Notation, config, parse, read, report, revise};

/// Pieces that texts of the three notations are made of, and some that belong nowhere.
const PIECES: [&str; 56] = [
    "->",
    "[",
    "]",
    "{",
    "}",
    ";",
    ",",
    "\"",
    "#",
    "\n",
    " ",
    "\t",
    "a",
    "b",
    "q",
    "r",
    "-",
    ">",
    "->[",
    "]->",
    "queue ",
    "process ",
    "flow ",
    "limit ",
    "order ",
    "retries ",
    "reject ",
    "rights ",
    "data ",
    "arrival",
    "priority",
    "key",
    "none",
    "0",
    "1",
    "7",
    "4294967296",
    "PROCa ",
    "procb ",
    "COLAc ",
    "colad ",
    "PROC",
    "cantcolas= ",
    "cantproctype= ",
    "colarechazo=",
    "BeginCola\n",
    "EndCola\n",
    "BeginProceso\n",
    "EndProceso\n",
    "fin\n",
    "e: ",
    "s: ",
    "i: ",
    "\u{feff}",
    "ñ",
    "\u{1F600}",
];

/// The longest hostile text, in pieces.
const PIECES_MAX: u64 = 60;

/// Findings of a text that are also shown as people read them; all would take most of the time.
const SHOWN: usize = 2;

/// A source of hostile texts; one seed gives one sequence.
#[derive(Debug)]
pub struct Hostile {
    generator: Generator,
    /// The models in all notations, to be spoilt.
    good: Vec<Vec<char>>,
}

impl Hostile {
    pub fn new(seed: u64) -> Hostile {
        let mut good = Vec::new();
        for model in MODELS {
            let reading = read(model.text);
            let classic = reading
                .document
                .and_then(|document| document.classic().ok());
            let config = reading.flow.and_then(|flow| config(&flow).ok());
            let texts = [
                Some(model.text.to_owned()),
                classic.map(|c| c.text),
                config.map(|c| c.text),
            ];
            good.extend(
                texts
                    .into_iter()
                    .flatten()
                    .map(|text| text.chars().collect()),
            );
        }
        Hostile {
            generator: Generator::new(seed),
            good,
        }
    }

    /// A text that tries to break the reader: loose pieces, or a good text with some of it cut, doubled or replaced.
    pub fn text(&mut self) -> String {
        let generator = &mut self.generator;
        if generator.chance(0.4) {
            let pieces = generator.between(0, PIECES_MAX);
            return (0..pieces).map(|_| piece(generator)).collect();
        }
        let mut text = self.good[generator.below(self.good.len() as u64) as usize].clone();
        for _ in 0..generator.between(1, 6) {
            let at = generator.below(text.len() as u64 + 1) as usize;
            let end = (at + generator.between(0, 12) as usize).min(text.len());
            let new: Vec<char> = match generator.below(3) {
                0 => Vec::new(),
                1 => piece(generator).chars().collect(),
                _ => [&text[at..end], &text[at..end]].concat(),
            };
            text.splice(at..end, new);
        }
        text.into_iter().collect()
    }
}

fn piece(generator: &mut Generator) -> &'static str {
    PIECES[generator.below(PIECES.len() as u64) as usize]
}

/// Reads a text whatever it is, and says what does not hold: a finding lies in the text, a flow that was read is the same
/// after writing, in each notation that can say it, and writing twice changes nothing.
pub fn withstand(text: &str) -> Result<(), String> {
    let reading = read(text);
    let lines = text.split('\n').count();
    for finding in &reading.findings {
        let whole = text.get(finding.span.clone()).is_some();
        if !whole || finding.line == 0 || finding.line > lines || finding.column == 0 {
            return Err(format!("a finding lies outside of the text: {finding:?}"));
        }
    }
    let shown = &reading.findings[..reading.findings.len().min(SHOWN)];
    report(shown, text, "text", false);
    let (Some(flow), Some(document)) = (reading.flow, reading.document) else {
        return match reading.findings.is_empty() {
            true => Err("no flow, and no reason".into()),
            false => Ok(()),
        };
    };
    let written = document.to_string();
    let same = |what: &str, text: &str| match parse(text) {
        Ok(again) if again == flow => Ok(()),
        _ => Err(format!("{what} means something else:\n{text}")),
    };
    same("the written text", &written)?;
    same("the canonical text", &flow.to_string())?;
    let again = Document::parse(&written).map_err(|_| "the written text cannot be read")?;
    if again.to_string() != written {
        return Err(format!("writing twice differs:\n{written}"));
    }
    if revise(&document, &flow).to_string() != written {
        return Err("revising changed a text that was right".into());
    }
    if let Some(exported) = config(&flow).ok().filter(|config| config.unsaid.is_empty()) {
        same("the configuration file", &exported.text)?;
    }
    match document.classic() {
        Ok(classic)
            if classic.unsaid.is_empty() && Notation::of(&classic.text) == Notation::Classic =>
        {
            same("the classic text", &classic.text)
        }
        _ => Ok(()),
    }
}
