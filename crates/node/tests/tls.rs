//! TLS at both doors: with a library of the field, with unmodified tools, and with peers that mean no good.

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto};
use support::with_users;
use tempfile::TempDir;
use testigo_node::{Config, Node, TlsFiles};

type Sealed = StreamOwned<ClientConnection, TcpStream>;

/// A node with a certificate of its own making, and one that a client could show.
struct House {
    dir: TempDir,
    node: Node,
}

impl House {
    fn open(configure: impl FnOnce(&mut Config, &mut TlsFiles)) -> House {
        let dir = tempfile::tempdir().unwrap();
        for name in ["node", "client"] {
            let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
            let own = rcgen::generate_simple_self_signed(names).unwrap();
            let path = |what| dir.path().join(format!("{name}.{what}"));
            std::fs::write(path("cert"), own.cert.pem()).unwrap();
            std::fs::write(path("key"), own.signing_key.serialize_pem()).unwrap();
        }
        let mut config = Config::embedded(dir.path().join("data"));
        config.resp = Some("127.0.0.1:0".parse().unwrap());
        config.http = Some("127.0.0.1:0".parse().unwrap());
        let mut files = TlsFiles {
            cert: dir.path().join("node.cert"),
            key: dir.path().join("node.key"),
            client_ca: None,
        };
        configure(&mut config, &mut files);
        if files.client_ca.is_some() {
            files.client_ca = Some(dir.path().join("client.cert"));
        }
        config.tls = Some(files);
        let node = Node::start(config).unwrap();
        House { dir, node }
    }

    fn resp(&self) -> SocketAddr {
        self.node.resp_address().unwrap()
    }

    fn http(&self) -> SocketAddr {
        self.node.http_address().unwrap()
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    fn connect(&self, at: SocketAddr, identity: bool) -> Sealed {
        let mut roots = RootCertStore::empty();
        let cert = |name| CertificateDer::from_pem_file(self.path(name)).unwrap();
        roots.add(cert("node.cert")).unwrap();
        let config =
            ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(roots);
        let key = || PrivateKeyDer::from_pem_file(self.path("client.key")).unwrap();
        let config = match identity {
            true => config.with_client_auth_cert(vec![cert("client.cert")], key()),
            false => Ok(config.with_no_client_auth()),
        };
        let name = ServerName::try_from("localhost").unwrap();
        let tls = ClientConnection::new(Arc::new(config.unwrap()), name).unwrap();
        StreamOwned::new(tls, TcpStream::connect(at).unwrap())
    }

    fn answers(&self) {
        assert_eq!(
            say(&mut self.connect(self.resp(), false), "PING\r\n", 7),
            "+PONG\r\n"
        );
    }
}

/// Sends commands and reads so many bytes.
fn say(stream: &mut Sealed, commands: &str, bytes: usize) -> String {
    stream.write_all(commands.as_bytes()).unwrap();
    let mut answer = vec![0; bytes];
    stream.read_exact(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

#[test]
fn commands_travel_sealed_however_they_are_cut() {
    let house = House::open(|_, _| {});
    let mut stream = house.connect(house.resp(), false);
    assert_eq!(say(&mut stream, "LOCK a\r\n", 13), ":4294967297\r\n");
    // More than a record, more than the reactor reads at once, and more than waits for a peer that does not read.
    let text = "x".repeat(50_000);
    let commands: String = (0..100).map(|n| format!("ECHO {n:04}{text}\r\n")).collect();
    let expected: String = (0..100)
        .map(|n| format!("$50004\r\n{n:04}{text}\r\n"))
        .collect();
    let mut reader = stream.sock.try_clone().unwrap();
    let (written, read) = std::thread::scope(|scope| {
        // One thread seals and sends while the other collects what is sealed.
        let collected = scope.spawn(move || {
            let mut sealed = Vec::new();
            let mut chunk = vec![0; 100_000];
            while sealed.len() < 100 * 50_000 {
                let count = reader.read(&mut chunk).unwrap();
                assert!(count > 0, "the node closed the connection");
                sealed.extend_from_slice(&chunk[..count]);
            }
            sealed
        });
        for command in commands.as_bytes().chunks(7_777) {
            stream.conn.writer().write_all(command).unwrap();
            while stream.conn.wants_write() {
                stream.conn.write_tls(&mut stream.sock).unwrap();
            }
        }
        (commands.len(), collected.join().unwrap())
    });
    assert!(written > 5_000_000);
    let mut answer = String::new();
    let mut sealed = &read[..];
    while answer.len() < expected.len() {
        match sealed.is_empty() {
            true => stream.conn.read_tls(&mut stream.sock).unwrap(),
            false => stream.conn.read_tls(&mut sealed).unwrap(),
        };
        stream.conn.process_new_packets().unwrap();
        let mut plain = [0; 20_000];
        while let Ok(count @ 1..) = stream.conn.reader().read(&mut plain) {
            answer.push_str(std::str::from_utf8(&plain[..count]).unwrap());
        }
    }
    assert!(answer == expected, "{} bytes", answer.len());
    house.answers();
}

#[test]
fn who_waits_is_woken_and_who_quits_is_told() {
    let house = House::open(|_, _| {});
    let (mut a, mut b) = (
        house.connect(house.resp(), false),
        house.connect(house.resp(), false),
    );
    assert_eq!(say(&mut a, "LOCK a\r\n", 13), ":4294967297\r\n");
    b.write_all(b"LOCK a\r\n").unwrap();
    assert_eq!(say(&mut a, "UNLOCK a\r\n", 5), "+OK\r\n");
    assert_eq!(say(&mut b, "", 13), ":4294967298\r\n");
    assert_eq!(say(&mut b, "QUIT\r\n", 5), "+OK\r\n");
    // An end that was said, not an end that may have been cut off.
    assert_eq!(b.read(&mut [0; 10]).unwrap(), 0);
}

#[test]
fn hostile_bytes_end_their_own_connection_alone() {
    let house = House::open(|config, _| config.wire.handshake_ms = 200);
    let mut hello = Vec::new();
    let mut client = house.connect(house.resp(), false);
    client.conn.write_tls(&mut hello).unwrap();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    for round in 0..200 {
        let mut bytes = match round % 4 {
            0 => b"PING\r\n".to_vec(),
            1 => (0..random.next_u32() % 2_000)
                .map(|_| random.next_u32() as u8)
                .collect(),
            _ => hello.clone(),
        };
        for _ in 0..random.next_u32() % 5 {
            if let Some(at) = (random.next_u32() as usize).checked_rem(bytes.len()) {
                bytes[at] = random.next_u32() as u8;
            }
        }
        let at = [house.resp(), house.http()][round % 2];
        let mut stream = TcpStream::connect(at).unwrap();
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    // After a good greeting, too.
    let mut stream = house.connect(house.resp(), false);
    say(&mut stream, "PING\r\n", 7);
    let _ = stream.sock.write_all(&[0x17, 3, 3, 0, 5, 1, 2, 3, 4, 5]);
    assert!(stream.read(&mut [0; 10]).is_err());
    house.answers();
}

#[test]
fn a_greeting_that_takes_too_long_is_ended() {
    let house = House::open(|config, _| config.wire.handshake_ms = 30);
    let mut good = house.connect(house.resp(), false);
    say(&mut good, "PING\r\n", 7);
    for at in [house.resp(), house.http()] {
        let mut silent = TcpStream::connect(at).unwrap();
        silent.write_all(&[0x16, 3, 1]).unwrap();
        // Returns when the node closes; nothing else ends it.
        let ended = silent.read_to_end(&mut Vec::new());
        assert!(ended.is_ok() || ended.is_err_and(|e| e.kind() == ErrorKind::ConnectionReset));
    }
    // Who has greeted may be as silent as it likes.
    say(&mut good, "PING\r\n", 7);
}

#[test]
fn a_node_may_ask_clients_for_their_certificate() {
    let house = House::open(|_, files| files.client_ca = Some("set by the house".into()));
    assert_eq!(
        say(&mut house.connect(house.resp(), true), "PING\r\n", 7),
        "+PONG\r\n"
    );
    let mut stranger = house.connect(house.resp(), false);
    let told = stranger
        .write_all(b"PING\r\n")
        .and_then(|()| stranger.read_exact(&mut [0; 7]));
    assert!(told.is_err());
}

#[test]
fn files_that_do_not_fit_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let own = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap();
    let path = |name: &str| dir.path().join(name);
    std::fs::write(path("cert"), own.cert.pem()).unwrap();
    std::fs::write(path("other"), other.signing_key.serialize_pem()).unwrap();
    for (cert, key, wrong) in [
        ("missing", "other", "missing"),
        ("cert", "cert", "cert"),
        ("cert", "other", "cannot be used"),
        ("other", "other", "no certificate"),
    ] {
        let mut config = Config::embedded(path("data"));
        let (cert, key) = (path(cert), path(key));
        config.tls = Some(TlsFiles {
            cert,
            key,
            client_ca: None,
        });
        let error = Node::start(config).unwrap_err().to_string();
        assert!(error.contains(wrong), "{error}");
    }
}

const PYTHON: &str = r#"
import sys, redis
port, ca = int(sys.argv[1]), sys.argv[2]
r = redis.Redis(host="localhost", port=port, ssl=True, ssl_ca_certs=ca, username="alice", password="alice's")
assert r.ping() is True
assert r.execute_command("LOCK", "deploy/x") > 0
try:
    r.execute_command("LOCK", "report/x")
    raise SystemExit("alice may not do this")
except redis.ResponseError as error:
    assert str(error).startswith("DENIED user alice"), error
print("fine")
"#;

/// Runs a tool that may not be there.
fn tool(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Ok(output) => {
            let err = String::from_utf8_lossy(&output.stderr);
            if program == "python3" && err.contains("No module named 'redis'") {
                eprintln!("SKIPPED: redis-py is not installed");
                return None;
            }
            Some(format!("{}{err}", String::from_utf8_lossy(&output.stdout)))
        }
        Err(error) => {
            eprintln!("SKIPPED: {program} cannot be run here: {error}");
            None
        }
    }
}

#[test]
fn unmodified_tools_come_in() {
    let house = House::open(|config, _| with_users(config));
    let (resp, http) = (house.resp().port().to_string(), house.http().port());
    let ca = house.path("node.cert");
    let sealed = ["-h", "localhost", "-p", &resp, "--tls", "--cacert", &ca];
    let user = ["--user", "alice", "--pass", "alice's", "LOCK", "deploy/y"];
    if let Some(said) = tool("redis-cli", &[&sealed[..], &user].concat()) {
        assert!(said.contains("4294967297"), "{said}");
    }
    if let Some(said) = tool("python3", &["-c", PYTHON, &resp, &ca]) {
        assert!(said.contains("fine"), "{said}");
    }
    let url = format!("https://localhost:{http}/api/state");
    let curl = ["--silent", "--show-error", "--cacert", &ca];
    if let Some(said) = tool(
        "curl",
        &[&curl[..], &["--user", "bob:bob's", &url]].concat(),
    ) {
        assert!(said.contains("\"start\":1"), "{said}");
    }
    if let Some(said) = tool("curl", &[&curl[..], &[&url]].concat()) {
        assert!(said.contains("who you are"), "{said}");
    }
    if let Some(said) = tool("curl", &["--silent", "--show-error", &url]) {
        assert!(said.contains("certificate"), "{said}");
    }
}

/// The time before AUTH begins when the connection is taken, not when its handshake is over.
#[test]
fn the_handshake_counts_in_the_time_before_auth() {
    let house = House::open(|config, _| {
        config.password = testigo_node::Secret::read("secret").ok();
        config.wire.handshake_ms = 600_000;
        config.wire.preauth_ms = 1_000;
    });
    let ended = |mut stream: TcpStream| {
        // Returns when the node closes; nothing else ends it.
        let ended = stream.read_to_end(&mut Vec::new());
        assert!(ended.is_ok() || ended.is_err_and(|e| e.kind() == ErrorKind::ConnectionReset));
    };
    let silent = TcpStream::connect(house.resp()).unwrap();
    let mut begun = TcpStream::connect(house.resp()).unwrap();
    begun.write_all(&[0x16, 3, 1]).unwrap();
    let mut greeted = house.connect(house.resp(), false);
    let refused = say(&mut greeted, "PING\r\n", 34);
    assert!(refused.starts_with("-NOAUTH"), "{refused}");
    ended(silent);
    ended(begun);
    let mut told = String::new();
    let _ = greeted.read_to_string(&mut told);
    assert!(told.contains("the limit preauth_ms"), "{told}");
}

#[test]
fn a_reload_shows_another_certificate_or_changes_nothing() {
    let house = House::open(|_, _| {});
    let mut before = house.connect(house.resp(), false);
    assert_eq!(say(&mut before, "PING\r\n", 7), "+PONG\r\n");
    let reload = || {
        let mut config = Config::embedded(house.dir.path().join("data"));
        config.tls = Some(TlsFiles {
            cert: house.path("node.cert").into(),
            key: house.path("node.key").into(),
            client_ca: None,
        });
        house.node.reload(&config)
    };
    std::fs::copy(house.path("client.key"), house.path("node.key")).unwrap();
    assert!(reload().is_err(), "the key is another certificate's");
    house.answers();
    std::fs::copy(house.path("client.cert"), house.path("node.cert")).unwrap();
    reload().unwrap();
    // It is believed by the new certificate alone.
    house.answers();
    let mut http = house.connect(house.http(), false);
    let health = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_eq!(say(&mut http, health, 15), "HTTP/1.1 200 OK");
    assert_eq!(say(&mut before, "PING\r\n", 7), "+PONG\r\n");
}

/// What is lent to many connections reaches sealed ones whole, and a sealed one that does not read is closed like any other.
#[test]
fn messages_to_many_travel_sealed() {
    let house = House::open(|config, _| config.wire.output_bytes_total = 2 << 20);
    let connect = || house.connect(house.resp(), false);
    let [mut sender, mut reader, mut deaf] = [(); 3].map(|()| connect());
    let line = |stream: &mut Sealed| {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    };
    for command in ["SESSION OPEN", "GROUP JOIN g"] {
        sender
            .write_all(format!("{command}\r\n").as_bytes())
            .unwrap();
        let head = line(&mut sender);
        let lines = match head.strip_prefix('*') {
            Some(count) => count.trim().parse().unwrap(),
            None => usize::from(head.starts_with('$')),
        };
        for _ in 0..lines {
            if line(&mut sender).starts_with('$') {
                line(&mut sender);
            }
        }
    }
    for listener in [&mut reader, &mut deaf] {
        let confirmed = "*3\r\n$9\r\nsubscribe\r\n$7\r\ngroup:g\r\n:1\r\n";
        let answer = say(listener, "SUBSCRIBE group:g\r\n", confirmed.len());
        assert_eq!(answer, confirmed);
    }
    // The sockets' own buffers take the first of them.
    let head = "*3\r\n$7\r\nmessage\r\n$7\r\ngroup:g\r\n";
    for number in 1..=400 {
        let body = format!("{number:0>60000}");
        sender
            .write_all(format!("GROUP SEND g {body}\r\n").as_bytes())
            .unwrap();
        assert!(line(&mut sender).starts_with(':'));
        let mut told = vec![0; head.len()];
        reader.read_exact(&mut told).unwrap();
        assert_eq!(String::from_utf8(told).unwrap(), head);
        let bytes = line(&mut reader);
        let bytes: usize = bytes.trim().trim_start_matches('$').parse().unwrap();
        let mut text = vec![0; bytes + 2];
        reader.read_exact(&mut text).unwrap();
        assert!(
            text.ends_with(format!(" {body}\r\n").as_bytes()),
            "message {number}"
        );
    }
    let status = |sender: &mut Sealed| {
        sender.write_all(b"STATUS\r\n").unwrap();
        let count: usize = line(sender).trim().trim_start_matches('*').parse().unwrap();
        let mut texts = Vec::new();
        for _ in 0..count {
            let value = line(sender);
            texts.push(match value.starts_with('$') {
                true => line(sender),
                false => value,
            });
        }
        let at = texts
            .iter()
            .position(|text| text == "closed_output_total_ever\r\n");
        texts[at.unwrap() + 1].clone()
    };
    assert_eq!(status(&mut sender), ":1\r\n");
    let mut rest = Vec::new();
    assert!(deaf.read_to_end(&mut rest).is_err() || rest.len() < 400 * 60_000);
}
