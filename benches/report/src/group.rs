//! Cases that belong in one figure: one work over one kind of matrix, in one type.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::record::{Measured, Outcome, Record, Shape};
use super::size::{Size, of_most_values};

/// Records of one work over one kind of matrix, in one type.
pub struct Group<'a> {
    /// Work, layout, type.
    pub name: [&'a str; 3],
    /// What was computed over.
    pub shapes: Vec<&'a Shape>,
    /// One for each shape.
    pub measured: Vec<&'a Measured>,
    /// Cases without figures.
    pub failed: usize,
}

impl Group<'_> {
    /// Such as `fused, dense, f32`.
    pub fn title(&self) -> String {
        let [work, layout, dtype] = self.name;
        format!("{}, {layout}, {dtype}", work.replace('_', " "))
    }

    /// What differs most from case to case.
    pub fn size(&self) -> Size {
        of_most_values(&self.shapes)
    }

    /// How many sizes there are.
    pub fn sizes(&self) -> usize {
        self.size().values(&self.shapes).len()
    }

    /// What was reached of the ceiling, the middle one of all cases.
    pub fn share(&self) -> Option<f64> {
        let shares = self
            .measured
            .iter()
            .filter_map(|one| one.fraction_of_ceiling);
        median(shares.collect())
    }

    /// Time of the fastest peer over ours, the middle one of all cases.
    pub fn gain(&self) -> Option<f64> {
        median(self.measured.iter().filter_map(|one| gain(one)).collect())
    }
}

/// Time of the fastest peer over ours.
pub fn gain(measured: &Measured) -> Option<f64> {
    let fastest = measured.peers.values().copied().min_by(f64::total_cmp)?;
    Some(fastest / measured.median_us)
}

/// The middle one; of an even number the upper one of two.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn layout(shape: &Shape) -> &'static str {
    match shape {
        Shape::Dense { .. } => "dense",
        Shape::Sparse { .. } => "sparse",
        Shape::Drawn { .. } => "sparse by laws",
        Shape::Vector { .. } => "vectors",
        Shape::Points { .. } => "points",
        Shape::Layer { .. } => "layers",
        Shape::Product { .. } => "matrices",
        Shape::Batch { .. } => "batches",
    }
}

/// Groups of a family, those with the most sizes first.
pub fn groups<'a>(records: &[&'a Record]) -> Vec<Group<'a>> {
    let mut groups = BTreeMap::<[&str; 3], Group<'_>>::new();
    for record in records {
        let name = [&record.case.work, layout(&record.case.shape), &record.dtype];
        let group = groups.entry(name).or_insert(Group {
            name,
            shapes: Vec::new(),
            measured: Vec::new(),
            failed: 0,
        });
        match &record.outcome {
            Outcome::Measured(measured) => {
                group.shapes.push(&record.case.shape);
                group.measured.push(measured);
            }
            Outcome::Failed { .. } => group.failed += 1,
        }
    }
    let mut groups: Vec<Group<'_>> = groups.into_values().collect();
    groups.sort_by_key(|group| Reverse(group.sizes()));
    groups
}
