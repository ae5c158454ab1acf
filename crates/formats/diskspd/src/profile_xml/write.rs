use super::read::{FLUSH, PRECREATE};
use crate::profile::{
    CacheMode, Content, Priority, Profile, ResultFormat, SpanUnit, Target, Throughput, TimeSpan,
};
use std::fmt::Display;

/// Writes a profile as a document of its own.
pub fn write(profile: &Profile) -> String {
    write_indented(profile, 0)
}

/// The same inside of another document, `depth` elements deep.
pub fn write_indented(profile: &Profile, depth: usize) -> String {
    let mut out = Out { xml: String::new(), depth };
    out.within("Profile", |out| {
        out.element("Progress", profile.progress);
        if profile.experiment_flags != 0 {
            out.element("ExperimentFlags", profile.experiment_flags);
        }
        let format = if profile.result_format == ResultFormat::Xml { "xml" } else { "text" };
        out.element("ResultFormat", format);
        out.element("Verbose", profile.verbose);
        out.when("VerboseStats", profile.verbose_stats);
        if let Some((word, _)) = PRECREATE.iter().find(|(_, precreate)| *precreate == profile.precreate) {
            out.element("PrecreateFiles", word);
        }
        out.within("TimeSpans", |out| profile.time_spans.iter().for_each(|span| time_span(span, out)));
    });
    out.xml
}

fn time_span(span: &TimeSpan, out: &mut Out) {
    out.within("TimeSpan", |out| {
        out.element("CompletionRoutines", span.completion_routines);
        out.element("MeasureLatency", span.measure_latency);
        out.element("CalculateIopsStdDev", span.iops_deviation);
        out.element("DisableAffinity", span.disable_affinity);
        out.element("Duration", span.duration_s);
        out.element("Warmup", span.warm_up_s);
        out.element("Cooldown", span.cool_down_s);
        out.element("ThreadCount", span.threads_total);
        out.element("RequestCount", span.outstanding_total);
        out.element("IoBucketDuration", span.bucket_ms);
        out.element("RandSeed", span.seed);
        out.when("RandomWriteData", span.random_write_data);
        if !span.affinity.is_empty() {
            out.within("Affinity", |out| {
                for cpu in &span.affinity {
                    let (group, processor) = (cpu.group, cpu.processor);
                    out.line(&format!(
                        "<AffinityGroupAssignment Group=\"{group}\" Processor=\"{processor}\"/>"
                    ));
                }
            });
        }
        out.within("Targets", |out| span.targets.iter().for_each(|one| target(one, out)));
    });
}

fn target(target: &Target, out: &mut Out) {
    out.within("Target", |out| {
        out.text("Path", &target.path);
        out.element("BlockSize", target.block_bytes);
        out.element("BaseFileOffset", target.base_bytes);
        out.element("SequentialScan", target.hint_sequential);
        out.element("RandomAccess", target.hint_random);
        out.element("TemporaryFile", target.hint_temporary);
        out.element("UseLargePages", target.large_pages);
        out.when("DisableLocalCache", target.cache == CacheMode::RemoteOnly);
        out.when("DisableOSCache", target.cache == CacheMode::Unbuffered);
        out.when("WriteThrough", target.write_through);
        out.when("MemoryMappedIo", target.mapped);
        if let Some((word, _)) = FLUSH.iter().find(|(_, flush)| Some(*flush) == target.flush) {
            out.element("FlushType", word);
        }
        out.within("WriteBufferContent", |out| content(&target.content, out));
        out.element("ParallelAsyncIO", target.same_offset);
        if target.burst_ios > 0 {
            out.element("BurstSize", target.burst_ios);
        }
        if target.think_time_ms > 0 {
            out.element("ThinkTime", target.think_time_ms);
        }
        if let Some(bytes) = target.create_bytes {
            out.element("FileSize", bytes);
        }
        order(target, out);
        out.element("ThreadStride", target.thread_stride_bytes);
        out.element("MaxFileSize", target.end_bytes.unwrap_or(0));
        out.element("RequestCount", target.outstanding);
        out.element("WriteRatio", target.write_percent);
        match target.throughput {
            Some(Throughput::Iops(iops)) => {
                out.line(&format!("<Throughput unit=\"IOPS\">{iops}</Throughput>"));
            }
            Some(Throughput::BytesPerMs(bytes)) => out.element("Throughput", bytes),
            None => out.element("Throughput", 0),
        }
        out.element("ThreadsPerFile", target.threads);
        let priority = match target.priority {
            Priority::VeryLow => 1,
            Priority::Low => 2,
            Priority::Normal => 3,
        };
        out.element("IOPriority", priority);
        out.element("Weight", target.weight);
        if !target.thread_targets.is_empty() {
            out.within("ThreadTargets", |out| {
                for one in &target.thread_targets {
                    out.within("ThreadTarget", |out| {
                        out.element("Thread", one.thread);
                        if let Some(weight) = one.weight {
                            out.element("Weight", weight);
                        }
                    });
                }
            });
        }
    });
}

fn content(content: &Content, out: &mut Out) {
    match content {
        Content::Counting => out.element("Pattern", "sequential"),
        Content::Zero => out.element("Pattern", "zero"),
        Content::Buffer { bytes, file } => {
            out.element("Pattern", "random");
            out.within("RandomDataSource", |out| {
                out.element("SizeInBytes", bytes);
                if let Some(file) = file {
                    out.text("FilePath", file);
                }
            });
        }
    }
}

fn order(target: &Target, out: &mut Out) {
    if target.random_percent == 0 {
        out.element("StrideSize", target.align());
        out.element("InterlockedSequential", target.interlocked);
        return;
    }
    out.element("Random", target.align());
    if target.random_percent < 100 {
        out.element("RandomRatio", target.random_percent);
    }
    if let Some(distribution) = &target.distribution {
        let kind = if distribution.unit == SpanUnit::Percent { "Percent" } else { "Absolute" };
        out.within("Distribution", |out| {
            out.within(kind, |out| {
                for range in &distribution.ranges {
                    out.line(&format!("<Range IO=\"{}\">{}</Range>", range.ios_percent, range.span));
                }
            });
        });
    }
}

/// Lines, two blanks deeper within each element.
struct Out {
    xml: String,
    depth: usize,
}

impl Out {
    fn line(&mut self, line: &str) {
        (0..self.depth).for_each(|_| self.xml.push_str("  "));
        self.xml.push_str(line);
        self.xml.push('\n');
    }

    fn within(&mut self, name: &str, inside: impl FnOnce(&mut Out)) {
        self.line(&format!("<{name}>"));
        self.depth += 1;
        inside(self);
        self.depth -= 1;
        self.line(&format!("</{name}>"));
    }

    fn element(&mut self, name: &str, value: impl Display) {
        self.line(&format!("<{name}>{value}</{name}>"));
    }

    /// What diskspd writes only where it is so.
    fn when(&mut self, name: &str, value: bool) {
        if value {
            self.element(name, true);
        }
    }

    /// Text of a person, of any characters.
    fn text(&mut self, name: &str, text: &str) {
        let mut escaped = String::new();
        for char in text.chars() {
            match char {
                '&' => escaped.push_str("&amp;"),
                '<' => escaped.push_str("&lt;"),
                '>' => escaped.push_str("&gt;"),
                char if char.is_control() => escaped.push_str(&format!("&#{};", u32::from(char))),
                char => escaped.push(char),
            }
        }
        self.element(name, escaped);
    }
}
