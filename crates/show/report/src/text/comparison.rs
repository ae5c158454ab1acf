use super::style::{Ink, Style};
use super::table::{Align, Cell, Table};
use super::wrap::{clean, wrap};
use crate::{Tone, number, wording};
use compare::{Comparison, Method, Row, Verdict, interval_in_words, more_short};

/// B compared with A: the answer, the figures it is based on, the others, and notes.
pub fn comparison(compared: &Comparison, style: &Style) -> String {
    let mut lines = style.paragraph(Ink::Tone(tone(compared.verdict)), &compared.summary, 0, 12);
    lines.push(String::new());
    lines.extend(figures(compared, true, style));
    let others = figures(compared, false, style);
    if others.len() > 1 {
        lines.extend([String::new(), "besides, without weight in the answer:".into()]);
        lines.extend(others);
    }
    lines.push(String::new());
    let method = match compared.method {
        Method::WithinRuns => "within one run each",
        Method::Groups => "from run to run",
        Method::Pairs => "from pair to pair",
        Method::Curves => "within the measured points",
    };
    let rules = &compared.rules;
    let looks = match rules.looks {
        0 | 1 => String::new(),
        looks => format!(", over {looks} tests"),
    };
    let note = format!(
        "95 % intervals by the noise {method}{looks}; differences within {} ({} of p90 and above) do not matter",
        number::share(rules.margin),
        number::share(compare::Measure::P99.margin(rules.margin)),
    );
    lines.extend(style.paragraph(Ink::Dim, &note, 0, 3));
    if !compared.mismatches.is_empty() {
        lines.push(String::new());
        lines.push(style.paint(Ink::Tone(Tone::Warning), "A and B differ in:"));
        let table = Table::from_items(&compared.mismatches)
            .left("", |mismatch| mismatch.what.as_str())
            .left("A", |mismatch| mismatch.a.as_str())
            .left("B", |mismatch| mismatch.b.as_str())
            .flexible(1);
        lines.extend(table.lines(style));
    }
    for doubt in &compared.doubts {
        lines.extend(wrap(&format!("note: {doubt}"), style.columns(), 4));
    }
    lines.join("\n") + "\n"
}

fn figures(compared: &Comparison, headline: bool, style: &Style) -> Vec<String> {
    let (name_a, name_b) = (format!("A: {}", clean(&compared.a)), format!("B: {}", clean(&compared.b)));
    let mut lines = Vec::new();
    if headline {
        lines.push(style.paint(Ink::Dim, &format!("{name_a}   {name_b}")));
    }
    let mut table = Table::new(&[
        ("", Align::Left),
        ("A", Align::Right),
        ("B", Align::Right),
        ("change", Align::Right),
        ("95 %", Align::Left),
        ("", Align::Left),
    ]);
    let mut subject = None;
    for row in compared.rows.iter().filter(|row| row.headline == headline) {
        if row.subject.is_some() && row.subject != subject {
            subject.clone_from(&row.subject);
            table.push(vec![Cell::inked(row.subject.clone().unwrap_or_default(), Ink::Bold)]);
        }
        table.push(cells(row));
    }
    lines.extend(table.lines(style));
    lines
}

fn cells(row: &Row) -> Vec<Cell> {
    let figure = |value: Option<f64>| {
        Cell::from(value.map_or(number::NONE.into(), |value| wording::comparison::value(row.unit, value)))
    };
    let change = row.percent.map_or(number::NONE.into(), |percent| format!("{percent:+.1} %"));
    let mut cells = vec![row.figure.as_str().into(), figure(row.a), figure(row.b), change.into()];
    match (&row.not_compared, row.difference) {
        (Some(why), None) => cells.push(Cell::inked(why.as_str(), Ink::Dim)),
        (_, None) => {}
        (not_judged, Some(_)) => {
            cells.push(interval_in_words(row).into());
            let word = match (not_judged, row.more) {
                (Some(why), _) => why.clone(),
                (None, Some(more)) => format!("cannot tell ({})", more_short(more)),
                (None, None) => wording::comparison::verdict(row.verdict).to_owned(),
            };
            cells.push(Cell::inked(word, Ink::Tone(tone(row.verdict))));
        }
    }
    cells
}

fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Faster => Tone::Good,
        Verdict::Slower | Verdict::Mixed => Tone::Bad,
        Verdict::NoDifference | Verdict::CannotTell => Tone::Neutral,
    }
}
