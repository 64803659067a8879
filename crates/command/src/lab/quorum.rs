//! `testigo lab quorum`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use testigo_lab::{KnownAlgorithm, MeasuredAvailability, quorum_picture};
use testigo_protocol::Setup;
use testigo_protocol::quorum::{Blueprint, Demand, Study, Verdict};
use testigo_sim::Generator;

use super::options::{print_json, write};
use super::table::Table;
use crate::exit::{Outcome, good_if};

/// More quorums than this are counted, not printed.
const SETS_MAX: usize = 200;
/// Only for structures whose availability has to be estimated.
const SEED: u64 = 1;

/// Look at a construction of quorums: its sets, sizes, load and availability
///
/// For one entry at a time: plane (3, 7, 13, 21, 31, 57, 73 or 91 nodes), folded-plane (up to 91),
/// grid, triangle (1, 3, 6, 10, 15, … nodes), agrawal-jalote, majority, weighted, tree, cohorts.
/// For k entries: majority, cohorts, maj-r, div, joined. For h of k units: arbiter.
///
/// With --json, one object: construction, nodes, k; quorums (how many there are); size (min, max,
/// mean); load (best, worst, by_node: the share of all quorums that a node is in); availability (a
/// list of p, the probability that a node is alive, and available, the probability that a quorum
/// is); availability_method; verdicts (a list of property, holds, because; holds is null where that
/// is not known); sets (the first 200 quorums; none where there are more than 65,536).
///
/// Exit code 0: studied; 2: bad input.
///
/// Example: testigo lab quorum triangle --nodes 10 --svg triangle.svg
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Quorum {
    /// The construction's name.
    construction: Blueprint,
    /// How many nodes there are, at most 128.
    #[arg(long, value_name = "N")]
    nodes: usize,
    /// How many may be inside at a time, or how many units there are.
    #[arg(long, value_name = "K", default_value_t = 1)]
    k: usize,
    /// For maj-r: how many classes of nodes there are; a divisor of K.
    #[arg(long, value_name = "R")]
    classes: Option<usize>,
    /// For arbiter: how many units a request asks for.
    #[arg(long, value_name = "H", default_value_t = 1)]
    units: usize,
    /// For weighted: the votes of each node, such as 2,1,1,1.
    #[arg(long, value_name = "V,V,…", value_delimiter = ',')]
    votes: Option<Vec<usize>>,
    /// For cohorts: the size of each cohort, such as 1,3,3.
    #[arg(long, value_name = "C,C,…", value_delimiter = ',')]
    cohorts: Option<Vec<usize>>,
    /// Run this algorithm with every set of dead nodes (at most 12 nodes), and show how often somebody still
    /// gets in beside the availability of the quorums: tree-quorum, cohort-quorum, agrawal-jalote or another.
    #[arg(long, value_name = "ALGORITHM")]
    measure: Option<String>,
    /// Draw the quorums, the load and the availability.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print one object with all that was found.
    #[arg(long)]
    json: bool,
}

impl Quorum {
    pub(crate) fn run(self) -> Outcome {
        let demand = Demand {
            nodes: self.nodes,
            k: self.k,
            classes: self.classes,
            units: self.units,
            votes: self.votes,
            cohorts: self.cohorts,
        };
        let mut generator = Generator::new(SEED);
        let draw = || generator.unit();
        let (study, structure, curve) = Study::new(self.construction, &demand, SETS_MAX, draw)?;
        let measured = match &self.measure {
            Some(name) => {
                let algorithm = KnownAlgorithm::find(name)?;
                Some(MeasuredAvailability::of(
                    &algorithm,
                    &Setup::new(self.nodes),
                )?)
            }
            None => None,
        };
        if let Some(path) = &self.svg {
            let picture = quorum_picture(&study, &structure, &curve, measured.as_ref());
            write(path, &picture)?;
        }
        if self.json {
            print_json(&Json {
                measured: measured
                    .as_ref()
                    .map(|measured| Measured::new(&study, measured)),
                study: &study,
            })?;
        } else {
            print(&study, measured.as_ref());
        }
        Ok(good_if(true))
    }
}

/// Its field names are a contract with scripts.
#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    study: &'a Study,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<Measured>,
}

#[derive(Serialize)]
struct Measured {
    algorithm: &'static str,
    /// The probability that somebody gets in, at the same p as the availability of the quorums.
    available: Vec<f64>,
    sets: u64,
    sets_that_go_on: u64,
}

impl Measured {
    fn new(study: &Study, measured: &MeasuredAvailability) -> Measured {
        let (sets, sets_that_go_on) = measured.sets();
        Measured {
            algorithm: measured.algorithm,
            available: study
                .availability
                .iter()
                .map(|point| measured.at(point.p))
                .collect(),
            sets,
            sets_that_go_on,
        }
    }
}

fn print(study: &Study, measured: Option<&MeasuredAvailability>) {
    let entries = match study.k {
        1 => String::new(),
        k => format!(", k = {k}"),
    };
    println!(
        "{}: {} nodes{entries}, {} quorums",
        study.construction, study.nodes, study.quorums
    );
    let size = study.size;
    println!(
        "  sizes              {} to {}, mean {:.2}",
        size.min, size.max, size.mean
    );
    let load = &study.load;
    println!(
        "  load               a node is in {:.1}% to {:.1}% of the quorums",
        100.0 * load.best,
        100.0 * load.worst
    );
    for verdict in &study.verdicts {
        let Verdict {
            property,
            holds,
            because,
        } = verdict;
        let holds = match holds {
            Some(true) => "yes",
            Some(false) => "no",
            None => "not known",
        };
        println!("  {property:<18} {holds}: {because}");
    }
    println!("  availability       {}", study.availability_method);
    let heads = [
        "    A NODE IS ALIVE",
        "A QUORUM IS ALIVE",
        "SOMEBODY GETS IN",
    ];
    let mut table = Table::new(&heads[..if measured.is_some() { 3 } else { 2 }]);
    for point in &study.availability {
        let cells = [format!("{:.2}", point.p), format!("{:.9}", point.available)];
        let found = measured.map(|measured| format!("{:.9}", measured.at(point.p)));
        table.row(cells.into_iter().chain(found));
    }
    table.print();
    if let Some(measured) = measured {
        let (sets, going_on) = measured.sets();
        let name = measured.algorithm;
        println!(
            "  measured           {name} went on with {going_on} of {sets} sets of live nodes"
        );
    }
    println!("  quorums");
    for set in &study.sets {
        let members: Vec<String> = set.iter().map(usize::to_string).collect();
        println!("    {}", members.join(" "));
    }
    let shown = study.sets.len() as u128;
    match study.quorums - shown {
        0 => {}
        more if shown == 0 => println!("    {more} are too many to list"),
        more => println!("    and {more} more"),
    }
}
