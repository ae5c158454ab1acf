//! Finds the databases of SQLite programs that publish counters.

use super::latest_of_each_path;
use crate::discovery::{Attempt, Engine, Finder, Instance, Programs, Role};
use filestats::FileKind;
use published::{counters_dir, published_in};

/// More databases of one program are left out.
const DATABASES_MAX: usize = 64;

pub(super) fn find(programs: &Programs) -> Vec<Instance> {
    let Ok(published) = published_in(&counters_dir()) else { return Vec::new() };
    let mut found = Vec::new();
    for counters in published.live.into_iter().filter(|counters| counters.engine.as_str() == "sqlite") {
        let Some(program) = programs.get(counters.process.pid) else { continue };
        let files = latest_of_each_path(counters.files().unwrap_or_default());
        let databases = files.iter().filter(|file| file.kind == FileKind::Data).take(DATABASES_MAX);
        // The path is what the program says, perhaps not the truth: the source opens it and compares.
        for file in databases.filter(|file| file.path.is_absolute()) {
            let mut finder = Finder::new(program.pid);
            finder.add(Role::Data, &file.path);
            finder.add(Role::Log, &file.path);
            let path = file.path.to_str();
            found.push(Instance {
                engine: Engine::Sqlite,
                pid: program.pid,
                start_ticks: counters.process.start_ticks,
                user: counters.user,
                name: Some(file.path.to_string_lossy().into_owned()),
                part: Some(file.path.to_string_lossy().into_owned()),
                version: None,
                files: finder.finish(),
                attempts: path
                    .map(|path| Attempt { source: format!("sqlite:{path}"), socket: None })
                    .into_iter()
                    .collect(),
                notes: match path {
                    Some(_) => Vec::new(),
                    None => vec!["its name is no UTF-8, so that no source can name it".into()],
                },
            });
        }
    }
    found
}
