//! Searches over the launches of the fused pattern that were recorded on an H200.

use serde::Deserialize;

use super::{Outcome, Point, Replayed, SearchKind};

/// Each line of the records of plans may have problems with all launches that were timed for them.
#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    launches: Vec<Launch>,
}

#[derive(Deserialize)]
struct Launch {
    variant: String,
    predicted_us: f64,
    measured_us: f64,
}

const RECORDS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../benches/results/h200/plan.jsonl"
);

/// Fewer launches make no search.
const FEWEST: usize = 20;

/// The numbers in a launch's name, as powers of two: vector size, packs, rows, block size, grid.
fn coordinates(variant: &str) -> Vec<f64> {
    let numbers = variant
        .split(|c: char| !c.is_ascii_digit())
        .filter(|n| !n.is_empty());
    let power = |number: &str| number.parse::<f64>().map_or(0.0, |n| n.max(1.0).log2());
    numbers.map(power).collect()
}

fn problems() -> Vec<Replayed> {
    let text = std::fs::read_to_string(RECORDS).expect("the records lie beside this package");
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Line>(line).expect("a record"));
    let choices = lines.flat_map(|line| line.choices);
    let enough = choices.filter(|choice| choice.launches.len() >= FEWEST);
    let replayed = |choice: Choice| {
        let mut launches = choice.launches;
        // The planner's choice is the fastest by prediction.
        launches.sort_by(|a, b| a.predicted_us.total_cmp(&b.predicted_us));
        let trial = |launch: Launch| {
            let coordinates = coordinates(&launch.variant);
            let point = Point::new(launch.variant, coordinates).predicted(launch.predicted_us);
            let median_us = launch.measured_us;
            (point, Outcome::Timed { median_us })
        };
        Replayed::new("fused", launches.into_iter().map(trial)).expect("timed launches")
    };
    enough.map(replayed).collect()
}

/// The mean over problems of trials until within 3 %, as a share of all launches.
fn mean_share(problems: &[Replayed], kind: SearchKind) -> f64 {
    let share = |problem: &Replayed| {
        let course = problem.course(kind, 11).expect("timed launches");
        course.trials_within(0.03) as f64 / course.best_us.len() as f64
    };
    problems.iter().map(share).sum::<f64>() / problems.len() as f64
}

#[test]
fn nine_of_ten_recorded_problems_are_within_5_percent_after_5_percent() {
    let problems = problems();
    assert!(problems.len() > 300, "{} problems", problems.len());
    let near = |problem: &&Replayed| {
        let course = problem
            .course(SearchKind::Guided, 0)
            .expect("timed launches");
        course.excess_after(0.05) <= 0.05
    };
    let near = problems.iter().filter(near).count();
    assert!(
        10 * near >= 9 * problems.len(),
        "{near} of {}",
        problems.len()
    );
}

#[test]
fn a_guided_search_needs_fewer_trials_than_a_random_one() {
    let problems = problems();
    let guided = mean_share(&problems, SearchKind::Guided);
    let random = mean_share(&problems, SearchKind::Random);
    assert!(
        guided < 0.7 * random,
        "guided {guided:.3}, random {random:.3}"
    );
}

#[test]
fn an_evolutionary_search_needs_fewer_trials_than_a_random_one() {
    let problems = problems();
    let evolutionary = mean_share(&problems, SearchKind::Evolutionary);
    let random = mean_share(&problems, SearchKind::Random);
    assert!(
        evolutionary < 0.7 * random,
        "evolutionary {evolutionary:.3}, random {random:.3}"
    );
    let near = |problem: &&Replayed| {
        let course = problem.course(SearchKind::Evolutionary, 0);
        course.expect("timed launches").excess_after(0.05) <= 0.05
    };
    let near = problems.iter().filter(near).count();
    assert!(
        10 * near >= 9 * problems.len(),
        "{near} of {}",
        problems.len()
    );
}

#[test]
fn no_search_loses_to_the_planner() {
    for problem in problems().iter().take(40) {
        for kind in SearchKind::ALL {
            let course = problem.course(kind, 2).expect("timed launches");
            let last = course.best_us.last().copied().unwrap_or(f64::NAN);
            assert_eq!(last, problem.best_us());
            assert!(course.best_us.windows(2).all(|pair| pair[1] <= pair[0]));
        }
    }
}
