//! `warpfuse._native`: what the Python package calls of the library.
//!
//! No algorithm is here and no policy: arrays in, the library's estimator, arrays out. Names, defaults, checks of
//! parameters and everything else that scikit-learn's users see are in the Python files next to it.
//!
//! | file | what |
//! |---|---|
//! | `arrays` | NumPy and SciPy arrays to features and back |
//! | `lent`, `dlpack` | arrays on a GPU: other libraries', and results for them |
//! | `dataset` | X on a device, and fits on it |
//! | `targets` | y: numbers of either precision, or codes of classes |
//! | `predict` | linear predictors |
//! | `fit` | one fit: what it is given, and where X is |
//! | `again` | fits of small arrays with parameters that were fitted before |
//! | `estimators` | a dictionary of parameters to an estimator of the library |
//! | `solution` | what Python gets of a model |
//! | `checkpoint` | where the fits of a `with` block write how far they have got |
//! | `files` | X by the name of a file |
//! | `kernels` | kernel ridge regression, sums over kernels |
//! | `spectral` | singular vectors, rankings of graphs |
//! | `reduce` | reductions of whole arrays |
//! | `matrix` | the fused pattern for people with solvers of their own |
//! | `there` | the same where all vectors lie on a GPU |
//! | `plan` | how a product would be launched on a GPU, which need not be there |
//! | `whole` | passes over whole arrays by all cores |
//! | `watch` | progress, Ctrl-C, and the border between panics and exceptions |
//! | `errors` | the library's errors as Python's exceptions |
//! | `device` | devices by name |
//! | `group` | processes that fit together |
//! | `grouped` | a model for each group of rows |

mod again;
mod arrays;
mod checkpoint;
mod dataset;
mod device;
mod dlpack;
mod errors;
mod estimators;
mod files;
mod fit;
mod group;
mod grouped;
mod kernels;
mod lent;
mod matrix;
mod plan;
mod predict;
mod reduce;
mod solution;
mod spectral;
mod targets;
mod there;
mod watch;
mod whole;

use std::process::ExitCode;

use pyo3::prelude::*;

/// The module that Python imports.
#[pymodule(gil_used = false)]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::again::{Count, Prepared};
    #[pymodule_export]
    use super::checkpoint::{begin_checkpoint, end_checkpoint};
    #[pymodule_export]
    use super::dataset::Dataset;
    #[pymodule_export]
    use super::device::Device;
    #[pymodule_export]
    use super::files::read_file;
    #[pymodule_export]
    use super::fit::fit;
    #[pymodule_export]
    use super::group::Group;
    #[pymodule_export]
    use super::grouped::{GroupedSolution, fit_groups, group_predictors};
    #[pymodule_export]
    use super::kernels::{
        KernelSolution, PreparedKernelRidge, kernel_ridge, kernel_sum, length_scale,
    };
    #[pymodule_export]
    use super::lent::DeviceArray;
    #[pymodule_export]
    use super::matrix::Matrix;
    #[pymodule_export]
    use super::plan::{plan, plan_of_shape};
    #[pymodule_export]
    use super::reduce::reduce;
    #[pymodule_export]
    use super::run_command_line;
    #[pymodule_export]
    use super::solution::Solution;
    #[pymodule_export]
    use super::spectral::{hits, page_rank, truncated_svd};
    #[pymodule_export]
    use super::whole::{are_plain, encode, encode_text, is_canonical, is_finite, sigmoids};

    #[pymodule_export]
    use super::watch::call_seconds;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add(
            "has_kernels",
            warpfuse::device::embedded::missing().is_none(),
        )
    }
}

/// Runs the command line program on `arguments`, the first of which is its name, and returns its exit code.
#[pyfunction]
fn run_command_line(py: Python<'_>, arguments: Vec<String>) -> u8 {
    let end = py.detach(|| warpfuse::cli::main_on(arguments));
    // An exit code does not tell its number: it is compared with all.
    let code = (0..=u8::MAX).find(|code| ExitCode::from(*code) == end);
    code.unwrap_or(1)
}
