//! Loads the BPF object: sets its constants from the selection and creates its maps. No program is attached yet.

use super::error::OpenError;
use super::kernel_types::{KERNEL_BTF, Types};
use super::memory::TableSizes;
use super::refused::{not_filled, open_error};
use super::selection::Selection;
use super::symbols::Symbols;
use super::trace::filter::{Filter, FilterConstants};
use super::{calls, casts, cgroup, target};
use aya::maps::{HashMap as KernelMap, MapError};
use aya::{Btf, Ebpf, EbpfLoader};
use host::Mounts;

/// Compiled by scripts/bpf and committed, so that building Headroom does not need clang.
pub(super) static OBJECT: &[u8] = aya::include_bytes_aligned!("../../../../../bpf/process.bpf.o");

/// The hooks of [`OBJECT`], which report I/Os one by one instead of counting them.
pub(super) static TRACE_OBJECT: &[u8] = aya::include_bytes_aligned!("../../../../../bpf/trace.bpf.o");

/// Kernel functions by whose addresses the programs identify an I/O's kind and file: names of bpf/aio.h and block.h.
pub(super) const FUNCTIONS: [&str; 5] = [
    "aio_complete_rw",
    "iomap_dio_bio_end_io",
    "blkdev_bio_end_io",
    "blkdev_bio_end_io_simple",
    "blkdev_bio_end_io_async",
];

/// The flags of the kernel's requests that bpf/block.h reads: counted, and of a flush sequence. Enumerators since Linux 6.11,
/// macros with these values before.
fn request_flags() -> (u32, u32) {
    let btf = std::fs::read(KERNEL_BTF).unwrap_or_default();
    let types = Types::of_kernel(&btf);
    let enumerator = |name: &str| types.as_ref().and_then(|types| types.enumerator(name));
    let flag = |name: &str, before: u32| 1 << (enumerator(name).unwrap_or(before) & 31);
    (flag("__RQF_IO_STAT", 13), flag("__RQF_FLUSH_SEQ", 4))
}

/// Loads the object for a selection.
pub(super) fn configured(
    selection: &Selection,
    trace: Option<&Filter>,
    btf: &Btf,
    sizes: TableSizes,
    cast: Option<i32>,
) -> Result<Ebpf, OpenError> {
    let symbols = Symbols::read(|name| FUNCTIONS.contains(&name));
    let calls = calls::meanings();
    let group = selection.cgroup.as_deref().map(cgroup::Group::for_path).transpose()?;
    let only_chosen = u8::from(!selection.pids.is_empty() || group.is_some());
    let only_files = u8::from(!selection.files.is_empty());
    let own = std::process::id();
    let (id, level, hierarchy) = group.map_or((0, 0, 0), |group| (group.id, group.level, group.hierarchy));
    // 0 where the kernel lacks one or hides its address.
    let functions = FUNCTIONS.map(|name| symbols.address(name, "").unwrap_or(0));
    let (counted, flush_sequence) = request_flags();
    let object = if trace.is_some() { TRACE_OBJECT } else { OBJECT };
    let object = cast.map_or_else(|| object.to_vec(), |number| casts::replace_placeholder(object, number));
    let casts = u8::from(cast.is_some());
    let direct = libc::O_DIRECT as u32;
    let page_bytes = rustix::param::page_size() as u32;
    let filter_constants = trace.map(FilterConstants::new);
    let mut loader = EbpfLoader::new();
    for (name, address) in FUNCTIONS.iter().zip(&functions) {
        // The trace object does not have all of them: it does not watch block I/O.
        loader.override_global(name, address, trace.is_none());
    }
    // The trace object does not watch block I/O.
    loader.override_global("rq_counted", &counted, trace.is_none());
    loader.override_global("rq_flush_sequence", &flush_sequence, trace.is_none());
    if let Some(constants) = &filter_constants {
        constants.set(&mut loader);
    }
    let counters_max = if trace.is_some() { 1 } else { sizes.counters };
    loader
        .btf(Some(btf))
        .allow_unsupported_maps()
        .map_max_entries("files", counters_max as u32)
        .map_max_entries("names", sizes.names as u32)
        .map_max_entries("requests", sizes.requests as u32)
        .map_max_entries("iocbs", sizes.iocbs as u32)
        .override_global("casts", &casts, true)
        .override_global("calls", calls.as_slice(), true)
        .override_global("only_chosen", &only_chosen, true)
        .override_global("only_files", &only_files, true)
        .override_global("own_tgid", &own, true)
        .override_global("o_direct", &direct, true)
        .override_global("page_bytes", &page_bytes, true)
        .override_global("cgroup_id", &id, true)
        .override_global("cgroup_level", &level, true)
        .override_global("cgroup_hierarchy", &hierarchy, true)
        .load(&object)
        .map_err(|error| open_error("maps", &error))
}

/// Fills the map of chosen files, before any program is attached.
pub(super) fn choose_files(ebpf: &mut Ebpf, selection: &Selection) -> Result<(), OpenError> {
    let mut files: KernelMap<_, super::tables::WantedFile, u8> = table_to_fill(ebpf, "chosen_files")?;
    let mounts = Mounts::read().unwrap_or_default();
    for path in &selection.files {
        files.insert(target::file(path, &mounts)?, 1, 0).map_err(not_filled)?;
    }
    Ok(())
}

/// Fills the map of chosen processes: with `root` and its descendants, under its number. The fork program, which adds new
/// children, is attached before; children that are born before their parent is in the map are found by listing the
/// descendants again until there are no new ones. Those that were chosen with a process in `outer` change to `root`.
pub(super) fn choose_process(ebpf: &mut Ebpf, root: u32, outer: Option<u32>) -> Result<(), OpenError> {
    let mut processes: KernelMap<_, u32, u32> = table_to_fill(ebpf, "chosen_processes")?;
    let mut chosen = target::processes(&[root])?;
    loop {
        chosen = target::with_descendants(chosen)?;
        let is_new = |pid: &u32| processes.get(pid, 0).map_or(true, |known| Some(known) == outer);
        let new: Vec<u32> = chosen.iter().copied().filter(|pid| is_new(pid)).collect();
        if new.is_empty() {
            return Ok(());
        }
        for pid in new {
            processes.insert(pid, root, 0).map_err(not_filled)?;
        }
    }
}

fn table_to_fill<'a, T: TryFrom<&'a mut aya::maps::Map, Error = MapError>>(
    ebpf: &'a mut Ebpf,
    name: &str,
) -> Result<T, OpenError> {
    let missing = || OpenError::Refused { program: "maps".into(), why: format!("{name} is missing") };
    T::try_from(ebpf.map_mut(name).ok_or_else(missing)?).map_err(not_filled)
}
