//! The file formats, for the crash laboratory: it aims faults and damage at particular bytes. This is not part of the
//! interface and changes with the formats.

pub use crate::format::codec::{put_u32, u32_at};
pub use crate::log::record::Record;

use crate::disk::real::creation;
use crate::error::{Error, Result};
use crate::format::control::Control;
use crate::log::record::Records;
use crate::types::Lsn;
use crate::{Layout, Options, Store};
use pagestore_disk::{Disk, FileId, Names};
use std::path::Path;
use std::sync::Arc;

/// Bytes before the first slot of the log file.
pub const LOG_HEAD_BYTES: u64 = crate::format::geometry::LOG_HEAD_BYTES;
/// Bytes of a virtual log file's header.
pub const VLF_HEADER_BYTES: usize = crate::format::geometry::VLF_HEADER_BYTES;
/// The largest block of the log.
pub const BLOCK_BYTES_MAX: usize = crate::format::geometry::MAX_BLOCK_BYTES;
/// Bytes of a block's header: the magic number at 0, the virtual log file at 8, the bytes in use at 20.
pub const BLOCK_HEADER_BYTES: usize = crate::log::block::BLOCK_HEADER_BYTES;
/// The first bytes of a block.
pub const BLOCK_MAGIC: [u8; 4] = *b"HLB1";
/// Bytes of a record before its body.
pub const RECORD_HEADER_BYTES: usize = crate::log::record::RECORD_HEADER_BYTES;
/// Bytes of an entry of an index.
pub const INDEX_ENTRY_BYTES: usize = crate::log::record::ENTRY_BYTES;
/// The action of [`Error::Io`](crate::Error::Io) when a checkpoint cannot read back what it wrote.
pub const READ_BACK: &str = crate::engine::checkpoint::READ_BACK;

/// The records in the used bytes of a block, after its header, up to the first that is damaged.
pub fn records(used: &[u8]) -> impl Iterator<Item = Record<'_>> {
    Records::new(used).map_while(|record| Some(record.ok()?.1))
}

/// The copy of the control file that counts.
#[derive(Clone, Copy, Debug)]
pub struct ControlCopy {
    /// Recovery begins here.
    pub redo: Lsn,
    /// The offset of the copy in the control file.
    pub offset: u64,
}

/// Finds the newest valid copy of the control file.
///
/// # Errors
/// When it cannot be read.
pub fn newest_control(disk: &dyn Disk) -> Result<Option<ControlCopy>> {
    let control = Control::read(disk)?;
    Ok(control.map(|control| ControlCopy { redo: control.redo.lsn, offset: control.place() }))
}

/// As [`Store::create`], on a disk whose files have these names.
///
/// # Errors
/// As `Store::create`.
pub fn create_in(
    names: &dyn Names,
    directory: &Path,
    disk: Arc<dyn Disk>,
    layout: Layout,
    options: Options,
) -> Result<Store> {
    creation::make_directory(names, directory)?;
    creation::check_vacant(names, directory)?;
    let lock = || match names.create(&directory.join(creation::LOCK)) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(Error::io("lock", directory.display(), error))
        }
        _ => Ok(()),
    };
    let holds_store = || {
        let are_there = FileId::ALL.iter().all(|file| names.is_there(&directory.join(file.name())));
        are_there && !matches!(Control::read(disk.as_ref()), Ok(None))
    };
    creation::begin(names, directory, lock, holds_store)?;
    let created = Store::create_on(disk, layout, options, 1);
    let store = created.inspect_err(|_| creation::abandon(names, directory))?;
    creation::finish(names, directory)?;
    Ok(store)
}

/// As [`Store::open`], on a disk whose files have these names.
///
/// # Errors
/// As `Store::open`.
pub fn open_in(names: &dyn Names, directory: &Path, disk: Arc<dyn Disk>, options: Options) -> Result<Store> {
    if let Some(file) = FileId::ALL.iter().find(|file| !names.is_there(&directory.join(file.name()))) {
        return Err(Error::not_a_store(directory, format!("there is no file '{}'", file.name())));
    }
    creation::open(names, directory, disk.as_ref())?;
    let store = Store::open_on(disk, options)?;
    creation::finish(names, directory)?;
    Ok(store)
}
