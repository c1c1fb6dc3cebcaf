//! Tenths of the rows by their predictions.

use super::ranked::{key_of, put_in_place};
use super::rows::Rows;
use crate::learning::metrics::Deviance;
use crate::parallel;

use serde::Serialize;

/// Groups of rows.
const GROUPS: usize = 10;

/// Rows of similar predictions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Group {
    /// Rows.
    pub rows: usize,
    /// Mean of the predictions.
    pub mean_predicted: f64,
    /// Mean of the targets.
    pub mean_target: f64,
    /// Mean unit deviance of the family; of others mean squared error. NaN where it is not defined.
    pub mean_deviance: f64,
}

/// Tenths of the rows by their prediction; rows of equal predictions are in the order of their numbers.
pub(super) fn groups(rows: &Rows<'_>, deviance: Deviance) -> Vec<Group> {
    let count = GROUPS.min(rows.len());
    let firsts: Vec<usize> = (1..count).map(|group| group * rows.len() / count).collect();
    let mut members = vec![Vec::with_capacity(rows.len() / count.max(1) + 1); count];
    let mut borders = borders(rows.means(), &firsts);
    for (row, mean) in rows.means().iter().enumerate() {
        let key = key_of(*mean);
        let above: usize = borders.iter().map(|b| usize::from(b.key <= key)).sum();
        let group = match above.checked_sub(1).map(|last| &mut borders[last]) {
            Some(border) if border.key == key => {
                let rank = border.below;
                border.below += 1;
                firsts.partition_point(|first| *first <= rank)
            }
            Some(border) => border.group,
            None => 0,
        };
        members[group].push(row);
    }
    parallel::map_items(members, |_, members| Group::of(rows, &members, deviance))
}

/// A prediction at which a group begins.
struct Border {
    key: i64,
    /// Rows with lower predictions, and those of this one that have their group.
    below: usize,
    /// The group of predictions above this one and below the next border.
    group: usize,
}

/// Where groups with these first ranks begin, in ascending order; one border for groups that begin with equal predictions.
fn borders(means: &[f64], firsts: &[usize]) -> Vec<Border> {
    let mut keys: Vec<i64> = means.iter().map(|mean| key_of(*mean)).collect();
    put_in_place(&mut keys, firsts, 0);
    let mut borders: Vec<Border> = Vec::with_capacity(firsts.len());
    let mut before = 0;
    for (number, first) in firsts.iter().enumerate() {
        let key = keys[*first];
        match borders.last_mut() {
            Some(border) if border.key == key => border.group = number + 1,
            _ => borders.push(Border {
                key,
                // What lies before the border before this one is below it.
                below: before + keys[before..*first].iter().filter(|k| **k < key).count(),
                group: number + 1,
            }),
        }
        before = *first;
    }
    borders
}

impl Group {
    fn of(rows: &Rows<'_>, members: &[usize], deviance: Deviance) -> Group {
        let of = |values: &[f64]| -> Vec<f64> { members.iter().map(|row| values[*row]).collect() };
        let (targets, means) = (of(rows.targets()), of(rows.means()));
        let weights = rows.weights().map(of);
        let mean = |values: &[f64]| {
            let weight = |i: usize| weights.as_ref().map_or(1.0, |weights| weights[i]);
            let total: f64 = (0..values.len()).map(weight).sum();
            let weighted = values.iter().enumerate().map(|(i, v)| weight(i) * v);
            weighted.sum::<f64>() / total
        };
        Group {
            rows: members.len(),
            mean_predicted: mean(&means),
            mean_target: mean(&targets),
            mean_deviance: deviance
                .mean(&targets, &means, weights.as_deref())
                .unwrap_or(f64::NAN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_tenths_of_the_rows_in_order() {
        let means: Vec<f64> = (0..1003).map(|i| f64::from(i * 7919 % 50)).collect();
        let mut in_order: Vec<usize> = (0..means.len()).collect();
        in_order.sort_by(|a, b| means[*a].total_cmp(&means[*b]).then(a.cmp(b)));
        let found = groups(&Rows::of(&means, &means, None), Deviance::Gaussian);
        for (number, group) in found.iter().enumerate() {
            let members = &in_order[number * 1003 / 10..(number + 1) * 1003 / 10];
            let sum: f64 = members.iter().map(|row| means[*row]).sum();
            assert_eq!(group.rows, members.len());
            assert_eq!(group.mean_target, sum / members.len() as f64);
        }
    }

    #[test]
    fn equal_predictions_are_shared_out_by_their_numbers() {
        let means = [vec![1.0; 45], vec![0.5; 5], vec![1.0; 30], vec![2.0; 20]].concat();
        let targets: Vec<f64> = (0..100).map(f64::from).collect();
        let found = groups(&Rows::of(&targets, &means, None), Deviance::Gaussian);
        assert!(found.iter().all(|group| group.rows == 10));
        // 45 to 49, then 0 to 4.
        assert_eq!(found[0].mean_target, (47.0 * 5.0 + 2.0 * 5.0) / 10.0);
        assert_eq!(found[1].mean_target, 9.5);
        assert_eq!(found[9].mean_target, 94.5);
    }
}
