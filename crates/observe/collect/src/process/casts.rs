//! The kernel's own function that makes a typed pointer of a number, `bpf_rdonly_cast`: with it a program reads a field
//! with one load instead of a call of bpf_probe_read_kernel. It is called by its number in the running kernel's BTF, which
//! aya does not look up: the object calls a number that nothing has, and it is put in here, before it is loaded.

use aya::Btf;
use aya_obj::btf::BtfKind;

/// As bpf/kernel.h calls it.
const PLACEHOLDER: i32 = 0x6b66_756e;
const FUNCTION: &str = "bpf_rdonly_cast";

/// `call` of linux/bpf.h, of a function by its number: the helper's, and where the source register says so a kernel
/// function's.
const CALL: u8 = 0x85;
const KERNEL_FUNCTION: u8 = 2;
const INSTRUCTION_BYTES: usize = 8;

/// The number of the kernel's function; `None` where it has none (before Linux 6.2).
pub(super) fn number(btf: &Btf) -> Option<i32> {
    i32::try_from(btf.id_by_type_name_kind(FUNCTION, BtfKind::Func).ok()?).ok()
}

/// The object, with calls of the kernel's function in the place of those of the placeholder. Sections of instructions are
/// aligned to an instruction.
pub(super) fn put_in(object: &[u8], number: i32) -> Vec<u8> {
    let of = |registers: u8, number: i32| {
        let [a, b, c, d] = number.to_le_bytes();
        [CALL, registers, 0, 0, a, b, c, d]
    };
    let (placeholder, call) = (of(0, PLACEHOLDER), of(KERNEL_FUNCTION << 4, number));
    let mut object = object.to_vec();
    let (instructions, _) = object.as_chunks_mut::<INSTRUCTION_BYTES>();
    for instruction in instructions.iter_mut().filter(|instruction| **instruction == placeholder) {
        *instruction = call;
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_of_the_placeholder_become_calls_of_the_function() {
        let helper = [CALL, 0, 0, 0, 4, 0, 0, 0];
        let placeholder = [CALL, 0, 0, 0, 0x6e, 0x75, 0x66, 0x6b];
        let data = [1, CALL, 0, 0, 0, 0x6e, 0x75, 0x66];
        let put = put_in(&[helper, placeholder, data].concat(), 0x0102);
        assert_eq!(put, [helper, [CALL, 0x20, 0, 0, 2, 1, 0, 0], data].concat());
    }

    #[test]
    fn the_object_has_calls_to_put_in() {
        let object = super::super::object::OBJECT;
        assert!(put_in(object, 1) != object);
    }
}
