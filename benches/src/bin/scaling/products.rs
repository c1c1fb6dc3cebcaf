//! Products and iterations of conjugate gradients, by one and by several.

use anyhow::Result;
use serde_json::json;
use warpfuse::device::Readback;
use warpfuse::learning::ResidentDataset;
use warpfuse::ops::cg::{CgVectors, Stop};
use warpfuse::ops::objective::{Evaluation, Intercept, Loss, ObjectiveOut, ObjectiveSums};
use warpfuse::ops::{Matrix, MatrixOptions, Terms, vector};

use super::Wanted;
use super::members::{Member, Members};
use super::shapes::{SHAPES, Shape};

/// Evaluations for which X is laid out.
const EVALUATIONS: u64 = 500;
/// Iterations of conjugate gradients in a Newton step.
const ITERATIONS: usize = 10;

/// Times them.
pub fn run(wanted: &Wanted, members: &Members) -> Result<()> {
    for shape in SHAPES.iter().filter(|shape| wanted.takes(shape.name)) {
        let shape = shape.divided(wanted.divide);
        for size in &wanted.sizes {
            for is_weak in [false, true] {
                // One alone is the same both ways.
                if is_weak && (*size == 1 || shape.name == "kddb") {
                    continue;
                }
                let grown = Shape {
                    rows: if is_weak {
                        shape.rows * size
                    } else {
                        shape.rows
                    },
                    ..shape
                };
                members.run(*size, |member| time(member, &grown, is_weak))?;
            }
        }
    }
    Ok(())
}

fn time(member: &Member, shape: &Shape, is_weak: bool) -> Result<()> {
    let own = shape.features(member.rows(shape.rows))?;
    let device = &member.device;
    let placed =
        ResidentDataset::for_evaluations(device, own, MatrixOptions::default(), EVALUATIONS)?;
    let x = placed.matrix();
    let (m, n) = (x.rows(), x.cols());
    let y = device.upload(&vec![0.25_f32; n])?;
    let weights = device.upload(&vec![0.5_f32; m])?;
    let mut w = device.zeros::<f32>(n)?;
    let terms = Terms {
        weights: Some(&weights),
        ..Terms::default()
    };
    let product = member.time((5, 10), || Ok(x.fused(&y, &terms, &mut w)?))?;
    let target: Vec<f32> = shape.labels().iter().map(|label| *label as f32).collect();
    let target = device.upload(&target)?;
    let newton = newton(member, x, &target)?;
    member.tell(&json!({
        "what": "product",
        "shape": shape.name,
        "rows": m,
        "cols": n,
        "per_row": shape.per_row,
        "members": member.group.size(),
        "scaling": if is_weak { "weak" } else { "strong" },
        "fused_us": 1e6 * product,
        "newton_us": 1e6 * newton,
        "plan": x.used_plan(warpfuse::ops::Product::Fused)?.map(ToString::to_string),
    }));
    Ok(())
}

/// Seconds of a step of Newton's method: an evaluation with curvatures, and iterations of conjugate gradients.
fn newton(member: &Member, x: &Matrix<f32>, target: &warpfuse::device::Buffer<f32>) -> Result<f64> {
    let device = &member.device;
    let (m, n) = (x.rows(), x.cols());
    let mut sums = device.zeros(ObjectiveSums::LEN)?;
    let mut gradient = device.zeros::<f32>(n)?;
    let mut curvature = device.zeros::<f32>(m)?;
    let y = device.zeros::<f32>(n)?;
    let evaluation = Evaluation {
        scale: 1.0 / m as f32,
        ..Evaluation::new(Loss::Logistic, target)
    };
    let mut residual = device.zeros::<f32>(n)?;
    vector::fill(-1.0, &mut residual)?;
    let mut solve = CgVectors::new(device, residual.try_clone()?, None, None, Stop::at(0.0))?;
    let mut readback = Readback::new(device, solve.state().len())?;
    member.time((5, 3), || {
        let out = ObjectiveOut {
            curvature: Some(&mut curvature),
            ..ObjectiveOut::new(&mut sums, &mut gradient)
        };
        x.objective(&evaluation, &y, out)?;
        solve.restart(&residual, Stop::at(0.0))?;
        for iteration in 0..ITERATIONS {
            let (p, q, state) = solve.product();
            let out = ObjectiveOut {
                solve: Some(state),
                ..ObjectiveOut::new(&mut sums, q)
            };
            x.hessian_product(&curvature, Intercept::Absent, p, out)?;
            solve.advance()?;
            readback.submit(solve.state())?;
            if iteration > 0 {
                readback.wait()?;
            }
        }
        readback.wait()?;
        Ok(())
    })
}
