//! The control file: what is needed to open a store.
//!
//! ```text
//! two copies, at 0 and at 4,096, written in turn; the valid one with the higher generation counts
//!  0  magic      8 bytes "HRPAGES2"; "HRPAGES1" in a store of version 1, whose trees have other nodes and stay so;
//!               "HRPAGES3" in one of version 2 whose log file is being shortened, which older programs refuse
//!  8  crc        u32 CRC-32C of everything after it in the first 512 bytes
//! 12  page       u32 bytes of a page
//! 16  sector     u32 log blocks are padded to this
//! 20  epoch      u32 counts the openings
//! 24  store      u128 identity
//! 40  generation u64
//! 48  vlf        u64 bytes of a virtual log file
//! 56  redo       u64 LSN where recovery begins
//! 64  previous   u32 checksum of the log block before it
//! 68  slot       u32 of the virtual log file of redo
//! 72  durable    u64 LSN known to be durable when this was written
//! 80  clean      u32 1 when the store was closed and needs no recovery
//! 84  commit     u64 number of the last commit before redo
//! 92  tx         u64 largest transaction number before redo
//!100  slots      u32 while the log file is being shortened, the slots that it keeps; otherwise 0
//! after them the log's directory: `log::directory`
//! ```
//! All fields of a copy lie in one sector. Otherwise, of two torn writes of the same copy, the zeros of the second
//! could complete the first, whose redo position may be outdated by then.

use crate::error::{Error, Result};
use crate::format::codec::{put_u32, put_u64, u32_at, u64_at};
use crate::format::geometry::{Geometry, VLF_HEADER_BYTES};
use crate::options::Layout;
use crate::types::{COUNT_MAX, COUNT_MAX_U32, Lsn, Position, UNIT_BYTES};
use pagestore_counters::Opening;
use pagestore_disk::{Disk, FileId};

/// The versions of the format, the oldest first. A store keeps the one that it was created with.
const MAGICS: [&[u8; 8]; 2] = [b"HRPAGES1", b"HRPAGES2"];
/// Version 2, while the log file may be longer than it should be. Where the log goes on after a virtual log file depends
/// on the number of slots.
const SHORTENING_MAGIC: &[u8; 8] = b"HRPAGES3";
/// The version of new stores.
pub(crate) const NEWEST_VERSION: u8 = MAGICS.len() as u8;
const COPY_BYTES: usize = 4096;
/// The log's directory follows the copies.
pub(crate) const COPIES_BYTES: u64 = 2 * COPY_BYTES as u64;
/// The part of a copy that is covered by its checksum: the smallest sector, which a device writes atomically.
const SECTOR_BYTES: usize = 512;

/// Facts about the log in the control file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KnownLog {
    /// The log was durable up to here.
    pub durable: Lsn,
    /// Every block after `durable` was written by this opening or a later one. Blocks of earlier openings there
    /// were cut off and stay so: a torn write over one can make it whole although it was not when the log was cut.
    pub epoch: u32,
}

/// The contents of the control file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Control {
    /// The version of the format, from 1.
    pub version: u8,
    pub geometry: Geometry,
    /// The store's identity; its low half is in every page and block.
    pub store: u128,
    pub generation: u64,
    pub epoch: u32,
    pub redo: Position,
    pub redo_slot: u32,
    pub durable: Lsn,
    pub clean: bool,
    /// The last commit before `redo`, from which the numbering continues if the log has no commits.
    pub sequence: u64,
    /// The largest transaction number before `redo`.
    pub tx_max: u64,
    /// While the log file is being shortened, the slots that it keeps; otherwise 0.
    pub log_slots: u32,
}

impl Control {
    fn encode(&self) -> [u8; COPY_BYTES] {
        let mut copy = [0; COPY_BYTES];
        let magic = if self.log_slots > 0 { SHORTENING_MAGIC } else { MAGICS[usize::from(self.version) - 1] };
        copy[..8].copy_from_slice(magic);
        put_u32(&mut copy, 12, self.geometry.page_bytes as u32);
        put_u32(&mut copy, 16, self.geometry.sector_bytes as u32);
        put_u32(&mut copy, 20, self.epoch);
        copy[24..40].copy_from_slice(&self.store.to_le_bytes());
        put_u64(&mut copy, 40, self.generation);
        put_u64(&mut copy, 48, self.geometry.vlf_bytes);
        put_u64(&mut copy, 56, self.redo.lsn.packed());
        put_u32(&mut copy, 64, self.redo.previous);
        put_u32(&mut copy, 68, self.redo_slot);
        put_u64(&mut copy, 72, self.durable.packed());
        put_u32(&mut copy, 80, u32::from(self.clean));
        put_u64(&mut copy, 84, self.sequence);
        put_u64(&mut copy, 92, self.tx_max);
        put_u32(&mut copy, 100, self.log_slots);
        let crc = crc32c::crc32c(&copy[12..SECTOR_BYTES]);
        put_u32(&mut copy, 8, crc);
        copy
    }

    fn decode(copy: &[u8]) -> Option<Self> {
        let is_shortening = copy[..8] == SHORTENING_MAGIC[..];
        let version = match MAGICS.iter().position(|magic| copy[..8] == magic[..]) {
            Some(index) => index as u8 + 1,
            None if is_shortening => NEWEST_VERSION,
            None => return None,
        };
        if u32_at(copy, 8) != crc32c::crc32c(&copy[12..SECTOR_BYTES]) {
            return None;
        }
        let store = u128::from_le_bytes(copy[24..40].try_into().expect("sixteen bytes"));
        let geometry = Geometry {
            store: store as u64,
            page_bytes: u32_at(copy, 12) as usize,
            sector_bytes: u32_at(copy, 16) as usize,
            vlf_bytes: u64_at(copy, 48),
        };
        let control = Self {
            version,
            geometry,
            store,
            generation: u64_at(copy, 40),
            epoch: u32_at(copy, 20),
            redo: Position { lsn: Lsn::from_packed(u64_at(copy, 56)), previous: u32_at(copy, 64) },
            redo_slot: u32_at(copy, 68),
            durable: Lsn::from_packed(u64_at(copy, 72)),
            clean: u32_at(copy, 80) == 1,
            sequence: u64_at(copy, 84),
            tx_max: u64_at(copy, 92),
            log_slots: u32_at(copy, 100),
        };
        (control.is_possible() && is_shortening == (control.log_slots > 0)).then_some(control)
    }

    /// Whether a store can have these values: a matching checksum does not prove that the engine wrote them.
    fn is_possible(&self) -> bool {
        let Geometry { page_bytes, sector_bytes, vlf_bytes, .. } = self.geometry;
        let layout = Layout { page_bytes, log_sector_bytes: sector_bytes, vlf_bytes, vlfs: 2 };
        let within = u64::from(self.redo.lsn.unit()) * UNIT_BYTES;
        layout.geometry(self.store).is_ok()
            && [self.epoch, self.redo.lsn.vlf(), self.durable.vlf()]
                .iter()
                .all(|count| *count < COUNT_MAX_U32)
            && [self.generation, self.sequence, self.tx_max].iter().all(|count| *count < COUNT_MAX)
            && (VLF_HEADER_BYTES as u64..=vlf_bytes).contains(&within)
    }

    /// The identity and geometry that are published with the counters.
    pub(crate) fn opening(&self) -> Opening {
        Opening {
            store: self.store,
            epoch: self.epoch,
            page_bytes: self.geometry.page_bytes as u64,
            log_sector_bytes: self.geometry.sector_bytes as u64,
            vlf_bytes: self.geometry.vlf_bytes,
        }
    }

    /// Facts about the log in the control file.
    pub(crate) fn known(&self) -> KnownLog {
        KnownLog { durable: self.durable, epoch: self.epoch }
    }

    /// Reads the newest valid copy.
    pub(crate) fn read(disk: &dyn Disk) -> Result<Option<Self>> {
        let length = disk.len(FileId::Control).map_err(Error::during("measure", FileId::Control))?;
        if length < COPIES_BYTES {
            return Ok(None);
        }
        let mut copies = [0; 2 * COPY_BYTES];
        disk.read(FileId::Control, 0, &mut copies).map_err(Error::during("read", FileId::Control))?;
        Ok(copies.chunks(COPY_BYTES).filter_map(Self::decode).max_by_key(|control| control.generation))
    }

    /// The offset of the copy of this generation.
    pub(crate) fn place(&self) -> u64 {
        self.generation % 2 * COPY_BYTES as u64
    }

    /// Writes this as the next generation, over the older copy.
    pub(crate) fn write(&mut self, disk: &dyn Disk) -> Result<()> {
        self.generation += 1;
        disk.write_through(FileId::Control, self.place(), &self.encode())
            .map_err(Error::during("write", FileId::Control))
    }

    /// Writes both copies of a new store.
    pub(crate) fn create(&mut self, disk: &dyn Disk) -> Result<()> {
        self.write(disk)?;
        self.write(disk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crashlab::SimDisk;

    fn control() -> Control {
        Control {
            version: NEWEST_VERSION,
            geometry: Geometry { store: 9, page_bytes: 8192, sector_bytes: 4096, vlf_bytes: 1 << 24 },
            store: 9,
            generation: 5,
            epoch: 2,
            redo: Position { lsn: Lsn::new(4, 8, 1), previous: 77 },
            redo_slot: 3,
            durable: Lsn::new(4, 16, 2),
            clean: true,
            sequence: 11,
            tx_max: 12,
            log_slots: 0,
        }
    }

    #[test]
    fn a_copy_reads_back_and_one_wrong_bit_is_refused() {
        let control = control();
        let mut copy = control.encode();
        assert_eq!(Control::decode(&copy), Some(control));
        copy[57] ^= 4;
        assert_eq!(Control::decode(&copy), None);
    }

    #[test]
    fn a_store_of_version_1_stays_one_and_one_of_a_later_version_is_not_read() {
        let old = Control { version: 1, ..control() };
        let copy = old.encode();
        assert_eq!(&copy[..8], b"HRPAGES1");
        assert_eq!(Control::decode(&copy), Some(old));
        let mut newer = control().encode();
        newer[7] = b'3';
        assert_eq!(Control::decode(&newer), None);
    }

    #[test]
    fn while_the_log_is_shortened_older_programs_refuse_the_store() {
        let shortening = Control { log_slots: 5, ..control() };
        let mut copy = shortening.encode();
        assert!(MAGICS.iter().all(|magic| copy[..8] != magic[..]));
        assert_eq!(Control::decode(&copy), Some(shortening));
        copy[7] = b'2';
        assert_eq!(Control::decode(&copy), None, "the magic and the number of slots belong together");
    }

    #[test]
    fn what_no_store_can_have_come_to_is_refused_though_its_checksum_fits() {
        let known = control();
        let at = |vlf: u64, unit: u64| Position {
            lsn: Lsn::from_packed(vlf << 32 | unit << 12 | 1),
            previous: 77,
        };
        let units = known.geometry.vlf_bytes / UNIT_BYTES;
        for possible in [at(4, 8), at(4, units)].map(|redo| Control { redo, ..known }) {
            assert_eq!(Control::decode(&possible.encode()), Some(possible));
        }
        let small = Geometry { vlf_bytes: 8192, ..known.geometry };
        for impossible in [
            Control { epoch: u32::MAX, ..known },
            Control { generation: u64::MAX, ..known },
            Control { sequence: u64::MAX, ..known },
            Control { tx_max: u64::MAX, ..known },
            Control { redo: at(u64::from(u32::MAX), 8), ..known },
            Control { redo: at(4, 0), ..known },
            Control { redo: at(4, units + 1), ..known },
            Control { geometry: small, redo: at(4, 8), ..known },
        ] {
            assert_eq!(Control::decode(&impossible.encode()), None, "{impossible:?}");
        }
    }

    // A torn write, recovery from the other copy, and another torn write over the first.
    #[test]
    fn a_torn_copy_is_not_made_whole_by_the_sectors_of_the_next_write() {
        let older = control();
        let torn = Control { generation: 6, redo: Position { lsn: Lsn::new(9, 8, 1), previous: 1 }, ..older };
        let next = Control { generation: 6, epoch: 3, ..older };
        let newest = |copy: [u8; COPY_BYTES]| {
            let disk = SimDisk::new();
            disk.write(FileId::Control, 0, &copy).unwrap();
            disk.write(FileId::Control, COPY_BYTES as u64, &older.encode()).unwrap();
            Control::read(&disk).unwrap().unwrap()
        };
        for garbled in 0..COPY_BYTES / SECTOR_BYTES {
            let mut first = torn.encode();
            first[garbled * SECTOR_BYTES + 40..(garbled + 1) * SECTOR_BYTES].fill(0xa5);
            let recovered = newest(first);
            for landed in 0..1 << (COPY_BYTES / SECTOR_BYTES) {
                let mut second = first;
                for sector in (0..COPY_BYTES / SECTOR_BYTES).filter(|sector| landed >> sector & 1 == 1) {
                    let place = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
                    second[place.clone()].copy_from_slice(&next.encode()[place]);
                }
                let found = newest(second);
                assert!(
                    found == recovered || found == next,
                    "{garbled} garbled, {landed:#b} landed: {found:?}"
                );
            }
        }
    }
}
