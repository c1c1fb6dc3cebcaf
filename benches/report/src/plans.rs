//! How good recorded plans are, in two sentences.

use super::record::{Measured, Outcome, Record};

/// Losses that are distinguished, per cent of the fastest launch.
const LOSSES: [f64; 2] = [5.0, 20.0];

/// The work of choosing itself; any other is a product.
const CHOOSE: &str = "choose";

/// What the records of the family `plan` come to; `None` where there are none.
///
/// Choosing is summed up by its slowest case, choices by how many lose little, and predictions by the median of how
/// far they are from what was measured.
pub fn summary(records: &[&Record]) -> Option<String> {
    let sentences = [
        slowest(measured(records, |work| work == CHOOSE)),
        choices(measured(records, |work| work != CHOOSE)),
    ];
    let text = sentences
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ");
    (!text.is_empty()).then_some(text)
}

fn measured<'a>(records: &[&'a Record], wanted: impl Fn(&str) -> bool) -> Vec<&'a Measured> {
    let of_work = records.iter().filter(|record| wanted(&record.case.work));
    let measured = of_work.filter_map(|record| match &record.outcome {
        Outcome::Measured(measured) => Some(measured),
        Outcome::Failed { .. } => None,
    });
    measured.collect()
}

fn slowest(cases: Vec<&Measured>) -> Option<String> {
    let slowest = cases.iter().map(|case| case.median_us).fold(0.0, f64::max);
    let count = cases.len();
    (count > 0).then(|| format!("Choosing took at most {slowest:.1} µs in {count} cases."))
}

fn choices(cases: Vec<&Measured>) -> Option<String> {
    let detail = |name: &'static str| {
        let of_case = move |case: &&Measured| case.details.get(name).copied();
        cases.iter().filter_map(of_case)
    };
    let losses: Vec<f64> = detail("above_best_percent").collect();
    let [little, much] = LOSSES.map(|most| losses.iter().filter(|&&loss| loss <= most).count());
    let off = cases.iter().filter_map(|case| {
        let predicted = case.details.get("predicted_us")?;
        Some(100.0 * (predicted / case.median_us - 1.0).abs())
    });
    let off = median(off.collect())?;
    let count = losses.len();
    Some(format!(
        "The launch that was chosen is within {} % of the fastest that was run in {little} of {count} cases and within \
         {} % in {much}; in the median its time is {off:.0} % off the prediction.",
        LOSSES[0], LOSSES[1]
    ))
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::super::record::parse;
    use super::*;

    fn record(work: &str, us: f64, details: &str) -> String {
        format!(
            r#"{{"family":"plan","case":{{"work":"{work}","layout":"dense","rows":9,"cols":{us}}},"dtype":"f32","#
        ) + &format!(
            r#""variant":"k","median_us":{us},"bytes":8,"details":{{{details}}},"device":"G"}}"#
        )
    }

    #[test]
    fn losses_and_predictions_are_counted() {
        let lines = [
            record("choose", 20.0, ""),
            record("choose", 30.0, ""),
            record(
                "fused",
                100.0,
                r#""above_best_percent":0.0,"predicted_us":110.0"#,
            ),
            record(
                "fused",
                200.0,
                r#""above_best_percent":19.0,"predicted_us":100.0"#,
            ),
            record(
                "fused",
                300.0,
                r#""above_best_percent":21.0,"predicted_us":306.0"#,
            ),
        ];
        let records = parse(&lines.join("\n")).expect("records");
        let text = summary(&records.iter().collect::<Vec<_>>()).expect("a summary");
        assert!(text.contains("at most 30.0 µs in 2 cases"), "{text}");
        assert!(
            text.contains("within 5 % of the fastest that was run in 1 of 3"),
            "{text}"
        );
        assert!(text.contains("within 20 % in 2"), "{text}");
        assert!(text.contains("10 % off the prediction"), "{text}");
    }

    #[test]
    fn other_families_have_no_summary() {
        assert_eq!(summary(&[]), None);
    }
}
