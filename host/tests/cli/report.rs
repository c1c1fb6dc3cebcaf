//! Report pages from outside: every number is that of `--json`, and nothing leaves the page.

use std::collections::HashSet;
use std::fs;

use serde_json::Value;

use crate::program::{Folder, diabetes, run};

const MOST_BYTES: usize = 400 * 1024;

/// All numbers of a JSON value, as it prints them.
fn numbers_in(value: &Value, all: &mut HashSet<String>) {
    match value {
        Value::Number(number) => {
            let text = number.to_string();
            all.insert(text.strip_suffix(".0").map_or(text.clone(), str::to_owned));
        }
        Value::Array(values) => values.iter().for_each(|value| numbers_in(value, all)),
        Value::Object(values) => values.values().for_each(|value| numbers_in(value, all)),
        _ => {}
    }
}

/// What `<data value="…">` holds.
fn numbers_of(page: &str) -> Vec<&str> {
    let parts = page.split("<data value=\"").skip(1);
    parts
        .map(|part| part.split('"').next().expect("a value"))
        .collect()
}

/// What the verdicts say, less the command, which is typed and not computed.
fn verdicts_of(page: &str) -> String {
    let (_, rest) = page
        .split_once("<ul class=\"verdicts\">")
        .expect("verdicts");
    let (list, _) = rest.split_once("</ul>").expect("an end");
    let list = list.split("How to repeat it").next().expect("verdicts");
    let mut text = String::new();
    let mut in_tag = false;
    for letter in list.chars() {
        match letter {
            '<' => in_tag = true,
            '>' => in_tag = false,
            letter if !in_tag => text.push(letter),
            _ => {}
        }
    }
    text
}

/// Numbers of a sentence, each with its decimals: `12.50` has two.
fn numbers_of_text(text: &str) -> Vec<(f64, i32)> {
    let text = text.replace('−', "-").replace('\u{202f}', "");
    // What follows on these is a name: nodes and columns are counted from 0.
    let named = ["column", "hub", "authority", "node"];
    let is_part = |c: char| c.is_ascii_alphanumeric() || "·.-⁻⁰¹²³⁴⁵⁶⁷⁸⁹".contains(c);
    let words = text.split(|c: char| !is_part(c));
    let words: Vec<&str> = words.map(|word| word.trim_matches('.')).collect();
    let number = |at: usize| {
        if at > 0 && named.iter().any(|name| words[at - 1].ends_with(name)) {
            return None;
        }
        let (mantissa, power) = words[at].split_once('e').unwrap_or((words[at], "0"));
        let power: i32 = power.parse().ok()?;
        let decimals = mantissa
            .split_once('.')
            .map_or(0, |(_, digits)| digits.len());
        Some((words[at].parse().ok()?, decimals as i32 - power))
    };
    (0..words.len()).filter_map(number).collect()
}

/// Whether a number of the verdicts is one of the JSON, rounded, or that in per cent or milliseconds.
fn is_rounded(shown: f64, decimals: i32, known: &[f64]) -> bool {
    let half = 0.501 * 10.0_f64.powi(-decimals);
    let near = |value: f64| (shown.abs() - value.abs()).abs() <= half;
    known
        .iter()
        .any(|one| [1.0, 100.0, 1000.0].iter().any(|scale| near(scale * one)))
}

/// A page needs nothing else, and has balanced tags.
fn check_page(page: &str) {
    assert!(page.len() <= MOST_BYTES, "{} bytes", page.len());
    let without_names = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for wrong in [
        "<script", "http:", "https:", "url(", "@import", "src=", "<link", ">NaN", ">inf",
    ] {
        assert!(!without_names.contains(wrong), "{wrong} in the page");
    }
    for tag in ["section", "svg", "table", "dl", "ul", "div"] {
        let (opened, closed) = (
            page.matches(&format!("<{tag}")).count(),
            page.matches(&format!("</{tag}>")).count(),
        );
        assert_eq!(opened, closed, "<{tag}>");
    }
    assert!(page.contains("Repeat it") && page.contains("<pre>warpfuse "));
}

/// Runs with `--json --report` and compares.
fn check_run(arguments: &[&str]) -> (Value, String) {
    let folder = Folder::new();
    let page = folder.path("report.html");
    let all = arguments
        .iter()
        .copied()
        .chain(["--json", "--report", &page]);
    let json = run(all).expect_code(0).json();
    let page = fs::read_to_string(&page).expect("the page");
    check_page(&page);
    let mut known = HashSet::new();
    numbers_in(&json, &mut known);
    let shown = numbers_of(&page);
    assert!(
        shown.len() > 10,
        "{arguments:?} shows {} numbers",
        shown.len()
    );
    for number in shown {
        assert!(
            known.contains(number),
            "{number} of the page of {arguments:?} is not in its JSON"
        );
    }
    let values: Vec<f64> = known
        .iter()
        .filter_map(|number| number.parse().ok())
        .collect();
    let verdicts = verdicts_of(&page);
    for (number, decimals) in numbers_of_text(&verdicts) {
        assert!(
            number == 95.0 || is_rounded(number, decimals, &values),
            "{number} of `{verdicts}` of {arguments:?} is not in its JSON"
        );
    }
    (json, page)
}

/// Two overlapping classes.
fn labelled(folder: &Folder) -> String {
    let row = |i: usize| {
        let (a, b) = ((i * 37 % 101) as f64 / 10.0, (i * 53 % 89) as f64 / 10.0);
        let class = u8::from(a + b + (i * 29 % 83) as f64 / 10.0 > 13.0);
        format!("{class} 1:{a} 2:{b} 3:1\n")
    };
    let text: String = (0..300).map(row).collect();
    folder.file("labelled.svm", &text)
}

#[test]
fn every_number_of_a_fit_is_in_its_json() {
    let (json, page) = check_run(&[
        "train",
        "linreg",
        &diabetes(),
        "--device",
        "cpu",
        "--solver",
        "newton-cg",
        "--no-intercept",
    ]);
    assert!(
        json["inference"]["columns"][0]["standard_error"]
            .as_f64()
            .is_some(),
        "{json}"
    );
    assert!(page.contains("Converged") && page.contains("Which features matter"));
    check_run(&[
        "train",
        "glm",
        &diabetes(),
        "--family",
        "poisson",
        "--device",
        "cpu",
        "--validation",
        &diabetes(),
    ]);
}

#[test]
fn every_number_of_a_classifier_is_in_its_json() {
    let folder = Folder::new();
    let (data, model) = (labelled(&folder), folder.path("model.safetensors"));
    let (json, page) = check_run(&[
        "train",
        "logreg",
        &data,
        "--penalty",
        "none",
        "--device",
        "cpu",
        "-o",
        &model,
    ]);
    for words in [
        "ROC curve",
        "Calibration",
        "Confusion",
        "std. error",
        "Columns without information",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert!(
        json["diagnostics"]["curves"][0]["roc"]
            .as_array()
            .is_some_and(|roc| roc.len() > 10)
    );
    check_run(&["evaluate", &model, &data, "--device", "cpu"]);
    check_run(&["predict", &model, &data, "--device", "cpu"]);
}

#[test]
fn every_number_of_a_comparison_is_in_its_json() {
    let (json, page) = check_run(&[
        "cv",
        "lasso",
        &diabetes(),
        "--path",
        "auto:8",
        "--device",
        "cpu",
    ]);
    let (best, chosen) = (&json["best"]["alpha"], &json["one_standard_error"]["alpha"]);
    assert!(chosen.as_f64() >= best.as_f64(), "{best} {chosen}");
    assert!(page.contains("Regularisation path"));
}

#[test]
fn every_number_of_spectral_methods_and_kernels_is_in_their_json() {
    check_run(&[
        "train",
        "svd",
        &diabetes(),
        "--n-components",
        "3",
        "--device",
        "cpu",
    ]);
    let folder = Folder::new();
    check_run(&["train", "hits", &labelled(&folder), "--device", "cpu"]);
    check_run(&["train", "kernel-ridge", &diabetes(), "--device", "cpu"]);
}

#[test]
fn figures_are_files_and_the_same_twice() {
    let folder = Folder::new();
    let draw = |name: &str| {
        let to = folder.path(name);
        run([
            "train",
            "ridge",
            &diabetes(),
            "--device",
            "cpu",
            "--figures",
            &to,
        ])
        .expect_code(0);
        let mut files: Vec<_> = fs::read_dir(&to)
            .expect("figures")
            .map(|file| file.expect("a file").path())
            .collect();
        files.sort();
        files
    };
    let (once, twice) = (draw("once"), draw("twice"));
    assert!(once.len() >= 6 && once.len() == twice.len(), "{once:?}");
    for (a, b) in once
        .iter()
        .zip(&twice)
        .filter(|(a, _)| !a.ends_with("phases.svg"))
    {
        let (a, b) = (
            fs::read(a).expect("a figure"),
            fs::read(b).expect("a figure"),
        );
        assert!(a == b && a.starts_with(b"<svg "));
    }
}

#[test]
fn bad_input_gives_a_page_that_says_so() {
    let folder = Folder::new();
    let (data, model, page) = (
        labelled(&folder),
        folder.path("m.safetensors"),
        folder.path("r.html"),
    );
    run(["train", "logreg", &data, "--device", "cpu", "-o", &model]).expect_code(0);
    let one_class = folder.file("one.svm", "1 1:2 2:3 3:1\n1 1:9 2:4 3:1\n");
    run([
        "evaluate", &model, &one_class, "--device", "cpu", "--report", &page,
    ])
    .expect_code(0);
    let text = fs::read_to_string(&page).expect("the page");
    check_page(&text);
    assert!(text.contains("One class only") && text.contains("not defined"));

    let one_row = folder.file("row.svm", "3 1:2\n");
    run([
        "train", "ridge", &one_row, "--device", "cpu", "--report", &page,
    ])
    .expect_code(0);
    let text = fs::read_to_string(&page).expect("the page");
    check_page(&text);
    assert!(text.contains("The score is not defined"), "{text}");

    let empty = folder.file("empty.svm", "");
    let validated = [
        "train",
        "logreg",
        &data,
        "--validation",
        &empty,
        "--device",
        "cpu",
    ];
    run(validated).expect_code(1);
    let without = run(validated.iter().chain(&["--report", page.as_str()])).expect_code(0);
    assert!(
        without.stderr.contains("no validation"),
        "{}",
        without.stderr
    );
    let text = fs::read_to_string(&page).expect("the page");
    check_page(&text);
    assert!(text.contains("Not validated") && text.contains("at least one sample"));

    let stopped = run([
        "train",
        "logreg",
        &data,
        "--device",
        "cpu",
        "--solver",
        "lbfgs",
        "--max-iter",
        "1",
        "--report",
        &page,
    ]);
    stopped.expect_code(0);
    let text = fs::read_to_string(&page).expect("the page");
    assert!(text.contains("Not converged") && text.contains("--max-iter"));
}

#[test]
fn names_from_files_cannot_change_the_page() {
    let folder = Folder::new();
    let svm: String = (0..40)
        .map(|i| format!("{} 1:{} 2:{}\n", i % 2, i * 7 % 11, i * 5 % 13))
        .collect();
    let data = folder.file("x.svm", &svm);
    let labels: String = (0..40)
        .map(|i| {
            if i % 2 == 0 {
                "<script>alert(1)</script>\n"
            } else {
                "b'&\n"
            }
        })
        .collect();
    let target = folder.file("labels.txt", &labels);
    let page = folder.path("r.html");
    run([
        "train", "logreg", &data, "--target", &target, "--device", "cpu", "--report", &page,
    ])
    .expect_code(0);
    check_page(&fs::read_to_string(&page).expect("the page"));
}

#[test]
fn a_report_that_cannot_be_is_refused_before_the_work() {
    let refused = run(["train", "ridge", &diabetes(), "--report", "-"]).expect_code(1);
    assert!(refused.stderr.contains("--report -"), "{}", refused.stderr);
    let refused = run([
        "plan", "--rows", "10", "--cols", "10", "--nnz", "10", "--report", "x.html",
    ])
    .expect_code(1);
    assert!(refused.stderr.contains("--measure"), "{}", refused.stderr);
    let refused = run(["cv", "ridge", &diabetes(), "--standard-errors"]).expect_code(1);
    assert!(
        refused.stderr.contains("--standard-errors"),
        "{}",
        refused.stderr
    );
}

/// The examples of `train --help` and `evaluate --help` that write pages.
#[test]
fn examples_in_help_run() {
    let folder = Folder::new();
    let labels = labelled(&folder);
    fs::copy(&labels, folder.path("data.svm")).expect("a copy");
    fs::copy(&labels, folder.path("test.svm")).expect("a copy");
    let mut count = 0;
    for command in ["train", "evaluate"] {
        let help = run([command, "--help"]).expect_code(0).stdout;
        let examples = help
            .lines()
            .filter_map(|line| line.strip_prefix("  warpfuse "));
        for example in examples.filter(|line| {
            line.contains("model.safetensors")
                || line.contains("--report")
                || line.contains("--figures")
        }) {
            if example.contains('|') {
                continue;
            }
            let placed = |word: &str| match word.contains('.') && !word.starts_with("0.")
                || word == "figures"
            {
                true => folder.path(word),
                false => word.to_owned(),
            };
            let words: Vec<String> = example.split_whitespace().map(placed).collect();
            run(words.iter().map(String::as_str)).expect_code(0);
            count += 1;
        }
    }
    assert!(count >= 5, "{count}");
}
