//! Where the time of all trials goes, by group of tests and device: what to look at when the list becomes slow.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How many rows are printed.
const ROWS: usize = 12;

/// Collects the time of trials from all threads.
#[derive(Debug, Default)]
pub struct Times(Mutex<BTreeMap<String, Spent>>);

/// What the trials of one group took on one device.
#[derive(Debug, Default, Clone)]
struct Spent {
    total: Duration,
    trials: usize,
    longest: Duration,
    /// The trial that took longest.
    name: String,
}

impl Times {
    /// Nothing yet.
    pub const fn new() -> Times {
        Times(Mutex::new(BTreeMap::new()))
    }

    /// Adds a trial, whose name begins with its group and a slash, and ends with a slash and its device.
    pub fn record(&self, trial: &str, took: Duration) {
        let group = trial.split('/').next().unwrap_or(trial);
        let device = trial.rsplit('/').next().unwrap_or_default();
        // The map is changed by one call at a time, so a panic elsewhere leaves it whole.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let spent = all.entry(format!("{group} on {device}")).or_default();
        spent.total += took;
        spent.trials += 1;
        if took >= spent.longest {
            spent.longest = took;
            spent.name = trial.to_owned();
        }
    }
}

/// A table of the groups that took longest. Seconds are those of trials side by side, so their sum exceeds what has passed.
impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut groups: Vec<(&String, &Spent)> = all.iter().collect();
        groups.sort_by_key(|(_, spent)| std::cmp::Reverse(spent.total));
        let sum: Duration = groups.iter().map(|(_, spent)| spent.total).sum();
        writeln!(
            f,
            "seconds of trials: {:.1}; most of them in (seconds, trials, the longest)",
            sum.as_secs_f64()
        )?;
        for (group, spent) in groups.into_iter().take(ROWS) {
            writeln!(
                f,
                "  {group:<36} {:8.2} {:6}  {:.2} {}",
                spent.total.as_secs_f64(),
                spent.trials,
                spent.longest.as_secs_f64(),
                spent.name
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_group_comes_first_with_its_longest_trial() {
        let times = Times::new();
        for (trial, millis) in [
            ("qr/a/cpu", 20),
            ("fused/a/cpu", 10),
            ("fused/b/cpu", 30),
            ("fused/b/emulator", 5),
        ] {
            times.record(trial, Duration::from_millis(millis));
        }
        let text = times.to_string();
        let rows: Vec<&str> = text.lines().collect();
        assert!(rows[0].contains("0.1;"), "{text}");
        assert!(rows[1].contains("fused on cpu") && rows[1].ends_with("0.03 fused/b/cpu"));
        assert!(rows[2].contains("qr on cpu") && rows[3].contains("fused on emulator"));
    }
}
