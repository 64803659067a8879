//! A library of models: whole flows to start from.

/// A flow to start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    pub name: &'static str,
    /// What it is for, in a sentence.
    pub about: &'static str,
    pub text: &'static str,
}

/// All models.
pub const MODELS: [Model; 4] = [
    Model {
        name: "pipeline",
        about: "each job goes through every process once",
        text: include_str!("pipeline.flow"),
    },
    Model {
        name: "router",
        about: "a sorter gives each job to one of several kinds of work, and the results meet again",
        text: include_str!("router.flow"),
    },
    Model {
        name: "rework",
        about: "what does not pass an inspection goes round until it does",
        text: include_str!("rework.flow"),
    },
    Model {
        name: "review",
        about: "work is approved, sent back or dropped by a second person",
        text: include_str!("review.flow"),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, read};

    #[test]
    fn every_model_is_a_flow_and_well_laid_out() {
        for Model { name, text, .. } in MODELS {
            let reading = read(text);
            assert!(reading.flow.is_some(), "{name}: {:?}", reading.findings);
            let document = Document::parse(text).expect(name);
            assert_eq!(document.to_string(), text, "{name}");
        }
    }
}
