//! The file formats, for the crash laboratory: it aims faults and damage at particular bytes. This is not part of the
//! interface and changes with the formats.

pub use crate::format::codec::{put_u32, u32_at};
pub use crate::log::record::Record;

use crate::error::Result;
use crate::format::control::Control;
use crate::log::record::Records;
use crate::types::Lsn;
use pagestore_disk::Disk;

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
