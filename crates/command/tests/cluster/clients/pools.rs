//! Clients that take slots of a pool by the library, and use them for as long as it says that they have them.

use std::time::Duration;

use testigo_client::{Addresses, Call, Session, SessionOptions, Slot, State, Take, Target};

use super::Client;
use crate::check::exclusion::Hold;
use crate::check::fences::Grant;
use crate::net::{RESP_PORT, address};
use crate::nodes::PASSWORD;
use crate::stage::Stage;

pub(crate) const POOL: &str = "ports";
/// Few enough that nodes ask each other for them.
pub(crate) const SLOTS: u32 = 12;
/// Shorter than the longest faults are beyond a lease, so that the majority ends sessions of nodes that are cut off.
const TTLS_MS: [u64; 2] = [1_000, 4_000];
const WAIT: Duration = Duration::from_millis(1_500);
/// How often a client looks whether it still has a slot.
const LOOK: Duration = Duration::from_millis(2);
const RETRY_MS: u64 = 100;

pub(crate) fn run(stage: &Stage, number: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let mut client = Client::new(stage, number);
    while !stage.is_over() {
        // A session that is lost is followed by another.
        let _ = runtime.block_on(client.one_session());
        stage.goes_on_after(RETRY_MS);
    }
}

impl Client<'_> {
    /// A session, until it is lost or the run is over.
    async fn one_session(&mut self) -> Call<()> {
        let stage = self.stage;
        let first = self.below(u64::from(stage.nodes)) as u8;
        let nodes = (0..stage.nodes).map(|node| (first + node) % stage.nodes + 1);
        let nodes: Vec<String> = nodes
            .map(|node| format!("{}:{RESP_PORT}", address(node)))
            .collect();
        let nodes: Addresses = nodes.join(",").parse().expect("addresses");
        let target = Target::from(nodes).user("default", PASSWORD);
        let testigo = testigo_client::Client::connect(target).await?;
        let options = SessionOptions {
            ttl: Duration::from_millis(self.one_of(&TTLS_MS)),
            label: None,
        };
        let session = testigo.open(options).await?;
        while !stage.is_over() {
            self.use_some(&session).await?;
        }
        session.close().await
    }

    async fn use_some(&mut self, session: &Session) -> Call<()> {
        let (stage, number) = (self.stage, self.number);
        let uses_ms = match self.below(5) {
            0 => 3_000 + self.below(4_000),
            _ => self.below(200),
        };
        let take = Take::new(POOL).up_to(3).wait(WAIT);
        let sent = stage.now();
        let slots = session.take_slots(take).await?;
        let received = stage.now();
        if !slots.is_empty() {
            stage.count("takes of slots");
        }
        let hold = |slot: &Slot| Hold {
            gate: format!("slot {}", slot.name()),
            client: number,
            exclusive: true,
            fence: i64::try_from(slot.fence()).expect("below 2^53"),
            from: received,
            until: received,
        };
        let mut holds: Vec<Hold> = slots.iter().map(hold).collect();
        let grant = |hold: &Hold| Grant {
            gate: hold.gate.clone(),
            client: number,
            exclusive: true,
            fence: hold.fence,
            sent,
            received,
        };
        stage.records().grants.extend(holds.iter().map(grant));
        let until = received + uses_ms * 1_000;
        loop {
            let now = stage.now();
            let mut has_some = false;
            for (slot, hold) in slots.iter().zip(&mut holds) {
                if slot.state() != State::Lost {
                    hold.until = now;
                    has_some = true;
                }
            }
            if !has_some || now >= until || stage.is_over() {
                break;
            }
            // Whoever loses one stops at once; otherwise it has been in use until it was looked at last.
            if let Some(slot) = slots.iter().find(|slot| slot.state() != State::Lost) {
                let _ = tokio::time::timeout(LOOK, slot.lost()).await;
            }
        }
        let lost = slots.iter().filter(|slot| slot.state() == State::Lost);
        if lost.count() > 0 {
            stage.count("of them lost");
        }
        stage.records().holds.extend(holds);
        // What was lost is not there to be given back.
        let _ = session.give_slots(slots).await;
        Ok(())
    }
}
