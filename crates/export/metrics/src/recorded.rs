//! What a recorder gives to servers: its totals, as text and pushed.

use crate::pushed::{Dropped, Pushed, SentSeries, Stamp};
use crate::text::{Exposition, Format, write_families};
use crate::totals::Totals;
use crate::{ExtraLabels, otlp, remote_write};

impl Exposition for Totals {
    fn text(&self, format: Format) -> String {
        write_families(&self.families(), format, &ExtraLabels::default())
    }
}

impl Pushed for Totals {
    fn remote_write(&self, stamp: &Stamp, sent: &mut SentSeries) -> Vec<u8> {
        remote_write::write(&self.families(), stamp, sent)
    }

    fn otlp(&self, stamp: &Stamp) -> Vec<u8> {
        otlp::write(&self.families(), stamp)
    }

    fn push_dropped(&mut self, to: &str, reason: Dropped, count: u64) {
        let dropped = self.dropped.entry((to.into(), reason)).or_default();
        *dropped = dropped.saturating_add(count);
    }
}
