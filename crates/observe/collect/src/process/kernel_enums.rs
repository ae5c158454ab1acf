//! Values of the kernel's enumerators, from its BTF (Documentation/bpf/btf.rst in the kernel's source). CO-RE finds an enum by
//! its name; some of the kernel's enums have none.
//!
//! ```text
//! header   magic u16 = 0xeb9f, version u8, flags u8, header's length u32, types at u32, their bytes u32, strings at u32, bytes u32
//! type     name u32, info u32 (kind in bits 24 to 28, count in bits 0 to 15), size or type u32; then what its kind has
//! enum     count x (name u32, value i32)
//! ```

/// Where the running kernel has it.
pub(super) const KERNEL_BTF: &str = "/sys/kernel/btf/vmlinux";
const MAGIC: u32 = 0xeb9f;
const TYPE_BYTES: usize = 12;
const ENUMERATOR_BYTES: usize = 8;
const KIND_ENUM: u32 = 6;

/// The value of the first enumerator with that name; `None` where there is none, or the bytes are no BTF of this machine.
pub(super) fn enumerator(btf: &[u8], name: &str) -> Option<u32> {
    if word(btf, 0)? & 0xffff != MAGIC {
        return None;
    }
    let header = word(btf, 4)? as usize;
    let section = |at: usize| {
        let (offset, bytes) = (word(btf, at)? as usize, word(btf, at + 4)? as usize);
        btf.get(header.checked_add(offset)?..)?.get(..bytes)
    };
    let (types, strings) = (section(8)?, section(16)?);
    let is_named = |at: u32| {
        let text = strings.get(at as usize..).unwrap_or_default();
        text.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
    };
    let mut rest = types;
    while !rest.is_empty() {
        let info = word(rest, 4)?;
        let (kind, count) = (info >> 24 & 31, info as usize & 0xffff);
        let record = TYPE_BYTES + bytes_after(kind, count)?;
        if kind == KIND_ENUM {
            let mut members = rest.get(TYPE_BYTES..record)?.chunks_exact(ENUMERATOR_BYTES);
            if let Some(member) = members.find(|member| word(member, 0).is_some_and(is_named)) {
                return word(member, 4);
            }
        }
        rest = rest.get(record..)?;
    }
    None
}

/// What follows a type's record; `None` for a kind that is not known.
fn bytes_after(kind: u32, count: usize) -> Option<usize> {
    Some(match kind {
        // Pointers, forward declarations, typedefs, qualifiers, functions, floats, type tags.
        2 | 7..=12 | 16 | 18 => 0,
        // Integers, variables, declaration tags.
        1 | 14 | 17 => 4,
        // Arrays.
        3 => 12,
        // Structures, unions, sections, enums of 64 bits.
        4 | 5 | 15 | 19 => 12 * count,
        // Enums, prototypes of functions.
        6 | 13 => ENUMERATOR_BYTES * count,
        _ => return None,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A structure with one member, then an enum without a name: `{ A = 0, FLAG = 8 }`.
    fn small() -> Vec<u8> {
        let types: [u32; 13] = [0, 4 << 24 | 1, 4, 1, 0, 0, 0, 6 << 24 | 2, 4, 1, 0, 3, 8];
        let strings = b"\0A\0FLAG\0";
        let header = [1 << 16 | MAGIC, 24, 0, 52, 52, strings.len() as u32];
        let words = header.iter().chain(&types).flat_map(|word| word.to_ne_bytes());
        words.chain(strings.iter().copied()).collect()
    }

    #[test]
    fn an_enumerator_of_an_enum_without_a_name_is_found() {
        let btf = small();
        assert_eq!(enumerator(&btf, "FLAG"), Some(8));
        assert_eq!(enumerator(&btf, "A"), Some(0));
        assert_eq!(
            (enumerator(&btf, "FLA"), enumerator(&btf, "B"), enumerator(b"", "A")),
            (None, None, None)
        );
    }

    #[test]
    fn the_running_kernel_has_the_first_bits_of_its_requests() {
        let Ok(btf) = std::fs::read(KERNEL_BTF) else {
            return eprintln!("skipped: no {KERNEL_BTF}");
        };
        // Of every kernel: control group controllers, an enum with a name.
        assert!(enumerator(&btf, "cpuset_cgrp_id").is_some());
        assert_eq!(enumerator(&btf, "no_such_enumerator"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused(flips in prop::collection::vec((0usize..84, any::<u8>()), 1..8)) {
            let mut btf = small();
            for (at, byte) in flips {
                btf[at] = byte;
            }
            let _ = enumerator(&btf, "FLAG");
        }
    }
}
