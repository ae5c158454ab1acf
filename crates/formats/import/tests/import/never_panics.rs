//! No text, however damaged, makes a reader panic; a part of a good one is read or refused, with a reason.

use import::{Format, bench_fio, decode, read, trace};
use proptest::prelude::*;

fn samples() -> Vec<(String, Vec<u8>)> {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let mut samples: Vec<(String, Vec<u8>)> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap()))
        .collect();
    samples.sort();
    assert!(samples.len() > 10);
    samples
}

fn read_as_everything(bytes: &[u8]) {
    let Ok((text, _)) = decode(bytes) else { return };
    for format in [None, Some(Format::DiskspdText), Some(Format::DiskspdXml), Some(Format::FioJson)] {
        match read(&text, format) {
            // Imported results can be kept: their JSON reads back.
            Ok(imported) => imported.results().for_each(|result| {
                let json = serde_json::to_string(result).unwrap();
                serde_json::from_str::<workload::RunResult>(&json).unwrap();
                let _ = (result.iops(), result.mib_per_s(), result.outstanding(), result.mean_latency_ns());
            }),
            Err(error) => assert!(!error.reason.is_empty()),
        }
    }
    let _ = trace(&text);
    let _ = bench_fio(&[("d/randrw75/4k/randrw-16-8.json".into(), text)]);
}

#[test]
fn every_sample_cut_at_every_97th_byte() {
    for (_, bytes) in samples() {
        (0..bytes.len()).step_by(97).for_each(|end| read_as_everything(&bytes[..end]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn samples_with_changed_parts(
        which in 0_usize..100,
        at in 0.0_f64..1.0,
        length in 0_usize..200,
        with in prop_oneof![
            Just("".to_owned()), Just("18446744073709551615".into()), Just("-1".into()), Just("1e308".into()),
            Just("NaN".into()), Just("|".into()), Just("<".into()), Just("{".into()), Just("0".into()), ".{0,9}",
        ],
    ) {
        let samples = samples();
        let (_, bytes) = &samples[which % samples.len()];
        let start = (at * bytes.len() as f64) as usize;
        let end = (start + length).min(bytes.len());
        let mut damaged = bytes[..start].to_vec();
        damaged.extend_from_slice(with.as_bytes());
        damaged.extend_from_slice(&bytes[end..]);
        read_as_everything(&damaged);
    }

    #[test]
    fn any_numbers_in_a_sample(which in 0_usize..100, seed in any::<u64>(), numbers in prop::collection::vec(
        prop_oneof![Just(0_u64), Just(u64::MAX), Just(1 << 53), any::<u64>()], 1..4,
    )) {
        let samples = samples();
        let (_, bytes) = &samples[which % samples.len()];
        let text = String::from_utf8_lossy(bytes);
        let mut out = String::new();
        let mut state = seed;
        // Now and then a number of the text becomes another.
        for part in text.split_inclusive(|c: char| !c.is_ascii_digit()) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            if digits > 0 && state >> 58 == 0 {
                out.push_str(&numbers[(state as usize >> 8) % numbers.len()].to_string());
                out.push_str(&part[digits..]);
            } else {
                out.push_str(part);
            }
        }
        read_as_everything(out.as_bytes());
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_as_everything(&bytes);
    }
}
