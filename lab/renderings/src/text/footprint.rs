use charts::number;
use experiments::Footprint;
use filestats::{Figure, Reason};
use report::text::Style;
use report::text::parts::{Ink, Table, clean, wrap};

/// The amounts that a query moves at each level.
pub fn footprint(footprint: &Footprint, style: &Style) -> String {
    let mut lines = style.paragraph(Ink::Bold, &footprint.sentence(), 0, 6);
    lines.extend(wrap(&clean(&format!("{} on {}", footprint.query, footprint.source)), style.columns(), 6));
    lines.push(String::new());
    let count = |figure: Figure<u64>| amount(figure, number::count);
    let bytes = |figure: Figure<u64>| amount(figure, |bytes| number::bytes(bytes as f64));
    let sent = |figure: Figure<u64>| match figure {
        Figure::Unknown { unknown: Reason::NoOperations } => "nothing is sent".into(),
        other => bytes(other),
    };
    let levels = [
        (
            "rows returned, bytes of their values",
            number::count(footprint.rows),
            bytes(footprint.column_bytes),
        ),
        ("rows examined", count(footprint.rows_examined), String::new()),
        ("pages touched", count(footprint.pages_touched), bytes(footprint.touched_bytes())),
        ("not in the engine's cache", count(footprint.pages_read), bytes(footprint.read_bytes())),
        ("read ahead by the engine", count(footprint.pages_read_ahead), String::new()),
        ("reads of files", count(footprint.file_reads), bytes(footprint.file_read_bytes)),
        ("read from the storage", String::new(), bytes(footprint.storage_bytes)),
        ("read ahead by the kernel", String::new(), bytes(footprint.storage_read_ahead_bytes)),
        ("sent to the client", String::new(), sent(footprint.client_bytes)),
    ];
    let table = Table::from_items(levels)
        .left("", |(level, ..)| *level)
        .right("", |(_, amount, _)| amount.clone())
        .right("", |(.., size)| size.clone());
    lines.extend(table.lines(style));
    if !footprint.objects.is_empty() {
        lines.push(String::new());
        let table = Table::from_items(&footprint.objects)
            .left("table or index", |object| object.name.as_str())
            .right("rows", |object| count(object.rows))
            .right("records", |object| bytes(object.record_bytes))
            .right("pages", |object| count(object.pages))
            .right("size", |object| bytes(object.bytes))
            .flexible(0);
        lines.extend(table.lines(style));
    }
    lines.extend(footprint.notes.iter().flat_map(|note| style.note(note)));
    lines.join("\n") + "\n"
}

fn amount(figure: Figure<u64>, write: impl Fn(u64) -> String) -> String {
    match figure {
        Figure::Known(value) => write(value),
        Figure::Unknown { unknown: Reason::NoOperations } => number::NONE.into(),
        Figure::Unknown { unknown: Reason::NotCounted } => "not counted".into(),
        Figure::Unknown { unknown } => unknown.to_string(),
    }
}
