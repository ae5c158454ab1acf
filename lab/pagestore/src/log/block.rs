//! A log block, and the header of a virtual log file.
//!
//! ```text
//! block                                           header of a virtual log file (one sector of 4 KiB)
//!  0  magic    u32 "HLB1"                          0  magic    u32 "HVL1"
//!  4  crc      u32 CRC-32C of all after it         4  crc      u32 CRC-32C of all after it
//!  8  vlf      u32 its virtual log file            8  vlf      u32 sequence number, from 1
//! 12  unit     u32 its offset / 512               12  parity   u32 64 or 128, flipped at every reuse
//! 16  length   u32 with header and padding        16  epoch    u32 of the opening that wrote it
//! 20  used     u32 with header                    20  previous u32 checksum of the block before it
//! 24  records  u16                                24  created  u64 LSN of the last record before it
//! 26  flags    u16 zero                           32  store    u64
//! 28  epoch    u32 of the opening that wrote it   40  zeros
//! 32  previous u32 checksum of the block before
//! 36  zero     u32
//! 40  witness  u64 newest LSN known to be durable when this block was built
//! 48  oldest   u64 first LSN of the oldest transaction then active
//! 56  store    u64 low half of the store's identity
//! 64  records, then zeros up to the sector
//! ```
//! `previous` chains the blocks, across virtual log files too: blocks left by an earlier use of the space, or by an
//! earlier end of the log that was cut off, do not continue the chain. `witness` distinguishes a torn end from
//! damage: a block that says "everything up to X was durable" makes a gap before X damage.

use crate::error::{Error, Result};
use crate::format::codec::{put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::format::geometry::{Geometry, MAX_BLOCK_BYTES, VLF_HEADER_BYTES};
use crate::log::record::{Record, Records};
use crate::types::{COUNT_MAX_U32, Lsn, UNIT_BYTES};

const BLOCK_MAGIC: u32 = u32::from_le_bytes(*b"HLB1");
const VLF_MAGIC: u32 = u32::from_le_bytes(*b"HVL1");
/// Bytes of a block's header.
pub(crate) const BLOCK_HEADER_BYTES: usize = 64;

/// The fields of a block's header, apart from those that are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    pub vlf: u32,
    pub unit: u32,
    pub length: usize,
    pub used: usize,
    pub records: u16,
    pub epoch: u32,
    pub previous: u32,
    pub witness: Lsn,
    pub oldest: Lsn,
    /// The block's own checksum.
    pub crc: u32,
}

impl BlockHeader {
    /// The last record of the block.
    pub(crate) fn last(&self) -> Lsn {
        Lsn::new(self.vlf, self.unit, self.records)
    }

    /// Where the next block may begin.
    pub(crate) fn next_unit(&self) -> u32 {
        self.unit + (self.length as u64 / UNIT_BYTES) as u32
    }
}

/// A record of a block, with its position and transaction.
pub(crate) struct BlockRecord<'a> {
    pub lsn: Lsn,
    pub tx: u64,
    pub record: Record<'a>,
}

/// The records of a block. A record that cannot be read is damage: the block's checksum is valid.
pub(crate) fn records<'a>(
    header: &BlockHeader,
    used: &'a [u8],
) -> impl Iterator<Item = Result<BlockRecord<'a>>> {
    let (vlf, unit) = (header.vlf, header.unit);
    Records::new(used).zip(1..).map(move |(record, number)| {
        let lsn = Lsn::new(vlf, unit, number);
        let (tx, record) = record.map_err(|why| Error::corrupt_log(lsn, why))?;
        Ok(BlockRecord { lsn, tx, record })
    })
}

/// Writes the header of a complete, padded block; returns the block's checksum.
pub(crate) fn seal(block: &mut [u8], geometry: &Geometry, header: &BlockHeader) -> u32 {
    put_u32(block, 0, BLOCK_MAGIC);
    put_u32(block, 8, header.vlf);
    put_u32(block, 12, header.unit);
    put_u32(block, 16, header.length as u32);
    put_u32(block, 20, header.used as u32);
    put_u16(block, 24, header.records);
    put_u16(block, 26, 0);
    put_u32(block, 28, header.epoch);
    put_u32(block, 32, header.previous);
    put_u32(block, 36, 0);
    put_u64(block, 40, header.witness.packed());
    put_u64(block, 48, header.oldest.packed());
    put_u64(block, 56, geometry.store);
    let crc = crc32c::crc32c(&block[8..]);
    put_u32(block, 4, crc);
    crc
}

/// The header and records of the block at the beginning of `bytes`, if it is whole and belongs at `unit` of `vlf`.
pub(crate) fn open<'a>(
    bytes: &'a [u8],
    geometry: &Geometry,
    vlf: u32,
    unit: u32,
) -> Option<(BlockHeader, &'a [u8])> {
    if bytes.len() < BLOCK_HEADER_BYTES || u32_at(bytes, 0) != BLOCK_MAGIC {
        return None;
    }
    if u32_at(bytes, 8) != vlf || u32_at(bytes, 12) != unit || u64_at(bytes, 56) != geometry.store {
        return None;
    }
    let (length, used) = (u32_at(bytes, 16) as usize, u32_at(bytes, 20) as usize);
    let sane = (BLOCK_HEADER_BYTES..=MAX_BLOCK_BYTES).contains(&length)
        && used <= length
        && u16_at(bytes, 24) <= Lsn::MAX_RECORD;
    if !sane || used < BLOCK_HEADER_BYTES || !length.is_multiple_of(UNIT_BYTES as usize) {
        return None;
    }
    let block = bytes.get(..length)?;
    let crc = u32_at(block, 4);
    if crc32c::crc32c(&block[8..]) != crc {
        return None;
    }
    let header = BlockHeader {
        vlf,
        unit,
        length,
        used,
        records: u16_at(block, 24),
        epoch: u32_at(block, 28),
        previous: u32_at(block, 32),
        witness: Lsn::from_packed(u64_at(block, 40)),
        oldest: Lsn::from_packed(u64_at(block, 48)),
        crc,
    };
    Some((header, &block[BLOCK_HEADER_BYTES..used]))
}

/// The header of a virtual log file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VlfHeader {
    pub vlf: u32,
    pub parity: u32,
    pub epoch: u32,
    pub previous: u32,
    pub created: Lsn,
}

/// Encodes the header of a virtual log file.
pub(crate) fn vlf_header(header: &VlfHeader, geometry: &Geometry) -> [u8; VLF_HEADER_BYTES] {
    let mut sector = [0; VLF_HEADER_BYTES];
    put_u32(&mut sector, 0, VLF_MAGIC);
    put_u32(&mut sector, 8, header.vlf);
    put_u32(&mut sector, 12, header.parity);
    put_u32(&mut sector, 16, header.epoch);
    put_u32(&mut sector, 20, header.previous);
    put_u64(&mut sector, 24, header.created.packed());
    put_u64(&mut sector, 32, geometry.store);
    let crc = crc32c::crc32c(&sector[8..]);
    put_u32(&mut sector, 4, crc);
    sector
}

/// Reads the header of a virtual log file; `None` if there is none or it is damaged.
pub(crate) fn read_vlf_header(sector: &[u8], geometry: &Geometry) -> Option<VlfHeader> {
    let sector = sector.get(..VLF_HEADER_BYTES)?;
    let valid = u32_at(sector, 0) == VLF_MAGIC
        && u32_at(sector, 4) == crc32c::crc32c(&sector[8..])
        && u64_at(sector, 32) == geometry.store
        && u32_at(sector, 8) < COUNT_MAX_U32;
    valid.then(|| VlfHeader {
        vlf: u32_at(sector, 8),
        parity: u32_at(sector, 12),
        epoch: u32_at(sector, 16),
        previous: u32_at(sector, 20),
        created: Lsn::from_packed(u64_at(sector, 24)),
    })
}
