//! Conventional redo: page by page in the order of the log, each read, changed and written before the next.

use crate::error::{Error, Result};
use crate::format::control::Control;
use crate::format::{delta, page};
use crate::log::block::{self, BlockRecord};
use crate::log::record::Record;
use crate::log::scan::{LogFile, Reading};
use crate::types::{Lsn, PageNo};
use pagestore_disk::{Apply, Disk, FileId, PageWrite};
use std::collections::HashSet;

struct Change<'a> {
    page: PageNo,
    lsn: Lsn,
    image: bool,
    runs: &'a [u8],
}

/// How the changes are applied to the data file.
#[derive(Clone, Copy)]
pub(super) struct ApplySteps {
    pub reading: Reading,
    /// Sync after each virtual log file, or once at the end.
    pub sync_each: bool,
    pub apply: Apply,
}

/// Applies every change in the log to the data file, except those of transactions that are known not to have
/// committed. So changes need not be kept until their commit is read.
pub(super) fn apply(
    disk: &dyn Disk,
    control: &Control,
    log: &LogFile<'_>,
    dead: &HashSet<u64>,
    steps: ApplySteps,
) -> Result<()> {
    let ApplySteps { reading, sync_each, apply } = steps;
    let mut applied =
        Applied { disk, control, apply, page: vec![0; control.geometry.page_bytes], imaged: HashSet::new() };
    let mut vlf = control.redo.lsn.vlf();
    log.scan(control.redo_slot as usize, control.redo, control.known(), reading, |header, used| {
        if sync_each && header.vlf != vlf {
            vlf = header.vlf;
            applied.sync()?;
        }
        for found in block::records(header, used) {
            let BlockRecord { lsn, tx, record } = found?;
            if lsn < control.redo.lsn {
                continue;
            }
            if let Record::Page { page, image, runs } = record
                && !dead.contains(&tx)
            {
                applied.change(&Change { page, lsn, image, runs })?;
            }
        }
        Ok(())
    })?;
    applied.sync()
}

struct Applied<'a> {
    disk: &'a dyn Disk,
    control: &'a Control,
    apply: Apply,
    page: Vec<u8>,
    /// Pages whose image was read; changes before an image are in the data file already.
    imaged: HashSet<PageNo>,
}

impl Applied<'_> {
    fn change(&mut self, change: &Change<'_>) -> Result<()> {
        let store = self.control.geometry.store;
        let offset = change.page.0 * self.control.geometry.page_bytes as u64;
        if change.image {
            self.imaged.insert(change.page);
            self.page.fill(0);
        } else if self.imaged.contains(&change.page) {
            self.disk
                .read(FileId::Data, offset, &mut self.page)
                .map_err(Error::during("read", FileId::Data))?;
            page::unstamp(&mut self.page, store, change.page)?;
        } else {
            return Ok(());
        }
        delta::apply(change.runs, &mut self.page).map_err(|why| Error::corrupt_log(change.lsn, why))?;
        page::stamp(&mut self.page, store, change.page, change.lsn);
        let write = PageWrite { offset, bytes: &self.page };
        let written = self.disk.write_many(&[write], self.apply, 1, &|_| ());
        written.map_err(Error::during("write", FileId::Data))
    }

    fn sync(&self) -> Result<()> {
        self.disk.sync(FileId::Data).map_err(Error::during("sync", FileId::Data))
    }
}
