//! The page of `tune`: how a search went.

use warpfuse_figures::{Axis, Figure, Tone};

use super::number::Unit;
use super::page::{Mood, Report, Section, Table, Value};
use crate::tune::{Outcome, Tuned};

/// Launches of the table.
const LISTED: usize = 20;

/// What the page is made of.
#[derive(Debug, Clone, Copy)]
pub struct TuningPage<'a> {
    /// What came of it.
    pub tuned: &'a Tuned,
    /// The device's name.
    pub device: &'a str,
    /// The command that makes the page again.
    pub command: &'a str,
}

impl TuningPage<'_> {
    /// The page.
    pub fn report(&self) -> Report {
        let tuned = self.tuned;
        let mut report = Report::new(format!("Tuning of {}", tuned.class), self.command);
        report.subtitle = format!(
            "{} of {} launches tried on {}",
            tuned.steps.len(),
            tuned.points,
            self.device
        );
        let gain = tuned.gain();
        let (mood, title) = match gain {
            gain if gain <= 1.03 => (Mood::Good, "The planner chose well"),
            _ => (Mood::Look, "A faster launch was found"),
        };
        let text = format!(
            "{}: {:.1} µs. The planner's {}: {:.1} µs, {gain:.2} × as long.",
            tuned.best.point,
            us(&tuned.best.outcome),
            tuned.incumbent.point,
            us(&tuned.incumbent.outcome),
        );
        report.verdict(mood, title, text);
        let refused = tuned
            .steps
            .iter()
            .filter(|step| step.trial.outcome.median_us().is_none());
        let refused = refused.count();
        if refused > 0 {
            let text = format!(
                "{refused} launches gave a wrong result or did not run; none of them was taken."
            );
            report.verdict(Mood::Look, "Launches were refused", text);
        }
        let section = Section::new("Search")
            .figures(vec![self.course()])
            .table(self.fastest());
        report.sections.push(section);
        report
    }

    fn course(&self) -> Figure {
        let steps = self.tuned.steps.iter().enumerate();
        let at = |i: usize| (i + 1) as f64;
        let timed: Vec<(f64, f64)> = steps
            .clone()
            .filter_map(|(i, step)| Some((at(i), step.trial.outcome.median_us()?)))
            .collect();
        let best: Vec<(f64, f64)> = steps
            .filter(|(_, step)| step.best_us.is_finite())
            .map(|(i, step)| (at(i), step.best_us))
            .collect();
        Figure::new("search", "Launches in the order of the search")
            .summary("Points: the median time of each launch. Line: the fastest so far.")
            .x(Axis::linear("trial"))
            .y(Axis::log("µs"))
            .points("launch", Tone::Second, timed)
            .line("fastest so far", Tone::First, best)
    }

    fn fastest(&self) -> Table {
        let mut timed: Vec<(&str, f64)> = self
            .tuned
            .steps
            .iter()
            .filter_map(|step| Some((step.trial.point.as_str(), step.trial.outcome.median_us()?)))
            .collect();
        timed.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut table = Table::new("Fastest launches", ["launch", "µs"]);
        for (point, us) in timed.into_iter().take(LISTED) {
            table
                .rows
                .push(vec![point.into(), Value::Number(us, Unit::Microseconds)]);
        }
        table
    }
}

fn us(outcome: &Outcome) -> f64 {
    outcome.median_us().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::{Step, Trial};

    fn step(point: &str, outcome: Outcome, best_us: f64) -> Step {
        let point = point.to_owned();
        Step {
            trial: Trial { point, outcome },
            remembered: false,
            best_us,
        }
    }

    #[test]
    fn a_page_names_the_fastest_and_counts_what_was_refused() {
        let timed = |median_us| Outcome::Timed { median_us };
        let wrong = Outcome::Wrong {
            found: "1 instead of 2".into(),
        };
        let steps = vec![
            step("planned", timed(9.0), 9.0),
            step("bad", wrong, 9.0),
            step("other", timed(6.0), 6.0),
        ];
        let tuned = Tuned {
            launch: None,
            launch_us: None,
            class: "qr f32 3 of 4x4".into(),
            points: 7,
            incumbent: steps[0].trial.clone(),
            best: steps[2].trial.clone(),
            steps,
        };
        assert_eq!(tuned.gain(), 1.5);
        let page = TuningPage {
            tuned: &tuned,
            device: "a GPU",
            command: "warpfuse tune qr",
        };
        let html = page.report().to_html();
        for text in [
            "A faster launch was found",
            "1 launches gave a wrong result",
            "other",
            "3 of 7",
        ] {
            assert!(html.contains(text), "{text}");
        }
        assert!(!html.contains("NaN"));
    }
}
