//! Flags that say how much and how many: sizes, outstanding I/Os, threads, shares, targets.

use super::bench::{Bench, answer, profile, within};
use std::process::Stdio;
use std::time::{Duration, Instant};
use testbed::BlockTrace;
use workload::CapKind;

#[test]
fn b_is_the_size_of_each_io() {
    let Some(bench) = Bench::new() else { return };
    for (flags, bytes) in [("-r", 65_536), ("-r -b4K", 4096), ("-r -b12K", 12_288), ("-r -b256K", 262_144)] {
        let seen = bench.run(&format!("{flags} -Su -o1"));
        assert!(seen.ios().iter().all(|io| io.bytes == bytes), "{flags}: {:?}", seen.ios()[0]);
        let (reads, writes) = seen.counts();
        assert_eq!(writes, 0);
        // Those that were under way at either edge of the second.
        within(flags, seen.ios().len() as f64 - reads as f64, 0.0..=2.0);
        assert_eq!(seen.result()["read"]["bytes"], reads * bytes);
    }
}

#[test]
fn o_and_t_are_outstanding_ios_and_threads_f_is_a_pool() {
    let Some(mut bench) = Bench::new() else { return };
    for (flags, threads, in_flight) in
        [("", 1, 2), ("-o8", 1, 8), ("-t3", 3, 6), ("-t2 -o5", 2, 10), ("-F3 -o4", 3, 12), ("-F2 -O3", 2, 6)]
    {
        let seen = bench.run_in_full(&format!("-r -b4K -Su {flags}"));
        assert_eq!(seen.offsets_of_threads().len(), threads, "{flags}");
        assert_eq!(seen.result()["threads"].as_array().unwrap().len(), threads, "{flags}");
        assert_eq!(seen.traced.in_flight_max, in_flight, "{flags}");
    }
    // A disk that answers long after it is asked has all of them, all the time. Of a fast one, the share of
    // the time between an answer and the next question depends on how busy the machine is otherwise.
    if !bench.disk.throttle(CapKind::ReadIops, 1_000) {
        return;
    }
    for (flags, outstanding) in [("-o8", 8.0), ("-t2 -o5", 10.0), ("-F2 -O3", 6.0)] {
        let seen = bench.run(&format!("-r -b4K -Su {flags}"));
        let mean = seen.result()["outstanding_mean"].as_f64().unwrap();
        within(flags, mean / outstanding, 0.9..=1.01);
    }
}

#[test]
fn w_throws_a_coin_for_each_io() {
    let Some(bench) = Bench::new() else { return };
    for percent in [30.0, 100.0] {
        let seen = bench.run(&format!("-r -b4K -Su -o1 -w{percent}"));
        let writes = seen.percent(|io| io.write);
        within("writes, in percent", writes, percent - 2.0..=percent + 2.0);
        let pairs = seen.ios().windows(2).filter(|pair| pair[0].write && pair[1].write).count();
        let pairs = 100.0 * pairs as f64 / seen.ios().len() as f64;
        within(
            "writes after writes, in percent",
            pairs,
            percent * percent / 100.0 - 2.0..=percent * percent / 100.0 + 2.0,
        );
        let (read, written) = seen.counts();
        within("as told", 100.0 * written as f64 / (read + written) as f64 - writes, -0.2..=0.2);
    }
}

#[test]
fn several_targets_run_at_once_each_with_its_threads() {
    let (Some(one), Some(other)) = (Bench::new(), Bench::new()) else { return };
    let targets = [one.device(), other.device()];
    let both = |flags: &str| {
        let traces = [&one, &other].map(|bench| BlockTrace::start_in_full(bench.disk.number()).unwrap());
        let json = answer(one.command_on(flags, &targets).arg("--json"));
        (json, traces.map(BlockTrace::stop))
    };
    let (json, traced) = both("-r -b4K -Su -t2 -o3");
    for (at, traced) in traced.iter().enumerate() {
        assert_eq!(traced.in_flight_max, 6);
        let result = &json["phases"][0]["results"][at];
        let reads = result["read"]["count"].as_f64().unwrap();
        within("counted there", traced.ios.len() as f64 - reads, 0.0..=12.0);
        assert_eq!(result["target"], targets[at].as_str());
    }
    // They overlap in time.
    assert!(traced[0].ios[0].at_ns < traced[1].ios.last().unwrap().at_ns);
    assert!(traced[1].ios[0].at_ns < traced[0].ios.last().unwrap().at_ns);
    // Threads of a pool serve both.
    let (_, traced) = both("-r -b4K -Su -F2 -o3");
    let [threads, others] = traced.map(|traced| {
        let mut threads: Vec<u32> = traced.ios.iter().map(|io| io.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    });
    assert_eq!((threads.len(), &threads), (2, &others));
}

#[test]
fn a_pool_shares_its_outstanding_ios_by_weights() {
    let (Some(one), Some(other)) = (Bench::new(), Bench::new()) else { return };
    let place = tempfile::tempdir().unwrap();
    let target = |bench: &Bench, weight: u32| {
        format!(
            "<Target><Path>{}</Path><BlockSize>4096</BlockSize><Random>4096</Random><Weight>{weight}</Weight>\
             <DisableOSCache>true</DisableOSCache></Target>",
            bench.device()
        )
    };
    let xml = format!(
        "<TimeSpan><Duration>1</Duration><Warmup>0</Warmup><ThreadCount>2</ThreadCount>\
         <RequestCount>4</RequestCount><Targets>{}{}</Targets></TimeSpan>",
        target(&one, 30),
        target(&other, 10)
    );
    let xml = profile(place.path(), &xml);
    let traces = [&one, &other].map(|bench| BlockTrace::start_in_full(bench.disk.number()).unwrap());
    answer(&mut one.headroom.command(&["diskspd", &format!("-X{}", xml.display()), "--json"]));
    let [heavy, light] = traces.map(BlockTrace::stop);
    within("I/Os of three to one", heavy.ios.len() as f64 / light.ios.len() as f64, 2.8..=3.2);
    assert!(heavy.in_flight_max <= 8 && light.in_flight_max <= 8);
    assert!(heavy.in_flight_max >= 6, "{}", heavy.in_flight_max);
}

#[test]
fn x_runs_the_time_spans_of_a_profile_one_after_the_other() {
    let (Some(one), Some(other)) = (Bench::new(), Bench::new()) else { return };
    let place = tempfile::tempdir().unwrap();
    let target = |path: &str, block: u32, writes: u32| {
        format!(
            "<Target><Path>{path}</Path><BlockSize>{block}</BlockSize><WriteRatio>{writes}</WriteRatio>\
             <DisableOSCache>true</DisableOSCache></Target>"
        )
    };
    let span = |targets: &str| {
        format!("<TimeSpan><Duration>1</Duration><Warmup>0</Warmup><Targets>{targets}</Targets></TimeSpan>")
    };
    let first = span(&target(&one.device(), 8192, 0));
    // The target of the template stands on the command line.
    let second = span(&(target(&one.device(), 4096, 100) + &target("*1", 16_384, 0)));
    let xml = format!("-X{}", profile(place.path(), &(first + &second)).display());
    let traces = [&one, &other].map(|bench| BlockTrace::start(bench.disk.number()).unwrap());
    let mine = one.device();
    let json = answer(&mut one.headroom.command(&[
        "diskspd",
        &xml,
        "--destroy-data",
        &mine,
        "--json",
        &other.device(),
    ]));
    let [one, other] = traces.map(BlockTrace::stop);
    let first_write = one.ios.iter().position(|io| io.write).unwrap();
    let (before, after) = one.ios.split_at(first_write);
    assert!(before.iter().all(|io| io.bytes == 8192));
    assert!(after.iter().all(|io| io.bytes == 4096 && io.write));
    assert!(other.ios.iter().all(|io| io.bytes == 16_384 && !io.write));
    assert!(before.last().unwrap().at_ns < other.ios[0].at_ns, "one after the other");
    let results = |phase: usize| json["phases"][phase]["results"].as_array().unwrap().len();
    assert_eq!((json["phases"].as_array().unwrap().len(), results(0), results(1)), (2, 1, 2));
}

#[test]
fn l_puts_the_buffers_into_huge_pages_that_were_set_aside() {
    const SET_ASIDE: &str = "/proc/sys/vm/nr_hugepages";
    let Some(bench) = Bench::new() else { return };
    let Ok(before) = std::fs::read_to_string(SET_ASIDE) else {
        eprintln!("skipped: this kernel has no huge pages");
        return;
    };
    let _back = Restored(SET_ASIDE, before);
    std::fs::write(SET_ASIDE, "0").unwrap();
    let refused = bench.command("-l -r -b64K -o8 -t2 -Su").output().unwrap();
    let errors = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(3), "{errors}");
    assert!(errors.contains("its buffers need 2 huge pages of 2 MiB, and 0 are free"), "{errors}");
    assert!(errors.contains("try: sysctl vm.nr_hugepages=2"), "{errors}");

    std::fs::write(SET_ASIDE, "4").unwrap();
    for (flags, wanted_kib) in [("-l", 4096), ("", 0)] {
        let mut command = bench.command(&format!("{flags} -r -b64K -o8 -t2 -Su -d30"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let maps = format!("/proc/{}/smaps", child.id());
        let until = Instant::now() + Duration::from_secs(if wanted_kib > 0 { 10 } else { 2 });
        let mut found_kib = 0;
        while found_kib < wanted_kib.max(1) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
            let text = std::fs::read_to_string(&maps).unwrap_or_default();
            let lines = text.lines().filter_map(|line| line.strip_prefix("Private_Hugetlb:"));
            found_kib = lines.filter_map(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok()).sum();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found_kib, wanted_kib, "{flags}");
    }
    // And the I/Os are the same.
    let seen = bench.run("-l -r -b64K -Su -o1");
    assert!(seen.ios().iter().all(|io| io.bytes == 65_536));
}

/// Writes back what a file of the system said.
struct Restored(&'static str, String);

impl Drop for Restored {
    fn drop(&mut self) {
        let _ = std::fs::write(self.0, &self.1);
    }
}
