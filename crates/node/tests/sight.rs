//! Who may not see a name cannot find out whether it is there. Two nodes get the same bytes from the same users: on one
//! the hidden names exist, on the other they do not, and every answer must be the same, byte for byte.

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine};
use support::{Client, House};
use testigo_node::{Config, Secret, User};

/// What both nodes have, and users see.
const OWN: &str = "make -> [a] -> work -> [b] -> end";
/// What one node has, and only administrators see.
const HIDDEN: &str = "\
start -> [inside] -> secret -> [beyond] -> finish
start -> [a] -> secret -> [beyond] -> finish
process finish { rights root }";

/// Every way to say a hidden name, by the command that it is said with. `$s` stands for a hidden session, `$c` for a
/// hidden connection.
const ASKED: &[&str] = &[
    "LOCK vault/door WAIT 0",
    "LOCK vault/door SHARED WAIT 0",
    "LOCK vault/made PERMITS 1 WAIT 0",
    "LOCKALL 2 own/x vault/door WAIT 0",
    "UNLOCK vault/door",
    "UNLOCK vault/door 4294967297",
    "DOWNGRADE vault/door",
    "CANCEL 1",
    "FENCE CHECK vault/door 4294967297",
    "OWNER vault/door",
    "TRACE vault/door",
    "POOL TAKE vault/door",
    "POOL GIVE vault/door 0",
    "POOL SHOW vault/door",
    "POOL CREATE vault/made SLOTS 3",
    "POOL DELETE vault/made",
    "POOL LIST",
    "SESSION RESUME $s",
    "SESSION RESUME $s HOLDING 1 vault/door 4294967297",
    "SESSION END $s",
    "GATE SHOW vault/door",
    "GATE SHOW vault/made",
    "GATE CREATE vault/made MUTEX",
    "GATE CREATE vault/made PERMITS 3",
    "GATE DELETE vault/made",
    "GATE LIST",
    "GATE LIST vault/*",
    "ELECT CAMPAIGN vault/seat x WAIT 0",
    "ELECT CAMPAIGN vault/seat x TTL 5000 WAIT 0",
    "ELECT RESIGN vault/seat",
    "ELECT RESIGN vault/seat 4294967297",
    "ELECT LEADER vault/seat",
    "ELECT SHOW vault/seat",
    "ELECT LIST",
    "ELECT LIST vault/*",
    "SUBSCRIBE elect:vault/seat",
    "UNSUBSCRIBE elect:vault/seat",
    "ONCE START vault/key 1 4294967297",
    "ONCE DONE vault/key 1 4294967297",
    "ONCE ABANDON vault/key 4294967297",
    "ONCE FORGET vault/key",
    "DECIDE vault/key value",
    "DECIDE FORGET vault/key",
    "GROUP JOIN vault/talk",
    "GROUP SEND vault/talk body",
    "GROUP MEMBERS vault/talk",
    "GROUP LEAVE vault/talk",
    "SUBSCRIBE group:vault/talk",
    "UNSUBSCRIBE group:vault/talk",
    "FLOW SHOW vault",
    "FLOW STATS vault",
    "FLOW STATS vault SINCE 1000",
    "FLOW CLIENTS vault",
    "FLOW CLIENTS vault secret",
    "FLOW CLIENTS vault none",
    "FLOW CLIENTS",
    "FLOW DELETE vault",
    "FLOW APPLY vault \"a -> [b] -> c\"",
    "FLOW LIST",
    "PRESENT vault secret",
    "PRESENT vault finish",
    "PRESENT vault none",
    "JOB SHOW 1",
    "JOB SHOW 2",
    "JOB SHOW 3",
    "JOB HISTORY 1",
    "JOB HISTORY 2",
    "JOB HISTORY 3",
    "JOB FIND *",
    "JOB FIND gold*",
    "JOB FIND * IN vault/inside",
    "JOB FIND * IN inside",
    "JOB LIST vault/inside",
    "JOB LIST vault/none",
    "JOB LIST inside",
    "JOB LIST a",
    "JOB COUNT",
    "JOB COUNT vault/inside",
    "JOB COUNT inside",
    "JOB CREATE vault/inside gold body",
    "JOB CREATE inside gold body",
    "JOB TAKE vault/inside",
    "JOB TAKE vault/inside NAME gold",
    "JOB TAKE inside",
    "JOB TAKE b vault/inside",
    "JOB PASS 1 4294967297 vault/beyond",
    "JOB PASS 1 4294967297 beyond",
    "JOB PASS 2 4294967297 b",
    "JOB PASS 2 1 own/b body",
    "JOB DELETE 1",
    "JOB DELETE 2",
    "JOB DELETE 1 4294967297",
    "JOB DELETE 2 4294967298",
    "JOB BACK 1 4294967297",
    "JOB BACK 2 4294967297",
    "JOB BACK 2 1",
    "JOB BACK 2 4294967297 FAILED",
    "JOB MOVE 1 vault/beyond",
    "JOB MOVE 1 own/b",
    "JOB MOVE 1 beyond",
    "JOB MOVE 2 b",
    "QUEUE SHOW vault/inside",
    "QUEUE SHOW vault/none",
    "QUEUE SHOW inside",
    "QUEUE SHOW a",
    "QUEUE LIST",
    "QUEUE LIST vault/*",
    "CLIENT UNBLOCK $c",
    "CLIENT UNBLOCK $c ERROR",
    "CLIENT END $c",
    "SUBSCRIBE gate:vault/door",
    "UNSUBSCRIBE gate:vault/door",
    "PSUBSCRIBE gate:vault/*",
    "PUNSUBSCRIBE gate:vault/*",
    "MULTI ; JOB DELETE 1 ; EXEC",
    "MULTI ; JOB CREATE vault/inside gold body ; DISCARD",
    "MULTI ; JOB BACK 2 4294967297 ; EXEC",
    "MULTI ; JOB MOVE 1 beyond ; EXEC",
    "SELECT 0",
    "RESET",
    "AUTH root guess",
    "AUTH vault guess",
];

/// Commands that name nothing, or answer with numbers of the whole node, which are for every user.
const NAMELESS: &[&str] = &[
    "PING", "STATUS", "STATE", "ECHO", "HELLO", "COMMAND", "INFO", "QUIT", "CLUSTER",
];

/// Users by what they may do: nothing here, their own flow and gates, everything but this flow's jobs.
const USERS: &[(&str, &str)] = &[
    ("nobody", "elsewhere : show"),
    ("owner", "own* : use define"),
    (
        "neighbour",
        "vaul : use define, vault0/* : use, own/work : use",
    ),
];

fn configured(config: &mut Config) {
    config.http = Some("127.0.0.1:0".parse().unwrap());
    config.wire.password_delay_ms = 0;
    config.wire.password_tries = 1_000_000;
    config.password = Secret::read("root").ok();
    for (name, rights) in USERS {
        let secret = Secret::read(name).unwrap();
        let user = User::new(name, secret, rights.parse().unwrap());
        config.users.push(user.unwrap());
    }
}

/// A node, with the hidden names or without, and what keeps them there.
struct Side {
    house: House,
    _kept: Vec<Client>,
}

const CONNECTIONS: usize = 3;

impl Side {
    fn new(hidden: bool) -> Side {
        let house = House::with(configured);
        let mut kept: Vec<Client> = (0..CONNECTIONS).map(|_| house.client()).collect();
        for client in &mut kept {
            assert_eq!(client.call(&["AUTH", "root"]).to_string(), "+OK");
        }
        let mut does = |at: usize, line: &str| {
            let words = words(line);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let answer = kept[at].call(&words).to_string();
            assert!(!answer.starts_with('-'), "{line}: {answer}");
            answer
        };
        does(0, &format!("FLOW APPLY own \"{OWN}\""));
        if hidden {
            does(0, &format!("FLOW APPLY vault \"{HIDDEN}\""));
            does(0, "GATE CREATE vault/made PERMITS 3");
            does(0, "JOB CREATE vault/inside gold body");
            does(0, "JOB CREATE vault/a silver body");
            does(0, "JOB CREATE vault/inside iron body");
            does(0, "JOB DELETE 3");
            // Job 2 and a gate are held, by sessions that could be named.
            does(1, "LOCK vault/door");
            does(1, "ELECT CAMPAIGN vault/seat gold");
            does(1, "JOB TAKE vault/a");
        }
        match hidden {
            true => kept[2].send(&["LOCK", "vault/door", "WAIT", "600000"]),
            false => kept.truncate(1),
        }
        Side { house, _kept: kept }
    }

    fn http(&self) -> SocketAddr {
        self.house.node.as_ref().unwrap().http_address().unwrap()
    }
}

/// Who asks: a user, and whether as a process of its own flow.
#[derive(Clone, Copy, Debug)]
struct Asker {
    user: &'static str,
    presented: bool,
}

/// A connection that is read byte by byte.
struct Raw(TcpStream);

impl Raw {
    fn open(side: &Side, asker: Asker) -> Raw {
        let stream = TcpStream::connect(side.house.address()).unwrap();
        let patience = Some(Duration::from_secs(60));
        stream.set_read_timeout(patience).unwrap();
        let mut raw = Raw(stream);
        raw.greet(asker);
        raw
    }

    fn greet(&mut self, Asker { user, presented }: Asker) {
        let hello = self.ask(&format!("HELLO 3 AUTH {user} {user}"));
        assert!(hello.starts_with('%'), "{hello}");
        if presented {
            assert_eq!(self.ask("PRESENT own work"), "+OK\r\n");
        }
    }

    /// What a command is answered: everything up to the answer of an `ECHO` behind it.
    fn ask(&mut self, line: &str) -> String {
        const END: &str = "that was all";
        let mut bytes = Vec::new();
        let end = format!("ECHO \"{END}\"");
        for words in line.split(" ; ").chain([end.as_str()]).map(words) {
            bytes.extend(format!("*{}\r\n", words.len()).bytes());
            for word in words {
                bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
            }
        }
        self.0.write_all(&bytes).unwrap();
        let last = format!("${}\r\n{END}\r\n", END.len());
        // Without a user ECHO is refused; that is as good an end.
        let refusals = ["NOAUTH"];
        let mut answer = Vec::new();
        let mut chunk = [0; 4096];
        loop {
            let text = String::from_utf8_lossy(&answer).into_owned();
            let refused = text.ends_with("\r\n")
                && text.matches("\r\n").count() > 1
                && refusals.iter().any(|why| text.contains(why));
            if let Some(answer) = text.strip_suffix(&last) {
                return answer.to_owned();
            }
            if refused {
                return text;
            }
            match self.0.read(&mut chunk).unwrap() {
                0 => return format!("{text}closed"),
                read => answer.extend_from_slice(&chunk[..read]),
            }
        }
    }
}

/// The words of a line; quotes keep blanks together.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('"').enumerate() {
        match at % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

fn askers() -> Vec<Asker> {
    let mut askers: Vec<Asker> = Vec::new();
    for (user, _) in USERS {
        askers.push(Asker {
            user,
            presented: false,
        });
    }
    for user in ["owner", "neighbour"] {
        askers.push(Asker {
            user,
            presented: true,
        });
    }
    askers
}

/// The questions, with each hidden session and connection in the place of its sign.
fn questions() -> Vec<String> {
    // Of the second and third connection, which are gone on the side without hidden names.
    const IMPLICIT: u64 = 1 << 52;
    let mut questions = Vec::new();
    for line in ASKED {
        for at in 2..=if line.contains('$') { 3 } else { 2 } {
            let line = line.replace("$s", &(IMPLICIT + at).to_string());
            questions.push(line.replace("$c", &at.to_string()));
        }
    }
    questions
}

#[test]
fn every_command_is_asked_about_hidden_names() {
    let house = House::open();
    let mut client = house.client();
    let all = client.call(&["COMMAND", "LIST"]);
    for name in all.list() {
        let name = name.to_string().trim_matches('"').to_owned();
        let mut asked = ASKED.iter().flat_map(|line| line.split(" ; "));
        let asked = asked.any(|line| line.split(' ').next() == Some(&name));
        assert!(
            asked != NAMELESS.contains(&name.as_str()),
            "{name} is to be in one of the two lists"
        );
    }
}

#[test]
fn nobody_learns_a_name_by_asking_for_it() {
    let sides = [Side::new(true), Side::new(false)];
    let (mut asked, mut refused) = (0, 0);
    for asker in askers() {
        let mut raws = sides.each_ref().map(|side| Raw::open(side, asker));
        for line in questions() {
            let [there, missing] = raws.each_mut().map(|raw| raw.ask(&line));
            assert_eq!(there, missing, "{asker:?}: {line}");
            asked += 1;
            refused += usize::from(there.starts_with('-'));
            if line == "RESET" {
                for raw in &mut raws {
                    raw.greet(asker);
                }
            }
        }
    }
    assert!(refused > asked / 2, "{refused} of {asked}");
}

/// The oracle itself: for who may see everything the two nodes are not the same.
#[test]
fn an_administrator_tells_the_two_apart() {
    let sides = [Side::new(true), Side::new(false)];
    let mut raws = sides.each_ref().map(|side| {
        let stream = TcpStream::connect(side.house.address()).unwrap();
        let mut raw = Raw(stream);
        assert!(raw.ask("HELLO 3 AUTH default root").starts_with('%'));
        raw
    });
    for line in [
        "QUEUE SHOW vault/inside",
        "JOB SHOW 1",
        "PRESENT vault secret",
        "GATE SHOW vault/made",
    ] {
        let [there, missing] = raws.each_mut().map(|raw| raw.ask(line));
        assert_ne!(there, missing, "{line}");
    }
}

#[test]
fn nobody_learns_a_name_over_http() {
    let sides = [Side::new(true), Side::new(false)];
    for (user, _) in USERS {
        for path in [
            "/api/gates/vault/door",
            "/api/gates/vault/made",
            "/api/flows",
            "/api/waits",
        ] {
            let [there, missing] = sides.each_ref().map(|side| get(side.http(), user, path));
            assert_eq!(there, missing, "{user}: {path}");
        }
        for line in questions() {
            // These need a connection that lasts, and are refused before they are looked at.
            let command = serde_json::to_string(&words(&line)).unwrap();
            let [there, missing] = sides
                .each_ref()
                .map(|side| post(side.http(), user, "/api/command", &command));
            assert_eq!(there, missing, "{user}: {line}");
        }
        let plan = r#"{"name": "vault", "text": "a -> [b] -> c"}"#;
        let [there, missing] = sides
            .each_ref()
            .map(|side| post(side.http(), user, "/api/flow/plan", plan));
        assert_eq!(there, missing, "{user}: plan");
        for path in ["/api/state", "/metrics", "/api/sessions"] {
            let (_, body) = get(sides[0].http(), user, path);
            for name in ["vault", "beyond", "gold", "silver"] {
                assert!(!body.contains(name), "{user}: {path}: {name}");
            }
        }
    }
}

/// Jobs have names, too: who may define a flow does not learn those of queues that it may not look into.
#[test]
fn a_refused_apply_names_no_jobs_that_its_author_may_not_see() {
    let house = House::with(|config| {
        configured(config);
        let rights = "vault : define, vault/a : show".parse().unwrap();
        let author = User::new("author", Secret::read("author").unwrap(), rights);
        config.users.push(author.unwrap());
    });
    let mut root = house.client();
    for line in [
        "AUTH root".to_owned(),
        format!("FLOW APPLY vault \"{HIDDEN}\""),
        "JOB CREATE vault/inside gold body".into(),
        "JOB CREATE vault/a silver body".into(),
    ] {
        let words = words(&line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let answer = root.call(&words).to_string();
        assert!(!answer.starts_with('-'), "{line}: {answer}");
    }
    let mut author = house.client();
    author.call(&["AUTH", "author", "author"]);
    for line in [
        &["FLOW", "APPLY", "vault", "x -> [b] -> y"][..],
        &["FLOW", "DELETE", "vault"],
    ] {
        let answer = author.call(line).to_string();
        let told = "1 in queue a (silver), 1 in queue inside;";
        assert!(answer.contains(told), "{answer}");
    }
}

fn get(at: SocketAddr, user: &str, path: &str) -> (String, String) {
    http(at, user, &format!("GET {path} HTTP/1.1\r\n"), "")
}

fn post(at: SocketAddr, user: &str, path: &str, body: &str) -> (String, String) {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n"
    );
    http(at, user, &head, body)
}

/// The status line and the body.
fn http(at: SocketAddr, user: &str, head: &str, body: &str) -> (String, String) {
    let mut stream = TcpStream::connect(at).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let basic = BASE64_STANDARD.encode(format!("{user}:{user}"));
    write!(
        stream,
        "{head}Host: localhost\r\nConnection: close\r\nAuthorization: Basic {basic}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().into(), body.into())
}
