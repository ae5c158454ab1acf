//! The response of an OTLP server that accepted only a part of a request.
//!
//! ```text
//! ExportMetricsServiceResponse { ExportMetricsPartialSuccess partial_success = 1 }
//! ExportMetricsPartialSuccess  { int64 rejected_data_points = 1; string error_message = 2 }
//! ```

use filestats::varint;

/// The part that the server rejected, as text; `None` where it accepted all, or the response is something else.
pub(crate) fn rejected(answer: &[u8]) -> Option<String> {
    let (mut points, mut why) = (0, String::new());
    for (field, value) in fields(answer)? {
        let Value::Bytes(partial) = value else { continue };
        if field != 1 {
            continue;
        }
        for (field, value) in fields(partial)? {
            match (field, value) {
                (1, Value::Number(number)) => points = number,
                (2, Value::Bytes(text)) => why = String::from_utf8_lossy(text).chars().take(200).collect(),
                _ => {}
            }
        }
    }
    (points > 0).then(|| format!("it rejects {points} of the points: {why}"))
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Other,
}

/// The fields of a message; `None` where the bytes are not a message.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Value<'_>)>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint::take(&mut bytes)?;
        let value = match key & 7 {
            0 => Value::Number(varint::take(&mut bytes)?),
            1 => take(&mut bytes, 8).map(|_| Value::Other)?,
            2 => {
                let length = usize::try_from(varint::take(&mut bytes)?).ok()?;
                Value::Bytes(take(&mut bytes, length)?)
            }
            5 => take(&mut bytes, 4).map(|_| Value::Other)?,
            _ => return None,
        };
        found.push((key >> 3, value));
    }
    Some(found)
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_taken_is_told_in_the_servers_words() {
        // Written by OpenTelemetry's Python classes.
        let said = rejected(b"\n\x0c\x08\xac\x02\x12\x07too old");
        assert_eq!(said.unwrap(), "it rejects 300 of the points: too old");
        assert_eq!(rejected(b"\n\x0c\x08\xac\x02\x12\x07too"), None, "cut off");
        assert_eq!(rejected(b""), None, "all was taken");
        assert_eq!(rejected(b"\n\x09\x12\x07warning"), None, "all was taken, with a warning");
        assert_eq!(rejected(b"{\"partialSuccess\":{}}"), None);
    }
}
