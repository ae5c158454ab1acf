use serde::{Deserialize, Serialize};

/// Part of a target that a workload uses, and in what order: details that [`Pattern`](crate::Pattern) leaves
/// open.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Access {
    /// First byte that is used.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub base_bytes: u64,
    /// Bytes used from there on; `None` up to the end.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub length_bytes: Option<u64>,
    /// Random offsets are multiples of this, counted from `base_bytes`; `None`: of the block size.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub align_bytes: Option<u64>,
    /// From one sequential I/O to the next; `None`: the block size.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub stride_bytes: Option<u64>,
    /// Where random I/Os gather.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub distribution: Distribution,
    /// How the threads of a sequential workload share the target.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub walk: Walk,
    /// Share of the I/Os that go to a random place; the others follow their predecessor; the runs between two
    /// random places have geometric lengths, and each is all reads or all writes. `None`: the pattern
    /// decides.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub random_percent: Option<u8>,
    /// All outstanding I/Os of a sequential thread start at the same offset, and move on together.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub same_offset: bool,
}

/// How random I/Os spread over the target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Distribution {
    /// Everywhere alike.
    #[default]
    Uniform,
    /// The k-th most popular block is accessed with probability proportional to 1 / k^theta; popular blocks are
    /// scattered over the target. Gray et al. 1994, "Quickly generating billion-record synthetic databases".
    Zipf {
        /// 0 is uniform; 0.99 is what YCSB uses; below and above 1 are allowed, 1 itself as well.
        theta: f64,
    },
    /// A share `h` of the blocks gets a share `1 - h` of the I/Os, within each of the two parts again:
    /// 0.2 is the 80/20 rule (self-similar, Gray et al. 1994). Popular blocks are scattered.
    Pareto {
        /// Above 0, up to 0.5 (uniform).
        h: f64,
    },
    /// Each zone gets its share of the I/Os, one zone behind the other; what the zones leave of I/Os goes to
    /// what they leave of the target. Hot and cold data are two zones.
    Zones {
        /// From the start of the used part on.
        zones: Vec<Zone>,
    },
}

/// A zone of a target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Zone {
    /// Share of the I/Os; 0 is a hole.
    pub ios_percent: u8,
    /// How large it is.
    pub extent: Extent,
}

/// Size of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// In percent of the used part.
    Percent(u8),
    /// In bytes; cut where the target ends.
    Bytes(u64),
}

/// How several threads walk one target sequentially.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Walk {
    /// Each thread has its own part, and wraps in it.
    #[default]
    OwnParts,
    /// Thread k starts k times that many bytes after the base; each walks to the end and
    /// then from the beginning (diskspd without `-si`). 0: all threads walk over the same blocks.
    Apart(u64),
    /// One offset for all threads: each I/O of any of them is the next block (diskspd `-si`).
    Shared,
}

impl Access {
    /// The whole target in the order that the pattern says.
    pub fn is_plain(&self) -> bool {
        *self == Access::default()
    }
}
