//! Redo as the study's engines do it: page by page in the order of the log, each read, changed and written before
//! the next.

use crate::control::Control;
use crate::delta;
use crate::disk::{Disk, FileId};
use crate::error::{Error, Result};
use crate::log::record::{Record, Records};
use crate::log::scan::{LogFile, Reading};
use crate::options::Apply;
use crate::page;
use crate::types::{Lsn, PageNo};
use std::collections::HashSet;

struct Change<'a> {
    page: PageNo,
    lsn: Lsn,
    image: bool,
    runs: &'a [u8],
}

/// How the changes come to the data file.
#[derive(Clone, Copy)]
pub(super) struct Steps {
    pub reading: Reading,
    /// A sync for each virtual log file, or one.
    pub sync_each: bool,
    pub way: Apply,
}

/// Applies every change of the log to the data file, but those of transactions that are known not to have committed: so
/// none has to be kept until its commit comes.
pub(super) fn apply(
    disk: &dyn Disk,
    control: &Control,
    log: &LogFile<'_>,
    dead: &HashSet<u64>,
    steps: Steps,
) -> Result<()> {
    let Steps { reading, sync_each, way } = steps;
    let mut applied =
        Applied { disk, control, way, page: vec![0; control.geometry.page_bytes], imaged: HashSet::new() };
    let mut vlf = control.redo.lsn.vlf();
    log.scan(control.redo_slot as usize, control.redo, control.known(), reading, |header, used| {
        if sync_each && header.vlf != vlf {
            vlf = header.vlf;
            applied.sync()?;
        }
        for (index, record) in Records::of(used).enumerate() {
            let lsn = Lsn::new(header.vlf, header.unit, index as u16 + 1);
            let (tx, record) = record.map_err(|why| Error::CorruptLog { lsn, why: why.into() })?;
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
    way: Apply,
    page: Vec<u8>,
    /// Pages whose image has been met: what comes before one is in the data file already.
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
                .map_err(|error| Error::io("read", FileId::Data, error))?;
            page::unstamp(&mut self.page, store, change.page)?;
        } else {
            return Ok(());
        }
        delta::apply(change.runs, &mut self.page)
            .map_err(|why| Error::CorruptLog { lsn: change.lsn, why: why.into() })?;
        page::stamp(&mut self.page, store, change.page, change.lsn);
        let written = match self.way {
            Apply::Direct => self.disk.write(FileId::Data, offset, &self.page),
            Apply::Mapped => self.disk.write_mapped(offset, &self.page),
        };
        written.map_err(|error| Error::io("write", FileId::Data, error))
    }

    fn sync(&self) -> Result<()> {
        self.disk.sync(FileId::Data).map_err(|error| Error::io("sync", FileId::Data, error))
    }
}
