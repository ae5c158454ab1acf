//! Results as a run would give them: every count, sum and bucket of the same I/Os.

use diskspd::profile::{CacheMode, Profile, Target, TimeSpan};
use diskspd::report::{CpuFacts, Report, SystemFacts};
use workload::{
    CoreUse, LatencyHistogram, PhaseResult, RunResult, Shape, Slice, Tally, ThreadShare, Workload,
};

/// I/Os of each thread in every bucket, more or less.
#[derive(Clone, Copy)]
pub struct Load {
    pub threads: u32,
    pub reads: u64,
    pub writes: u64,
    pub buckets: u64,
    pub bucket_ms: u64,
    pub block_bytes: u64,
}

pub fn result(path: &str, file_bytes: u64, load: Load) -> RunResult {
    let mut result = RunResult::empty(Workload::from(Shape::random_read(4096)), path.into());
    let mut dice = Dice(u64::from(load.threads) << 20 | load.reads << 8 | load.writes);
    result.elapsed_ns = load.buckets * load.bucket_ms * 1_000_000 + 2_345_678;
    result.slice_ns = load.bucket_ms * 1_000_000;
    result.target_bytes = file_bytes;
    result.cores = cores()[..2].to_vec();
    for _ in 0..load.threads {
        let mut thread = ThreadShare::default();
        for at in 1..=load.buckets {
            let mut slice = Slice { end_ns: at * result.slice_ns, ..Slice::default() };
            fill(&mut slice.read, &mut result.read.latency, load.reads, load.block_bytes, 85_000, &mut dice);
            fill(
                &mut slice.write,
                &mut result.write.latency,
                load.writes,
                load.block_bytes,
                31_000,
                &mut dice,
            );
            thread.read.merge(&slice.read);
            thread.write.merge(&slice.write);
            thread.series.push(slice);
        }
        for (sum, part) in [(&mut result.read, &thread.read), (&mut result.write, &thread.write)] {
            sum.count += part.count;
            sum.bytes += part.bytes;
        }
        result.threads.push(thread);
    }
    result
}

/// Some more or fewer I/Os than `ios`; one in two hundred is slow.
fn fill(
    tally: &mut Tally,
    histogram: &mut LatencyHistogram,
    ios: u64,
    bytes: u64,
    base_ns: u64,
    dice: &mut Dice,
) {
    let ios = if ios == 0 { 0 } else { ios - ios / 20 + dice.below(ios / 10 + 1) };
    for _ in 0..ios {
        let slow = if dice.below(200) == 0 { 30 } else { 1 };
        let latency_ns = (base_ns + dice.below(base_ns / 2)) * slow;
        tally.record_n(latency_ns, bytes, 1);
        histogram.record(latency_ns);
    }
}

/// A generator that gives one sequence every time (Knuth's MMIX generator).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }
}

fn cores() -> Vec<CoreUse> {
    let core = |core, user_percent, kernel_percent, idle_percent| CoreUse {
        core,
        user_percent,
        kernel_percent,
        idle_percent,
    };
    vec![
        core(0, 30.0, 25.0, 45.0),
        core(1, 4.0, 8.25, 87.75),
        core(2, 0.0, 0.5, 99.5),
        core(3, 1.0, 0.0, 99.0),
    ]
}

pub fn phase(results: Vec<RunResult>) -> PhaseResult {
    PhaseResult { name: String::new(), results }
}

/// Two cores of one thread each.
pub fn machine() -> SystemFacts {
    let cpu = |id| CpuFacts { id, core: id, ..CpuFacts::default() };
    SystemFacts {
        computer_name: "db7.example.net".into(),
        started_unix_ns: Some(1_772_719_629_000_000_000),
        power_scheme: Some("performance".into()),
        cpus: vec![cpu(0), cpu(1)],
    }
}

/// Two sockets, which are nodes too, of one core with two hardware threads each, the second a faster kind.
pub fn large_machine() -> SystemFacts {
    let cpu = |id: u32| {
        let socket = id / 2;
        CpuFacts { id, core: socket, node: socket, socket, efficiency_class: socket as u8 }
    };
    SystemFacts { cpus: (0..4).map(cpu).collect(), ..machine() }
}

/// Unbuffered 4 KiB random I/O for two seconds with a bucket a second; `-L -D` where requested.
pub fn span(targets: Vec<Target>, latency: bool, iops: bool) -> TimeSpan {
    TimeSpan { duration_s: 2, measure_latency: latency, iops_deviation: iops, targets, ..TimeSpan::new() }
}

pub fn target(path: &str, write_percent: u8) -> Target {
    Target {
        block_bytes: 4096,
        random_percent: 100,
        write_percent,
        cache: CacheMode::Unbuffered,
        write_through: true,
        threads: 2,
        outstanding: 8,
        create_bytes: Some(1 << 30),
        ..Target::new(path)
    }
}

/// A profile, the machine and the results, kept together.
pub struct Sample {
    pub command_line: String,
    pub profile: Profile,
    pub system: SystemFacts,
    pub phases: Vec<PhaseResult>,
}

impl Sample {
    pub fn report(&self) -> Report<'_> {
        Report {
            command_line: &self.command_line,
            profile: &self.profile,
            system: &self.system,
            phases: &self.phases,
        }
    }
}

/// One target, two threads, 70 % reads.
pub fn mixed(latency: bool, iops: bool) -> Sample {
    let load = Load { threads: 2, reads: 700, writes: 300, buckets: 2, bucket_ms: 1000, block_bytes: 4096 };
    let span = span(vec![target("/data/t.dat", 30)], latency, iops);
    Sample {
        command_line: "diskspd -c1G -d2 -b4K -r -w30 -t2 -o8 -Sh /data/t.dat".into(),
        profile: Profile { time_spans: vec![span], ..Profile::default() },
        system: machine(),
        phases: vec![phase(vec![result("/data/t.dat", 1 << 30, load)])],
    }
}

/// Only reads.
pub fn reads() -> Sample {
    let mut sample = mixed(true, true);
    let load = Load { threads: 2, reads: 500, writes: 0, buckets: 2, bucket_ms: 1000, block_bytes: 4096 };
    sample.profile.time_spans[0].targets[0].write_percent = 0;
    sample.phases = vec![phase(vec![result("/data/t.dat", 1 << 30, load)])];
    sample
}

/// Two timespans: two targets with threads of their own, then the same in a pool of two threads.
pub fn several() -> Sample {
    let load = Load { threads: 1, reads: 700, writes: 300, buckets: 2, bucket_ms: 1000, block_bytes: 4096 };
    let single = |path| Target { threads: 1, ..target(path, 30) };
    let own = span(vec![single("/data/a.dat"), single("/data/b.dat")], true, false);
    let pool = TimeSpan { threads_total: 2, outstanding_total: 16, ..own.clone() };
    let results = |threads| {
        let load = Load { threads, ..load };
        let writes = Load { reads: 200, writes: 600, ..load };
        let mut results =
            vec![result("/data/a.dat", 10 << 20, load), result("/data/b.dat", 2_048_000, writes)];
        results.iter_mut().for_each(|result| result.cores = cores());
        results
    };
    Sample {
        command_line: "diskspd -Xtwo.xml".into(),
        profile: Profile { time_spans: vec![own, pool], ..Profile::default() },
        system: large_machine(),
        phases: vec![phase(results(1)), phase(results(2))],
    }
}
