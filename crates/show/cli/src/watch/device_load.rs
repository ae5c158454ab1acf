//! Capabilities of the devices below the files, as the history knows them, and the share of them that an interval uses.

use capability::Capability;
use everyday::Known;
use filestats::{FileInterval, ServiceLevel};
use history::History;
use report::DeviceLoad;
use std::path::Path;
use storage::Target;
use terminal::{Output, kept};
use verdict::{Figures, Moment, Observation, judge};
use workload::Caching;

/// The history, where there is one: a host that was never measured has none, which is no error.
pub fn open_history(named: Option<&Path>, out: &mut Output) -> Option<History> {
    if !kept::path(named).is_ok_and(|path| path.exists()) {
        return None;
    }
    let opened = kept::open(named);
    opened.map_err(|failure| out.warn(format_args!("what was measured is not known: {failure}"))).ok()
}

/// The capability of the storage below a directory; `None` where not known.
pub fn capability_below(history: &History, dir: &Path) -> Option<Capability> {
    let target = Target::open(dir).ok()?;
    Known::read(history, target.facts(), Caching::Direct).ok()?.with_credits().capability
}

/// The interval of a device and of the files on it beside the capability.
pub fn load(capability: &Capability, device: &FileInterval, files: Vec<FileInterval>) -> DeviceLoad {
    let moment = Moment {
        ended_unix_ns: device.ended_unix_ns,
        files: files.into(),
        device: Some(device.clone()),
        ..Moment::default()
    };
    let figures = Figures::from_moments(std::slice::from_ref(&moment), Some(capability));
    let observation = Observation { moments: vec![moment], ..Observation::default() };
    let verdict = judge(&observation, Some(capability), &ServiceLevel::OLTP);
    let delta = device.interval.known();
    let read_ns = delta.and_then(|delta| delta.read_latency_ns().known());
    let write_ns = delta.and_then(|delta| delta.write_latency_ns().known());
    let expected = |latency_ns: Option<f64>, ratio: Option<f64>| {
        Some(latency_ns? / ratio?).filter(|expected| expected.is_finite() && *expected > 0.0)
    };
    DeviceLoad {
        utilisation: figures.utilisation.map(|used| used.value).filter(|value| value.is_finite()),
        headroom: verdict.headroom.filter(|headroom| headroom.is_finite()),
        read_expected_ns: expected(read_ns, figures.device_read_ratio),
        write_expected_ns: expected(write_ns, figures.device_write_ratio),
    }
}
