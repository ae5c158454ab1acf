//! All data files read whole, sequentially in large reads.

use crate::case::sum;
use crate::finding::{Span, at, stretches};
use crate::jobs::candidates::WholeRead;
use crate::limits::{BACKUP_APART_NS, BACKUP_SHARE};
use crate::source_case::SourceCase;
use crate::{Finding, FindingKind};
use findings::{Weight, words};
use workload::Unit;

/// Whole reads of nearly all data, close together.
pub(crate) fn backups(case: &SourceCase) -> Vec<Finding> {
    find(case).into_iter().collect()
}

fn find(case: &SourceCase) -> Option<Finding> {
    // Of a file of unknown size it cannot be said that all of it was read.
    let data_bytes = case.data_bytes.known().filter(|bytes| *bytes > 0)?;
    let mut reads = case.whole_reads.to_vec();
    reads.sort_by_key(|read| read.span.from_unix_ns);
    let mut groups: Vec<Vec<WholeRead>> = Vec::new();
    let mut ended = 0;
    for read in reads {
        match groups.last_mut() {
            Some(group) if read.span.from_unix_ns.saturating_sub(ended) <= BACKUP_APART_NS => {
                group.push(read);
            }
            _ => groups.push(vec![read]),
        }
        ended = ended.max(read.span.until_unix_ns);
    }
    let bytes_of = |group: &[WholeRead]| {
        let mut files: Vec<(usize, u64)> = group.iter().map(|read| (read.file, read.size_bytes)).collect();
        files.sort_unstable();
        files.dedup_by_key(|(file, _)| *file);
        (files.len(), sum(files.iter().map(|(_, bytes)| *bytes)))
    };
    groups.retain(|group| bytes_of(group).1 as f64 >= BACKUP_SHARE * data_bytes as f64);
    let first = groups.first()?;
    let (files, bytes) = bytes_of(first);
    let total = |of: fn(&WholeRead) -> u64| sum(first.iter().map(of));
    let (read_bytes, reads) = (total(|read| read.read_bytes), total(|read| read.reads));
    let spans: Vec<Span> = groups
        .iter()
        .map(|group| Span {
            from_unix_ns: group.iter().map(|read| read.span.from_unix_ns).min().unwrap_or(0),
            until_unix_ns: group.iter().map(|read| read.span.until_unix_ns).max().unwrap_or(0),
        })
        .collect();
    let what = if files == 1 { "a backup, or a scan of all of it" } else { "a backup" };
    let text = format!(
        "looks like {what}: from {} for {}, {} ({}, {} of all data) {} read whole, {} in reads of {}; {} like that",
        at(spans[0].from_unix_ns),
        words::length(spans[0].length_ns() as f64),
        words::counted(files as u64, "data file"),
        words::bytes(bytes),
        words::share(bytes as f64 / data_bytes as f64),
        if files == 1 { "was" } else { "were" },
        words::bytes(read_bytes),
        words::bytes(read_bytes / reads.max(1)),
        stretches(spans.len()),
    );
    Some(
        Finding::new(FindingKind::Backup, Weight::Note, text)
            .fact("files read whole", files as f64, Unit::Files)
            .fact("bytes read", read_bytes as f64, Unit::Bytes)
            .fact("mean size of a read", read_bytes as f64 / reads.max(1) as f64, Unit::Bytes)
            .fact("share of all data", bytes as f64 / data_bytes as f64, Unit::Share)
            .when(spans)
            .next("if it disturbs: limit its rate, move it to a quiet hour, or take it from a replica or a snapshot"),
    )
}
