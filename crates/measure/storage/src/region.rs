use crate::alignment::{self, Alignment};
use crate::extents::Unwritten;
use crate::{StorageError, Target};
use host::{DeviceNumber, device_uses, file_uses, is_read_only};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use workload::{Caching, Layout, LayoutMap, TargetKind};

/// What load may do to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads only.
    ReadOnly,
    /// Reads and writes.
    ReadWrite {
        /// The person said that the content may be destroyed. Not needed for Headroom's own test files, and
        /// not enough for storage in use.
        destroy_data: bool,
    },
}

/// A stretch of storage opened for load.
#[derive(Debug)]
pub struct Region {
    /// Opened as asked; on a block device for writing also exclusively, for as long as it is open.
    pub file: File,
    /// Where the stretch begins.
    pub offset_bytes: u64,
    /// How long it is, a multiple of `align_bytes`.
    pub bytes: u64,
    /// Whether I/Os bypass the page cache.
    pub direct: bool,
    /// Offsets and lengths must be multiples of this; 1 through the page cache.
    pub align_bytes: u32,
    /// Buffers must be aligned to this; 1 through the page cache.
    pub memory_align_bytes: u32,
    /// What was opened; of a layout its first member.
    pub path: PathBuf,
    /// What it is made of, where that is more than one file or device; then `file` is the first member's.
    pub laid: Option<Box<Laid>>,
}

/// The members of a region and how they make one range of bytes.
#[derive(Debug)]
pub struct Laid {
    /// Span or stripe.
    pub layout: Layout,
    /// Which bytes lie where. Offsets count from each member's own `offset_bytes`.
    pub map: LayoutMap,
    /// In their order; none of them is laid itself.
    pub members: Vec<Region>,
}

/// Which accesses the kernel is told to expect through the page cache (`posix_fadvise`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Any: it goes by what it sees.
    Anything,
    /// Here and there: it reads nothing ahead.
    Random,
    /// One after the other: it reads far ahead.
    Sequential,
}

/// A layout has no more members.
pub const MEMBERS_MAX: usize = 256;

impl Region {
    /// Lays regions out as one. Offsets and lengths must then fit all members.
    ///
    /// # Errors
    /// [`StorageError::Layout`]: fewer than two members or too many, a member twice, members of which some are opened
    /// directly and some not, or a unit that is no multiple of what a member's direct I/O needs.
    pub fn laid(layout: Layout, members: Vec<Region>) -> Result<Region, StorageError> {
        let refused = |why: String| StorageError::Layout { layout: layout.to_string(), why };
        let Some(first) = members.first().filter(|_| (2..=MEMBERS_MAX).contains(&members.len())) else {
            return Err(refused(format!("it has {} members: give 2 to {MEMBERS_MAX}", members.len())));
        };
        for (at, member) in members.iter().enumerate() {
            let identity = |region: &Region| {
                region.file.metadata().map(|metadata| (metadata.dev(), metadata.ino(), metadata.rdev())).ok()
            };
            let its = identity(member);
            if its.is_some() && members[..at].iter().any(|other| identity(other) == its) {
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
        // Where a span goes from one member to the next, an I/O is cut: there, too, it must fit.
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
            laid: Some(Box::new(Laid { layout, map, members })),
        })
    }

    /// The regions that are files or devices themselves: the members, or this one.
    pub fn members(&self) -> &[Region] {
        match &self.laid {
            Some(laid) => &laid.members,
            None => std::slice::from_ref(self),
        }
    }

    /// What a result calls it: its path, or "/dev/a, /dev/b as stripe:64K".
    pub fn name(&self) -> String {
        let Some(laid) = &self.laid else { return self.path.display().to_string() };
        let paths: Vec<String> =
            laid.members.iter().map(|member| member.path.display().to_string()).collect();
        format!("{} as {}", paths.join(", "), laid.layout)
    }

    /// Reads all of `buffer` from `offset` on.
    ///
    /// # Errors
    /// What the kernel says; `UnexpectedEof` behind the end.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
        let Some(laid) = &self.laid else { return self.file.read_exact_at(buffer, offset) };
        let mut left = buffer;
        let bytes = left.len() as u64;
        for part in laid.map.parts(offset, bytes) {
            let (now, later) = left.split_at_mut(part.bytes as usize);
            let member = &laid.members[part.member];
            member.file.read_exact_at(now, member.offset_bytes + part.offset)?;
            left = later;
        }
        if left.is_empty() { Ok(()) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Tells the kernel what to expect of this open file.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn advise(&self, expect: Expect) -> Result<(), StorageError> {
        let advice = match expect {
            Expect::Anything => rustix::fs::Advice::Normal,
            Expect::Random => rustix::fs::Advice::Random,
            Expect::Sequential => rustix::fs::Advice::Sequential,
        };
        self.members().iter().try_for_each(|member| {
            rustix::fs::fadvise(&member.file, 0, None, advice)
                .map_err(|error| StorageError::from_io("advise on", &member.path, error))
        })
    }
}

/// A file of which more than this was never written is not measured.
const UNWRITTEN_PERCENT_MAX: u64 = 1;

impl Target {
    /// Opens a file or block device for load. A directory is measured through
    /// [`TestFile::region`](crate::TestFile::region).
    ///
    /// # Errors
    /// [`StorageError::NotOurs`] for writing without `destroy_data`; [`StorageError::InUse`] for writing to
    /// a device or file in use, whatever was said; [`StorageError::Unwritten`] for a file with holes;
    /// [`StorageError::NoDirectIo`] where `caching` is direct and the file system cannot;
    /// [`StorageError::ReadOnlyFilesystem`], [`StorageError::ReadOnlyDevice`] and what the kernel refuses.
    pub fn open_for(&self, access: Access, caching: Caching) -> Result<Region, StorageError> {
        let path = self.path();
        let kind = match self.facts().kind {
            TargetKind::Directory => return Err(StorageError::IsDirectory { path: path.into() }),
            TargetKind::File => "file",
            TargetKind::BlockDevice => "block device",
        };
        if access == (Access::ReadWrite { destroy_data: false }) {
            return Err(StorageError::NotOurs { path: path.into(), kind });
        }
        match self.facts().kind {
            TargetKind::BlockDevice => open_device(path, access, caching, self.alignment()),
            _ => open_file(path, access, caching, self.alignment(), self.facts().filesystem.as_deref()),
        }
    }
}

fn open_file(
    path: &Path,
    access: Access,
    caching: Caching,
    alignment: Option<Alignment>,
    filesystem: Option<&str>,
) -> Result<Region, StorageError> {
    let file = open(path, mode(access))?;
    let metadata = file.metadata().map_err(|error| StorageError::from_io("look at", path, error))?;
    if !metadata.is_file() {
        return Err(StorageError::NotATarget { path: path.into(), found: "different thing than before" });
    }
    if access != Access::ReadOnly {
        let uses = file_uses(&metadata)
            .map_err(|error| StorageError::from_io("look at the uses of", path, error))?;
        if !uses.is_empty() {
            let uses = uses.iter().map(ToString::to_string).collect();
            return Err(StorageError::InUse { path: path.into(), uses });
        }
    }
    let bytes = metadata.len();
    let unwritten = Unwritten::of(&file, bytes).map_err(|error| StorageError::from_io("map", path, error))?;
    if unwritten.total_bytes() > bytes / 100 * UNWRITTEN_PERCENT_MAX {
        let Unwritten { hole_bytes, unwritten_bytes } = unwritten;
        return Err(StorageError::Unwritten { path: path.into(), hole_bytes, unwritten_bytes, bytes });
    }
    region_of(&file, path, mode(access), bytes, caching, alignment, filesystem)
}

fn open_device(
    path: &Path,
    access: Access,
    caching: Caching,
    alignment: Option<Alignment>,
) -> Result<Region, StorageError> {
    let mut flags = mode(access);
    let in_use = |uses| StorageError::InUse { path: path.into(), uses };
    if access != Access::ReadOnly {
        // The kernel lets a write-protected device be opened for writing and fails the writes.
        let number = DeviceNumber::for_block_device(path);
        if number.is_some_and(is_read_only) {
            return Err(StorageError::ReadOnlyDevice { path: path.into() });
        }
        let uses = number.map(device_uses).transpose();
        let uses = uses
            .map_err(|error| StorageError::from_io("look at the uses of", path, error))?
            .unwrap_or_default();
        if !uses.is_empty() {
            return Err(in_use(uses.iter().map(ToString::to_string).collect()));
        }
        // The kernel then refuses what this process cannot see, such as a mount in another namespace, and
        // keeps everybody from mounting it while load runs.
        flags |= OFlags::EXCL;
    }
    if caching == Caching::Direct {
        flags |= OFlags::DIRECT;
    }
    let mut file = match open_when_free(path, flags | OFlags::CLOEXEC) {
        Ok(file) => file,
        Err(rustix::io::Errno::BUSY) => {
            return Err(in_use(vec!["the kernel holds it for another user".into()]));
        }
        Err(error) => return Err(StorageError::from_io("open", path, error)),
    };
    let failed = |error| StorageError::from_io("look at", path, error);
    if !file.metadata().map_err(failed)?.file_type().is_block_device() {
        return Err(StorageError::NotATarget { path: path.into(), found: "different thing than before" });
    }
    let bytes = file.seek(SeekFrom::End(0)).map_err(failed)?;
    build(file, path, bytes, caching, alignment)
}

/// Opens a device, which a load that has just ended may still hold: the kernel takes its rings, and with them the
/// file, down only some time after the program is gone.
fn open_when_free(path: &Path, flags: OFlags) -> Result<File, rustix::io::Errno> {
    const WAIT_MAX: Duration = Duration::from_secs(2);
    const LOOK_EVERY: Duration = Duration::from_millis(20);
    let until = Instant::now() + WAIT_MAX;
    loop {
        match quietly(flags, |flags| rustix::fs::open(path, flags, Mode::empty())) {
            Err(rustix::io::Errno::BUSY) if Instant::now() < until => std::thread::sleep(LOOK_EVERY),
            opened => return opened.map(File::from),
        }
    }
}

/// A second opening of `file` as a region, so that its flags are its own.
pub(crate) fn region_of(
    file: &File,
    path: &Path,
    flags: OFlags,
    bytes: u64,
    caching: Caching,
    alignment: Option<Alignment>,
    filesystem: Option<&str>,
) -> Result<Region, StorageError> {
    let no_direct = || StorageError::NoDirectIo { path: path.into(), why: alignment::refusal(filesystem) };
    let direct = caching == Caching::Direct;
    if direct && alignment.is_none() {
        return Err(no_direct());
    }
    let flags = if direct { flags | OFlags::DIRECT } else { flags };
    match quietly(flags, |flags| alignment::reopen(file, flags)) {
        Ok(file) => build(file, path, bytes, caching, alignment),
        Err(rustix::io::Errno::INVAL) if direct => Err(no_direct()),
        Err(error) => Err(StorageError::from_io("open", path, error)),
    }
}

/// Opens what reading leaves no mark on (`O_NOATIME`), where that is allowed: a load of reads changes nothing, and
/// is not slowed by looking at the time for each I/O.
fn quietly<T>(
    flags: OFlags,
    open: impl Fn(OFlags) -> Result<T, rustix::io::Errno>,
) -> Result<T, rustix::io::Errno> {
    match open(flags | OFlags::NOATIME) {
        // Another user's file.
        Err(rustix::io::Errno::PERM) => open(flags),
        opened => opened,
    }
}

fn build(
    file: File,
    path: &Path,
    bytes: u64,
    caching: Caching,
    alignment: Option<Alignment>,
) -> Result<Region, StorageError> {
    let direct = caching == Caching::Direct;
    let (align_bytes, memory_align_bytes) = match alignment.filter(|_| direct) {
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
        laid: None,
    })
}

fn mode(access: Access) -> OFlags {
    match access {
        Access::ReadOnly => OFlags::RDONLY,
        Access::ReadWrite { .. } => OFlags::RDWR,
    }
}

fn open(path: &Path, flags: OFlags) -> Result<File, StorageError> {
    // Without NONBLOCK a pipe put in the file's place would hang the open.
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => Ok(File::from(file)),
        Err(rustix::io::Errno::TXTBSY) => {
            let uses = vec!["swap, or a program that runs".into()];
            Err(StorageError::InUse { path: path.into(), uses })
        }
        Err(error) => Err(StorageError::from_io("open", path, error)),
    }
}
