use std::path::Path;
use terminal::{Done, FINE, Output, kept};

/// `headroom history matrices`: those that `headroom run` started with lists of values.
pub fn run(history: Option<&Path>, out: &mut Output) -> Done {
    let history = kept::open(history)?;
    let matrices = history.matrices()?;
    out.answer(
        |_| {
            if matrices.is_empty() {
                return "no matrix was started yet".into();
            }
            let line = |it: &history::MatrixInfo| {
                let state = if it.planned == 0 { "finished".into() } else { format!("{} left", it.planned) };
                let skipped =
                    if it.skipped > 0 { format!(", {} skipped", it.skipped) } else { String::new() };
                let name = if it.name.is_empty() { String::new() } else { format!("  {}", it.name) };
                let at = kept::format_time(it.created_unix_ns);
                format!(
                    "{:>4}  {at}  {} done{skipped}, {state}{name}  {}\n",
                    it.id,
                    it.done,
                    it.targets.join(", ")
                )
            };
            matrices.iter().map(line).collect()
        },
        || serde_json::json!(matrices),
    );
    Ok(FINE)
}
