use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Decodes a field of mountinfo or swaps: the kernel writes space, tab, newline, backslash and "#" as `\ooo`, in octal
/// (`mangle_path` of fs/seq_file.c). Every other byte stands for itself.
pub(crate) fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let escaped = match (first, after) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..]) => {
                Some((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'))
            }
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[3..] } else { after };
    }
    bytes
}

/// [`unescape`] for a path.
pub(crate) fn unescape_path(field: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(unescape(field)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn octal_escapes_are_decoded_and_other_backslashes_stay() {
        assert_eq!(unescape(br"a\040b\011c\012d\134e\043f"), b"a b\tc\nd\\e#f");
        assert_eq!(unescape(br"a\134040b"), br"a\040b", "an escaped backslash begins no escape");
        assert_eq!(unescape(br"\400\1\18x\"), br"\400\1\18x\");
        assert_eq!(unescape(b"caf\xe9\\040\xff"), b"caf\xe9 \xff");
    }

    proptest! {
        #[test]
        fn what_the_kernel_escapes_is_read_back(bytes in any::<Vec<u8>>()) {
            let mut escaped = Vec::new();
            for byte in &bytes {
                match byte {
                    b' ' | b'\t' | b'\n' | b'\\' | b'#' => escaped.extend(format!("\\{byte:03o}").bytes()),
                    _ => escaped.push(*byte),
                }
            }
            prop_assert_eq!(unescape(&escaped), bytes);
        }
    }
}
