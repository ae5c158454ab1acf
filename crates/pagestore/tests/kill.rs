//! kill -9 on a real file system: a child commits and tells through a pipe what was acknowledged; it is killed, and
//! everything that it told must be there.

use pagestore::{Durability, Layout, Options, Recovery, Store, Tables};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const CHILD: &str = "PAGESTORE_KILL_CHILD";
const ROUNDS: u32 = 10;

fn options(recovery: Recovery) -> Options {
    Options { cache_bytes: 1 << 20, checkpoint_bytes: 512 << 10, recovery, ..Options::default() }
}

/// The child's part: commits numbers for ever, four threads at once, and prints each once it is durable.
fn commit_for_ever(directory: &Path) {
    let store = Store::open(directory, options(Recovery::Instant)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let store = &store;
            scope.spawn(move || {
                for number in 0_u32.. {
                    let mut tx = store.write().unwrap();
                    let table = tx.table("numbers").unwrap();
                    let next = tx.get(table, &thread.to_be_bytes()).unwrap();
                    let next = next.map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().unwrap())) + 1;
                    tx.put(table, &thread.to_be_bytes(), &next.to_be_bytes()).unwrap();
                    let filler = [thread.to_be_bytes(), (number % 500).to_be_bytes()].concat();
                    tx.put(table, &filler, &[number as u8; 300]).unwrap();
                    tx.commit(Durability::Full).unwrap();
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "{thread} {next}").unwrap();
                    out.flush().unwrap();
                }
            });
        }
    });
}

#[test]
fn what_was_acknowledged_survives_kill_nine() {
    if let Some(directory) = std::env::var_os(CHILD) {
        return commit_for_ever(Path::new(&directory));
    }
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let directory = place.path().join("store");
    let layout = Layout { vlf_bytes: 256 << 10, ..Layout::default() };
    let store = Store::create(&directory, layout, options(Recovery::Instant)).unwrap();
    let mut tx = store.write().unwrap();
    tx.create_table("numbers").unwrap();
    tx.commit(Durability::Full).unwrap();
    drop(store);

    let mut told = [0_u64; 4];
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["what_was_acknowledged_survives_kill_nine", "--exact", "--nocapture", "--quiet"])
            .env(CHILD, &directory)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let reader = std::thread::spawn(move || {
            let mut newest = [0_u64; 4];
            for line in lines.lines().map_while(Result::ok) {
                let mut words = line.split(' ').map(str::parse::<u64>);
                // The test harness prints lines of its own.
                if let (Some(Ok(thread)), Some(Ok(number)), None) = (words.next(), words.next(), words.next())
                {
                    newest[thread as usize] = number;
                }
            }
            newest
        });
        std::thread::sleep(Duration::from_millis(100 + u64::from(round) * 37));
        child.kill().unwrap();
        child.wait().unwrap();
        for (told, newest) in told.iter_mut().zip(reader.join().unwrap()) {
            *told = newest.max(*told);
        }
        let recovery =
            [Recovery::Instant, Recovery::Wide, Recovery::Prefetch, Recovery::Serial][round as usize % 4];
        let store = Store::open(&directory, options(recovery)).unwrap();
        let reader = store.read().unwrap();
        let table = reader.table("numbers").unwrap();
        for (thread, told) in told.iter().enumerate() {
            let found = reader.get(table, &(thread as u32).to_be_bytes()).unwrap();
            let found = found.map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().unwrap()));
            // The last one may have been durable before it could be told.
            assert!(found == *told || found == told + 1, "thread {thread} was told {told}, {found} is there");
        }
        assert_eq!(reader.range(table, &[], None).unwrap().filter(Result::is_err).count(), 0);
    }
    assert!(told.iter().sum::<u64>() > 50, "too few commits to mean anything: {told:?}");
}
