//! Launches that a tuner has measured, as a table that planners look into before they choose.
//!
//! | file | what |
//! |---|---|
//! | [`Key`] | what a measurement is true for: device, driver, code version, class of problems |
//! | [`class`] | the names of classes of problems |
//! | [`Launch`] | the launch of a family, as parameters that its planner turns into one |
//! | [`TableFile`] | entries as JSON, each with a checksum |
//! | [`Table`] | the entries of one device, by class |
//!
//! A planner with a [`Table`] takes the launch that an entry of its problem's class has, if that launch exists; otherwise, and
//! for every other class, it chooses as it does without a table. An entry is looked up by a hash. Sums whose bits are those of
//! every device are never planned from a table.

pub mod class;
mod file;
mod key;
mod launch;
mod taken;

use std::collections::HashMap;

pub use file::{Entry, TableFile, TableFileError};
pub use key::{Key, Site, code_version};
pub(crate) use key::{START, fnv};
pub use launch::Launch;

/// A launch that was measured, with its time and that of the planner's own choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// The launch.
    pub launch: Launch,
    /// Its time, nanoseconds.
    pub ns: u64,
    /// That of the planner's own choice, nanoseconds.
    pub planned_ns: u64,
}

/// What became of the entries of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dropped {
    /// Entries of other devices, drivers, or versions.
    pub foreign: usize,
    /// Entries that were changed, or are none.
    pub damaged: usize,
}

/// The measured launches of one device, by class of problems.
///
/// ```
/// use warpfuse::plan::fused::{Candidate, Forced, Planner, Reason, Strategy};
/// use warpfuse::plan::limits::DeviceLimits;
/// use warpfuse::plan::tuned::{Launch, Measured, Table, class};
/// use warpfuse::plan::{Precision, Problem, Product};
///
/// let h200 = DeviceLimits::known("h200").expect("a listed device");
/// let kernels = Candidate::of_the_source(Precision::F32);
/// let problem = Problem::sparse(4_000_000, 1_000, 80_000_000, Precision::F32);
/// let own = Planner::new(&h200, &kernels).plan(&problem, Product::Fused)?;
///
/// let launch = Launch::Fused(Forced { strategy: Some(Strategy::GlobalW), ..Forced::default() });
/// let measured = Measured { launch, ns: 200_000, planned_ns: 230_000 };
/// let table: Table = [(class::fused(&problem), measured)].into_iter().collect();
/// let tuned = Planner::new(&h200, &kernels).tuned(Some(&table)).plan(&problem, Product::Fused)?;
/// assert_eq!((own.strategy, tuned.strategy), (Strategy::SharedW, Strategy::GlobalW));
/// assert!(matches!(tuned.reasons[0], Reason::Tuned { .. }));
/// # Ok::<(), warpfuse::plan::PlanError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    entries: HashMap<String, Measured>,
    dropped: Dropped,
}

impl Table {
    /// The entry of a class.
    pub fn get(&self, class: &str) -> Option<&Measured> {
        self.entries.get(class)
    }

    /// Entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Entries of its file that it does not have.
    pub fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Of several entries of a class the last one counts.
impl FromIterator<(String, Measured)> for Table {
    fn from_iter<I: IntoIterator<Item = (String, Measured)>>(entries: I) -> Table {
        Table {
            entries: entries.into_iter().collect(),
            dropped: Dropped::default(),
        }
    }
}
