//! Real sockets: members that talk to each other through restarts, and strangers that change nothing.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use bytes::Bytes;
use testigo_core::{Address, ClusterId, Newcomer, NodeId, Start};
use testigo_engine::{FRAME_BYTES_MAX, Sends};

use super::dial::dial;
use super::door::{GREETING_MAX, STRANGERS_MAX};
use super::frames::UNPROVEN;
use super::greeting::{HELLO_BYTES, Hello, PROOF_BYTES, Purpose, VERSION};
use super::*;

/// Longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

const CLUSTER: ClusterId = ClusterId(7);

/// A node's sockets, and what it hears.
struct Node {
    config: ClusterConfig,
    peers: Peers,
    sends: Box<dyn Sends>,
    heard: Receiver<(u64, Bytes)>,
}

fn config(id: u64) -> ClusterConfig {
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = ClusterConfig::new(id, port.local_addr().unwrap().to_string());
    config.secret = Some(ClusterSecret::read("the secret of the tests").unwrap());
    config
}

fn open(config: &ClusterConfig, start: u64) -> Node {
    let (tell, heard) = channel();
    let hear = move |from, frames: &mut Vec<Bytes>| {
        for frame in frames.drain(..) {
            let _ = tell.send((from, frame));
        }
    };
    let answers = |newcomer: Newcomer| match newcomer.node {
        NodeId(9) => JoinAnswer::Refused("node 9 is a member".into()),
        _ => JoinAnswer::Welcome(Welcome {
            cluster: CLUSTER,
            addresses: vec![(newcomer.node.0, newcomer.address)],
        }),
    };
    let listener = listen_for_peers(config).unwrap();
    let identity = Identity::new(config, start).unwrap();
    let peers = Peers::start(identity, listener, hear, answers).unwrap();
    Node {
        config: config.clone(),
        sends: peers.sender(),
        peers,
        heard,
    }
}

/// Tells nodes each other's addresses.
fn introduce(nodes: &[&Node]) {
    let address = |node: &&Node| {
        let address = Address {
            peer: node.config.peer.clone(),
            client: None,
        };
        (node.config.id, address)
    };
    let welcome = Welcome {
        cluster: CLUSTER,
        addresses: nodes.iter().map(address).collect(),
    };
    for node in nodes {
        node.peers.be_welcome(&welcome);
    }
}

/// Sends until something arrives: frames may be lost as long as there is no connection.
fn talk(from: &mut Node, to: &Node) {
    let until = Instant::now() + PATIENCE;
    let frame = Bytes::from(format!("{:?}", Instant::now()));
    let wanted = (from.config.id, frame.clone());
    loop {
        from.sends.send(to.config.id, frame.clone());
        from.sends.flush();
        match to.heard.recv_timeout(Duration::from_millis(20)) {
            Ok(heard) if heard == wanted => return,
            _ => assert!(Instant::now() < until, "{:?}", from.peers.status()),
        }
    }
}

/// Waits for the other side to hang up; returns what it said.
fn hung_up(stream: &mut TcpStream) -> Vec<u8> {
    stream.set_read_timeout(Some(GREETING_MAX * 5)).unwrap();
    let (mut said, mut buffer) = (Vec::new(), [0; 1024]);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return said,
            Ok(count) => said.extend_from_slice(&buffer[..count]),
            Err(error) => {
                let slow = matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                );
                assert!(!slow, "nobody has hung up");
                return said;
            }
        }
    }
}

#[test]
fn three_nodes_talk_in_order_and_again_after_one_was_started_again() {
    let [mut one, mut two, mut three] = [1, 2, 3].map(|id| open(&config(id), 1));
    introduce(&[&one, &two, &three]);
    talk(&mut one, &two);
    talk(&mut two, &three);
    talk(&mut three, &one);
    // A frame that fits no buffer, between short ones.
    let long = Bytes::from(vec![7; FRAME_BYTES_MAX]);
    let frames = [&b"first"[..], &long, b"", b"last"].map(Bytes::copy_from_slice);
    while two.heard.try_recv().is_ok() {}
    for frame in &frames {
        one.sends.send(2, frame.clone());
    }
    one.sends.flush();
    for frame in frames {
        assert!(two.heard.recv_timeout(PATIENCE).unwrap() == (1, frame));
    }
    let config = two.config.clone();
    drop(two);
    talk(&mut one, &three);
    let mut two = open(&config, 2);
    introduce(&[&one, &two, &three]);
    talk(&mut one, &two);
    talk(&mut two, &one);
    talk(&mut three, &two);
    let status = one.peers.status();
    let connected = status.iter().map(|peer| (peer.node, peer.connected));
    assert_eq!(connected.collect::<Vec<_>>(), [(2, true), (3, true)]);
}

#[test]
fn nodes_without_a_secret_talk_on_this_machine() {
    let [one, two] = [1, 2].map(|id| ClusterConfig {
        secret: None,
        ..config(id)
    });
    let (mut one, mut two) = (open(&one, 1), open(&two, 1));
    introduce(&[&one, &two]);
    talk(&mut one, &two);
    talk(&mut two, &one);
}

#[test]
fn a_node_is_dialled_where_it_is_now() {
    let (mut one, two) = (open(&config(1), 1), open(&config(2), 1));
    introduce(&[&one, &two]);
    talk(&mut one, &two);
    drop(two);
    let two = open(&config(2), 2);
    introduce(&[&one, &two]);
    talk(&mut one, &two);
}

#[test]
fn strangers_are_cut_off_and_change_nothing() {
    let (mut one, two) = (open(&config(1), 1), open(&config(2), 1));
    introduce(&[&one, &two]);
    talk(&mut one, &two);
    let hello = |change: fn(&mut Hello)| {
        let mut hello = Hello::new(Purpose::Frames, true, 3_000, CLUSTER, (1, 1), 2).unwrap();
        change(&mut hello);
        hello.write().to_vec()
    };
    let half = hello(|_| {})[..HELLO_BYTES / 2].to_vec();
    let guess = [hello(|_| {}), vec![0; 32]].concat();
    let greets = [
        ("nothing", vec![], false),
        ("garbage", vec![0xff; 5000], false),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), false),
        (
            "TLS",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
            false,
        ),
        ("half a hello", half, false),
        ("a guessed proof", guess, true),
        (
            "another version",
            hello(|hello| (hello.version, hello.oldest) = (9, 9)),
            true,
        ),
        ("another group", hello(|hello| hello.group = 1), true),
        ("no secret", hello(|hello| hello.guarded = false), true),
        ("a hello and silence", hello(|_| {}), true),
    ];
    for (what, bytes, answered) in greets {
        let mut stream = TcpStream::connect(&two.config.peer).unwrap();
        let _ = stream.write_all(&bytes);
        let said = hung_up(&mut stream);
        assert_eq!(!said.is_empty(), answered, "{what}: {said:?}");
    }
    talk(&mut one, &two);
    assert!(two.heard.try_recv().is_err());
}

/// From anything made with the secret a stranger could find it out at leisure, by trying words.
#[test]
fn a_stranger_hears_nothing_that_was_made_with_the_secret() {
    // All that a node answers to one who does not know its secret.
    let answers = |secret: &str, proof: bool| {
        let mut config = config(2);
        config.secret = Some(ClusterSecret::read(secret).unwrap());
        let two = open(&config, 1);
        let mut stranger = TcpStream::connect(&two.config.peer).unwrap();
        let hello = Hello::new(Purpose::Frames, true, 3_000, CLUSTER, (1, 1), 2).unwrap();
        stranger.write_all(&hello.write()).unwrap();
        let mut theirs = [0; HELLO_BYTES];
        stranger.read_exact(&mut theirs).unwrap();
        if proof {
            stranger.write_all(&[7; PROOF_BYTES]).unwrap();
        }
        hung_up(&mut stranger)
    };
    for proof in [true, false] {
        let heard = ["one secret of nodes", "another secret of nodes"].map(|it| answers(it, proof));
        assert_eq!(heard[0], heard[1], "it depends on the secret");
        let told = if proof { UNPROVEN.to_vec() } else { Vec::new() };
        assert_eq!(heard[0], told);
    }
}

/// A node of the version before takes the acceptor's hello, and says why it goes no further.
#[test]
fn a_node_of_an_older_version_is_refused_by_name() {
    let two = open(&config(2), 1);
    let mut older = TcpStream::connect(&two.config.peer).unwrap();
    let mut hello = Hello::new(Purpose::Frames, true, 3_000, CLUSTER, (1, 1), 2).unwrap();
    (hello.version, hello.oldest) = (1, 1);
    older.write_all(&hello.write()).unwrap();
    let theirs = hung_up(&mut older);
    assert_eq!(theirs.len(), HELLO_BYTES, "a hello and nothing else");
    assert_eq!(theirs[8..10], [VERSION, VERSION]);
    // The other way round.
    let between = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = between.local_addr().unwrap().to_string();
    let older = std::thread::spawn(move || {
        let (mut older, _) = between.accept().unwrap();
        older.read_exact(&mut [0; HELLO_BYTES]).unwrap();
        older.write_all(&hello.write()).unwrap();
    });
    let identity = Identity::new(&config(1), 1).unwrap();
    identity.set_cluster(CLUSTER);
    let told = dial(&identity, &address, Purpose::Frames, 2).unwrap_err();
    assert!(told.to_string().contains("versions 1 to 1"), "{told}");
    older.join().unwrap();
}

/// What a node is told whose configuration differs from the others'.
fn refused(change: impl FnOnce(&mut ClusterConfig), cluster: ClusterId, to: u64) -> String {
    let two = open(&config(2), 5);
    introduce(&[&two]);
    let mut other = config(1);
    change(&mut other);
    let identity = Identity::new(&other, 1).unwrap();
    identity.set_cluster(cluster);
    let error = dial(&identity, &two.config.peer, Purpose::Frames, to).unwrap_err();
    assert!(two.heard.try_recv().is_err());
    error.to_string()
}

#[test]
fn only_nodes_of_the_cluster_are_let_in_and_others_are_told_why() {
    let other = ClusterSecret::read("the secret of others").unwrap();
    for (told, part) in [
        (
            refused(|config| config.secret = Some(other), CLUSTER, 2),
            "know the cluster's secret",
        ),
        (
            refused(|config| config.secret = None, CLUSTER, 2),
            "and this node has none",
        ),
        (refused(|_| {}, ClusterId(8), 2), "not of cluster"),
        (refused(|_| {}, CLUSTER, 3), "it is node 2, not node 3"),
        (refused(|config| config.id = 2, CLUSTER, 2), "is this node"),
        (refused(|config| config.id = 256, CLUSTER, 2), "no number"),
    ] {
        assert!(told.contains(part), "{told}");
    }
}

#[test]
fn an_earlier_start_is_not_heard_beside_a_later_one() {
    let two = open(&config(2), 1);
    introduce(&[&two]);
    let with_start = |start| {
        let identity = Identity::new(&config(1), start).unwrap();
        identity.set_cluster(CLUSTER);
        dial(&identity, &two.config.peer, Purpose::Frames, 2)
    };
    let mut fifth = with_start(5).unwrap();
    let until = Instant::now() + PATIENCE;
    fifth.say(b"5", until).unwrap();
    assert_eq!(two.heard.recv_timeout(PATIENCE).unwrap().1, "5");
    let told = with_start(4).unwrap_err().to_string();
    assert!(told.contains("later than start 4"), "{told}");
    let mut sixth = with_start(6).unwrap();
    sixth.say(b"6", until).unwrap();
    assert_eq!(two.heard.recv_timeout(PATIENCE).unwrap().1, "6");
    hung_up(&mut fifth.stream.socket().try_clone().unwrap());
}

#[test]
fn what_was_overheard_cannot_be_said_again() {
    let two = open(&config(2), 1);
    introduce(&[&two]);
    // An eavesdropper between the two hears every byte that node 1 says.
    let between = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = between.local_addr().unwrap().to_string();
    let target = two.config.peer.clone();
    let spy = std::thread::spawn(move || {
        let (mut one, _) = between.accept().unwrap();
        let mut two = TcpStream::connect(target).unwrap();
        let (mut back, mut to_one) = (two.try_clone().unwrap(), one.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut back, &mut to_one));
        let (mut overheard, mut buffer) = (Vec::new(), [0; 1024]);
        loop {
            let count = one.read(&mut buffer).unwrap_or(0);
            overheard.extend_from_slice(&buffer[..count]);
            if count == 0 || two.write_all(&buffer[..count]).is_err() {
                return overheard;
            }
        }
    });
    let identity = Identity::new(&config(1), 1).unwrap();
    identity.set_cluster(CLUSTER);
    let mut dialled = dial(&identity, &address, Purpose::Frames, 2).unwrap();
    dialled.say(b"frame", Instant::now() + PATIENCE).unwrap();
    assert_eq!(two.heard.recv_timeout(PATIENCE).unwrap().1, "frame");
    dialled.stream.end();
    let overheard = spy.join().unwrap();
    let mut again = TcpStream::connect(&two.config.peer).unwrap();
    let _ = again.write_all(&overheard);
    hung_up(&mut again);
    assert!(two.heard.try_recv().is_err());
}

#[test]
fn a_damaged_or_endless_frame_ends_the_connection_and_is_not_heard() {
    let two = open(&config(2), 1);
    introduce(&[&two]);
    let identity = Identity::new(&config(1), 1).unwrap();
    identity.set_cluster(CLUSTER);
    let endless = |bytes: &mut Vec<u8>| bytes[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    let damaged = |bytes: &mut Vec<u8>| bytes[4] ^= 1;
    let recoded = |bytes: &mut Vec<u8>| *bytes.last_mut().unwrap() ^= 1;
    for damage in [endless, damaged, recoded] {
        let mut dialled = dial(&identity, &two.config.peer, Purpose::Frames, 2).unwrap();
        let mut bytes = Vec::new();
        dialled.sealer.seal(b"good", &mut bytes);
        let good = bytes.len();
        dialled.sealer.seal(b"bad", &mut bytes);
        let mut bad = bytes.split_off(good);
        damage(&mut bad);
        dialled.stream.write_all(&bytes).unwrap();
        dialled.stream.write_all(&bad).unwrap();
        hung_up(&mut dialled.stream.socket().try_clone().unwrap());
        assert_eq!(two.heard.recv_timeout(PATIENCE).unwrap().1, "good");
        assert!(two.heard.try_recv().is_err());
    }
}

#[test]
fn thousands_who_say_nothing_crowd_out_nobody() {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, limit);
    let (mut one, mut two) = (open(&config(1), 1), open(&config(2), 1));
    let idle: Vec<_> = (0..2000)
        .map(|_| TcpStream::connect(&two.config.peer).unwrap())
        .collect();
    assert!(idle.len() > 5 * STRANGERS_MAX);
    introduce(&[&one, &two]);
    talk(&mut one, &two);
    talk(&mut two, &one);
    for mut idle in idle {
        assert!(hung_up(&mut idle).is_empty());
    }
}

#[test]
fn a_newcomer_is_answered() {
    let two = open(&config(2), 1);
    let newcomer = |id| Newcomer {
        node: NodeId(id),
        start: Start(1),
        token: 5,
        address: Address {
            peer: "10.0.0.1:7700".into(),
            client: None,
        },
    };
    let identity = Identity::new(&config(3), 0).unwrap();
    let ask = |id| ask_to_join(&identity, &two.config.peer, &newcomer(id));
    let told = ask(3).unwrap_err();
    assert!(told.contains("in no cluster yet"), "{told}");
    introduce(&[&two]);
    let JoinAnswer::Welcome(welcome) = ask(3).unwrap() else {
        panic!("node 3 is not welcome");
    };
    assert_eq!(welcome.cluster, CLUSTER);
    assert_eq!(welcome.addresses, [(3, newcomer(3).address)]);
    let refused = JoinAnswer::Refused("node 9 is a member".into());
    assert_eq!(ask(9), Ok(refused));
}

mod sealed {
    //! Mutual TLS.

    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    use tempfile::TempDir;

    struct Authority {
        dir: TempDir,
        issuer: Issuer<'static, KeyPair>,
    }

    impl Authority {
        fn new() -> Authority {
            let dir = tempfile::tempdir().unwrap();
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let own = params.self_signed(&key).unwrap();
            std::fs::write(dir.path().join("ca"), own.pem()).unwrap();
            let issuer = Issuer::new(params, key);
            Authority { dir, issuer }
        }

        fn files(&self, name: &str, host: &str) -> PeerTls {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
            let cert = params.signed_by(&key, &self.issuer).unwrap();
            let path = |end: &str| self.dir.path().join(format!("{name}.{end}"));
            std::fs::write(path("cert"), cert.pem()).unwrap();
            std::fs::write(path("key"), key.serialize_pem()).unwrap();
            PeerTls {
                cert: path("cert"),
                key: path("key"),
                ca: self.dir.path().join("ca"),
            }
        }
    }

    fn sealed(id: u64, tls: PeerTls) -> ClusterConfig {
        ClusterConfig {
            secret: None,
            tls: Some(tls),
            ..config(id)
        }
    }

    #[test]
    fn nodes_with_certificates_of_one_authority_talk_and_others_do_not() {
        let (ours, others) = (Authority::new(), Authority::new());
        let mut one = open(&sealed(1, ours.files("one", "127.0.0.1")), 1);
        let mut two = open(&sealed(2, ours.files("two", "127.0.0.1")), 1);
        introduce(&[&one, &two]);
        talk(&mut one, &two);
        talk(&mut two, &one);
        let long = Bytes::from(vec![7; FRAME_BYTES_MAX]);
        one.sends.send(2, long.clone());
        one.sends.flush();
        let mut heard = two.heard.recv_timeout(PATIENCE).unwrap();
        while heard.1.len() < 100 {
            heard = two.heard.recv_timeout(PATIENCE).unwrap();
        }
        assert!(heard.1 == long);
        let stranger = others.files("three", "127.0.0.1");
        let mixed = PeerTls {
            ca: ours.dir.path().join("ca"),
            ..stranger.clone()
        };
        let elsewhere = open(&sealed(4, ours.files("four", "localhost")), 1);
        introduce(&[&elsewhere]);
        let dialled = |config: &ClusterConfig, to: &Node| {
            let identity = Identity::new(config, 1).unwrap();
            identity.set_cluster(CLUSTER);
            dial(&identity, &to.config.peer, Purpose::Frames, to.config.id).map(|_| ())
        };
        assert!(
            dialled(&sealed(3, stranger), &two).is_err(),
            "another authority"
        );
        assert!(
            dialled(&sealed(3, mixed), &two).is_err(),
            "signed by another"
        );
        assert!(dialled(&config(3), &two).is_err(), "no TLS");
        let ours = sealed(3, ours.files("five", "127.0.0.1"));
        assert!(dialled(&ours, &elsewhere).is_err(), "of another host");
        assert!(dialled(&ours, &two).is_ok());
    }
}
