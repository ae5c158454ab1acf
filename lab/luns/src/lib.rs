//! Disks to experiment on, made of files: what `headroom lab luns` creates and removes. Needs root.
//!
//! ```text
//! Registry::create(spec, program)
//!   a file, sparse or allocated ──────────────────────────────┐
//!   latency, width, stalls, cache:  program serves the file ──┴─> loop device, direct I/O ─> limits by cgroup
//!                                   over FUSE, by a DiskModel        /dev/loopN              blkio.throttle
//! Registry::list()       the LUNs of this host, and how complete each is
//! Registry::remove(lun)  refuses a device in use (in_use), then: limits, device, mount, process, file
//!
//! /var/lib/headroom/luns/ID/
//!     lun.json   the record, written before and after each step
//!     mnt/       where the serving process mounts the file, as mnt/disk
//!     log        standard error of the serving process
//! ```
//!
//! [`DiskModel`] is pure: when an I/O of a modelled disk is done.
//!
//! Never: touches a loop device whose backing file it did not make, a limit of another device, or a file whose inode is not
//! the recorded one; removes a device that is mounted or held.

mod answers;
mod error;
mod in_use;
mod model;
mod process;
mod record;
mod registry;
mod server;
mod spec;

pub use error::LunError;
pub use model::{DiskModel, ModelledDisk, Stalls};
pub use record::{Lun, LunCap};
pub use registry::{LunState, Registry};
pub use server::serve;
pub use spec::LunSpec;
