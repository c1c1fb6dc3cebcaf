//! A group that is fitted by itself, on the CPU.

use super::Extras;
use super::batch::Batch;
use super::member::Member;
use crate::device::Device;
use crate::learning::estimators::{ClassifierParams, RegressorParams};
use crate::learning::fitting;
use crate::learning::problem::{Classification, Labelled, Regression};
use crate::learning::row_targets::RowTargets;
use crate::learning::{Classes, Codes, FitError, FitOptions, ResidentDataset};
use crate::ops::Number;

/// What belongs to the rows of one group.
struct Own<'a> {
    weights: Option<Vec<f64>>,
    offset: Option<Vec<f64>>,
    of_all: Extras<'a>,
}

impl<'a> Own<'a> {
    fn of<T: Number>(batch: &Batch<'a, T>, group: usize) -> Own<'a> {
        let gather = |values: Option<&[f64]>| {
            values.map(|values| batch.rows(group).map(|row| values[row]).collect())
        };
        Own {
            weights: gather(batch.extras.sample_weight),
            offset: gather(batch.extras.offset),
            of_all: batch.extras,
        }
    }

    fn options(&self) -> FitOptions<'_> {
        FitOptions {
            sample_weight: self.weights.as_deref(),
            offset: self.offset.as_deref(),
            penalty_factors: self.of_all.penalty_factors,
            columns: self.of_all.columns,
            ..FitOptions::default()
        }
    }
}

/// The model of a group by a regression.
pub(super) fn numbers<T: Number>(
    of: &dyn Regression,
    params: &RegressorParams,
    batch: &Batch<'_, T>,
    group: usize,
) -> Member {
    let own = Own::of(batch, group);
    let targets: Vec<T> = batch.rows(group).map(|row| batch.targets.at(row)).collect();
    let fit = || {
        let data = placed(batch, group)?;
        fitting::fit_numbers(of, params.clone(), &data, &targets[..], own.options())
    };
    or_failed(fit().map(Member::of_fitted), batch)
}

/// The model of a group by a classification.
pub(super) fn labelled<T: Number>(
    of: &dyn Classification,
    params: &ClassifierParams,
    batch: &Batch<'_, T>,
    (group, classes): (usize, &Classes),
) -> Member {
    let own = Own::of(batch, group);
    let RowTargets::Coded { codes, .. } = &batch.targets else {
        unreachable!("targets of labels are coded");
    };
    let codes: Vec<u32> = batch.rows(group).map(|row| codes.at(row)).collect();
    let fit = || {
        let data = placed(batch, group)?;
        let labels = Labelled::of_codes(classes, Codes::from(codes))?;
        fitting::fit_labelled(of, params.clone(), &data, labels, own.options())
    };
    or_failed(fit().map(Member::of_fitted), batch)
}

fn placed<T: Number>(batch: &Batch<'_, T>, group: usize) -> Result<ResidentDataset<T>, FitError> {
    ResidentDataset::new(&Device::cpu(), batch.features_of(group), Default::default())
}

fn or_failed<T: Number>(found: Result<Member, FitError>, batch: &Batch<'_, T>) -> Member {
    found.unwrap_or_else(|error| Member::failed(batch.features.cols(), error.to_string()))
}
