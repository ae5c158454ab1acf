//! Finds the databases that engines have open and publish counters of.

use crate::discovery::{Attempt, Engine, Finder, Instance, Programs, Role};
use published::{counters_dir, published_in};

pub(super) fn find(programs: &Programs) -> Vec<Instance> {
    let published = published_in(&counters_dir()).unwrap_or_default().live.into_iter();
    let found = published.filter_map(|counters| {
        let program = programs.get(counters.process.pid)?;
        // The path is what the program says, perhaps not the truth: the source opens it and compares.
        let path = counters.database?.path;
        let mut finder = Finder::new(program.pid);
        [Role::Data, Role::Log].into_iter().for_each(|role| finder.add(role, &path));
        let source = path.to_str().map(|path| format!("published:{path}"));
        let name = path.to_string_lossy().into_owned();
        Some(Instance {
            engine: Engine::Published(counters.engine),
            pid: program.pid,
            start_ticks: counters.process.start_ticks,
            user: program.user,
            name: Some(name.clone()),
            part: Some(name),
            version: None,
            files: finder.finish(),
            notes: match source {
                Some(_) => Vec::new(),
                None => vec!["its name is no UTF-8, so that no source can name it".into()],
            },
            attempts: source.map(|source| Attempt { source, socket: None }).into_iter().collect(),
        })
    });
    found.collect()
}
