use collect::FileNames;
use serde::Serialize;
use std::path::Path;
use terminal::{Done, FINE, Failure, Output, SourceName, kept};

/// Arguments of `headroom history capture`.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  headroom history capture --source sqlite:/data/shop.db --name before
  ... the index rebuild ...
  headroom history capture --source sqlite:/data/shop.db --name after
  headroom history intervals")]
pub struct CaptureArgs {
    #[arg(long, value_name = "SOURCE", help = collect::source_help(), value_parser = collect::parse_source_argument)]
    source: SourceName,
    /// Name of the capture
    #[arg(long)]
    name: Option<String>,
}

/// Output of `headroom history capture --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Capture"))]
pub(crate) struct Captured {
    /// The capture's number in the history.
    capture: i64,
    /// The source, without credentials.
    source: String,
    /// Number of its files.
    files: usize,
}

/// `headroom history capture`: one snapshot into the history.
///
/// # Errors
/// Of `process:`, which counts only while it is open: two captures would have nothing between them.
pub fn run(args: &CaptureArgs, history: Option<&Path>, out: &mut Output) -> Done {
    if args.source.counts_only_while_open {
        return Err(Failure::usage(
            "process: counts only while it is watched: two captures of it would have nothing between them",
        )
        .with_remedy("headroom agent --record-only, or headroom watch, with this source"));
    }
    let mut history = kept::open_to_write(history)?;
    let snapshot = args.source.open(&[], &FileNames::default())?.snapshot()?;
    let id = history.save_snapshot(&snapshot, args.name.as_deref())?;
    let files = snapshot.samples.len();
    out.answer(
        |_| format!("capture {} of {}: {files} files", id.0, args.source),
        || serde_json::json!(Captured { capture: id.0, source: args.source.to_string(), files }),
    );
    Ok(FINE)
}
