//! The network of a run: one namespace per node and one for the harness, which holds the bridge between them. Cuts and
//! losses are rules of nftables on that bridge; all of them are replaced at once. Nothing outside is touched.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Where nodes reach each other.
pub(crate) const PEER_PORT: u16 = 7100;
/// Where clients reach a node.
pub(crate) const RESP_PORT: u16 = 6400;
/// Where delayed links listen: this and the number of the node behind it.
pub(crate) const LINK_PORT: u16 = 20_000;
const PREFIX: &str = "testigo-chaos-";

/// Somebody who sends or receives: a node by its number from 1 on, or 0 for the clients.
pub(crate) type Party = u8;
pub(crate) const CLIENTS: Party = 0;

/// So many of a hundred packets from one to the other are dropped; 100 is a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drops {
    pub(crate) from: Party,
    pub(crate) to: Party,
    pub(crate) percent: u8,
}

#[derive(Debug)]
pub(crate) struct Net {
    nodes: u8,
}

pub(crate) fn address(party: Party) -> Ipv4Addr {
    match party {
        CLIENTS => Ipv4Addr::new(10, 77, 0, 254),
        node => Ipv4Addr::new(10, 77, 0, node),
    }
}

/// The address under which delayed links speak for a node.
pub(crate) fn proxy_address(node: Party) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 1, node)
}

impl Net {
    /// Builds it, or says what the machine does not allow. Links in `delayed`, from a node to another, go through the
    /// harness.
    pub(crate) fn build(nodes: u8, delayed: &BTreeSet<(Party, Party)>) -> Result<Net, String> {
        sweep();
        let net = Net { nodes };
        let hub = hub();
        ip(&format!("netns add {hub}"))?;
        ip(&format!("-n {hub} link set lo up"))?;
        ip(&format!("-n {hub} link add bridge type bridge"))?;
        let own = address(CLIENTS);
        ip(&format!("-n {hub} address add {own}/16 dev bridge"))?;
        ip(&format!("-n {hub} link set bridge up"))?;
        for node in 1..=nodes {
            let (space, own) = (space(node), address(node));
            ip(&format!("netns add {space}"))?;
            ip(&format!("-n {space} link set lo up"))?;
            ip(&format!(
                "-n {hub} link add port{node} type veth peer name eth netns {space}"
            ))?;
            ip(&format!("-n {hub} link set port{node} master bridge up"))?;
            ip(&format!("-n {space} address add {own}/16 dev eth"))?;
            ip(&format!("-n {space} link set eth up"))?;
            let alias = proxy_address(node);
            ip(&format!("-n {hub} address add {alias}/16 dev bridge"))?;
            let mut rules = String::from(
                "table ip links {\n chain out {\n  type nat hook output priority -100;\n",
            );
            for (_, to) in delayed.iter().filter(|(from, _)| *from == node) {
                let (far, port) = (address(*to), LINK_PORT + u16::from(*to));
                let _ = writeln!(
                    rules,
                    "  ip daddr {far} tcp dport {PEER_PORT} dnat to {alias}:{port}"
                );
            }
            rules += " }\n}\n";
            nft(&space, &rules)?;
        }
        net.drop_packets(&[])?;
        Ok(net)
    }

    /// Moves this thread, and all that it starts from now on, to where the clients are.
    pub(crate) fn enter(&self) -> Result<(), String> {
        let space = Path::new("/run/netns").join(hub());
        let space = File::open(space).map_err(|e| format!("no namespace: {e}"))?;
        move_into_link_name_space(
            std::os::fd::AsFd::as_fd(&space),
            Some(LinkNameSpaceType::Network),
        )
        .map_err(|e| format!("cannot enter the namespace: {e}"))
    }

    /// A program that will run where a node is.
    pub(crate) fn at(&self, node: Party, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &space(node)]).arg(program);
        command
    }

    /// From now on exactly these packets are dropped.
    pub(crate) fn drop_packets(&self, drops: &[Drops]) -> Result<(), String> {
        let mut rules = String::from("table bridge cuts\ndelete table bridge cuts\n");
        rules += "table bridge cuts {\n chain cuts {\n";
        for Drops { from, to, percent } in drops {
            let chance = match percent {
                100.. => String::new(),
                percent => format!("numgen random mod 100 < {percent} "),
            };
            let (from, to) = (all_of(*from), all_of(*to));
            let _ = writeln!(rules, "  ip saddr {from} ip daddr {to} {chance}drop");
        }
        rules += " }\n";
        for hook in ["forward", "input", "output"] {
            let _ = writeln!(
                rules,
                " chain {hook} {{\n  type filter hook {hook} priority 0;\n  jump cuts\n }}"
            );
        }
        nft(&hub(), &(rules + "}\n"))
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        let spaces = (1..=self.nodes).map(space).chain([hub()]);
        for space in spaces {
            // It may be gone already.
            let _ = ip(&format!("netns delete {space}"));
        }
    }
}

fn all_of(party: Party) -> String {
    match party {
        CLIENTS => address(CLIENTS).to_string(),
        node => format!("{{ {}, {} }}", address(node), proxy_address(node)),
    }
}

fn hub() -> String {
    space(CLIENTS)
}

/// Named after this process, so that runs do not meet.
fn space(party: Party) -> String {
    format!("{PREFIX}{}-{party}", std::process::id())
}

/// Removes what a killed run has left.
fn sweep() {
    let spaces = std::fs::read_dir("/run/netns").into_iter().flatten();
    for space in spaces.flatten() {
        let name = space.file_name().to_string_lossy().into_owned();
        let run = name.strip_prefix(PREFIX).and_then(|rest| {
            let (run, _) = rest.split_once('-')?;
            run.parse::<u32>().ok()
        });
        if run.is_some_and(|run| !Path::new("/proc").join(run.to_string()).exists()) {
            end_all_in(&name);
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}

/// Ends the nodes of a killed run.
fn end_all_in(space: &str) {
    let pids = Command::new("ip").args(["netns", "pids", space]).output();
    let pids = pids.map(|output| output.stdout).unwrap_or_default();
    let pids = String::from_utf8_lossy(&pids).into_owned();
    for pid in pids.lines().filter_map(|pid| pid.trim().parse().ok()) {
        if let Some(pid) = Pid::from_raw(pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn ip(words: &str) -> Result<(), String> {
    run(Command::new("ip").args(words.split(' ')), "")
}

fn nft(space: &str, rules: &str) -> Result<(), String> {
    let mut command = Command::new("ip");
    run(
        command.args(["netns", "exec", space, "nft", "-f", "-"]),
        rules,
    )
}

fn run(command: &mut Command, input: &str) -> Result<(), String> {
    let failed = |why: String| format!("{command:?}: {why}");
    let command_text = failed(String::new());
    let child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|e| format!("{command_text}{e}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child
        .wait_with_output()
        .map_err(|e| format!("{command_text}{e}"))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let why = String::from_utf8_lossy(&output.stderr);
            Err(format!("{command_text}{}", why.trim()))
        }
    }
}
