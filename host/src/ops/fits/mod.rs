//! Many small fits at once: a block of a GPU, or a core of the CPU, makes a whole one ([`gpu_kernels::fits`]).
//!
//! A fit is described by where its rows, its targets and its weights begin: models of groups have rows of their own, those of
//! one class against the rest share rows and have their own targets, folds and penalties share both and have their own
//! weights or numbers. All of these are one launch.
//!
//! ```
//! use warpfuse::device::Device;
//! use warpfuse::ops::fits::{End, FitRows, FitRules, SmallFit, minimise_each};
//! use warpfuse::ops::objective::Loss;
//!
//! let device = Device::auto();
//! // Two groups of rows of one column: y = 1 + 2x and y = 4 − x.
//! let x = device.upload(&[0.0_f64, 1.0, 2.0, 0.0, 1.0])?;
//! let y = device.upload(&[1.0_f64, 3.0, 5.0, 4.0, 3.0])?;
//! let rows = FitRows { x: &x, rows: 5, cols: 1, pitch: 1, targets: &y, weights: None, offset: None };
//! let fit = |first: usize, rows: usize| SmallFit {
//!     row: first, rows, target: first, weight: 0, scale: 1.0 / rows as f64, l2: 0.0, intercept_l2: 0.0,
//! };
//! let fits = [fit(0, 3), fit(3, 2)];
//! let minima = minimise_each(&rows, &FitRules::new(Loss::Squared), &fits, &[0.0; 4])?;
//! assert_eq!(minima.outcomes[1].end, End::Met);
//! let near = |found: &[f64], c: f64, w: f64| (found[0] - c).abs() + (found[1] - w).abs() < 1e-12;
//! assert!(near(minima.theta(0), 1.0, 2.0) && near(minima.theta(1), 4.0, -1.0));
//! # Ok::<(), warpfuse::ops::OpError>(())
//! ```
//!
//! # What is promised
//! Everything but X, targets, weights and offsets is f64, whatever these are. A fit ends when its gradient, relative to that
//! where it began, is below the tolerance and the next step is short, which is then taken. Its bits are the same on every run
//! on one device with fits of as many rows at most, and depend on nothing that other fits have in them: what is not finite in
//! one is of no consequence to others. Of columns that depend on each other the last does not move, which
//! [`Outcome::is_dependent`] says. 1 to [`MOST_COLUMNS`] columns; X as it lies, row by row.
//!
//! # Where things are
//! | file | what |
//! |---|---|
//! | `values`, `given` | what fits are told and what became of them; whether that belongs together |
//! | `host`, `launch` | fits by cores of the CPU, by blocks of a GPU |
//! | `made`, `crossing` | rows that are made on their way to a device; fits of some while the next cross |

mod crossing;
mod given;
mod host;
mod launch;
mod made;
#[cfg(test)]
mod tests;
mod values;

pub use gpu_kernels::fits::MOST_COLUMNS;
pub use values::{End, FitRows, FitRules, Minima, Outcome, SmallFit};

pub(crate) use crossing::minimise_made;
pub(crate) use made::MadeRows;

pub(crate) use crate::plan::fits::is_worth_one_launch;

use gpu_kernels::Family;

use super::{Number, OpError, checks};
use crate::device::Device;
use given::{check_columns, check_fit, check_rows};
use launch::Launches;

/// Whether the program has what makes many fits on this device: `cargo xtask quickstart` leaves a GPU's kernels for that out.
pub(crate) fn are_possible_on<T: Number>(device: &Device) -> bool {
    match device {
        Device::Cuda(device) => T::Fits::entries()
            .iter()
            .all(|entry| device.has_kernel(entry.name)),
        _ => true,
    }
}

/// Makes all fits, in one launch on a GPU, of rows that are on the device; `start` has n + 1 elements for each, intercept first. Waits for the results.
///
/// # Errors
/// [`OpError::TooLarge`] for too many columns or fits, [`OpError::Length`] when rows, targets or weights of a fit are not there
/// or a length does not fit, [`OpError::OtherDevice`] when vectors lie elsewhere than X, [`OpError::Device`] when the device
/// fails.
pub fn minimise_each<T: Number>(
    rows: &FitRows<'_, T>,
    rules: &FitRules<'_>,
    fits: &[SmallFit],
    start: &[f64],
) -> Result<Minima, OpError> {
    check_columns(rows.cols, rules)?;
    check_rows(rows)?;
    fits.iter().try_for_each(|fit| check_fit(rows, fit))?;
    let order = rows.cols + 1;
    checks::length("the start of all fits", fits.len() * order, start.len())?;
    if fits.is_empty() {
        return Minima::new(order, Vec::new(), []);
    }
    if let Some(arrays) = host::Arrays::of(rows) {
        let mut theta = start.to_vec();
        let ends = host::minimise(&arrays, rules, fits, &mut theta);
        return Minima::new(order, theta, ends);
    }
    let shape = launch::shape::<T>((rows.cols, rows.pitch), fits);
    let mut launches = Launches::<T>::new(&rows.x.device(), (shape, rules), fits, start)?;
    launches.launch(0..fits.len(), launch::Arrays::of(rows))?;
    launches.minima()
}
