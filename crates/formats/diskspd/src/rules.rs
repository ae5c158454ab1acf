//! The rules between the settings of a profile, from a command line or from XML.

use crate::profile::{CacheMode, Order, Profile, Range, SpanUnit, Target, Throughput, TimeSpan};
use crate::usage::UsageError;

/// The origin of a profile. A command line gives all targets the same settings, so an error is reported once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Flags.
    CommandLine,
    /// An XML profile; errors name time span and target.
    Xml,
}

/// Checks a profile. Returns warnings about unusual settings that are allowed.
///
/// # Errors
/// All contradictions and all values out of range.
pub fn check(profile: &Profile, origin: Origin) -> Result<Vec<String>, Vec<UsageError>> {
    let mut found = Findings::default();
    if profile.time_spans.is_empty() {
        found.error("no time span", "nothing would run", "give at least one <TimeSpan>");
    }
    for (number, span) in (1..).zip(&profile.time_spans) {
        found.place = if origin == Origin::Xml { format!("time span {number}: ") } else { String::new() };
        check_span(span, &mut found);
        for (index, target) in (1..).zip(&span.targets) {
            if origin == Origin::Xml {
                found.place = format!("time span {number}, target {index} '{}': ", target.path);
            }
            check_threads(span, target, &mut found);
            check_rates(span, target, &mut found);
            check_order(span, target, &mut found);
            check_data(span, target, &mut found);
            if origin == Origin::CommandLine {
                break;
            }
        }
    }
    if found.errors.is_empty() { Ok(found.warnings) } else { Err(found.errors) }
}

/// Refuses templates without a target on the command line: such a profile can be shown, not run.
///
/// # Errors
/// One for each template that is left.
pub fn check_no_templates(profile: &Profile) -> Result<(), Vec<UsageError>> {
    let targets = profile.time_spans.iter().flat_map(|span| &span.targets);
    let mut names: Vec<&str> =
        targets.filter(|target| target.is_template()).map(|target| target.path.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let error = |name: &str| {
        let why = "no target stands for this template";
        UsageError::new(name, why, "name the targets *1, *2 ... in this order after -X")
    };
    if names.is_empty() { Ok(()) } else { Err(names.into_iter().map(error).collect()) }
}

/// Refuses ranges that ask for more than all I/Os or all of the target, or leave I/Os without a place.
pub(crate) fn ranges_fit(unit: SpanUnit, ranges: &[Range]) -> Result<(), String> {
    let (mut ios, mut span) = (0_u64, 0_u64);
    for range in ranges {
        ios += u64::from(range.ios_percent);
        span = span.checked_add(range.span).ok_or("the ranges together are 2^64 bytes or more")?;
        if ios > 100 {
            return Err(format!("the ranges ask for {ios} % of the I/Os"));
        }
        if unit == SpanUnit::Percent && span > 100 {
            return Err(format!("the ranges cover {span} % of the target"));
        }
        if unit == SpanUnit::Percent && span == 100 && ios < 100 {
            return Err(format!("all of the target is covered, and {} % of the I/Os are left", 100 - ios));
        }
    }
    Ok(())
}

#[derive(Default)]
struct Findings {
    place: String,
    errors: Vec<UsageError>,
    warnings: Vec<String>,
}

impl Findings {
    fn error(&mut self, what: &str, why: &str, instead: &str) {
        self.errors.push(UsageError::new(format!("{}{what}", self.place), why, instead));
    }

    fn refuse(&mut self, when: bool, what: &str, why: &str, instead: &str) {
        if when {
            self.error(what, why, instead);
        }
    }

    fn warn(&mut self, when: bool, what: &str) {
        if when {
            self.warnings.push(format!("{}{what}", self.place));
        }
    }
}

fn check_span(span: &TimeSpan, found: &mut Findings) {
    found.refuse(span.targets.is_empty(), "no target", "there is nothing to run on", "name a file or device");
    found.refuse(span.duration_s == 0, "-d0", "nothing would be measured", "give at least 1 second");
    found.refuse(
        span.disable_affinity && !span.affinity.is_empty(),
        "-n with -a",
        "threads are bound to CPUs or they are not",
        "leave one out",
    );
    found.refuse(
        span.iops_deviation && span.bucket_ms == 0,
        "-D",
        "a bucket of 0 ms",
        "give at least 1 millisecond",
    );
    found.warn(
        span.outstanding_total > 0 && span.threads_total == 0,
        "-O has no effect without -F: each target keeps its own -o",
    );
}

fn check_threads(span: &TimeSpan, target: &Target, found: &mut Findings) {
    found.refuse(target.threads == 0, "-t0", "no thread", "give at least 1");
    found.refuse(target.outstanding == 0, "-o0", "no outstanding I/O", "give at least 1");
    found.refuse(
        span.threads_total > 0 && target.threads > 1,
        &format!("-F{} with -t{}", span.threads_total, target.threads),
        "threads serve all targets, or each target has its own",
        "leave one out",
    );
    if span.shares_outstanding() {
        let what = |flag: &str| format!("{flag} with -F{} -O{}", span.threads_total, span.outstanding_total);
        let why = "outstanding I/Os that targets share belong to none of them";
        let instead = "leave it out, or give -o instead of -O";
        found.refuse(target.throughput.is_some(), &what("-g"), why, instead);
        found.refuse(target.think_time_ms > 0, &what("-j"), why, instead);
        found.refuse(target.same_offset, &what("-p"), why, instead);
        found.refuse(target.weight == 0, "<Weight>0", "the target would get no I/O", "give at least 1");
        let beyond = target.thread_targets.iter().find(|one| one.thread >= span.threads_total);
        if let Some(one) = beyond {
            let why = format!("there are threads 0 to {}", span.threads_total - 1);
            found.error(&format!("<ThreadTarget> of thread {}", one.thread), &why, "");
        }
    } else {
        let why = "threads are named only where all share their outstanding I/Os";
        let instead = "give <ThreadCount> and <RequestCount> of the time span";
        found.refuse(!target.thread_targets.is_empty(), "<ThreadTargets>", why, instead);
    }
}

fn check_rates(span: &TimeSpan, target: &Target, found: &mut Findings) {
    let zero = matches!(target.throughput, Some(Throughput::BytesPerMs(0) | Throughput::Iops(0)));
    found.refuse(zero, "-g0", "a limit of nothing", "give at least 1, or leave -g out");
    found.refuse(
        target.throughput.is_some() && span.completion_routines,
        "-g with -x",
        "completion routines know no limit",
        "leave one out",
    );
    found.refuse(
        (target.burst_ios > 0) != (target.think_time_ms > 0),
        if target.burst_ios > 0 { "-i without -j" } else { "-j without -i" },
        "a burst has I/Os and a rest after it",
        "give both",
    );
    found.warn(
        target.throughput.is_some() && target.burst_ios > 0,
        "-i and -j have no effect with -g, as in diskspd",
    );
}

fn check_order(span: &TimeSpan, target: &Target, found: &mut Findings) {
    let threads = span.threads_of(target);
    let apart = target.thread_stride_bytes > 0;
    if target.random_percent > 0 {
        let why = "it is about sequential I/O";
        found.refuse(apart, "-T with -r", why, "leave one out");
        found.refuse(target.interlocked, "-si with -r", why, "leave one out");
        found.refuse(target.same_offset, "-p with -r", why, "leave one out");
    } else {
        let why = "it is about random I/O, and there is none";
        found.refuse(target.distribution.is_some(), "-rd", why, "give -r or -rs as well");
        found.refuse(
            apart && target.interlocked,
            "-si with -T",
            "one offset has no distance",
            "leave one out",
        );
        let why = "the offset is that of all threads, or that of each outstanding I/O";
        found.refuse(target.same_offset && target.interlocked, "-si with -p", why, "leave one out");
        let why = "one thread has no distance to another";
        found.refuse(
            apart && !target.interlocked && threads <= 1,
            "-T with one thread",
            why,
            "give -t or -F",
        );
        found.warn(target.same_offset && target.outstanding == 1, "-p has no effect with -o1");
        found.warn(target.interlocked && threads <= 1, "-si has no effect with one thread");
        found.warn(
            threads > 1 && !apart && target.order() != Order::Interlocked,
            "the threads walk over the same blocks, so the target sees no sequential I/O; consider -si or -T",
        );
    }
    if let Some(distribution) = &target.distribution {
        let flag = if distribution.unit == SpanUnit::Percent { "-rdpct" } else { "-rdabs" };
        if let Err(why) = ranges_fit(distribution.unit, &distribution.ranges) {
            found.error(flag, &why, "lower a share");
        }
        let total = distribution.ranges.iter().fold(0_u64, |sum, range| sum.saturating_add(range.span));
        match distribution.unit {
            SpanUnit::Percent if total < 100 => {
                let why = format!("the ranges cover {total} % of the target, with all I/Os");
                found.error(flag, &why, "add a hole for the rest, as in 100/50:0/50");
            }
            SpanUnit::Percent => {}
            SpanUnit::Bytes => {
                let rest = distribution.ranges.len().saturating_sub(1);
                let small = distribution.ranges.iter().enumerate().find(|(index, range)| {
                    range.span < u64::from(target.block_bytes) && !(range.span == 0 && *index == rest)
                });
                if let Some((_, range)) = small {
                    let why = format!("a range of {} bytes holds no block (-b)", range.span);
                    found.error(flag, &why, "make it at least one block");
                }
            }
        }
    }
    found.refuse(
        target.end_bytes.is_some_and(|end| end <= target.base_bytes),
        "-f",
        "the end is not above the base (-B)",
        "raise -f or lower -B",
    );
}

fn check_data(span: &TimeSpan, target: &Target, found: &mut Findings) {
    found.refuse(target.block_bytes == 0, "-b0", "an I/O of nothing", "give at least one sector, as -b512");
    if let crate::profile::Content::Buffer { bytes, .. } = target.content {
        let small = bytes < u64::from(target.block_bytes);
        let why = format!("a buffer of {bytes} bytes holds no block of {}", target.block_bytes);
        found.refuse(small, "-Z", &why, "make it at least one block (-b)");
    }
    if target.mapped {
        let why = "a mapping has no completions";
        found.refuse(span.completion_routines, "-x with -Sm", why, "leave one out");
        let unbuffered = target.cache == CacheMode::Unbuffered;
        found.refuse(
            unbuffered,
            "-Su with -Sm",
            "a mapped file goes through the software cache",
            "leave one out",
        );
    } else {
        found.refuse(target.flush.is_some(), "-N", "only mapped writes are flushed so", "give -Sm as well");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Content, Cpu, Distribution, FlushMode, ThreadTarget};

    fn checked(change: impl FnOnce(&mut TimeSpan)) -> Result<Vec<String>, Vec<String>> {
        let mut span = TimeSpan { targets: vec![Target::new("t")], ..TimeSpan::new() };
        change(&mut span);
        let profile = Profile { time_spans: vec![span], ..Profile::default() };
        let errors = |errors: Vec<UsageError>| errors.into_iter().map(|error| error.what).collect();
        check(&profile, Origin::CommandLine).map_err(errors)
    }

    fn target(change: impl FnOnce(&mut Target)) -> Result<Vec<String>, Vec<String>> {
        checked(|span| change(&mut span.targets[0]))
    }

    fn refused(what: &str) -> Result<Vec<String>, Vec<String>> {
        Err(vec![what.into()])
    }

    #[test]
    fn contradictions_are_refused_by_name() {
        assert_eq!(checked(|_| {}), Ok(vec![]));
        assert_eq!(checked(|span| span.targets.clear()), refused("no target"));
        assert_eq!(checked(|span| span.duration_s = 0), refused("-d0"));
        let bound = checked(|span| {
            span.disable_affinity = true;
            span.affinity.push(Cpu { group: 0, processor: 1 });
        });
        assert_eq!(bound, refused("-n with -a"));
        let both = checked(|span| {
            span.threads_total = 8;
            span.targets[0].threads = 4;
            span.targets[0].interlocked = true;
        });
        assert_eq!(both, refused("-F8 with -t4"));
        let limited = checked(|span| {
            span.completion_routines = true;
            span.targets[0].throughput = Some(Throughput::Iops(5));
        });
        assert_eq!(limited, refused("-g with -x"));
        assert_eq!(target(|target| target.burst_ios = 5), refused("-i without -j"));
        assert_eq!(target(|target| target.think_time_ms = 5), refused("-j without -i"));
        assert_eq!(target(|target| target.flush = Some(FlushMode::ViewOfFile)), refused("-N"));
        let unbuffered = target(|target| {
            target.mapped = true;
            target.cache = CacheMode::Unbuffered;
        });
        assert_eq!(unbuffered, refused("-Su with -Sm"));
        let routines = checked(|span| {
            span.completion_routines = true;
            span.targets[0].mapped = true;
        });
        assert_eq!(routines, refused("-x with -Sm"));
        let small = target(|target| target.content = Content::Buffer { bytes: 65535, file: None });
        assert_eq!(small, refused("-Z"));
        let end = target(|target| (target.base_bytes, target.end_bytes) = (4096, Some(4096)));
        assert_eq!(end, refused("-f"));
    }

    #[test]
    fn shared_outstanding_ios_know_no_limits_of_a_target() {
        let shared = |change: fn(&mut Target)| {
            checked(|span| {
                (span.threads_total, span.outstanding_total) = (2, 8);
                span.targets[0].interlocked = true;
                change(&mut span.targets[0]);
            })
        };
        assert_eq!(shared(|_| {}), Ok(vec![]));
        assert_eq!(
            shared(|target| target.throughput = Some(Throughput::BytesPerMs(1))),
            refused("-g with -F2 -O8")
        );
        let bursts = shared(|target| (target.burst_ios, target.think_time_ms) = (1, 1));
        assert_eq!(bursts, refused("-j with -F2 -O8"));
        let same = shared(|target| (target.interlocked, target.same_offset) = (false, true));
        assert_eq!(same, refused("-p with -F2 -O8"));
        assert_eq!(shared(|target| target.weight = 0), refused("<Weight>0"));
        let beyond = shared(|target| target.thread_targets.push(ThreadTarget { thread: 2, weight: None }));
        assert_eq!(beyond, refused("<ThreadTarget> of thread 2"));
        let alone = target(|target| target.thread_targets.push(ThreadTarget { thread: 0, weight: None }));
        assert_eq!(alone, refused("<ThreadTargets>"));
    }

    #[test]
    fn random_and_sequential_settings_do_not_mix() {
        for random_percent in [1, 50, 100] {
            let random = |change: fn(&mut Target)| {
                target(|target| {
                    target.random_percent = random_percent;
                    target.threads = 2;
                    change(target);
                })
            };
            assert_eq!(random(|_| {}), Ok(vec![]));
            assert_eq!(random(|target| target.thread_stride_bytes = 1), refused("-T with -r"));
            assert_eq!(random(|target| target.interlocked = true), refused("-si with -r"));
            assert_eq!(random(|target| target.same_offset = true), refused("-p with -r"));
        }
        let pair = |change: fn(&mut Target)| {
            target(|target| {
                target.threads = 2;
                change(target);
            })
        };
        let both = pair(|target| (target.interlocked, target.thread_stride_bytes) = (true, 1));
        assert_eq!(both, refused("-si with -T"));
        assert_eq!(
            pair(|target| (target.interlocked, target.same_offset) = (true, true)),
            refused("-si with -p")
        );
        assert_eq!(target(|target| target.thread_stride_bytes = 1), refused("-T with one thread"));
    }

    #[test]
    fn distributions_name_all_of_the_target_once() {
        let ranges = |unit, list: &[(u8, u64)]| {
            target(|target| {
                target.random_percent = 100;
                let ranges = list.iter().map(|&(ios_percent, span)| Range { ios_percent, span }).collect();
                target.distribution = Some(Distribution { unit, ranges });
            })
        };
        assert_eq!(ranges(SpanUnit::Percent, &[(90, 10), (10, 90)]), Ok(vec![]));
        assert_eq!(ranges(SpanUnit::Percent, &[(100, 50), (0, 50)]), Ok(vec![]));
        assert_eq!(ranges(SpanUnit::Percent, &[(100, 50)]), refused("-rdpct"));
        assert_eq!(ranges(SpanUnit::Bytes, &[(90, 1 << 20), (10, 0)]), Ok(vec![]));
        assert_eq!(ranges(SpanUnit::Bytes, &[(90, 65535), (10, 0)]), refused("-rdabs"));
        assert_eq!(ranges(SpanUnit::Bytes, &[(50, 0), (50, 1 << 20)]), refused("-rdabs"));
        let sequential = target(|target| {
            target.distribution = Some(Distribution::new(SpanUnit::Percent, vec![]));
        });
        assert_eq!(sequential, refused("-rd"));
    }

    #[test]
    fn what_is_only_odd_is_warned_of() {
        let warned = |told: Result<Vec<String>, Vec<String>>, text: &str| {
            assert!(matches!(&told, Ok(all) if all.len() == 1 && all[0].contains(text)), "{text}: {told:?}");
        };
        warned(target(|target| target.threads = 2), "consider -si");
        warned(target(|target| (target.same_offset, target.outstanding) = (true, 1)), "-p has no effect");
        warned(target(|target| target.interlocked = true), "-si has no effect");
        warned(checked(|span| span.outstanding_total = 4), "-O has no effect");
        let bursts = target(|target| {
            target.throughput = Some(Throughput::Iops(1));
            (target.burst_ios, target.think_time_ms) = (1, 1);
        });
        warned(bursts, "-i and -j have no effect");
    }
}
