//! What the programs keep in the kernel, in the layout of bpf/counters.h, names.h and thread.h.

use filestats::LatencyBuckets;

/// An inode as the kernel knows it. Inode 0 is the block device `dev` itself.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FileId {
    pub ino: u64,
    pub dev: u32,
    pub generation: u32,
}

/// Whose I/O of which file, and of which kind.
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
}

/// The first counter of the kernel's histogram in [`LatencyBuckets`], and how many there are.
const HISTOGRAM_FIRST: usize = 20;
const HISTOGRAM_LEN: usize = 112;

/// Counters of one key on one CPU. How many I/Os they are, the histogram tells.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct OfCpu {
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

/// A process when it was first seen.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Started {
    pub start_boottime: u64,
    pub comm: [u8; 16],
}

/// Of a program that has another for when it is interrupted, on one CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Nested {
    pub first: u64,
    /// Events that the other saw to.
    pub done: u64,
}

/// What the programs saw of a device on one CPU, or on all: reads, writes, flushes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// 0: of none.
    pub dev: u64,
    pub count: [u64; 3],
    pub bytes: [u64; 3],
}

/// A ring's I/O under way.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pending {
    pub start_ns: u64,
    pub tgid: u32,
    pub started: u32,
}

/// One of libaio's: the program's own address of it, and the kernel's of the context that it was submitted to.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct AioKey {
    pub iocb: u64,
    pub context: u64,
}

/// What is kept of it until it is counted.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Aio {
    pub start_ns: u64,
    pub done_ns: u64,
    pub key: Key,
    pub done_at_submit: u32,
    pub counted: u32,
}

/// A chosen file.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct WantedFile {
    pub ino: u64,
    pub dev: u64,
}

/// Of a name and what the verifier needs beyond it.
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

// SAFETY: all of them are repr(C), of integers without padding (checked below), valid for any bytes.
unsafe impl aya::Pod for FileId {}
// SAFETY: as above.
unsafe impl aya::Pod for Key {}
// SAFETY: as above.
unsafe impl aya::Pod for OfCpu {}
// SAFETY: as above.
unsafe impl aya::Pod for Started {}
// SAFETY: as above.
unsafe impl aya::Pod for WantedFile {}
// SAFETY: as above.
unsafe impl aya::Pod for Name {}
// SAFETY: as above.
unsafe impl aya::Pod for Nested {}

// SAFETY: as above.
unsafe impl aya::Pod for Seen {}
// SAFETY: as above.
unsafe impl aya::Pod for Pending {}
// SAFETY: as above.
unsafe impl aya::Pod for AioKey {}
// SAFETY: as above.
unsafe impl aya::Pod for Aio {}

const _: () = assert!(size_of::<Key>() == 32 && size_of::<FileId>() == 16);
const _: () = assert!(size_of::<OfCpu>() == 16 + 8 * HISTOGRAM_LEN && size_of::<Started>() == 24);
const _: () = assert!(size_of::<Seen>() == 56 && size_of::<Pending>() == 16 && size_of::<Aio>() == 56);
const _: () = assert!(size_of::<Name>() == 20 + NAME_BYTES && size_of::<WantedFile>() == 16);

impl OfCpu {
    pub const ZERO: OfCpu = OfCpu { bytes: 0, ns: 0, histogram: [0; HISTOGRAM_LEN] };
}

impl Counts {
    pub const ZERO: Counts = Counts { count: 0, bytes: 0, ns: 0, histogram: [0; HISTOGRAM_LEN] };

    /// Adds another CPU's, or another file's.
    pub fn add(&mut self, other: &Counts) {
        self.count = self.count.wrapping_add(other.count);
        self.bytes = self.bytes.wrapping_add(other.bytes);
        self.ns = self.ns.wrapping_add(other.ns);
        for (mine, theirs) in self.histogram.iter_mut().zip(&other.histogram) {
            *mine = mine.wrapping_add(*theirs);
        }
    }

    /// What was added since they were so.
    pub fn since(&self, earlier: &Counts) -> Counts {
        let mut histogram = self.histogram;
        for (mine, theirs) in histogram.iter_mut().zip(&earlier.histogram) {
            *mine = mine.wrapping_sub(*theirs);
        }
        Counts {
            count: self.count.wrapping_sub(earlier.count),
            bytes: self.bytes.wrapping_sub(earlier.bytes),
            ns: self.ns.wrapping_sub(earlier.ns),
            histogram,
        }
    }

    /// Differs where anything was added.
    pub fn fingerprint(&self) -> (u64, u64) {
        (self.count, self.bytes.wrapping_add(self.ns))
    }

    /// Of all CPUs.
    pub fn sum<'a>(parts: impl IntoIterator<Item = &'a OfCpu>) -> Counts {
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

    pub fn latencies(&self) -> LatencyBuckets {
        if self.count == 0 {
            return LatencyBuckets::new();
        }
        let mut counts = [0; LatencyBuckets::LEN];
        counts[HISTOGRAM_FIRST..HISTOGRAM_FIRST + HISTOGRAM_LEN].copy_from_slice(&self.histogram);
        LatencyBuckets::from_counts(counts)
    }
}

impl std::fmt::Debug for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Name").field("within", &self.within()).finish_non_exhaustive()
    }
}

impl FileId {
    /// What a device was asked that is not told for what.
    pub const fn of_nobody_known(dev: u32) -> FileId {
        FileId { ino: 0, dev, generation: 2 }
    }

    /// The device, as people write it.
    pub fn major_minor(&self) -> (u32, u32) {
        // The kernel's own dev_t has 20 bits of minor.
        (self.dev >> 20, self.dev & 0xf_ffff)
    }

    /// The block device itself, not a file on one.
    pub fn is_device(&self) -> bool {
        self.ino == 0
    }

    /// Of a device: 0 what programs ask of it themselves, 1 of its file system's journal and metadata, 2 what is not
    /// told for what; an enum of bpf/who.h.
    pub fn purpose(&self) -> u32 {
        if self.is_device() { self.generation } else { 0 }
    }
}

impl Started {
    /// The name of the program, cut short by the kernel at 15 bytes.
    pub fn command(&self) -> String {
        let end = self.comm.iter().position(|byte| *byte == 0).unwrap_or(self.comm.len());
        String::from_utf8_lossy(&self.comm[..end]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_histogram_is_a_stretch_of_ours() {
        let first = LatencyBuckets::lower_ns(HISTOGRAM_FIRST);
        let end = LatencyBuckets::lower_ns(HISTOGRAM_FIRST + HISTOGRAM_LEN);
        assert_eq!((first, end), (64, 1 << 34));
        let mut counts = Counts::ZERO;
        // 4 to 5 us: exponent 12, first quarter.
        counts.histogram[4 * (12 - 6)] = 3;
        counts.count = 3;
        let latencies = counts.latencies();
        assert_eq!((latencies.count(), latencies.percentile_ns(50.0)), (3, Some(4608.0)));
    }

    #[test]
    fn a_kernel_device_number_is_told_in_two() {
        assert_eq!(FileId { ino: 1, dev: 254 << 20 | 3, generation: 0 }.major_minor(), (254, 3));
    }
}
