//! Histograms of a file as the bytes of one column: as JSON they were more than half of every row.
//!
//! ```text
//! read, write, sync, each:  filled  (gap, count) x filled
//! ```
//!
//! All numbers are varints ([`filestats::varint`]). `filled` is the number of buckets that are not empty, `gap` the number of
//! empty ones before a filled one.

use filestats::varint::{push, take};
use filestats::{Latencies, LatencyBuckets};
use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, Value, ValueRef};

/// A column with histograms.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Packed<T>(pub T);

impl ToSql for Packed<&Latencies> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let mut bytes = Vec::new();
        push_latencies(&mut bytes, self.0);
        Ok(ToSqlOutput::Owned(Value::Blob(bytes)))
    }
}

impl FromSql for Packed<Latencies> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let mut bytes = match value {
            ValueRef::Blob(bytes) => bytes,
            _ => return Err(FromSqlError::InvalidType),
        };
        let latencies = take_latencies(&mut bytes);
        let latencies = latencies
            .ok_or_else(|| FromSqlError::Other("no histogram: it was changed by another program".into()))?;
        if bytes.is_empty() {
            Ok(Packed(latencies))
        } else {
            Err(FromSqlError::Other("more than three histograms".into()))
        }
    }
}

/// Appends histograms.
pub(crate) fn push_latencies(bytes: &mut Vec<u8>, latencies: &Latencies) {
    for buckets in [&latencies.read, &latencies.write, &latencies.sync] {
        push(bytes, buckets.filled().count() as u64);
        let mut next = 0;
        for (index, count) in buckets.filled() {
            push(bytes, (index - next) as u64);
            push(bytes, count);
            next = index + 1;
        }
    }
}

/// Reads histograms and advances; `None` where the bytes are none.
pub(crate) fn take_latencies(bytes: &mut &[u8]) -> Option<Latencies> {
    Some(Latencies { read: buckets(bytes)?, write: buckets(bytes)?, sync: buckets(bytes)? })
}

fn buckets(bytes: &mut &[u8]) -> Option<LatencyBuckets> {
    let mut counts = [0; LatencyBuckets::LEN];
    let mut next = 0;
    for _ in 0..take(bytes)? {
        let index = usize::try_from(take(bytes)?).ok()?.checked_add(next)?;
        *counts.get_mut(index)? = take(bytes)?;
        next = index + 1;
    }
    Some(LatencyBuckets::from_counts(counts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> FromSqlResult<Packed<Latencies>> {
        Packed::column_result(ValueRef::Blob(bytes))
    }

    fn written(latencies: &Latencies) -> Vec<u8> {
        match Packed(latencies).to_sql().unwrap() {
            ToSqlOutput::Owned(Value::Blob(bytes)) => bytes,
            other => panic!("{other:?}"),
        }
    }

    fn some_buckets() -> impl Strategy<Value = LatencyBuckets> {
        let count = prop_oneof![Just(0), 1_u64..300, any::<u64>()];
        prop::collection::vec(count, LatencyBuckets::LEN)
            .prop_map(|counts| LatencyBuckets::from_counts(counts.try_into().unwrap()))
    }

    #[test]
    fn eight_filled_buckets_are_a_few_bytes() {
        let mut latencies = Latencies::default();
        (0..8).for_each(|part| latencies.read.record(100_000 + part * 20_000));
        assert!(written(&latencies).len() <= 3 + 8 * 2, "{:?}", written(&latencies));
        assert_eq!(written(&Latencies::default()), [0, 0, 0]);
    }

    proptest! {
        #[test]
        fn every_count_comes_back(read_ in some_buckets(), write in some_buckets(), sync in some_buckets()) {
            let latencies = Latencies { read: read_, write, sync };
            prop_assert_eq!(read(&written(&latencies)).unwrap(), Packed(latencies));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }
}
