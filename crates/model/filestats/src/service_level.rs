use crate::IoClass;
use serde::{Deserialize, Serialize};

/// Service level promised to the users of a database: mean latencies that are still fine. A second may be
/// fine in a warehouse and is an outage for a shop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServiceLevel {
    /// Reads of data, nanoseconds.
    pub read_ns: u64,
    /// Writes of data, nanoseconds.
    pub write_ns: u64,
    /// Log writes and syncs, nanoseconds.
    pub log_write_ns: u64,
}

/// Text that is no service level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a service level; give oltp, warehouse, or read/write/log milliseconds as in 20/20/5")]
pub struct UnknownServiceLevel(pub String);

const MS: u64 = 1_000_000;

impl ServiceLevel {
    /// Transactions with people waiting: 20 ms for data, 10 ms for the log.
    pub const OLTP: ServiceLevel =
        ServiceLevel { read_ns: 20 * MS, write_ns: 20 * MS, log_write_ns: 10 * MS };
    /// Reports and loads: half a second for data, 100 ms for the log.
    pub const WAREHOUSE: ServiceLevel =
        ServiceLevel { read_ns: 500 * MS, write_ns: 500 * MS, log_write_ns: 100 * MS };

    /// The promised latency of a class, nanoseconds.
    pub fn limit_ns(&self, class: IoClass) -> u64 {
        match class {
            IoClass::Read => self.read_ns,
            IoClass::Write => self.write_ns,
            IoClass::LogWrite => self.log_write_ns,
        }
    }

    /// Whether a mean latency keeps the promise.
    pub fn kept(&self, class: IoClass, latency_ns: f64) -> bool {
        latency_ns <= self.limit_ns(class) as f64
    }
}

impl Default for ServiceLevel {
    fn default() -> Self {
        ServiceLevel::OLTP
    }
}

impl std::str::FromStr for ServiceLevel {
    type Err = UnknownServiceLevel;

    /// `oltp`, `warehouse`, or three latencies in milliseconds: `READ/WRITE/LOG`, as in `20/20/5`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || UnknownServiceLevel(text.into());
        match text {
            "oltp" => return Ok(ServiceLevel::OLTP),
            "warehouse" => return Ok(ServiceLevel::WAREHOUSE),
            _ => {}
        }
        let limits: Vec<u64> = text
            .split('/')
            .map(|part| match part.parse::<f64>() {
                Ok(ms) if ms.is_finite() && ms > 0.0 => Ok((ms * MS as f64) as u64),
                _ => Err(wrong()),
            })
            .collect::<Result<_, _>>()?;
        match limits[..] {
            [read_ns, write_ns, log_write_ns] => Ok(ServiceLevel { read_ns, write_ns, log_write_ns }),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_fine_in_a_warehouse_only_if_it_says_so() {
        let own: ServiceLevel = "1000/1000/50".parse().unwrap();
        assert!(own.kept(IoClass::Read, 9e8));
        assert!(!ServiceLevel::OLTP.kept(IoClass::Read, 9e8));
        assert!("20/20".parse::<ServiceLevel>().is_err());
        assert!("20/20/-1".parse::<ServiceLevel>().is_err());
    }
}
