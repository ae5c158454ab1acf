use super::error::OpenError;
use super::memory::KernelTypes;
use super::refused::{no_table, open_error, table_error};
use crate::error::SourceError;
use aya::maps::PerCpuHashMap;
use aya::programs::BtfTracePoint;
use aya::{Ebpf, EbpfLoader};
use host::DeviceNumber;
use host::privileges::{Privilege, with};
use std::collections::HashMap;

/// Compiled by scripts/bpf and committed, so that building Headroom does not need clang.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../../../../bpf/users.bpf.o");
const PROGRAM: &str = "bio_queued";
const TRACEPOINT: &str = "block_bio_queue";
const TABLE: &str = "users";

/// The I/Os that each process queues on each disk, counted in the kernel since this was opened. Dropping it ends that.
pub struct DeviceUsers(Ebpf);

/// I/Os that entered the block layer, before it splits or merges them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queued {
    /// Reads.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Their bytes.
    pub write_bytes: u64,
}

impl Queued {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Queued) -> Queued {
        Queued {
            reads: self.reads.saturating_add(other.reads),
            read_bytes: self.read_bytes.saturating_add(other.read_bytes),
            writes: self.writes.saturating_add(other.writes),
            write_bytes: self.write_bytes.saturating_add(other.write_bytes),
        }
    }

    /// The increase since an earlier count. A user that the kernel's table forgot and counts again begins at 0.
    #[must_use]
    pub fn minus(self, earlier: Queued) -> Queued {
        Queued {
            reads: self.reads.saturating_sub(earlier.reads),
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            writes: self.writes.saturating_sub(earlier.writes),
            write_bytes: self.write_bytes.saturating_sub(earlier.write_bytes),
        }
    }

    /// Reads and writes.
    pub fn ios(self) -> u64 {
        self.reads.saturating_add(self.writes)
    }

    /// Bytes of both.
    pub fn bytes(self) -> u64 {
        self.read_bytes.saturating_add(self.write_bytes)
    }
}

/// A process, 0 for the threads of the kernel, and a whole disk.
pub type UserOfDevice = (u32, DeviceNumber);

impl DeviceUsers {
    /// Begins to count.
    ///
    /// # Errors
    /// The kernel does not let this user load BPF programs, or has no BTF.
    pub fn open() -> Result<DeviceUsers, OpenError> {
        with(Privilege::Programs, DeviceUsers::load)
    }

    fn load() -> Result<DeviceUsers, OpenError> {
        let types = KernelTypes::read()?;
        let btf = &types.btf;
        let mut ebpf =
            EbpfLoader::new().btf(Some(btf)).load(OBJECT).map_err(|error| open_error("maps", &error))?;
        let missing =
            || OpenError::Refused { program: PROGRAM.into(), why: "it is not in the object".into() };
        let failed = |error: aya::programs::ProgramError| open_error(PROGRAM, &error.into());
        let program: &mut BtfTracePoint =
            ebpf.program_mut(PROGRAM).ok_or_else(missing)?.try_into().map_err(failed)?;
        program.load(TRACEPOINT, btf).map_err(failed)?;
        program.attach().map_err(failed)?;
        Ok(DeviceUsers(ebpf))
    }

    /// The counts until now.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn read(&self) -> Result<HashMap<UserOfDevice, Queued>, SourceError> {
        with(Privilege::Programs, || self.read_table())
    }

    fn read_table(&self) -> Result<HashMap<UserOfDevice, Queued>, SourceError> {
        let map = self.0.map(TABLE).ok_or_else(|| no_table(TABLE))?;
        let table: PerCpuHashMap<_, u64, [u64; 4]> = PerCpuHashMap::try_from(map).map_err(table_error)?;
        let mut users = HashMap::new();
        for entry in table.iter() {
            let (key, parts) = entry.map_err(table_error)?;
            let parts = parts.iter().map(|[reads, read_bytes, writes, write_bytes]| Queued {
                reads: *reads,
                read_bytes: *read_bytes,
                writes: *writes,
                write_bytes: *write_bytes,
            });
            users.insert(user_of_device(key), parts.fold(Queued::default(), Queued::plus));
        }
        Ok(users)
    }
}

fn user_of_device(key: u64) -> UserOfDevice {
    ((key >> 32) as u32, DeviceNumber::from_kernel_form(key as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    use testbed::LoopDisk;

    #[test]
    fn each_read_of_a_disk_is_counted_for_the_process_that_asked_for_it() {
        let Some(disk) = LoopDisk::new(16 << 20) else { return };
        let users = match DeviceUsers::open() {
            Ok(users) => users,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        let mut options = std::fs::OpenOptions::new();
        let mut device = options.read(true).custom_flags(libc::O_DIRECT).open(disk.device()).unwrap();
        // A whole page, wherever it lies in a buffer of two.
        let mut buffer = vec![0_u8; 2 << 12];
        let at = buffer.as_ptr().align_offset(1 << 12);
        for _ in 0..100 {
            device.read_exact(&mut buffer[at..at + (1 << 12)]).unwrap();
        }
        let number = DeviceNumber::parse(disk.number()).unwrap();
        let counted = users.read().unwrap();
        let own = counted[&(std::process::id(), number)];
        assert_eq!(own, Queued { reads: 100, read_bytes: 100 << 12, writes: 0, write_bytes: 0 });
    }

    #[test]
    fn a_key_has_the_process_and_the_disk() {
        let number = DeviceNumber { major: 259, minor: 70_000 };
        let key = 812 << 32 | u64::from(number.kernel_form().unwrap());
        assert_eq!(user_of_device(key), (812, number));
        assert_eq!(Queued { reads: 1, writes: 2, read_bytes: u64::MAX, write_bytes: 1 }.bytes(), u64::MAX);
    }
}
