#![no_main]
//! The first line is the path in the folder, the rest the file.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (path, rest) = text.split_once('\n').unwrap_or((text, ""));
    let (imported, failed) = import::bench_fio(&[(path.to_owned(), rest.to_owned())]);
    assert!(failed.len() <= 1 && imported.results().all(|result| result.tool.is_some()));
});
