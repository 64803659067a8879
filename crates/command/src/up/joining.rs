//! What a node says while it joins its cluster.

use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use testigo_node::Node;

/// How often to look how far it is.
const LOOK: Duration = Duration::from_millis(100);

/// What passes sooner is not worth a line.
const PASSES: u32 = 5;

/// Waits until the node is a voter and in a view, and says what it waits for whenever that changes and lasts. A node that is
/// alone waits for nothing; one that stops meanwhile does not wait any longer.
pub(super) fn wait_for_membership(node: &Node, out: &mut impl Write) -> io::Result<()> {
    let (mut waits_for, mut looks) = (String::new(), 0);
    while let Some(what) = node.joining() {
        if what != waits_for {
            (waits_for, looks) = (what, 0);
        }
        looks += 1;
        if looks == PASSES {
            writeln!(out, "joining: {waits_for}")?;
            out.flush()?;
        }
        thread::sleep(LOOK);
    }
    Ok(())
}
