//! Up to 64 changes of one file in one row of `file_blocks`, in a tenth of the space of rows of `file_changes`.
//!
//! ```text
//! columns of the row   first_capture_id, last_capture_id, changes     which, and how many: 1 to 64
//!                      reads ... size_unknown                         as in file_changes: the least value of each figure
//!                                                                     in the block, or why it is unknown in all of it
//!                      read_unit, write_unit                          bytes an operation, where all are of one size; or 0
//!                      widths                                         12 characters, '0' + bits of each figure
//!                      packed                                         change after change, in each figure after figure
//!                      latencies                                      histograms of the first change, then what each
//!                                                                     further one adds, as packed.rs has them; or NULL
//! figures              capture, reads, bytes, stall, writes, bytes, stall, syncs, bytes, stall, busy, size
//! packed, a figure     value - least, in as many bits as the largest of the block needs, highest bit first
//!   bytes              value - least - unit x (operations - least operations): no bits at all where all are of one size
//! ```
//!
//! A block holds only what SQL can compute: no number above 2^63 - 1, no difference above 57 bits (64 with the up to
//! 7 bits before it in its first byte), one reason for each unknown figure. A change that does not fit stays in
//! `file_changes`. The views decode blocks in SQL (`schema.sql`).

use crate::packed::{push_latencies, take_latencies};
use filestats::{Counters, Figure, Latencies, Ops};

/// The most changes in a block.
pub(crate) const CHANGES_MAX: usize = 64;
/// Figures of a change without the number of its capture.
const FIGURES: usize = 11;
/// The widest difference in bits.
const WIDTH_MAX: u32 = 57;
/// The positions of bytes and of their operations among the figures.
const BYTES_AND_COUNT: [(usize, usize); 2] = [(1, 0), (4, 3)];

/// The counters of a file from a capture on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub capture: i64,
    pub counters: Counters,
    pub size_bytes: Figure<u64>,
    pub latencies: Option<Latencies>,
}

/// A row of `file_blocks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub first_capture: i64,
    pub last_capture: i64,
    pub changes: usize,
    pub least: (Counters, Figure<u64>),
    pub units: [u64; 2],
    pub widths: [u32; FIGURES + 1],
    pub packed: Vec<u8>,
    pub latencies: Option<Vec<u8>>,
}

/// A block that Headroom cannot have written.
#[derive(Debug, thiserror::Error)]
#[error("no block of changes: {0}; it was changed by another program")]
pub(crate) struct Broken(&'static str);

impl Broken {
    pub const WIDTHS: Broken = Broken("its widths");
}

impl Block {
    /// Packs as many of the changes as fit into one block, from the first on; `None` where the first does not fit.
    pub fn pack(changes: &[Change]) -> Option<Block> {
        let changes = &changes[..fitting(changes)];
        let (first, last) = (changes.first()?, changes.last()?);
        let all: Vec<[Figure<u64>; FIGURES]> = changes.iter().map(figures).collect();
        let mut least = all[0];
        for figures in &all {
            least = std::array::from_fn(|at| least[at].zip(figures[at], u64::min));
        }
        let units = BYTES_AND_COUNT.map(|(bytes, count)| unit(&all, bytes, count).unwrap_or(0));
        let values: Vec<[u64; FIGURES + 1]> = changes
            .iter()
            .zip(&all)
            .map(|(change, figures)| {
                let over = |at: usize| figures[at].zip(least[at], u64::wrapping_sub).known().unwrap_or(0);
                let mut values = [0; FIGURES + 1];
                values[0] = change.capture.abs_diff(first.capture);
                (0..FIGURES).for_each(|at| values[at + 1] = over(at));
                for ((bytes, count), unit) in BYTES_AND_COUNT.into_iter().zip(units) {
                    values[bytes + 1] = over(bytes).wrapping_sub(unit.wrapping_mul(over(count)));
                }
                values
            })
            .collect();
        let widths: [u32; FIGURES + 1] = std::array::from_fn(|at| {
            values.iter().map(|values| u64::BITS - values[at].leading_zeros()).max().unwrap_or(0)
        });
        assert!(
            widths.iter().all(|width| *width <= WIDTH_MAX),
            "a change that does not fit was not left out: {widths:?}"
        );
        let mut packed = Vec::with_capacity(bytes_of(changes.len(), &widths));
        let mut next = 0;
        for values in &values {
            for (value, width) in values.iter().zip(widths) {
                push_bits(&mut packed, &mut next, *value, width);
            }
        }
        let mut latencies = first.latencies.as_ref().map(|_| Vec::new());
        if let Some(bytes) = &mut latencies {
            let mut then = Latencies::default();
            for now in changes.iter().filter_map(|change| change.latencies.as_ref()) {
                push_latencies(bytes, &now.since(&then)?);
                then.clone_from(now);
            }
        }
        Some(Block {
            first_capture: first.capture,
            last_capture: last.capture,
            changes: changes.len(),
            least: (counters(&least), least[FIGURES - 1]),
            units,
            widths,
            packed,
            latencies,
        })
    }

    /// Refuses a block that cannot be read. Called once, before any other method.
    pub fn checked(self) -> Result<Block, Broken> {
        if self.changes == 0 || self.changes > CHANGES_MAX {
            return Err(Broken("its number of changes"));
        }
        if self.widths.iter().any(|width| *width > WIDTH_MAX) {
            return Err(Broken::WIDTHS);
        }
        if self.packed.len() != bytes_of(self.changes, &self.widths) {
            return Err(Broken("its length"));
        }
        let captures: Vec<i64> = (0..self.changes).map(|n| self.capture(n)).collect();
        let ends = [self.first_capture, self.last_capture].map(Some);
        if [captures.first().copied(), captures.last().copied()] != ends
            || !captures.is_sorted_by(|earlier, later| earlier < later)
        {
            return Err(Broken("its captures"));
        }
        Ok(self)
    }

    /// The capture of a change.
    pub fn capture(&self, n: usize) -> i64 {
        self.first_capture.saturating_add_unsigned(self.value(n, 0))
    }

    /// The newest change that is not after a capture.
    pub fn newest_until(&self, capture: i64) -> Option<usize> {
        (0..self.changes).rev().find(|n| self.capture(*n) <= capture)
    }

    /// A change, without its histograms.
    pub fn change(&self, n: usize) -> Result<Change, Broken> {
        let mut least = figures(&Change {
            capture: 0,
            counters: self.least.0,
            size_bytes: self.least.1,
            latencies: None,
        });
        let mut over: [u64; FIGURES] = std::array::from_fn(|at| self.value(n, at + 1));
        for ((bytes, count), unit) in BYTES_AND_COUNT.into_iter().zip(self.units) {
            let product = unit.checked_mul(over[count]).and_then(|product| product.checked_add(over[bytes]));
            over[bytes] = product.ok_or(Broken("its units"))?;
        }
        for (figure, over) in least.iter_mut().zip(over) {
            if let Figure::Known(value) = figure {
                let sum = value.checked_add(over).filter(|sum| i64::try_from(*sum).is_ok());
                *value = sum.ok_or(Broken("its figures"))?;
            }
        }
        let (counters, size_bytes) = (counters(&least), least[FIGURES - 1]);
        Ok(Change { capture: self.capture(n), counters, size_bytes, latencies: None })
    }

    /// Histograms of the changes up to one, in their order; `None` where none are kept.
    pub fn latencies(&self, until: usize) -> Result<Option<Vec<Latencies>>, Broken> {
        let Some(bytes) = &self.latencies else { return Ok(None) };
        let (mut bytes, mut sum) = (bytes.as_slice(), Latencies::default());
        let mut next = || {
            sum.merge(&take_latencies(&mut bytes)?);
            Some(sum.clone())
        };
        let all: Option<Vec<Latencies>> = (0..=until.min(self.changes - 1)).map(|_| next()).collect();
        all.map(Some).ok_or(Broken("its histograms"))
    }

    fn value(&self, n: usize, figure: usize) -> u64 {
        let stride: u32 = self.widths.iter().sum();
        let before: u32 = self.widths[..figure].iter().sum();
        bits(&self.packed, n * stride as usize + before as usize, self.widths[figure])
    }
}

/// Number of changes, from the first on, that fit into one block.
fn fitting(changes: &[Change]) -> usize {
    let Some(first) = changes.first() else { return 0 };
    let kept = figures(first);
    let (mut low, mut high) = (kept, kept);
    let mut before = &Latencies::default();
    for (at, change) in changes.iter().take(CHANGES_MAX).enumerate() {
        let figures = figures(change);
        low = std::array::from_fn(|at| low[at].zip(figures[at], u64::min));
        high = std::array::from_fn(|at| high[at].zip(figures[at], u64::max));
        let spans = high.iter().zip(&low).filter_map(|(high, low)| Some(high.known()? - low.known()?));
        let widest = spans.fold(change.capture.abs_diff(first.capture), u64::max);
        let same_reasons = figures.iter().zip(&kept).all(|(now, then)| now.reason() == then.reason());
        let fits_sql = high.iter().filter_map(|high| high.known()).all(|high| i64::try_from(high).is_ok());
        let grew = match &change.latencies {
            Some(now) => now.since(before).is_some(),
            None => true,
        };
        let kept_too = change.latencies.is_some() == first.latencies.is_some();
        if widest >> WIDTH_MAX != 0 || !same_reasons || !fits_sql || !grew || !kept_too {
            return at;
        }
        before = change.latencies.as_ref().unwrap_or(before);
    }
    changes.len().min(CHANGES_MAX)
}

/// Bytes of each operation, where all operations between the changes have one size.
fn unit(all: &[[Figure<u64>; FIGURES]], bytes: usize, count: usize) -> Option<u64> {
    let known = |at: usize| move |figures: &[Figure<u64>; FIGURES]| figures[at].known();
    let steps = || {
        all.windows(2).map(|pair| {
            let grown = |at: usize| known(at)(&pair[1])?.checked_sub(known(at)(&pair[0])?);
            Some((grown(bytes)?, grown(count)?))
        })
    };
    let (moved, operations) = steps().flatten().find(|(_, operations)| *operations > 0)?;
    let unit = (moved % operations == 0).then_some(moved / operations)?;
    let of_one_size = |step: Option<(u64, u64)>| {
        step.is_some_and(|(moved, operations)| operations.checked_mul(unit) == Some(moved))
    };
    // SQLite computes with signed numbers. The products fit: they are differences of numbers that fit.
    (i64::try_from(unit).is_ok() && steps().all(of_one_size)).then_some(unit)
}

fn figures(change: &Change) -> [Figure<u64>; FIGURES] {
    let Counters { read, write, sync, busy_ns } = &change.counters;
    let syncs = match sync {
        Figure::Known(sync) => [Figure::Known(sync.count), Figure::Known(sync.bytes), sync.stall_ns],
        Figure::Unknown { unknown } => [Figure::unknown(*unknown); 3],
    };
    [
        Figure::Known(read.count),
        Figure::Known(read.bytes),
        read.stall_ns,
        Figure::Known(write.count),
        Figure::Known(write.bytes),
        write.stall_ns,
        syncs[0],
        syncs[1],
        syncs[2],
        *busy_ns,
        change.size_bytes,
    ]
}

fn counters(figures: &[Figure<u64>; FIGURES]) -> Counters {
    let known = |at: usize| figures[at].known().unwrap_or(0);
    let ops = |at: usize| Ops { count: known(at), bytes: known(at + 1), stall_ns: figures[at + 2] };
    Counters { read: ops(0), write: ops(3), sync: figures[6].map(|_| ops(6)), busy_ns: figures[9] }
}

fn bytes_of(changes: usize, widths: &[u32]) -> usize {
    (changes * widths.iter().sum::<u32>() as usize).div_ceil(8)
}

/// Appends the lowest `width` bits of a value after the first `next` bits.
fn push_bits(bytes: &mut Vec<u8>, next: &mut usize, value: u64, width: u32) {
    for at in (0..width).rev() {
        if next.is_multiple_of(8) {
            bytes.push(0);
        }
        if let Some(last) = bytes.last_mut() {
            *last |= ((value >> at & 1) as u8) << (7 - *next % 8);
        }
        *next += 1;
    }
}

/// `width` bits, at most 57, from bit `at` on; bits after the end are 0.
fn bits(bytes: &[u8], at: usize, width: u32) -> u64 {
    if width == 0 {
        return 0;
    }
    let mut window = [0; 8];
    let there = bytes.get(at / 8..).unwrap_or_default();
    let length = there.len().min(8);
    window[..length].copy_from_slice(&there[..length]);
    (u64::from_be_bytes(window) << (at % 8)) >> (u64::BITS - width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use filestats::Reason;
    use proptest::prelude::*;

    /// Reads of one size and writes of many, as a busy file has them.
    fn busy(changes: u64) -> Vec<Change> {
        let change = |at: u64| {
            let mut latencies = Latencies::default();
            (0..=at).for_each(|n| latencies.read.record(100_000 + n % 7 * 30_000));
            let read = Ops::timed(
                7_000_000 + at * 48,
                (7_000_000 + at * 48) * 8192,
                9_000_000_000 + at * 13_441_823,
            );
            let write = Ops::timed(at * 16, at * 16 * 8192 + at % 3, at * 4_480_607);
            let sync = Figure::unknown(Reason::NotCounted);
            let busy_ns = Figure::unknown(Reason::NotCounted);
            let counters = Counters { read, write, sync, busy_ns };
            let capture = 1_000_000 + at as i64 * 20;
            Change { capture, counters, size_bytes: Figure::Known(1 << 30), latencies: Some(latencies) }
        };
        (0..changes).map(change).collect()
    }

    fn unpacked(block: Block) -> Vec<Change> {
        let block = block.checked().unwrap();
        let latencies = block.latencies(block.changes).unwrap();
        let with = |n: usize| {
            let latencies = latencies.as_ref().map(|all| all[n].clone());
            Change { latencies, ..block.change(n).unwrap() }
        };
        (0..block.changes).map(with).collect()
    }

    #[test]
    fn a_change_of_a_busy_file_takes_less_than_18_bytes() {
        let block = Block::pack(&busy(64)).unwrap();
        assert_eq!((block.units, block.changes), ([8192, 0], 64));
        assert!(block.packed.len() < 64 * 18, "{} bytes: {:?}", block.packed.len(), block.widths);
        assert!(block.latencies.as_ref().unwrap().len() < 64 * 5 + 20);
        assert_eq!(unpacked(block), busy(64));
    }

    #[test]
    fn a_change_that_does_not_fit_begins_another_block_or_stays_a_row() {
        let mut all = busy(9);
        all[5].counters.read.stall_ns = Figure::unknown(Reason::TimingOff);
        assert_eq!(Block::pack(&all).unwrap().changes, 5, "another reason");
        assert_eq!(Block::pack(&all[5..]).unwrap().changes, 1);
        let mut all = busy(9);
        all[4].latencies = Some(Latencies::default());
        assert_eq!(Block::pack(&all).unwrap().changes, 4, "histograms that fell");
        let mut all = busy(9);
        all[3].counters.write.bytes += 1 << 58;
        assert_eq!(Block::pack(&all).unwrap().changes, 3, "a wide difference");
        all[3].counters.write.bytes = u64::MAX;
        assert_eq!(Block::pack(&all[3..]), None, "no number of SQL");
        assert_eq!(Block::pack(&busy(200)).unwrap().changes, CHANGES_MAX);
        assert_eq!(Block::pack(&[]), None);
    }

    #[test]
    fn a_block_whose_captures_are_not_in_order_is_refused() {
        let block = |packed: [u8; 3], last_capture| {
            let Change { counters, size_bytes, .. } = busy(1).remove(0);
            let mut widths = [0; FIGURES + 1];
            widths[0] = 8;
            Block {
                first_capture: 7,
                last_capture,
                changes: 3,
                least: (counters, size_bytes),
                units: [0; 2],
                widths,
                packed: packed.to_vec(),
                latencies: None,
            }
        };
        assert!(block([0, 5, 9], 16).checked().is_ok());
        for wrong in [block([0, 5, 3], 10), block([0, 5, 5], 12), block([1, 5, 9], 16), block([0, 5, 9], 15)]
        {
            assert!(wrong.clone().checked().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_figure_that_is_no_number_of_sql_is_refused() {
        let mut block = Block::pack(&busy(3)).unwrap();
        block.least.0.read.count = i64::MAX as u64 - 48;
        assert!(block.change(1).is_ok() && block.change(2).is_err());
    }

    fn figure() -> impl Strategy<Value = u64> {
        prop_oneof![0_u64..4, 0_u64..1 << 20, Just(i64::MAX as u64), any::<u64>()]
    }

    fn ops() -> impl Strategy<Value = Ops> {
        let unknown = prop_oneof![4 => Just(None), 1 => Just(Some(Reason::TimingOff))];
        (figure(), figure(), figure(), unknown).prop_map(|(count, bytes, stall, unknown)| Ops {
            count,
            bytes,
            stall_ns: unknown.map_or(Figure::Known(stall), Figure::unknown),
        })
    }

    fn change() -> impl Strategy<Value = Change> {
        let sync = (ops(), any::<bool>());
        (ops(), ops(), sync, figure(), prop::collection::vec(any::<u64>(), 0..3)).prop_map(
            |(read, write, (sync, synced), size, timed)| {
                let mut latencies = Latencies::default();
                timed.iter().for_each(|ns| latencies.write.record(*ns));
                let sync = if synced { Figure::Known(sync) } else { Figure::unknown(Reason::NotCounted) };
                let counters = Counters { read, write, sync, busy_ns: read.stall_ns };
                let latencies = (timed.len() != 1).then_some(latencies);
                Change { capture: 0, counters, size_bytes: Figure::Known(size), latencies }
            },
        )
    }

    proptest! {
        #[test]
        fn packed_changes_are_unpacked_unchanged(mut all in prop::collection::vec(change(), 1..90), gap in 1_i64..1 << 40) {
            (0..).zip(&mut all).for_each(|(at, change)| change.capture = at * gap);
            let mut rest = all.as_slice();
            while !rest.is_empty() {
                let taken = match Block::pack(rest) {
                    None => 1,
                    Some(block) => {
                        let (first, last) = (block.first_capture, block.last_capture);
                        let changes = unpacked(block);
                        prop_assert_eq!((first, last), (rest[0].capture, rest[changes.len() - 1].capture));
                        prop_assert_eq!(&changes, &rest[..changes.len()]);
                        changes.len()
                    }
                };
                rest = &rest[taken..];
            }
        }

        #[test]
        fn any_figures_are_read_or_refused(
            figures in prop::collection::vec(any::<[u64; FIGURES]>(), 0..70),
            widths in prop::array::uniform12(0_u32..60),
            units in any::<[u64; 2]>(),
            least in change(),
            latencies in prop::option::of(prop::collection::vec(any::<u8>(), 0..400)),
        ) {
            let mut widths = widths;
            widths[0] = 7;
            let (mut packed, mut next) = (Vec::new(), 0);
            for (capture, figures) in (0..).zip(&figures) {
                for (value, width) in [capture].iter().chain(figures).zip(widths) {
                    push_bits(&mut packed, &mut next, *value, width);
                }
            }
            let (changes, last_capture) = (figures.len(), 4 + figures.len() as i64);
            let least = (least.counters, least.size_bytes);
            let block = Block { first_capture: 5, last_capture, changes, least, units, widths, packed, latencies };
            if let Ok(block) = block.checked() {
                (0..block.changes).for_each(|n| drop(block.change(n)));
                let _ = block.latencies(block.changes);
            }
        }
    }
}
