//! `--source` as clap parses it. What sources there are and how each is parsed: `collect::SOURCES`.

use clap::error::{ContextKind, ContextValue};
use collect::SourceArgument;
use std::sync::Arc;

/// A parsed `--source`.
pub type SourceName = Arc<SourceArgument>;

/// Removes the text of a `--source` from clap's message about wrong arguments: it may hold a password.
pub fn without_passwords(mut error: clap::Error) -> clap::Error {
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
