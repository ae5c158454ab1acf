//! Work of each member of a layout.

use charts::number;
use workload::RunResult;

/// Work of a member in a run: shares of the I/Os, rates a second.
pub(crate) struct MemberRow<'a> {
    pub(crate) path: &'a str,
    pub(crate) share: f64,
    pub(crate) iops: f64,
    pub(crate) mib_per_s: f64,
    pub(crate) outstanding: f64,
    mean_ns: Option<f64>,
    pub(crate) failed: u64,
}

impl MemberRow<'_> {
    pub(crate) fn all(result: &RunResult) -> impl Iterator<Item = MemberRow<'_>> {
        let seconds = result.elapsed_s().max(1e-9);
        let all: u64 = result.members.iter().map(|member| member.total().count).sum();
        result.members.iter().map(move |member| {
            let total = member.total();
            MemberRow {
                path: &member.path,
                share: total.count as f64 / all.max(1) as f64,
                iops: total.count as f64 / seconds,
                mib_per_s: total.bytes as f64 / 1_048_576.0 / seconds,
                outstanding: total.stall_ns as f64 / 1e9 / seconds,
                mean_ns: total.mean_ns(),
                failed: member.failed,
            }
        })
    }

    pub(crate) fn mean(&self) -> String {
        self.mean_ns.map_or(number::NONE.into(), number::time)
    }
}
