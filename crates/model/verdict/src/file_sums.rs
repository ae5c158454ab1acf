//! Files as sums: of a server with thousands of them, a verdict needs only how much was done on files of each purpose.

use filestats::{Delta, FileIdentity, FileInterval, FileKind, Interval, Latencies, Meaning, Ops, Reason};
use std::mem::Discriminant;

/// The path of a sum.
const OTHERS: &str = "(other files)";

/// Sums files by what they are for and how they are counted, so that every figure of a verdict stays the same. Those whose
/// interval is unknown stay: each has its reason.
pub fn sum_files(files: impl IntoIterator<Item = FileInterval>) -> Vec<FileInterval> {
    let mut unknown = Vec::new();
    let mut sums: Vec<(Counting, FileInterval)> = Vec::new();
    for file in files {
        let Interval::Known(delta) = &file.interval else {
            unknown.push(file);
            continue;
        };
        let counting = Counting::new(&file, delta);
        match sums.iter_mut().find(|(known, _)| *known == counting) {
            None => sums.push((counting, of_others(file))),
            Some((_, sum)) => {
                if let Interval::Known(of_sum) = &mut sum.interval {
                    of_sum.add(delta);
                }
            }
        }
    }
    unknown.extend(sums.into_iter().map(|(_, sum)| sum));
    unknown
}

/// Properties shared by files that can be summed without losing facts known of one of them.
#[derive(PartialEq)]
struct Counting {
    kind: FileKind,
    meaning: Meaning,
    elapsed_ns: u64,
    /// Why reads, writes and syncs are not timed, or syncs not counted.
    untimed: [Option<Reason>; 4],
    /// It was written, and it was synced: whether a commit waited for it.
    committed: [bool; 2],
    latencies: Discriminant<Option<Latencies>>,
}

impl Counting {
    fn new(file: &FileInterval, delta: &Delta) -> Counting {
        let counters = &delta.counters;
        let sync = counters.sync.known();
        let untimed = |ops: &Ops| ops.stall_ns.reason();
        Counting {
            kind: file.file.kind,
            meaning: file.meaning,
            elapsed_ns: delta.elapsed_ns,
            untimed: [
                untimed(&counters.read),
                untimed(&counters.write),
                sync.as_ref().and_then(untimed),
                counters.sync.reason(),
            ],
            committed: [counters.write.count > 0, sync.is_some_and(|sync| sync.count > 0)],
            latencies: std::mem::discriminant(&delta.latencies),
        }
    }
}

/// The first of the others, without what names it.
fn of_others(file: FileInterval) -> FileInterval {
    let identity = FileIdentity {
        instance: file.file.instance.clone(),
        kind: file.file.kind,
        path: OTHERS.into(),
        drive: file.file.drive.clone(),
        ..FileIdentity::default()
    };
    FileInterval { file: identity.into(), ..file }
}
