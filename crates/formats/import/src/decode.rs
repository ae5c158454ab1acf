use crate::unreadable::{binary_counter_log, is_binary_counter_log};
use crate::{ImportError, Note};

/// The text of a file: UTF-8, UTF-16 with its mark as PowerShell's `>` writes it or without as some `bcp -w` do, or
/// UTF-16 that was appended to other text (`>>`), which shows as zero bytes.
///
/// # Errors
/// Where UTF-16 ends within a character, and where the bytes are a binary counter log.
pub fn decode(bytes: &[u8]) -> Result<(String, Vec<Note>), ImportError> {
    if is_binary_counter_log(bytes) {
        return Err(binary_counter_log());
    }
    match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => Ok(lossy(rest)),
        // A heading of plain letters.
        [1..=0x7f, 0, 1..=0x7f, 0, ..] if bytes.len().is_multiple_of(2) => utf16(bytes, u16::from_le_bytes),
        _ => Ok(lossy(bytes)),
    }
}

fn utf16(bytes: &[u8], word: fn([u8; 2]) -> u16) -> Result<(String, Vec<Note>), ImportError> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(ImportError::new("the file is UTF-16 and ends within a character")
            .remedy("copy it again, it was cut off"));
    }
    let words: Vec<u16> = pairs.iter().map(|pair| word(*pair)).collect();
    Ok((String::from_utf16_lossy(&words), Vec::new()))
}

fn lossy(bytes: &[u8]) -> (String, Vec<Note>) {
    let mut notes = Vec::new();
    // The marks of UTF-16 text that follows other text are no characters either.
    let without_zeros: Vec<u8>;
    let bytes = if bytes.contains(&0) {
        notes.push(Note::new("zero bytes were left out: UTF-16 appended to other text?"));
        without_zeros = bytes.iter().copied().filter(|byte| !matches!(byte, 0 | 0xff | 0xfe)).collect();
        &without_zeros
    } else {
        bytes
    };
    let text = String::from_utf8_lossy(bytes);
    if matches!(text, std::borrow::Cow::Owned(_)) {
        notes.push(Note::new("bytes that are no UTF-8 were replaced: names may read oddly"));
    }
    (text.into_owned(), notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_powershell_writes_is_read() {
        let text = "Command Line: ü\r\n";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(decode(&[&[0xff, 0xfe][..], &little].concat()).unwrap().0, text);
        assert_eq!(decode(&[&[0xfe, 0xff][..], &big].concat()).unwrap().0, text);
        assert_eq!(decode(&little).unwrap().0, text);
        assert_eq!(decode("\u{feff}plain".as_bytes()).unwrap().0, "plain");
        let appended: Vec<u8> = "more".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let (mixed, notes) = decode(&[b"text ".as_slice(), &appended].concat()).unwrap();
        assert_eq!((mixed.as_str(), notes.len()), ("text more", 1));
        assert!(decode(&[0xff, 0xfe, 65]).unwrap_err().to_string().contains("UTF-16"));
    }
}
