//! The entries of the programs' tables, in the layout of bpf/counters.h, names.h, pending.h, aio.h, block.h and origin.h.

use filestats::LatencyBuckets;

/// An inode as the kernel identifies it. Inode 0 is the block device `dev` itself.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FileId {
    pub ino: u64,
    pub dev: u32,
    pub generation: u32,
}

/// The key of counters: file, process and kind of I/O.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    pub file: FileId,
    pub tgid: u32,
    pub started: u32,
    pub kind: u32,
    pub zero: u32,
}

/// `enum kind` of counters.h.
pub(super) mod kind {
    pub const WRITE: u32 = 1;
    pub const SYNC: u32 = 2;
    pub const MISS: u32 = 3;
    pub const FAULT: u32 = 4;
    pub const BLOCK_READ: u32 = 5;
    pub const BLOCK_WRITE: u32 = 6;
    pub const BLOCK_SYNC: u32 = 7;
    pub const FAILED: u32 = 8;
}

/// The index in [`LatencyBuckets`] of the first bucket of the kernel's histogram, and the number of its buckets.
const HISTOGRAM_FIRST: usize = 20;
const HISTOGRAM_LEN: usize = 112;

/// Counters of one key on one CPU. The number of I/Os is the sum of the histogram.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuCounts {
    pub bytes: u64,
    pub ns: u64,
    pub histogram: [u64; HISTOGRAM_LEN],
}

/// Their sum over CPUs, or files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    pub count: u64,
    pub bytes: u64,
    pub ns: u64,
    pub histogram: [u64; HISTOGRAM_LEN],
}

/// [`Counts`] of a key or a row, in the memory of the buckets that are filled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CompactCounts {
    pub count: u64,
    pub bytes: u64,
    pub ns: u64,
    latencies: LatencyBuckets,
}

/// A process when it was first seen.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Started {
    pub start_boottime: u64,
    pub comm: [u8; 16],
}

/// State on one CPU of a program that has a second program for events that interrupt it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Nested {
    /// 1 while the first program runs.
    pub first: u64,
    /// Number of events that the second program counted.
    pub done: u64,
}

/// I/O of a device that the programs saw on one CPU, or on all: reads, writes, flushes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// 0: the entry is free.
    pub dev: u64,
    pub count: [u64; 3],
    pub bytes: [u64; 3],
}

/// An io_uring request in flight.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pending {
    pub start_ns: u64,
    pub tgid: u32,
    pub started: u32,
}

/// The key of a libaio I/O: the address of the program's iocb, and the kernel's address of its context.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct AioKey {
    pub iocb: u64,
    pub context: u64,
}

/// A libaio I/O in flight.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Aio {
    pub start_ns: u64,
    pub done_ns: u64,
    pub key: Key,
    pub done_at_submit: u32,
    pub counted: u32,
}

/// A path from a bio to its origin: `struct link` of origin.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub end: u64,
    pub holder: u32,
    pub first: u32,
    pub second: u32,
    pub added: u32,
    pub leads: u32,
    pub zero: u32,
}

/// All of them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    pub link: [Link; 16],
    pub count: u64,
    pub mapper_requests: u64,
}

/// A chosen file.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct WantedFile {
    pub ino: u64,
    pub dev: u64,
}

/// The longest name, and the space beyond it that the verifier requires.
const NAME_BYTES: usize = 1024 + 256;

/// A file's name when it was first seen: components from the last one up, each ended by '/'.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Name {
    pub mode: u32,
    pub links: u32,
    pub magic: u32,
    pub mount_end: u16,
    pub fs_end: u16,
    pub end: u16,
    pub truncated: u8,
    pub mounted: u8,
    pub bytes: [u8; NAME_BYTES],
}

/// Makes repr(C) structs of integers the keys and values of the programs' tables. Their sizes in bytes, the sums of those of
/// their fields, are checked: no struct has padding.
macro_rules! plain_bytes {
    ($($name:ty = $bytes:expr),* $(,)?) => {$(
        const _: () = assert!(size_of::<$name>() == $bytes);
        // SAFETY: repr(C), of integers, without padding by the assertion: any bytes are a value.
        unsafe impl aya::Pod for $name {}
    )*};
}
pub(super) use plain_bytes;

plain_bytes!(
    FileId = 16,
    Key = 32,
    CpuCounts = 16 + 8 * HISTOGRAM_LEN,
    Started = 24,
    Nested = 16,
    Seen = 56,
    Pending = 16,
    AioKey = 16,
    Aio = 56,
    WantedFile = 16,
    Link = 32,
    Links = 16 * 32 + 16,
    Name = 20 + NAME_BYTES,
);

impl Links {
    pub const NONE: Links = Links {
        link: [Link { end: 0, holder: 0, first: 0, second: 0, added: 0, leads: 0, zero: 0 }; 16],
        count: 0,
        mapper_requests: 0,
    };

    /// Adds one; more than fit are left out.
    pub fn add(&mut self, link: Link) {
        if let Some(free) = usize::try_from(self.count).ok().and_then(|count| self.link.get_mut(count)) {
            *free = link;
            self.count += 1;
        }
    }
}

impl CpuCounts {
    pub const ZERO: CpuCounts = CpuCounts { bytes: 0, ns: 0, histogram: [0; HISTOGRAM_LEN] };
}

impl Counts {
    pub const ZERO: Counts = Counts { count: 0, bytes: 0, ns: 0, histogram: [0; HISTOGRAM_LEN] };

    /// The sum over CPUs.
    pub fn sum<'a>(parts: impl IntoIterator<Item = &'a CpuCounts>) -> Counts {
        let mut sum = Counts::ZERO;
        for part in parts {
            sum.bytes = sum.bytes.wrapping_add(part.bytes);
            sum.ns = sum.ns.wrapping_add(part.ns);
            for (mine, theirs) in sum.histogram.iter_mut().zip(&part.histogram) {
                *mine = mine.wrapping_add(*theirs);
            }
        }
        sum.count = sum.histogram.iter().fold(0, |count, bucket| count.wrapping_add(*bucket));
        sum
    }
}

impl CompactCounts {
    /// Becomes these counts.
    pub fn set(&mut self, counts: &Counts) {
        (self.count, self.bytes, self.ns) = (counts.count, counts.bytes, counts.ns);
        self.latencies.set_range(HISTOGRAM_FIRST, &counts.histogram);
    }

    /// All of them.
    pub fn expand(&self) -> Counts {
        let mut histogram = [0; HISTOGRAM_LEN];
        for (index, count) in self.latencies.filled() {
            histogram[index - HISTOGRAM_FIRST] = count;
        }
        Counts { count: self.count, bytes: self.bytes, ns: self.ns, histogram }
    }

    /// Adds the counts of another file or key.
    pub fn add(&mut self, other: &CompactCounts) {
        self.count = self.count.wrapping_add(other.count);
        self.bytes = self.bytes.wrapping_add(other.bytes);
        self.ns = self.ns.wrapping_add(other.ns);
        self.latencies.merge(&other.latencies);
    }

    /// Adds them to a sum.
    pub fn add_to(&self, sum: &mut Counts) {
        self.change(sum, u64::wrapping_add);
    }

    /// Subtracts them from a sum.
    pub fn subtract_from(&self, sum: &mut Counts) {
        self.change(sum, u64::wrapping_sub);
    }

    fn change(&self, sum: &mut Counts, change: fn(u64, u64) -> u64) {
        sum.count = change(sum.count, self.count);
        sum.bytes = change(sum.bytes, self.bytes);
        sum.ns = change(sum.ns, self.ns);
        for (index, count) in self.latencies.filled() {
            let bucket = &mut sum.histogram[index - HISTOGRAM_FIRST];
            *bucket = change(*bucket, count);
        }
    }

    /// The difference to earlier counts.
    pub fn since(&self, earlier: &CompactCounts) -> CompactCounts {
        let Some(latencies) = self.latencies.since(&earlier.latencies) else {
            let mut counts = self.expand();
            earlier.subtract_from(&mut counts);
            return CompactCounts::from(&counts);
        };
        CompactCounts {
            count: self.count.wrapping_sub(earlier.count),
            bytes: self.bytes.wrapping_sub(earlier.bytes),
            ns: self.ns.wrapping_sub(earlier.ns),
            latencies,
        }
    }

    pub fn into_latencies(self) -> LatencyBuckets {
        self.latencies
    }

    /// Changes whenever anything is added.
    pub fn fingerprint(&self) -> (u64, u64) {
        (self.count, self.bytes.wrapping_add(self.ns))
    }
}

impl From<&Counts> for CompactCounts {
    fn from(counts: &Counts) -> CompactCounts {
        let mut compact = CompactCounts::default();
        compact.set(counts);
        compact
    }
}

impl FileId {
    /// I/O of a device whose file or purpose is unknown.
    pub const fn unattributed(dev: u32) -> FileId {
        FileId { ino: 0, dev, generation: 2 }
    }

    /// The device number as major and minor.
    pub fn major_minor(&self) -> (u32, u32) {
        // The kernel's own dev_t has 20 bits of minor.
        (self.dev >> 20, self.dev & 0xf_ffff)
    }

    /// The block device itself, not a file on one.
    pub fn is_device(&self) -> bool {
        self.ino == 0
    }

    /// For a device: 0 I/O of programs that open it, 1 its file system's journal and metadata, 2 unknown; an enum of
    /// bpf/who.h.
    pub fn purpose(&self) -> u32 {
        if self.is_device() { self.generation } else { 0 }
    }
}

/// More than the largest number of a system call.
pub(super) const SYSCALLS: usize = 512;

/// The meaning of each system call for the programs; 0 for those that a table lacks.
pub(super) fn by_number(table: &[(libc::c_long, u8)]) -> [u8; SYSCALLS] {
    let mut meanings = [0; SYSCALLS];
    for (number, meaning) in table {
        if let Some(slot) = usize::try_from(*number).ok().and_then(|number| meanings.get_mut(number)) {
            *slot = *meaning;
        }
    }
    meanings
}

/// The name of a program or thread, cut short by the kernel at 15 bytes.
pub(super) fn command_text(comm: &[u8; 16]) -> String {
    let end = comm.iter().position(|byte| *byte == 0).unwrap_or(comm.len());
    String::from_utf8_lossy(&comm[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_histogram_is_a_range_of_ours() {
        let first = LatencyBuckets::lower_ns(HISTOGRAM_FIRST);
        let end = LatencyBuckets::lower_ns(HISTOGRAM_FIRST + HISTOGRAM_LEN);
        assert_eq!((first, end), (64, 1 << 34));
        let mut counts = Counts::ZERO;
        // 4 to 5 us: exponent 12, first quarter.
        counts.histogram[4 * (12 - 6)] = 3;
        counts.count = 3;
        let latencies = CompactCounts::from(&counts).into_latencies();
        assert_eq!((latencies.count(), latencies.percentile_ns(50.0)), (3, Some(4608.0)));
    }

    #[test]
    fn compact_counts_are_the_counts() {
        let mut some = Counts { count: 5, bytes: 4096, ns: 7, ..Counts::ZERO };
        (some.histogram[3], some.histogram[HISTOGRAM_LEN - 1]) = (2, 3);
        let compact = CompactCounts::from(&some);
        assert_eq!(compact.expand(), some);
        let (mut sum, mut twice) = (some, compact.clone());
        compact.add_to(&mut sum);
        twice.add(&compact);
        assert_eq!(twice.expand(), sum);
        compact.subtract_from(&mut sum);
        assert_eq!((twice.since(&compact), sum), (compact.clone(), some));
        // A decrease wraps around, as the kernel's counters do.
        assert_eq!(CompactCounts::default().since(&compact).expand().histogram[3], 2_u64.wrapping_neg());
        assert_eq!(compact.clone().into_latencies().count(), 5);
        twice.set(&Counts::ZERO);
        assert_eq!(twice, CompactCounts::default());
    }

    #[test]
    fn a_kernel_device_number_is_major_and_minor() {
        assert_eq!(FileId { ino: 1, dev: 254 << 20 | 3, generation: 0 }.major_minor(), (254, 3));
    }
}
