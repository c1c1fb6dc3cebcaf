//! All results as a page: every family's figures over sizes, beside peers and limits.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use warpfuse_figures::Figure;
use warpfuse_figures::page::{Mood, Report, Section, Table, Unit, Value};

use super::age::Ages;
use super::curves::{bars, predictions, slug, times};
use super::group::{Group, gain, groups, median};
use super::plans;
use super::record::{Outcome, Record};

/// Figures of a family: those of the works with the most sizes.
const FIGURES: usize = 6;
/// The page.
pub fn page(records: &[Record], ages: &Ages) -> Report {
    let mut report = Report::new("Benchmarks", "cargo xtask bench-report --write");
    let dates: BTreeSet<&str> = records.iter().map(|one| day(&one.date)).collect();
    let ends = (dates.first().copied(), dates.last().copied());
    report.subtitle = format!(
        "The newest record of each of {} cases, {} to {}.",
        records.len(),
        ends.0.unwrap_or("–"),
        ends.1.unwrap_or("–")
    );
    let mut families = BTreeMap::<(Reverse<usize>, &str, &str), Vec<&Record>>::new();
    for record in records {
        let (device, family) = (record.device.as_str(), record.family.as_str());
        // The device with the most records comes first.
        let of_device = records.iter().filter(|one| one.device == device).count();
        let family = families.entry((Reverse(of_device), device, family));
        family.or_default().push(record);
    }
    judge(&mut report, records);
    judge_age(&mut report, records, ages);
    let sections = families
        .iter()
        .map(|((_, device, family), records)| section((device, family), records, ages));
    report.sections.extend(sections);
    report
}

fn day(date: &str) -> &str {
    date.split('T').next().unwrap_or(date)
}

fn section((device, family): (&str, &str), records: &[&Record], ages: &Ages) -> Section {
    let groups = groups(records);
    let mut section = Section::new(format!("{family} on {device}"));
    let stem = slug(&format!("{device}-{family}"));
    if let Some(summary) = (family == "plan")
        .then(|| plans::summary(records))
        .flatten()
    {
        section = section
            .note(summary)
            .figures(predictions(&stem, records).into_iter().collect());
    }
    let older = ages.older(records.iter().copied());
    if older > 0 {
        let text = "are of other code than today's: `TABLES.md` marks them.";
        section = section.note(format!("{older} of {} cases {text}", records.len()));
    }
    let over_sizes: Vec<&Group<'_>> = groups.iter().filter(|group| group.sizes() > 1).collect();
    let drawn = over_sizes.iter().take(FIGURES);
    let mut figures: Vec<Figure> = drawn.map(|group| times(&stem, group)).collect();
    if figures.is_empty() {
        figures.extend(bars(&stem, &groups));
    }
    if over_sizes.len() > FIGURES {
        section = section
            .note("Figures are of the works with the most sizes; all cases are in `TABLES.md`.");
    }
    section.figures(figures).table(table(&groups))
}

fn table(groups: &[Group<'_>]) -> Table {
    let heads = [
        "work",
        "over",
        "type",
        "cases",
        "of the limit, median",
        "fastest peer's time over ours, median",
        "failed",
    ];
    let mut table = Table::new("Works", heads);
    for group in groups {
        let [work, layout, dtype] = group.name;
        let optional = |value: Option<f64>, unit: Unit| match value {
            Some(value) => Value::Number(value, unit),
            None => "–".into(),
        };
        table.rows.push(vec![
            work.replace('_', " ").into(),
            layout.into(),
            dtype.into(),
            Value::Number(group.measured.len() as f64, Unit::Count),
            optional(group.share(), Unit::Share),
            optional(group.gain(), Unit::Plain),
            Value::Number(group.failed as f64, Unit::Count),
        ]);
    }
    table
}

/// Says first how we do beside peers and limits.
fn judge(report: &mut Report, records: &[Record]) {
    let measured = records.iter().filter_map(|record| match &record.outcome {
        Outcome::Measured(measured) => Some(measured),
        Outcome::Failed { .. } => None,
    });
    let gains: Vec<f64> = measured.clone().filter_map(gain).collect();
    let (cases, wins) = (
        gains.len(),
        gains.iter().filter(|gain| **gain >= 1.0).count(),
    );
    if let Some(middle) = median(gains) {
        let text = format!(
            "In {wins} of {cases} cases with a peer warpfuse is at least as fast as the fastest one; in the median the \
             peer takes {middle:.2} times as long. Variants that only show a step count too."
        );
        report.verdict(Mood::Plain, "Beside other libraries", text);
    }
    let shares = measured.filter_map(|one| one.fraction_of_ceiling);
    let shares: Vec<f64> = shares.collect();
    let cases = shares.len();
    if let Some(middle) = median(shares) {
        let text = format!(
            "In the median of {cases} cases {:.0} % of the rate of a plain read is reached.",
            100.0 * middle
        );
        report.verdict(Mood::Plain, "Beside the limit of the memory", text);
    }
    let failed = records.len()
        - records
            .iter()
            .filter(|one| matches!(one.outcome, Outcome::Measured(_)))
            .count();
    if failed > 0 {
        let text = format!(
            "{failed} of {} cases failed: the tables say why.",
            records.len()
        );
        report.verdict(Mood::Bad, "Failures", text);
    }
}

/// Says how many records measure code that has changed since.
fn judge_age(report: &mut Report, records: &[Record], ages: &Ages) {
    let older = ages.older(records);
    if older > 0 {
        let text = format!(
            "{older} of {} cases were measured before the last change of their code: `record.sh` measures anew.",
            records.len()
        );
        report.verdict(Mood::Plain, "Older than the code", text);
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::parse;
    use super::*;

    const RECORDS: &str = include_str!("golden/records.jsonl");

    #[test]
    fn every_family_has_a_section_with_a_figure_and_a_table() {
        let records = parse(RECORDS).expect("records");
        let report = page(&records, &Ages::default());
        let families: BTreeSet<_> = records
            .iter()
            .map(|one| (&one.device, &one.family))
            .collect();
        assert_eq!(report.sections.len(), families.len());
        for section in &report.sections {
            assert!(section.blocks.len() >= 2, "{}", section.title);
        }
        let names: Vec<&str> = report
            .figures()
            .map(|figure| figure.name.as_str())
            .collect();
        let distinct: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(names.len(), distinct.len(), "{names:?}");
    }

    #[test]
    fn the_page_of_a_small_file_is_the_one_that_was_looked_at() {
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/src/golden/page.html");
        let found = page(&parse(RECORDS).expect("records"), &Ages::default()).to_html();
        if std::env::var_os("WARPFUSE_BLESS").is_some() {
            std::fs::write(golden, &found).expect("the golden file can be written");
        }
        let expected = std::fs::read_to_string(golden).expect("the golden file");
        assert!(
            found == expected,
            "the page looks different: WARPFUSE_BLESS=1 takes it, look at it first"
        );
    }

    #[test]
    fn without_records_there_is_a_page() {
        let html = page(&[], &Ages::default()).to_html();
        assert!(html.contains("0 cases") && !html.contains("NaN"));
    }
}
