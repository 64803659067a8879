//! `testigo lab check slots`: every order of steps of a small group that shares slots.

use std::str::FromStr;

use clap::Args;
use serde::Serialize;
use testigo_lab::Verdict;
use testigo_lab::slots::{SlotsCheckPlan, SlotsChecked, SlotsTrouble, check_slots};
use testigo_protocol::slots::SlotsPlan;

use super::options::print_json;
use super::progress;
use super::table::many;
use crate::exit::{Failure, Outcome, good_if};

/// The name that is no algorithm with entries, and is checked here.
pub(super) const NAME: &str = "slots";

/// What only slots have.
#[derive(Args, Clone)]
pub(super) struct SlotsOptions {
    /// Of slots: how many slots the group shares (4).
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=64))]
    slots: Option<u32>,
    /// Of slots: what happens once, at any point: none; part: the group splits and meets again; crash: a machine
    /// stops; depart: a process ends; join: the last member comes later. Without it, part.
    #[arg(long, value_name = "FAULT")]
    fault: Option<SlotsTrouble>,
    /// Of slots: strict; directed, where requests name their donors; or paper, the rules as they are printed. Without
    /// it, strict.
    #[arg(long, value_name = "MODE")]
    mode: Option<Mode>,
    /// Of slots: how many slots are taken, and how many given back, in all (1).
    #[arg(long, value_name = "U", value_parser = clap::value_parser!(u32).range(0..=8))]
    uses: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Strict,
    Directed,
    Paper,
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Mode, String> {
        match text {
            "strict" => Ok(Mode::Strict),
            "directed" => Ok(Mode::Directed),
            "paper" => Ok(Mode::Paper),
            other => Err(format!(
                "there is no mode `{other}`; there are strict, directed, paper"
            )),
        }
    }
}

/// Its field names are a contract with scripts.
#[derive(Serialize)]
struct Json {
    algorithm: &'static str,
    mode: Mode,
    fault: &'static str,
    members: usize,
    slots: u32,
    uses: u32,
    states: usize,
    generated: usize,
    depth: usize,
    complete: bool,
    safety: Verdict,
    rest: Verdict,
    /// What is wrong; null where nothing was found.
    violation: Option<String>,
    steps: Option<Vec<String>>,
}

impl SlotsOptions {
    /// Refuses options that another algorithm has no use for.
    pub(super) fn none(&self) -> Result<(), Failure> {
        let given = [
            ("--slots", self.slots.is_some()),
            ("--fault", self.fault.is_some()),
            ("--mode", self.mode.is_some()),
            ("--uses", self.uses.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(format!("{option} is for slots alone").into()),
            None => Ok(()),
        }
    }

    pub(super) fn run(
        &self,
        members: Option<usize>,
        states_max: Option<usize>,
        json: bool,
    ) -> Outcome {
        let members = members.unwrap_or(3);
        if !(2..=MEMBERS_MAX).contains(&members) {
            return Err(format!("slots are checked with 2 to {MEMBERS_MAX} members").into());
        }
        let (slots, uses) = (self.slots.unwrap_or(4), self.uses.unwrap_or(1));
        let (mode, fault) = (
            self.mode.unwrap_or(Mode::Strict),
            self.fault.unwrap_or(SlotsTrouble::Part),
        );
        let plan = match mode {
            Mode::Strict => SlotsPlan::strict(members, slots, FREE_LOW),
            Mode::Directed => SlotsPlan::directed(members, slots, FREE_LOW),
            Mode::Paper => SlotsPlan::paper(members, slots, FREE_LOW),
        };
        let checked = check_slots(&SlotsCheckPlan {
            plan,
            trouble: fault,
            uses,
            states_max: states_max.unwrap_or(SlotsCheckPlan::STATES_MAX_DEFAULT),
            progress: progress::of_check(),
        });
        progress::clear();
        let refuted = checked.counterexample.is_some();
        if json {
            let found = checked.counterexample;
            print_json(&Json {
                algorithm: NAME,
                mode,
                fault: fault.word(),
                members,
                slots,
                uses,
                states: checked.states,
                generated: checked.generated,
                depth: checked.depth,
                complete: checked.complete,
                safety: checked.safety,
                rest: checked.rest,
                violation: found.as_ref().map(|found| found.what.to_string()),
                steps: found.map(|found| found.steps),
            })?;
        } else {
            let rules = match mode {
                Mode::Strict => "strict rules",
                Mode::Directed => "requests that name their donors",
                Mode::Paper => "rules as printed",
            };
            println!(
                "SLOTS, {rules}: {members} members, {slots} slots, fault: {fault}, at most {} and {}",
                many(uses.into(), "take", "takes"),
                many(uses.into(), "give", "gives")
            );
            print(&checked);
        }
        Ok(good_if(!refuted))
    }
}

/// More have too many orders to say anything.
const MEMBERS_MAX: usize = 8;
/// Each member keeps so many free slots.
const FREE_LOW: u32 = 1;

fn print(checked: &SlotsChecked) {
    let scope = match checked.complete {
        true => "all of them",
        false => "not all of them",
    };
    println!(
        "  states             {} ({} generated), {scope}",
        checked.states, checked.generated
    );
    println!("  depth              {} steps", checked.depth);
    println!("  safety             {}", checked.safety.word());
    println!("  rest               {}", checked.rest.word());
    if let Some(found) = &checked.counterexample {
        println!("\n{}, in {} steps:", found.what, found.steps.len());
        for (at, step) in found.steps.iter().enumerate() {
            println!("{:4}. {step}", at + 1);
        }
    }
}
