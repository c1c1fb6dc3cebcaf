//! Many small fits in one launch: a block makes one whole fit by Newton's method, from its first look at its rows to its last
//! step.
//!
//! Formula: minimise over c and w (n elements)
//!
//! `F = s·Σᵢ vᵢ·loss(xᵢ·w + c + oᵢ, bᵢ) + ½·λ·Σⱼ fⱼ·σⱼ²·wⱼ² + ½·λc·c²`,
//!
//! where the rows i, s, λ and λc are the fit's own, f are factors of all fits (1 where absent), and σ are the deviations of
//! the fit's columns where they are standardised (else 1).
//!
//! | step | what | who |
//! |---|---|---|
//! | 1 | rows to shared memory, all at once where they fit, else 32 of a warp at a time in every pass | all |
//! | 2 | t, loss, slope g and curvature d of 32 rows | a lane for each row |
//! | 3 | X̃ᵀDX̃ of the same rows in f64 on tensor cores; X̃ᵀg and X̃ᵀd beside it | their warp |
//! | 4 | sums of the warps, one after the other | all, by turns |
//! | 5 | ridge, Cholesky, step | the first warp |
//!
//! Steps 2 to 4 are a *pass*: loss, gradient and Hessian at one point, in one read. A Newton step is one pass where the
//! whole step brings enough, and one more for each halving.
//!
//! Shapes: X of rows of n columns, `pitch` elements apart, at most [`MOST_COLUMNS`]; the rows of a fit follow each other.
//! Everything but X, b, v and o is f64. Up to 32 columns a pass reads rows once, with more three times: blocks of 32 × 32
//! of the Hessian, which warps have in registers. Coordinate 0 is the intercept's, coordinate j + 1 column j's.
//!
//! Shared memory: [`Layout`]. Result: coefficients, a status and three figures of each fit. Guarantees: the same bits on every
//! run with one size of blocks; what is not finite in one fit is of no consequence to others.
//!
//! Source: J. Nocedal and S. Wright, *Numerical Optimization*, 2nd ed., 2006, chapter 3 (Newton's method with a line search).

mod args;
mod factor;
mod hessian;
mod newton;
mod pass;
mod rows;
pub mod rules;

pub use args::{
    DEPENDENT, FitArgs, FitVariant, Fits, INVALID, ITERATION_LIMIT, Layout, MET, MOST_COLUMNS,
    MOST_THREADS, MOST_WARPS, NO_ROWS, NOT_FINITE, NUMBERS, PLACES, PRECISION_LIMIT, REPORT,
    STALLED,
};

macro_rules! fits_family {
    ($t:ident) => {
        crate::kernels! {
            family Fits<$t>, "fits";
            args FitArgs<'a, $t>;
            variant FitVariant;
            check args::check::<$t>;
            describe args::describe;
            concat!("fits_logistic_", stringify!($t)), FitVariant::Logistic => newton::fit::<_, $t, args::OfLogistic>;
            concat!("fits_any_", stringify!($t)), FitVariant::Any => newton::fit::<_, $t, args::OfAny>;
        }
    };
}

fits_family!(f32);
fits_family!(f64);
