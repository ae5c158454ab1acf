//! Facts of this host, out of /proc and /sys, and its clocks. Linux only.
//!
//! ```text
//! mounts          /proc/self/mountinfo       Mounts::read -> mount_of(path), names_of(device, path), is_mount_point
//! block_devices   /sys/dev/block, /sys/block device_chain(number): partitions, loop, dm and md devices, disks
//! in_use          mounts, /proc/swaps, sysfs device_uses(number), device_writers(number), file_uses(file), processes_using(device)
//! holders         /proc/PID/fd, fdinfo, maps Storage::holders: who writes to a device or file, or has locked it
//! exclusive       leases, locks              Held::ask: whether anything else writes to a file or has locked it
//! overlays        /proc/self/mountinfo       the other numbers of a file that an overlay shows
//! diskstats       /proc/diskstats            read_diskstats: the counters of each device
//! cgroups         cgroup v1 and v2           caps_for(devices, pid), cap_counted(cap), throttle_files(kind), memory
//! open_devices    /proc/PID/fdinfo, mountinfo  open_devices(pid): where the files lie that a process has open
//! process         /proc/PID                  ProcessStat::read, ProcessIo, ProcessIdentity::is_alive, pids, children_of
//! local_clients   /proc/PID/fd, net/tcp      the processes that are connected to a server
//! listeners       /proc/PID/net/unix, tcp    unix_listeners_of(pid), tcp_listeners_of(pid): where it listens
//! socket_file     open(2), connect(2)        SocketFile::find: a socket by a path that no other user leads elsewhere; peer_at
//! path_walk       openat(2)                  find_trusted: a file by a path that no other user leads elsewhere
//! peer            SO_PEERCRED                peer_of(socket): who is at the other end
//! open_files      /proc/PID/fd, fdinfo       open_files(pid), working_directory(pid)
//! process_files   /proc/PID/mountinfo, root  ProcessFiles: where its files lie on this host, and what is in them
//! command_line    /proc/PID/cmdline, environ arguments_of(pid), variable_of(pid, name)
//! membership      /proc/PID/cgroup           control_group_of(pid)
//! pressure        /proc/pressure/io          io_stalled_us: how long tasks waited for I/O, of the host and of a control group
//! processors      /proc/stat                 ProcessorTimes, CoreTimes: the share of the time in which they worked, each too
//! scheduling_group  /proc/PID/cgroup, autogroup  SchedulingGroups: among which processes a nice value counts
//! kernel          /proc/sys/kernel, meminfo  boot_id, hostname, host_names, release, memory_figures, available_memory_bytes
//! users           /etc/passwd, /etc/group    name_of_user, user_id, group_id, others_may_write
//! privileges      capget(2), capset(2)       give_up_unneeded, with(privilege, work): capabilities of threads
//! clock           clock_gettime(2)           unix_ns, monotonic_ns, suspended_ns
//! stops           /proc/thread-self/schedstat  StopMeter, TimedSleep: for how long this process was stopped
//! ```
//!
//! This crate is the only reader of these files. Each parser is a pure function of bytes, and paths stay bytes: a mount
//! point need not be UTF-8. The `procfs` crate is not used because it reads mountinfo as UTF-8 lines, fails as a whole on
//! one name that is not, and does not decode the octal escapes.
//!
//! Never: judges what it reads, writes to a device, or reports "unreadable" as "none" where the answer decides whether
//! data is destroyed.

mod block_devices;
mod bounded_read;
mod cgroups;
mod clock;
mod command_line;
mod device_number;
mod diskstats;
mod escape;
mod exclusive;
mod file_call;
mod holders;
mod in_use;
mod kernel;
mod kernel_file;
mod listeners;
mod local_clients;
mod membership;
mod mounts;
mod named_file;
mod open_devices;
mod open_files;
mod overlays;
mod own_usage;
mod path_walk;
mod peer;
mod pressure;
mod private_file;
pub mod privileges;
mod process;
mod process_files;
mod process_memory;
mod processors;
mod scheduling_group;
mod socket_file;
mod stops;
mod swaps;
mod users;

pub use block_devices::{
    LoopDevice, attribute_directory, device_chain, device_name, device_sequence, device_size_bytes,
    device_troubles, is_read_only, loop_devices, loop_is_detaching, loop_uses_direct_io, queue_attribute,
};
pub use cgroups::{
    GroupHierarchies, ThrottleFile, cap_counted, caps_for, caps_on, control_groups, throttle_files,
};
pub use clock::{monotonic_ns, suspended_ns, unix_ns};
pub use command_line::{arguments_of, variable_of};
pub use device_number::DeviceNumber;
pub use diskstats::{DISKSTATS, DiskCounters, DiskTransfers, disk_counters, read_diskstats};
pub use holders::{Hold, Holder};
pub use in_use::{
    DeviceUse, HOLDERS_WAIT_MAX, ProcessUse, device_uses, device_writers, file_uses, processes_using,
};
pub use kernel::{BOOT_ID, available_memory_bytes, boot_id, host_names, hostname, memory_figures, release};
pub use listeners::{tcp_listeners_of, unix_listeners_of};
pub use local_clients::local_clients;
pub use membership::control_group_of;
pub use mounts::{MOUNTINFO, Mount, Mounts};
pub use named_file::open_regular_file;
pub use open_devices::open_devices;
pub use open_files::{OpenFile, open_files, working_directory};
pub use own_usage::OwnUsage;
pub use path_walk::{PathError, check_directory, find_trusted};
pub use peer::{Peer, peer_of};
pub use pressure::{PRESSURE, io_stalled_us, io_stalled_us_of_group};
pub use private_file::is_private;
pub use process::{
    ProcessIdentity, ProcessIo, ProcessStat, children_of, command_name, pids, program_of, start_ticks,
    threads_of, user_of, waits_of,
};
pub use process_files::{FilePlace, MountView, ProcessFiles};
pub use process_memory::within_limit;
pub use processors::{CoreTimes, ProcessorTimes, clock_ticks};
pub use scheduling_group::{SchedulingGroup, SchedulingGroups};
pub use socket_file::{SocketFile, peer_at};
pub use stops::{StopMeter, TimedSleep, suspended_since};
pub use users::{group_id, name_of_user, others_may_write, user_id};
