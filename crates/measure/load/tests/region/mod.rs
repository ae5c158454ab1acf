//! Files that the page cache may answer, as regions to run on.

use std::fs::OpenOptions;
use std::path::Path;
use storage::Region;

/// All of an existing file, for reading, and for writing if it is said.
pub fn region_at(path: &Path, writes: bool) -> Region {
    let file = OpenOptions::new().read(true).write(writes).open(path).unwrap();
    let bytes = file.metadata().unwrap().len();
    Region {
        file,
        offset_bytes: 0,
        bytes,
        direct: false,
        align_bytes: 1,
        memory_align_bytes: 1,
        path: path.into(),
        laid: None,
    }
}
