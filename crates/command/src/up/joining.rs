//! What a node says while it joins its cluster.

use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use testigo_node::Node;

/// How often to look how far it is.
const LOOK: Duration = Duration::from_millis(100);

/// Waits until the node is a voter and in a view, and says what it waits for whenever that changes. A node that is alone
/// waits for nothing; one that stops meanwhile does not wait any longer.
pub(super) fn wait_for_membership(node: &Node, out: &mut impl Write) -> io::Result<()> {
    let mut said = String::new();
    while let Some(what) = node.joining() {
        if what != said {
            writeln!(out, "joining: {what}")?;
            out.flush()?;
            said = what;
        }
        thread::sleep(LOOK);
    }
    Ok(())
}
