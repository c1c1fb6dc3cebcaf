//! Records as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::age::{Age, Ages};
use super::plans;
use super::record::{Case, Measured, Outcome, Record, Shape};

const HEAD: &str = "\
| work | over | type | median µs | GB/s | of the ceiling | error | peers, µs | further | variant | of |
|---|---|---|--:|--:|--:|--:|---|---|---|---|
";
/// Columns from the median on: what a failure spans.
const FIGURES: usize = 7;

/// Records by device and family.
fn groups(records: &[Record]) -> BTreeMap<(&str, &str), Vec<&Record>> {
    let mut groups = BTreeMap::<(&str, &str), Vec<&Record>>::new();
    for record in records {
        let group = (record.device.as_str(), record.family.as_str());
        groups.entry(group).or_default().push(record);
    }
    groups
}

/// How old the records of each device and family are, as a table: days of the first and the last, and how many are of other code
/// than today's.
pub fn summary(records: &[Record], ages: &Ages) -> String {
    let mut text =
        "### How old\n\nA day that says `older` is before the last change of the code that was measured.\n\n\
        | device | family | cases | from | to | older than its code |\n|---|---|--:|---|---|--:|\n"
            .to_owned();
    for ((device, family), records) in groups(records) {
        let days = records.iter().map(|record| day(record));
        let (from, to) = (days.clone().min(), days.max());
        let (from, to) = (from.unwrap_or_default(), to.unwrap_or_default());
        let (cases, older) = (records.len(), ages.older(records));
        let _ = writeln!(
            text,
            "| {device} | {family} | {cases} | {from} | {to} | {older} |"
        );
    }
    text + "\n"
}

/// Such as `2026-11-26`.
fn day(record: &Record) -> &str {
    record.date.split('T').next().unwrap_or_default()
}

/// The day of a record, marked if the code has changed since.
fn measured_on(record: &Record, ages: &Ages) -> String {
    let mark = match ages.age(record) {
        Age::Older => ", older",
        Age::Current => "",
        Age::Unknown => ", unknown",
    };
    format!("{}{mark}", day(record))
}

/// One table per device and family.
pub fn tables(records: &[Record], ages: &Ages) -> String {
    let mut text = String::new();
    for ((device, family), records) in groups(records) {
        let _ = write!(text, "### {family} on {device}\n\n");
        if let Some(summary) = (family == "plan")
            .then(|| plans::summary(&records))
            .flatten()
        {
            let _ = write!(text, "{summary}\n\n");
        }
        text += HEAD;
        for record in records {
            let _ = writeln!(text, "{}", row(record, ages));
        }
        text.push('\n');
    }
    text
}

fn row(record: &Record, ages: &Ages) -> String {
    let Record {
        case: Case { work, shape },
        dtype,
        outcome,
        ..
    } = record;
    let figures = match outcome {
        Outcome::Measured(measured) => figures(measured),
        Outcome::Failed { failed } => format!(
            "failed: {}{}",
            failed.replace('|', "/"),
            " |".repeat(FIGURES - 1)
        ),
    };
    let (over, of) = (over(shape), measured_on(record, ages));
    format!("| {work} | {over} | {dtype} | {figures} | {of} |")
}

fn figures(measured: &Measured) -> String {
    let Measured {
        median_us,
        bytes,
        variant,
        ..
    } = measured;
    let percent = measured
        .fraction_of_ceiling
        .map(|share| format!("{:.1} %", 100.0 * share));
    let error = measured.error.map(|error| format!("{error:.1e}"));
    let columns = [
        format!("{median_us:.1}"),
        format!("{:.0}", bytes / median_us / 1e3),
        percent.unwrap_or_default(),
        error.unwrap_or_default(),
        list(&measured.peers, |us| {
            format!("{us:.1} ({:.2}×)", us / median_us)
        }),
        list(&measured.details, |figure| format!("{figure:.1}")),
        variant.clone(),
    ];
    columns.join(" | ")
}

fn over(shape: &Shape) -> String {
    match shape {
        Shape::Dense { rows, cols } => format!("{} × {}", grouped(*rows), grouped(*cols)),
        Shape::Sparse {
            rows,
            cols,
            per_row,
        } => {
            format!("{} × {}, {per_row} a row", grouped(*rows), grouped(*cols))
        }
        Shape::Drawn {
            rows,
            cols,
            per_row,
            lengths,
            zipf_percent,
        } => {
            let columns = match zipf_percent {
                0 => "uniform".to_owned(),
                percent => format!("Zipf {:.1}", f64::from(*percent) / 100.0),
            };
            let (rows, cols) = (grouped(*rows), grouped(*cols));
            format!("{rows} × {cols}, {per_row} a row ({lengths}), {columns}")
        }
        Shape::Vector { len } => grouped(*len),
        Shape::Points {
            targets,
            sources,
            dims,
        } => format!("{} × {}, {dims}-D", grouped(*targets), grouped(*sources)),
        Shape::Layer {
            batch,
            channels,
            filters,
            side,
            kernel,
            permille,
        } => {
            let density = *permille as f64 / 10.0;
            format!(
                "{batch} × {channels} × {side} × {side}, {filters} filters of {kernel} × {kernel}, {density} %"
            )
        }
        Shape::Product { m, n, k } => {
            format!("{} × {} × {}", grouped(*m), grouped(*n), grouped(*k))
        }
        Shape::Batch { count, rows, cols } => format!(
            "{} of {} × {}",
            grouped(*count),
            grouped(*rows),
            grouped(*cols)
        ),
    }
}

/// Thousands apart by commas.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn list(figures: &BTreeMap<String, f64>, show: impl Fn(f64) -> String) -> String {
    let figures = figures
        .iter()
        .map(|(name, figure)| format!("{name} {}", show(*figure)));
    figures.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::record::parse;
    use super::*;

    const LINES: &str = concat!(
        r#"{"family":"fused","case":{"work":"fused","layout":"dense","rows":11000000,"cols":28,"seed":1},"dtype":"f32","#,
        r#""variant":"k bs256 grid528","median_us":300.0,"min_us":299.0,"max_us":310.0,"bytes":1232000224,"#,
        r#""ceiling_gbs":4500.0,"fraction_of_ceiling":0.914,"peers":{"cublas":780.0},"error":3e-7,"device":"H200","#,
        r#""driver":null,"commit":"abc","date":"2026-11-21T09:00:00Z"}"#,
        "\n",
        r#"{"family":"fused","case":{"work":"forward","layout":"sparse","rows":4,"cols":40,"per_row":2,"seed":1},"#,
        r#""dtype":"f64","failed":"no memory","device":"H200"}"#,
    );

    #[test]
    fn a_record_becomes_a_row_under_its_device() {
        let text = tables(&parse(LINES).expect("records"), &Ages::default());
        assert!(text.starts_with("### fused on H200"), "{text}");
        let row = "| fused | 11,000,000 × 28 | f32 | 300.0 | 4107 | 91.4 % | 3.0e-7 | cublas 780.0 (2.60×) |  | k bs256 grid528 | 2026-11-21, unknown |";
        assert!(text.contains(row), "{text}");
    }

    #[test]
    fn every_row_has_the_columns_of_the_head() {
        let text = tables(&parse(LINES).expect("records"), &Ages::default());
        assert!(text.contains("failed: no memory"), "{text}");
        let bars = |line: &str| line.matches('|').count();
        let rows: Vec<usize> = text
            .lines()
            .filter(|line| line.starts_with('|'))
            .map(bars)
            .collect();
        assert_eq!(rows, [12; 4], "{text}");
    }
}
