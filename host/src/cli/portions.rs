//! Data whose rows the members of a group share: each reads its own lines, where the file has any.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::data::{self, Loaded, Reading, Rows};
use super::group;
use super::progress::Ui;
use super::targets::{Known, Task};
use crate::device::Device;
use crate::device::group::Group;
use crate::io::{self, ReadPortion, TableRows, TableTargets};
use crate::matrix::{Element, MatrixStats};
use anyhow::Result;

/// Where data are, and how they are read.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) data: &'a Path,
    pub(super) reading: &'a Reading<'a>,
    /// Whether each member needs all rows.
    pub(super) whole: bool,
    pub(super) ui: &'a Ui,
}

/// What a member has read without the others.
pub(super) enum Begun<T> {
    /// All rows.
    Whole(Box<Loaded<T>>),
    /// The lines of this member, and the seconds that they took.
    Lines(Box<ReadPortion<T>>, f64),
}

/// Reads as much as there is to read without a word from the others.
///
/// # Errors
/// As [`data::load_as`].
pub(super) fn begin<T: Element>(group: &Group, place: Place<'_>) -> Result<Begun<T>> {
    let begun = Instant::now();
    if !place.whole && !group.is_alone() {
        let bar = place.ui.reading(place.data);
        let options = place.reading.options(bar.reader());
        let portion = group::portion(group);
        let read = io::read_portion(place.data, &options, &place.reading.table, portion)?;
        if let Some(read) = read {
            return Ok(Begun::Lines(Box::new(read), begun.elapsed().as_secs_f64()));
        }
    }
    Ok(Begun::Whole(Box::new(place.load()?)))
}

/// Reads the rows of this member, and gets the sizes and targets of all.
///
/// # Errors
/// As [`data::load_as`], and when the others cannot be reached.
pub(super) fn load<T: Element>(
    (group, device): (&Group, &Device),
    place: Place<'_>,
) -> Result<Loaded<T>> {
    begin(group, place)?.complete((group, device), place)
}

/// [`load`], with targets for `task`, from `target` where one is named.
///
/// # Errors
/// As [`load`] and [`data::known`].
pub(super) fn load_known<T: Element>(
    member: (&Group, &Device),
    place: Place<'_>,
    (target, task): (Option<&Path>, Task),
) -> Result<(Loaded<T>, Known<T>)> {
    data::known(load(member, place)?, (place.data, target), task)
}

impl Place<'_> {
    fn load<T: Element>(&self) -> Result<Loaded<T>> {
        data::load_as(self.data, None, self.reading, self.ui)
    }
}

impl<T: Element> Begun<T> {
    /// What the members know together.
    ///
    /// # Errors
    /// As [`load`].
    pub(super) fn complete(
        self,
        (group, device): (&Group, &Device),
        place: Place<'_>,
    ) -> Result<Loaded<T>> {
        let (read, seconds) = match self {
            Begun::Whole(loaded) => return Ok(*loaded),
            Begun::Lines(read, seconds) => (read, seconds),
        };
        let (begun, bytes) = (Instant::now(), read.bytes());
        let facts = group.all_gather_each(&read.facts())?;
        let Some(own) = read.complete(&facts, device.row_step())? else {
            return place.load();
        };
        let TableRows { table, .. } = own;
        let stats = MatrixStats::joined(&group.all_gather_each(&MatrixStats::of(&table.features))?);
        let targets = match table.targets {
            Some(TableTargets::Numbers(own)) => {
                Some(TableTargets::Numbers(group.all_gather(&own)?))
            }
            Some(TableTargets::Text(own)) => {
                Some(TableTargets::Text(group.all_gather_each(&own)?.concat()))
            }
            None => None,
        };
        let seconds = seconds + begun.elapsed().as_secs_f64();
        tracing::info!(
            own = table.features.rows(),
            rows = stats.rows,
            seconds,
            "lines read"
        );
        Ok(Loaded {
            features: Arc::new(table.features),
            rows: Rows::Own,
            targets,
            further: table.further,
            schema: table.schema,
            stats,
            seconds,
            bytes,
        })
    }
}
