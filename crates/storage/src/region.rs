use std::fs::File;
use std::path::PathBuf;

/// The bytes of an opened target that load may touch.
#[derive(Debug)]
pub struct Region {
    /// The opened target.
    pub file: File,
    /// First byte.
    pub offset_bytes: u64,
    /// How many.
    pub bytes: u64,
    /// Opened with `O_DIRECT`.
    pub direct: bool,
    /// Offsets and lengths must be multiples of this.
    pub align_bytes: u32,
    /// Buffers must be aligned to this.
    pub memory_align_bytes: u32,
    /// For messages.
    pub path: PathBuf,
}
