//! Flags that say when: time, rates, bursts, buckets.

use super::bench::{Bench, within};

#[test]
fn w_and_c_run_before_and_after_what_is_measured() {
    let Some(bench) = Bench::new() else { return };
    let seen = bench.run("-W1 -d1 -C1 -r -b4K -Su -g200i");
    let (first, last) = (seen.ios()[0].at_ns, seen.ios().last().unwrap().at_ns);
    within("seconds from the first to the last I/O", (last - first) as f64 / 1e9, 2.9..=3.1);
    within("I/Os of three seconds", seen.ios().len() as f64, 580.0..=620.0);
    within("those of the second between", seen.counts().0 as f64, 190.0..=210.0);
    within("its length", seen.result()["elapsed_ns"].as_f64().unwrap() / 1e9, 0.999..=1.01);
}

#[test]
fn g_holds_each_thread_to_bytes_a_millisecond_or_ios_a_second_at_an_even_pace() {
    let Some(bench) = Bench::new() else { return };
    for (flags, iops, bytes) in [
        ("-b8K -g800", 800_000.0 / 8192.0, 8192),
        ("-b8K -g100i", 100.0, 8192),
        ("-b4K -t2 -g200i", 400.0, 4096),
        // A block larger than a second's allowance of a hundredth.
        ("-b256K -g16384 -o8", 62.5, 262_144),
    ] {
        let seen = bench.run(&format!("-r -Su {flags}"));
        within(flags, seen.ios().len() as f64 / iops, 0.95..=1.05);
        assert!(seen.ios().iter().all(|io| io.bytes == bytes));
        if !flags.contains("-t2") {
            let mean = 1e9 / iops;
            let mut gaps: Vec<f64> = seen.gaps_ns().iter().map(|gap| *gap as f64 / mean).collect();
            gaps.sort_by(f64::total_cmp);
            let (low, high) = (gaps[gaps.len() / 20], gaps[gaps.len() * 19 / 20]);
            assert!(low > 0.7 && high < 1.3, "{flags}: 90 % of the gaps are {low} to {high} of the mean");
        }
    }
}

#[test]
fn a_rate_beyond_32_bits_does_not_overflow() {
    let Some(bench) = Bench::new() else { return };
    // 4,295,000,000 bytes a millisecond would be 32,704 in 32 bits.
    let free = bench.run("-r -b64K -Su -o4").counts().0 as f64;
    let seen = bench.run("-r -b64K -Su -o4 -g4294967295");
    within("as fast as without", seen.counts().0 as f64 / free, 0.5..=2.0);
}

#[test]
fn i_and_j_make_bursts_that_the_threads_share() {
    let Some(bench) = Bench::new() else { return };
    for (flags, threads, ios) in
        [("-i10 -j300 -o1", 1, 10), ("-i10 -j300 -o4", 1, 10), ("-i10 -j300 -o1 -t2", 2, 5)]
    {
        let seen = bench.run(&format!("-r -b4K -Su {flags}"));
        let mut bursts = 0;
        let mut threads_seen: Vec<u32> = seen.ios().iter().map(|io| io.thread).collect();
        threads_seen.sort_unstable();
        threads_seen.dedup();
        assert_eq!(threads_seen.len(), threads, "{flags}");
        for thread in threads_seen {
            let times: Vec<u64> =
                seen.ios().iter().filter(|io| io.thread == thread).map(|io| io.at_ns).collect();
            let ends: Vec<usize> =
                (1..times.len()).filter(|at| times[*at] - times[at - 1] > 150_000_000).collect();
            bursts += ends.len();
            let starts = std::iter::once(0).chain(ends.iter().copied());
            for (start, end) in starts.zip(&ends) {
                assert_eq!(end - start, ios, "{flags}: I/Os of a burst");
                let rest_ms = (times[*end] - times[end - 1]) as f64 / 1e6;
                within("milliseconds of rest", rest_ms, 299.0..=450.0);
            }
        }
        within(flags, bursts as f64 / threads as f64, 2.0..=4.0);
    }
    let seen = bench.run("-r -b4K -Su -o1 -i10 -j500 -g100i");
    within("-g goes before bursts", seen.ios().len() as f64, 95.0..=105.0);
}

#[test]
fn d_counts_ios_in_buckets_of_each_thread() {
    let Some(bench) = Bench::new() else { return };
    let seen = bench.run("-r -b4K -Su -t2 -g200i -D250");
    let result = seen.result();
    assert_eq!(result["slice_ns"], 250_000_000);
    for thread in result["threads"].as_array().unwrap() {
        let buckets = thread["series"].as_array().unwrap();
        assert_eq!(buckets.len(), 4);
        for bucket in buckets {
            within("I/Os of a bucket", bucket["read"]["count"].as_f64().unwrap(), 47.0..=53.0);
        }
    }
    // As the kernel saw them, from the first on.
    let first = seen.ios()[0].at_ns;
    let third =
        seen.ios().iter().filter(|io| (500_000_000..750_000_000).contains(&(io.at_ns - first))).count();
    let told = result["series"][2]["read"]["count"].as_f64().unwrap();
    within("the third bucket", told - third as f64, -8.0..=8.0);
    let output = bench.command("-r -b4K -Su -g200i -D250").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("| IopsStdDev |") && text.contains("gathering IOPS at intervals of 250ms"),
        "{text}"
    );
}
