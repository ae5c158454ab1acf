use super::*;
use crate::command_line::{CommandLine, Source, parse};
use crate::rules::{self, Origin};
use crate::unsupported;

fn profile(line: &str) -> Profile {
    let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let Ok(CommandLine::Run(asked)) = parse(&args, &[]) else { panic!("{line}") };
    let Source::Flags(profile) = asked.source else { panic!("{line}") };
    rules::check(&profile, Origin::CommandLine).unwrap_or_else(|errors| panic!("{line}: {errors:?}"));
    profile
}

fn planned(line: &str) -> Planned {
    to_plan(&profile(line)).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn phase(line: &str) -> Phase {
    planned(line).plan.phases.remove(0)
}

fn workload(line: &str) -> Workload {
    phase(line).workloads.remove(0).workload
}

#[test]
fn the_bare_command_is_what_diskspd_does_unasked() {
    let Planned { plan, extras, notes } = planned("t");
    assert_eq!(plan.targets, [PlanTarget { path: "t".into(), ..PlanTarget::default() }]);
    let [phase] = &plan.phases[..] else { panic!("one phase") };
    let seconds = Duration::from_secs;
    assert_eq!(
        (phase.length.warm_up, phase.length.duration, phase.length.cool_down),
        (seconds(5), seconds(10), seconds(0))
    );
    assert_eq!((phase.length.ios_max, phase.slice, phase.pool), (None, seconds(1), None));
    let [Placed { target: 0, weight: 1, workload, replay: None }] = &phase.workloads[..] else {
        panic!("one workload")
    };
    let shape = Shape { caching: Caching::Buffered, ..Shape::sequential_read(65536) };
    let expected = Workload { outstanding: 2, content: workload::Content::Counting, ..Workload::from(shape) };
    assert_eq!(*workload, expected);
    assert_eq!(extras, [Extras { affinity: Affinity::RoundRobin, targets: vec![TargetExtras::default()] }]);
    assert_eq!(notes, [""; 0]);
}

#[test]
fn an_everyday_command_keeps_its_meaning() {
    let phase = phase("-b8K -Sh -L -D500 -t4 -o8 -r -w30 -d30 -W2 -C1 -z7 -B1M:1G -c2G t");
    let workload = &phase.workloads[0].workload;
    let shape = Shape { durability: Durability::WriteThrough, ..Shape::random_read(8192).with_writes(30) };
    assert_eq!((workload.shape, workload.threads, workload.outstanding, workload.seed), (shape, 4, 8, 7));
    assert_eq!((workload.access.base_bytes, workload.access.length_bytes), (1 << 20, Some(1 << 30)));
    assert_eq!((phase.slice, phase.length.total()), (Duration::from_millis(500), Duration::from_secs(33)));
    assert_eq!(planned("-c2G t").plan.targets[0].create_bytes, Some(2 << 30));
}

#[test]
fn threads_walk_as_they_are_told() {
    let walk = |line: &str| workload(line).access.walk;
    assert_eq!(walk("-t4 t"), Walk::Apart(0));
    assert_eq!(walk("-t4 -T1G t"), Walk::Apart(1 << 30));
    assert_eq!(walk("-F4 -T1G t"), Walk::Apart(1 << 30));
    assert_eq!(walk("-t4 -si t"), Walk::Shared);
    assert_eq!(walk("-t4 -rs50 t"), Walk::Apart(0));
    assert_eq!(walk("-t4 -p t"), Walk::Apart(0));
    for alone in ["t", "-si t", "-r -t4 t"] {
        assert_eq!(walk(alone), Walk::default(), "{alone}");
    }
    assert!(workload("-p t").access.same_offset);
}

#[test]
fn alignment_and_stride_are_those_of_the_order() {
    let sizes = |line: &str| {
        let access = workload(line).access;
        (access.align_bytes, access.stride_bytes, access.random_percent)
    };
    let other = Some(1 << 20);
    assert_eq!(sizes("t"), (None, None, None));
    assert_eq!(sizes("-r64K t"), (None, None, None));
    assert_eq!(sizes("-r1M t"), (other, None, None));
    assert_eq!(sizes("-s1M t"), (None, other, None));
    assert_eq!(sizes("-rs30 -r1M t"), (other, other, Some(30)));
    assert_eq!(sizes("-rs100 -r1M t"), (other, None, None));
    assert_eq!(workload("-rs1 t").shape.pattern, Pattern::Random);
}

#[test]
fn zones_are_the_ranges_and_an_open_end_is_left_to_the_rest() {
    let zones = |line: &str| match workload(line).access.distribution {
        workload::Distribution::Zones { zones } => zones,
        other => panic!("{other:?}"),
    };
    let percent = |ios_percent, of| Zone { ios_percent, extent: Extent::Percent(of) };
    let bytes = |ios_percent, of| Zone { ios_percent, extent: Extent::Bytes(of) };
    assert_eq!(
        zones("-r -rdpct90/10:0/10:5/20 t"),
        [percent(90, 10), percent(0, 10), percent(5, 20), percent(5, 60)]
    );
    assert_eq!(zones("-r -rdabs90/10G:0/10G t"), [bytes(90, 10 << 30), bytes(0, 10 << 30)]);
    assert_eq!(zones("-r -rdabs100/1G t"), [bytes(100, 1 << 30)]);
}

#[test]
fn limits_are_of_each_thread_and_do_not_wrap() {
    let limit = |line: &str| workload(line).limit;
    let bytes = |bytes_per_s| Limit { bytes_per_s: Some(bytes_per_s), iops: None };
    let iops = |iops| Limit { iops: Some(iops), bytes_per_s: None };
    assert_eq!(limit("t"), Limit::default());
    assert_eq!(limit("-g80 -t4 t"), bytes(320_000.0));
    assert_eq!(limit("-g100i -t4 t"), iops(400.0));
    assert_eq!(limit("-g100i -F3 t"), iops(300.0));
    // There 65,536 IOPS of 64 KiB are 2^32 bytes a second, and so no limit at all.
    assert_eq!(limit("-g65536i -b64K t"), iops(65536.0));
    assert_eq!(limit("-g4294967295 -t1024 t"), bytes(4_294_967_295_000.0 * 1024.0));
}

#[test]
fn bursts_are_shared_by_threads_and_give_way_to_limits() {
    let burst = |line: &str| workload(line).burst.map(|burst| (burst.ios, burst.pause.as_millis()));
    assert_eq!(burst("-i20 -j100 t"), Some((20, 100)));
    assert_eq!(burst("-i20 -j100 -t4 t"), Some((5, 100)));
    assert_eq!(burst("-i20 -j100 -F5 t"), Some((4, 100)));
    assert_eq!(burst("-i3 -j100 -t4 t"), Some((1, 100)));
    assert_eq!(burst("-i20 -j100 -g5 t"), None);
    assert!(planned("-i3 -j100 -t4 t").notes[0].contains("are 1 for each of 4 threads"));
    assert_eq!(planned("-i20 -j100 -t4 t").notes, [""; 0]);
}

#[test]
fn what_is_written_has_an_order_of_precedence() {
    use workload::Content::{Buffer, Counting, Fresh, Zeros};
    let content = |flags: &str| workload(&format!("-w100 {flags} t")).content;
    assert_eq!(content(""), Counting);
    assert_eq!(content("-Z"), Zeros);
    assert_eq!(content("-Zr"), Fresh);
    assert_eq!(content("-Zr -Z"), Zeros);
    assert_eq!(content("-Z1M"), Buffer { bytes: 1 << 20, file: None });
    assert_eq!(content("-Z1M,f -Z -Zr"), Buffer { bytes: 1 << 20, file: Some("f".into()) });
}

#[test]
fn caches_are_those_of_the_letters() {
    use Caching::{Buffered, Direct, Mapped};
    use Durability::{Cached, WriteThrough};
    for (flags, expected) in [
        ("", (Buffered, Cached)),
        ("-Sb", (Buffered, Cached)),
        ("-Sw", (Buffered, WriteThrough)),
        ("-Su", (Direct, Cached)),
        ("-Sh", (Direct, WriteThrough)),
        ("-Sr", (Buffered, Cached)),
        ("-Sm", (Mapped, Cached)),
        ("-Smw", (Mapped, WriteThrough)),
        ("-Sm -Nv", (Mapped, WriteThrough)),
    ] {
        let shape = workload(&format!("-w50 {flags} t")).shape;
        assert_eq!((shape.caching, shape.durability), expected, "{flags}");
    }
}

#[test]
fn threads_of_all_targets_are_a_pool() {
    let own = phase("-F4 -o8 -r a b");
    assert_eq!(own.pool, Some(Pool { threads: 4, outstanding: None }));
    assert_eq!((own.workloads[1].workload.threads, own.workloads[1].workload.outstanding), (4, 8));
    let shared = phase("-F4 -O16 -r a b");
    assert_eq!(shared.pool, Some(Pool { threads: 4, outstanding: Some(16) }));
    assert_eq!(
        shared.workloads.iter().map(|placed| (placed.target, placed.weight)).collect::<Vec<_>>(),
        [(0, 1), (1, 1)]
    );
    assert_eq!(phase("-O16 -r a").pool, None);
}

#[test]
fn no_two_threads_have_the_same_seed() {
    let seeds = |line: &str| -> Vec<u64> {
        phase(line).workloads.iter().map(|placed| placed.workload.seed).collect()
    };
    assert_eq!(seeds("-r -t4 -z10 a b c"), [10, 14, 18]);
    assert_eq!(seeds("-r -F4 -z10 a b"), [10, 10]);
    assert_eq!(seeds("-r -t2 -z4294967295 a b"), [4_294_967_295, 4_294_967_297]);
}

#[test]
fn what_workloads_cannot_say_stands_beside_them() {
    let extras = |line: &str| planned(line).extras.remove(0);
    assert_eq!(extras("-n t").affinity, Affinity::None);
    assert_eq!(extras("-ag t").affinity, Affinity::RoundRobin);
    assert_eq!(extras("-a4,2 t").affinity, Affinity::Cores(vec![4, 2]));
    let target = |line: &str| extras(line).targets[0];
    assert_eq!(target("-I1 t").priority.best_effort_level(), 7);
    assert_eq!(
        (target("-fr t").advice, target("-fs t").advice),
        (Some(Advice::Random), Some(Advice::Sequential))
    );
    assert_eq!((target("-frs t").advice, target("-fr -Su t").advice), (None, None));
    assert!(planned("-frs t").notes[0].contains("contradict"));
    assert!(planned("-fr -Su a").notes[0].contains("no effect"));
}

#[test]
fn time_spans_are_phases_and_a_path_is_one_target() {
    let mut profile = profile("-c1M a b");
    let mut second = profile.time_spans[0].clone();
    second.targets.remove(0);
    second.targets[0].create_bytes = Some(4 << 20);
    profile.time_spans.push(second);
    let Planned { plan, extras, notes } = to_plan(&profile).expect("a plan");
    let sizes: Vec<Option<u64>> = plan.targets.iter().map(|target| target.create_bytes).collect();
    assert_eq!(sizes, [Some(1 << 20), Some(4 << 20)]);
    assert_eq!((plan.phases.len(), extras.len(), plan.phases[1].workloads[0].target), (2, 2, 1));
    assert_eq!((plan.phases[0].name.as_str(), plan.phases[1].name.as_str()), ("timespan 1", "timespan 2"));
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert_eq!(planned("-c0 t").plan.targets[0].create_bytes, None);
}

#[test]
fn what_the_engine_cannot_do_is_refused_with_its_target() {
    for (line, why) in [
        ("-b1000 t", "multiple of 512"),
        ("-b32M t", "up to 16M"),
        ("-o20000 t", "outstanding"),
        ("-t2000 -r t", "threads"),
        ("-Su -r1000 t", "-r1000 with -Su"),
        ("-Su -s1000 t", "-s1000 with -Su"),
        ("-Su -B100 t", "-B100 with -Su"),
        ("-Su -T100 -t2 t", "-T100 with -Su"),
    ] {
        let error = to_plan(&profile(line)).expect_err(line).to_string();
        assert!(error.contains(why) && error.contains("'t'"), "{line}: {error}");
    }
    assert!(to_plan(&profile("-Sb -B100 -r1000 t")).is_ok());
}

mod any {
    use super::*;
    use proptest::prelude::*;

    fn flags() -> impl Strategy<Value = Vec<String>> {
        let flags = [
            "-b512",
            "-b8K",
            "-t3",
            "-F2",
            "-O4",
            "-o1",
            "-r",
            "-r4K",
            "-rs40",
            "-s8K",
            "-si",
            "-T1M",
            "-p",
            "-w50",
            "-rdpct90/10",
            "-rdabs90/1G:0/1G",
            "-Su",
            "-Sh",
            "-Sm",
            "-Nv",
            "-x",
            "-l",
            "-g9",
            "-g9i",
            "-i7",
            "-j7",
            "-Z",
            "-Zr",
            "-Z1M",
            "-B1M:1M",
            "-f9M",
            "-c4M",
            "-a0,1",
            "-n",
            "-D10",
            "-fr",
            "-fs",
            "-I1",
            "-z5",
            "-d1",
            "-ft",
        ];
        prop::collection::vec(prop::sample::select(flags.map(str::to_owned).to_vec()), 0..6)
    }

    proptest! {
        #[test]
        fn whatever_passes_the_rules_is_a_plan_that_can_be_run(mut args in flags(), targets in 1_usize..4) {
            args.extend(["a", "b", "c"][..targets].iter().map(|&path| path.to_owned()));
            if let Ok(CommandLine::Run(asked)) = parse(&args, &[])
                && let Source::Flags(mut profile) = asked.source
                && rules::check(&profile, Origin::CommandLine).is_ok()
            {
                unsupported::remove(&mut profile);
                let planned = to_plan(&profile).map_err(|error| TestCaseError::fail(format!("{args:?}: {error}")))?;
                prop_assert_eq!(planned.plan.targets.len(), targets);
                for phase in &planned.plan.phases {
                    for placed in &phase.workloads {
                        prop_assert_eq!(placed.workload.validate(), Ok(()));
                        prop_assert!(placed.target < targets);
                    }
                    prop_assert_eq!(phase.workloads.len(), planned.extras[0].targets.len());
                }
            }
        }
    }
}
