//! What was tuned as entries of a table ([`crate::plan::tuned`]).

use super::{Outcome, Point, Recording, Tuned};
use crate::plan::tuned::{Entry, Key, Launch};

/// Time of the planner's choice over that of another launch, at least, for the other to be worth an entry: medians of seven
/// samples differ by as much when the same launch is measured again.
const LEAST_GAIN: f64 = 1.01;

impl Tuned {
    /// The entry of a table for what was tuned with this key; none where the planner's own choice is the fastest, or as fast
    /// but for what measurements vary.
    pub fn entry(&self, key: Key) -> Option<Entry> {
        let planned = self.incumbent.outcome.median_us()?;
        entry(key, self.launch.clone()?, self.launch_us?, planned)
    }
}

impl Recording {
    /// As [`Tuned::entry`], for what a log has.
    pub fn entry(&self) -> Option<Entry> {
        let named = |(point, outcome): &(Point, Outcome)| {
            Some((point.launch.clone()?, outcome.median_us()?))
        };
        let (_, planned) = self.trials.first()?;
        let timed = self.trials.iter().filter_map(named);
        let (launch, us) = timed.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
        entry(self.key.clone(), launch, us, planned.median_us()?)
    }

    /// Whether a table can name any of the launches: logs of earlier versions did not say which they are.
    pub fn names_launches(&self) -> bool {
        self.trials.iter().any(|(point, _)| point.launch.is_some())
    }
}

fn entry(key: Key, launch: Launch, us: f64, planned_us: f64) -> Option<Entry> {
    let ns = |us: f64| (us * 1e3).round().max(1.0) as u64;
    (planned_us >= LEAST_GAIN * us).then(|| Entry {
        key,
        launch,
        ns: ns(us),
        planned_ns: ns(planned_us),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::{
        Log, SearchKind, Session,
        planted::{Planted, key},
    };

    #[test]
    fn what_was_tuned_and_what_its_log_has_are_the_same_entry() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log.jsonl");
        let mut log = Log::open(&path, &key()).expect("a log");
        let mut subject = Planted::new();
        let session = Session::new(&mut subject, Some(&mut log)).expect("sound");
        let tuned = session
            .run(
                SearchKind::Guided,
                1,
                crate::tune::Budget::UNLIMITED,
                |_| {},
            )
            .expect("tuned");
        let entry = tuned.entry(key()).expect("22 is faster than 40");
        let expected = Entry {
            key: key(),
            launch: Launch::Qr { values: vec![22] },
            ns: 1_000,
            planned_ns: 19_000,
        };
        assert_eq!(entry, expected);
        let recorded = Log::recorded(&path).expect("readable");
        assert_eq!(recorded[0].entry(), Some(expected));
    }

    #[test]
    fn a_choice_of_the_planner_that_is_as_fast_stays() {
        let launch = Launch::Qr { values: vec![1] };
        let of = |us, planned| entry(key(), launch.clone(), us, planned);
        assert_eq!(of(10.0, 10.05), None);
        assert_eq!(of(10.0, 10.0), None);
        assert!(of(10.0, 10.2).is_some());
        assert_eq!(of(f64::NAN, 10.0), None);
    }
}
