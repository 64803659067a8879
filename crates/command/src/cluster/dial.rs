//! Whether anybody of a cluster that is given up still answers. Two clusters that both believe to be the one would both
//! grant; so nothing is founded anew while there is an answer.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use testigo_node::BackupMember;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::exit::{NOT_GOOD, complain};

/// How long a member may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Complains about the first that answers, and gives the exit code.
pub(super) async fn refuse_if_answers(members: &[&BackupMember]) -> Option<ExitCode> {
    for member in members {
        for address in [Some(&member.peer), member.client.as_ref()]
            .into_iter()
            .flatten()
        {
            if answers(address).await {
                let node = member.node;
                complain!(
                    "testigo: refused: node {node} of the old cluster answers at {address}; two clusters would both \
                     grant: stop it first"
                );
                return Some(ExitCode::from(NOT_GOOD));
            }
        }
    }
    None
}

/// Whether anything listens there. What it is does not matter: whoever uses the address of a member must not be mistaken.
async fn answers(address: &str) -> bool {
    matches!(
        timeout(PATIENCE, TcpStream::connect(address)).await,
        Ok(Ok(_))
    )
}

/// Whoever is cut off, and so did not answer, stops by itself within its lease.
pub(super) fn wait_a_lease(members: &[&BackupMember], lease_ms: u64) {
    if members.len() > 1 {
        let lease = Duration::from_millis(lease_ms);
        complain!("testigo: waiting {lease:?}: a node that is cut off may act for so long");
        thread::sleep(lease);
    }
    let seconds = testigo_node::generation_wait_secs();
    complain!(
        "testigo: waiting {seconds} s: a generation begins only where no other can have begun"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_listens_answers_and_who_does_not_does_not() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        assert!(answers(&address).await);
        drop(listener);
        assert!(!answers(&address).await);
        assert!(!answers("no such address").await);
    }
}
