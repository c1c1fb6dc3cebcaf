//! The ways to sum over a kernel, which the tuner tries.

use gpu_kernels::kernel_sum::{KernelFunction, KernelSumVariant, tiled};

use super::{
    FEWEST, KernelSumPlan, MOST_F32, NARROW_DIMS, Problem, Work, half_of, is_by_products,
    most_threads, plan_of,
};
use crate::plan::limits::DeviceLimits;
use crate::plan::problem::Precision;
use crate::plan::space::Space;

/// Bodies, in the order of the values of the parameter `body`.
const BODIES: [Body; 6] = [
    Body::Narrow,
    Body::Symmetric,
    Body::Tiled,
    Body::Folded,
    Body::Gradient,
    Body::Products,
];

/// A body without its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    Narrow,
    Symmetric,
    Tiled,
    Folded,
    Gradient,
    Products,
}

impl Body {
    /// Whether it computes what is wanted.
    fn computes(self, problem: &Problem) -> bool {
        let is_narrow = problem.dims <= NARROW_DIMS && problem.vectors == 1;
        match (self, problem.work) {
            (Body::Gradient, Work::Gradient) => true,
            (Body::Gradient, _) | (_, Work::Gradient) => false,
            (Body::Symmetric, work) => is_narrow && work == Work::SymmetricSum,
            (Body::Products, work) => {
                is_narrow && work == Work::SymmetricSum && is_by_products(problem)
            }
            (Body::Folded, work) => work == Work::SymmetricSum,
            (Body::Narrow, _) => is_narrow,
            (Body::Tiled, _) => true,
        }
    }

    /// Whether it takes blocks of several sizes; the others have one.
    fn has_sizes(self) -> bool {
        matches!(self, Body::Narrow | Body::Symmetric | Body::Products)
    }

    fn variant(self, problem: &Problem) -> KernelSumVariant {
        let function = problem.function;
        let dims = match (function, problem.precision) {
            (KernelFunction::Gaussian, Precision::F32) => problem.dims,
            _ => NARROW_DIMS,
        };
        match self {
            Body::Narrow => KernelSumVariant::Narrow { function, dims },
            Body::Symmetric => KernelSumVariant::Symmetric { function, dims },
            Body::Tiled => KernelSumVariant::Tiled { function },
            Body::Folded => KernelSumVariant::Folded { function },
            Body::Gradient => KernelSumVariant::Gradient { function },
            Body::Products => KernelSumVariant::Products { dims },
        }
    }
}

/// One way to sum.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelSumPoint {
    /// The values of the parameters, in the order of the [space].
    pub values: Vec<i64>,
    /// The launch.
    pub plan: KernelSumPlan,
}

/// The parameters of a sum and their constraints: `body` (narrow, symmetric, tiled, folded, gradient, products), `threads` of a block,
/// `slices` of the sources. Slices of f32 are short enough that the sums keep their precision.
pub fn space(problem: &Problem, limits: &DeviceLimits) -> Space {
    let mut space = Space::new();
    let body = space.parameter("body", 0..BODIES.len() as i64);
    let threads = space.parameter("threads", [64, 128, 256]);
    let slices = space.parameter("slices", slice_counts(problem));
    let of = |value: i64| BODIES[value as usize];
    let problem = *problem;
    space.requires("computes the problem", &[body], move |v| {
        of(v[0]).computes(&problem)
    });
    let most = i64::from(most_threads(problem.precision));
    space.requires(
        "threads of the body",
        &[body, threads],
        move |v| match of(v[0]).has_sizes() {
            true => v[1] <= most,
            false => v[1] == i64::from(tiled::THREADS),
        },
    );
    space.requires("slices of the body", &[body, slices], move |v| {
        match of(v[0]) {
            Body::Symmetric | Body::Products => v[1] == 1,
            body => bounds(body, &problem).contains(&(v[1] as u64)),
        }
    });
    let shared = u64::from(limits.shared_per_block);
    space.requires("shared memory", &[body, threads], move |v| {
        let variant = of(v[0]).variant(&problem);
        variant.shared_bytes(v[1] as u32, problem.precision.bytes()) <= shared
    });
    space.requires("a grid of blocks", &[body, threads, slices], move |v| {
        plan_of(
            &problem,
            (of(v[0]).variant(&problem), v[1] as u32),
            v[2] as u32,
        )
        .is_ok()
    });
    space
}

/// The [space] as launches. [`plan`](super::plan) takes one of them, or one whose slices are between those of two.
///
/// ```
/// use gpu_kernels::kernel_sum::KernelFunction;
/// use warpfuse::plan::Precision;
/// use warpfuse::plan::kernel_sum::{Extent, Problem, Work, plan, points};
/// use warpfuse::plan::limits::DeviceLimits;
/// let h200 = DeviceLimits::known("h200").expect("a listed device");
/// let problem = Problem {
///     function: KernelFunction::Gaussian,
///     work: Work::Sum,
///     targets: 1_000_000,
///     sources: 1_000_000,
///     dims: 3,
///     vectors: 1,
///     precision: Precision::F32,
///     extent: Extent::Near,
/// };
/// let own = plan(&problem, &h200)?;
/// assert!(points(&problem, &h200).iter().any(|point| point.plan == own));
/// # Ok::<(), warpfuse::plan::PlanError>(())
/// ```
pub fn points(problem: &Problem, limits: &DeviceLimits) -> Vec<KernelSumPoint> {
    let space = space(problem, limits);
    let points = space.points();
    points
        .filter_map(|values| of_values(problem, values))
        .collect()
}

/// One point of the [space], by the values of its parameters; none where they are not possible.
pub fn point(problem: &Problem, limits: &DeviceLimits, values: &[i64]) -> Option<KernelSumPoint> {
    match space(problem, limits).has(values) {
        true => of_values(problem, values.to_vec()),
        false => None,
    }
}

fn of_values(problem: &Problem, values: Vec<i64>) -> Option<KernelSumPoint> {
    let &[body, threads, slices] = &values[..] else {
        return None;
    };
    let body = BODIES.get(usize::try_from(body).ok()?)?;
    let variant = body.variant(problem);
    let plan = plan_of(problem, (variant, threads as u32), slices as u32).ok()?;
    Some(KernelSumPoint { values, plan })
}

/// The fewest and the most slices of the sources that a body may have.
fn bounds(body: Body, problem: &Problem) -> std::ops::RangeInclusive<u64> {
    let sources = match body {
        Body::Folded => half_of(problem).sources,
        _ => problem.sources,
    };
    let fewest = match problem.precision {
        Precision::F32 => sources.div_ceil(MOST_F32).max(1),
        Precision::F64 => 1,
    };
    fewest..=sources.div_ceil(FEWEST).max(fewest)
}

/// Powers of two and those three halves as large, up to the most of any body, with the fewest and the most of each.
fn slice_counts(problem: &Problem) -> Vec<i64> {
    let ends = [Body::Tiled, Body::Folded].map(|body| bounds(body, problem).into_inner());
    let most = ends.iter().map(|(_, most)| *most).max().unwrap_or(1);
    let powers = (0..=most.ilog2()).map(|power| 1_u64 << power);
    let mut counts: Vec<u64> = powers
        .flat_map(|power| [power, power + power / 2])
        .collect();
    counts.extend(ends.into_iter().flat_map(|(fewest, most)| [fewest, most]));
    counts.retain(|count| *count <= most);
    counts.sort_unstable();
    counts.dedup();
    counts.into_iter().map(|count| count as i64).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Extent, plan};
    use super::*;

    fn problem(work: Work, points: u64, dims: u32, vectors: u32) -> Problem {
        Problem {
            function: KernelFunction::Matern32,
            work,
            targets: points,
            sources: points,
            dims,
            vectors,
            precision: Precision::F32,
            extent: Extent::Near,
        }
    }

    #[test]
    fn points_are_different_and_compute_the_problem() {
        let h200 = DeviceLimits::known("h200").expect("a listed device");
        for work in [Work::Sum, Work::SymmetricSum, Work::Gradient] {
            for (points_, dims, vectors) in [(1, 1, 1), (5_000, 3, 1), (3_000_000, 7, 1)] {
                let problem = problem(work, points_, dims, vectors);
                let all = points(&problem, &h200);
                assert!(!all.is_empty(), "{problem:?}");
                let own = plan(&problem, &h200).expect("a plan");
                let bodies = |plan: &KernelSumPlan| std::mem::discriminant(&plan.variant);
                assert!(
                    all.iter().any(|point| bodies(&point.plan) == bodies(&own)),
                    "{problem:?}"
                );
                for (i, one) in all.iter().enumerate() {
                    assert!(all[..i].iter().all(|other| other.plan != one.plan));
                    assert_eq!(
                        point(&problem, &h200, &one.values).as_ref(),
                        Some(one),
                        "{problem:?}"
                    );
                    let of_slice = problem.sources.div_ceil(one.plan.slices.into());
                    let is_halved = matches!(one.plan.variant, KernelSumVariant::Folded { .. });
                    let is_whole = matches!(
                        one.plan.variant,
                        KernelSumVariant::Symmetric { .. } | KernelSumVariant::Products { .. }
                    );
                    assert!(
                        is_whole || of_slice <= MOST_F32 * if is_halved { 2 } else { 1 },
                        "{one:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_a_body_does_not_compute_is_no_point() {
        let h200 = DeviceLimits::known("h200").expect("a listed device");
        let sum = problem(Work::Sum, 10_000, 3, 1);
        let gradient = [4, 256, 1];
        assert_eq!(point(&sum, &h200, &gradient), None);
        assert_eq!(point(&sum, &h200, &[1, 64, 1]), None, "two sets of points");
        assert_eq!(point(&sum, &h200, &[2, 128, 1]), None, "one size of blocks");
        assert_eq!(
            point(&sum, &h200, &[0, 64, 1_000]),
            None,
            "slices too short"
        );
        assert_eq!(point(&sum, &h200, &[0, 64]), None);
        let near = Problem {
            function: KernelFunction::Gaussian,
            ..problem(Work::SymmetricSum, 10_000, 3, 1)
        };
        let products = [5, 128, 1];
        assert!(point(&near, &h200, &products).is_some());
        let far = Problem {
            extent: Extent::Any,
            ..near
        };
        assert_eq!(point(&far, &h200, &products), None, "points far out");
        let line = Problem { dims: 1, ..near };
        assert_eq!(point(&line, &h200, &products), None, "not compiled");
        assert!(point(&sum, &h200, &[0, 64, 2]).is_some());
    }
}
