//! The table of a device-mapper device, which only the kernel's control device shows, to root.
//!
//! ```text
//! struct dm_ioctl        version u32 x 3, data_size u32, data_start u32, target_count u32, open_count i32, flags u32,
//! (312 bytes)            event u32, padding u32, device u64, name, uuid
//! struct dm_target_spec  at data_start: start u64, sectors u64, status i32, next u32 (from data_start), type [u8; 16];
//! (40 bytes)             then its parameters as text, ended by 0
//! ```

use crate::DeviceNumber;
use crate::file_call::{MAPPER_WORDS, Query, query};
use crate::privileges::{Privilege, with};
use std::fs::File;
use std::path::Path;
use workload::Layout;

/// The control device.
pub(super) const CONTROL: &str = "/dev/mapper/control";
const VERSION: u32 = 4;
/// The table as it was loaded, in place of the state of its targets.
const DM_STATUS_TABLE_FLAG: u32 = 1 << 4;
const DM_BUFFER_FULL_FLAG: u32 = 1 << 8;
/// Space for some hundred targets.
const BUFFER_WORDS: usize = 8192;
const HEADER_BYTES: usize = 8 * MAPPER_WORDS;
const SPEC_BYTES: usize = 40;
const TYPE_BYTES: usize = 16;
const SECTOR_BYTES: u64 = 512;

/// A part of a device: its type and parameters. Never shown as a whole: those of encryption may have the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MapperTarget {
    kind: String,
    parameters: String,
}

/// The table of a device; `None` if this user may not ask, or it has none.
pub(super) fn read(control: &Path, number: DeviceNumber) -> Option<Vec<MapperTarget>> {
    ask(control, number, DM_STATUS_TABLE_FLAG)
}

/// The state of each part of a device, in the place of its parameters.
pub(super) fn read_state(control: &Path, number: DeviceNumber) -> Option<Vec<MapperTarget>> {
    ask(control, number, 0)
}

/// The blocks of a thin pool without a free one, by its state: "TRANSACTION USED/ALL USED/ALL ...", of metadata and of data.
pub(super) fn blocks_of_full_pool(state: &MapperTarget) -> Option<u64> {
    let of_data = state.parameters.split_ascii_whitespace().nth(2).filter(|_| state.kind == "thin-pool")?;
    let (used, all) = of_data.split_once('/')?;
    let (used, all) = (used.parse::<u64>().ok()?, all.parse::<u64>().ok()?);
    (used >= all).then_some(all)
}

fn ask(control: &Path, number: DeviceNumber, flags: u32) -> Option<Vec<MapperTarget>> {
    let control = File::open(control).ok()?;
    let mut buffer = vec![0_u64; BUFFER_WORDS];
    let pair = |low: u32, high: u32| {
        let ([a, b, c, d], [e, f, g, h]) = (low.to_ne_bytes(), high.to_ne_bytes());
        u64::from_ne_bytes([a, b, c, d, e, f, g, h])
    };
    buffer[0] = pair(VERSION, 0);
    buffer[2] = pair(HEADER_BYTES as u32, 0);
    buffer[3] = pair(0, flags);
    buffer[5] = libc::makedev(number.major, number.minor);
    with(Privilege::DeviceMapper, || query(&control, Query::MapperTable, &mut buffer))
        .then(|| parse(&buffer.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>()))?
}

fn parse(answer: &[u8]) -> Option<Vec<MapperTarget>> {
    let word = |at: usize| Some(u32::from_ne_bytes(*answer.get(at..)?.first_chunk()?));
    let (start, count, flags) = (word(16)? as usize, word(20)?, word(28)?);
    if flags & DM_BUFFER_FULL_FLAG != 0 {
        return None;
    }
    let mut targets = Vec::new();
    let mut at = start;
    // Each takes its bytes of the answer: a wrong count ends.
    for _ in 0..(count as usize).min(answer.len() / SPEC_BYTES) {
        let kind = text(answer.get(at.checked_add(SPEC_BYTES - TYPE_BYTES)?..)?.get(..TYPE_BYTES)?);
        let parameters = text(answer.get(at.checked_add(SPEC_BYTES)?..)?);
        targets.push(MapperTarget { kind, parameters });
        at = start.checked_add(word(at.checked_add(20)?)? as usize)?;
    }
    Some(targets)
}

/// Up to the 0 that ends it.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Layout that the table makes: "span", "stripe:64K", "linear" of one device, or the kinds of its targets: "crypt", "raid1".
/// `None` of an empty table.
pub(super) fn layout(table: &[MapperTarget]) -> Option<String> {
    let mut kinds: Vec<&str> = Vec::new();
    let mut devices: Vec<&str> = Vec::new();
    for target in table {
        let mut words = target.parameters.split_ascii_whitespace();
        match target.kind.as_str() {
            "linear" => devices.extend(words.next().filter(|device| !devices.contains(device))),
            "striped" if table.len() == 1 => {
                let unit_bytes = words.nth(1)?.parse::<u64>().ok()?.checked_mul(SECTOR_BYTES)?;
                return Some(Layout::Stripe { unit_bytes }.to_string());
            }
            _ => {}
        }
        let kind = match target.kind.as_str() {
            "linear" if devices.len() > 1 => "span",
            // "raid1 3 0 region_size ..."
            "raid" => target.parameters.split_ascii_whitespace().next().unwrap_or("raid"),
            other => other,
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.contains(&"span") {
        kinds.retain(|kind| *kind != "linear");
    }
    (!kinds.is_empty()).then(|| kinds.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As the kernel answers.
    fn answer(targets: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[16..20].copy_from_slice(&(HEADER_BYTES as u32).to_ne_bytes());
        bytes[20..24].copy_from_slice(&(targets.len() as u32).to_ne_bytes());
        for (kind, parameters) in targets {
            let at = bytes.len();
            bytes.resize(at + SPEC_BYTES, 0);
            bytes[at + 24..at + 24 + kind.len()].copy_from_slice(kind.as_bytes());
            bytes.extend_from_slice(parameters.as_bytes());
            bytes.resize((bytes.len() + 8) & !7, 0);
            let next = (bytes.len() - HEADER_BYTES) as u32;
            bytes[at + 20..at + 24].copy_from_slice(&next.to_ne_bytes());
        }
        bytes
    }

    fn named(targets: &[(&str, &str)]) -> Option<String> {
        layout(&parse(&answer(targets)).unwrap())
    }

    #[test]
    fn a_table_says_what_the_device_is_made_of() {
        let cases: [(&[(&str, &str)], &str); 7] = [
            (&[("linear", "259:0 2048"), ("linear", "259:1 2048")], "span"),
            (&[("linear", "259:0 2048"), ("linear", "259:0 999424")], "linear"),
            (&[("striped", "2 128 259:0 0 259:1 0")], "stripe:64K"),
            (&[("crypt", "aes-xts-plain64 :64:logon:x 0 8:0 32768")], "crypt"),
            (&[("raid", "raid1 3 0 region_size 4096 2 254:1 254:2 254:3 254:4")], "raid1"),
            (&[("linear", "8:0 0"), ("striped", "2 128 8:0 0 8:16 0")], "linear, striped"),
            (&[("delay", "259:0 0 0 259:0 0 30")], "delay"),
        ];
        for (targets, expected) in cases {
            assert_eq!(named(targets).as_deref(), Some(expected));
        }
        assert_eq!(named(&[]), None);
    }

    #[test]
    fn a_thin_pool_without_a_free_block_is_full() {
        let blocks = |kind: &str, state: &str| {
            blocks_of_full_pool(&MapperTarget { kind: kind.into(), parameters: state.into() })
        };
        let full = "0 12/1024 256/256 - out_of_data_space discard_passdown queue_if_no_space - 1024";
        assert_eq!(blocks("thin-pool", full), Some(256));
        assert_eq!(
            blocks("thin-pool", "0 12/1024 255/256 - rw discard_passdown queue_if_no_space - 1024"),
            None
        );
        assert_eq!((blocks("thin-pool", "Fail"), blocks("cache", full)), (None, None));
    }

    #[test]
    fn an_answer_that_did_not_fit_is_none() {
        let mut bytes = answer(&[("linear", "8:0 0")]);
        bytes[28..32].copy_from_slice(&DM_BUFFER_FULL_FLAG.to_ne_bytes());
        assert_eq!(parse(&bytes), None);
    }

    proptest! {
        #[test]
        fn any_answer_is_parsed_or_refused(flips in prop::collection::vec((0usize..400, any::<u8>()), 1..12)) {
            let mut bytes = answer(&[("linear", "259:0 2048"), ("striped", "2 128 259:0 0 259:1 0")]);
            for (at, byte) in flips {
                bytes[at] = byte;
            }
            let _ = parse(&bytes).map(|table| layout(&table));
        }
    }
}
