//! The layers at which I/Os are counted, and the meaning of each layer's counters. The instance of a file names its layer.

use super::losses::Missing;
use super::tables::{CompactCounts, kind};
use filestats::{Cache, Counters, Epoch, Figure, FileIdentity, Latencies, Meaning, Ops, Reason, Sample};
use std::sync::Arc;

/// Where an I/O is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// Requests of a process.
    Requests,
    /// Reads of a process that missed the page cache.
    Misses,
    /// Page faults of a process on mapped files that had to read.
    Faults,
    /// Requests to block devices.
    Block,
}

/// Counters of a layer: reads, writes, syncs.
pub(super) const COLUMNS: usize = 3;

const ALL: &str = "all processes of the source";
const MISSES: &str = " page-cache misses";
const FAULTS: &str = " page faults";
const BLOCK: &str = "block layer";

impl Layer {
    pub(super) fn from_kind(kind: u32) -> Layer {
        match kind {
            kind::MISS => Layer::Misses,
            kind::FAULT => Layer::Faults,
            kind::BLOCK_READ | kind::BLOCK_WRITE | kind::BLOCK_SYNC => Layer::Block,
            _ => Layer::Requests,
        }
    }

    /// Index of the kind's counters in a row's counts.
    pub(super) fn column(kind: u32) -> usize {
        match kind {
            kind::WRITE | kind::BLOCK_WRITE => 1,
            kind::SYNC | kind::BLOCK_SYNC => 2,
            _ => 0,
        }
    }

    pub(super) fn instance(self, tgid: u32, command: &str) -> String {
        match self {
            Layer::Requests => format!("pid {tgid} ({command})"),
            Layer::Misses => format!("pid {tgid} ({command}){MISSES}"),
            Layer::Faults => format!("pid {tgid} ({command}){FAULTS}"),
            Layer::Block => BLOCK.into(),
        }
    }

    /// The instance of sums over processes.
    pub(super) fn instance_of_all(self) -> String {
        match self {
            Layer::Requests => ALL.into(),
            Layer::Misses => format!("{ALL}{MISSES}"),
            Layer::Faults => format!("{ALL}{FAULTS}"),
            Layer::Block => BLOCK.into(),
        }
    }

    /// The layer of a file of this source, by its instance.
    pub fn from_instance(instance: &str) -> Layer {
        match instance {
            BLOCK => Layer::Block,
            _ if instance.ends_with(MISSES) => Layer::Misses,
            _ if instance.ends_with(FAULTS) => Layer::Faults,
            _ => Layer::Requests,
        }
    }

    pub(super) fn misses(self, missing: &Missing) -> bool {
        match self {
            Layer::Block => missing.block,
            _ => missing.requests,
        }
    }

    /// The run of the epoch: for a process, its run within this source's.
    pub(super) fn run(self, run: &str, (tgid, started): (u32, u32)) -> String {
        match self {
            Layer::Block => run.to_owned(),
            _ => format!("{run}:{tgid}:{started}"),
        }
    }

    /// A sample of files at this layer.
    pub(super) fn sample(
        self,
        file: Arc<FileIdentity>,
        epoch: Epoch,
        [read, write, sync]: [CompactCounts; COLUMNS],
        size_bytes: Option<u64>,
        lost: bool,
    ) -> Sample {
        let counters = Counters {
            read: ops(&read, lost),
            write: ops(&write, lost),
            sync: match self {
                Layer::Requests | Layer::Block => Figure::Known(ops(&sync, lost)),
                Layer::Misses | Layer::Faults => Figure::unknown(Reason::NotCounted),
            },
            busy_ns: Figure::unknown(Reason::NotCounted),
        };
        let [read, write, sync] = [read, write, sync].map(CompactCounts::into_latencies);
        Sample {
            file,
            epoch,
            meaning: self.meaning(),
            counters,
            size_bytes: size_bytes.map_or(Figure::unknown(Reason::Gone), Figure::Known),
            latencies: (!lost).then_some(Latencies { read, write, sync }),
        }
    }

    fn meaning(self) -> Meaning {
        match self {
            Layer::Requests => Meaning::REQUESTS,
            Layer::Faults => Meaning { cache: Cache::Missed, ..Meaning::REQUESTS },
            _ => Meaning { cache: Cache::Below, ..Meaning::REQUESTS },
        }
    }
}

fn ops(counts: &CompactCounts, lost: bool) -> Ops {
    let stall_ns = match lost {
        false => Figure::Known(counts.ns),
        true => Figure::unknown(Reason::Lost),
    };
    Ops { count: counts.count, bytes: counts.bytes, stall_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_names_its_layer() {
        for layer in [Layer::Requests, Layer::Misses, Layer::Faults, Layer::Block] {
            assert_eq!(Layer::from_instance(&layer.instance(812, "page faults")), layer);
            assert_eq!(Layer::from_instance(&layer.instance_of_all()), layer);
        }
    }
}
