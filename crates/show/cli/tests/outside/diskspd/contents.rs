//! Flags that say what is written, by what is on the disk afterwards.

use super::bench::{Bench, DISK_BYTES};
use std::collections::HashSet;

/// Writes all of the disk several times over, in order.
const ALL: &str = "-w100 -b64K -o4 -Su";
const SECTOR: usize = 512;

fn written(flags: &str) -> Option<Vec<u8>> {
    let bench = Bench::new()?;
    assert!(bench.content().iter().all(|byte| *byte == 0), "a new disk is empty");
    let seen = bench.run(flags);
    let places: HashSet<u64> = seen.offsets().into_iter().collect();
    assert_eq!(places.len() as u64, DISK_BYTES >> 16, "all of it was written");
    Some(bench.content())
}

#[test]
fn bytes_count_up_unless_told_otherwise() {
    for flags in [ALL.to_owned(), ALL.replace("-Su", "-Sm")] {
        let Some(content) = written_through(&flags) else { return };
        assert!((0..).zip(&content).all(|(at, byte)| *byte == at as u8), "{flags}");
    }
}

/// A mapping's pages come to the disk when the kernel likes, at the latest when it is closed.
fn written_through(flags: &str) -> Option<Vec<u8>> {
    if !flags.contains("-Sm") {
        return written(flags);
    }
    let bench = Bench::new()?;
    bench.run(flags);
    Some(bench.content())
}

#[test]
fn z_without_a_size_is_zeros() {
    let Some(bench) = Bench::new() else { return };
    bench.run(ALL);
    assert!(bench.content().iter().any(|byte| *byte != 0));
    bench.run(&format!("{ALL} -Z"));
    assert!(bench.content().iter().all(|byte| *byte == 0));
}

#[test]
fn zr_is_random_anew_in_every_byte() {
    let Some(content) = written(&format!("{ALL} -Zr")) else { return };
    let sectors: HashSet<&[u8]> = content.chunks(SECTOR).collect();
    assert_eq!(sectors.len(), content.len() / SECTOR, "no two sectors are alike");
    let mut counts = [0_u32; 256];
    content.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let expected = content.len() as f64 / 256.0;
    assert!(counts.iter().all(|count| (f64::from(*count) / expected - 1.0).abs() < 0.05));
}

#[test]
fn z_with_a_size_takes_blocks_from_random_places_of_a_buffer() {
    let Some(content) = written(&format!("{ALL} -Z1M")) else { return };
    let sectors: HashSet<&[u8]> = content.chunks(SECTOR).collect();
    let places = (1 << 20) / SECTOR;
    assert!((places - 200..=places).contains(&sectors.len()), "{} different sectors", sectors.len());
    let starts: HashSet<&[u8]> = content.chunks(64 << 10).map(|block| &block[..SECTOR]).collect();
    assert!(starts.len() > 150, "only {} places of the buffer", starts.len());
}

#[test]
fn z_with_a_file_takes_blocks_from_it_and_repeats_a_short_one() {
    let place = tempfile::tempdir().unwrap();
    for (file_bytes, name) in [(1_usize << 20, "long"), (96 << 10, "short")] {
        let source = place.path().join(name);
        // Each sector holds its own number.
        let sectors = (0..file_bytes / SECTOR).flat_map(|at| (at as u64).to_le_bytes().repeat(SECTOR / 8));
        std::fs::write(&source, sectors.collect::<Vec<u8>>()).unwrap();
        let Some(content) = written(&format!("{ALL} -Z1M,{}", source.display())) else { return };
        let number = |sector: &[u8]| u64::from_le_bytes(sector[..8].try_into().unwrap());
        let mut starts = HashSet::new();
        for block in content.chunks(64 << 10) {
            let first = number(block);
            starts.insert(first);
            for (at, sector) in (0..).zip(block.chunks(SECTOR)) {
                assert_eq!(number(sector), (first + at) % (file_bytes / SECTOR) as u64, "{name}");
                assert!(sector.chunks(8).all(|word| word == &sector[..8]));
            }
        }
        assert!(starts.len() > 50, "{name}: only {} places", starts.len());
    }
}
