//! What no objective is defined for, and arrays of other lengths than X has.

use anyhow::{Result, ensure};
use warpfuse::device::Device;
use warpfuse::matrix::Features;
use warpfuse::ops::objective::{
    Distribution, Evaluation, Intercept, Link, Loss, ObjectiveOut, ObjectiveSums,
};
use warpfuse::ops::{Matrix, OpError};

use super::model;

pub fn outside_the_domain(device: &Device) -> Result<()> {
    let matrix = Matrix::new(device, Features::Dense(ndarray::array![[1.0], [-1.0]]))?;
    let (y, target) = (device.upload(&[1.0])?, device.upload(&[1.0, 1.0])?);
    let (mut sums, mut gradient) = (device.zeros(3)?, device.zeros(1)?);
    let evaluation = Evaluation::new(model(Distribution::Poisson, Link::Identity), &target);
    matrix.objective(&evaluation, &y, ObjectiveOut::new(&mut sums, &mut gradient))?;
    let found = ObjectiveSums::of(&sums.to_vec()?);
    ensure!(
        found.loss == f64::INFINITY && found.slope.is_nan(),
        "{found:?}"
    );
    Ok(())
}

pub fn refuses_lengths(device: &Device) -> Result<()> {
    let matrix = Matrix::new(
        device,
        Features::Dense(ndarray::array![[1.0, 2.0], [-1.0, 3.0]]),
    )?;
    let (two, three) = (device.zeros::<f64>(2)?, device.zeros::<f64>(3)?);
    let (mut sums, mut gradient) = (device.zeros(3)?, device.zeros(2)?);
    let refused = |result: Result<(), OpError>, name: &str| matches!(result, Err(OpError::Length { what, .. }) if what == name);
    let evaluation = Evaluation::new(Loss::Squared, &three);
    let result = matrix.objective(
        &evaluation,
        &two,
        ObjectiveOut::new(&mut sums, &mut gradient),
    );
    ensure!(refused(result, "the target"), "target");
    let evaluation = Evaluation {
        intercept: Intercept::Last,
        ..Evaluation::new(Loss::Squared, &two)
    };
    let result = matrix.objective(
        &evaluation,
        &two,
        ObjectiveOut::new(&mut sums, &mut gradient),
    );
    ensure!(refused(result, "y"), "y");
    let result = matrix.objective(
        &evaluation,
        &three,
        ObjectiveOut::new(&mut sums, &mut gradient),
    );
    ensure!(refused(result, "the gradient"), "gradient");
    Ok(())
}
