//! A store whose commits are numbered, to find out after a crash which of them are there. `scripts/vm.d/log-writes` replays
//! what a disk had been given at each flush, and asks.
//!
//! `prefix write DIR COMMITS` prints the number of each commit when it is durable, 0 of the table alone; each begins when a line
//! came on standard input. `prefix check DIR` prints how many are there: all from the first to the last, or it fails.

use pagestore::{Durability, Layout, Options, Store, Tables};
use std::io::{BufRead, Write};
use std::path::Path;

/// Rows of each commit, so that a commit is more than one page's change.
const ROWS: u32 = 8;
const VALUE_BYTES: usize = 700;
/// A small log, so that checkpoints and reuse of the log are among the writes.
const VLF_BYTES: u64 = 256 << 10;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["write", directory, commits] => write(Path::new(directory), commits.parse()?),
        ["check", directory] => {
            println!("{}", check(Path::new(directory))?);
            Ok(())
        }
        _ => Err("try: prefix write DIR COMMITS, prefix check DIR".into()),
    }
}

fn write(directory: &Path, commits: u32) -> Result<(), Box<dyn std::error::Error>> {
    let layout = Layout { vlf_bytes: VLF_BYTES, ..Layout::default() };
    let store = Store::create(directory, layout, Options::default())?;
    let rows = store.transact(Durability::Full, |tx| tx.create_table("rows"))?;
    let mut next = std::io::stdin().lock().lines();
    // The table, which is a commit of its own.
    println!("0");
    std::io::stdout().flush()?;
    for commit in 1..=commits {
        if next.next().transpose()?.is_none() {
            return Ok(());
        }
        store.transact(Durability::Full, |tx| {
            (0..ROWS).try_for_each(|row| tx.put(rows, &key(commit, row), &value(commit, row)))
        })?;
        if commit % 16 == 0 {
            store.checkpoint()?;
        }
        println!("{commit}");
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// The number of commits; an error where one is there in part, has other values, or has a gap before it.
fn check(directory: &Path) -> Result<u32, Box<dyn std::error::Error>> {
    let store = Store::open(directory, Options::default())?;
    let reader = store.read()?;
    let rows = reader.table("rows")?;
    let mut expected = (1..).flat_map(|commit| (0..ROWS).map(move |row| (commit, row)));
    let mut found = 0;
    for entry in reader.range(rows, b"", None)? {
        let (entry_key, entry_value) = entry?;
        let (commit, row) = expected.next().ok_or("more rows than numbers")?;
        if entry_key.as_slice() != key(commit, row) || entry_value.as_slice() != value(commit, row) {
            return Err(format!("row {row} of commit {commit} is missing or has another value").into());
        }
        found += 1;
    }
    if found % ROWS != 0 {
        return Err(format!("the last commit is there in part: {found} rows").into());
    }
    Ok(found / ROWS)
}

fn key(commit: u32, row: u32) -> [u8; 8] {
    (u64::from(commit) << 32 | u64::from(row)).to_be_bytes()
}

fn value(commit: u32, row: u32) -> Vec<u8> {
    vec![(commit * ROWS + row) as u8; VALUE_BYTES]
}
