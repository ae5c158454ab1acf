//! The steps of a workload: they are drawn from a seed and can be left out one by one.

use crate::{Chance, Trouble};
use pagestore::{Apply, Durability, Layout, Options, Recovery, Result, Store, Table, Tables};
use std::collections::BTreeMap;
use std::fmt;

/// The tables' contents: table number and key to value.
pub(crate) type Model = BTreeMap<(u8, u32), Vec<u8>>;

/// The number of tables.
const TABLES: u8 = 2;
/// The number of keys of a table.
const KEYS: u64 = 120;

/// One of a seed's workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadKind {
    /// Random steps.
    Random,
    /// Evicts pages that snapshots see.
    Snapshots,
    /// Overwrites the space of earlier virtual log files.
    LogReuse,
    /// Meets errors and goes on.
    Errors,
    /// Makes its files shorter.
    Compaction,
}

/// One step of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A transaction.
    Transaction {
        /// Its changes, in order.
        changes: Vec<Change>,
        /// How it ends.
        end: End,
        /// The reaction of its caller to a refused change.
        on_error: OnError,
    },
    /// A checkpoint.
    Checkpoint {
        /// Transactions that commit between its writes.
        during: Vec<Vec<Change>>,
    },
    /// A compaction, until it has ended or waits for a snapshot.
    Compact {
        /// Transactions that commit between its steps.
        during: Vec<Vec<Change>>,
    },
    /// Makes all delayed commits durable.
    Flush,
    /// Closes the store and opens it again.
    Reopen,
    /// Ends the process without a close and opens the store again, repeatedly.
    Die {
        /// The number of repetitions.
        times: u32,
    },
    /// Refuses operations of the next step.
    Trouble(Trouble),
    /// Begins a snapshot, which is read after every step from here on.
    Hold,
    /// Ends the oldest snapshot.
    Release,
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is committed.
    Commit(Durability),
    /// It is rolled back.
    RollBack,
    /// Its caller panics.
    Panic,
}

/// The reaction of a caller to a refused change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// Drops the transaction.
    GiveUp,
    /// Goes on with the next change.
    ContinueAt,
    /// Repeats the change once, and goes on.
    TryAgain,
}

/// One change of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Puts a value of equal bytes.
    Put {
        /// The table.
        table: u8,
        /// The key.
        key: u32,
        /// The byte.
        byte: u8,
        /// The length.
        bytes: usize,
    },
    /// Removes a key.
    Delete {
        /// The table.
        table: u8,
        /// The key.
        key: u32,
    },
    /// Drops a table and creates it again.
    Recreate {
        /// The table.
        table: u8,
    },
    /// Removes the first or the last entry.
    Pop {
        /// The table.
        table: u8,
        /// The last one.
        is_last: bool,
    },
    /// Removes by a cursor the keys that have this remainder.
    Thin {
        /// The table.
        table: u8,
        /// The remainder of a division by `THIN_DIVISOR`.
        remainder: u32,
    },
}

/// One in so many keys is removed by `Change::Thin`.
pub(crate) const THIN_DIVISOR: u32 = 5;

impl Step {
    /// A transaction whose caller gives up at the first error.
    pub(crate) fn committed(changes: Vec<Change>, durability: Durability) -> Self {
        Self::Transaction { changes, end: End::Commit(durability), on_error: OnError::GiveUp }
    }

    /// Whether the store is opened again after it.
    pub(crate) fn ends_opening(&self) -> bool {
        matches!(self, Self::Reopen | Self::Die { .. })
    }

    /// Its changes, by transaction.
    pub(crate) fn changes_mut(&mut self) -> Vec<&mut Vec<Change>> {
        match self {
            Self::Transaction { changes, .. } => vec![changes],
            Self::Checkpoint { during } | Self::Compact { during } => during.iter_mut().collect(),
            Self::Flush | Self::Reopen | Self::Die { .. } | Self::Trouble(_) | Self::Hold | Self::Release => {
                Vec::new()
            }
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |changes: &[Change]| {
            let texts: Vec<_> = changes.iter().map(ToString::to_string).collect();
            if texts.is_empty() { "nothing".into() } else { texts.join(", ") }
        };
        match self {
            Self::Transaction { changes, end, on_error } => {
                let end = match end {
                    End::Commit(Durability::Full) => "commit",
                    End::Commit(Durability::Delayed) => "delayed commit",
                    End::RollBack => "rolled back",
                    End::Panic => "the caller panics",
                };
                let on_error = match on_error {
                    OnError::GiveUp => "",
                    OnError::ContinueAt => ", without what is refused",
                    OnError::TryAgain => ", what is refused is tried again",
                };
                write!(f, "{end}{on_error}: {}", list(changes))
            }
            Self::Checkpoint { during } if during.is_empty() => f.write_str("checkpoint"),
            Self::Checkpoint { during } => {
                f.write_str("checkpoint, with commits between its writes")?;
                during.iter().try_for_each(|changes| write!(f, "; {}", list(changes)))
            }
            Self::Compact { during } if during.is_empty() => f.write_str("compaction"),
            Self::Compact { during } => {
                f.write_str("compaction, with commits between its steps")?;
                during.iter().try_for_each(|changes| write!(f, "; {}", list(changes)))
            }
            Self::Flush => f.write_str("flush"),
            Self::Reopen => f.write_str("close and open"),
            Self::Die { times } => write!(f, "{times} times: the process ends, open"),
            Self::Trouble(trouble) => write!(f, "in the next step {trouble}"),
            Self::Hold => f.write_str("begin a snapshot"),
            Self::Release => f.write_str("end a snapshot"),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Put { table, key, byte, bytes } => write!(f, "put {table}/{key} = {bytes} x {byte:02x}"),
            Self::Delete { table, key } => write!(f, "delete {table}/{key}"),
            Self::Recreate { table } => write!(f, "drop and create table {table}"),
            Self::Pop { table, is_last: false } => write!(f, "pop first of {table}"),
            Self::Pop { table, is_last: true } => write!(f, "pop last of {table}"),
            Self::Thin { table, remainder } => write!(f, "delete {table}/{THIN_DIVISOR}n+{remainder}"),
        }
    }
}

/// The settings of a store under test: small, so that its space is reused often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// The workload that it is for.
    pub kind: WorkloadKind,
    /// The store's layout.
    pub layout: Layout,
    /// Its options.
    pub options: Options,
}

impl Setting {
    /// Draws the settings of a seed.
    #[must_use]
    pub fn draw(chance: &mut Chance) -> Self {
        let mut layout = Layout {
            page_bytes: if chance.once_in(4) { 8192 } else { 4096 },
            log_sector_bytes: if chance.once_in(2) { 512 } else { 4096 },
            vlf_bytes: 128 << 10,
            vlfs: 2 + chance.below(3) as usize,
        };
        // Derived from earlier draws, so that those of the other seeds stay the same.
        if layout.page_bytes == 8192 && layout.vlfs == 2 {
            layout.page_bytes = 16384;
        }
        let options = Options {
            cache_bytes: [96 << 10, 256 << 10, 4 << 20][chance.below(3) as usize],
            log_limit_bytes: (6 + chance.below(6)) * layout.vlf_bytes,
            checkpoint_bytes: [96 << 10, 200 << 10, 1 << 20][chance.below(3) as usize],
            delayed_bytes: [8 << 10, 60 << 10][chance.below(2) as usize],
            recovery: Self::draw_recovery(chance),
            apply: if chance.once_in(2) { Apply::Direct } else { Apply::Mapped },
            parallel: 1,
            background: false,
            verify_writes: chance.once_in(4),
            ..Options::default()
        };
        Self { kind: WorkloadKind::Random, layout, options }
    }

    /// Draws a strategy of recovery.
    #[must_use]
    pub fn draw_recovery(chance: &mut Chance) -> Recovery {
        [Recovery::Serial, Recovery::Prefetch, Recovery::Wide, Recovery::Instant][chance.below(4) as usize]
    }
}

/// Draws the steps of a seed. One in three workloads has large values: its tables take many pages, its transactions several
/// blocks of log, and some do not fit in the cache.
pub(crate) fn draw(chance: &mut Chance, steps: usize) -> Vec<Step> {
    let large = chance.once_in(3);
    let mut all = Vec::with_capacity(steps);
    while all.len() < steps {
        let step = draw_step(chance, large);
        // A snapshot may need what a large transaction evicts.
        if matches!(&step, Step::Transaction { changes, .. } if changes.len() >= 60) && chance.once_in(2) {
            all.push(Step::Hold);
        }
        all.push(step);
    }
    all
}

/// Values of this length and up to 200 bytes more.
pub(crate) fn draw_puts(chance: &mut Chance, count: u64, bytes: u64) -> Vec<Change> {
    let mut put = |_| Change::Put {
        table: chance.below(u64::from(TABLES)) as u8,
        key: chance.below(KEYS) as u32,
        byte: chance.draw() as u8,
        bytes: (bytes + chance.below(200)) as usize,
    };
    (0..count).map(&mut put).collect()
}

/// Draws transactions of one change each.
pub(crate) fn draw_small(chance: &mut Chance, steps: usize, bytes: usize) -> Vec<Step> {
    let small = |chance: &mut Chance| {
        let (key, byte) = (chance.below(4) as u32, chance.draw() as u8);
        Step::committed(vec![Change::Put { table: 0, key, byte, bytes }], Durability::Full)
    };
    (0..steps).map(|_| small(chance)).collect()
}

pub(crate) fn draw_step(chance: &mut Chance, large: bool) -> Step {
    match chance.below(24) {
        0 | 1 => {
            let transactions = chance.below(5);
            let transaction = |_| {
                let count = 1 + chance.below(3);
                draw_changes(chance, count, large)
            };
            Step::Checkpoint { during: (0..transactions).map(transaction).collect() }
        }
        2 => Step::Flush,
        3 if chance.once_in(3) => Step::Reopen,
        4 | 5 => Step::Hold,
        6 => Step::Release,
        _ => {
            let count = match chance.below(10) {
                0 => 60 + chance.below(120),
                1 | 2 => 8 + chance.below(20),
                _ => 1 + chance.below(3),
            };
            let changes = draw_changes(chance, count, large);
            let end = match chance.below(10) {
                0 => End::RollBack,
                1..=3 => End::Commit(Durability::Delayed),
                _ => End::Commit(Durability::Full),
            };
            Step::Transaction { changes, end, on_error: OnError::GiveUp }
        }
    }
}

pub(crate) fn draw_changes(chance: &mut Chance, count: u64, large: bool) -> Vec<Change> {
    (0..count).map(|_| draw_change(chance, large)).collect()
}

fn draw_change(chance: &mut Chance, large: bool) -> Change {
    let table = chance.below(u64::from(TABLES)) as u8;
    let key = chance.below(KEYS) as u32;
    match chance.below(100) {
        0 => Change::Recreate { table },
        // Derived from earlier draws, so that those of the other changes stay the same.
        1..=20 if key < 6 => Change::Pop { table, is_last: key.is_multiple_of(2) },
        1..=20 if key < 10 => Change::Thin { table, remainder: key - 6 },
        1..=20 => Change::Delete { table, key },
        _ => {
            let long = if large { !chance.once_in(4) } else { chance.once_in(8) };
            let bytes = if long { 200 + chance.below(700) } else { chance.below(60) };
            Change::Put { table, key, byte: chance.draw() as u8, bytes: bytes as usize }
        }
    }
}

pub(crate) fn name(table: u8) -> String {
    format!("table{table}")
}

/// Creates the tables of a new store.
pub(crate) fn prepare(store: &Store) -> Result<()> {
    let mut tx = store.write()?;
    for table in 0..TABLES {
        tx.create_table(&name(table))?;
    }
    tx.commit(Durability::Full)?;
    Ok(())
}

/// Everything that a reader sees; `None` before the tables exist.
pub(crate) fn contents(reader: &impl Tables) -> Result<Option<Model>> {
    let mut found = Model::new();
    let is_made = read_contents(reader, &mut found)?;
    Ok(is_made.then_some(found))
}

/// As `contents`, in the order of the model; keeps what was read before an error.
pub(crate) fn read_contents(reader: &impl Tables, found: &mut Model) -> Result<bool> {
    if reader.tables()?.is_empty() {
        return Ok(false);
    }
    read_entries(reader, found)?;
    for table in 0..TABLES {
        let entries = found.range((table, 0)..=(table, u32::MAX)).count() as u64;
        let own = reader.table(&name(table))?;
        assert_eq!(reader.len(own)?, entries, "the number of entries that table {table} keeps");
    }
    Ok(true)
}

/// The entries of all tables; keeps what was read before an error.
pub(crate) fn read_entries(reader: &impl Tables, found: &mut Model) -> Result<()> {
    for table in 0..TABLES {
        let own: Table = reader.table(&name(table))?;
        for entry in reader.range(own, &[], None)? {
            let (key, value) = entry?;
            let key = key.try_into().map(u32::from_be_bytes).unwrap_or(u32::MAX);
            found.insert((table, key), value);
        }
    }
    Ok(())
}

/// Table and key of the first difference of two states.
pub(crate) fn difference(found: &Model, model: &Model) -> Option<(u8, u32)> {
    let differs = |key: &&(u8, u32)| found.get(key) != model.get(key);
    model.keys().chain(found.keys()).find(differs).copied()
}

/// # Panics
/// When `found` differs from `model`.
pub(crate) fn assert_state(found: Option<Model>, model: &Model, otherwise: &str) {
    let differs = difference(&found.unwrap_or_default(), model);
    assert!(differs.is_none(), "{otherwise}: table and key {differs:?} differ");
}
