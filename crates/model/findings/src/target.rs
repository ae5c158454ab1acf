//! Was it the storage that answered: the target against memory, caches and sectors.

use crate::case::Case;
use crate::limits::{CACHED_SHARE, MULTIPLE_NEAR, MULTIPLES_MAX, PLAUSIBLE_CACHE_BYTES};
use crate::{Finding, FindingKind, Weight, words};
use workload::{Durability, Unit};

pub fn size(case: &Case) -> Option<Finding> {
    if case.result.ios() == 0 {
        return None;
    }
    if case.is_cached() { buffered(case) } else { direct(case) }
}

/// Through the page cache: reads of what lies in memory never reach the storage, nor do writes at once.
fn buffered(case: &Case) -> Option<Finding> {
    let workload = &case.result.workload;
    let new = |weight, text: String| Finding::new(FindingKind::TargetSize, weight, text);
    if case.result.read.count == 0 {
        let durable = workload.shape.durability != Durability::Cached || workload.sync.is_some();
        return (!durable).then(|| {
            new(
                Weight::Warning,
                "Writes were complete when memory had them: this is not the storage's rate.".into(),
            )
            .remedy("use direct I/O, write-through, or syncs")
        });
    }
    let (used, memory) = (case.used_bytes()?, case.conditions.memory_bytes?);
    let share = memory as f64 / used as f64;
    let facts =
        [("used part of the target", used as f64, Unit::Bytes), ("memory", memory as f64, Unit::Bytes)];
    let (used, memory) = (words::bytes(used), words::bytes(memory));
    let finding = if share >= 1.0 {
        let text = format!(
            "The {used} in use fit into {memory} of memory: reads may never have reached the storage."
        );
        new(Weight::Warning, text).remedy("use direct I/O, or a target of several times the memory")
    } else if share > CACHED_SHARE {
        let text = format!(
            "The {used} in use are larger than {memory} of memory, which may still have answered up to {} of the reads.",
            words::share(share)
        );
        new(Weight::Note, text).remedy("use direct I/O, or a larger target")
    } else {
        new(Weight::Good, format!("The {used} in use are {} x the memory.", words::rate(1.0 / share)))
    };
    Some(finding.facts(facts))
}

/// Past the page cache: what is left is the cache of the device, the controller, the array.
fn direct(case: &Case) -> Option<Finding> {
    let used_bytes = case.used_bytes()?;
    let new = |weight, text: String| {
        let facts = [("used part of the target", used_bytes as f64, Unit::Bytes)];
        Finding::new(FindingKind::TargetSize, weight, text).facts(facts)
    };
    let used = words::bytes(used_bytes);
    let Some(cache_bytes) = case.conditions.device_cache_bytes.filter(|bytes| *bytes > 0) else {
        return Some(if used_bytes < PLAUSIBLE_CACHE_BYTES {
            let text = format!(
                "Only {used} are in use: they may lie in a cache of the storage that is not reported."
            );
            new(Weight::Note, text)
                .remedy("use a target larger than the caches of drive, controller and array")
        } else {
            new(
                Weight::Good,
                format!("{used} in use, past the page cache; the storage's own caches are not known."),
            )
        });
    };
    let share = cache_bytes as f64 / used_bytes as f64;
    let cache = words::bytes(cache_bytes);
    let finding = if share >= 1.0 {
        let text = format!(
            "The {used} in use fit into the device's cache of {cache}: it is the cache that answered."
        );
        new(Weight::Warning, text).remedy("use a target of several times the cache")
    } else if share > CACHED_SHARE {
        let text = format!(
            "The device's cache of {cache} may have answered up to {} of the I/Os.",
            words::share(share)
        );
        new(Weight::Note, text).remedy("use a larger target")
    } else {
        let times = words::rate(1.0 / share);
        new(Weight::Good, format!("{used} in use, {times} x the device's cache of {cache}."))
    };
    Some(finding.fact("device cache", cache_bytes as f64, Unit::Bytes))
}

/// A target of just 2, 3 ... times a cache meets its replacement in step.
pub fn multiple(case: &Case) -> Option<Finding> {
    let used = case.used_bytes()?;
    let memory = case.conditions.memory_bytes.filter(|_| case.is_cached()).map(|bytes| ("memory", bytes));
    let device = case.conditions.device_cache_bytes.map(|bytes| ("device's cache", bytes));
    let near = [memory, device].into_iter().flatten().find_map(|(name, bytes)| {
        let times = (used as f64 / bytes as f64).round();
        let off = (used as f64 - times * bytes as f64).abs() / bytes as f64;
        ((2.0..=MULTIPLES_MAX as f64).contains(&times) && off <= MULTIPLE_NEAR)
            .then_some((name, bytes, times))
    })?;
    let (name, bytes, times) = near;
    let text = format!(
        "The {} in use are just {times} x the {name} of {}: such a target can meet the cache in step.",
        words::bytes(used),
        words::bytes(bytes)
    );
    Some(
        Finding::new(FindingKind::TargetMultiple, Weight::Note, text)
            .fact("used part of the target", used as f64, Unit::Bytes)
            .fact("multiple", times, Unit::Times)
            .remedy("choose a size that is no multiple of it"),
    )
}

/// A write of a part of a sector reads it first.
pub fn sectors(case: &Case) -> Option<Finding> {
    let sector = u64::from(case.conditions.sector_bytes.filter(|bytes| *bytes > 512)?);
    let workload = &case.result.workload;
    let access = &workload.access;
    let block = u64::from(workload.shape.block_bytes);
    let sizes = workload.sizes.iter().map(|size| ("a size of", u64::from(size.block_bytes)));
    let places = [
        Some(("blocks of", block)),
        Some(("a base at", access.base_bytes)),
        access.align_bytes.map(|bytes| ("offsets in steps of", bytes)),
        access.stride_bytes.map(|bytes| ("a stride of", bytes)),
    ];
    let (what, bytes) = places.into_iter().flatten().chain(sizes).find(|(_, bytes)| bytes % sector != 0)?;
    let writes = case.result.write.count > 0;
    let text = format!(
        "With {what} {} not every I/O is whole sectors of {}: {}.",
        words::bytes(bytes),
        words::bytes(sector),
        if writes { "the device reads before it writes" } else { "the device reads more than is requested" }
    );
    let weight = if writes { Weight::Warning } else { Weight::Note };
    Some(
        Finding::new(FindingKind::Sectors, weight, text)
            .fact("sector", sector as f64, Unit::Bytes)
            .fact("in use", bytes as f64, Unit::Bytes)
            .remedy("use multiples of the sector, unless this is what is to be measured"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunConditions;
    use crate::case::tests::{direction, find, plain};
    use workload::{Access, Caching, Direction, RunResult};

    const GIB: u64 = 1 << 30;

    fn run_on(target_bytes: u64, caching: Caching) -> RunResult {
        let mut run = RunResult { target_bytes, ..plain() };
        run.workload.shape.caching = caching;
        run
    }

    fn weigh(run: &RunResult, conditions: &RunConditions, kind: FindingKind) -> Option<Weight> {
        find(run, conditions, kind).map(|finding| finding.weight)
    }

    #[test]
    fn buffered_reads_are_compared_with_memory() {
        let conditions = RunConditions { memory_bytes: Some(16 * GIB), ..RunConditions::default() };
        let size =
            |gib: u64| weigh(&run_on(gib * GIB, Caching::Buffered), &conditions, FindingKind::TargetSize);
        assert_eq!(
            [size(16), size(17), size(159), size(160)],
            [Some(Weight::Warning), Some(Weight::Note), Some(Weight::Note), Some(Weight::Good)]
        );
        assert_eq!(
            weigh(&run_on(8 * GIB, Caching::Direct), &conditions, FindingKind::TargetSize),
            Some(Weight::Good)
        );
        assert_eq!(
            weigh(&run_on(8 * GIB, Caching::Buffered), &RunConditions::default(), FindingKind::TargetSize),
            None
        );
    }

    #[test]
    fn only_the_part_in_use_counts() {
        let conditions = RunConditions { memory_bytes: Some(16 * GIB), ..RunConditions::default() };
        let mut run = run_on(500 * GIB, Caching::Mapped);
        run.workload.access = Access { base_bytes: GIB, length_bytes: Some(4 * GIB), ..Access::default() };
        assert_eq!(weigh(&run, &conditions, FindingKind::TargetSize), Some(Weight::Warning));
        run.workload.access.base_bytes = 501 * GIB;
        assert_eq!(weigh(&run, &conditions, FindingKind::TargetSize), None, "outside the target");
    }

    #[test]
    fn buffered_writes_are_memory_s_unless_they_are_synced() {
        let mut run = run_on(500 * GIB, Caching::Buffered);
        (run.write, run.read) = (direction(1_000, 1_000, 2_000), Direction::default());
        assert_eq!(weigh(&run, &RunConditions::default(), FindingKind::TargetSize), Some(Weight::Warning));
        run.workload.shape.durability = Durability::Synced;
        assert_eq!(weigh(&run, &RunConditions::default(), FindingKind::TargetSize), None);
    }

    #[test]
    fn direct_io_is_compared_with_the_device_s_cache() {
        let conditions = RunConditions { device_cache_bytes: Some(8 * GIB), ..RunConditions::default() };
        let size =
            |gib: u64| weigh(&run_on(gib * GIB, Caching::Direct), &conditions, FindingKind::TargetSize);
        assert_eq!(
            [size(8), size(9), size(80)],
            [Some(Weight::Warning), Some(Weight::Note), Some(Weight::Good)]
        );
        let unknown = |bytes| {
            weigh(&run_on(bytes, Caching::Direct), &RunConditions::default(), FindingKind::TargetSize)
        };
        assert_eq!([unknown(GIB - 1), unknown(GIB)], [Some(Weight::Note), Some(Weight::Good)]);
    }

    #[test]
    fn a_small_multiple_of_a_cache_is_reported_and_sizes_between_are_not() {
        let conditions = RunConditions { device_cache_bytes: Some(8 * GIB), ..RunConditions::default() };
        let multiple =
            |gib: u64| weigh(&run_on(gib * GIB, Caching::Direct), &conditions, FindingKind::TargetMultiple);
        assert_eq!(
            [multiple(8), multiple(24), multiple(25), multiple(72)],
            [None, Some(Weight::Note), None, None]
        );
        let memory = RunConditions { memory_bytes: Some(8 * GIB), ..RunConditions::default() };
        assert_eq!(
            weigh(&run_on(24 * GIB, Caching::Direct), &memory, FindingKind::TargetMultiple),
            None,
            "memory has no part in it"
        );
    }

    #[test]
    fn parts_of_sectors_are_reported() {
        let conditions = RunConditions { sector_bytes: Some(4096), ..RunConditions::default() };
        let mut run = plain();
        assert_eq!(weigh(&run, &conditions, FindingKind::Sectors), None);
        run.workload.shape.block_bytes = 512;
        assert_eq!(weigh(&run, &conditions, FindingKind::Sectors), Some(Weight::Note));
        run.write = direction(10, 1, 2);
        assert_eq!(weigh(&run, &conditions, FindingKind::Sectors), Some(Weight::Warning));
        let mut shifted = plain();
        shifted.workload.access.base_bytes = 512;
        assert_eq!(weigh(&shifted, &conditions, FindingKind::Sectors), Some(Weight::Note));
    }
}
