//! Inspecting the log of a store in use.

use super::Inspection;
use crate::error::{Error, Result};
use crate::format::control::Control;
use crate::recovery;
use pagestore_disk::FileId;

/// Attempts before it fails.
const ATTEMPTS_MAX: usize = 16;

impl Inspection<'_> {
    /// Runs `read` on the log as the current control file describes it. A store in use overwrites log that it has
    /// freed, and begins virtual log files, while the log is read; both look like damage. Real damage is found
    /// again at the same position, whereas freed log lies before the next attempt's redo position, and a virtual
    /// log file that was begun is seen by it.
    pub(super) fn read_consistently<T>(&self, mut read: impl FnMut(&Control) -> Result<T>) -> Result<T> {
        let mut damaged = None;
        for _ in 0..ATTEMPTS_MAX {
            match read(&recovery::read_control(self.disk.as_ref())?) {
                Err(Error::CorruptLog { lsn, .. }) if damaged != Some(lsn) => damaged = Some(lsn),
                other => return other,
            }
        }
        let why = "the store writes over it sooner than it is read; ask again";
        Err(Error::io("read", FileId::Log, std::io::Error::other(why)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::inspect::{Filter, RecordInfo};
    use crate::{Durability, Layout, Options, Store};
    use crashlab::SimDisk;
    use pagestore_disk::Disk;
    use std::io;
    use std::ops::ControlFlow;
    use std::sync::{Arc, Mutex};

    /// The disk of a store that does some work whenever its log is read.
    struct InUse {
        disk: Arc<SimDisk>,
        work: Mutex<Box<dyn FnMut() + Send>>,
    }

    impl Disk for InUse {
        fn read(&self, file: FileId, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
            if file == FileId::Log {
                (self.work.lock().unwrap())();
            }
            self.disk.read(file, offset, buffer)
        }

        fn write(&self, _: FileId, _: u64, _: &[u8]) -> io::Result<()> {
            unreachable!("who looks writes nothing")
        }

        fn write_through(&self, _: FileId, _: u64, _: &[u8]) -> io::Result<()> {
            unreachable!("who looks writes nothing")
        }

        fn sync(&self, _: FileId) -> io::Result<()> {
            unreachable!("who looks writes nothing")
        }

        fn len(&self, file: FileId) -> io::Result<u64> {
            self.disk.len(file)
        }
    }

    #[test]
    fn log_that_is_overwritten_while_it_is_read_is_not_reported_as_damage_and_damage_is() {
        let disk = Arc::new(SimDisk::new());
        let quiet = Options { background: false, publish: false, ..Options::default() };
        let layout = Layout { vlf_bytes: 128 << 10, vlfs: 4, ..Layout::default() };
        let store = Store::create_on(disk.clone(), layout, quiet, 7).unwrap();
        let store = Arc::new(store);
        let table = {
            let mut tx = store.write().unwrap();
            let table = tx.create_table("t").unwrap();
            tx.commit(Durability::Full).unwrap();
            table
        };
        // This many commits at each read, with checkpoints in between, until a total is reached.
        for (at_once, checkpoint) in [(1, 40), (7, 40), (30, 30), (30, 60), (90, 90)] {
            let mut left = 6 * at_once.max(30);
            let mut done = 0_u32;
            let store = Arc::clone(&store);
            let user = Arc::clone(&store);
            let work = move || {
                for _ in 0..at_once.min(left) {
                    let mut tx = user.write().unwrap();
                    tx.put(table, &(done % 50).to_be_bytes(), &[done as u8; 900]).unwrap();
                    tx.commit(Durability::Full).unwrap();
                    done += 1;
                    left -= 1;
                    if done.is_multiple_of(checkpoint) {
                        user.checkpoint().unwrap();
                    }
                }
            };
            let in_use = Arc::new(InUse { disk: disk.clone(), work: Mutex::new(Box::new(work)) });
            let inspection = Inspection::open_on(in_use).unwrap();
            let mut seen = Vec::new();
            let collect = |record: RecordInfo| {
                seen.push(record.lsn);
                ControlFlow::Continue(())
            };
            inspection.records(Filter::default(), collect).unwrap();
            assert!(seen.is_sorted_by(|a, b| a < b), "{at_once} {checkpoint}: none is visited twice");
            let before = store.stats().last_sequence;
            let found = inspection.info().unwrap().last_sequence;
            assert!(
                (before..=store.stats().last_sequence).contains(&found),
                "{at_once} {checkpoint}: {found}"
            );
            inspection.anatomy(None).unwrap();
            assert_eq!(inspection.why().unwrap().open_transaction, None);
        }
        // Damage the first block that is needed.
        let redo = Control::read(disk.as_ref()).unwrap().unwrap();
        let offset =
            redo.geometry.slot_offset(redo.redo_slot as usize) + u64::from(redo.redo.lsn.unit()) * 512;
        disk.write(FileId::Log, offset + 100, &[0xa5; 8]).unwrap();
        let error = Inspection::open_on(disk).unwrap().info().unwrap_err();
        assert!(matches!(error, Error::CorruptLog { .. }), "{error}");
    }
}
