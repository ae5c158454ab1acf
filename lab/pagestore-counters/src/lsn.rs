//! Log sequence numbers and page numbers.

use std::fmt;
use std::str::FromStr;

/// Where a log record is: virtual log file, block (offset in units of 512 bytes), record (from 1).
/// Grows with every record; printed as `00000031:00000da0:0001`, all three in hexadecimal.
///
/// Packed in 64 bits: 32 of file, 20 of block (so a virtual log file has at most 512 MiB), 12 of record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(u64);

impl Lsn {
    /// Before every record.
    pub const ZERO: Self = Self(0);
    /// Blocks are placed at multiples of this many bytes in a virtual log file.
    pub const UNIT_BYTES: u64 = 512;
    /// The largest number of records in a block.
    pub const MAX_RECORD: u16 = (1 << 12) - 1;
    /// The largest virtual log file, in bytes.
    pub const MAX_VLF_BYTES: u64 = (1 << 20) * Self::UNIT_BYTES;

    /// The number of record `record` of the block at `unit` of virtual log file `vlf`.
    #[must_use]
    pub fn new(vlf: u32, unit: u32, record: u16) -> Self {
        debug_assert!(unit < 1 << 20 && record <= Self::MAX_RECORD);
        Self(u64::from(vlf) << 32 | u64::from(unit) << 12 | u64::from(record))
    }

    /// The packed form, as it is kept on disk.
    #[must_use]
    pub fn packed(self) -> u64 {
        self.0
    }

    /// From the packed form.
    #[must_use]
    pub fn from_packed(packed: u64) -> Self {
        Self(packed)
    }

    /// Bytes of log from here to a later place, in virtual log files of `vlf_bytes`.
    #[must_use]
    pub fn bytes_to(self, later: Self, vlf_bytes: u64) -> u64 {
        let begin = |lsn: Self| u64::from(lsn.vlf()).saturating_mul(vlf_bytes);
        let at = |lsn: Self| begin(lsn).saturating_add(u64::from(lsn.unit()) * Self::UNIT_BYTES);
        at(later).saturating_sub(at(self))
    }

    /// The sequence number of the virtual log file.
    #[must_use]
    pub fn vlf(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The block's offset in its virtual log file, in units of 512 bytes.
    #[must_use]
    pub fn unit(self) -> u32 {
        (self.0 >> 12) as u32 & 0xf_ffff
    }

    /// The record's place in its block, from 1.
    #[must_use]
    pub fn record(self) -> u16 {
        (self.0 & 0xfff) as u16
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}:{:08x}:{:04x}", self.vlf(), self.unit(), self.record())
    }
}

impl fmt::Debug for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Lsn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a log sequence number; write it as 00000031:00000da0:0001");
        let mut parts = text.split(':').map(|part| u32::from_str_radix(part, 16));
        let (Some(Ok(vlf)), Some(Ok(unit)), Some(Ok(record)), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(wrong());
        };
        if unit >= 1 << 20 || record > u32::from(Self::MAX_RECORD) {
            return Err(wrong());
        }
        Ok(Self::new(vlf, unit, record as u16))
    }
}

/// The number of a page: its offset in the data file divided by the page size. Page 0 is the store's own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PageNo(pub u64);

impl fmt::Display for PageNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_sequence_number_is_printed_as_three_hexadecimal_fields_and_parsed_again() {
        let lsn = Lsn::new(0x31, 0xda0, 1);
        assert_eq!(lsn.to_string(), "00000031:00000da0:0001");
        assert_eq!("00000031:00000da0:0001".parse(), Ok(lsn));
        assert_eq!((lsn.vlf(), lsn.unit(), lsn.record()), (0x31, 0xda0, 1));
        assert!("31:da0".parse::<Lsn>().is_err());
        assert!("31:fffffff:1".parse::<Lsn>().is_err());
    }

    #[test]
    fn order_is_by_file_then_block_then_record() {
        let mut sorted = [Lsn::new(2, 0, 1), Lsn::new(1, 9, 1), Lsn::new(1, 8, 4095), Lsn::new(1, 9, 2)];
        sorted.sort();
        assert_eq!(sorted, [Lsn::new(1, 8, 4095), Lsn::new(1, 9, 1), Lsn::new(1, 9, 2), Lsn::new(2, 0, 1)]);
    }
}
