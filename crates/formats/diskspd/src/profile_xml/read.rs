use super::elements::Element;
use super::{ProfileError, ProfileRead};
use crate::profile::{
    CacheMode, Content, Cpu, Distribution, FlushMode, Precreate, Priority, Profile, Range, ResultFormat,
    SpanUnit, Target, ThreadTarget, Throughput, TimeSpan,
};
use crate::rules::ranges_fit;
use crate::unsupported;
use std::collections::HashSet;

/// Reads the root of a document, be it a profile or a result with its profile.
pub fn profile(root: &Element, targets: &[String]) -> Result<ProfileRead, ProfileError> {
    let element = match root.name.as_str() {
        "Profile" => root,
        "Results" => match root.children.iter().find(|child| child.name == "Profile") {
            Some(profile) => profile,
            None => return Err(root.error("the result carries no <Profile>")),
        },
        _ => return Err(root.error("a profile begins with <Profile>")),
    };
    let mut templates = Templates { targets, used: vec![false; targets.len()] };
    let mut unsupported = Vec::new();
    let mut profile = Profile::default();
    for child in once_each(element)? {
        match child.name.as_str() {
            "Verbose" => profile.verbose = boolean(child)?,
            "VerboseStats" => profile.verbose_stats = boolean(child)?,
            "Progress" => profile.progress = number(child)?,
            "ExperimentFlags" => profile.experiment_flags = number(child)?,
            "ResultFormat" => {
                let forms = [("text", ResultFormat::Text), ("xml", ResultFormat::Xml)];
                profile.result_format = one_of(child, &forms)?;
            }
            "PrecreateFiles" => profile.precreate = one_of(child, &PRECREATE)?,
            "ETW" => unsupported.extend(event_tracing(child)?.then(|| unsupported::event_tracing("<ETW>"))),
            "TimeSpans" => {
                profile.time_spans = list(child, "TimeSpan", |span| time_span(span, &mut templates))?;
            }
            _ => return Err(unknown(child, element)),
        }
    }
    if profile.time_spans.is_empty() {
        return Err(element.error("no <TimeSpan>; give <TimeSpans> with at least one"));
    }
    templates.all_used(element)?;
    Ok(ProfileRead { profile, unsupported })
}

pub const PRECREATE: [(&str, Precreate); 3] = [
    ("UseMaxSize", Precreate::UseMaxSize),
    ("CreateOnlyFilesWithConstantSizes", Precreate::ConstantSizes),
    ("CreateOnlyFilesWithConstantOrZeroSizes", Precreate::ConstantOrZeroSizes),
];
pub const FLUSH: [(&str, FlushMode); 3] = [
    ("ViewOfFile", FlushMode::ViewOfFile),
    ("NonVolatileMemory", FlushMode::NonVolatileMemory),
    ("NonVolatileMemoryNoDrain", FlushMode::NonVolatileMemoryNoDrain),
];
const ETW: [&str; 12] = [
    "Process",
    "Thread",
    "ImageLoad",
    "DiskIO",
    "MemoryPageFaults",
    "MemoryHardFaults",
    "Network",
    "Registry",
    "UsePagedMemory",
    "UsePerfTimer",
    "UseSystemTimer",
    "UseCyclesCounter",
];

/// Paths that stand for `*1`, `*2` ..., and whether the profile uses each.
struct Templates<'a> {
    targets: &'a [String],
    used: Vec<bool>,
}

impl Templates<'_> {
    fn fill(&mut self, path: String, element: &Element) -> Result<String, ProfileError> {
        let Some(number) = path.strip_prefix('*') else { return Ok(path) };
        let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let index = number.parse::<usize>().ok().filter(|number| digits && *number > 0);
        let Some(index) = index else {
            return Err(element.error(format!("'{path}' is not a template; templates are *1, *2 ...")));
        };
        if self.targets.is_empty() {
            return Ok(path);
        }
        let Some(target) = self.targets.get(index - 1) else {
            let given = self.targets.len();
            return Err(element.error(format!("no target stands for {path}; {given} are given after -X")));
        };
        self.used[index - 1] = true;
        Ok(target.clone())
    }

    fn all_used(&self, profile: &Element) -> Result<(), ProfileError> {
        match self.used.iter().position(|used| !used) {
            Some(index) => {
                let why = format!("'{}' stands for *{}, which is not in it", self.targets[index], index + 1);
                Err(profile.error(why))
            }
            None => Ok(()),
        }
    }
}

fn time_span(element: &Element, templates: &mut Templates<'_>) -> Result<TimeSpan, ProfileError> {
    let mut span = TimeSpan::new();
    for child in once_each(element)? {
        match child.name.as_str() {
            "Duration" => span.duration_s = number(child)?,
            "Warmup" => span.warm_up_s = number(child)?,
            "Cooldown" => span.cool_down_s = number(child)?,
            "RandSeed" => span.seed = number(child)?,
            "RandomWriteData" => span.random_write_data = boolean(child)?,
            "ThreadCount" => span.threads_total = number(child)?,
            "RequestCount" => span.outstanding_total = number(child)?,
            "GroupAffinity" => boolean(child).map(drop)?,
            "DisableAffinity" => span.disable_affinity = boolean(child)?,
            "CompletionRoutines" => span.completion_routines = boolean(child)?,
            "MeasureLatency" => span.measure_latency = boolean(child)?,
            "CalculateIopsStdDev" => span.iops_deviation = boolean(child)?,
            "IoBucketDuration" => span.bucket_ms = number(child)?,
            "Affinity" => span.affinity = affinity(child)?,
            "Targets" => span.targets = list(child, "Target", |one| target(one, templates))?,
            _ => return Err(unknown(child, element)),
        }
    }
    if span.targets.is_empty() {
        return Err(element.error("no <Target>; give <Targets> with at least one"));
    }
    Ok(span)
}

fn affinity(element: &Element) -> Result<Vec<Cpu>, ProfileError> {
    let mut cpus = Vec::new();
    for child in structure(element)? {
        cpus.push(match child.name.as_str() {
            "AffinityAssignment" => Cpu { group: 0, processor: number(child)? },
            "AffinityGroupAssignment" => {
                let value = |name| attribute(child, name)?.map_or(Ok(0), |text| parse(child, text));
                let group: u32 = value("Group")?;
                let group = u16::try_from(group).map_err(|_| child.error("a group is at most 65535"))?;
                Cpu { group, processor: value("Processor")? }
            }
            _ => return Err(unknown(child, element)),
        });
    }
    Ok(cpus)
}

fn target(element: &Element, templates: &mut Templates<'_>) -> Result<Target, ProfileError> {
    let mut target = Target::new("");
    let (mut stride, mut random, mut random_percent, mut path) = (None, None, None, None);
    let (mut unbuffered, mut local_off, mut all_off) = (false, false, false);
    for child in once_each(element)? {
        match child.name.as_str() {
            "Path" => path = Some(templates.fill(text(child)?.to_owned(), child)?),
            "BlockSize" => {
                target.block_bytes = number(child)?;
                if target.block_bytes == 0 || u64::from(target.block_bytes) > Target::BLOCK_BYTES_MAX {
                    return Err(child.error("a block has 1 byte to just under 4 GiB"));
                }
            }
            "StrideSize" => stride = Some((number(child)?, child)),
            "InterlockedSequential" => target.interlocked = boolean(child)?,
            "BaseFileOffset" => target.base_bytes = number(child)?,
            "SequentialScan" => target.hint_sequential = boolean(child)?,
            "RandomAccess" => target.hint_random = boolean(child)?,
            "TemporaryFile" => target.hint_temporary = boolean(child)?,
            "UseLargePages" => target.large_pages = boolean(child)?,
            "RequestCount" => target.outstanding = number(child)?,
            "Random" => random = Some(number(child)?),
            "RandomRatio" => random_percent = Some(percent(child, 1, 99)?),
            "DisableOSCache" => unbuffered = boolean(child)?,
            "DisableAllCache" => all_off = boolean(child)?,
            "DisableLocalCache" => local_off = boolean(child)?,
            "WriteThrough" => target.write_through = boolean(child)?,
            "MemoryMappedIo" => target.mapped = boolean(child)?,
            "FlushType" => target.flush = Some(one_of(child, &FLUSH)?),
            "WriteBufferContent" => target.content = content(child)?,
            "BurstSize" => target.burst_ios = number(child)?,
            "ThinkTime" => target.think_time_ms = number(child)?,
            "Throughput" => target.throughput = throughput(child)?,
            "ThreadsPerFile" => target.threads = number(child)?,
            "FileSize" => target.create_bytes = Some(number(child)?),
            "MaxFileSize" => target.end_bytes = Some(number(child)?).filter(|end| *end > 0),
            "WriteRatio" => target.write_percent = percent(child, 0, 100)?,
            "ParallelAsyncIO" => target.same_offset = boolean(child)?,
            "ThreadStride" => target.thread_stride_bytes = number(child)?,
            "IOPriority" => {
                let priorities = [("1", Priority::VeryLow), ("2", Priority::Low), ("3", Priority::Normal)];
                target.priority = one_of(child, &priorities)?;
            }
            "Weight" => target.weight = number(child)?,
            "ThreadTargets" => target.thread_targets = list(child, "ThreadTarget", thread_target)?,
            "Distribution" => target.distribution = Some(distribution(child)?),
            _ => return Err(unknown(child, element)),
        }
    }
    target.path = path.ok_or_else(|| element.error("no <Path>"))?;
    if let Some((_, stride)) = stride.filter(|_| random.is_some() || random_percent.is_some()) {
        return Err(stride.error("sequential I/O contradicts <Random> and <RandomRatio>; leave one out"));
    }
    target.random_percent = random_percent.unwrap_or(if random.is_some() { 100 } else { 0 });
    let align = random.or(stride.map(|(stride, _)| stride));
    target.align_bytes = align.filter(|align| *align > 0 && *align != u64::from(target.block_bytes));
    target.write_through |= all_off;
    target.cache = match (local_off, unbuffered || all_off) {
        (true, _) => CacheMode::RemoteOnly,
        (false, true) => CacheMode::Unbuffered,
        (false, false) => CacheMode::Cached,
    };
    Ok(target)
}

fn content(element: &Element) -> Result<Content, ProfileError> {
    let (mut pattern, mut source) = (None, None);
    for child in once_each(element)? {
        match child.name.as_str() {
            "Pattern" => {
                let patterns = [
                    ("sequential", Some(Content::Counting)),
                    ("zero", Some(Content::Zero)),
                    ("random", None),
                ];
                pattern = Some(one_of(child, &patterns)?);
            }
            "RandomDataSource" => {
                let (mut bytes, mut file) = (None, None);
                for part in once_each(child)? {
                    match part.name.as_str() {
                        "SizeInBytes" => bytes = Some(number(part)?),
                        "FilePath" => file = Some(text(part)?.to_owned()).filter(|path| !path.is_empty()),
                        _ => return Err(unknown(part, child)),
                    }
                }
                let bytes = bytes.filter(|bytes| *bytes > 0);
                let bytes = bytes.ok_or_else(|| child.error("<SizeInBytes> above 0 is missing"))?;
                source = Some(Content::Buffer { bytes, file });
            }
            _ => return Err(unknown(child, element)),
        }
    }
    match pattern {
        None => Err(element.error("<Pattern> is missing")),
        Some(Some(content)) => Ok(content),
        // Without a source, random is what the default is: so does diskspd.
        Some(None) => Ok(source.unwrap_or_default()),
    }
}

fn throughput(element: &Element) -> Result<Option<Throughput>, ProfileError> {
    let value: u32 = parse(element, element.text.trim())?;
    let limit = match attribute(element, "unit")? {
        None | Some("BPMS") => Throughput::BytesPerMs(value),
        Some("IOPS") => Throughput::Iops(value),
        Some(other) => return Err(element.error(format!("unit '{other}': give BPMS or IOPS"))),
    };
    Ok(Some(limit).filter(|_| value > 0))
}

fn thread_target(element: &Element) -> Result<ThreadTarget, ProfileError> {
    let (mut thread, mut weight) = (None, None);
    for child in once_each(element)? {
        match child.name.as_str() {
            "Thread" => thread = Some(number(child)?),
            "Weight" => weight = Some(number(child)?).filter(|weight| *weight > 0),
            _ => return Err(unknown(child, element)),
        }
    }
    Ok(ThreadTarget { thread: thread.ok_or_else(|| element.error("<Thread> is missing"))?, weight })
}

fn distribution(element: &Element) -> Result<Distribution, ProfileError> {
    let [kind] = structure(element)? else {
        return Err(element.error("give either <Percent> or <Absolute>"));
    };
    let unit = match kind.name.as_str() {
        "Percent" => SpanUnit::Percent,
        "Absolute" => SpanUnit::Bytes,
        _ => return Err(unknown(kind, element)),
    };
    let mut ranges = Vec::new();
    list(kind, "Range", |child| {
        let ios = attribute(child, "IO")?.ok_or_else(|| child.error("the attribute IO is missing"))?;
        let ios: u32 = parse(child, ios)?;
        let ios_percent = u8::try_from(ios).ok().filter(|ios| *ios <= 100);
        let ios_percent = ios_percent.ok_or_else(|| child.error(format!("IO=\"{ios}\": give 0 to 100")))?;
        let span: u64 = parse(child, child.text.trim())?;
        if unit == SpanUnit::Percent && !(1..=100).contains(&span) {
            return Err(child.error(format!("{span} % of the target: give 1 to 100")));
        }
        ranges.push(Range { ios_percent, span });
        ranges_fit(unit, &ranges).map_err(|why| child.error(why))
    })?;
    if ranges.is_empty() {
        return Err(kind.error("no <Range>"));
    }
    Ok(Distribution::new(unit, ranges))
}

fn event_tracing(element: &Element) -> Result<bool, ProfileError> {
    let mut any = false;
    for child in once_each(element)? {
        if !ETW.contains(&child.name.as_str()) {
            return Err(unknown(child, element));
        }
        any |= boolean(child)?;
    }
    Ok(any)
}

/// The children of an element that holds no text.
fn structure(element: &Element) -> Result<&[Element], ProfileError> {
    if element.text.trim().is_empty() {
        Ok(&element.children)
    } else {
        Err(element.error(format!("it holds elements, and no text as '{}'", shorten(&element.text))))
    }
}

/// Its children, of which none stands twice.
fn once_each(element: &Element) -> Result<&[Element], ProfileError> {
    let children = structure(element)?;
    let mut names = HashSet::new();
    for child in children {
        if !names.insert(&child.name) {
            return Err(child.error(format!("it stands twice in <{}>; give it once", element.name)));
        }
    }
    Ok(children)
}

/// Reads its children, all of one name.
fn list<T>(
    element: &Element,
    name: &str,
    read: impl FnMut(&Element) -> Result<T, ProfileError>,
) -> Result<Vec<T>, ProfileError> {
    let children = structure(element)?;
    match children.iter().find(|child| child.name != name) {
        Some(other) => Err(unknown(other, element)),
        None => children.iter().map(read).collect(),
    }
}

fn unknown(child: &Element, parent: &Element) -> ProfileError {
    child.error(format!("<{}> has no such element", parent.name))
}

fn text(element: &Element) -> Result<&str, ProfileError> {
    match element.children.first() {
        Some(child) => Err(unknown(child, element)),
        None if element.text.is_empty() => Err(element.error("it is empty")),
        None => Ok(&element.text),
    }
}

fn attribute<'a>(element: &'a Element, name: &str) -> Result<Option<&'a str>, ProfileError> {
    match element
        .attributes
        .iter()
        .find(|(key, _)| !matches!(key.as_str(), "IO" | "unit" | "Group" | "Processor"))
    {
        Some((other, _)) => Err(element.error(format!("it has no attribute {other}"))),
        None => Ok(element.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())),
    }
}

fn number<T: std::str::FromStr>(element: &Element) -> Result<T, ProfileError> {
    parse(element, text(element)?.trim())
}

fn parse<T: std::str::FromStr>(element: &Element, text: &str) -> Result<T, ProfileError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let value = text.parse().ok().filter(|_| digits);
    let bits = size_of::<T>() * 8;
    value.ok_or_else(|| {
        element.error(format!("'{}': give a whole number of at least 0, below 2^{bits}", shorten(text)))
    })
}

fn percent(element: &Element, least: u8, most: u8) -> Result<u8, ProfileError> {
    number(element)
        .ok()
        .filter(|percent| (least..=most).contains(percent))
        .ok_or_else(|| element.error(format!("'{}': give {least} to {most}", shorten(element.text.trim()))))
}

fn boolean(element: &Element) -> Result<bool, ProfileError> {
    one_of(element, &[("true", true), ("false", false), ("1", true), ("0", false)])
}

fn one_of<T: Clone>(element: &Element, words: &[(&str, T)]) -> Result<T, ProfileError> {
    let said = text(element)?.trim();
    let found = words.iter().find(|(word, _)| *word == said).map(|(_, value)| value.clone());
    found.ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        element.error(format!("'{}': give one of {}", shorten(said), words.join(", ")))
    })
}

/// Shortens text from somebody else's file for an error message.
fn shorten(text: &str) -> String {
    const SHOWN: usize = 40;
    let text = text.trim();
    let shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() { format!("{shown}...") } else { shown }
}
