//! Creates rings: the fastest mode that the kernel supports, and what is registered with it.

use io_uring::IoUring;
use std::io;
use std::os::fd::AsRawFd;

/// Most I/Os that are queued for one call: a short queue stays in the processor's cache.
const QUEUE_MAX: u32 = 64;

// include/uapi/linux/io_uring.h
const IORING_REGISTER_RING_FDS: u32 = 20;

/// Registers the ring under a small number, which saves the kernel the look-up of its descriptor in each call;
/// `None` before Linux 5.18.
pub fn register_ring(ring: &IoUring) -> Option<u32> {
    #[repr(C)]
    struct Update {
        offset: u32,
        reserved: u32,
        data: u64,
    }
    let mut update = Update { offset: u32::MAX, reserved: 0, data: ring.as_raw_fd() as u64 };
    // SAFETY: one update, which the kernel reads and writes during the call.
    let registered = unsafe {
        libc::syscall(libc::SYS_io_uring_register, ring.as_raw_fd(), IORING_REGISTER_RING_FDS, &mut update, 1)
    };
    (registered == 1).then_some(update.offset)
}

/// A ring in the fastest mode that this kernel supports: without an index array since Linux 6.6, for a single issuer
/// with deferred task work since 6.1. Refused before 5.11, where a wait has no timeout.
pub fn create(depth: u32) -> io::Result<IoUring> {
    let ring = create_fastest(depth)?;
    if ring.params().is_feature_ext_arg() {
        Ok(ring)
    } else {
        Err(io::Error::from_raw_os_error(libc::ENOSYS))
    }
}

fn create_fastest(depth: u32) -> io::Result<IoUring> {
    let queue = depth.clamp(1, QUEUE_MAX);
    let unsupported = |error: &io::Error| error.raw_os_error() == Some(libc::EINVAL);
    let plain = || {
        let mut builder = IoUring::builder();
        // Completions beyond the largest queue are kept by the kernel.
        builder.setup_cqsize(depth.max(2 * queue)).setup_clamp();
        builder
    };
    let single = || {
        let mut builder = plain();
        builder.setup_single_issuer().setup_defer_taskrun();
        builder
    };
    match single().setup_no_sqarray().build(queue) {
        Err(error) if unsupported(&error) => {}
        other => return other,
    }
    match single().build(queue) {
        Err(error) if unsupported(&error) => plain().build(queue),
        other => other,
    }
}
