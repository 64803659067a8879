//! `testigo flow edit`: the thesis' editor, menus on a text terminal. It asks for lines and never puts the terminal into
//! another mode, so it works over any connection and leaves nothing to repair.

mod editor;
mod pages;
mod processes;
mod queues;
mod screen;

use std::io::{BufReader, IsTerminal};
use std::path::PathBuf;

use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use self::editor::Editor;
use self::screen::Screen;
use super::file::FlowFile;
use super::replace::replaceable;
use crate::exit::{Failure, Outcome, good_if};

/// Edit a flow with menus, on any terminal
///
/// The menu: reject queue, queues, processes, exit. Every change is confirmed; what names nothing
/// or would leave a name without its queue is refused at once, and the screen always says what the
/// flow still lacks. Only a valid flow is written, in the file's notation as long as that can say
/// it; comments stay with what they stand by. A file that cannot be written is said so at once, and
/// another can be named. A file that is not there is begun.
///
/// Exit code 0: written, or nothing to write; 1: left without writing, or the text is not of the
/// language; 2: the file cannot be read, or the input ended.
///
/// Example: testigo flow edit orders.flow
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Edit {
    /// The flow's file, in any notation.
    file: PathBuf,
}

impl Edit {
    pub(crate) fn run(self) -> Outcome {
        if self.file.as_os_str() == "-" {
            return Err(Failure::from("a file is edited, not standard input"));
        }
        let file = match self.file.exists() {
            true => FlowFile::open(&self.file)?,
            false => FlowFile {
                name: self.file.display().to_string(),
                text: String::new(),
            },
        };
        let reading = file.read();
        if !file.text.is_empty() && reading.document.is_none() {
            return Ok(file.refuse(&reading.findings));
        }
        let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
        let full_screen = stdin.is_terminal() && stdout.is_terminal();
        if full_screen {
            give_back_at_any_end()?;
        }
        let mut screen = Screen::new(
            Box::new(BufReader::new(stdin)),
            Box::new(stdout),
            full_screen,
        );
        if let Err(why) = replaceable(&self.file) {
            screen.tell(why);
        }
        let mut editor = Editor::new(self.file, &file.text, reading);
        let left = editor.run(&mut screen);
        screen.leave();
        Ok(good_if(left?))
    }
}

/// A signal or a panic gives the terminal back before it ends the process as it always does.
fn give_back_at_any_end() -> Result<(), Failure> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            screen::give_back();
            let _ = emulate_default_handler(signal);
        }
    });
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        screen::give_back();
        report(panic);
    }));
    Ok(())
}
