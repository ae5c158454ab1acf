use collect::FileNames;
use report::text::SourceFinding;
use serde::Serialize;
use terminal::{Done, FINE, Output, SourceName, problem_found};

/// Arguments of `headroom sources doctor`.
#[derive(clap::Args)]
#[command(after_help = format!("\
Examples:
  headroom sources doctor                               the sources of this host
  headroom sources doctor --source postgres:host=/run/postgresql

Without --source it tries {}.
Exit codes: 0 every source that was named gives all it can, 1 something is missing.", collect::discovery_help()))]
pub struct DoctorArgs {
    /// Sources to examine; several may be given
    #[arg(long, value_name = "SOURCE", help = collect::source_help(), value_parser = collect::parse_source_argument)]
    source: Vec<SourceName>,
}

/// Output of `headroom sources doctor --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Doctor"))]
pub(crate) struct Sources<'a> {
    /// Each source that was tried.
    sources: &'a [SourceFinding],
}

/// `headroom sources doctor`: what each source needs, what is missing, and what grants it.
pub fn run(args: &DoctorArgs, out: &mut Output) -> Done {
    let named = !args.source.is_empty();
    let tried = if named { args.source.clone() } else { collect::discover_sources() };
    let findings: Vec<SourceFinding> = tried
        .iter()
        .map(|name| {
            out.progress(format_args!("trying {name}"), None);
            examine(name)
        })
        .collect();
    let lacks = findings.iter().any(|finding| !finding.works || !finding.notes.is_empty());
    out.answer(|_| report::text::doctor(&findings), || serde_json::json!(Sources { sources: &findings }));
    // Without --source, a server that is not here is not a problem.
    Ok(if named && lacks { problem_found() } else { FINE })
}

fn examine(name: &SourceName) -> SourceFinding {
    let snapshot = name.open(&[], &FileNames::default()).and_then(|mut source| {
        let snapshot = source.snapshot()?;
        let (remarks, notes): (Vec<String>, Vec<String>) =
            snapshot.notes.iter().cloned().partition(|note| source.remarks().contains(note));
        Ok((snapshot, remarks, notes))
    });
    let source = name.to_string();
    match snapshot {
        Ok((snapshot, remarks, notes)) => SourceFinding {
            source,
            works: true,
            files: snapshot.samples.len(),
            waits: snapshot.waits.len(),
            notes,
            remarks,
            ..SourceFinding::default()
        },
        Err(error) => SourceFinding {
            source,
            error: Some(error.to_string()),
            facts: error.facts(),
            remedy: error.remedy().map(Into::into),
            ..SourceFinding::default()
        },
    }
}
