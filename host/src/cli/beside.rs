//! Options that do nothing beside others, or need others, as far as what was typed decides it.
//!
//! One list: an option that is ignored because of another one has a row here, and is refused by name before anything is read.

use clap::ArgMatches;
use clap::parser::ValueSource;

/// An option that does nothing where another one is typed.
struct Idle {
    /// As it is typed.
    option: &'static str,
    /// The other option.
    beside: &'static str,
    /// Its value that is meant; any if empty.
    value: &'static str,
    /// Why it does nothing.
    why: &'static str,
}

const PATH: &str = "which lists the values to compare";
const IDLE: &[Idle] = &[
    idle("--alpha", ("--path", ""), PATH),
    idle("--c", ("--path", ""), PATH),
    idle("--l2", ("--path", ""), PATH),
    idle(
        "--l1-ratio",
        ("--l1-ratios", ""),
        "which lists the shares to compare",
    ),
    idle("--epsilon", ("--epsilons", ""), PATH),
    idle(
        "--c",
        ("--penalty", "none"),
        "there is no penalty whose strength it would be",
    ),
    idle(
        "--path",
        ("--penalty", "none"),
        "there is no penalty whose strengths could be compared",
    ),
    idle(
        "--penalty-factors",
        ("--penalty", "none"),
        "there is no penalty to multiply",
    ),
    idle(
        "--intercept-scaling",
        ("--no-intercept", ""),
        "there is no intercept to scale",
    ),
];

const fn idle(
    option: &'static str,
    (beside, value): (&'static str, &'static str),
    why: &'static str,
) -> Idle {
    Idle {
        option,
        beside,
        value,
        why,
    }
}

/// Refuses options that would do nothing beside the others, and asks for those that others need.
///
/// # Errors
/// Which one, and why.
pub(super) fn check(matches: &ArgMatches) -> Result<(), String> {
    let mut matches = matches;
    while let Some((_, inner)) = matches.subcommand() {
        matches = inner;
    }
    for rule in IDLE {
        let is_meant =
            is_typed(matches, rule.beside) && has_value(matches, rule.beside, rule.value);
        if is_meant && is_typed(matches, rule.option) {
            let Idle {
                option,
                beside,
                value,
                why,
            } = rule;
            let space = if value.is_empty() { "" } else { " " };
            return Err(format!(
                "{option} does nothing beside {beside}{space}{value}: {why}; leave {option} out"
            ));
        }
    }
    let has_share = ["--l1-ratio", "--l1-ratios"]
        .iter()
        .any(|option| is_typed(matches, option));
    if has_value(matches, "--penalty", "elasticnet") && !has_share {
        let several = match defines(matches, "--l1-ratios") {
            true => ", or --l1-ratios RHO,RHO,... to compare",
            false => "",
        };
        return Err(format!(
            "--penalty elasticnet: expected --l1-ratio RHO, the share of ‖w‖₁ from 0 to 1{several}, found none"
        ));
    }
    Ok(())
}

/// What clap calls an option.
fn id(option: &str) -> String {
    option.trim_start_matches('-').replace('-', "_")
}

fn defines(matches: &ArgMatches, option: &str) -> bool {
    matches.try_contains_id(&id(option)).is_ok()
}

fn is_typed(matches: &ArgMatches, option: &str) -> bool {
    defines(matches, option) && matches.value_source(&id(option)) == Some(ValueSource::CommandLine)
}

fn has_value(matches: &ArgMatches, option: &str, value: &str) -> bool {
    if value.is_empty() {
        return true;
    }
    let typed = matches.try_get_raw(&id(option));
    typed
        .ok()
        .flatten()
        .is_some_and(|mut values| values.any(|typed| typed == value))
}
