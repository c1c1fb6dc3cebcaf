//! Direct methods on the host, in f64, for problems whose normal equations are small enough to be formed.
//!
//! | file | what |
//! |---|---|
//! | [`choice`] | which method solves which problem, and why, as a value |
//! | [`refusals`] | which solver cannot solve which problem, and what to do instead |
//! | [`run`] | does what was chosen |
//! | [`outcome`] | where a solve begins, how it ends |
//! | [`stops`] | what a checkpoint is told |
//! | [`design`] | X̃ in blocks of rows: predictors, X̃ᵀ·S, both in one pass, X̃ᵀDX̃, some of its columns |
//! | [`streamed`] | X̃ written from X, rows at a time |
//! | [`sparse_products`] | products with the stored entries of a sparse X |
//! | [`scaled_rows`] | rows times factors, of which many may be 0 |
//! | [`losses`] | losses, slopes and curvatures of all rows |
//! | [`problem`] | the objective: value, gradient, Hessian |
//! | [`softmax`] | the Hessian of a softmax |
//! | [`gap`] | the duality gap of an l1 penalty, and of coefficients that may not be negative |
//! | [`kink`] | what a coordinate costs besides what is smooth, and what it may be |
//! | [`quadratic`] | coordinate descent on a quadratic model with an l1 term, polished in its orthant |
//! | [`step`] | Newton steps by Cholesky, or by eigenvalues where columns depend on each other |
//! | [`inner`] | Newton directions by conjugate gradients on products with the Hessian |
//! | [`products`] | those of a softmax, factors of its diagonal blocks |
//! | [`stored`] | those of one predictor and a sparse X, by the entries of the rows that have curvature |
//! | [`newton`] | the outer iteration of both, with a line search |
//! | [`working_set`] | the same over few of many columns at a time |
//! | [`wide`] | more columns than rows: the same over the space of the rows |
//! | [`dual`] | sparse, with many more columns than rows: conjugate gradients over the rows |
//! | [`least_squares`] | QR and singular values of X̃ itself |
//! | [`interior`] | losses with kinks, by an interior-point method |
//!
//! Everything is cut by the shape alone, so that results are the same with any number of threads; what is small runs on
//! one.

pub(in crate::learning) mod choice;
pub(in crate::learning) mod design;
mod dual;
mod finish;
mod gap;
mod groups;
mod inner;
mod interior;
mod kink;
mod least_squares;
mod losses;
mod newton;
mod outcome;
mod place;
mod problem;
mod products;
mod quadratic;
pub(in crate::learning) mod refusals;
mod run;
mod scaled_rows;
mod softmax;
mod sparse_products;
mod step;
mod stops;
mod stored;
mod streamed;
#[cfg(test)]
mod tests;
mod wide;
mod working_set;

pub(in crate::learning) use outcome::{Solved, Start};
pub(in crate::learning) use problem::Problem;
pub(in crate::learning) use run::{minimise, reads};
