//! The ways to compute a layer, which the tuner tries.

use super::choice::{ConvPlan, ConvStrategy, ConvWork, plan_with};
use super::shape::ConvShape;
use crate::plan::limits::DeviceLimits;
use crate::plan::space::Space;

/// The one parameter of a layer, `strategy`, a number of [`ConvStrategy::ALL`]: tiles follow from it and from the shape.
pub fn space(shape: &ConvShape, work: &ConvWork, limits: &DeviceLimits) -> Space {
    let mut space = Space::new();
    let strategy = space.parameter("strategy", 0..ConvStrategy::ALL.len() as i64);
    let (shape, work, limits) = (*shape, *work, limits.clone());
    space.requires("not for comparison alone", &[strategy], |v| {
        !ConvStrategy::ALL[v[0] as usize].is_of_the_source()
    });
    space.requires("suits the layer", &[strategy], move |v| {
        plan_with(ConvStrategy::ALL[v[0] as usize], &shape, &work, &limits).is_some()
    });
    space
}

/// The [space] as plans, of which [`plan`](super::plan) takes one.
///
/// ```
/// use warpfuse::plan::limits::DeviceLimits;
/// use warpfuse::plan::sparse_conv::{ConvShape, ConvWork, plan, points};
/// let h200 = DeviceLimits::known("h200").expect("a listed device");
/// let shape = ConvShape::new(64, [28; 2], 64, [3; 2]);
/// let work = ConvWork {
///     nnz: 3_600,
///     longest: 80,
///     integers: false,
///     pieces: None,
///     bytes: 4,
///     sum_bytes: 4,
///     finite: true,
///     zeros: 0,
///     steps: None,
/// };
/// assert!(points(&shape, &work, &h200).contains(&plan(&shape, &work, &h200)));
/// ```
pub fn points(shape: &ConvShape, work: &ConvWork, limits: &DeviceLimits) -> Vec<ConvPlan> {
    let space = space(shape, work, limits);
    let points = space.points();
    let plan = |values: Vec<i64>| {
        let strategy = ConvStrategy::ALL[values[0] as usize];
        plan_with(strategy, shape, work, limits)
    };
    points.filter_map(plan).collect()
}
