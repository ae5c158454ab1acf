use super::read::{FLUSH, PRECREATE};
use crate::profile::{
    CacheMode, Content, Priority, Profile, ResultFormat, SpanUnit, Target, Throughput, TimeSpan,
};
use crate::xml::{Attributes, Xml};

/// Writes a profile as a document of its own.
pub fn write(profile: &Profile) -> String {
    let mut out = Xml::default();
    write_into(&mut out, profile);
    out.text
}

/// Writes the profile into another document.
pub(crate) fn write_into(out: &mut Xml, profile: &Profile) {
    out.within("Profile", |out| {
        out.leaf("Progress", profile.progress);
        out.optional("ExperimentFlags", Some(profile.experiment_flags).filter(|flags| *flags != 0));
        let format = if profile.result_format == ResultFormat::Xml { "xml" } else { "text" };
        out.leaf("ResultFormat", format);
        out.leaf("Verbose", profile.verbose);
        out.optional("VerboseStats", profile.verbose_stats.then_some(true));
        let precreate = PRECREATE.iter().find(|(_, precreate)| *precreate == profile.precreate);
        out.optional("PrecreateFiles", precreate.map(|(word, _)| word));
        out.within("TimeSpans", |out| profile.time_spans.iter().for_each(|span| time_span(span, out)));
    });
}

fn time_span(span: &TimeSpan, out: &mut Xml) {
    out.within("TimeSpan", |out| {
        out.leaf("CompletionRoutines", span.completion_routines);
        out.leaf("MeasureLatency", span.measure_latency);
        out.leaf("CalculateIopsStdDev", span.iops_deviation);
        out.leaf("DisableAffinity", span.disable_affinity);
        out.leaf("Duration", span.duration_s);
        out.leaf("Warmup", span.warm_up_s);
        out.leaf("Cooldown", span.cool_down_s);
        out.leaf("ThreadCount", span.threads_total);
        out.leaf("RequestCount", span.outstanding_total);
        out.leaf("IoBucketDuration", span.bucket_ms);
        out.leaf("RandSeed", span.seed);
        out.optional("RandomWriteData", span.random_write_data.then_some(true));
        if !span.affinity.is_empty() {
            out.within("Affinity", |out| {
                for cpu in &span.affinity {
                    let attributes: &Attributes<'_> = &[("Group", &cpu.group), ("Processor", &cpu.processor)];
                    out.empty("AffinityGroupAssignment", attributes);
                }
            });
        }
        out.within("Targets", |out| span.targets.iter().for_each(|one| target(one, out)));
    });
}

fn target(target: &Target, out: &mut Xml) {
    out.within("Target", |out| {
        text(out, "Path", &target.path);
        out.leaf("BlockSize", target.block_bytes);
        out.leaf("BaseFileOffset", target.base_bytes);
        out.leaf("SequentialScan", target.hint_sequential);
        out.leaf("RandomAccess", target.hint_random);
        out.leaf("TemporaryFile", target.hint_temporary);
        out.leaf("UseLargePages", target.large_pages);
        out.optional("DisableLocalCache", (target.cache == CacheMode::RemoteOnly).then_some(true));
        out.optional("DisableOSCache", (target.cache == CacheMode::Unbuffered).then_some(true));
        out.optional("WriteThrough", target.write_through.then_some(true));
        out.optional("MemoryMappedIo", target.mapped.then_some(true));
        let flush = FLUSH.iter().find(|(_, flush)| Some(*flush) == target.flush);
        out.optional("FlushType", flush.map(|(word, _)| word));
        out.within("WriteBufferContent", |out| content(&target.content, out));
        out.leaf("ParallelAsyncIO", target.same_offset);
        out.optional("BurstSize", Some(target.burst_ios).filter(|ios| *ios > 0));
        out.optional("ThinkTime", Some(target.think_time_ms).filter(|ms| *ms > 0));
        out.optional("FileSize", target.create_bytes);
        order(target, out);
        out.leaf("ThreadStride", target.thread_stride_bytes);
        out.leaf("MaxFileSize", target.end_bytes.unwrap_or(0));
        out.leaf("RequestCount", target.outstanding);
        out.leaf("WriteRatio", target.write_percent);
        match target.throughput {
            Some(Throughput::Iops(iops)) => {
                out.line(format_args!("<Throughput unit=\"IOPS\">{iops}</Throughput>"));
            }
            Some(Throughput::BytesPerMs(bytes)) => out.leaf("Throughput", bytes),
            None => out.leaf("Throughput", 0),
        }
        out.leaf("ThreadsPerFile", target.threads);
        let priority = match target.priority {
            Priority::VeryLow => 1,
            Priority::Low => 2,
            Priority::Normal => 3,
        };
        out.leaf("IOPriority", priority);
        out.leaf("Weight", target.weight);
        if !target.thread_targets.is_empty() {
            out.within("ThreadTargets", |out| {
                for one in &target.thread_targets {
                    out.within("ThreadTarget", |out| {
                        out.leaf("Thread", one.thread);
                        out.optional("Weight", one.weight);
                    });
                }
            });
        }
    });
}

fn content(content: &Content, out: &mut Xml) {
    match content {
        Content::Counting => out.leaf("Pattern", "sequential"),
        Content::Zero => out.leaf("Pattern", "zero"),
        Content::Buffer { bytes, file } => {
            out.leaf("Pattern", "random");
            out.within("RandomDataSource", |out| {
                out.leaf("SizeInBytes", bytes);
                if let Some(file) = file {
                    text(out, "FilePath", file);
                }
            });
        }
    }
}

fn order(target: &Target, out: &mut Xml) {
    if target.random_percent == 0 {
        out.leaf("StrideSize", target.align());
        out.leaf("InterlockedSequential", target.interlocked);
        return;
    }
    out.leaf("Random", target.align());
    out.optional("RandomRatio", Some(target.random_percent).filter(|percent| *percent < 100));
    if let Some(distribution) = &target.distribution {
        let kind = if distribution.unit == SpanUnit::Percent { "Percent" } else { "Absolute" };
        out.within("Distribution", |out| {
            out.within(kind, |out| {
                for range in &distribution.ranges {
                    out.line(format_args!("<Range IO=\"{}\">{}</Range>", range.ios_percent, range.span));
                }
            });
        });
    }
}

/// Writes text of a person, of any characters.
fn text(xml: &mut Xml, name: &str, text: &str) {
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
    xml.line(format_args!("<{name}>{escaped}</{name}>"));
}
