//! Raft's messages as bytes. Raft's own codec (protobuf) never sees a byte that came over a network. This one refuses
//! whatever raft would not have sent, because raft takes such things for granted and panics if they do not hold.
//!
//! ```text
//! kind      1
//! reject    1
//! term, log term, index, commit, commit term, reject hint    8 each
//! context      1 and as many bytes as that says
//! entries      4, how many; then each: type 1, term 8, index 8, context 2 and bytes, data 4 and bytes
//! ```

use bytes::Bytes;
use raft::eraftpb::{Entry, EntryType, Message, MessageType};

use crate::bundle::BUNDLE_BYTES_MAX;
use crate::seal::Fields;

/// The longest context: that of a read.
const CONTEXT_BYTES_MAX: usize = 64;

/// The minimum of what an entry has before its data.
const ENTRY_HEAD_BYTES: usize = 1 + 8 + 8 + 2 + 4;

/// The kinds that travel unchanged, by number. A snapshot travels in pieces, and proposals in bundles.
const KINDS: [(u8, MessageType); 11] = [
    (1, MessageType::MsgAppend),
    (2, MessageType::MsgAppendResponse),
    (3, MessageType::MsgRequestVote),
    (4, MessageType::MsgRequestVoteResponse),
    (5, MessageType::MsgRequestPreVote),
    (6, MessageType::MsgRequestPreVoteResponse),
    (7, MessageType::MsgHeartbeat),
    (8, MessageType::MsgHeartbeatResponse),
    (9, MessageType::MsgReadIndex),
    (10, MessageType::MsgReadIndexResp),
    (11, MessageType::MsgTimeoutNow),
];

/// Appends a message. False if it is of a kind that does not travel.
pub(crate) fn write(message: &Message, into: &mut Vec<u8>) -> bool {
    let kind = KINDS.iter().find(|(_, kind)| *kind == message.msg_type);
    let Some((kind, _)) = kind else { return false };
    into.push(*kind);
    into.push(message.reject.into());
    for field in [
        message.term,
        message.log_term,
        message.index,
        message.commit,
        message.commit_term,
        message.reject_hint,
    ] {
        into.extend_from_slice(&field.to_le_bytes());
    }
    // The engine makes none longer.
    into.push(message.context.len() as u8);
    into.extend_from_slice(&message.context);
    into.extend_from_slice(&(message.entries.len() as u32).to_le_bytes());
    for entry in message.entries.iter() {
        write_entry(entry, into);
    }
    true
}

fn write_entry(entry: &Entry, into: &mut Vec<u8>) {
    into.push(entry.entry_type as u8);
    into.extend_from_slice(&entry.term.to_le_bytes());
    into.extend_from_slice(&entry.index.to_le_bytes());
    into.extend_from_slice(&(entry.context.len() as u16).to_le_bytes());
    into.extend_from_slice(&entry.context);
    into.extend_from_slice(&(entry.data.len() as u32).to_le_bytes());
    into.extend_from_slice(&entry.data);
}

/// Reads a message to `to` from `from`. `None` unless raft could have sent it.
pub(crate) fn read(body: &Bytes, from: u64, to: u64) -> Option<Message> {
    let mut fields = Fields(body);
    let number = fields.u8()?;
    let (_, kind) = KINDS.iter().find(|(kind, _)| *kind == number)?;
    let reject = match fields.u8()? {
        0 => false,
        1 => true,
        _ => return None,
    };
    let mut message = Message {
        msg_type: *kind,
        from,
        to,
        reject,
        term: fields.u64()?,
        log_term: fields.u64()?,
        index: fields.u64()?,
        commit: fields.u64()?,
        commit_term: fields.u64()?,
        reject_hint: fields.u64()?,
        ..Message::default()
    };
    let length = usize::from(fields.u8()?);
    let context = fields.bytes(length)?;
    message.context = body.slice_ref(context);
    let count = usize::try_from(fields.u32()?).ok()?;
    if length > CONTEXT_BYTES_MAX || count > fields.rest().len() / ENTRY_HEAD_BYTES {
        return None;
    }
    let entries = (0..count).map(|_| read_entry(body, &mut fields));
    let entries: Vec<Entry> = entries.collect::<Option<_>>()?;
    fields.end()?;
    message.entries = entries.into();
    is_possible(&message).then_some(message)
}

fn read_entry(body: &Bytes, fields: &mut Fields<'_>) -> Option<Entry> {
    let entry_type = match fields.u8()? {
        0 => EntryType::EntryNormal,
        1 => EntryType::EntryConfChange,
        _ => return None,
    };
    let (term, index) = (fields.u64()?, fields.u64()?);
    let length = usize::from(fields.u16()?);
    let context = body.slice_ref(fields.bytes(length)?);
    let length = usize::try_from(fields.u32()?).ok()?;
    let data = fields
        .bytes(length)
        .filter(|_| length <= BUNDLE_BYTES_MAX)?;
    Some(Entry {
        entry_type,
        term,
        index,
        context,
        data: body.slice_ref(data),
        ..Entry::default()
    })
}

/// Whether a message is consistent in itself. What it says may still be wrong.
fn is_possible(message: &Message) -> bool {
    // Raft takes a message without a term for one of its own.
    let has_term = message.term > 0;
    let entries = &message.entries;
    match message.msg_type {
        MessageType::MsgAppend => {
            let (mut index, mut term) = (message.index, message.log_term);
            // An entry without a term would match any place after the end of a log.
            has_term
                && (index == 0) == (term == 0)
                && entries.iter().all(|entry| {
                    let follows = index.checked_add(1) == Some(entry.index) && entry.term >= term;
                    (index, term) = (entry.index, entry.term);
                    follows && term > 0 && term <= message.term
                })
        }
        MessageType::MsgReadIndex => message.term == 0 && is_context(entries),
        MessageType::MsgReadIndexResp => has_term && is_context(entries),
        _ => has_term && entries.is_empty(),
    }
}

/// A read's context comes as the data of one entry.
fn is_context(entries: &[Entry]) -> bool {
    matches!(entries, [entry] if entry.data.len() <= CONTEXT_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::Xoshiro256StarStar;
    use rand_xoshiro::rand_core::{RngCore, SeedableRng};

    fn entry(index: u64, term: u64, data: &'static [u8]) -> Entry {
        Entry {
            index,
            term,
            data: Bytes::from_static(data),
            ..Entry::default()
        }
    }

    fn append(entries: Vec<Entry>) -> Message {
        Message {
            msg_type: MessageType::MsgAppend,
            from: 2,
            to: 3,
            term: 9,
            log_term: 4,
            index: 7,
            commit: 6,
            context: Bytes::from_static(b"what for"),
            entries: entries.into(),
            ..Message::default()
        }
    }

    fn written(message: &Message) -> Vec<u8> {
        let mut bytes = Vec::new();
        assert!(write(message, &mut bytes));
        bytes
    }

    fn again(bytes: Vec<u8>) -> Option<Message> {
        read(&bytes.into(), 2, 3)
    }

    #[test]
    fn every_kind_comes_out_as_it_went_in() {
        let change = Entry {
            entry_type: EntryType::EntryConfChange,
            context: Bytes::from_static(b"who"),
            ..entry(9, 9, b"")
        };
        let message = append(vec![entry(8, 4, b"data"), change]);
        assert_eq!(again(written(&message)), Some(message));
        for (_, kind) in KINDS {
            let mut message = Message {
                msg_type: kind,
                reject: true,
                commit_term: 1,
                reject_hint: 2,
                ..append(Vec::new())
            };
            if matches!(
                kind,
                MessageType::MsgReadIndex | MessageType::MsgReadIndexResp
            ) {
                message.entries = vec![entry(0, 0, b"the ask")].into();
                message.term *= u64::from(kind == MessageType::MsgReadIndexResp);
            }
            assert_eq!(again(written(&message)), Some(message));
        }
        let snapshot = Message {
            msg_type: MessageType::MsgSnapshot,
            ..Message::default()
        };
        assert!(!write(&snapshot, &mut Vec::new()));
    }

    #[test]
    fn what_raft_would_not_have_sent_is_refused() {
        let no_term = Message {
            term: 0,
            ..append(Vec::new())
        };
        let read = |entries: Vec<Entry>| Message {
            msg_type: MessageType::MsgReadIndexResp,
            entries: entries.into(),
            ..append(Vec::new())
        };
        for bad in [
            no_term,
            Message {
                log_term: 0,
                ..append(Vec::new())
            },
            append(vec![entry(9, 5, b"a gap")]),
            append(vec![entry(8, 3, b"an old term")]),
            append(vec![entry(8, 10, b"a term to come")]),
            append(vec![entry(8, 5, b"twice"), entry(8, 5, b"twice")]),
            read(Vec::new()),
            read(vec![entry(0, 0, b"one"), entry(0, 0, b"two")]),
        ] {
            assert_eq!(again(written(&bad)), None, "{bad:?}");
        }
    }

    #[test]
    fn damaged_bytes_are_refused_or_read_and_never_panic() {
        let good = written(&append(vec![
            entry(8, 4, b"data"),
            entry(9, 5, b"more data"),
        ]));
        for length in 0..good.len() {
            assert_eq!(again(good[..length].to_vec()), None, "length {length}");
        }
        let mut rng = Xoshiro256StarStar::seed_from_u64(5);
        let mut refused = 0;
        for _ in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..1 + rng.next_u64() % 4 {
                let at = rng.next_u64() as usize % bytes.len();
                bytes[at] = rng.next_u64() as u8;
            }
            // What was read can be written again.
            match again(bytes) {
                Some(message) => assert_eq!(again(written(&message)), Some(message)),
                None => refused += 1,
            }
        }
        assert!(refused > 10_000, "{refused}");
    }
}
