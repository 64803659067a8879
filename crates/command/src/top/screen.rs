//! The terminal as `top` uses it: a screen of its own, no echo, and everything as it was before when it ends.

use std::io::{self, Write, stdout};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::style::{Attribute, Print, SetAttribute};
use crossterm::terminal::{
    self, Clear, ClearType, DisableLineWrap, EnableLineWrap, EnterAlternateScreen,
    LeaveAlternateScreen,
};
use crossterm::{execute, queue};

use super::frame::{Style, StyledLine};
use crate::visible::in_terminals_line;

/// The terminal while it is taken over. Dropping this gives it back.
pub(super) struct Screen(());

impl Screen {
    pub(super) fn take() -> io::Result<Screen> {
        terminal::enable_raw_mode()?;
        let screen = Screen(());
        execute!(stdout(), EnterAlternateScreen, DisableLineWrap, Hide)?;
        Ok(screen)
    }

    pub(super) fn draw(&self, lines: &[StyledLine]) -> io::Result<()> {
        let mut out = stdout().lock();
        for (at, (style, text)) in lines.iter().enumerate() {
            let attribute = match style {
                Style::Plain => Attribute::Reset,
                Style::Head | Style::Alarm => Attribute::Reverse,
                Style::Bold => Attribute::Bold,
            };
            queue!(
                out,
                MoveTo(0, u16::try_from(at).unwrap_or(u16::MAX)),
                // Before and not after: behind a full line the cursor still stands on its last character.
                Clear(ClearType::CurrentLine),
                SetAttribute(attribute),
                Print(in_terminals_line(text)),
                SetAttribute(Attribute::Reset)
            )?;
        }
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = execute!(stdout(), Show, EnableLineWrap, LeaveAlternateScreen);
        let _ = terminal::disable_raw_mode();
    }
}
