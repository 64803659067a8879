//! Tells the service manager that started the node how it is: the datagrams of `sd_notify(3)`, to the socket that
//! `NOTIFY_SOCKET` names. Without that variable nobody asked, and nothing is said.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

const NOTIFY_SOCKET: &str = "NOTIFY_SOCKET";

/// The node serves.
pub(super) const READY: &str = "READY=1";
/// The node stops, and needs a moment for its disk.
pub(super) const STOPPING: &str = "STOPPING=1";

/// Says it. A manager that cannot be told is warned about, and the node goes on.
pub(super) fn notify(state: &str) {
    let Some(socket) = env::var_os(NOTIFY_SOCKET) else {
        return;
    };
    if let Err(error) = send(&socket, state) {
        let socket = socket.display();
        log::warn!("the service manager at {socket} was not told {state}: {error}");
    }
}

fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes().split_first() {
        Some((b'/', _)) => SocketAddr::from_pathname(socket)?,
        Some((b'@', name)) => without_a_file(name)?,
        _ => {
            return Err(io::Error::other(
                "it is neither a path nor an abstract name",
            ));
        }
    };
    let sender = UnixDatagram::unbound()?;
    sender.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(target_os = "linux")]
fn without_a_file(name: &[u8]) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;
    SocketAddr::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn without_a_file(_: &[u8]) -> io::Result<SocketAddr> {
    Err(io::Error::other("only Linux has abstract names"))
}
