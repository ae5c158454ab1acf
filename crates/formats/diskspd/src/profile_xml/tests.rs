use super::*;
use crate::profile::{
    CacheMode, Content, Cpu, Distribution, FlushMode, Precreate, Priority, Range, ResultFormat, SpanUnit,
    Target, ThreadTarget, Throughput, TimeSpan,
};
use crate::rules::{self, Origin};
use proptest::prelude::*;

fn within(target: &str) -> String {
    format!(
        "<Profile>\n<TimeSpans>\n<TimeSpan>\n<Targets>\n<Target>\n{target}\n</Target>\n</Targets>\n</TimeSpan>\n</TimeSpans>\n</Profile>"
    )
}

fn target(xml: &str) -> Target {
    let read = read(&within(&format!("<Path>t</Path>{xml}")), &[]);
    read.unwrap_or_else(|error| panic!("{xml}: {error}")).profile.time_spans.remove(0).targets.remove(0)
}

fn refused(xml: &str) -> String {
    match read(xml, &[]) {
        Err(error) => error.to_string(),
        Ok(read) => panic!("{xml} was read: {read:?}"),
    }
}

#[test]
fn a_target_with_a_path_alone_has_the_defaults() {
    assert_eq!(target(""), Target::new("t"));
}

#[test]
fn every_element_of_a_target_says_one_thing() {
    type Change = fn(&mut Target);
    let table: &[(&str, Change)] = &[
        ("<BlockSize>8192</BlockSize>", |target| target.block_bytes = 8192),
        ("<StrideSize>65536</StrideSize>", |_| {}),
        ("<StrideSize>4096</StrideSize>", |target| target.align_bytes = Some(4096)),
        ("<InterlockedSequential>true</InterlockedSequential>", |target| target.interlocked = true),
        ("<BaseFileOffset>512</BaseFileOffset>", |target| target.base_bytes = 512),
        ("<SequentialScan>1</SequentialScan>", |target| target.hint_sequential = true),
        ("<RandomAccess>true</RandomAccess>", |target| target.hint_random = true),
        ("<TemporaryFile>true</TemporaryFile>", |target| target.hint_temporary = true),
        ("<UseLargePages>true</UseLargePages>", |target| target.large_pages = true),
        ("<RequestCount> 32 </RequestCount>", |target| target.outstanding = 32),
        ("<Random>4096</Random>", |target| (target.random_percent, target.align_bytes) = (100, Some(4096))),
        ("<Random>65536</Random><RandomRatio>70</RandomRatio>", |target| target.random_percent = 70),
        ("<RandomRatio>70</RandomRatio>", |target| target.random_percent = 70),
        ("<DisableOSCache>true</DisableOSCache>", |target| target.cache = CacheMode::Unbuffered),
        ("<DisableOSCache>false</DisableOSCache>", |_| {}),
        ("<DisableAllCache>true</DisableAllCache>", |target| {
            (target.cache, target.write_through) = (CacheMode::Unbuffered, true);
        }),
        ("<DisableLocalCache>true</DisableLocalCache>", |target| target.cache = CacheMode::RemoteOnly),
        ("<WriteThrough>true</WriteThrough>", |target| target.write_through = true),
        ("<MemoryMappedIo>true</MemoryMappedIo>", |target| target.mapped = true),
        ("<FlushType>ViewOfFile</FlushType>", |target| target.flush = Some(FlushMode::ViewOfFile)),
        ("<WriteBufferContent><Pattern>zero</Pattern></WriteBufferContent>", |target| {
            target.content = Content::Zero;
        }),
        ("<WriteBufferContent><Pattern>random</Pattern></WriteBufferContent>", |_| {}),
        (
            "<WriteBufferContent><Pattern>random</Pattern><RandomDataSource><SizeInBytes>9</SizeInBytes>\
             <FilePath>a &amp; b</FilePath></RandomDataSource></WriteBufferContent>",
            |target| target.content = Content::Buffer { bytes: 9, file: Some("a & b".into()) },
        ),
        ("<BurstSize>3</BurstSize><ThinkTime>4</ThinkTime>", |target| {
            (target.burst_ios, target.think_time_ms) = (3, 4);
        }),
        ("<Throughput>80</Throughput>", |target| target.throughput = Some(Throughput::BytesPerMs(80))),
        ("<Throughput unit=\"BPMS\">0</Throughput>", |_| {}),
        ("<Throughput unit='IOPS'>80</Throughput>", |target| target.throughput = Some(Throughput::Iops(80))),
        ("<ThreadsPerFile>4</ThreadsPerFile>", |target| target.threads = 4),
        ("<FileSize>0</FileSize>", |target| target.create_bytes = Some(0)),
        ("<MaxFileSize>0</MaxFileSize>", |_| {}),
        ("<MaxFileSize>1024</MaxFileSize>", |target| target.end_bytes = Some(1024)),
        ("<WriteRatio>30</WriteRatio>", |target| target.write_percent = 30),
        ("<ParallelAsyncIO>true</ParallelAsyncIO>", |target| target.same_offset = true),
        ("<ThreadStride>1048576</ThreadStride>", |target| target.thread_stride_bytes = 1 << 20),
        ("<IOPriority>1</IOPriority>", |target| target.priority = Priority::VeryLow),
        ("<Weight>7</Weight>", |target| target.weight = 7),
        (
            "<ThreadTargets><ThreadTarget><Thread>1</Thread><Weight>2</Weight></ThreadTarget></ThreadTargets>",
            |target| target.thread_targets = vec![ThreadTarget { thread: 1, weight: Some(2) }],
        ),
        (
            "<Random>65536</Random><Distribution><Percent><Range IO=\"90\">10</Range></Percent></Distribution>",
            |target| {
                target.random_percent = 100;
                let ranges = vec![Range { ios_percent: 90, span: 10 }];
                target.distribution = Some(Distribution::new(SpanUnit::Percent, ranges));
            },
        ),
    ];
    for (xml, change) in table {
        let mut expected = Target::new("t");
        change(&mut expected);
        assert_eq!(target(xml), expected, "{xml}");
    }
}

#[test]
fn a_profile_of_windows_is_read_with_its_several_time_spans() {
    let xml = "\u{feff}<?xml version=\"1.0\"?>\r\n<!-- two spans -->\r\n<Profile>\r\n  <Progress>5</Progress>\r\n\
        <ResultFormat>xml</ResultFormat><Verbose>true</Verbose><PrecreateFiles>UseMaxSize</PrecreateFiles>\
        <ETW><DiskIO>true</DiskIO></ETW><TimeSpans><TimeSpan><Duration>1</Duration><Warmup>2</Warmup>\
        <Cooldown>3</Cooldown><RandSeed>4</RandSeed><ThreadCount>2</ThreadCount><RequestCount>8</RequestCount>\
        <MeasureLatency>true</MeasureLatency><CalculateIopsStdDev>true</CalculateIopsStdDev>\
        <IoBucketDuration>250</IoBucketDuration><RandomWriteData>true</RandomWriteData>\
        <GroupAffinity>true</GroupAffinity><Affinity><AffinityAssignment>3</AffinityAssignment></Affinity>\
        <Targets><Target><Path>*1</Path></Target><Target><Path>fixed</Path></Target></Targets></TimeSpan>\
        <TimeSpan><Affinity><AffinityGroupAssignment Group=\"1\" Processor=\"2\"/></Affinity>\
        <Targets><Target><Path>*2</Path></Target></Targets></TimeSpan></TimeSpans></Profile>\r\n";
    let names = ["a".to_owned(), "b".to_owned()];
    let ProfileRead { profile, unsupported } = read(xml, &names).expect("a profile");
    assert_eq!((profile.progress, profile.result_format, profile.verbose), (5, ResultFormat::Xml, true));
    assert_eq!((profile.precreate, unsupported.len()), (Precreate::UseMaxSize, 1));
    let [first, second] = &profile.time_spans[..] else { panic!("two time spans") };
    assert_eq!((first.duration_s, first.warm_up_s, first.cool_down_s, first.seed), (1, 2, 3, 4));
    assert_eq!((first.threads_total, first.outstanding_total, first.bucket_ms), (2, 8, 250));
    assert!(first.measure_latency && first.iops_deviation && first.random_write_data);
    assert_eq!(first.affinity, [Cpu { group: 0, processor: 3 }]);
    assert_eq!(second.affinity, [Cpu { group: 1, processor: 2 }]);
    let paths: Vec<&str> =
        profile.time_spans.iter().flat_map(|span| &span.targets).map(|one| one.path.as_str()).collect();
    assert_eq!(paths, ["a", "fixed", "b"]);
    let result =
        format!("<Results><System><ComputerName>x</ComputerName></System>{}</Results>", write(&profile));
    assert_eq!(read(&result, &[]).expect("the profile of a result").profile, profile);
}

#[test]
fn templates_are_filled_from_the_command_line_and_all_of_it_is_used() {
    let xml = within("<Path>*1</Path>");
    let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let left = read(&xml, &[]).expect("shown").profile;
    assert!(left.time_spans[0].targets[0].is_template());
    assert!(rules::check_no_templates(&left).is_err());
    let filled = read(&xml, &names(&["a"])).expect("filled").profile;
    assert!(rules::check_no_templates(&filled).is_ok());
    let unused = read(&xml, &names(&["a", "b"])).expect_err("unused").to_string();
    assert!(unused.contains("'b' stands for *2"), "{unused}");
    let missing = read(&within("<Path>*2</Path>"), &names(&["a"])).expect_err("missing").to_string();
    assert!(
        missing.contains("no target stands for *2") && missing.starts_with("line 6, <Path>"),
        "{missing}"
    );
    for wrong in ["*", "*0", "*x", "*-1", "*1x", "*99999999999999999999999"] {
        refused(&within(&format!("<Path>{wrong}</Path>")));
    }
}

#[test]
fn errors_name_line_element_and_reason() {
    for (xml, error) in [
        ("", "line 1, <Profile>: there is no element"),
        ("<Profil/>", "line 1, <Profil>: a profile begins with <Profile>"),
        ("<Profile/>", "line 1, <Profile>: no <TimeSpan>; give <TimeSpans> with at least one"),
        ("<Results/>", "line 1, <Results>: the result carries no <Profile>"),
        ("<Profile>\n<Foo/></Profile>", "line 2, <Foo>: <Profile> has no such element"),
        (
            "<Profile>\n<Verbose>yes</Verbose></Profile>",
            "line 2, <Verbose>: 'yes': give one of true, false, 1, 0",
        ),
        (
            "<Profile>\n<Progress>-1</Progress></Profile>",
            "line 2, <Progress>: '-1': give a whole number of at least 0, below 2^32",
        ),
        (
            "<Profile>\n\n<Progress>1</Progress>\n<Progress>1</Progress></Profile>",
            "line 4, <Progress>: it stands twice in <Profile>; give it once",
        ),
        ("<Profile>x</Profile>", "line 1, <Profile>: it holds elements, and no text as 'x'"),
        (
            "<Profile>\n<Progress>&foo;</Progress></Profile>",
            "line 2, <Progress>: &foo; stands for nothing; write &amp; for an &",
        ),
        ("<!DOCTYPE x><Profile/>", "line 1, <Profile>: a profile has no DOCTYPE; leave it out"),
        ("<Profile>\n<TimeSpans>", "line 2, <TimeSpans>: it does not end"),
    ] {
        assert_eq!(refused(xml), error);
    }
    for (xml, error) in [
        ("", "line 5, <Target>: no <Path>"),
        ("<Path/>", "line 6, <Path>: it is empty"),
        (
            "<Path>t</Path>\n<BlockSize>0</BlockSize>",
            "line 7, <BlockSize>: a block has 1 byte to just under 4 GiB",
        ),
        ("<Path>t</Path><WriteRatio>101</WriteRatio>", "line 6, <WriteRatio>: '101': give 0 to 100"),
        ("<Path>t</Path><RandomRatio>100</RandomRatio>", "line 6, <RandomRatio>: '100': give 1 to 99"),
        ("<Path>t</Path><IOPriority>0</IOPriority>", "line 6, <IOPriority>: '0': give one of 1, 2, 3"),
        (
            "<Path>t</Path><Throughput unit='x'>1</Throughput>",
            "line 6, <Throughput>: unit 'x': give BPMS or IOPS",
        ),
        (
            "<Path>t</Path><FileSize>18446744073709551616</FileSize>",
            "line 6, <FileSize>: '18446744073709551616': give a whole number of at least 0, below 2^64",
        ),
        (
            "<Path>t</Path>\n<Random>1</Random>\n<StrideSize>1</StrideSize>",
            "line 8, <StrideSize>: sequential I/O contradicts <Random> and <RandomRatio>; leave one out",
        ),
        ("<Path>t</Path><Distribution/>", "line 6, <Distribution>: give either <Percent> or <Absolute>"),
        (
            "<Path>t</Path><Distribution><Percent><Range>5</Range></Percent></Distribution>",
            "line 6, <Range>: the attribute IO is missing",
        ),
        (
            "<Path>t</Path><Distribution><Percent><Range IO=\"5\">0</Range></Percent></Distribution>",
            "line 6, <Range>: 0 % of the target: give 1 to 100",
        ),
        ("<Path>t</Path><WriteBufferContent/>", "line 6, <WriteBufferContent>: <Pattern> is missing"),
    ] {
        assert_eq!(refused(&within(xml)), error, "{xml}");
    }
    assert!(refused("<Profile>\n</Wrong>").starts_with("line 2, <Profile>: this is no XML: "));
    assert!(refused(&"<Profile>".repeat(100)).contains("more elements"));
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-zA-Z0-9/._ -]{1,20}", 1 => "[^*\u{0}\u{fffe}\u{ffff}].{0,11}"]
        .prop_filter("no template", |text| !text.starts_with('*') && !text.contains('\u{0}'))
}

fn distribution() -> impl Strategy<Value = Distribution> {
    let percent = (1_u8..=99, 1_u64..=99).prop_map(|(ios_percent, span)| {
        Distribution::new(SpanUnit::Percent, vec![Range { ios_percent, span }])
    });
    let bytes = prop::collection::vec((0_u8..=30, 1_u64..1 << 50), 1..4).prop_map(|list| {
        let ranges = list.into_iter().map(|(ios_percent, span)| Range { ios_percent, span }).collect();
        Distribution::new(SpanUnit::Bytes, ranges)
    });
    prop_oneof![percent, bytes]
}

prop_compose! {
    fn any_target()(
        path in text(),
        (block_bytes, base_bytes, end_bytes, create_bytes) in
            (1_u32..u32::MAX, any::<u64>(), prop::option::of(1..u64::MAX), any::<Option<u64>>()),
        (outstanding, threads, weight, write_percent, random_percent) in
            (any::<u32>(), any::<u32>(), any::<u32>(), 0_u8..=100, 0_u8..=100),
        thread_targets in prop::collection::vec((any::<u32>(), prop::option::of(1..u32::MAX)), 0..3),
        align_bytes in prop::option::of(1..u64::MAX),
        ranges in prop::option::of(distribution()),
        (interlocked, same_offset, thread_stride_bytes) in any::<(bool, bool, u64)>(),
        throughput in prop::option::of((1..u32::MAX, any::<bool>())),
        (burst_ios, think_time_ms) in any::<(u32, u32)>(),
        (cache, write_through, mapped, flush) in (0_usize..3, any::<bool>(), any::<bool>(), 0_usize..4),
        content in prop_oneof![
            Just(Content::Counting),
            Just(Content::Zero),
            (1..u64::MAX, prop::option::of(text())).prop_map(|(bytes, file)| Content::Buffer { bytes, file }),
        ],
        (hint_random, hint_sequential, hint_temporary, large_pages) in any::<(bool, bool, bool, bool)>(),
        priority in prop::sample::select(vec![Priority::VeryLow, Priority::Low, Priority::Normal]),
    ) -> Target {
        Target {
            path, block_bytes, base_bytes, end_bytes, create_bytes, outstanding, threads, weight, write_percent,
            random_percent, thread_stride_bytes, burst_ios, think_time_ms, write_through, mapped,
            content, hint_random, hint_sequential, hint_temporary, large_pages, priority, same_offset,
            thread_targets: thread_targets.into_iter().map(|(thread, weight)| ThreadTarget { thread, weight }).collect(),
            align_bytes: align_bytes.filter(|align| *align != u64::from(block_bytes)),
            // Of random I/O a profile says where it gathers, of sequential I/O whether threads share it.
            distribution: ranges.filter(|_| random_percent > 0),
            interlocked: interlocked && random_percent == 0,
            throughput: throughput.map(|(value, iops)| {
                if iops { Throughput::Iops(value) } else { Throughput::BytesPerMs(value) }
            }),
            cache: [CacheMode::Cached, CacheMode::Unbuffered, CacheMode::RemoteOnly][cache],
            flush: read::FLUSH.get(flush).map(|(_, flush)| *flush),
        }
    }
}

prop_compose! {
    fn any_span()(
        (duration_s, warm_up_s, cool_down_s, seed) in any::<(u32, u32, u32, u32)>(),
        (threads_total, outstanding_total, bucket_ms) in any::<(u32, u32, u32)>(),
        affinity in prop::collection::vec((any::<u16>(), any::<u32>()), 0..4),
        (disable_affinity, completion_routines, measure_latency) in any::<(bool, bool, bool)>(),
        (iops_deviation, random_write_data) in any::<(bool, bool)>(),
        targets in prop::collection::vec(any_target(), 1..3),
    ) -> TimeSpan {
        let affinity = affinity.into_iter().map(|(group, processor)| Cpu { group, processor }).collect();
        TimeSpan {
            duration_s, warm_up_s, cool_down_s, seed, threads_total, outstanding_total, affinity, disable_affinity,
            completion_routines, measure_latency, iops_deviation, bucket_ms, random_write_data, targets,
        }
    }
}

prop_compose! {
    fn any_profile()(
        (verbose, verbose_stats, progress, experiment_flags) in any::<(bool, bool, u32, u32)>(),
        xml in any::<bool>(),
        precreate in 0_usize..4,
        time_spans in prop::collection::vec(any_span(), 1..3),
    ) -> Profile {
        Profile {
            verbose, verbose_stats, progress, experiment_flags, time_spans,
            result_format: if xml { ResultFormat::Xml } else { ResultFormat::Text },
            precreate: read::PRECREATE.get(precreate).map_or(Precreate::None, |(_, precreate)| *precreate),
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(profile in any_profile()) {
        let xml = write(&profile);
        let read = read(&xml, &[]).map_err(|error| TestCaseError::fail(format!("{error}\n{xml}")))?;
        prop_assert_eq!(read.profile, profile);
    }

    #[test]
    fn no_text_makes_the_reader_panic(xml in ".{0,200}") {
        let _ = read(&xml, &[]);
    }

    /// A profile with some bytes changed, left out or repeated.
    #[test]
    fn no_damaged_profile_makes_the_reader_panic(
        profile in any_profile(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), "[ -~]{0,3}|<|>|&|/|\"|</|]]>|<!--|\u{fe}", 0_usize..4), 1..6),
    ) {
        let mut xml: Vec<char> = write(&profile).chars().collect();
        for (at, text, cut) in damage {
            let at = at.index(xml.len());
            let end = (at + cut).min(xml.len());
            xml.splice(at..end, text.chars());
        }
        let xml: String = xml.into_iter().collect();
        if let Ok(read) = read(&xml, &[]) {
            let _ = rules::check(&read.profile, Origin::Xml);
        }
    }
}
