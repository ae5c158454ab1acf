use workload::{Trace, Workload};

/// A workload, the region of the storage that it runs on, and its recorded I/Os if it has some.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The I/Os to issue.
    pub workload: &'a Workload,
    /// Name of the region in results.
    pub target: String,
    /// First byte of the region on the storage.
    pub offset: u64,
    /// Size of the region.
    pub bytes: u64,
    /// Share in a pool.
    pub weight: u32,
    /// I/Os to replay instead of chosen ones.
    pub trace: Option<&'a Trace>,
}
