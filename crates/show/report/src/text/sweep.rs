//! Sweeps: for each a table of steps and the properties of its curve, then a comparison of two.

use super::style::{Ink, Style};
use super::table::Table;
use super::wrap::clean;
use crate::wording::sweep::{CurveProperty, STEP_FIGURES, StepFigure, properties};
use capability::{Sweep, SweepComparison};
use charts::sweep::comparison_words;

/// The steps and the curve of each sweep, and how the second compares with the first.
pub fn sweeps(sweeps: &[Sweep], compared: Option<&SweepComparison>, style: &Style) -> String {
    let mut sections: Vec<String> = Vec::new();
    for sweep in sweeps {
        let mut lines = vec![style.heading(&clean(&sweep.target))];
        lines.extend(steps(sweep, style));
        sections.push(lines.join("\n"));
        sections.push(meaning(sweep, style).join("\n"));
    }
    if let (Some(compared), [first, second, ..]) = (compared, sweeps) {
        let text = comparison_words(first, second, compared);
        sections.push(style.paragraph(Ink::Bold, &text, 0, 3).join("\n"));
    }
    sections.join("\n\n") + "\n"
}

fn steps(sweep: &Sweep, style: &Style) -> Vec<String> {
    let mut table = Table::from_items(&sweep.steps);
    for StepFigure { title, write, .. } in STEP_FIGURES {
        table = table.right(title, |step| write(step));
    }
    let mut lines = table.lines(style);
    let note = "N: by Little's law. queue: of the devices, the kernel's mean over time; sampled: the mean of single \
                samples; off, worst: how wrong that mean and the worst sample were.";
    lines.extend(style.paragraph(Ink::Dim, note, 2, 3));
    lines
}

/// The properties of a curve with their names.
fn meaning(sweep: &Sweep, style: &Style) -> Vec<String> {
    const NAME: usize = 18;
    let lines = |CurveProperty { name, text }| style.marked(&format!("  {name:NAME$}"), &text, NAME + 2, 4);
    properties(sweep).into_iter().flat_map(lines).collect()
}
