//! `tune replay`.

use anyhow::Result;
use serde::Serialize;

use crate::cli::args::TuneReplayArgs;
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::report::plain_table;
use crate::tune::{Log, Replayed, SearchKind, Subject};

/// One search over the trials of one problem.
#[derive(Serialize)]
struct Replay {
    class: String,
    points: usize,
    search: SearchKind,
    /// How much longer than the fastest of all the best takes after a twentieth of the points.
    excess_after_5_percent: f64,
    /// Trials until it takes at most 3 % longer.
    trials_within_3_percent: usize,
}

/// Prints how each search would have gone.
pub(super) fn replay(args: &TuneReplayArgs) -> Result<Exit> {
    let mut all = Vec::new();
    for recording in Log::recorded(&args.log)? {
        let subject = Replayed::of(recording)?;
        for search in SearchKind::ALL {
            let course = subject.course(search, args.seed)?;
            all.push(Replay {
                class: subject.class(),
                points: subject.points().len(),
                search,
                excess_after_5_percent: course.excess_after(0.05),
                trials_within_3_percent: course.trials_within(0.03),
            });
        }
    }
    if args.json {
        output::print_json(&all)?;
        return Ok(Exit::Success);
    }
    let mut table = plain_table();
    table.set_header([
        "problem",
        "launches",
        "search",
        "above the fastest after 5 %",
        "trials to within 3 %",
    ]);
    for one in &all {
        table.add_row([
            one.class.clone(),
            one.points.to_string(),
            one.search.name().to_owned(),
            format!("{:.1} %", 100.0 * one.excess_after_5_percent),
            one.trials_within_3_percent.to_string(),
        ]);
    }
    output::print(format!("{table}\n"))?;
    Ok(Exit::Success)
}
