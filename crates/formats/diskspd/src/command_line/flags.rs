//! Flags, one by one, into a profile.

use super::caching::Caching;
use super::number::{leading_size, size, whole};
use super::{Common, Seed, affinity, distribution};
use crate::profile::{Content, FlushMode, Priority, Profile, ResultFormat, Target, Throughput, TimeSpan};
use crate::unsupported;
use crate::usage::UsageError;

/// The first pass: `b` in sizes means the last `-b`, wherever it stands.
pub fn block_bytes(flags: &[String]) -> Result<u32, UsageError> {
    let mut block_bytes = Target::new("").block_bytes;
    for flag in flags {
        if let Some(text) = flag.strip_prefix("-b") {
            let wrong = |why: String| UsageError::new(flag.as_str(), why, "give a size, as in -b8K");
            let bytes = size(text, u64::from(block_bytes)).map_err(wrong)?;
            let fits = (1..=Target::BLOCK_BYTES_MAX).contains(&bytes);
            let bytes = u32::try_from(bytes).ok().filter(|_| fits);
            block_bytes = bytes.ok_or_else(|| wrong("a block has 1 byte to just under 4 GiB".into()))?;
        }
    }
    Ok(block_bytes)
}

/// Why a flag is refused, and what to write instead.
pub type Refusal = (String, String);

fn refuse<T>(why: impl Into<String>, instead: impl Into<String>) -> Result<T, Refusal> {
    Err((why.into(), instead.into()))
}

/// The second pass: what was said so far.
#[derive(Default)]
pub struct Reading {
    profile: Profile,
    span: TimeSpan,
    target: Target,
    caching: Caching,
    /// The first flag that does not compose with `-X`.
    first_of_profile: Option<String>,
    pub xml: Option<String>,
    pub common: Common,
    base_given: bool,
    end_given: bool,
    pub unsupported: Vec<UsageError>,
}

impl Reading {
    pub fn new(block_bytes: u32) -> Reading {
        Reading {
            span: TimeSpan::new(),
            target: Target { block_bytes, ..Target::new("") },
            ..Reading::default()
        }
    }

    /// The profile of all flags, for these targets.
    pub fn profile(mut self, targets: Vec<String>) -> Result<Profile, UsageError> {
        if targets.is_empty() {
            let instead = "name at least one file or block device after the flags";
            return Err(UsageError::new("no target", "there is nothing to run on", instead));
        }
        self.caching.apply(&mut self.target);
        if self.target.align_bytes == Some(u64::from(self.target.block_bytes)) {
            self.target.align_bytes = None;
        }
        self.span.targets = targets.into_iter().map(|path| Target { path, ..self.target.clone() }).collect();
        self.profile.time_spans = vec![self.span];
        let clock_seed = 0;
        self.common.apply(&mut self.profile, clock_seed);
        Ok(self.profile)
    }

    /// Takes one flag, `-` and all.
    pub fn flag(&mut self, flag: &str) -> Result<(), Refusal> {
        let mut letters = flag.strip_prefix('-').unwrap_or(flag).chars();
        let Some(letter) = letters.next() else {
            return refuse("a flag without a letter", "-? lists the flags");
        };
        let value = letters.as_str();
        if matches!(letter, 'W' | 'd' | 'C' | 'R' | 'v' | 'z' | ':') {
            return self.common_flag(letter, value);
        }
        if letter == 'X' {
            return self.xml_profile(value);
        }
        if self.xml.is_some() {
            return refuse("it does not compose with -X", BESIDE_XML);
        }
        self.first_of_profile.get_or_insert_with(|| flag.into());
        match letter {
            'a' => self.span.affinity.extend(affinity::parse(value).map_err(with("as in -a0,2,4"))?),
            'b' => {}
            'B' => self.bounds(value)?,
            'c' => self.target.create_bytes = Some(self.size(value, "as in -c1G")?),
            'D' => self.buckets(value)?,
            'e' => self.event_tracing(flag, value)?,
            'f' => self.end_or_hints(value)?,
            'F' => self.span.threads_total = count(value, "as in -F8")?,
            'g' => self.target.throughput = Some(throughput(value)?),
            'h' => bare(value).and_then(|()| self.caching.add("h").map_err(with("as -Sh alone")))?,
            'i' => self.target.burst_ios = count(value, "as in -i20")?,
            'I' => self.target.priority = priority(value)?,
            'j' => self.target.think_time_ms = count(value, "as in -j100")?,
            'l' => bare(value).map(|()| self.target.large_pages = true)?,
            'L' => bare(value).map(|()| self.span.measure_latency = true)?,
            'n' => bare(value).map(|()| self.span.disable_affinity = true)?,
            'N' => self.target.flush = Some(flush(value)?),
            'o' => self.target.outstanding = count(value, "as in -o8")?,
            'O' => self.span.outstanding_total = count(value, "as in -O16")?,
            'p' => bare(value).map(|()| self.target.same_offset = true)?,
            'P' => self.profile.progress = progress(value)?,
            'r' => self.random(value)?,
            's' => self.sequential(value)?,
            'S' => self.caching.add(value).map_err(with("as in -Sh, -Suw, -Sb"))?,
            't' => self.target.threads = count(value, "as in -t4")?,
            'T' => match self.size(value, "as in -T1G")? {
                0 => return refuse("threads would not start apart", "give a size above 0, or leave -T out"),
                bytes => self.target.thread_stride_bytes = bytes,
            },
            'w' => self.target.write_percent = write_percent(value)?,
            'x' => bare(value).map(|()| self.span.completion_routines = true)?,
            'y' => match value.chars().next() {
                Some('s' | 'f' | 'r' | 'p' | 'e') if value.len() > 1 => {
                    self.unsupported.push(unsupported::named_event(flag));
                }
                _ => return refuse("no event", "an event is -ys, -yf, -yr, -yp or -ye and its name"),
            },
            'Z' => self.content(value)?,
            _ => return refuse("diskspd has no such flag", "-? lists the flags"),
        }
        Ok(())
    }

    fn common_flag(&mut self, letter: char, value: &str) -> Result<(), Refusal> {
        let number = |form| whole(value, 0, u32::MAX).map_err(with(form));
        let seconds = || number("give seconds");
        let common = &mut self.common;
        match letter {
            'W' => common.warm_up_s = Some(seconds()?),
            'd' => common.duration_s = Some(seconds()?),
            'C' => common.cool_down_s = Some(seconds()?),
            'z' if value.is_empty() => common.seed = Some(Seed::Clock),
            'z' => common.seed = Some(Seed::Number(number("give a seed, or -z alone for one of the clock")?)),
            'v' if value.is_empty() => common.verbose = true,
            'v' if value == "s" => common.verbose_stats = true,
            'v' => return refuse("no such kind of telling", "give -v or -vs"),
            ':' => common.experiment_flags = Some(number("give a bit mask, as in -:1")?),
            _ => {
                let form = value.strip_prefix('p').unwrap_or(value);
                common.profile_only |= form.len() < value.len();
                common.result_format = match form {
                    "text" => Some(ResultFormat::Text),
                    "xml" => Some(ResultFormat::Xml),
                    "" if form.len() < value.len() => common.result_format,
                    _ => return refuse("no such form", "give -Rtext, -Rxml, -Rp, -Rptext or -Rpxml"),
                };
            }
        }
        Ok(())
    }

    fn xml_profile(&mut self, path: &str) -> Result<(), Refusal> {
        if let Some(flag) = &self.first_of_profile {
            return refuse(format!("{flag} does not compose with it"), BESIDE_XML);
        }
        if path.is_empty() {
            return refuse("no profile", "give its path, as in -Xprofile.xml");
        }
        if self.xml.replace(path.into()).is_some() {
            return refuse("a second profile", "give one");
        }
        Ok(())
    }

    fn size(&self, text: &str, instead: &str) -> Result<u64, Refusal> {
        size(text, u64::from(self.target.block_bytes)).map_err(with(instead))
    }

    fn bounds(&mut self, value: &str) -> Result<(), Refusal> {
        const FORM: &str = "as in -B1G, or -B1G:2G for base and length";
        if std::mem::replace(&mut self.base_given, true) {
            return refuse("a second base", "give one");
        }
        let block_bytes = u64::from(self.target.block_bytes);
        let (base, rest) = leading_size(value, block_bytes).map_err(|why| (why.into(), FORM.into()))?;
        self.target.base_bytes = base;
        if rest.is_empty() {
            return Ok(());
        }
        let Some(length) = rest.strip_prefix(':') else {
            return refuse(format!("'{rest}' stands after the base"), FORM);
        };
        let length = self.size(length, FORM)?;
        if length == 0 {
            return refuse("a length of nothing", FORM);
        }
        let end = base.checked_add(length).ok_or(("the end is 2^64 bytes or more".into(), FORM.into()))?;
        self.end(end)
    }

    fn end(&mut self, end: u64) -> Result<(), Refusal> {
        if std::mem::replace(&mut self.end_given, true) {
            return refuse("a second end", "give -B1G:2G or -f3G, once");
        }
        self.target.end_bytes = Some(end);
        Ok(())
    }

    fn end_or_hints(&mut self, value: &str) -> Result<(), Refusal> {
        const FORM: &str = "give the end, as in -f3G, or hints, as in -fr or -fs";
        if value.is_empty() {
            return refuse("neither end nor hint", FORM);
        }
        if value.starts_with(|c: char| c.is_ascii_digit()) {
            return match self.size(value, FORM)? {
                0 => refuse("nothing would be used", FORM),
                end => self.end(end),
            };
        }
        for letter in value.chars() {
            match letter {
                'r' => self.target.hint_random = true,
                's' => self.target.hint_sequential = true,
                't' => self.target.hint_temporary = true,
                other => return refuse(format!("'{other}' is none of r s t"), FORM),
            }
        }
        Ok(())
    }

    fn buckets(&mut self, value: &str) -> Result<(), Refusal> {
        self.span.iops_deviation = true;
        if !value.is_empty() {
            // -D0 is the default there, and so here.
            let ms = whole(value, 0, u32::MAX).map_err(with("give milliseconds, as in -D500"))?;
            self.span.bucket_ms = if ms == 0 { TimeSpan::new().bucket_ms } else { ms };
        }
        Ok(())
    }

    fn event_tracing(&mut self, flag: &str, value: &str) -> Result<(), Refusal> {
        const KINDS: [&str; 12] = [
            "q",
            "c",
            "s",
            "p",
            "PROCESS",
            "THREAD",
            "IMAGE_LOAD",
            "DISK_IO",
            "MEMORY_PAGE_FAULTS",
            "MEMORY_HARD_FAULTS",
            "NETWORK",
            "REGISTRY",
        ];
        if !KINDS.contains(&value) {
            return refuse("no such trace", "leave it out: event tracing is Windows' own");
        }
        self.unsupported.push(unsupported::event_tracing(flag));
        Ok(())
    }

    fn random(&mut self, value: &str) -> Result<(), Refusal> {
        let target = &mut self.target;
        if let Some(share) = value.strip_prefix('s') {
            const FORM: &str = "give 1 to 100, as in -rs70";
            let share = whole(share, 1, 100).map_err(with(FORM))? as u8;
            if target.random_percent == 0 && target.align_bytes.is_some() {
                return refuse("-s gave a stride before", "give the alignment by -r, as in -rs70 -r8K");
            }
            if !matches!(target.random_percent, 0 | 100) {
                return refuse("a second share of random I/Os", "give one");
            }
            target.random_percent = share;
        } else if let Some(distribution) = value.strip_prefix('d') {
            let distribution = distribution::parse(distribution, u64::from(target.block_bytes))
                .map_err(with("as in -rdpct90/10:5/20 or -rdabs90/10G:5/20G"))?;
            target.distribution = Some(distribution);
        } else {
            let align = match value {
                "" => u64::from(target.block_bytes),
                text => self.size(text, "give the alignment, as in -r4K, or -r alone for that of a block")?,
            };
            if align == 0 {
                return refuse("an alignment of 0", "give -r alone for that of a block");
            }
            let target = &mut self.target;
            if target.align_bytes.is_some() {
                let said = match target.random_percent {
                    0 => "sequential I/O (-s)",
                    _ => "random I/O, with its alignment,",
                };
                return refuse(format!("{said} was given before"), "give one of them, once");
            }
            if target.random_percent == 0 {
                target.random_percent = 100;
            }
            target.align_bytes = Some(align);
        }
        Ok(())
    }

    fn sequential(&mut self, value: &str) -> Result<(), Refusal> {
        let stride = value.strip_prefix('i');
        self.target.interlocked |= stride.is_some();
        match self.target.random_percent {
            0 => {}
            100 => return refuse("random I/O (-r) was given before", "give one of them"),
            _ => return refuse("-rs was given before", "give the alignment by -r, as in -rs70 -r8K"),
        }
        if self.target.align_bytes.is_some() {
            return refuse("a second stride", "give one");
        }
        let block_bytes = u64::from(self.target.block_bytes);
        let stride = match stride.unwrap_or(value) {
            "" => block_bytes,
            text => self.size(text, "give the stride, as in -s1M, or -s alone for that of a block")?,
        };
        // -s0 is a block there, and so here.
        self.target.align_bytes = Some(if stride == 0 { block_bytes } else { stride });
        Ok(())
    }

    /// A buffer goes before zeros, and zeros before fresh data, in whichever order they were given.
    fn content(&mut self, value: &str) -> Result<(), Refusal> {
        match value {
            "" if self.target.content == Content::Counting => self.target.content = Content::Zero,
            "" => {}
            "r" => self.span.random_write_data = true,
            _ => {
                let (bytes, file) = match value.split_once(',') {
                    Some((_, "")) => return refuse("no file after the comma", "as in -Z1M,data.bin"),
                    Some((bytes, file)) => (bytes, Some(file.to_owned())),
                    None => (value, None),
                };
                let bytes = self.size(bytes, "as in -Z, -Zr, -Z1M or -Z1M,data.bin")?;
                if bytes == 0 {
                    return refuse("a buffer of nothing", "as in -Z1M");
                }
                self.target.content = Content::Buffer { bytes, file };
            }
        }
        Ok(())
    }
}

const BESIDE_XML: &str = "beside a profile only -d -W -C -R -v -z -: and targets may stand";

fn with(instead: &str) -> impl Fn(String) -> Refusal {
    move |why| (why, instead.into())
}

fn bare(value: &str) -> Result<(), Refusal> {
    if value.is_empty() { Ok(()) } else { refuse(format!("it takes no value, and '{value}' is one"), "") }
}

fn count(value: &str, form: &str) -> Result<u32, Refusal> {
    whole(value, 1, u32::MAX).map_err(with(form))
}

fn throughput(value: &str) -> Result<Throughput, Refusal> {
    const FORM: &str = "give bytes per millisecond, as in -g80, or I/Os a second, as in -g100i";
    match value.strip_suffix('i') {
        Some(iops) => Ok(Throughput::Iops(count(iops, FORM)?)),
        None => Ok(Throughput::BytesPerMs(count(value, FORM)?)),
    }
}

fn priority(value: &str) -> Result<Priority, Refusal> {
    match value {
        "1" => Ok(Priority::VeryLow),
        "2" => Ok(Priority::Low),
        "3" => Ok(Priority::Normal),
        _ => refuse("no such priority", "give 1 very low, 2 low or 3 normal"),
    }
}

fn flush(value: &str) -> Result<FlushMode, Refusal> {
    match value {
        "v" | "V" => Ok(FlushMode::ViewOfFile),
        "n" | "N" => Ok(FlushMode::NonVolatileMemory),
        "i" | "I" => Ok(FlushMode::NonVolatileMemoryNoDrain),
        _ => refuse("no such flush", "give -Nv, which is msync"),
    }
}

fn progress(value: &str) -> Result<u32, Refusal> {
    // -P0 is the default there, and so here.
    match value {
        "" | "0" => Ok(65_536),
        _ => count(value, "as in -P1000, or -P alone"),
    }
}

fn write_percent(value: &str) -> Result<u8, Refusal> {
    if value.is_empty() {
        return refuse("no share of writes", "give 0 to 100, as in -w30");
    }
    Ok(whole(value, 0, 100).map_err(with("as in -w30"))? as u8)
}
