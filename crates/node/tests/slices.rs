//! Long commands beside short ones: they are made in slices, in pages they miss and repeat nothing, and nobody waits for
//! them but who asked.

mod support;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use support::{Client, House, Value};

/// Long enough for a busy machine; only a broken node makes a test wait for it.
const PATIENCE: Duration = Duration::from_secs(60);
/// Holds of one session are at most 10,000.
const HOLDS: usize = 9_900;

/// Makes ten times [`HOLDS`] gates by locking them; they are there until the connections close.
fn ninety_nine_thousand_gates(house: &House) -> Vec<Client> {
    let lock = |of: usize| {
        let mut client = house.client();
        let mut commands = String::new();
        for at in 0..HOLDS {
            commands += &format!("LOCK gate-{of}-{at}\r\n");
        }
        client.send_bytes(commands.as_bytes()).unwrap();
        for _ in 0..HOLDS {
            client.read().int();
        }
        client
    };
    (0..10).map(lock).collect()
}

fn slices(client: &mut Client) -> i64 {
    client.call(&["STATUS"]).at("slices_ever").int()
}

fn name(row: &Value) -> &str {
    match &row.list()[0] {
        Value::Text(name) => name,
        other => panic!("{other} is no name"),
    }
}

/// Asks for all those gates and reads along; the answer must be this one.
fn list_gates(address: SocketAddr, expected: &[u8]) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GATE LIST gate-*\r\n").unwrap();
    let mut chunk = vec![0; 1 << 16];
    for part in expected.chunks(chunk.len()) {
        stream.read_exact(&mut chunk[..part.len()]).unwrap();
        assert!(part == &chunk[..part.len()], "another answer");
    }
}

#[test]
fn sixty_lists_of_very_many_gates_keep_nobody_waiting() {
    let house = House::open();
    let gates = ninety_nine_thousand_gates(&house);
    let mut holder = house.client();
    holder.call(&["SESSION", "OPEN", "TTL", "10000"]);
    holder.call(&["LOCK", "deploy"]);
    let mut names: Vec<String> = (0..gates.len())
        .flat_map(|of| (0..HOLDS).map(move |at| format!("gate-{of}-{at}")))
        .collect();
    names.sort();
    let mut expected = format!("*{}\r\n", names.len());
    for name in &names {
        let length = name.len();
        expected += &format!("*3\r\n${length}\r\n{name}\r\n$5\r\nMUTEX\r\n$8\r\nimplicit\r\n");
    }
    let (address, expected) = (house.address(), expected.as_bytes());
    let before = slices(&mut holder);
    std::thread::scope(|scope| {
        let lists: Vec<_> = (0..60)
            .map(|_| scope.spawn(move || list_gates(address, expected)))
            .collect();
        // Others are served while the lists are made; whoever is answered is alive. Its own answer is one of those.
        let (mut rounds, mut most_blocked) = (0, 0);
        while lists.iter().any(|list| !list.is_finished()) {
            let shown = holder.call(&["CLIENT", "LIST"]).to_string();
            most_blocked = most_blocked.max(shown.matches("blocked=answer").count());
            rounds += 1;
        }
        assert!(most_blocked > 1, "the lists were made in one go");
        assert!(rounds > 60, "only {rounds} commands between the slices");
    });
    // Every gate is looked at and written once per list, at most 1,000 of either in a slice.
    let made = slices(&mut holder) - before;
    let least = 60 * 2 * 99;
    assert!(made >= least, "{made} slices for {least} times 1,000 rows");
    let info = holder.call(&["SESSION", "INFO"]);
    assert_eq!(info.at("holds").list().len(), 1, "{info}");
}

/// All rows of a list in pages; between two of them something happens.
fn pages(client: &mut Client, words: &[&str], mut between: impl FnMut(usize)) -> Vec<Value> {
    let (mut rows, mut cursor) = (Vec::new(), "0".to_owned());
    for page in 0.. {
        let answer = client.call(&[words, &["CURSOR", &cursor, "LIMIT", "7"]].concat());
        let [Value::Text(next), found] = answer.list() else {
            panic!("{answer} is no page");
        };
        assert!(found.list().len() <= 7);
        rows.extend_from_slice(found.list());
        if next == "0" {
            break;
        }
        cursor = next.clone();
        between(page);
    }
    rows
}

/// How often each name is there.
fn counted(rows: &[Value], column: usize) -> BTreeMap<String, usize> {
    let mut count = BTreeMap::new();
    for row in rows {
        let Value::Text(name) = &row.list()[column] else {
            panic!("{row}");
        };
        *count.entry(name.clone()).or_default() += 1;
    }
    count
}

#[test]
fn what_is_there_throughout_is_in_exactly_one_page_of_gates() {
    let house = House::open();
    let (mut client, mut other) = (house.client(), house.client());
    for at in 0..100 {
        other.call(&["LOCK", &format!("come-{at}")]);
        client.call(&["LOCK", &format!("stay-{at}")]);
    }
    let mut looker = house.client();
    let rows = pages(&mut looker, &["GATE", "LIST"], |page| {
        // Gates go before and behind the cursor, and others come into their places.
        for at in [page * 3, 99 - page * 3] {
            other.call(&["UNLOCK", &format!("come-{at}")]);
            other.call(&["LOCK", &format!("new-{at}")]);
        }
    });
    let counted = counted(&rows, 0);
    for at in 0..100 {
        assert_eq!(counted.get(&format!("stay-{at}")), Some(&1), "stay-{at}");
    }
    let fitting = pages(&mut looker, &["GATE", "LIST", "stay-1?"], |_| {});
    assert_eq!(fitting.len(), 10);
    let whole = looker.call(&["GATE", "LIST", "stay-*"]);
    assert_eq!(whole.list().len(), 100);
    assert!(whole.list().is_sorted_by_key(name));
}

#[test]
fn what_is_there_throughout_is_in_exactly_one_page_of_jobs() {
    for order in ["arrival", "priority", "key"] {
        let house = House::open();
        let (mut client, mut worker) = (house.client(), house.client());
        let flow = format!(
            "intake -> [orders] -> price -> [priced] -> bill\nqueue orders {{ order {order} }}"
        );
        let applied = client.call(&["FLOW", "APPLY", "shop", &flow]);
        assert_eq!(applied, Value::Simple("OK".into()), "{applied}");
        for at in 0..60 {
            let (name, class) = (format!("job-{}", at * 7 % 60), (at % 3).to_string());
            client.call(&["JOB", "CREATE", "orders", &name, "x", "CLASS", &class]);
        }
        let listed = client.call(&["JOB", "LIST", "orders"]);
        let in_pages = pages(&mut client, &["JOB", "LIST", "orders"], |_| {});
        assert_eq!(listed.list(), in_pages, "{order}");
        for words in [&["JOB", "LIST", "orders"][..], &["JOB", "FIND", "job-*"]] {
            let mut taken = Vec::new();
            let rows = pages(&mut client, words, |_| {
                // The next one goes, and a new one comes.
                let job = worker.call(&["JOB", "TAKE", "orders", "WAIT", "0"]);
                let Value::Text(name) = &job.list()[1] else {
                    panic!("{job}");
                };
                taken.push(name.clone());
                worker.call(&["JOB", "CREATE", "orders", "*", "x"]);
            });
            let counted = counted(&rows, 1);
            let stayed = listed.list().iter().filter(|row| {
                let Value::Text(name) = &row.list()[1] else {
                    panic!("{row}");
                };
                !taken.contains(name) && client_has(&mut worker, name)
            });
            for row in stayed {
                let Value::Text(name) = &row.list()[1] else {
                    panic!("{row}");
                };
                let found = counted.get(name).copied();
                assert_eq!(found, Some(1), "{order}, {words:?}: {name}");
            }
        }
    }
}

/// Whether a job still waits.
fn client_has(client: &mut Client, name: &str) -> bool {
    let found = client.call(&["JOB", "FIND", name]);
    let rows = found.list();
    rows.first()
        .is_some_and(|row| row.list()[3] == Value::Text("waiting".into()))
}

#[test]
fn a_wrong_cursor_is_refused_with_what_would_be_right() {
    let house = House::open();
    let mut client = house.client();
    let refused = client.call(&["GATE", "LIST", "*", "CURSOR", "x"]);
    assert!(
        refused
            .error()
            .starts_with("BADARG CURSOR x is none of this list"),
        "{refused}"
    );
    let refused = client.call(&["JOB", "FIND", "*", "CURSOR", "0", "LIMIT", "0"]);
    assert!(
        refused.error().starts_with("BADARG a page of LIMIT 0"),
        "{refused}"
    );
    // A pattern may be called like the option.
    assert_eq!(client.call(&["GATE", "LIST", "CURSOR"]).list().len(), 0);
}

#[test]
fn a_gate_with_very_many_inside_and_waiting_is_shown_whole() {
    let house = House::open();
    let mut client = house.client();
    client.call(&["GATE", "CREATE", "crowd", "SHARED"]);
    let readers: Vec<Client> = (0..1_100)
        .map(|_| {
            let mut reader = house.client();
            reader.call(&["LOCK", "crowd", "SHARED"]).int();
            reader
        })
        .collect();
    let mut writer = house.client();
    writer.call(&["HELLO", "3"]);
    writer.call(&["LOCK", "crowd", "ASYNC"]);
    let few = client.call(&["GATE", "CREATE", "few", "SHARED"]);
    assert_eq!(few, Value::Simple("OK".into()));
    let (shown, few) = (
        client.call(&["GATE", "SHOW", "crowd"]),
        client.call(&["GATE", "SHOW", "few"]),
    );
    assert_eq!(shown.at("holders").list().len(), readers.len());
    assert_eq!(shown.at("waiters").list().len(), 1);
    assert_eq!(shown.list().len(), few.list().len());
}
