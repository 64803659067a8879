//! How long a LOCK and an UNLOCK take in a node inside of this program, on one thread.

use std::time::Instant;

use testigo_core::{Definition, Lock, Rule};
use testigo_node::{Config, Node};

const PAIRS: u32 = 2_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let node = Node::start(Config::embedded(dir.path()))?;
    node.create_gate("created", Definition::new(Rule::Mutex))?
        .wait()?;
    let session = node.session()?;
    for gate in ["created", "implicit"] {
        let lock = Lock {
            gate,
            ..Lock::default()
        };
        let start = Instant::now();
        for _ in 0..PAIRS {
            let grant = session.lock(&lock)?.ok_or("somebody else is inside")?;
            session.unlock(gate, Some(grant.fence))?;
        }
        println!("{gate}: {:?} a pair", start.elapsed() / PAIRS);
    }
    Ok(node.stop()?)
}
