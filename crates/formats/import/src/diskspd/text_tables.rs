//! The tables of the text: CPU, thread rows, percentiles.

use super::text_parameters::{Line, number};
use crate::ImportError;
use crate::summary::{Summary, ms_to_ns};
use workload::CoreUse;

/// Where the columns of a thread table are; which there are depends on `-L` and `-D`.
#[derive(Debug)]
pub(super) struct Columns {
    count: usize,
    mean_latency: Option<usize>,
    iops_deviation: Option<usize>,
    latency_deviation: Option<usize>,
    /// Versions up to 2.0.17 head the throughput MB/s, and mean MiB/s.
    pub(super) says_mb: bool,
}

/// A row of a thread table.
#[derive(Debug)]
pub(super) struct ThreadRow {
    pub thread: u32,
    pub path: String,
    pub target_bytes: Option<u64>,
    pub told: Summary,
}

impl Columns {
    /// By the head of the table.
    pub fn read(line: Line<'_>) -> Result<Columns, ImportError> {
        let names: Vec<&str> = line.1.split('|').map(str::trim).collect();
        if names.get(1..3) != Some(&["bytes", "I/Os"]) || names.last() != Some(&"file") {
            return Err(ImportError::at(
                line.0,
                "the head of a thread table has other columns than diskspd's",
            ));
        }
        let at = |name: &str| names.iter().position(|other| *other == name);
        Ok(Columns {
            count: names.len(),
            mean_latency: at("AvgLat"),
            iops_deviation: at("IopsStdDev"),
            latency_deviation: at("LatStdDev"),
            says_mb: at("MB/s").is_some(),
        })
    }

    fn summary(&self, line: Line<'_>, cells: &[&str]) -> Result<Summary, ImportError> {
        let ns = |at: Option<usize>| -> Result<Option<f64>, ImportError> {
            let ms = at.map(|at| optional(line, cells[at])).transpose()?.flatten();
            Ok(ms.filter(|ms| *ms >= 0.0).map(|ms| ms * 1e6))
        };
        Ok(Summary {
            count: number(line, cells[2])?,
            bytes: number(line, cells[1])?,
            mean_ns: ns(self.mean_latency)?,
            deviation_ns: ns(self.latency_deviation)?,
            ..Summary::default()
        })
    }

    /// "     0 |  4194304 |  512 | ... | testfile1.dat (10MiB)".
    pub fn row(&self, line: Line<'_>) -> Result<ThreadRow, ImportError> {
        let cells: Vec<&str> = line.1.splitn(self.count, '|').map(str::trim).collect();
        if cells.len() != self.count {
            let (has, wants) = (cells.len(), self.count);
            return Err(ImportError::at(line.0, format!("a row of {has} columns in a table of {wants}"))
                .remedy("import the whole output, this seems cut off"));
        }
        let file = cells[self.count - 1];
        let (path, size) = file.rsplit_once(" (").unwrap_or((file, ""));
        // "11GB" of 2.0.17 is cut off, not rounded: what is not exact is not the size.
        let size = size.trim_end_matches(')');
        let exact =
            !size.contains('.') && !size.ends_with(['B']) || size.ends_with("iB") && !size.contains('.');
        let bytes = if exact { workload::parse_bytes(size).ok() } else { plain_bytes(size) };
        let told = self.summary(line, &cells)?;
        Ok(ThreadRow { thread: number(line, cells[0])?, path: path.into(), target_bytes: bytes, told })
    }

    /// "total:   4194304 |  512 | ...": the bytes stand in the cell of "total:". Also the deviation of the rate.
    pub fn total(&self, line: Line<'_>) -> Result<(Summary, Option<f64>), ImportError> {
        let rest = line.1.trim_start_matches("total:");
        let mut cells: Vec<&str> = vec!["total:"];
        cells.extend(rest.split('|').map(str::trim));
        cells.resize(self.count.max(cells.len()), "");
        let deviation = self.iops_deviation.map(|at| optional(line, cells[at])).transpose()?.flatten();
        Ok((self.summary(line, &cells)?, deviation))
    }
}

/// "512B" is exact, "11GB" is not.
fn plain_bytes(size: &str) -> Option<u64> {
    size.strip_suffix('B').and_then(|digits| digits.parse().ok())
}

/// A figure, or none: "N/A", and what Windows prints for "not a number".
fn optional(line: Line<'_>, text: &str) -> Result<Option<f64>, ImportError> {
    let text = text.trim();
    if text.is_empty() || text == "N/A" || text.contains("nan") || text.contains("inf") || text.contains('#')
    {
        return Ok(None);
    }
    number(line, text).map(Some)
}

/// "   0|  55.00%|  30.00%|  25.00%|  45.00%", in newer versions after columns of socket, node, group, core.
pub(super) fn core(line: Line<'_>, core: u32) -> Result<Option<CoreUse>, ImportError> {
    let cells: Vec<&str> = line.1.split('|').map(str::trim).collect();
    let [.., cpu, _usage, user, kernel, idle] = cells.as_slice() else {
        return Err(ImportError::at(line.0, "a row of the CPU table has too few columns"));
    };
    if cells.first().is_some_and(|first| first.starts_with("avg")) || cpu.starts_with("avg") {
        return Ok(None);
    }
    // Of a single group the number is the row's own; else the same numbers come in each group.
    let core = if cells.len() == 5 { cpu.parse().unwrap_or(core) } else { core };
    let percent = |cell: &str| Ok(optional(line, cell.trim_end_matches('%'))?.unwrap_or(0.0));
    let (user_percent, kernel_percent) = (percent(user)?, percent(kernel)?);
    Ok(Some(CoreUse { core, user_percent, kernel_percent, idle_percent: percent(idle)? }))
}

/// A row of the percentiles.
#[derive(Debug)]
pub(super) struct PercentileRow {
    pub percent: f64,
    pub read_ns: Option<u64>,
    pub write_ns: Option<u64>,
    pub total_ns: Option<u64>,
}

/// "3-nines |      1.234 |        N/A |      1.234"; also in Markdown: "| **Min** | 0.029 | 0.760 | 0.029 |".
pub(super) fn percentile(line: Line<'_>) -> Result<Option<PercentileRow>, ImportError> {
    let cells = line.1.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('*'));
    let cells: Vec<&str> = cells.collect();
    let [label, read, write, total] = cells.as_slice() else { return Ok(None) };
    let label = label.to_ascii_lowercase();
    let percent = match label.as_str() {
        "min" => 0.0,
        "max" => 100.0,
        label => match (label.strip_suffix("th"), label.strip_suffix("-nines")) {
            (Some(whole), _) => f64::from(number::<u8>(line, whole)?.min(100)),
            (_, Some(nines)) => 100.0 - 100.0 / 10_f64.powi(number::<u8>(line, nines)?.into()),
            _ => return Ok(None),
        },
    };
    // 99.9, not 99.90000000000001.
    let percent = (percent * 1e10).round() / 1e10;
    let ns = |cell: &str| Ok(optional(line, cell)?.and_then(ms_to_ns));
    Ok(Some(PercentileRow { percent, read_ns: ns(read)?, write_ns: ns(write)?, total_ns: ns(total)? }))
}
