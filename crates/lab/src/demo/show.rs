//! Plays a demonstration, and ties its remarks to the steps that they speak of.

use serde::Serialize;
use testigo_protocol::{Setup, SetupError};
use testigo_sim::Time;

use super::{Demo, Expect, Scene};
use crate::check::{CheckPlan, Checked, Verdict};
use crate::world::World;
use crate::{KnownAlgorithm, LabError, Trace, narrate};

/// A demonstration, played.
#[derive(Debug, Serialize)]
pub struct Shown {
    pub name: &'static str,
    pub title: &'static str,
    pub source: &'static str,
    pub question: &'static str,
    /// What was played, in words.
    pub setup: String,
    pub steps: Vec<Remarked>,
    /// What came out; null where the answer is words alone.
    pub found: Option<String>,
    pub answer: &'static str,
    /// Whether that is what the source says.
    pub as_expected: bool,
    #[serde(skip)]
    pub trace: Option<Trace>,
}

/// A step, and what to see there.
#[derive(Debug, Serialize)]
pub struct Remarked {
    pub step: String,
    pub remark: Option<&'static str>,
}

/// What came of a scene.
struct Played {
    setup: String,
    found: Option<String>,
    as_expected: bool,
    trace: Option<Trace>,
}

/// A schedule of more steps is for the picture.
const STEPS_MAX: usize = 60;

impl Demo {
    pub fn show(&self, progress: fn(usize)) -> Result<Shown, LabError> {
        let played = self.scene.play(progress)?;
        let told = played.trace.as_ref();
        let told = told.map(|trace| narrate(trace, STEPS_MAX));
        let steps = remarked(told.as_deref().unwrap_or_default(), self.look);
        let seen = steps.iter().filter(|step| step.remark.is_some()).count();
        Ok(Shown {
            name: self.name,
            title: self.title,
            source: self.source,
            question: self.question,
            setup: played.setup,
            steps,
            found: played.found,
            answer: self.answer,
            as_expected: played.as_expected && seen == self.look.len(),
            trace: played.trace,
        })
    }
}

impl Scene {
    fn play(self, progress: fn(usize)) -> Result<Played, LabError> {
        match self {
            Scene::Words => Ok(Played {
                setup: "a question of the source".into(),
                found: None,
                as_expected: true,
                trace: None,
            }),
            Scene::Check { .. } => self.play_check(progress),
            Scene::Run { .. } => self.play_run(),
            Scene::Checked { check, run } => {
                let (checked, run) = (check.play(progress)?, run.play(progress)?);
                Ok(Played {
                    setup: format!("{}; then {}", checked.setup, run.setup),
                    found: checked.found,
                    as_expected: checked.as_expected && run.as_expected,
                    trace: run.trace,
                })
            }
        }
    }

    fn play_check(self, progress: fn(usize)) -> Result<Played, LabError> {
        let Scene::Check {
            algorithm,
            nodes,
            faults,
            timeouts,
            timing,
            expect,
        } = self
        else {
            unreachable!("it is a check");
        };
        let known = KnownAlgorithm::find(algorithm)?;
        let (setup, plan) = match nodes {
            Some(nodes) => (Setup::new(nodes), CheckPlan::new(1)),
            None => (
                known.profile.telling_setup(),
                CheckPlan::telling(known.profile),
            ),
        };
        let setup = Setup {
            delay_bound: Time::UNIT,
            ..setup
        };
        let plan = CheckPlan {
            timeouts: timeouts.or(plan.timeouts),
            timing,
            faults,
            progress,
            ..plan
        };
        let checked = known.check(&setup, &plan)?;
        let looked = match checked.complete {
            true => format!("all {} states", checked.states),
            false => format!("{} states", checked.states),
        };
        Ok(Played {
            setup: format!(
                "{}, {} nodes, every schedule: {looked}",
                known.profile.name, checked.nodes
            ),
            found: Some(found(&checked)),
            as_expected: is_expected(&checked, expect),
            trace: checked.counterexample.map(|found| found.trace),
        })
    }

    fn play_run(self) -> Result<Played, LabError> {
        let Scene::Run {
            algorithm,
            nodes,
            entries,
            chosen,
            arrivals,
            faults,
            slow,
            messages,
            ordered,
        } = self
        else {
            unreachable!("it is a run");
        };
        let known = KnownAlgorithm::find(algorithm)?;
        let read = |error: testigo_sim::ParseError| LabError::new(error.to_string());
        let faults: Result<Vec<_>, _> = faults.iter().map(|fault| fault.parse()).collect();
        let slow = slow
            .iter()
            .map(|&(from, to, span)| Ok((from, to, span.parse()?)));
        let slow: Result<Vec<_>, _> = slow.collect();
        let world = World {
            entries,
            slow: slow.map_err(read)?,
            arrivals: arrivals.parse().map_err(read)?,
            faults: faults.map_err(read)?,
            ..World::default()
        };
        let setup = Setup {
            delay_bound: world.delay_bound().0,
            ..setup(nodes, chosen)?
        };
        let run = known.run(&setup, &world, true)?;
        let report = run.report;
        let sent = report.messages;
        let counted = match messages {
            Some(published) => format!("{sent} messages, {published} published"),
            None => format!("{sent} messages"),
        };
        let broken = match (ordered, report.violations.first()) {
            (Some(false), Some(what)) => format!("; {what}"),
            _ => String::new(),
        };
        let kinds = report.messages_by_kind.iter();
        let kinds: Vec<String> = kinds.map(|(kind, n)| format!("{n} {kind}")).collect();
        Ok(Played {
            setup: format!("{}, {nodes} nodes, one run", known.profile.name),
            found: Some(format!("{counted}: {}{broken}", kinds.join(", "))),
            as_expected: report.safe
                && messages.is_none_or(|published| published == sent)
                && ordered.is_none_or(|ordered| report.ordered == Some(ordered)),
            trace: run.trace,
        })
    }
}

fn setup(nodes: usize, chosen: &[(&str, &str)]) -> Result<Setup, LabError> {
    let mut setup = Setup::new(nodes);
    for (word, value) in chosen {
        let chosen = setup.choose(word, value);
        chosen.map_err(|SetupError(why)| LabError::new(why))?;
    }
    Ok(setup)
}

fn found(checked: &Checked) -> String {
    match &checked.counterexample {
        Some(found) => format!("{}, in {} steps", found.what, found.steps),
        None if checked.complete => {
            "nothing is refuted, whatever happens in whichever order".into()
        }
        None => "nothing is refuted in what was explored".into(),
    }
}

fn is_expected(checked: &Checked, expect: Expect) -> bool {
    let refuted = |verdict| verdict == Verdict::Refuted;
    match expect {
        Expect::Holds => !checked.refuted() && checked.complete,
        Expect::Unsafe => refuted(checked.safety),
        Expect::Stuck => !refuted(checked.safety) && refuted(checked.deadlock_freedom),
        Expect::Endless => {
            !refuted(checked.safety)
                && !refuted(checked.deadlock_freedom)
                && refuted(checked.lockout_freedom)
        }
    }
}

/// Gives each remark to the first step, from where the one before was given, that has its words.
fn remarked(told: &str, look: &'static [(&'static str, &'static str)]) -> Vec<Remarked> {
    let mut look = look.iter().peekable();
    let lines = told.lines().map(|line| {
        let remark = look.next_if(|(words, _)| line.contains(words));
        Remarked {
            step: line.to_owned(),
            remark: remark.map(|(_, remark)| *remark),
        }
    });
    lines.collect()
}
