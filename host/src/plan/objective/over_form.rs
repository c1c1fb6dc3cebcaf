//! What a fit takes over a further form of X: points by two products, products of the Hessian by one.
//!
//! A point needs X·y before any loss is known, so it takes X·y, the losses of the rows and Xᵀ·g. The Hessian's product
//! `X̃ᵀ(d ⊙ X̃p)` is one fused product of the form, whose weights d are known. With an intercept it also takes `p·X̃ᵀd`, the sum
//! of d ⊙ X̃p: a product of two vectors, and one more Xᵀ·d for each point at which a Hessian counts.

use super::ROW_ELEMENTS;
use crate::plan::error::PlanError;
use crate::plan::fused::{Plan, Planner, Strategy};
use crate::plan::limits::DeviceLimits;
use crate::plan::problem::{Problem, Product};

/// Products of the Hessian for each point, about: logistic fits to 1e-6 took 18 evaluations an outer iteration
/// (`benches/results/h200/learning.jsonl`), in the middle.
pub const PRODUCTS_PER_POINT: u64 = 17;
/// Elements for each column that the intercept's sum reads: p and X̃ᵀd.
const SUM_ELEMENTS: f64 = 2.0;
/// Launches of a Hessian's product besides the form's, with an intercept: the sum, and the constant's sign.
const BESIDES: f64 = 2.0;
/// Nanoseconds that a device waits between two iterations of conjugate gradients where the host waits for the scalars of one
/// before it submits the next. Computed, not measured: the way of a word to the host and of a launch back.
const NEWS_NS: u64 = 12_000;
/// Iterations of a solve, where they are few: five on rcv1 (`benches/results/h100/learning.jsonl`).
const FEW_ITERATIONS: u64 = 5;

/// Whether linear predictors have an intercept, whose sum a fused product does not give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constant {
    /// X·y is all.
    Absent,
    /// A constant is added.
    Present,
}

impl Constant {
    /// Whether there is one.
    pub fn of(has_intercept: bool) -> Self {
        match has_intercept {
            true => Constant::Present,
            false => Constant::Absent,
        }
    }
}

/// Whether products of a Hessian that take `product_ns` are submitted before it is known that the solve goes on: one too many
/// at its end takes less than to wait for the news of each.
///
/// ```
/// use warpfuse::plan::objective::runs_ahead;
/// assert!(runs_ahead(20_000) && !runs_ahead(1_000_000));
/// ```
pub fn runs_ahead(product_ns: u64) -> bool {
    product_ns < FEW_ITERATIONS * NEWS_NS
}

/// The plan of an objective by two products over the forms in which X is stored, the losses of the rows in between, and
/// what it takes, nanoseconds; `None` where the model predicts no times.
///
/// # Errors
/// As [`Planner::plan`].
pub fn by_products(
    planner: &Planner<'_>,
    limits: &DeviceLimits,
    problem: &Problem,
) -> Result<Option<(Plan, u64)>, PlanError> {
    let forward = planner.plan(problem, Product::Forward)?;
    let transposed = planner.plan(problem, Product::Transposed)?;
    let plan = Plan {
        product: Product::Fused,
        strategy: Strategy::two_products(false),
        then: Some(Box::new(transposed)),
        ..forward
    };
    let ns = plan.predicted_ns();
    let rows_ns = row_losses_ns(limits, problem);
    Ok(ns.map(|ns| (plan, ns.saturating_add(rows_ns))))
}

/// What the losses of the rows take between two products, nanoseconds.
pub fn row_losses_ns(limits: &DeviceLimits, problem: &Problem) -> u64 {
    let row = ROW_ELEMENTS * f64::from(problem.dtype.bytes());
    let read = problem.rows as f64 * row / limits.rates.stream_gbs;
    (read + 1e3 * limits.rates.launch_us) as u64
}

/// Nanoseconds that the parts of a fit take over the forms in which X is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverForm {
    /// Loss and gradient at a point.
    pub point_ns: u64,
    /// Xᵀ·d, once for each point at which a Hessian counts; 0 without an intercept.
    pub level_ns: u64,
    /// A product of the Hessian, as one fused product.
    pub product_ns: u64,
}

impl OverForm {
    /// Of a problem whose loss and gradient take `rows_ns` over its rows, with or without an intercept; `None` where the model
    /// predicts no times.
    ///
    /// # Errors
    /// As [`Planner::plan`].
    pub fn of(
        planner: &Planner<'_>,
        limits: &DeviceLimits,
        problem: &Problem,
        (rows_ns, constant): (u64, Constant),
    ) -> Result<Option<OverForm>, PlanError> {
        let Some((plan, both)) = by_products(planner, limits, problem)? else {
            return Ok(None);
        };
        // The level is an intercept's.
        let level_ns = match constant {
            Constant::Absent => Some(0),
            Constant::Present => plan.then.and_then(|transposed| transposed.predicted_ns()),
        };
        let fused = planner.plan(problem, Product::Fused)?.predicted_ns();
        let element = f64::from(problem.dtype.bytes());
        let sum = SUM_ELEMENTS * problem.cols as f64 * element / limits.rates.stream_gbs;
        let besides = match constant {
            Constant::Absent => 0,
            Constant::Present => (sum + BESIDES * 1e3 * limits.rates.launch_us) as u64,
        };
        Ok(fused.zip(level_ns).map(|(fused, level_ns)| OverForm {
            point_ns: both.min(rows_ns),
            level_ns,
            product_ns: fused.saturating_add(besides),
        }))
    }

    /// Whether one fused product for each of the Hessian's is faster than to compute them as points are.
    ///
    /// ```
    /// use warpfuse::plan::objective::OverForm;
    /// let of = OverForm { point_ns: 8_000, level_ns: 4_000, product_ns: 4_000 };
    /// assert!(of.takes_one_product());
    /// assert!(!OverForm { product_ns: 7_900, ..of }.takes_one_product());
    /// ```
    pub fn takes_one_product(&self) -> bool {
        self.products_ns() < PRODUCTS_PER_POINT.saturating_mul(self.point_ns)
    }

    /// Of an evaluation of a fit in the mean, with [`PRODUCTS_PER_POINT`].
    ///
    /// ```
    /// use warpfuse::plan::objective::OverForm;
    /// let of = OverForm { point_ns: 8_000, level_ns: 4_000, product_ns: 3_000 };
    /// assert_eq!(of.mean_ns(), (8_000 + 4_000 + 17 * 3_000) / 18);
    /// assert_eq!(OverForm { product_ns: 9_000, ..of }.mean_ns(), 8_000);
    /// ```
    pub fn mean_ns(&self) -> u64 {
        if !self.takes_one_product() {
            return self.point_ns;
        }
        self.point_ns.saturating_add(self.products_ns()) / (1 + PRODUCTS_PER_POINT)
    }

    /// The fused products between two points, with what they need of the first.
    fn products_ns(&self) -> u64 {
        let products = PRODUCTS_PER_POINT.saturating_mul(self.product_ns);
        self.level_ns.saturating_add(products)
    }
}
