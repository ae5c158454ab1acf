#![no_main]
//! A trace is in the order of its times, which begin at 0.

use import::trace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(trace) = trace(text) else { return };
    assert_eq!(trace.ios[0].at_ns, 0);
    assert!(trace.ios.is_sorted_by_key(|io| io.at_ns));
});
