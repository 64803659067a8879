//! A command of a test on a terminal of its own.

#![allow(dead_code, reason = "every test file uses its own part of it")]

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// A command on a pseudo-terminal.
pub(crate) struct Terminal {
    pub(crate) controller: File,
    pub(crate) child: Child,
    shown: Vec<u8>,
}

impl Terminal {
    /// A terminal of 0 rows does not say how large it is.
    pub(crate) fn start(mut command: Command, (columns, rows): (u16, u16)) -> Terminal {
        let controller =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&controller).expect("granted");
        unlockpt(&controller).expect("unlocked");
        let name = ptsname(&controller, Vec::new()).expect("a name");
        let name = name.to_str().expect("text").to_owned();
        let terminal = || {
            let file = File::options()
                .read(true)
                .write(true)
                .open(&name)
                .expect("the terminal");
            Stdio::from(file)
        };
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&controller, size).expect("a size");
        let child = command
            .stdin(terminal())
            .stdout(terminal())
            .stderr(terminal())
            .spawn();
        Terminal {
            controller: File::from(controller),
            child: child.expect("the binary runs"),
            shown: Vec::new(),
        }
    }

    /// Lines with | between them; the terminal keeps what is typed ahead.
    pub(crate) fn enter(&mut self, lines: &str) {
        let typed = format!("{}\n", lines.replace('|', "\n"));
        self.controller.write_all(typed.as_bytes()).expect("typed");
    }

    /// Reads until this is shown; gives what was shown since the last time.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        let mut part = [0; 4096];
        loop {
            let shown = String::from_utf8_lossy(&self.shown).into_owned();
            if shown.contains(text) {
                self.shown.clear();
                return shown;
            }
            let read = self.controller.read(&mut part).expect("the terminal");
            self.shown.extend_from_slice(&part[..read]);
        }
    }

    /// What is shown until the command ends, and how it ends.
    pub(crate) fn end(mut self) -> (String, ExitStatus) {
        let mut part = [0; 4096];
        // When the last user of the terminal is gone, reading it fails.
        while let Ok(read @ 1..) = self.controller.read(&mut part) {
            self.shown.extend_from_slice(&part[..read]);
        }
        let status = self.child.wait().expect("it ends");
        (String::from_utf8_lossy(&self.shown).into_owned(), status)
    }
}
