#![no_main]
//! Whatever a SQL Server sends is read as snapshots or refused, in bounded time and memory.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    collect::sqlserver::read_answers(bytes);
});
