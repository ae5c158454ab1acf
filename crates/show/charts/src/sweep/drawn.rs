use crate::palette::Ink;
use capability::{Sweep, SweepStep};

/// A sweep with its name and colour in a chart.
pub(super) struct DrawnSweep {
    pub(super) sweep: Sweep,
    pub(super) name: String,
    pub(super) ink: Ink,
}

impl DrawnSweep {
    pub(super) fn steps(&self) -> &[SweepStep] {
        &self.sweep.steps
    }
}
