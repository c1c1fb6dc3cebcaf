//! Figures that were looked at. `WARPFUSE_BLESS=1 cargo test -p warpfuse-figures` takes new ones.

use std::fs;
use std::path::Path;

use warpfuse_figures::{Axis, Cell, Figure, Interval, Shape, Sheet, Tone};

fn check(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.svg"));
    if std::env::var_os("WARPFUSE_BLESS").is_some() {
        fs::write(&path, found).expect("the golden file can be written");
    }
    let expected = fs::read_to_string(&path).expect("the golden file");
    assert_eq!(found, expected, "{name} looks different");
    assert_eq!(found.matches('<').count(), found.matches('>').count());
    for wrong in ["NaN", "inf", "http://", "https://", "<script"] {
        let allowed = found.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        assert!(!allowed.contains(wrong), "{wrong} in {name}");
    }
}

fn interval(at: f64, low: f64, middle: f64, high: f64) -> Interval {
    Interval {
        at,
        low,
        middle,
        high,
    }
}

#[test]
fn lines_steps_bands_and_rules() {
    let course: Vec<(f64, f64)> = (0..12)
        .map(|i| (f64::from(i), 0.5_f64.powi(3 * i)))
        .collect();
    let band =
        (0..12).map(|i| interval(f64::from(i), 0.4_f64.powi(3 * i), 0.0, 0.6_f64.powi(3 * i)));
    let figure = Figure::new(
        "course",
        "Gradient norm by iteration, training and validation",
    )
    .summary("The gradient falls by ten decades in eleven iterations.")
    .x(Axis::linear("iteration"))
    .y(Axis::log("gradient norm over that of the start"))
    .mark("spread", Tone::First, Shape::Band(band.collect()))
    .line("training", Tone::First, course.clone())
    .steps("validation <other>", Tone::Second, course)
    .mark("tolerance", Tone::Reference, Shape::Level(1e-6))
    .mark("chosen", Tone::Fourth, Shape::Rule(7.0));
    check("course", &figure.to_svg());
}

#[test]
fn bars_and_errors_beside_names() {
    let names = [
        "age",
        "a name that is much too long to be written beside an axis",
        "bmi & co",
    ];
    let figure = Figure::new("coefficients", "Largest coefficients")
        .x(Axis::linear("coefficient"))
        .y(Axis::categories("", names))
        .mark(
            "95 % interval",
            Tone::First,
            Shape::Errors(vec![
                interval(0.0, -250.0, -120.0, 10.0),
                interval(1.0, 300.0, 500.0, 720.0),
                interval(2.0, f64::NAN, 100.0, f64::NAN),
            ]),
        );
    check("coefficients", &figure.to_svg());
}

#[test]
fn cells_with_names_on_both_sides() {
    let count = [[50.0, 3.0], [0.0, 12_345.0]];
    let cell = |at: usize| Cell {
        x: ((at % 2) as f64 - 0.5, (at % 2) as f64 + 0.5),
        y: ((at / 2) as f64 - 0.5, (at / 2) as f64 + 0.5),
        value: count[at / 2][at % 2],
        label: count[at / 2][at % 2].to_string(),
    };
    let figure = Figure::new("confusion", "Confusion")
        .x(Axis::categories("predicted", ["no", "yes"]))
        .y(Axis::categories("actual", ["no", "yes"]))
        .mark("", Tone::First, Shape::Cells((0..4).map(cell).collect()));
    check("confusion", &figure.to_svg());
}

#[test]
fn a_sheet_of_bars() {
    let left = Figure::new("a", "Row lengths")
        .x(Axis::categories(
            "entries of a row",
            ["0", "1", "2–3", "4–7", "8–15"],
        ))
        .y(Axis::linear("rows"))
        .bars("", Tone::First, &[0.0, 12e3, 55e3, 31e3, 200.0]);
    let right = Figure::new("b", "Residuals")
        .x(Axis::linear("residual"))
        .y(Axis::linear("share"))
        .points(
            "",
            Tone::Third,
            vec![(1e-6, 0.1), (2e-6, -0.2), (3e-6, 0.3)],
        );
    check(
        "sheet",
        &Sheet {
            title: "Two figures".into(),
            figures: vec![left, right],
        }
        .to_svg(),
    );
}

#[test]
fn what_has_no_finite_value_says_so() {
    let figure = Figure::new("nan", "Nothing").y(Axis::log("loss")).line(
        "loss",
        Tone::First,
        vec![(0.0, f64::NAN), (1.0, f64::INFINITY)],
    );
    let svg = figure.to_svg();
    assert!(svg.contains("no finite values to show"));
    check("nothing", &svg);
}

/// Whatever the numbers, the places are finite.
#[test]
fn awkward_numbers_do_not_break_figures() {
    let awkward = [
        0.0,
        -0.0,
        1e-310,
        1e308,
        -1e308,
        f64::NAN,
        f64::INFINITY,
        5.0,
        5.0,
    ];
    let points: Vec<(f64, f64)> = awkward
        .iter()
        .flat_map(|x| awkward.map(|y| (*x, y)))
        .collect();
    for y in [
        Axis::linear("y"),
        Axis::log("y"),
        Axis::linear("y").range(3.0, 3.0),
    ] {
        let figure = Figure::new("awkward", "")
            .y(y)
            .line("a", Tone::First, points.clone())
            .steps("b", Tone::Second, points.clone())
            .points("c", Tone::Third, points.clone())
            .bars("d", Tone::Fourth, &awkward);
        let svg = figure.to_svg();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
