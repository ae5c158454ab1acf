//! Flags that say through which caches I/Os go, and hints: by the kernel's record, and by the system calls.

use super::bench::{Bench, answer, within};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn sw_and_sh_make_each_write_durable_su_does_not() {
    let Some(bench) = Bench::new() else { return };
    let seen = bench.run("-w100 -b4K -Su");
    assert!(seen.ios().iter().all(|io| io.write && !io.fua));
    assert_eq!(seen.traced.flushes, 0);
    for flags in ["-w100 -b4K -Sh", "-w100 -b4K -h", "-w100 -b4K -Suw"] {
        let seen = bench.run(flags);
        assert!(seen.ios().iter().all(|io| io.fua), "{flags}");
    }
    // Through the page cache: written and flushed before it counts.
    let seen = bench.run("-w100 -b4K -r -o1 -Sw");
    let writes = seen.counts().1;
    assert!(writes > 0);
    let durable = seen.traced.flushes as f64 + seen.ios().iter().filter(|io| io.fua).count() as f64;
    within("writes made durable, of those counted", durable / writes as f64, 0.99..=1.2);
}

#[test]
fn sb_and_s_nothing_go_through_the_page_cache_su_past_it() {
    for (flags, cached) in [("-Sb", true), ("", true), ("-S", false), ("-Sm", true)] {
        let Some(bench) = Bench::new() else { return };
        let seen = bench.run(&format!("-b64K {flags}"));
        let bytes: u64 = seen.ios().iter().map(|io| io.bytes).sum();
        let told = seen.result()["read"]["bytes"].as_u64().unwrap();
        assert!(told > 64 << 20, "{flags}: over the disk several times");
        if cached {
            // Readers side by side may fetch a few pages twice.
            within(flags, bytes as f64, 0.0..=21e6);
        } else {
            within(flags, bytes as f64 / told as f64, 1.0..=1.01);
        }
    }
}

/// The system calls of a run.
fn calls(bench: &Bench, flags: &str, which: &str) -> Option<String> {
    let command = bench.command(flags);
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut strace = Command::new("strace");
    strace.args(["-f", "--seccomp-bpf", "-e", &format!("trace={which}"), "-o"]).arg(log.path());
    strace.arg(command.get_program()).args(command.get_args()).arg("--json");
    if Command::new("strace").arg("-V").output().is_err() {
        eprintln!("skipped: no strace");
        return None;
    }
    answer(&mut strace);
    Some(std::fs::read_to_string(log.path()).unwrap())
}

#[test]
fn mapped_ios_are_copies_and_a_flush_is_msync() {
    let Some(bench) = Bench::new() else { return };
    for (flags, synced) in [("-Sm", false), ("-Sm -Nv", true), ("-Smw", true)] {
        let Some(calls) = calls(
            &bench,
            &format!("-w50 -r -b4K {flags}"),
            "mmap,msync,pread64,pwrite64,pwritev2,io_uring_enter",
        ) else {
            return;
        };
        assert!(calls.contains("MAP_SHARED, "), "{flags}: {calls}");
        let count = |call: &str| calls.lines().filter(|line| line.contains(call)).count();
        assert_eq!(count("msync(") > 10, synced, "{flags}: {} msync", count("msync("));
        assert_eq!(count("pwritev2(") + count("io_uring_enter("), 0, "{flags}");
    }
}

#[test]
fn hints_reach_the_kernel_and_change_what_it_reads_ahead() {
    let mut largest = Vec::new();
    for (flags, told) in
        [("-fr", "POSIX_FADV_RANDOM"), ("", "POSIX_FADV_NORMAL"), ("-fs", "POSIX_FADV_SEQUENTIAL")]
    {
        let Some(bench) = Bench::new() else { return };
        let trace = testbed::BlockTrace::start(bench.disk.number()).unwrap();
        let Some(calls) = calls(&bench, &format!("-b4K -o1 -Sb {flags}"), "fadvise64") else { return };
        assert!(calls.contains(told), "{flags}: {calls}");
        largest.push(trace.stop().ios.iter().map(|io| io.bytes).max().unwrap());
    }
    assert!(largest[0] == 4096 && largest[1] > 4096 && largest[2] > largest[1], "{largest:?}");
}

#[test]
fn i_is_the_priority_of_the_ios() {
    let Some(bench) = Bench::new() else { return };
    for (flags, level) in [("-I1", Some("be,0,7")), ("-I3", None), ("-I2 -F2", Some("be,0,6"))] {
        let seen = bench.run_in_full(&format!("-r -b4K -Su {flags}"));
        let found = &seen.traced.priorities;
        match level {
            Some(level) => assert_eq!(found, &[level], "{flags}"),
            None => assert!(
                found.iter().all(|level| !level.ends_with(",7") && !level.ends_with(",6")),
                "{found:?}"
            ),
        }
    }
}

#[test]
fn threads_run_on_the_cpus_that_a_names_on_all_in_turn_or_with_n_on_any() {
    let Some(bench) = Bench::new() else { return };
    let any = allowed("/proc/self/status");
    let Some((first, rest)) = any.split_first() else { return };
    let Some(last) = rest.last() else {
        eprintln!("skipped: needs two CPUs");
        return;
    };
    let both = vec![vec![*first], vec![*last]];
    for (flags, wanted) in [
        (format!("-a{last} -t2"), vec![vec![*last], vec![*last]]),
        (format!("-a{first},{last} -t2"), both.clone()),
        (format!("-ag0,{last} -t1"), vec![vec![*last]]),
        ("-n -t2".into(), vec![any.clone(), any.clone()]),
        (format!("-t{}", any.len()), any.iter().map(|cpu| vec![*cpu]).collect()),
    ] {
        let mut command = bench.command(&format!("-r -b4K -Su -d30 {flags}"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let tasks = format!("/proc/{}/task", child.id());
        let until = Instant::now() + Duration::from_secs(10);
        let mut found = Vec::new();
        while found != wanted && Instant::now() < until {
            std::thread::yield_now();
            let threads = std::fs::read_dir(&tasks).into_iter().flatten().flatten();
            let threads =
                threads.filter(|thread| thread.file_name().to_string_lossy() != child.id().to_string());
            let load = threads.filter(|thread| {
                // The handler of Ctrl-C has a name of its own.
                let name = std::fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
                name.trim() == "headroom"
            });
            found = load.map(|thread| allowed(thread.path().join("status"))).collect();
            found.sort();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, wanted, "{flags}");
    }
}

fn allowed(status: impl AsRef<std::path::Path>) -> Vec<u32> {
    let text = std::fs::read_to_string(status).unwrap_or_default();
    let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or("");
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse().ok()?)
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}
