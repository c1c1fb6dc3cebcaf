//! Objectives of rows that members of a group have on GPUs of their own.

use super::super::matrix::Matrix;
use super::super::{Number, OpError};
use super::{Evaluation, ObjectiveOut};
use crate::device::Buffer;

impl<T: Number> Matrix<T> {
    /// An objective whose bits are not promised; shapes and devices have been checked.
    pub(super) fn objective_of_members(
        &self,
        evaluation: &Evaluation<'_, T>,
        y: &Buffer<T>,
        out: &mut ObjectiveOut<'_, T>,
    ) -> Result<(), OpError> {
        let members = self
            .members
            .as_ref()
            .expect("rows that lie elsewhere are members'");
        if members.repeats {
            return Err(OpError::NoVariant {
                what: "reproducible objective",
                wanted: "a term β·z, or an intercept as the last coefficient, of rows that members share".to_owned(),
            });
        }
        let target = members.optional_part(evaluation.target, 1)?;
        let weights = members.optional_part(evaluation.weights, 1)?;
        let offset = members.optional_part(evaluation.offset, 1)?;
        let own = Evaluation {
            target: target.as_deref(),
            weights: weights.as_deref(),
            offset: offset.as_deref(),
            ..*evaluation
        };
        let (sums, gradient) = (&mut *out.sums, out.gradient.as_deref_mut());
        let (addend, solve) = (members.addend(out.addend), out.solve);
        let mut compute = |gradient: Option<&mut Buffer<T>>| {
            members.writing(out.residual.as_deref_mut(), 1, |residual| {
                members.writing(out.curvature.as_deref_mut(), 1, |curvature| {
                    let out = ObjectiveOut {
                        sums: &mut *sums,
                        gradient,
                        addend,
                        residual,
                        curvature,
                        solve,
                    };
                    members.own.objective(&own, y, out)
                })
            })
        };
        // One with an intercept as its last coefficient is longer than X is wide.
        let slices = members.own.site.slices.as_ref();
        let len = gradient.as_ref().map_or(0, |gradient| gradient.len());
        let wants_share = members.wants_share(len);
        match (
            gradient,
            slices.filter(|_| len == self.cols() && !wants_share),
        ) {
            (Some(gradient), Some(slices)) => {
                slices.add_up(gradient, |gradient| compute(Some(gradient)))?;
                members.sum(&mut [sums])
            }
            (Some(gradient), None) if wants_share => {
                compute(Some(&mut *gradient))?;
                members.sum(&mut [sums])?;
                members.sum_columns(gradient)
            }
            (Some(gradient), None) => {
                compute(Some(&mut *gradient))?;
                members.sum(&mut [sums, gradient])
            }
            (None, _) => {
                compute(None)?;
                members.sum(&mut [sums])
            }
        }
    }
}
