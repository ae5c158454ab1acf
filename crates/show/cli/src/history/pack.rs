use history::History;
use serde::Serialize;
use std::path::Path;
use std::time::Instant;
use terminal::{Done, FINE, Output, kept};

/// JSON of `headroom history pack`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "HistoryPack"))]
pub(crate) struct Packed<'a> {
    /// Path of the history.
    path: &'a Path,
    /// Its size, bytes.
    bytes: u64,
    /// Its size before, bytes.
    bytes_before: u64,
}

/// Changes of a file that make a block, as when they are recorded.
const PACKED_TOGETHER: usize = 64;

/// `headroom history pack`.
pub fn run(history: Option<&Path>, out: &mut Output) -> Done {
    let mut history = kept::open_to_change(history)?;
    let bytes = |history: &History| std::fs::metadata(history.path()).map_or(0, |found| found.len());
    let before = bytes(&history);
    let began = Instant::now();
    history.pack(PACKED_TOGETHER, |done, all| {
        let left = began.elapsed().mul_f64((all - done) as f64 / done as f64);
        out.progress(format_args!("packing: file {done} of {all}"), Some(left));
    })?;
    out.clear_progress();
    out.progress("writing the history again", None);
    history.vacuum()?;
    let after = bytes(&history);
    let path = history.path();
    out.answer(
        |_| format!("{}: {} MiB, {} MiB before", path.display(), after >> 20, before >> 20),
        || serde_json::json!(Packed { path, bytes: after, bytes_before: before }),
    );
    Ok(FINE)
}
