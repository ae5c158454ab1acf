#![no_main]
//! A workload file that is read can be written and means the same when it is read again.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(plan) = workload_file::read(text) else { return };
    let again = workload_file::read(&workload_file::write(&plan));
    assert_eq!(again.ok(), Some(plan), "written and read again");
});
