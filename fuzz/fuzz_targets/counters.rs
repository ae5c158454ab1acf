#![no_main]
//! A history of counters is read as captures in the order of their times, none of them twice, or refused.

use import::{Kept, counters, decode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok((text, _)) = decode(bytes) else { return };
    let Ok(log) = counters(&text, None) else { return };
    for series in log.series {
        let chain = series.clone().captures(&Kept::new(), None);
        let time = |capture: &import::Capture| capture.snapshot.taken_unix_ns;
        assert!(chain.captures.is_sorted_by_key(time));
        let kept: Kept = chain.captures.iter().map(|one| (time(one), one.snapshot.samples.len() as u64)).collect();
        let last = chain.captures.last().map(|capture| &capture.snapshot);
        assert!(series.captures(&kept, last).captures.is_empty());
    }
    for disk in log.disks.iter().flat_map(|log| &log.disks) {
        assert!(disk.totals().intervals <= disk.intervals.len());
    }
});
