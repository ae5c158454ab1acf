//! The XML result of diskspd 2.2.
//!
//! ```text
//! Results
//!   System     ComputerName, Tool, RunTime, PowerScheme, ProcessorTopology
//!   Profile    the request: can be given to -X again
//!   TimeSpan*  TestTimeSeconds, ThreadCount, RequestCount, ProcCount, CpuUtilization
//!              Latency (with -L): averages, deviations, Bucket* by percentile
//!              Iops (with -D): deviations, Bucket* by time
//!              Thread*: Id, Target*: counts, latencies, Iops
//! ```

use crate::profile_xml;
use crate::report::tables::INTERRUPTED;
use crate::report::text::average;
use crate::report::view::{Buckets, Samples, Section, Share, Span};
use crate::report::{CpuFacts, Report, SystemFacts};
use crate::xml::{Attributes, Xml};
use workload::{CoreUse, Tally};

/// The version whose elements these are, for readers that ask.
const VERSION: &str = "2.2.0";
const VERSION_DATE: &str = "2024/6/3";

/// The XML that diskspd 2.2 prints, element by element. Beside the names of files being escaped, it differs
/// where diskspd is wrong: a percentile with fewer than ten samples above it has no value (diskspd gives the
/// maximum), as diskspd itself leaves out the values of a direction without samples.
///
/// `Tool` names the version whose elements these are; a comment in it names the writer.
pub fn xml(report: &Report<'_>) -> String {
    let mut xml = Xml::default();
    xml.within("Results", |xml| {
        xml.within("System", |xml| system(xml, report.system));
        profile_xml::write_into(xml, report.profile);
        for span in report.spans() {
            xml.within("TimeSpan", |xml| match span.is_measured() {
                true => time_span(xml, &span, report.system),
                false => xml.leaf("Error", INTERRUPTED),
            });
        }
    });
    xml.text.truncate(xml.text.trim_end().len());
    xml.text
}

fn system(xml: &mut Xml, system: &SystemFacts) {
    xml.leaf("ComputerName", &system.computer_name);
    xml.within("Tool", |xml| {
        xml.leaf("Version", VERSION);
        xml.leaf("VersionDate", VERSION_DATE);
        xml.line(format_args!("<!-- written by Headroom {} -->", env!("CARGO_PKG_VERSION")));
    });
    xml.leaf("RunTime", system.start_time());
    xml.empty("PowerScheme", &[("Name", &system.power_scheme()), ("Guid", &"")]);
    let attributes: &Attributes<'_> = &[("Heterogeneous", &(system.efficiency_class_max() > 0))];
    xml.within_with("ProcessorTopology", attributes, |xml| topology(xml, system));
}

fn topology(xml: &mut Xml, system: &SystemFacts) {
    let mask_where = |is: &dyn Fn(&CpuFacts) -> bool| mask(system.cpus.iter().filter(|cpu| is(cpu)));
    let group = |xml: &mut Xml, mask: &String| xml.empty("Group", &[("Group", &0), ("Mask", mask)]);
    let count = system.cpus.len();
    xml.empty(
        "Group",
        &[
            ("Group", &0),
            ("MaximumProcessors", &count),
            ("ActiveProcessors", &count),
            ("ActiveProcessorMask", &mask_where(&|_| true)),
        ],
    );
    for node in system.distinct(|cpu| cpu.node) {
        let mask = mask_where(&|cpu| cpu.node == node);
        xml.within_with("Node", &[("Node", &node)], |xml| group(xml, &mask));
    }
    for socket in system.distinct(|cpu| cpu.socket) {
        let mask = mask_where(&|cpu| cpu.socket == socket);
        xml.within_with("Socket", &[("Socket", &socket)], |xml| group(xml, &mask));
    }
    for core in system.distinct(|cpu| cpu.core) {
        let class = system.cpus.iter().find(|cpu| cpu.core == core).map_or(0, |cpu| cpu.efficiency_class);
        let mask = mask_where(&|cpu| cpu.core == core);
        xml.empty("Core", &[("Group", &0), ("Core", &core), ("Mask", &mask), ("EfficiencyClass", &class)]);
    }
}

/// "0x3" for CPUs 0 and 1; as long as the machine needs it.
fn mask<'a>(cpus: impl Iterator<Item = &'a CpuFacts>) -> String {
    /// More CPUs than Linux can have; numbers above are not taken for CPUs.
    const CPUS_MAX: u32 = 1 << 16;
    let mut digits = vec![0_u8];
    for cpu in cpus.filter(|cpu| cpu.id < CPUS_MAX) {
        let at = cpu.id as usize / 4;
        digits.resize(digits.len().max(at + 1), 0);
        digits[at] |= 1 << (cpu.id % 4);
    }
    let digits = digits.iter().rev().map(|digit| char::from_digit(u32::from(*digit), 16).unwrap_or('0'));
    format!("0x{}", digits.collect::<String>())
}

fn time_span(xml: &mut Xml, span: &Span<'_>, system: &SystemFacts) {
    xml.leaf("TestTimeSeconds", format_args!("{:.2}", span.elapsed_s));
    xml.leaf("ThreadCount", span.thread_count());
    xml.leaf("RequestCount", span.requested.outstanding_total);
    xml.leaf("ProcCount", span.cores().len().max(system.cpus.len()));
    xml.within("CpuUtilization", |xml| cpu_utilization(xml, span.cores(), system));
    if span.requested.measure_latency {
        let samples = Section::READ_WRITE_TOTAL.map(|section| span.samples(section));
        let [read, write, total] = samples.each_ref().map(|samples| samples.histogram.filled().count());
        let attributes: &Attributes<'_> =
            &[("ReadHistoBuckets", &read), ("WriteHistoBuckets", &write), ("TotalHistoBuckets", &total)];
        xml.within_with("Latency", attributes, |xml| latency(xml, &samples));
    }
    if span.requested.iops_deviation {
        xml.within("Iops", |xml| iops(xml, &span.buckets()));
    }
    for (id, shares) in span.threads.iter().enumerate() {
        xml.within("Thread", |xml| {
            xml.leaf("Id", id);
            shares.iter().for_each(|share| xml.within("Target", |xml| target(xml, share, span)));
        });
    }
}

fn cpu_utilization(xml: &mut Xml, cores: &[CoreUse], system: &SystemFacts) {
    for core in cores {
        let cpu = system.cpu(core.core);
        xml.within("CPU", |xml| {
            xml.leaf("Socket", cpu.socket);
            xml.leaf("Node", cpu.node);
            xml.leaf("Group", 0);
            xml.leaf("Core", cpu.core);
            xml.leaf("EfficiencyClass", cpu.efficiency_class);
            xml.leaf("Id", core.core);
            percents(xml, core);
        });
    }
    if !cores.is_empty() {
        xml.within("Average", |xml| percents(xml, &average(cores)));
    }
}

fn percents(xml: &mut Xml, core: &CoreUse) {
    xml.leaf("UsagePercent", format_args!("{:.2}", core.user_percent + core.kernel_percent));
    xml.leaf("UserPercent", format_args!("{:.2}", core.user_percent));
    xml.leaf("KernelPercent", format_args!("{:.2}", core.kernel_percent));
    xml.leaf("IdlePercent", format_args!("{:.2}", core.idle_percent));
}

/// A bucket for every percentile, always: scripts count them ("the 51st is the median").
fn latency(xml: &mut Xml, [read, write, total]: &[Samples; 3]) {
    mean_and_deviation(xml, &read.tally, "AverageReadMilliseconds", "ReadLatencyStdev");
    mean_and_deviation(xml, &write.tally, "AverageWriteMilliseconds", "WriteLatencyStdev");
    mean_and_deviation(xml, &total.tally, "AverageTotalMilliseconds", "LatencyStdev");
    let mut bucket = |percentile: &str, value: &dyn Fn(&Samples) -> Option<u64>| {
        xml.within("Bucket", |xml| {
            xml.leaf("Percentile", percentile);
            for (name, samples) in
                [("ReadMilliseconds", read), ("WriteMilliseconds", write), ("TotalMilliseconds", total)]
            {
                xml.optional(name, value(samples).map(|ns| milliseconds(ns as f64)));
            }
        });
    };
    bucket("0", &Samples::shortest_ns);
    for percent in 1..=99_u8 {
        bucket(&percent.to_string(), &|samples| samples.percentile_ns(f64::from(percent)));
    }
    for percentile in ["99.9", "99.99", "99.999", "99.9999", "99.99999", "99.999999", "99.9999999"] {
        let percent: f64 = percentile.parse().expect("a constant number");
        bucket(percentile, &|samples| samples.percentile_ns(percent));
    }
    bucket("100", &Samples::longest_ns);
}

fn mean_and_deviation(xml: &mut Xml, tally: &Tally, mean: &str, deviation: &str) {
    if let (Some(mean_ns), Some(deviation_ns)) = (tally.mean_ns(), tally.deviation_ns()) {
        xml.leaf(mean, milliseconds(mean_ns));
        xml.leaf(deviation, milliseconds(deviation_ns));
    }
}

fn milliseconds(ns: f64) -> String {
    format!("{:.3}", ns / 1e6)
}

fn iops(xml: &mut Xml, buckets: &Buckets) {
    let deviations = [
        ("ReadIopsStdDev", Section::Read),
        ("WriteIopsStdDev", Section::Write),
        ("IopsStdDev", Section::Total),
    ];
    for (name, section) in deviations {
        let deviation = buckets.iops_deviation(section).filter(|_| buckets.have(section));
        xml.optional(name, deviation.map(|deviation| format!("{deviation:.3}")));
    }
    let per_second = |count: f64| format!("{:.0}", count / buckets.width_s());
    let ms = |ns: u64| milliseconds(ns as f64);
    for (at, (read, write)) in buckets.read.iter().zip(&buckets.write).enumerate() {
        let end_ns = (at as u64 + 1).saturating_mul(buckets.width_ns);
        xml.empty(
            "Bucket",
            &[
                ("SampleMillisecond", &(end_ns / 1_000_000)),
                ("Read", &per_second(read.count as f64)),
                ("Write", &per_second(write.count as f64)),
                ("Total", &per_second(read.count as f64 + write.count as f64)),
                ("ReadMinLatencyMilliseconds", &ms(read.ns_min)),
                ("ReadMaxLatencyMilliseconds", &ms(read.ns_max)),
                ("ReadAvgLatencyMilliseconds", &milliseconds(read.mean_ns().unwrap_or(0.0))),
                ("ReadLatencyStdDev", &milliseconds(read.deviation_ns().unwrap_or(0.0))),
                ("WriteMinLatencyMilliseconds", &ms(write.ns_min)),
                ("WriteMaxLatencyMilliseconds", &ms(write.ns_max)),
                ("WriteAvgLatencyMilliseconds", &milliseconds(write.mean_ns().unwrap_or(0.0))),
                ("WriteLatencyStdDev", &milliseconds(write.deviation_ns().unwrap_or(0.0))),
            ],
        );
    }
}

fn target(xml: &mut Xml, share: &Share<'_>, span: &Span<'_>) {
    let (read, write, total) = (share.thread.read, share.thread.write, share.thread.total());
    xml.leaf("Path", share.path);
    xml.leaf("BytesCount", total.bytes);
    xml.leaf("FileSize", share.result.target_bytes);
    xml.leaf("IOCount", total.count);
    xml.leaf("ReadBytes", read.bytes);
    xml.leaf("ReadCount", read.count);
    xml.leaf("WriteBytes", write.bytes);
    xml.leaf("WriteCount", write.count);
    if span.requested.measure_latency {
        mean_and_deviation(xml, &read, "AverageReadLatencyMilliseconds", "ReadLatencyStdev");
        mean_and_deviation(xml, &write, "AverageWriteLatencyMilliseconds", "WriteLatencyStdev");
        mean_and_deviation(xml, &total, "AverageLatencyMilliseconds", "LatencyStdev");
    }
    if span.requested.iops_deviation {
        xml.within("Iops", |xml| iops(xml, &share.buckets()));
    }
}
