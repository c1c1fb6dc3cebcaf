//! What all groups are fitted to: features, targets and weights, in the order of the groups.

use std::ops::Range;

use super::Extras;
use super::order::GroupOrder;
use crate::learning::row_targets::RowTargets;
use crate::learning::sample_weights::SampleWeights;
use crate::learning::small;
use crate::matrix::{Element, Features, Storage, csr_from_parts};
use crate::ops::Number;
use crate::parallel;

/// The rows of all groups.
pub(super) struct Batch<'a, T> {
    pub(super) features: &'a Features<T>,
    pub(super) order: &'a GroupOrder,
    pub(super) targets: RowTargets<'a, T>,
    pub(super) weights: SampleWeights,
    pub(super) extras: Extras<'a>,
}

/// x·w of a row of `features`.
pub(super) fn dot<T: Number>(features: &Features<T>, row: usize, w: &[f64]) -> f64 {
    match features.storage() {
        Storage::Dense(x) => {
            let pairs = x.row(row).into_iter().zip(w);
            pairs.fold(0.0, |sum, (x, w)| Element::to_f64(*x).mul_add(*w, sum))
        }
        Storage::Sparse(x) => {
            let offsets = x.indptr();
            let offsets = &offsets.raw_storage()[row..=row + 1];
            let entries = offsets[0] as usize..offsets[1] as usize;
            let pairs = x.indices()[entries.clone()].iter().zip(&x.data()[entries]);
            pairs.fold(0.0, |sum, (j, x)| {
                Element::to_f64(*x).mul_add(w[*j as usize], sum)
            })
        }
    }
}

/// What is known of a group before it is fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct GroupSums {
    /// Σ v.
    pub(super) weight: f64,
    /// Σ v·b.
    pub(super) target: f64,
    /// The least and the greatest target of rows with weight.
    pub(super) range: [f64; 2],
}

impl GroupSums {
    /// A row with target b and weight v.
    fn add(&mut self, b: f64, v: f64) {
        if v == 0.0 {
            return;
        }
        let [least, most] = self.range;
        *self = GroupSums {
            weight: self.weight + v,
            target: self.target + v * b,
            range: [least.min(b), most.max(b)],
        };
    }
}

impl<T: Number> Batch<'_, T> {
    /// Sums of each group.
    pub(super) fn sums(&self) -> Vec<GroupSums> {
        parallel::map(self.order.groups(), |group| {
            let mut sums = GroupSums {
                weight: 0.0,
                target: 0.0,
                range: [f64::INFINITY, f64::NEG_INFINITY],
            };
            self.each_target(group, |row, b| sums.add(b, self.weights.at(row)));
            sums
        })
    }

    /// Calls `each` with every row of a group and its target.
    fn each_target(&self, group: usize, mut each: impl FnMut(usize, f64)) {
        match &self.targets {
            RowTargets::Coded { codes, targets } if self.order.is_given() => {
                codes.each(self.order.places(group), |row, code| {
                    each(row, Element::to_f64(targets[code]));
                });
            }
            targets => {
                let rows = self.rows(group);
                rows.for_each(|row| each(row, Element::to_f64(targets.at(row))));
            }
        }
    }

    /// Writes targets, in the order of the groups.
    pub(super) fn fill_targets(&self, places: Range<usize>, to: &mut [T]) {
        match self.order.is_given() {
            true => self.targets.fill(places, to),
            false => self.fill_each(places, to, |row| self.targets.at(row)),
        }
    }

    /// Writes elements of X, row by row in the order of the groups.
    pub(super) fn fill_rows(&self, range: Range<usize>, to: &mut [T]) {
        match self.order.is_given() {
            true => small::fill_rows(self.features, range, to),
            false => small::gather_rows(self.features, range, to, |place| self.order.row(place)),
        }
    }

    /// Writes what rows have, in the order of the groups.
    pub(super) fn fill_each(&self, places: Range<usize>, to: &mut [T], of: impl Fn(usize) -> T) {
        let places = to.iter_mut().zip(places);
        places.for_each(|(to, place)| *to = of(self.order.row(place)));
    }

    /// The rows of a group, as they came.
    pub(super) fn rows(&self, group: usize) -> impl Iterator<Item = usize> {
        self.order.places(group).map(|place| self.order.row(place))
    }

    /// The rows of a group by themselves.
    pub(super) fn features_of(&self, group: usize) -> Features<T> {
        let rows = self.rows(group);
        match self.features.storage() {
            Storage::Dense(x) => {
                let rows: Vec<usize> = rows.collect();
                Features::Dense(x.select(ndarray::Axis(0), &rows))
            }
            Storage::Sparse(x) => {
                let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
                let all = x.indptr();
                let all = all.raw_storage();
                for row in rows {
                    let entries = all[row] as usize..all[row + 1] as usize;
                    indices.extend_from_slice(&x.indices()[entries.clone()]);
                    values.extend_from_slice(&x.data()[entries]);
                    offsets.push(indices.len() as u64);
                }
                let shape = (offsets.len() - 1, x.cols());
                let own = csr_from_parts(shape, offsets, indices, values);
                Features::Sparse(own.expect("rows of a matrix are one"))
            }
        }
    }
}
