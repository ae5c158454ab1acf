//! How a bio at a disk leads to the I/O that it is a part of: the kernel's functions and fields by which bpf/origin.h follows
//! device mapper, md and btrfs.
//!
//! ```text
//! LINKS         by the names of the kernel's source, each with the module that it is of
//! /proc/kallsyms          -> the function's address
//! /sys/kernel/btf/MODULE  -> the offsets of the fields
//! ```
//!
//! A link whose function or fields the running kernel lacks is left out: what comes through it is unattributed. Not among
//! them: what has no single file, such as the stripes of RAID 5 and 6 and the copies of a thin pool.

use super::kernel_types::{KERNEL_BTF, Types};
use super::refused::table_error;
use super::symbols::Symbols;
use super::tables::{Link, Links};
use crate::error::SourceError;
use aya::Ebpf;
use aya::maps::Array;
use std::path::Path;

/// `NO_OFFSET` of origin.h.
const NO_OFFSET: u32 = u32::MAX;

/// `enum leads` of origin.h.
#[derive(Clone, Copy)]
enum Leads {
    Bio = 0,
    Inode = 1,
    Callback = 2,
}

/// A field of a structure.
#[derive(Clone, Copy)]
struct Field(&'static str, &'static str);

/// The function in `bi_end_io` of a bio, and what follows from it.
struct LinkSource {
    module: &'static str,
    functions: &'static [&'static str],
    /// The bio in the structure; `None`: the structure is `bi_private`.
    holder: Option<Field>,
    first: Option<Field>,
    second: Option<Field>,
    added: Option<Field>,
    leads: Leads,
}

const NOTHING: LinkSource = LinkSource {
    module: "",
    functions: &[],
    holder: None,
    first: None,
    second: None,
    added: None,
    leads: Leads::Bio,
};

/// The operations of requests that device mapper passes on as requests of a path.
const MAPPER_REQUESTS: &str = "dm_mq_ops";

const LINKS: [LinkSource; 11] = [
    LinkSource { functions: &["bio_chain_endio"], ..NOTHING },
    LinkSource {
        module: "dm_mod",
        functions: &["clone_endio"],
        holder: Some(Field("dm_target_io", "clone")),
        first: Some(Field("dm_target_io", "io")),
        second: Some(Field("dm_io", "orig_bio")),
        ..NOTHING
    },
    LinkSource {
        module: "dm_mod",
        functions: &["end_clone_bio"],
        holder: Some(Field("dm_rq_clone_bio_info", "clone")),
        first: Some(Field("dm_rq_clone_bio_info", "orig")),
        ..NOTHING
    },
    LinkSource {
        module: "dm_crypt",
        functions: &["crypt_endio"],
        first: Some(Field("dm_crypt_io", "base_bio")),
        ..NOTHING
    },
    LinkSource {
        module: "md_mod",
        functions: &["md_end_clone_io"],
        first: Some(Field("md_io_clone", "orig_bio")),
        ..NOTHING
    },
    // Before Linux 6.5.
    LinkSource {
        module: "md_mod",
        functions: &["md_end_io_acct"],
        first: Some(Field("md_io_acct", "orig_bio")),
        ..NOTHING
    },
    LinkSource {
        module: "raid1",
        functions: &["raid1_end_read_request", "raid1_end_write_request"],
        first: Some(Field("r1bio", "master_bio")),
        ..NOTHING
    },
    LinkSource {
        module: "raid10",
        functions: &["raid10_end_read_request", "raid10_end_write_request"],
        first: Some(Field("r10bio", "master_bio")),
        ..NOTHING
    },
    LinkSource {
        module: "btrfs",
        functions: &["btrfs_clone_write_end_io"],
        first: Some(Field("btrfs_io_stripe", "bioc")),
        second: Some(Field("btrfs_io_context", "orig_bio")),
        ..NOTHING
    },
    LinkSource {
        module: "btrfs",
        functions: &["btrfs_simple_end_io", "btrfs_orig_write_end_io"],
        holder: Some(Field("btrfs_bio", "bio")),
        first: Some(Field("btrfs_bio", "inode")),
        added: Some(Field("btrfs_inode", "vfs_inode")),
        leads: Leads::Inode,
        ..NOTHING
    },
    // Before Linux 6.3 only direct I/O has the inode, in a structure of its own; the rest is found by its pages.
    LinkSource {
        module: "btrfs",
        functions: &["btrfs_end_dio_bio"],
        first: Some(Field("btrfs_dio_private", "inode")),
        leads: Leads::Inode,
        ..NOTHING
    },
];

/// Where the structure of `btrfs_bio` names its file only by the callback of its user.
const BTRFS_CALLBACK: LinkSource = LinkSource {
    module: "btrfs",
    functions: &["btrfs_simple_end_io", "btrfs_orig_write_end_io"],
    holder: Some(Field("btrfs_bio", "bio")),
    first: Some(Field("btrfs_bio", "end_io")),
    second: Some(Field("btrfs_bio", "private")),
    leads: Leads::Callback,
    ..NOTHING
};

/// The modules of [`LINKS`] that are part of the running kernel, and where they were loaded.
pub(super) type Modules = Vec<(&'static str, String)>;

/// The modules of [`LINKS`] that are in the kernel now. One that was loaded again is another one.
pub(super) fn modules() -> Modules {
    let mut modules = Modules::new();
    for LinkSource { module, .. } in LINKS.iter().filter(|source| !source.module.is_empty()) {
        let directory = Path::new("/sys/module").join(module);
        let address = || std::fs::read_to_string(directory.join("sections/.text")).unwrap_or_default();
        if modules.last().is_none_or(|(last, _)| last != module) && directory.exists() {
            modules.push((module, address()));
        }
    }
    modules
}

/// Fills the programs' table for those modules.
pub(super) fn fill(ebpf: &mut Ebpf, modules: &Modules) -> Result<(), SourceError> {
    let missing = || super::refused::no_table("links");
    let mut table: Array<_, Links> =
        Array::try_from(ebpf.map_mut("links").ok_or_else(missing)?).map_err(table_error)?;
    table.set(0, links(&symbols(), modules), 0).map_err(table_error)
}

fn symbols() -> Symbols {
    Symbols::read(|name| {
        name == MAPPER_REQUESTS || LINKS.iter().any(|source| source.functions.contains(&name))
    })
}

fn links(symbols: &Symbols, modules: &Modules) -> Links {
    let kernel_btf = std::fs::read(KERNEL_BTF).unwrap_or_default();
    let mut links = Links::NONE;
    let Some(kernel) = Types::of_kernel(&kernel_btf) else { return links };
    let known = LINKS.iter().chain([&BTRFS_CALLBACK]);
    for source in known
        .filter(|source| source.module.is_empty() || modules.iter().any(|(name, _)| *name == source.module))
    {
        let own_btf = std::fs::read(Path::new(KERNEL_BTF).with_file_name(source.module)).unwrap_or_default();
        let own = Types::of_module(&own_btf, &kernel);
        let offset = |field: Option<Field>| match field {
            None => Some(NO_OFFSET),
            Some(Field(structure, member)) => {
                let of_module = own.as_ref().and_then(|own| own.member_offset(structure, member));
                of_module.or_else(|| kernel.member_offset(structure, member))
            }
        };
        let offsets =
            (offset(source.holder), offset(source.first), offset(source.second), offset(source.added));
        let (Some(holder), Some(first), Some(second), Some(added)) = offsets else { continue };
        for function in source.functions {
            let Some(end) = symbols.address(function, source.module) else { continue };
            let added = if added == NO_OFFSET { 0 } else { added };
            links.add(Link { end, holder, first, second, added, leads: source.leads as u32, zero: 0 });
        }
    }
    // Only together: what is passed on would otherwise be counted for no file.
    if links.link.iter().any(|link| Some(link.end) == symbols.address("end_clone_bio", "dm_mod")) {
        links.mapper_requests = symbols.address(MAPPER_REQUESTS, "dm_mod").unwrap_or(0);
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_place_for_every_link() {
        let all = LINKS.iter().chain([&BTRFS_CALLBACK]).map(|source| source.functions.len()).sum::<usize>();
        assert!(all <= Links::NONE.link.len(), "{all}");
    }

    /// Every kernel splits bios.
    #[test]
    fn the_running_kernel_has_the_link_of_split_bios() {
        let symbols = symbols();
        let Some(address) = symbols.address("bio_chain_endio", "") else {
            return eprintln!("skipped: /proc/kallsyms shows no addresses");
        };
        let links = links(&symbols, &modules());
        assert!(links.count >= 1);
        assert_eq!((links.link[0].end, links.link[0].first), (address, NO_OFFSET));
    }
}
