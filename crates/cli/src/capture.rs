use crate::output::Output;
use crate::source::SourceName;
use crate::{Done, FINE};
use std::path::Path;

/// Arguments of `headroom capture`.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  headroom capture --source sqlite:/data/shop.db --label before
  ... the index rebuild ...
  headroom capture --source sqlite:/data/shop.db --label after
  headroom intervals")]
pub struct CaptureArgs {
    /// Whose counters: sqlite:PATH
    #[arg(long)]
    source: SourceName,
    /// A name to find it by
    #[arg(long)]
    label: Option<String>,
}

/// `headroom capture`: one snapshot into the history.
pub fn run(args: &CaptureArgs, history: Option<&Path>, out: &mut Output) -> Done {
    let mut history = crate::history::open_to_write(history)?;
    let snapshot = args.source.open()?.snapshot()?;
    let id = history.save_snapshot(&snapshot, args.label.as_deref())?;
    let files = snapshot.samples.len();
    out.answer(
        |_| format!("capture {} of {}: {files} files", id.0, args.source),
        || serde_json::json!({"capture": id.0, "source": args.source.to_string(), "files": files}),
    );
    Ok(FINE)
}
