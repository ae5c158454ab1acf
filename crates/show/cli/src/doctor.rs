use collect::FileNames;
use serde::Serialize;
use std::fmt::Write;
use terminal::{Done, FINE, Output, SourceName, bad_news};

/// Arguments of `headroom doctor`.
#[derive(clap::Args)]
#[command(after_help = format!("\
Examples:
  headroom doctor                                       what can be watched here
  headroom doctor --source postgres:host=/run/postgresql

Without --source it tries {}.
Exit codes: 0 every source that was named gives all it can, 1 something is missing.", collect::discovery_help()))]
pub struct DoctorArgs {
    /// Whose counters; several may be given
    #[arg(long, value_name = "SOURCE", help = collect::source_help(), value_parser = collect::parse_source_argument)]
    source: Vec<SourceName>,
}

/// What one source gives, and what it lacks.
#[derive(Default, Serialize)]
struct Finding {
    source: String,
    /// It gives counters.
    works: bool,
    /// Files, devices and rows of the first snapshot.
    files: usize,
    waits: usize,
    /// Why it gives none.
    error: Option<String>,
    facts: Vec<String>,
    remedy: Option<String>,
    /// What it could give besides, and how.
    notes: Vec<String>,
    /// What its figures are good for: nothing to be done about.
    remarks: Vec<String>,
}

/// `headroom doctor`: what each source needs, what is missing, and what grants it.
pub fn run(args: &DoctorArgs, out: &mut Output) -> Done {
    let named = !args.source.is_empty();
    let tried = if named { args.source.clone() } else { collect::discover_sources() };
    let findings: Vec<Finding> = tried
        .iter()
        .map(|name| {
            out.progress(format_args!("trying {name}"), None);
            examine(name)
        })
        .collect();
    let lacks = findings.iter().any(|finding| !finding.works || !finding.notes.is_empty());
    out.answer(|_| text(&findings), || serde_json::json!({ "sources": findings }));
    // Without --source, a server that is not here is no bad news.
    Ok(if named && lacks { bad_news() } else { FINE })
}

fn examine(name: &SourceName) -> Finding {
    let snapshot = name.open(&[], &FileNames::default()).and_then(|mut source| {
        let snapshot = source.snapshot()?;
        let (remarks, notes): (Vec<String>, Vec<String>) =
            snapshot.notes.iter().cloned().partition(|note| source.remarks().contains(note));
        Ok((snapshot, remarks, notes))
    });
    let source = name.to_string();
    match snapshot {
        Ok((snapshot, remarks, notes)) => Finding {
            source,
            works: true,
            files: snapshot.samples.len(),
            waits: snapshot.waits.len(),
            notes,
            remarks,
            ..Finding::default()
        },
        Err(error) => Finding {
            source,
            error: Some(error.to_string()),
            facts: error.facts(),
            remedy: error.remedy().map(Into::into),
            ..Finding::default()
        },
    }
}

fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        // Writing into a String cannot fail.
        let _ = match &finding.error {
            None => {
                writeln!(text, "{}  works: {} files, {} waits", finding.source, finding.files, finding.waits)
            }
            Some(error) => writeln!(text, "{}  {error}", finding.source),
        };
        for fact in &finding.facts {
            let _ = writeln!(text, "  {fact}");
        }
        if let Some(remedy) = &finding.remedy {
            let _ = writeln!(text, "  try: {remedy}");
        }
        for note in &finding.notes {
            let _ = writeln!(text, "  note: {note}");
        }
        for remark in &finding.remarks {
            let _ = writeln!(text, "  good to know: {remark}");
        }
    }
    text
}
