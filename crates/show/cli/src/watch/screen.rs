//! The live view on a terminal: events in, frames out.

use super::watched::Watched;
use filestats::Profile;
use live::{Answer, Key, View};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use report::text::is_harmful;
use std::time::{Duration, Instant};
use terminal::{Done, FINE, Failure, interrupt};

/// The longest time until a key is handled.
const KEY_WAIT: Duration = Duration::from_millis(100);

/// The live view, until q or Ctrl-C.
pub fn run(watched: &mut [Watched], interval: Duration, profile: &Profile) -> Done {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let mut view = View::new(*profile, !no_color);
    let mut terminal = ratatui::try_init().map_err(|error| failed(&error))?;
    let shown = show(&mut terminal, watched, interval, &mut view);
    ratatui::restore();
    shown.map_err(|error| failed(&error))?;
    Ok(FINE)
}

fn show(
    terminal: &mut ratatui::DefaultTerminal,
    watched: &mut [Watched],
    interval: Duration,
    view: &mut View,
) -> std::io::Result<()> {
    let mut due = Instant::now() + interval;
    loop {
        terminal.draw(|frame| {
            view.draw(frame);
            clean(frame.buffer_mut());
        })?;
        let left = due.saturating_duration_since(Instant::now());
        if event::poll(left.min(KEY_WAIT))?
            && let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
        {
            let quit = key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
            if quit || to_key(key.code).is_some_and(|key| view.press(key) == Answer::Quit) {
                return Ok(());
            }
        }
        if interrupt::requested() {
            return Ok(());
        }
        if Instant::now() >= due {
            // While paused, counters are still read, so that intervals do not get longer.
            let glances = watched.iter_mut().map(Watched::sample).collect();
            if !view.paused {
                view.add(glances);
            }
            due = (due + interval).max(Instant::now());
        }
    }
}

/// Replaces marks in names that reverse the order of what follows; control characters are never drawn.
fn clean(buffer: &mut Buffer) {
    for cell in buffer.content.iter_mut().filter(|cell| cell.symbol().contains(is_harmful)) {
        cell.set_symbol("\u{fffd}");
    }
}

fn to_key(code: KeyCode) -> Option<Key> {
    Some(match code {
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        _ => return None,
    })
}

fn failed(error: &std::io::Error) -> Failure {
    Failure::new(format_args!("cannot draw on this terminal: {error}"))
        .with_remedy("--once for one interval as text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mark_that_reverses_text_reaches_the_screen() {
        let mut buffer = Buffer::with_lines(["a\x1b]0;b\u{202e}c\u{2066}"]);
        clean(&mut buffer);
        let text: String = buffer.content.iter().map(ratatui::buffer::Cell::symbol).collect();
        assert!(!text.contains(is_harmful) && text.starts_with("a"), "{text:?}");
    }
}
