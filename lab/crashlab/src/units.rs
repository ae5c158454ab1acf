//! Devices that map units larger than a sector and rewrite a unit in place: a power failure damages the neighbours of what is
//! written, also those that were durable.
//!
//! ```text
//! unit of 4 KiB    survived: pages, control copies and log blocks of 4 KiB (`Layout::log_sector_bytes`) share a unit with nothing
//!                  not defended: with log blocks of 512 bytes, acknowledged blocks of the unit that the next ones are written to
//! unit of 16 KiB   survived: pages of 16 KiB; others are detected by their checksums when they are read
//!                  detected: both copies of the control file in one unit
//!                  not defended: acknowledged log in the unit of the log's end, since nothing after it proves that it was there
//! ```

use crate::oracle::{Expected, Tolerance};
use crate::run::Run;
use crate::{Chance, Files, Medium, Op};
use pagestore_disk::FileId;

/// One in this many crashed writes is crashed on such a device as well.
const UNITS_ONE_IN: u64 = 8;

/// The sizes of a unit.
const UNIT_BYTES: [u64; 2] = [4096, 16384];

/// Whether the next crash is repeated on such a device; returns the generator for it. It does not advance `chance`, so that
/// the other draws stay the same.
pub(crate) fn is_drawn(chance: &Chance) -> Option<Chance> {
    let mut aside = Chance::new(chance.clone().draw() ^ 0x0417);
    aside.once_in(UNITS_ONE_IN).then_some(aside)
}

/// The files after a crash during operation `at`, and what recovery must find there. `None`: nothing is written there.
pub(crate) fn crash(run: &Run, medium: &Medium, at: usize, chance: &mut Chance) -> Option<(Files, Expected)> {
    let op: &Op = run.trace.get(at)?;
    let unit = UNIT_BYTES[chance.below(2) as usize];
    let (files, file, damaged) = medium.crash_in_units(op, unit, chance)?;
    let expected = run.expected(at);
    let alone = match file {
        FileId::Control => 4096,
        FileId::Data => run.setting.layout.page_bytes as u64,
        FileId::Log => run.setting.layout.log_sector_bytes as u64,
    };
    if unit <= alone {
        return Some((files, expected));
    }
    let mut least = expected.least;
    if file == FileId::Log
        && let Some(oldest) = run.oldest_log_write(at, damaged)
    {
        least = run.expected(oldest).least;
    }
    Some((files, Expected { least, tolerance: Tolerance::Reported, ..expected }))
}
