//! The network of a run, by itself.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use crate::allowed;
use crate::net::{Drops, Net, proxy_address};

fn meet(listener: &TcpListener, from: &SocketAddr) -> bool {
    let connected = TcpStream::connect_timeout(from, Duration::from_millis(300));
    match connected {
        Ok(stream) => {
            listener.accept().unwrap();
            drop(stream);
            true
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
            false
        }
    }
}

/// The clients' own side of a cut, and one that goes one way only.
#[test]
fn cuts_cut_and_heal() {
    let Some(net) = allowed(Net::build(2, &BTreeSet::new())) else {
        return;
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            net.enter().unwrap();
            let listener = TcpListener::bind((proxy_address(1), 9)).unwrap();
            let at = listener.local_addr().unwrap();
            assert!(meet(&listener, &at));
            // A program in node 2's namespace reaches node 1's alias through the bridge.
            let cut = |from, to| Drops {
                from,
                to,
                percent: 100,
            };
            let script = format!("exec 3<>/dev/tcp/{}/9 && echo hello >&3", proxy_address(1));
            let says = || {
                let mut command = net.at(2, Path::new("timeout"));
                let status = command.args(["1", "bash", "-c", &script]).status();
                status.unwrap().success()
            };
            let hears = || {
                let mut text = String::new();
                let (mut stream, _) = listener.accept().unwrap();
                stream.read_to_string(&mut text).unwrap();
                text
            };
            assert!(says());
            assert_eq!(hears(), "hello\n");
            for drops in [[cut(1, 2), cut(1, 2)], [cut(2, 1), cut(2, 1)]] {
                net.drop_packets(&drops).unwrap();
                assert!(!says(), "{drops:?}");
            }
            net.drop_packets(&[]).unwrap();
            assert!(says());
        });
    });
}
