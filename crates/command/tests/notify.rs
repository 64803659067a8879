//! A service manager is told when the node serves and when it stops.
#![cfg(target_os = "linux")]

mod up;

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use up::Up;

/// Longer than any start or stop takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn tells(socket: &UnixDatagram, name: &str, data: &Path) {
    socket.set_read_timeout(Some(PATIENCE)).expect("settable");
    let heard = || {
        let mut bytes = [0; 64];
        let count = socket.recv(&mut bytes).expect("a datagram");
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    };
    let mut command = up::command(data, &[]);
    command.env("NOTIFY_SOCKET", name);
    let node = Up::of(command);
    assert_eq!(heard(), "READY=1");
    assert!(node.signal(Signal::TERM).success());
    assert_eq!(heard(), "STOPPING=1");
}

#[test]
fn a_socket_with_a_path_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    let name = path.to_str().expect("a text");
    tells(&socket, name, &folder.path().join("data"));
}

#[test]
fn a_socket_with_an_abstract_name_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = format!("testigo-notify-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let socket = UnixDatagram::bind_addr(&address).expect("a socket");
    tells(&socket, &format!("@{name}"), &folder.path().join("data"));
}

#[test]
fn a_socket_that_is_gone_does_not_keep_a_node_from_serving() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = up::command(&folder.path().join("data"), &[]);
    command.env("NOTIFY_SOCKET", folder.path().join("nowhere"));
    let node = Up::of(command);
    assert!(node.signal(Signal::TERM).success());
}
