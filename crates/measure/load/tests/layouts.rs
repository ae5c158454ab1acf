//! Several files as one target: each byte where the layout says, each I/O counted once, each member by itself.

mod fixture;

use fixture::region_at;
use load::{RunControl, run_with_backend};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use storage::Region;
use workload::{
    Backend, Caching, Layout, RunLength, RunResult, Shape, SyncEvery, SyncKind, Verify, Workload,
};

const KIB: u64 = 1024;
const BACKENDS: [Backend; 2] = [Backend::IoUring, Backend::Blocking];

fn members(directory: &Path, sizes: &[u64]) -> Vec<PathBuf> {
    let make = |(at, bytes): (usize, &u64)| {
        let path = directory.join(format!("member-{at}"));
        File::create(&path).unwrap().write_all(&vec![0xa5; *bytes as usize]).unwrap();
        path
    };
    sizes.iter().enumerate().map(make).collect()
}

fn volume(layout: &str, members: &[PathBuf]) -> Region {
    let regions = members.iter().map(|path| region_at(path, true)).collect();
    Region::combine(layout.parse::<Layout>().unwrap(), regions).unwrap()
}

fn ios(backend: Backend, region: &Region, workload: &Workload, count: u64) -> RunResult {
    let length =
        RunLength { ios_max: Some(count), duration: Duration::from_secs(20), ..RunLength::default() };
    run_with_backend(backend, region, workload, &length, &mut |_| RunControl::Continue).unwrap()
}

fn buffered(shape: Shape) -> Workload {
    Workload { outstanding: 8, ..Workload::from(Shape { caching: Caching::Buffered, ..shape }) }
}

/// Bytes of a layout, put together by hand.
fn as_one(layout: &str, members: &[PathBuf]) -> Vec<u8> {
    let contents: Vec<Vec<u8>> = members.iter().map(|path| std::fs::read(path).unwrap()).collect();
    let Some(unit) = layout.strip_prefix("stripe:").map(|unit| unit.parse::<usize>().unwrap()) else {
        return contents.concat();
    };
    let rows = contents.iter().map(|content| content.len() / unit).min().unwrap();
    let row =
        |at: usize| contents.iter().flat_map(move |content| content[at * unit..(at + 1) * unit].to_vec());
    (0..rows).flat_map(row).collect()
}

#[test]
fn what_is_written_lies_where_the_layout_says() {
    for layout in ["span", "stripe:4096", "stripe:20480"] {
        for backend in BACKENDS {
            let directory = tempfile::tempdir().unwrap();
            // Blocks of 12 KiB cross units, and the first member's end.
            let paths = members(directory.path(), &[100 * KIB, 80 * KIB, 120 * KIB]);
            let region = volume(layout, &paths);
            let write = Workload {
                verify: Some(Verify::Content),
                ..buffered(Shape::random_read(12288).with_writes(100))
            };
            let result = ios(backend, &region, &write, 300);
            let found = result.verification.as_ref().unwrap();
            assert_eq!((found.bad, result.failed()), (0, 0), "{layout} {backend:?}: {found:?}");
            assert_eq!(
                result.members.iter().map(|member| member.write.bytes).sum::<u64>(),
                result.write.bytes
            );

            let written =
                as_one(layout, &paths).chunks_exact(12288).filter(|block| **block != [0xa5; 12288]).count();
            assert_eq!(written as u64, found.blocks, "{layout} {backend:?}: each block whole, none astray");
        }
    }
}

#[test]
fn an_io_counts_once_and_each_member_by_its_part() {
    for backend in BACKENDS {
        let directory = tempfile::tempdir().unwrap();
        let paths = members(directory.path(), &[256 * KIB; 3]);
        let read = buffered(Shape::random_read(65536));

        let span = ios(backend, &volume("span", &paths), &Workload { seed: 1, ..read.clone() }, 300);
        let shares: u64 = span.members.iter().map(|member| member.read.count).sum();
        assert_eq!((span.ios(), shares), (300, 300), "aligned blocks lie on one member each");
        assert_eq!(
            span.target,
            format!(
                "{} as span",
                span.members.iter().map(|it| it.path.as_str()).collect::<Vec<_>>().join(", ")
            )
        );

        let mut first = read.clone();
        first.access.length_bytes = Some(256 * KIB);
        let only = ios(backend, &volume("span", &paths), &first, 100);
        assert_eq!(only.members[0].read.count, 100, "a working set within the first member");
        assert_eq!((only.members[1].read.count, only.members[2].read.count), (0, 0));

        // Each block of 64 KiB is two units of 32 KiB, on two members.
        let stripe = ios(backend, &volume("stripe:32K", &paths), &read, 300);
        let parts: u64 = stripe.members.iter().map(|member| member.read.count).sum();
        let bytes: u64 = stripe.members.iter().map(|member| member.read.bytes).sum();
        assert_eq!((stripe.ios(), parts, bytes), (300, 600, 300 * 65536), "{backend:?}");
        for member in &stripe.members {
            assert!((150..250).contains(&member.read.count), "{backend:?}: {member:?}");
            assert!(member.read.ns_max <= stripe.read.latency.max_ns().unwrap(), "the slowest part ends it");
        }
    }
}

#[test]
fn a_member_that_fails_fails_its_ios_and_is_named() {
    for backend in BACKENDS {
        let directory = tempfile::tempdir().unwrap();
        let paths = members(directory.path(), &[256 * KIB; 2]);
        // Writes to the second come back with EBADF.
        let regions = vec![region_at(&paths[0], true), region_at(&paths[1], false)];
        let region = Region::combine(Layout::Stripe { unit_bytes: 64 * KIB }, regions).unwrap();
        let result = ios(backend, &region, &buffered(Shape::random_read(65536).with_writes(100)), 100);
        assert_eq!(result.write.count, 100);
        assert!(result.members[1].failed > 10 && result.members[1].write.count == 0, "{:?}", result.members);
        assert_eq!((result.members[0].failed, result.members[0].write.count), (0, 100));
        assert!(result.write.errors.contains_key(&libc::EBADF));
    }
}

#[test]
fn a_sync_reaches_every_member() {
    for backend in BACKENDS {
        let directory = tempfile::tempdir().unwrap();
        let paths = members(directory.path(), &[256 * KIB; 3]);
        let sync = Some(SyncEvery { how: SyncKind::Fdatasync, writes: 4 });
        let write = Workload { sync, outstanding: 4, ..buffered(Shape::random_read(8192).with_writes(100)) };
        let result = ios(backend, &volume("stripe:64K", &paths), &write, 64);
        assert_eq!((result.write.count, result.failed(), result.sync.failed()), (64, 0, 0));
        // Blocking: four threads of one outstanding each, with syncs of their own.
        assert!(result.sync.count >= 12, "{backend:?}: {}", result.sync.count);
    }
}

#[test]
fn what_makes_no_layout_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let paths = members(directory.path(), &[64 * KIB, 64 * KIB]);
    let open = |paths: &[&PathBuf]| paths.iter().map(|path| region_at(path, true)).collect::<Vec<_>>();
    let refused = |layout: &str, members: Vec<Region>| {
        Region::combine(layout.parse().unwrap(), members).unwrap_err().to_string()
    };
    assert!(refused("span", open(&[&paths[0]])).contains("1 members"));
    assert!(refused("span", open(&[&paths[0], &paths[0]])).contains("twice"));
    assert!(refused("stripe:1M", open(&[&paths[0], &paths[1]])).contains("no room"));
    let stripe = volume("stripe:512", &paths);
    let length = RunLength { ios_max: Some(1), ..RunLength::default() };
    let large = buffered(Shape::random_read(65536));
    let error = run_with_backend(Backend::IoUring, &stripe, &large, &length, &mut |_| RunControl::Continue)
        .unwrap_err();
    assert!(error.to_string().contains("129 parts"), "{error}");
}
