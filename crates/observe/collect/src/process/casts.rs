//! The kernel function `bpf_rdonly_cast`, which makes a typed pointer from an address: with it a program reads a field
//! with one load instead of a call of bpf_probe_read_kernel. Programs call it by its id in the running kernel's BTF.
//! aya does not look up this id, so the object calls a placeholder, which is replaced here before the object is loaded.

use aya::Btf;
use aya_obj::btf::BtfKind;

/// The id that bpf/kernel.h calls.
const PLACEHOLDER: i32 = 0x6b66_756e;
const FUNCTION: &str = "bpf_rdonly_cast";

/// The `call` instruction of linux/bpf.h. Its immediate is the number of a helper or, with [`KERNEL_FUNCTION`] as the
/// source register, the id of a kernel function.
const CALL: u8 = 0x85;
const KERNEL_FUNCTION: u8 = 2;
const INSTRUCTION_BYTES: usize = 8;

/// The id of the kernel function; `None` where the kernel lacks it (before Linux 6.2).
pub(super) fn function_id(btf: &Btf) -> Option<i32> {
    i32::try_from(btf.id_by_type_name_kind(FUNCTION, BtfKind::Func).ok()?).ok()
}

/// The object with calls of the kernel function instead of the placeholder. Sections of instructions are aligned to an
/// instruction.
pub(super) fn replace_placeholder(object: &[u8], function_id: i32) -> Vec<u8> {
    let call_of = |registers: u8, id: i32| {
        let [a, b, c, d] = id.to_le_bytes();
        [CALL, registers, 0, 0, a, b, c, d]
    };
    let (placeholder, call) = (call_of(0, PLACEHOLDER), call_of(KERNEL_FUNCTION << 4, function_id));
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
        let replaced = replace_placeholder(&[helper, placeholder, data].concat(), 0x0102);
        assert_eq!(replaced, [helper, [CALL, 0x20, 0, 0, 2, 1, 0, 0], data].concat());
    }

    #[test]
    fn the_object_calls_the_placeholder() {
        let object = super::super::object::OBJECT;
        assert!(replace_placeholder(object, 1) != object);
    }
}
