use crate::StorageError;
use crate::alignment::{self, Alignment};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use workload::{Caching, Layout, LayoutMap};

/// A range of bytes of a file, a block device or a volume, opened for load.
#[derive(Debug)]
pub struct Region {
    /// Open for as long as the region exists; a block device that is written to is opened exclusively.
    pub file: File,
    /// First byte of the range.
    pub offset_bytes: u64,
    /// Length of the range, a multiple of `align_bytes`.
    pub bytes: u64,
    /// Whether I/Os bypass the page cache.
    pub direct: bool,
    /// Offsets and lengths must be multiples of this; 1 through the page cache.
    pub align_bytes: u32,
    /// Buffers must be aligned to this; 1 through the page cache.
    pub memory_align_bytes: u32,
    /// The opened path; the first member of a volume.
    pub path: PathBuf,
    /// Set where the range is made of several files or devices; `file` is then the first member's.
    pub volume: Option<Box<Volume>>,
}

/// Several regions that make one range of bytes.
#[derive(Debug)]
pub struct Volume {
    /// Span or stripe.
    pub layout: Layout,
    /// Map of bytes to members. Offsets count from the member's `offset_bytes`.
    pub map: LayoutMap,
    /// In the order of the layout; none is a volume itself.
    pub members: Vec<Region>,
}

/// Access pattern announced to the page cache (`posix_fadvise`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedAccess {
    /// None announced: the kernel adapts its read-ahead to the accesses.
    Anything,
    /// No read-ahead.
    Random,
    /// Twice the usual read-ahead.
    Sequential,
}

/// Most members of a volume.
pub const MEMBERS_MAX: usize = 256;
/// An I/O to such a region is cut into no more parts: they are submitted together.
pub const PARTS_MAX: usize = 64;

impl Region {
    /// Combines regions into a volume. Offsets and lengths of its I/Os must be aligned for all members.
    ///
    /// # Errors
    /// [`StorageError::Layout`]: fewer than two members or too many, a member twice, members of which some are opened
    /// directly and some not, or a unit that is no multiple of what a member's direct I/O needs.
    pub fn combine(layout: Layout, members: Vec<Region>) -> Result<Region, StorageError> {
        let refused = |why: String| StorageError::Layout { layout: layout.to_string(), why };
        let Some(first) = members.first().filter(|_| (2..=MEMBERS_MAX).contains(&members.len())) else {
            return Err(refused(format!("it has {} members: give 2 to {MEMBERS_MAX}", members.len())));
        };
        for (at, member) in members.iter().enumerate() {
            let identity = |region: &Region| {
                region.file.metadata().map(|metadata| (metadata.dev(), metadata.ino(), metadata.rdev())).ok()
            };
            let identity_here = identity(member);
            if identity_here.is_some() && members[..at].iter().any(|other| identity(other) == identity_here) {
                return Err(refused(format!("{} is a member twice", member.path.display())));
            }
            if member.direct != first.direct {
                return Err(refused("some members take direct I/O and some do not".into()));
            }
        }
        let align_bytes = members.iter().map(|member| member.align_bytes).max().unwrap_or(1);
        let memory_align_bytes = members.iter().map(|member| member.memory_align_bytes).max().unwrap_or(1);
        if let Layout::Stripe { unit_bytes } = layout
            && !unit_bytes.is_multiple_of(u64::from(align_bytes))
        {
            return Err(refused(format!(
                "its unit must be a multiple of {align_bytes} bytes for direct I/O"
            )));
        }
        // A span cuts an I/O where one member ends and the next begins: that offset must be aligned as well.
        let sizes: Vec<u64> =
            members.iter().map(|member| member.bytes - member.bytes % u64::from(align_bytes)).collect();
        let map = LayoutMap::new(layout, &sizes);
        if map.size_bytes() == 0 {
            return Err(refused("its smallest member has no room for one unit".into()));
        }
        let file =
            first.file.try_clone().map_err(|error| StorageError::from_io("open", &first.path, error))?;
        Ok(Region {
            file,
            offset_bytes: 0,
            bytes: map.size_bytes(),
            direct: first.direct,
            align_bytes,
            memory_align_bytes,
            path: first.path.clone(),
            volume: Some(Box::new(Volume { layout, map, members })),
        })
    }

    /// The members of a volume, or the region itself.
    pub fn members(&self) -> &[Region] {
        match &self.volume {
            Some(volume) => &volume.members,
            None => std::slice::from_ref(self),
        }
    }

    /// Name in results: its path, or "/dev/a, /dev/b as stripe:64K".
    pub fn name(&self) -> String {
        let Some(volume) = &self.volume else { return self.path.display().to_string() };
        let paths: Vec<String> =
            volume.members.iter().map(|member| member.path.display().to_string()).collect();
        format!("{} as {}", paths.join(", "), volume.layout)
    }

    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    /// The kernel's; `UnexpectedEof` beyond the end.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
        let Some(volume) = &self.volume else { return self.file.read_exact_at(buffer, offset) };
        let mut left = buffer;
        let bytes = left.len() as u64;
        for part in volume.map.parts(offset, bytes) {
            let (now, later) = left.split_at_mut(part.bytes as usize);
            let member = &volume.members[part.member];
            member.file.read_exact_at(now, member.offset_bytes + part.offset)?;
            left = later;
        }
        if left.is_empty() { Ok(()) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Announces the expected access pattern of this open file.
    ///
    /// # Errors
    /// The kernel's.
    pub fn advise(&self, expected: ExpectedAccess) -> Result<(), StorageError> {
        let advice = match expected {
            ExpectedAccess::Anything => rustix::fs::Advice::Normal,
            ExpectedAccess::Random => rustix::fs::Advice::Random,
            ExpectedAccess::Sequential => rustix::fs::Advice::Sequential,
        };
        self.members().iter().try_for_each(|member| {
            rustix::fs::fadvise(&member.file, 0, None, advice)
                .map_err(|error| StorageError::from_io("advise on", &member.path, error))
        })
    }
}

/// How a file is opened as a region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenMode<'a> {
    pub caching: Caching,
    /// Requirements of direct I/O; `None` where there is none.
    pub alignment: Option<Alignment>,
    /// For the message where there is none.
    pub filesystem: Option<&'a str>,
}

impl Region {
    /// Opens `file` again as a region of its first `bytes` bytes, with flags of its own.
    pub(crate) fn reopen(
        file: &File,
        path: &Path,
        flags: OFlags,
        bytes: u64,
        mode: OpenMode<'_>,
    ) -> Result<Region, StorageError> {
        let no_direct =
            || StorageError::NoDirectIo { path: path.into(), why: alignment::refusal(mode.filesystem) };
        let direct = mode.caching == Caching::Direct;
        if direct && mode.alignment.is_none() {
            return Err(no_direct());
        }
        let flags = if direct { flags | OFlags::DIRECT } else { flags };
        match without_atime(flags, |flags| alignment::reopen(file, flags)) {
            Ok(file) => Region::new(file, path, bytes, mode),
            Err(Errno::INVAL) if direct => Err(no_direct()),
            Err(error) => Err(StorageError::from_io("open", path, error)),
        }
    }

    /// A region of the first `bytes` bytes of an open file or device, less what direct I/O cannot reach.
    pub(crate) fn new(
        file: File,
        path: &Path,
        bytes: u64,
        mode: OpenMode<'_>,
    ) -> Result<Region, StorageError> {
        let direct = mode.caching == Caching::Direct;
        let (align_bytes, memory_align_bytes) = match mode.alignment.filter(|_| direct) {
            Some(alignment) => (alignment.offset_bytes, alignment.memory_bytes),
            None => (1, 1),
        };
        let usable = bytes - bytes % u64::from(align_bytes);
        if usable == 0 {
            return Err(StorageError::TooSmall { path: path.into(), bytes, align_bytes });
        }
        let path = path.to_path_buf();
        Ok(Region {
            file,
            offset_bytes: 0,
            bytes: usable,
            direct,
            align_bytes,
            memory_align_bytes,
            path,
            volume: None,
        })
    }
}

/// Opens with `O_NOATIME` where that is permitted: reads then change nothing, and no I/O updates an access time.
pub(crate) fn without_atime<T>(flags: OFlags, open: impl Fn(OFlags) -> Result<T, Errno>) -> Result<T, Errno> {
    match open(flags | OFlags::NOATIME) {
        // Another user's file.
        Err(Errno::PERM) => open(flags),
        opened => opened,
    }
}
