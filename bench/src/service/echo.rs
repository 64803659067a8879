//! This program itself as a server, which prints its address first.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::Service;
use super::running::{directory, start as start_process};

pub(crate) fn start(arguments: &[&str]) -> Result<Service, String> {
    let own = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
    let mut server = Command::new(own);
    let mut child = start_process(server.args(arguments).stdout(Stdio::piped()))?;
    let mut line = String::new();
    let out = child.stdout.take().ok_or("no pipe to the server")?;
    let read = BufReader::new(out).read_line(&mut line);
    read.map_err(|e| format!("the server does not speak: {e}"))?;
    let address = line.trim().parse();
    let address = address.map_err(|_| format!("{line:?} is no address"))?;
    Ok(Service::new(
        address,
        "this program".into(),
        child,
        directory()?,
    ))
}
