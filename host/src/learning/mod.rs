//! Learning on top of the pattern: solvers and estimators over an abstract operator.
//!
//! The same code runs on every device. Vectors stay on the device from the first iteration to the last; the
//! host sees a handful of scalars per iteration, and reads them while the next iteration is under way.
//!
//! ```
//! use ndarray::array;
//! use warpfuse::device::Device;
//! use warpfuse::learning::LinearRegression;
//! use warpfuse::matrix::Features;
//!
//! let x = Features::Dense(array![[0.0], [1.0], [2.0]]);
//! let model = LinearRegression::params().tolerance(1e-12).fit(&Device::cpu(), x, &[1.0, 3.0, 5.0])?;
//! assert!((model.coef()[0] - 2.0).abs() < 1e-9 && (model.intercept() - 1.0).abs() < 1e-9);
//! # Ok::<(), warpfuse::learning::FitError>(())
//! ```

mod cg;
mod error;
mod hits;
mod labels;
mod lanczos;
pub mod liblinear;
mod linear;
pub mod metrics;
mod model;
mod model_file;
mod model_selection;
mod operator;
mod page_rank;
mod spectral;
mod symmetric_eigen;
mod truncated_svd;

pub use cg::{CgOptions, CgStart, Convergence, Progress, Solution, conjugate_gradient};
pub use error::{FitError, ModelError};
pub use hits::{Hits, HitsModel};
pub use labels::{Classes, LabelError, Labels};
pub use linear::LinearRegression;
pub use metrics::{RegressionMetrics, regression_metrics};
pub use model::{FitReport, LinearModel};
pub use model_selection::{FoldError, Folds};
pub use operator::Operator;
pub use page_rank::{Dangling, PageRank, PageRankModel};
pub use spectral::SpectralReport;
pub use truncated_svd::{SvdModel, TruncatedSvd};
