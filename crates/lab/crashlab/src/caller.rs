//! A transaction as its caller does it: who gives up at the first error, who goes on after it, and who panics.
//!
//! A change that is refused has changed nothing, or the transaction is broken and nothing of it can be seen or committed
//! any more; what a commit that has succeeded leaves are the changes that were not refused, and no others.

use crate::SimDisk;
use crate::workload::{Change, End, Model, OnError, assert_state, contents, name};
use pagestore::{Durability, Store, Tables, WriteTx};
use pagestore::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// After so many errors of one transaction, whoever goes on goes straight to its end.
const ERRORS_MAX: usize = 6;

/// What a caller panics with.
struct CallersOwn;

/// See the module.
pub(crate) struct Caller<'a> {
    pub store: &'a Store,
    pub disk: &'a SimDisk,
    pub met: &'a mut Met,
}

/// How often callers met what they go on after.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Met {
    /// Changes that were refused, and the transaction went on.
    pub refused: usize,
    /// Transactions that were broken by one.
    pub broken: usize,
    /// Commits that failed, and the store went on.
    pub commits: usize,
    /// Panics.
    pub panics: usize,
}

impl Met {
    /// All of it.
    pub(crate) fn survived(&self) -> u64 {
        (self.refused + self.broken + self.commits + self.panics) as u64
    }
}

/// A change that was refused.
struct RefusedChange {
    error: Error,
    /// A part of it was done, and is a change by itself.
    in_part: bool,
}

impl From<Error> for RefusedChange {
    fn from(error: Error) -> Self {
        Self { error, in_part: false }
    }
}

impl Caller<'_> {
    /// Does a transaction's changes to the store and to the model, and ends it. `begin_commit` is told what it comes to
    /// before anything of that can be on the disk. The commit's number, where it has one.
    pub(crate) fn transact(
        &mut self,
        model: &mut Model,
        changes: &[Change],
        end: End,
        on_error: OnError,
        begin_commit: impl FnOnce(&Model),
    ) -> Result<Option<u64>> {
        match end {
            End::Commit(durability) => self.commit(model, changes, durability, on_error, begin_commit),
            End::RollBack => {
                let mut tx = self.store.write()?;
                self.change(&mut tx, &mut model.clone(), changes, on_error)?;
                // Not `rollback`, which flushes: what a crash takes of the delayed commits before it would never be met.
                drop(tx);
                Ok(None)
            }
            End::Panic => {
                let panicked = catch_unwind(AssertUnwindSafe(|| -> Result<Option<u64>> {
                    let _snapshot = self.store.read()?;
                    let mut tx = self.store.write()?;
                    self.change(&mut tx, &mut model.clone(), changes, on_error)?;
                    resume_unwind(Box::new(CallersOwn))
                }));
                panicked.unwrap_or_else(|panic| {
                    if !panic.is::<CallersOwn>() {
                        resume_unwind(panic)
                    }
                    self.met.panics += 1;
                    Ok(None)
                })
            }
        }
    }

    fn commit(
        &mut self,
        model: &mut Model,
        changes: &[Change],
        durability: Durability,
        on_error: OnError,
        begin_commit: impl FnOnce(&Model),
    ) -> Result<Option<u64>> {
        let mut tx = self.store.write()?;
        let mut after = model.clone();
        if self.change(&mut tx, &mut after, changes, on_error)? {
            self.met.broken += 1;
            let committed = tx.commit(durability);
            assert!(
                matches!(committed, Err(Error::TransactionBroken { .. })),
                "a transaction of which a change failed halfway was committed: {committed:?}"
            );
            return Ok(None);
        }
        begin_commit(&after);
        let committed = tx.commit(durability);
        assert!(
            !matches!(committed, Err(Error::TransactionBroken { .. })),
            "a transaction in which nothing was left halfway was refused as broken"
        );
        let committed = committed?;
        *model = after;
        Ok(committed.map(|committed| committed.sequence))
    }

    /// Does the changes; whether the transaction is broken. An error where nobody goes on after it.
    fn change(
        &mut self,
        tx: &mut WriteTx<'_>,
        after: &mut Model,
        changes: &[Change],
        on_error: OnError,
    ) -> Result<bool> {
        let tries = if on_error == OnError::TryAgain { 2 } else { 1 };
        let mut errors = 0;
        let mut broken = false;
        for change in changes {
            for _ in 0..tries {
                let Err(RefusedChange { error, in_part }) = do_one(tx, after, change) else {
                    assert!(!broken, "a broken transaction goes on: {change}");
                    break;
                };
                if on_error == OnError::GiveUp || in_part || !self.is_survived(&error, broken) {
                    return Err(error);
                }
                broken = self.left_by_error(tx, after, broken);
                errors += 1;
                self.met.refused += usize::from(!broken);
            }
            if errors >= ERRORS_MAX {
                break;
            }
        }
        Ok(broken)
    }

    /// Whether the transaction may go on after an error: nothing but what it says is refused.
    fn is_survived(&self, error: &Error, broken: bool) -> bool {
        match error {
            Error::LogFull { .. } => true,
            Error::TransactionBroken { .. } => broken,
            Error::Io { .. } => self.disk.told_of_trouble(),
            _ => false,
        }
    }

    /// A change was refused: nothing of it is there, or the transaction is broken, and stays so.
    fn left_by_error(&self, tx: &WriteTx<'_>, after: &Model, was_broken: bool) -> bool {
        match self.disk.without_trouble(|| contents(tx)) {
            Err(Error::TransactionBroken { .. }) => true,
            Ok(found) => {
                assert!(!was_broken, "a broken transaction can be read");
                assert_state(found, after, "a change that was refused has left something");
                false
            }
            Err(error) => panic!("after a change that was refused the transaction cannot be read: {error}"),
        }
    }
}

/// Does a change to the store and, where it is done, to the model.
fn do_one(
    tx: &mut WriteTx<'_>,
    after: &mut Model,
    change: &Change,
) -> std::result::Result<(), RefusedChange> {
    match *change {
        Change::Put { table, key, byte, bytes } => {
            let own = tx.table(&name(table))?;
            let value = vec![byte; bytes];
            tx.put(own, &key.to_be_bytes(), &value)?;
            after.insert((table, key), value);
        }
        Change::Delete { table, key } => {
            let own = tx.table(&name(table))?;
            let was_there = tx.delete(own, &key.to_be_bytes())?;
            assert_eq!(was_there, after.remove(&(table, key)).is_some(), "whether {table}/{key} was there");
        }
        Change::Recreate { table } => {
            tx.drop_table(&name(table))?;
            tx.create_table(&name(table)).map_err(|error| RefusedChange { error, in_part: true })?;
            after.retain(|(own, _), _| *own != table);
        }
    }
    Ok(())
}
