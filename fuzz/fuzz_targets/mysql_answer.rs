#![no_main]
//! Whatever a server of MySQL sends is read as snapshots or refused, in bounded time and memory.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    collect::mysql::read_answers(bytes);
});
