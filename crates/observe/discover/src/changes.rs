use crate::scan::{Database, Identity, Scan};
use std::collections::BTreeSet;

/// Differences from an earlier scan.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// New databases: open their sources.
    pub appeared: Vec<Database>,
    /// Databases whose process has ended, or which its process no longer has open: close their sources.
    pub gone: Vec<Database>,
    /// Databases whose best source or volumes are others now.
    pub changed: Vec<Database>,
}

impl Scan {
    /// Compares it with an earlier scan, by process and start. A server that restarted is gone and has appeared, with its
    /// pid or another.
    pub fn changes_since(&self, earlier: &Scan) -> Changes {
        let identities =
            |scan: &Scan| scan.databases.iter().map(Database::identity).collect::<BTreeSet<Identity>>();
        let (now, before) = (identities(self), identities(earlier));
        let without = |scan: &Scan, known: &BTreeSet<Identity>| {
            scan.databases.iter().filter(|one| !known.contains(&one.identity())).cloned().collect()
        };
        let is_changed = |one: &&Database| {
            let identity = one.identity();
            let former = earlier.databases.iter().find(|former| former.identity() == identity);
            former.is_some_and(|former| former.source != one.source || !has_same_volumes(former, one))
        };
        Changes {
            appeared: without(self, &before),
            gone: without(earlier, &now),
            changed: self.databases.iter().filter(is_changed).cloned().collect(),
        }
    }
}

fn has_same_volumes(a: &Database, b: &Database) -> bool {
    let mounts = |database: &Database| {
        let mounts = database.volumes.iter().map(|volume| (volume.mount.clone(), volume.device.clone()));
        mounts.collect::<BTreeSet<_>>()
    };
    mounts(a) == mounts(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use collect::discovery::Engine;

    fn database(pid: u32, start_ticks: u64, part: Option<&str>, source: &str) -> Database {
        Database {
            engine: Engine::Postgres,
            pid,
            start_ticks,
            user: 0,
            name: "a".into(),
            program: "postgres".into(),
            unit: None,
            container: None,
            version: None,
            source: Some(source.into()),
            refused: Vec::new(),
            lacks: Vec::new(),
            volumes: Vec::new(),
            share: None,
            notes: Vec::new(),
            part: part.map(str::to_owned),
        }
    }

    fn scan(databases: Vec<Database>) -> Scan {
        Scan { databases, ..Scan::default() }
    }

    #[test]
    fn a_restart_is_another_database_even_with_the_same_pid() {
        let before = scan(vec![database(7, 100, None, "process:7"), database(8, 100, None, "process:8")]);
        let now =
            scan(vec![database(7, 200, None, "process:7"), database(8, 100, None, "postgres:host=/run")]);
        let changes = now.changes_since(&before);
        let starts =
            |list: &[Database]| list.iter().map(|one| (one.pid, one.start_ticks)).collect::<Vec<_>>();
        assert_eq!(starts(&changes.appeared), [(7, 200)]);
        assert_eq!(starts(&changes.gone), [(7, 100)]);
        assert_eq!(starts(&changes.changed), [(8, 100)]);
        let same = now.changes_since(&now);
        assert!(same.appeared.is_empty() && same.gone.is_empty() && same.changed.is_empty());
    }

    #[test]
    fn the_databases_of_one_program_come_and_go_one_by_one() {
        let one = database(7, 100, Some("/a.db"), "sqlite:/a.db");
        let two = database(7, 100, Some("/b.db"), "sqlite:/b.db");
        let changes = scan(vec![one.clone(), two]).changes_since(&scan(vec![one]));
        assert_eq!(changes.appeared[0].source.as_deref(), Some("sqlite:/b.db"));
        assert!(changes.gone.is_empty());
    }
}
