//! A transaction as its caller performs it: some callers give up at the first error, some go on, some panic.
//!
//! A refused change has changed nothing, or it has broken the transaction, and then none of it can be read or committed.
//! A successful commit contains the changes that were not refused, and no others.

use crate::SimDisk;
use crate::workload::{Change, End, Model, OnError, THIN_DIVISOR, assert_state, contents, name};
use pagestore::{Durability, Error, Result, Store, Tables, WriteTx};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A caller that goes on after errors ends its transaction after this many.
const ERRORS_MAX: usize = 6;

/// The payload of the caller's panics.
struct CallersOwn;

/// Performs transactions on the store and on the model.
pub(crate) struct Caller<'a> {
    pub store: &'a Store,
    pub disk: &'a SimDisk,
    pub survived: &'a mut Survived,
}

/// Errors and panics after which callers went on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Survived {
    /// Changes that were refused while the transaction went on.
    pub refused: usize,
    /// Transactions that a change broke.
    pub broken: usize,
    /// Commits that failed while the store went on.
    pub commits: usize,
    /// Panics of the caller.
    pub panics: usize,
}

impl Survived {
    /// The sum.
    pub(crate) fn total(&self) -> u64 {
        (self.refused + self.broken + self.commits + self.panics) as u64
    }
}

/// A change that was refused.
struct RefusedChange {
    error: Error,
    /// A part of the change is done, and counts as a change.
    in_part: bool,
}

impl From<Error> for RefusedChange {
    fn from(error: Error) -> Self {
        Self { error, in_part: false }
    }
}

impl Caller<'_> {
    /// Applies a transaction's changes to the store and to the model, and ends it. `begin_commit` gets the resulting state
    /// before any of it can be on the disk. Returns the commit's number, if it has one.
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
                // Not `rollback`, which flushes: then no crash could lose the delayed commits before it.
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
                    self.survived.panics += 1;
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
            self.survived.broken += 1;
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

    /// Applies the changes; returns whether the transaction is broken. Fails with an error that the caller does not survive.
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
                self.survived.refused += usize::from(!broken);
            }
            if errors >= ERRORS_MAX {
                break;
            }
        }
        Ok(broken)
    }

    /// Whether the caller may go on after an error.
    fn is_survived(&self, error: &Error, broken: bool) -> bool {
        match error {
            Error::LogFull { .. } => true,
            Error::TransactionBroken { .. } => broken,
            Error::Io { .. } => self.disk.reported_an_error(),
            _ => false,
        }
    }

    /// After a refused change: checks that nothing of it is left, and returns whether the transaction is broken.
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

/// Applies a change to the store and, if it succeeds, to the model.
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
        Change::Pop { table, is_last } => {
            let own = tx.table(&name(table))?;
            let popped = if is_last { tx.pop_last(own)? } else { tx.pop_first(own)? };
            let mut keys = after.range((table, 0)..=(table, u32::MAX)).map(|((_, key), _)| *key);
            let key = if is_last { keys.next_back() } else { keys.next() };
            let expected = key.map(|key| {
                (key.to_be_bytes().to_vec(), after.remove(&(table, key)).expect("its key was found"))
            });
            assert_eq!(popped, expected, "the entry at an end of table {table}");
        }
        Change::Thin { table, remainder } => {
            let own = tx.table(&name(table))?;
            let stays = |key: u32| key % THIN_DIVISOR != remainder;
            let key_of = |key: &[u8]| u32::from_be_bytes(key.try_into().expect("its keys have four bytes"));
            let removed = tx.retain(own, |key, _| stays(key_of(key)))?;
            let before = after.len();
            after.retain(|(of, key), _| *of != table || stays(*key));
            assert_eq!(removed, (before - after.len()) as u64, "keys that a cursor removed");
        }
    }
    Ok(())
}
