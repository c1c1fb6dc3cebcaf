//! Several GPUs of one machine: `scaling.jsonl`, as the bundle's `scaling.sh` and the program `scaling` write it.

mod figures;
mod lines;
mod tables;

use std::collections::BTreeSet;

use warpfuse_figures::page::Section;

pub use lines::Scaling;

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    Fused,
    Newton,
    Cg,
    Fit,
}

impl Work {
    /// In the order of figures.
    pub const ALL: [Work; 4] = [Work::Fused, Work::Newton, Work::Cg, Work::Fit];

    /// As figures have it.
    pub fn name(self) -> &'static str {
        match self {
            Work::Fused => "fused product",
            Work::Newton => "Newton step",
            Work::Cg => "10 iterations of CG",
            Work::Fit => "whole fit",
        }
    }

    /// As lines have it.
    fn key(self) -> &'static str {
        match self {
            Work::Fused => "fused",
            Work::Newton => "newton",
            Work::Cg => "cg",
            Work::Fit => "fit",
        }
    }
}

/// How rows grow with GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    Strong,
    Weak,
}

/// A time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// Of the data, with how products add where that is not the usual way.
    pub shape: String,
    pub work: Work,
    pub way: Way,
    pub gpus: u64,
}

/// A sum over the GPUs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sum {
    pub bytes: u64,
    pub gpus: u64,
    pub dtype: String,
    /// Whether it is one launch of ours.
    pub one_launch: bool,
}

impl Scaling {
    /// One GPU's time over that of this case: how many times as fast, or what each of more still does of one's work.
    pub fn gain(&self, case: &Case) -> Option<f64> {
        // One alone is the same both ways.
        let one = Case {
            way: Way::Strong,
            gpus: 1,
            ..case.clone()
        };
        Some(self.times.get(&one)? / self.times.get(case)?)
    }

    /// Shapes of a work, and the numbers of GPUs beyond one.
    pub fn measured(&self, work: Work, way: Way) -> (BTreeSet<&str>, BTreeSet<u64>) {
        let cases = self.times.keys();
        let cases = cases.filter(|case| {
            case.work == work && case.way == way && case.gpus > 1 && self.gain(case).is_some()
        });
        let cases: Vec<&Case> = cases.collect();
        let shapes = cases.iter().map(|case| case.shape.as_str());
        (
            shapes.collect(),
            cases.iter().map(|case| case.gpus).collect(),
        )
    }

    /// Its part of the page.
    pub fn section(&self) -> Section {
        let mut section = Section::new(self.title());
        if let Some(note) = self.forecast() {
            section = section.note(note);
        }
        section.figures(self.figures())
    }

    /// Such as `several GPUs, h100-x2 (NVIDIA H100 80GB HBM3)`.
    pub fn title(&self) -> String {
        format!("several GPUs, {} ({})", self.folder, self.device)
    }

    /// How good the scaling model was, in a sentence or two.
    pub fn forecast(&self) -> Option<String> {
        let of = |is_fit: bool| {
            let cases = self.ratios.iter();
            let cases = cases.filter(|(case, _)| (case.work == Work::Fit) == is_fit);
            let errors: Vec<f64> = cases.map(|(_, ratio)| (ratio - 1.0).abs()).collect();
            let within = errors.iter().filter(|error| **error <= ALLOWED).count();
            let worst = errors.iter().copied().max_by(f64::total_cmp)?;
            Some(format!(
                "{within} of {} times, the worst {:.0} % off",
                errors.len(),
                100.0 * worst
            ))
        };
        let products = of(false)?;
        let fits =
            of(true).map(|fits| format!("; of whole fits, part of which is the host's, {fits}"));
        Some(format!(
            "Times of more than two GPUs within 12 % of what the scaling model makes of one and two in the same run: of products, \
             Newton steps and iterations of conjugate gradients {products}{}.",
            fits.unwrap_or_default()
        ))
    }
}

/// The model's error that the project allows.
const ALLOWED: f64 = 0.12;

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = concat!(
        r#"{"what":"provenance","device":"NVIDIA H100, 580.1","gpus":"1,2,4"}"#,
        "\n",
        r#"{"what":"sum","type":"f32","bytes":4096,"members":2,"engine":"NCCL 2.28.9, small sums over peers' memory","us":4.0}"#,
        "\n",
        r#"{"what":"sum","type":"f32","bytes":4096,"members":2,"engine":"NCCL 2.28.9","us":20.0}"#,
        "\n",
        r#"{"what":"product","shape":"higgs","members":1,"scaling":"strong","summation":"free","fused_us":400.0,"newton_us":4000.0}"#,
        "\n",
        r#"{"what":"product","shape":"higgs","members":4,"scaling":"strong","summation":"free","fused_us":90.0,"newton_us":1000.0,"#,
        r#""model":{"fused_us":100.0,"fused_ratio":0.9}}"#,
        "\n",
        r#"{"what":"product","shape":"higgs","members":4,"scaling":"strong","summation":"free","fused_us":100.0,"newton_us":1250.0,"#,
        r#""model":{"fused_us":100.0,"fused_ratio":1.0,"newton_us":1000.0,"newton_ratio":1.25}}"#,
        "\n",
        r#"{"what":"product","shape":"higgs","members":4,"scaling":"weak","summation":"free","fused_us":412.0,"newton_us":4100.0}"#,
        "\n",
        r#"{"what":"fit","shape":"higgs","members":1,"seconds":0.2}"#,
        "\n",
        r#"{"what":"fit","shape":"higgs","members":2,"seconds":0.25}"#,
        "\n",
        r#"{"what":"cross-validation","shape":"rcv1","members":2,"summation":"free","seconds":1.5,"fits":20,"#,
        r#""largest_difference_to_one":0.0,"same":true}"#,
        "\n",
        r#"{"what":"criteo","rows":1000000000,"cols":1000000,"per_row":39,"members":4,"file_bytes":324000000000,"#,
        r#""write_seconds":20.0,"seconds_from_cache_to_model":40.0}"#,
        "\n",
        r#"{"what":"step","name":"cv","exit":0,"seconds":3}"#,
    );

    fn found() -> Scaling {
        Scaling::parse("h100-x4", LINES).expect("lines")
    }

    fn case(work: Work, way: Way, gpus: u64) -> Case {
        Case {
            shape: "higgs".to_owned(),
            work,
            way,
            gpus,
        }
    }

    #[test]
    fn the_newest_time_of_a_case_counts_and_gains_are_of_one() {
        let found = found();
        assert_eq!(
            found.gain(&case(Work::Fused, Way::Strong, 4)),
            Some(4.0),
            "400 over the later 100"
        );
        let weak = found.gain(&case(Work::Fused, Way::Weak, 4));
        assert!(weak.is_some_and(|weak| (weak - 400.0 / 412.0).abs() < 1e-12));
        assert_eq!(
            found.gain(&case(Work::Fit, Way::Strong, 2)),
            Some(0.8),
            "fits are strong unless they say"
        );
        assert_eq!(found.gain(&case(Work::Cg, Way::Strong, 4)), None);
    }

    #[test]
    fn tables_show_every_kind_of_line() {
        let text = found().to_markdown();
        for expected in [
            "### several GPUs, h100-x4 (NVIDIA H100)",
            "| higgs | fused product | 400 |  | 100 (4.00, model +0 %) |",
            "| higgs | Newton step | 4,000 |  | 1,250 (3.20, model +25 %) |",
            "| higgs | fused product | 400 | 412 (0.971) |",
            "| 4,096 | f32 | 4.0 | 20.0 |",
            "| rcv1 | 20 | free | 2 | 1.50 | yes |",
            "1,000,000,000 × 1,000,000",
            "gradients 1 of 2 times, the worst 25 % off.",
        ] {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
    }

    #[test]
    fn figures_have_a_bar_for_each_number_of_gpus() {
        let [strong, weak] = &found().sheets()[..] else {
            panic!("two ways");
        };
        assert_eq!(strong.0, "h100-x4-strong.svg");
        assert!(strong.1.contains("fused product") && strong.1.contains("whole fit"));
        assert!(weak.1.contains("fused product") && !weak.1.contains("whole fit"));
        assert!(!strong.1.contains("NaN") && !strong.1.contains("inf"));
    }

    #[test]
    fn a_line_that_is_no_object_is_named() {
        let error = Scaling::parse("here", "{\"what\":\"step\"}\nnonsense").expect_err("no JSON");
        assert!(error.to_string().contains("line 2"), "{error}");
    }
}
