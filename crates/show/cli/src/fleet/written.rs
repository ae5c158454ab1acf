//! `headroom fleet rules`, `alerts` and `dashboards`: files for the servers.

use mixin::{File, MARK};
use std::path::Path;
use terminal::{Done, FINE, Failure, Output, page};

/// A dashboard's JSON has no comment.
const DASHBOARD_MARK: &str = "\"uid\": \"headroom-";

/// Writes files into a directory, which is created; one that is not Headroom's is not replaced.
fn write(dir: &Path, files: &[File], out: &mut Output) -> Done {
    std::fs::create_dir_all(dir).map_err(|error| {
        Failure::new(format_args!("cannot create the directory {}: {error}", dir.display()))
            .with_remedy("name a directory that this user may write to")
    })?;
    let mut written = Vec::new();
    for File { name, text } in files {
        let mark = if name.ends_with(".json") { DASHBOARD_MARK } else { MARK };
        let path = dir.join(name);
        page::write_marked("file", &path, mark.as_bytes(), text.as_bytes())?;
        written.push(path.display().to_string());
    }
    out.answer(
        |_| format!("wrote {}", written.join("\nwrote ")),
        || serde_json::json!({ "written": written }),
    );
    Ok(FINE)
}

pub fn rules(dir: &Path, out: &mut Output) -> Done {
    write(dir, &[mixin::rules()], out)
}

pub fn alerts(dir: &Path, runbooks: &str, out: &mut Output) -> Done {
    write(dir, &[mixin::alerts(runbooks)], out)
}

pub fn dashboards(dir: &Path, out: &mut Output) -> Done {
    let mut files = mixin::dashboards();
    files.push(mixin::jsonnet());
    write(dir, &files, out)
}
