#![no_main]
//! A result that is read is also kept: its JSON must read back.

use import::{Format, decode, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok((text, _)) = decode(bytes) else { return };
    let Ok(imported) = read(&text, Some(Format::FioJson)) else { return };
    for result in imported.results() {
        let json = serde_json::to_string(result).unwrap();
        serde_json::from_str::<workload::RunResult>(&json).unwrap();
    }
});
