//! `--source` as clap parses it. The sources and the parser of each: `collect::SOURCES`.

use crate::escape::escape_answer;
use clap::error::{ContextKind, ContextValue};
use collect::SourceArgument;
use report::text::Style;
use std::io::{IsTerminal, Write};
use std::sync::Arc;

/// A parsed `--source`.
pub type SourceName = Arc<SourceArgument>;

/// Ends the program with clap's message about wrong arguments, or with the help.
pub fn exit(error: clap::Error) -> ! {
    let error = without_passwords(error);
    if !error.use_stderr() {
        error.exit();
    }
    // An argument may be the name of another user's file, as in `headroom run *`.
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let style = Style { color: std::io::stderr().is_terminal() && !no_color, ..Style::default() };
    let rendered = error.render();
    let text = if style.color { rendered.ansi().to_string() } else { rendered.to_string() };
    // A closed stderr cannot be reported.
    let _ = std::io::stderr().write_all(escape_answer(&text, &style).as_bytes());
    std::process::exit(error.exit_code())
}

/// Removes the text of a `--source` from clap's message about wrong arguments: it may hold a password.
fn without_passwords(mut error: clap::Error) -> clap::Error {
    let is_source = matches!(error.get(ContextKind::InvalidArg),
        Some(ContextValue::String(name)) if name.starts_with("--source "));
    let kind = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(text)) if is_source => {
            text.split_once(':').map_or("...".into(), |(kind, _)| format!("{kind}:..."))
        }
        _ => return error,
    };
    error.insert(ContextKind::InvalidValue, ContextValue::String(kind));
    error
}
