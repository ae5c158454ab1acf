//! Types from the kernel's BTF (Documentation/bpf/btf.rst in the kernel's source), beyond what CO-RE finds: values of enumerators
//! of enums without a name, and fields of the structures of modules.
//!
//! ```text
//! header   magic u16 = 0xeb9f, version u8, flags u8, header's length u32, types at u32, their bytes u32, strings at u32, bytes u32
//! type     name u32, info u32 (kind in bits 24 to 28, count in bits 0 to 15), size or type u32; then what its kind has
//! enum     count x (name u32, value i32)
//! struct   count x (name u32, type u32, offset in bits u32: of its lower 24 bits if info has bit 31)
//! module   the numbers of its types and strings continue those of the kernel
//! ```

/// Where the running kernel has it; beside it, a file for each loaded module.
pub(super) const KERNEL_BTF: &str = "/sys/kernel/btf/vmlinux";
const MAGIC: u32 = 0xeb9f;
const TYPE_BYTES: usize = 12;
const ENUMERATOR_BYTES: usize = 8;
const MEMBER_BYTES: usize = 12;
const KIND_STRUCT: u32 = 4;
const KIND_UNION: u32 = 5;
const KIND_ENUM: u32 = 6;
/// Most unnamed structures and unions, one in the other, that are searched.
const UNNAMED_MAX: u32 = 4;

/// The types of the kernel, or of a module.
pub(super) struct Types<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    /// The kernel's strings, of which a module's names may be.
    base_strings: &'a [u8],
    /// The number of the first type.
    first: u32,
}

/// A type: its name, kind, count, and what its kind has.
struct Record<'a> {
    name: u32,
    info: u32,
    rest: &'a [u8],
}

impl<'a> Types<'a> {
    /// The kernel's; `None` if the bytes are no BTF of this machine.
    pub fn of_kernel(btf: &'a [u8]) -> Option<Types<'a>> {
        let (types, strings) = sections(btf)?;
        Some(Types { types, strings, base_strings: &[], first: 1 })
    }

    /// Those of a module of that kernel.
    pub fn of_module(btf: &'a [u8], kernel: &Types<'a>) -> Option<Types<'a>> {
        let (types, strings) = sections(btf)?;
        let first = kernel.first + u32::try_from(kernel.records().count()).ok()?;
        Some(Types { types, strings, base_strings: kernel.strings, first })
    }

    /// The value of the first enumerator with that name.
    pub fn enumerator(&self, name: &str) -> Option<u32> {
        let enums = self.records().filter(|record| record.kind() == KIND_ENUM);
        let mut members = enums.flat_map(|record| record.rest.chunks_exact(ENUMERATOR_BYTES));
        let found = members.find(|member| word(member, 0).is_some_and(|at| self.is_named(at, name)))?;
        word(found, 4)
    }

    /// The offset in bytes of a member of the first structure with that name, in unnamed structures and unions too.
    pub fn member_offset(&self, structure: &str, member: &str) -> Option<u32> {
        let is_it =
            |record: &Record<'a>| record.kind() == KIND_STRUCT && self.is_named(record.name, structure);
        self.member_bits(&self.records().find(is_it)?, member, UNNAMED_MAX).map(|bits| bits / 8)
    }

    fn member_bits(&self, structure: &Record<'a>, name: &str, depth: u32) -> Option<u32> {
        // With a bit field in the structure, the upper 8 bits are the field's size.
        let mask = if structure.info >> 31 == 1 { 0xff_ffff } else { u32::MAX };
        structure.rest.chunks_exact(MEMBER_BYTES).find_map(|member| {
            let (named, kind, bits) = (word(member, 0)?, word(member, 4)?, word(member, 8)? & mask);
            if self.is_named(named, name) {
                return Some(bits);
            }
            if named != 0 || depth == 0 {
                return None;
            }
            let within = self.records().nth(kind.checked_sub(self.first)? as usize)?;
            let is_composite = [KIND_STRUCT, KIND_UNION].contains(&within.kind());
            bits.checked_add(self.member_bits(&within, name, depth - 1).filter(|_| is_composite)?)
        })
    }

    fn is_named(&self, at: u32, name: &str) -> bool {
        let at = at as usize;
        let text = match at.checked_sub(self.base_strings.len()) {
            Some(own) => self.strings.get(own..),
            None => self.base_strings.get(at..),
        };
        let rest = text.and_then(|text| text.strip_prefix(name.as_bytes()));
        rest.is_some_and(|rest| rest.first() == Some(&0))
    }

    /// All types, up to the first that cannot be parsed.
    fn records(&self) -> impl Iterator<Item = Record<'a>> + use<'a> {
        let mut rest = self.types;
        std::iter::from_fn(move || {
            let (name, info) = (word(rest, 0)?, word(rest, 4)?);
            let bytes = TYPE_BYTES + bytes_after(info >> 24 & 31, info as usize & 0xffff)?;
            let (record, after) = rest.split_at_checked(bytes)?;
            rest = after;
            Some(Record { name, info, rest: record.get(TYPE_BYTES..)? })
        })
    }
}

impl Record<'_> {
    fn kind(&self) -> u32 {
        self.info >> 24 & 31
    }
}

/// The types and the strings.
fn sections(btf: &[u8]) -> Option<(&[u8], &[u8])> {
    if word(btf, 0)? & 0xffff != MAGIC {
        return None;
    }
    let header = word(btf, 4)? as usize;
    let section = |at: usize| {
        let (offset, bytes) = (word(btf, at)? as usize, word(btf, at + 4)? as usize);
        btf.get(header.checked_add(offset)?..)?.get(..bytes)
    };
    Some((section(8)?, section(16)?))
}

/// Bytes that follow a type's record; `None` for a kind that is not known.
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

    fn built(types: &[u32], strings: &[u8]) -> Vec<u8> {
        let bytes = 4 * types.len() as u32;
        let header = [1 << 16 | MAGIC, 24, 0, bytes, bytes, strings.len() as u32];
        let words = header.iter().chain(types).flat_map(|word| word.to_ne_bytes());
        words.chain(strings.iter().copied()).collect()
    }

    /// A structure with one member, then an enum without a name: `{ A = 0, FLAG = 8 }`.
    fn small() -> Vec<u8> {
        built(&[0, 4 << 24 | 1, 4, 1, 0, 0, 0, 6 << 24 | 2, 4, 1, 0, 3, 8], b"\0A\0FLAG\0")
    }

    /// Of a module of `small`: `union { u64 one; u64 FLAG; }` without a name, and `struct two { u64 A; <the union>; }`, whose
    /// offsets are in 24 bits.
    fn of_module() -> Vec<u8> {
        let union = [0, 5 << 24 | 2, 8, 8, 0, 0, 3, 0, 0];
        let structure = [12, 1 << 31 | 4 << 24 | 2, 16, 1, 0, 0, 0, 3, 64];
        built(&[union, structure].concat(), b"one\0two\0")
    }

    #[test]
    fn an_enumerator_of_an_enum_without_a_name_is_found() {
        let btf = small();
        let types = Types::of_kernel(&btf).unwrap();
        assert_eq!(types.enumerator("FLAG"), Some(8));
        assert_eq!(types.enumerator("A"), Some(0));
        assert_eq!((types.enumerator("FLA"), types.enumerator("B")), (None, None));
        assert!(Types::of_kernel(b"").is_none());
    }

    #[test]
    fn a_member_of_a_modules_structure_is_found_by_names_of_the_kernel_and_of_the_module() {
        let (kernel, module) = (small(), of_module());
        let types = Types::of_module(&module, &Types::of_kernel(&kernel).unwrap()).unwrap();
        let offset = |member| types.member_offset("two", member);
        assert_eq!((offset("A"), offset("FLAG"), offset("one")), (Some(0), Some(8), Some(8)));
        assert_eq!((offset("two"), types.member_offset("three", "A")), (None, None));
    }

    #[test]
    fn the_running_kernel_has_the_types_that_every_kernel_has() {
        let Ok(btf) = std::fs::read(KERNEL_BTF) else {
            return eprintln!("skipped: no {KERNEL_BTF}");
        };
        let types = Types::of_kernel(&btf).unwrap();
        // Control group controllers, an enum with a name.
        assert!(types.enumerator("cpuset_cgrp_id").is_some());
        assert_eq!(types.enumerator("no_such_enumerator"), None);
        assert_eq!(types.member_offset("list_head", "prev"), Some(size_of::<usize>() as u32));
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused(flips in prop::collection::vec((0usize..104, any::<u8>()), 1..8)) {
            let (kernel, mut btf) = (small(), of_module());
            let kernel = Types::of_kernel(&kernel).unwrap();
            for (at, byte) in flips {
                btf[at] = byte;
            }
            for types in [Types::of_kernel(&btf), Types::of_module(&btf, &kernel)].into_iter().flatten() {
                let _ = (types.enumerator("FLAG"), types.member_offset("two", "FLAG"));
            }
        }
    }
}
