//! Before a node founds a cluster, it checks whether a cluster of which it is already a member looks for it. Then its
//! directory is gone or elsewhere, and a second cluster beside the first would grant what the first has granted.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::dial::DIAL_MAX;
use super::door::Door;
use super::hearing::Hearing;
use super::identity::Identity;
use super::join::JoinAnswer;

/// How long a founder listens: members dial a missing node several times per second. If nothing answered before, a dial that
/// was under way may first take its full time.
const LISTENS: Duration = Duration::from_millis(1_000);

/// Listens for a while; says which cluster looks for this node, if any.
pub(crate) fn sought(identity: Identity, listener: &TcpListener) -> io::Result<Option<String>> {
    let identity = Arc::new(identity);
    let hearing = Hearing::new(Box::new(|_, _| {}), Box::new(|_, _| {}), Arc::default());
    let later = |_| JoinAnswer::Later("this node is about to found a cluster".into());
    let own = Arc::clone(&identity);
    let listener = listener.try_clone()?;
    let under_way = match listener.local_addr()?.ip().is_loopback() {
        true => Duration::ZERO,
        false => DIAL_MAX,
    };
    let mut door = Door::open(listener, own, Arc::new(hearing), Box::new(later))?;
    thread::sleep(LISTENS + under_way);
    door.close();
    Ok(identity.sought())
}
