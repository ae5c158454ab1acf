//! Disks to experiment on, made of files: what `headroom luns` sets up and takes away. Needs root.
//!
//! ```text
//! Registry::create(asked, program)
//!   a file, sparse or allocated ──────────────────────────────┐
//!   latency, width, stalls, cache:  program serves the file ──┴─> loop device, direct I/O ─> caps by cgroup
//!                                   over FUSE, by a Model            /dev/loopN              blkio.throttle
//! Registry::list()      what was made, and what of it still is there
//! Registry::remove(id)  caps, device, mount, process, file: also what a killed run left
//!
//! /var/lib/headroom/luns/ID/
//!     lun.json   the record, written before and after each step
//!     mnt/       where the serving process mounts the file, as mnt/disk
//!     log        what it had to say
//! ```
//!
//! [`Model`] is pure: when an I/O of a modelled disk is done. [`LoopDevice`] and [`throttle`] stand alone, for tests.
//!
//! Never: touches a loop device whose backing file it did not make, a limit of another device, or a file whose
//! inode is not the recorded one; takes away a device that is mounted or held.

mod error;
mod in_use;
mod loop_device;
mod model;
mod process;
mod registry;
mod server;
pub mod throttle;

pub use error::LunError;
pub use loop_device::LoopDevice;
pub use model::{Model, Stalls, Timing};
pub use registry::{Asked, Lun, LunCap, LunState, Registry};
pub use server::serve;
