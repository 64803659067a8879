//! The thesis' configuration file, `config.server`: what its configurator wrote and its servers read.
//!
//! It counts and lists the queues (name, data directory, two numbers of remote calls that mean nothing here) and the
//! processes, each with its input queues (`e:`, entrada) and output queues (`s:`, salida). The printed format cannot say
//! who creates and who deletes; a process without input creates into all its outputs, and one without output deletes
//! from all its inputs. Where that does not say it, `i:` lists the queues that a process creates into and `f:` those that
//! it deletes from.

mod keep;
mod read;
mod write;

pub(crate) use read::read_config;
pub use write::{Config, NoConfigName, config, revise_config};

use crate::Graph;

/// The samples' placeholder for a data directory.
const NO_DIRECTORY: &str = "Harcodeado";
/// What ends the file, where a process could stand.
const LAST_ROW: &str = "EndProceso";
/// The number of the first queue's first server; every queue has two.
const FIRST_SERVER: u64 = 0x3000_0004;

/// Lets the processes create and delete as a file without `i:` and `f:` means it.
fn infer(graph: &mut Graph) {
    for process in graph.processes.values_mut() {
        process.creates.clear();
        process.deletes.clear();
        if process.takes.is_empty() {
            process.creates.clone_from(&process.passes);
        }
        if process.passes.is_empty() {
            process.deletes.clone_from(&process.takes);
        }
    }
}
