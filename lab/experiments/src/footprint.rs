//! Data that one query moves at each level, from the values it returns down to the storage.

use crate::counted;
use filestats::Figure;
use serde::Serialize;
use workload::{format_bytes, format_count};

/// One query's bytes, level by level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Footprint {
    /// "postgres:host=/run/postgresql".
    pub source: String,
    /// The query.
    pub query: String,
    /// Rows returned.
    pub rows: u64,
    /// Bytes of the columns' values in those rows, as the engine stores them.
    pub column_bytes: Figure<u64>,
    /// Rows that the engine examined.
    pub rows_examined: Figure<u64>,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Logical reads: pages that the engine accessed, counted at each access.
    pub pages_touched: Figure<u64>,
    /// Of these, pages that were not in the engine's own cache.
    pub pages_read: Figure<u64>,
    /// Pages that the engine fetched ahead of need; they are among those read where the engine counts them there.
    pub pages_read_ahead: Figure<u64>,
    /// Reads that the engine issued to its files, whether or not the page cache answered.
    pub file_reads: Figure<u64>,
    /// Bytes of these reads.
    pub file_read_bytes: Figure<u64>,
    /// Bytes read from the storage, below the page cache, read-ahead included.
    pub storage_bytes: Figure<u64>,
    /// Of these, bytes that the kernel read ahead.
    pub storage_read_ahead_bytes: Figure<u64>,
    /// Bytes sent to the client; an engine in the program itself sends none: [`Reason::NoOperations`].
    pub client_bytes: Figure<u64>,
    /// The tables and indexes that it used.
    pub objects: Vec<ObjectFootprint>,
    /// Notes for reading the figures.
    pub notes: Vec<String>,
}

/// A table or index as it lies on the storage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ObjectFootprint {
    /// Its name.
    pub name: String,
    /// Rows or entries; of servers, as their statistics have them.
    pub rows: Figure<u64>,
    /// Bytes of its records, without the space around them.
    pub record_bytes: Figure<u64>,
    /// Its pages.
    pub pages: Figure<u64>,
    /// Their bytes.
    pub bytes: Figure<u64>,
}

impl Footprint {
    /// Bytes of the pages touched.
    pub fn touched_bytes(&self) -> Figure<u64> {
        self.pages_touched.map(|pages| pages.saturating_mul(self.page_bytes))
    }

    /// Bytes of the pages read.
    pub fn read_bytes(&self) -> Figure<u64> {
        self.pages_read.map(|pages| pages.saturating_mul(self.page_bytes))
    }

    /// "2,500,000 rows with 9.5 MiB of values: 31.4 MiB of pages touched, 3.3 times the values; 31.2 MiB of them not in the
    /// engine's cache, ...".
    pub fn sentence(&self) -> String {
        let rows = counted(self.rows, "row", "rows");
        let mut text = match self.column_bytes {
            Figure::Known(bytes) => format!("{rows} with {} of values", format_bytes(bytes)),
            Figure::Unknown { .. } => rows,
        };
        if let Figure::Known(touched) = self.touched_bytes() {
            text.push_str(&format!(": {} of pages touched", format_bytes(touched)));
            if let Some(values) = self.column_bytes.known().filter(|values| *values > 0) {
                let times = format_times(touched as f64 / values as f64);
                text.push_str(&format!(", {times} times the values"));
            }
        }
        if let Figure::Known(read) = self.read_bytes() {
            text.push_str(&format!("; {} of them not in the engine's cache", format_bytes(read)));
        }
        if let Figure::Known(storage) = self.storage_bytes {
            text.push_str(&format!("; {} came from the storage", format_bytes(storage)));
        }
        if let Figure::Known(sent) = self.client_bytes {
            text.push_str(&format!("; {} sent to the client", format_bytes(sent)));
        }
        text
    }
}

/// "3.3", "1,311".
fn format_times(times: f64) -> String {
    if times < 100.0 { format!("{times:.1}") } else { format_count(times.round() as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use filestats::Reason;

    /// The study of 2017: 2,500,000 rows of one INT in 4,036 pages.
    #[test]
    fn a_footprint_is_one_sentence() {
        let unknown = Figure::unknown(Reason::NotCounted);
        let mut footprint = Footprint {
            source: "sqlserver:".into(),
            query: "SELECT * FROM numbers".into(),
            rows: 2_500_000,
            column_bytes: Figure::Known(10_000_000),
            rows_examined: Figure::Known(2_500_000),
            page_bytes: 8_192,
            pages_touched: Figure::Known(4_036),
            pages_read: Figure::Known(4_035),
            pages_read_ahead: Figure::Known(4_032),
            file_reads: unknown,
            file_read_bytes: unknown,
            storage_bytes: unknown,
            storage_read_ahead_bytes: unknown,
            client_bytes: Figure::Known(12_500_000),
            objects: Vec::new(),
            notes: Vec::new(),
        };
        assert_eq!(
            footprint.sentence(),
            "2,500,000 rows with 9.5 MiB of values: 31.5 MiB of pages touched, 3.3 times the values; 31.5 MiB of them \
             not in the engine's cache; 11.9 MiB sent to the client"
        );
        footprint.column_bytes = Figure::Known(25);
        let said = footprint.sentence();
        assert!(said.contains("31.5 MiB of pages touched, 1,322,516 times the values"), "{said}");
        footprint.pages_touched = unknown;
        footprint.pages_read = unknown;
        footprint.column_bytes = unknown;
        assert_eq!(footprint.sentence(), "2,500,000 rows; 11.9 MiB sent to the client");
    }
}
