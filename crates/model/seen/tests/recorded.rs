//! Learning of known storage from the I/Os of real databases, as the kernel counted them each second while the demand
//! changed every 20 seconds. `scripts/bench seen` does the same live.

use capability::{Bound, Resource, ResourceName};
use seen::{Learner, Second, Seen, Side};

/// 4 ms for each I/O and 8 at once, hence 2,000 a second; MariaDB 10.11 updates rows. It fills the storage at times, which is not
/// found: its writes come in bursts, so that the mean outstanding I/Os say little. That is the known gap.
const WIDE_MARIADB: &str = include_str!("recorded/wide-mariadb.csv");
/// A loop device on memory: the processors end first. MariaDB, the last four minutes of ten.
const FAST_MARIADB: &str = include_str!("recorded/fast-mariadb.csv");
/// On the same device PostgreSQL, nine reads for each update, for ten minutes.
const FAST_POSTGRES: &str = include_str!("recorded/fast-postgres-mix.csv");

fn learned(recorded: &str) -> Seen {
    let mut learner = Learner::default();
    let mut ended_s = 1_000.0;
    for line in recorded.lines().skip(1) {
        let fields: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
        let [elapsed_s, reads, read_bytes, read_s, writes, write_bytes, write_s, busy_s] = fields[..] else {
            panic!("{line}");
        };
        ended_s += elapsed_s;
        learner.observe(&Second {
            ended_unix_ns: (ended_s * 1e9) as u64,
            elapsed_s,
            reads: Side { ios: reads, bytes: read_bytes, served_s: read_s, waited_s: 0.0 },
            writes: Side { ios: writes, bytes: write_bytes, served_s: write_s, waited_s: 0.0 },
            busy_s: Some(busy_s),
            ..Second::default()
        });
    }
    learner.seen().clone()
}

#[test]
fn nothing_is_said_of_a_full_storage_that_is_not_true_of_it() {
    let seen = learned(WIDE_MARIADB);
    for full in &seen.saturated {
        assert_eq!(full.name, ResourceName::Operations);
        assert!((0.85..=1.15).contains(&(full.value / 2_000.0)), "{full:#?}");
    }
    let is_operations = |one: &&Resource| {
        one.bound == Bound::AtLeast
            && matches!(one.name, ResourceName::ReadOperations | ResourceName::WriteOperations)
    };
    let resources = seen.resources();
    let bounds: Vec<f64> = resources.iter().filter(is_operations).map(|one| one.value).collect();
    assert_eq!(bounds.len(), 2, "{resources:#?}");
    assert!(bounds.iter().all(|bound| (500.0..2_100.0).contains(bound)), "{bounds:?}");
}

#[test]
fn a_storage_that_waits_for_processors_is_not_called_full() {
    for recorded in [FAST_MARIADB, FAST_POSTGRES] {
        let seen = learned(recorded);
        assert!(seen.saturated.is_empty() && !seen.reached.is_empty(), "{seen:#?}");
    }
}
