use super::*;
use crate::profile::{
    CacheMode, Content, Cpu, FlushMode, Order, Priority, SpanUnit, Target, Throughput, TimeSpan,
};
use crate::rules::{self, Origin};
use crate::unsupported;
use proptest::prelude::*;

const VALUED: [&str; 2] = ["--format", "--destroy-data"];

fn args(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn run_request(line: &str) -> RunRequest {
    match parse(&args(line), &VALUED) {
        Ok(CommandLine::Run(request)) => *request,
        other => panic!("{line}: {other:?}"),
    }
}

fn profile(line: &str) -> Profile {
    match run_request(line).source {
        Source::Flags(profile) => profile,
        xml @ Source::Xml { .. } => panic!("{line}: {xml:?}"),
    }
}

fn span(line: &str) -> TimeSpan {
    profile(line).time_spans.remove(0)
}

fn target(line: &str) -> Target {
    span(line).targets.remove(0)
}

fn why_refused(line: &str) -> String {
    match parse(&args(line), &VALUED) {
        Err(error) => error.to_string(),
        Ok(read) => panic!("{line} was taken: {read:?}"),
    }
}

#[test]
fn without_flags_the_defaults_hold() {
    assert_eq!(span("t"), TimeSpan { targets: vec![Target::new("t")], ..TimeSpan::new() });
    let two = span("-b4K a b");
    assert_eq!(
        two.targets.iter().map(|one| (one.path.as_str(), one.block_bytes)).collect::<Vec<_>>(),
        [("a", 4096), ("b", 4096)]
    );
}

/// Each flag changes exactly what it is for.
#[test]
fn every_flag_of_a_target_says_one_thing() {
    type Change = fn(&mut Target);
    let table: &[(&str, Change)] = &[
        ("-b8K", |target| target.block_bytes = 8192),
        ("-b8K -b4K", |target| target.block_bytes = 4096),
        ("-B2b -b8K", |target| (target.block_bytes, target.base_bytes) = (8192, 16384)),
        ("-B5m", |target| target.base_bytes = 5 << 20),
        ("-B5m:1m", |target| (target.base_bytes, target.end_bytes) = (5 << 20, Some(6 << 20))),
        ("-B5m -f6m", |target| (target.base_bytes, target.end_bytes) = (5 << 20, Some(6 << 20))),
        ("-f3T", |target| target.end_bytes = Some(3 << 40)),
        ("-fr", |target| target.hint_random = true),
        ("-fs", |target| target.hint_sequential = true),
        ("-ft", |target| target.hint_temporary = true),
        ("-fsr", |target| (target.hint_random, target.hint_sequential) = (true, true)),
        ("-c0", |target| target.create_bytes = Some(0)),
        ("-c23", |target| target.create_bytes = Some(23)),
        ("-c10b", |target| target.create_bytes = Some(655_360)),
        ("-g80", |target| target.throughput = Some(Throughput::BytesPerMs(80))),
        ("-g4294967295", |target| target.throughput = Some(Throughput::BytesPerMs(u32::MAX))),
        ("-g80i", |target| target.throughput = Some(Throughput::Iops(80))),
        ("-g80i -g90", |target| target.throughput = Some(Throughput::BytesPerMs(90))),
        ("-h", |target| (target.cache, target.write_through) = (CacheMode::Unbuffered, true)),
        ("-i20", |target| target.burst_ios = 20),
        ("-j100", |target| target.think_time_ms = 100),
        ("-I1", |target| target.priority = Priority::VeryLow),
        ("-I2", |target| target.priority = Priority::Low),
        ("-I3", |_| {}),
        ("-l", |target| target.large_pages = true),
        ("-Nv", |target| target.flush = Some(FlushMode::ViewOfFile)),
        ("-NN", |target| target.flush = Some(FlushMode::NonVolatileMemory)),
        ("-Ni", |target| target.flush = Some(FlushMode::NonVolatileMemoryNoDrain)),
        ("-o123", |target| target.outstanding = 123),
        ("-p", |target| target.same_offset = true),
        ("-r", |target| target.random_percent = 100),
        ("-r64K", |target| target.random_percent = 100),
        ("-r4K", |target| (target.random_percent, target.align_bytes) = (100, Some(4096))),
        ("-r2b -b4K", |target| {
            (target.block_bytes, target.random_percent, target.align_bytes) = (4096, 100, Some(8192));
        }),
        ("-rs70", |target| target.random_percent = 70),
        ("-rs70 -r8K", |target| (target.random_percent, target.align_bytes) = (70, Some(8192))),
        ("-r8K -rs70", |target| (target.random_percent, target.align_bytes) = (70, Some(8192))),
        ("-rs100 -r8K", |target| (target.random_percent, target.align_bytes) = (100, Some(8192))),
        ("-s", |_| {}),
        ("-s0", |_| {}),
        ("-s64K", |_| {}),
        ("-s567K", |target| target.align_bytes = Some(567 << 10)),
        ("-si", |target| target.interlocked = true),
        ("-si1M", |target| (target.interlocked, target.align_bytes) = (true, Some(1 << 20))),
        ("-S", |target| target.cache = CacheMode::Unbuffered),
        ("-Sb", |_| {}),
        ("-Sh", |target| (target.cache, target.write_through) = (CacheMode::Unbuffered, true)),
        ("-Su -Sw", |target| (target.cache, target.write_through) = (CacheMode::Unbuffered, true)),
        ("-Sm", |target| target.mapped = true),
        ("-Sr", |target| target.cache = CacheMode::RemoteOnly),
        ("-t23", |target| target.threads = 23),
        ("-T512K", |target| target.thread_stride_bytes = 512 << 10),
        ("-w0", |_| {}),
        ("-w100", |target| target.write_percent = 100),
        ("-Z", |target| target.content = Content::Zero),
        ("-Z2M", |target| target.content = Content::Buffer { bytes: 2 << 20, file: None }),
        ("-Z2M -Z", |target| target.content = Content::Buffer { bytes: 2 << 20, file: None }),
        ("-Z -Z2M", |target| target.content = Content::Buffer { bytes: 2 << 20, file: None }),
        ("-Z3M,/x/a,b", |target| {
            target.content = Content::Buffer { bytes: 3 << 20, file: Some("/x/a,b".into()) };
        }),
    ];
    for (flags, change) in table {
        let mut expected = Target::new("t");
        change(&mut expected);
        assert_eq!(target(&format!("{flags} t")), expected, "{flags}");
    }
}

#[test]
fn every_flag_of_a_time_span_says_one_thing() {
    type Change = fn(&mut TimeSpan);
    let cpu = |processor| Cpu { group: 0, processor };
    assert_eq!(span("-a1,4 -a6 t").affinity, [cpu(1), cpu(4), cpu(6)]);
    let table: &[(&str, Change)] = &[
        ("-a", |_| {}),
        ("-ag", |_| {}),
        ("-ag1,2", |span| span.affinity = vec![Cpu { group: 1, processor: 2 }]),
        ("-C12", |span| span.cool_down_s = 12),
        ("-d30", |span| span.duration_s = 30),
        ("-d30 -d40", |span| span.duration_s = 40),
        ("-W0", |span| span.warm_up_s = 0),
        ("-D", |span| span.iops_deviation = true),
        ("-D0", |span| span.iops_deviation = true),
        ("-D250", |span| (span.iops_deviation, span.bucket_ms) = (true, 250)),
        ("-F8", |span| span.threads_total = 8),
        ("-O16", |span| span.outstanding_total = 16),
        ("-L", |span| span.measure_latency = true),
        ("-n", |span| span.disable_affinity = true),
        ("-x", |span| span.completion_routines = true),
        ("-z4294967295", |span| span.seed = u32::MAX),
        ("-Zr", |span| span.random_write_data = true),
    ];
    for (flags, change) in table {
        let mut expected = TimeSpan { targets: vec![Target::new("t")], ..TimeSpan::new() };
        change(&mut expected);
        assert_eq!(span(&format!("{flags} t")), expected, "{flags}");
    }
}

#[test]
fn every_flag_of_a_profile_says_one_thing() {
    assert_eq!(profile("-P t").progress, 65536);
    assert_eq!(profile("-P0 t").progress, 65536);
    assert_eq!(profile("-P345 t").progress, 345);
    assert_eq!(profile("t").progress, 0);
    assert_eq!(profile("-:3 t").experiment_flags, 3);
    assert_eq!((profile("-v t").verbose, profile("-v t").verbose_stats), (true, false));
    assert_eq!((profile("-vs t").verbose, profile("-vs t").verbose_stats), (false, true));
    for (flag, form, only) in [
        ("-Rtext", ResultFormat::Text, false),
        ("-Rxml", ResultFormat::Xml, false),
        ("-Rp", ResultFormat::Text, true),
        ("-Rptext", ResultFormat::Text, true),
        ("-Rpxml", ResultFormat::Xml, true),
        ("-Rxml -Rp", ResultFormat::Xml, true),
    ] {
        let line = format!("{flag} t");
        assert_eq!(
            (profile(&line).result_format, run_request(&line).common.profile_only),
            (form, only),
            "{flag}"
        );
    }
}

#[test]
fn a_bare_seed_is_that_of_the_clock() {
    let asked = run_request("-z t");
    assert_eq!(asked.common.seed, Some(Seed::Clock));
    let Source::Flags(mut profile) = asked.source else { panic!("flags") };
    asked.common.apply(&mut profile, 77);
    assert_eq!(profile.time_spans[0].seed, 77);
}

#[test]
fn distributions_need_no_order_of_flags() {
    for line in ["-rdpct90/10 -rs50 -r8k t", "-r8k -rs50 -rdpct90/10 t"] {
        let target = target(line);
        assert_eq!(
            (target.order(), target.random_percent, target.align_bytes),
            (Order::Mixed, 50, Some(8192))
        );
        let distribution = target.distribution.expect(line);
        assert_eq!((distribution.unit, distribution.ranges.len()), (SpanUnit::Percent, 2), "{line}");
    }
    let blocks = target("-rdabs90/4b -r -b4K t").distribution.expect("a distribution");
    assert_eq!((blocks.unit, blocks.ranges[0].span), (SpanUnit::Bytes, 16384));
}

#[test]
fn what_is_no_value_is_refused_and_the_flag_named() {
    for flag in [
        "-",
        "-q",
        "-A",
        "-ä",
        "-b",
        "-b0",
        "-b4G",
        "-b8Kx",
        "-b-8",
        "-B",
        "-B5m:",
        "-B5m:0",
        "-B5mx",
        "-B5m:1mx",
        "-B5m:j",
        "-c",
        "-cK",
        "-C",
        "-C-1",
        "-d",
        "-d1.5",
        "-d10s",
        "-D-1",
        "-Dx",
        "-e",
        "-eFOO",
        "-f",
        "-f0",
        "-fx",
        "-frx",
        "-f1x",
        "-F",
        "-F0",
        "-F4x",
        "-g",
        "-g0",
        "-g0i",
        "-gi",
        "-gi100",
        "-g100x",
        "-g5000000000",
        "-hx",
        "-i",
        "-i0",
        "-I",
        "-I0",
        "-I4",
        "-I1x",
        "-j",
        "-j0",
        "-lx",
        "-Lx",
        "-nx",
        "-N",
        "-Nx",
        "-Nvn",
        "-o",
        "-o0",
        "-O",
        "-O0",
        "-px",
        "-Px",
        "-r0",
        "-rx",
        "-rs",
        "-rs0",
        "-rs101",
        "-rs5x",
        "-rd",
        "-rdpct",
        "-rdfoo10/10",
        "-R",
        "-Rhtml",
        "-Rpp",
        "-Rpfoo",
        "-sx",
        "-six",
        "-Sx",
        "-Sbb",
        "-t",
        "-t0",
        "-t4x",
        "-T",
        "-T0",
        "-vv",
        "-vsx",
        "-w",
        "-w101",
        "-w-1",
        "-w5%",
        "-W",
        "-W5s",
        "-xx",
        "-X",
        "-y",
        "-ys",
        "-yxfoo",
        "-z-1",
        "-z1x",
        "-z4294967296",
        "-Z0",
        "-ZM",
        "-Z1Mx",
        "-Z,file",
        "-Z1M,",
        "-:",
        "-:x",
        "-a1,",
        "-ax",
        "-ag0",
    ] {
        let why = why_refused(&format!("{flag} t"));
        assert!(why.starts_with(&format!("{flag}: ")), "{flag}: {why}");
    }
}

#[test]
fn flags_that_contradict_what_was_said_are_refused() {
    for line in [
        "-B5m -B5m t",
        "-B5m:1m -B5m t",
        "-B5m:1m -f6m t",
        "-f6m -B5m:1m t",
        "-f5m -f6m t",
        "-S -Su t",
        "-Sb -h t",
        "-h -Sb t",
        "-Sm -h t",
        "-Suw -h t",
        "-r -r t",
        "-r8k -r t",
        "-r -s t",
        "-s -r t",
        "-s4k -r8k t",
        "-s -rs50 t",
        "-rs50 -s t",
        "-rs50 -rs60 t",
        "-rs50 -r -r t",
        "-si -rs5 t",
        "-si -r t",
        "-s -s t",
        "-s -si t",
    ] {
        why_refused(line);
    }
    assert!(why_refused("-rs50 -s t").contains("-rs70 -r8K"));
}

/// The rules between flags are tested where they stand; here, that they are reached from flags.
#[test]
fn flags_meet_the_rules() {
    let check = |line: &str| rules::check(&profile(line), Origin::CommandLine);
    for (line, what) in [
        ("-n -a1 t", "-n with -a"),
        ("-F2 -t2 -si t", "-F2 with -t2"),
        ("-g1 -x t", "-g with -x"),
        ("-i5 t", "-i without -j"),
        ("-j5 t", "-j without -i"),
        ("-F2 -O2 -r -g5 t", "-g with -F2 -O2"),
        ("-T1M t", "-T with one thread"),
        ("-T1M -r -t2 t", "-T with -r"),
        ("-p -r t", "-p with -r"),
        ("-rdpct90/10 t", "-rd"),
        ("-rdabs10/10 -r t", "-rdabs"),
        ("-si -T1M -t2 t", "-si with -T"),
        ("-Z4K t", "-Z"),
        ("-x -Sm t", "-x with -Sm"),
        ("-Nv t", "-N"),
        ("-B1M -f1M t", "-f"),
        ("-d0 t", "-d0"),
    ] {
        let errors = check(line).expect_err(line);
        assert_eq!(errors.iter().map(|error| error.what.as_str()).collect::<Vec<_>>(), [what], "{line}");
    }
    assert_eq!(check("-b8K -Sh -L -t4 -o8 -r -w30 -d30 a b"), Ok(vec![]));
}

#[test]
fn what_linux_lacks_is_listed_by_name() {
    let flags = |line: &str| -> Vec<String> {
        let asked = run_request(line);
        let Source::Flags(profile) = asked.source else { panic!("{line}") };
        asked.unsupported.into_iter().chain(unsupported::list(&profile)).map(|one| one.what).collect()
    };
    for (line, expected) in [
        ("-x t", "-x"),
        ("-ft a b", "-ft"),
        ("-Sr t", "-Sr"),
        ("-Sm -Nn t", "-Nn"),
        ("-Sm -Ni t", "-Ni"),
        ("-ag1,2 t", "-ag1,2"),
        ("-eDISK_IO t", "-eDISK_IO"),
        ("-ep t", "-ep"),
        ("-ysgo t", "-ysgo"),
        ("-yestop t", "-yestop"),
    ] {
        assert_eq!(flags(line), [expected], "{line}");
    }
    assert_eq!(flags("-Sm -Nv -ag0,1 -frs -I1 -l -:1 -P -v t"), [""; 0]);
    let mut profile = profile("-x -ft -Sr -ag1,2 t");
    unsupported::remove(&mut profile);
    assert_eq!((unsupported::list(&profile), profile), (vec![], self::profile("t")));
}

#[test]
fn a_profile_composes_with_little() {
    let asked = run_request("-d60 -Xprof.xml -W1 -C2 -Rpxml -v -z5 -:1 first.bin second.bin");
    let targets = vec!["first.bin".to_owned(), "second.bin".to_owned()];
    assert_eq!(asked.source, Source::Xml { path: "prof.xml".into(), targets });
    let mut profile = Profile { time_spans: vec![TimeSpan::new(); 2], ..Profile::default() };
    asked.common.apply(&mut profile, 0);
    for span in &profile.time_spans {
        assert_eq!((span.duration_s, span.warm_up_s, span.cool_down_s, span.seed), (60, 1, 2, 5));
    }
    assert!(profile.verbose && asked.common.profile_only && profile.result_format == ResultFormat::Xml);
    for flag in ["-b4K", "-t2", "-L", "-r", "-w5", "-P", "-ysgo", "-eq", "-a"] {
        assert!(why_refused(&format!("{flag} -Xp.xml")).contains(flag));
        assert!(why_refused(&format!("-Xp.xml {flag}")).contains(flag));
    }
    assert!(why_refused("-Xa -Xb").contains("second profile"));
}

#[test]
fn flags_come_before_targets_and_ours_anywhere() {
    assert!(why_refused("t -d5").contains("before targets"));
    let asked = run_request("--json -d5 --format 2.0.17 t --destroy-data=/dev/x --destroy-data /dev/y u");
    let ours = ["--json", "--format", "2.0.17", "--destroy-data=/dev/x", "--destroy-data", "/dev/y"];
    assert_eq!(asked.ours, ours);
    let paths: Vec<String> = span("-d5 --json t u").targets.into_iter().map(|target| target.path).collect();
    assert_eq!(paths, ["t", "u"]);
    let dashed: Vec<String> = span("-d5 -- -t4 --x").targets.into_iter().map(|target| target.path).collect();
    assert_eq!(dashed, ["-t4", "--x"]);
    assert!(why_refused("t --format").contains("value is missing"));
    assert!(why_refused("-d5").contains("no target"));
    assert_eq!(parse(&args("-b4K /? x"), &VALUED), Ok(CommandLine::Usage));
    assert_eq!(parse(&args("-?"), &VALUED), Ok(CommandLine::Usage));
    assert_eq!(parse(&args("--help"), &VALUED), Ok(CommandLine::Usage));
}

#[test]
fn a_slash_begins_a_path_and_no_flag() {
    for path in
        ["/data", "/srv", "/run", "/dev/sda", "/tmp", "/mnt/b8K", "/opt", "/var", "//b8K", "/Xfoo", "/boot"]
    {
        assert_eq!(target(path).path, path);
    }
    for switch in ["/b8K", "/Sh", "/t4", "/L", "/r", "/si", "/d10", "/w30", "/Rxml", "/fr"] {
        let why = why_refused(&format!("{switch} t"));
        assert!(why.contains(&format!("write -{}", &switch[1..])), "{why}");
    }
    assert_eq!(span("a /b8K").targets[1].path, "/b8K");
    for (windows, instead) in [("#1", "/dev/"), ("c:", "block device"), ("D:", "block device")] {
        assert!(why_refused(windows).contains(instead));
    }
    for fine in ["./#1", "#1a", "#", "c:x", "cc:", "1:"] {
        assert_eq!(target(fine).path, fine);
    }
}

fn argument() -> impl Strategy<Value = String> {
    let letter =
        prop::sample::select("?:abBcCdDefFghiIjlLnNoOpPrRsStTvwWxXyzZ-/#".chars().collect::<Vec<_>>());
    let value = prop_oneof![
        "[0-9]{0,22}[kKmMgGtTbBix:/,]{0,2}",
        "(s|d|i|g)?(pct|abs)?([0-9]{1,4}/[0-9]{1,4}[KG]?:?){0,3}",
        "[bhmruwdgsvnip]{0,4}",
        ".{0,8}",
    ];
    prop_oneof![4 => (letter, value).prop_map(|(letter, value)| format!("-{letter}{value}")), 1 => ".{0,12}"]
}

proptest! {
    #[test]
    fn no_arguments_make_the_parser_panic(args in prop::collection::vec(argument(), 0..8)) {
        if let Ok(CommandLine::Run(asked)) = parse(&args, &VALUED)
            && let Source::Flags(mut profile) = asked.source
        {
            let _ = (rules::check(&profile, Origin::CommandLine), unsupported::list(&profile));
            unsupported::remove(&mut profile);
            prop_assert_eq!(unsupported::list(&profile), vec![]);
        }
    }

    #[test]
    fn sizes_are_their_number_times_their_suffix(number in 0_u64..1 << 24, suffix in 0_usize..5) {
        let line = format!("-c{number}{} t", ["", "K", "M", "G", "T"][suffix]);
        prop_assert_eq!(target(&line).create_bytes, number.checked_shl(10 * suffix as u32));
    }
}
