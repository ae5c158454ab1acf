//! The labels of the families, and the words that are their values. No sentence and no path of a file is among them.

use filestats::FileClass;
use workload::{Durability, Pattern, Shape};

pub(super) const SUBJECT: &[&str] = &["mount", "source"];
pub(super) const BY_VERDICT: &[&str] = &["mount", "source", "verdict"];
pub(super) const BY_RESOURCE: &[&str] = &["mount", "source", "resource"];
pub(super) const BY_OPERATION: &[&str] = &["mount", "source", "op"];
pub(super) const BY_ORIGIN: &[&str] = &["mount", "from"];
pub(super) const BY_CURVE: &[&str] = &["mount", "curve"];
pub(super) const BY_POINT: &[&str] = &["mount", "curve", "outstanding"];
pub(super) const BY_FLOW: &[&str] = &["mount", "op", "pattern"];
pub(super) const BY_PART: &[&str] = &["mount", "part"];
pub(super) const DEVICE: &[&str] = &["mount", "device"];
pub(super) const DEVICE_BELOW: &[&str] = &["mount", "device", "type", "parent"];
pub(super) const BY_FILES: &[&str] = &["mount", "source", "kind", "layer", "op"];
pub(super) const SOURCE: &[&str] = &["source"];
pub(super) const BY_WAIT: &[&str] = &["source", "class"];
pub(super) const BY_SERVER: &[&str] = &["to", "reason"];

/// Where the operations of files are counted: by those who call, or below the page cache.
pub(super) fn layer(class: FileClass) -> &'static str {
    if class.below_cache { "block" } else { "file" }
}

/// A word for each shape: "random-read-8k", "sequential-write-60k-synced", "random-30w-8k".
pub(super) fn curve_name(shape: &Shape) -> String {
    let pattern = match shape.pattern {
        Pattern::Random => "random",
        Pattern::Sequential => "sequential",
    };
    let what = match shape.write_percent {
        0 => "read".to_owned(),
        100 => "write".to_owned(),
        percent => format!("{percent}w"),
    };
    let size = match shape.block_bytes {
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}m", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{}k", bytes >> 10),
        bytes => bytes.to_string(),
    };
    let durability = match shape.durability {
        Durability::Cached => "",
        Durability::WriteThrough => "-write-through",
        Durability::Synced => "-synced",
    };
    format!("{pattern}-{what}-{size}{durability}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_a_word() {
        assert_eq!(curve_name(&Shape::random_read(8192)), "random-read-8k");
        assert_eq!(curve_name(&Shape::log_append(61_440)), "sequential-write-60k-synced");
        let mixed = Shape { write_percent: 30, ..Shape::random_read(8192) };
        assert_eq!(curve_name(&mixed), "random-30w-8k");
    }
}
