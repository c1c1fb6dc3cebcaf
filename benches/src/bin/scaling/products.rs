//! Products and iterations of conjugate gradients, by one and by several.

use anyhow::Result;
use serde_json::json;
use warpfuse::device::Readback;
use warpfuse::learning::ResidentDataset;
use warpfuse::ops::cg::{CgVectors, Stop};
use warpfuse::ops::objective::{Evaluation, Intercept, Loss, ObjectiveOut, ObjectiveSums};
use warpfuse::ops::{Matrix, MatrixOptions, Product, Terms, vector};
use warpfuse::plan::fused::Summation;
use warpfuse::plan::scaling::{self, Machines};

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
        let mut alone = None;
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
                let found = members.run(*size, |member| {
                    time((member, wanted.summation), &grown, (is_weak, alone))
                })?;
                if *size == 1 {
                    alone = found.first().copied();
                }
            }
        }
    }
    Ok(())
}

/// Microseconds of a product: what it took, and what the planner expects.
type Times = (f64, Option<f64>);

fn time(
    (member, summation): (&Member, Summation),
    shape: &Shape,
    (is_weak, alone): (bool, Option<Times>),
) -> Result<Times> {
    let own = shape.features(member.rows(shape.rows))?;
    let device = &member.device;
    let options = MatrixOptions {
        summation,
        ..MatrixOptions::default()
    };
    let placed = ResidentDataset::for_evaluations(device, own, options, EVALUATIONS)?;
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
    let plan = x.used_plan(Product::Fused)?;
    let planned = plan.as_ref().and_then(|plan| plan.predicted_ns());
    let planned = planned.map(|ns| ns as f64 / 1e3);
    let sum_us = machines(member).sum_us((n * size_of::<f32>()) as u64);
    member.tell(&json!({
        "what": "product",
        "shape": shape.name,
        "rows": m,
        "cols": n,
        "per_row": shape.per_row,
        "members": member.group.size(),
        "scaling": if is_weak { "weak" } else { "strong" },
        "summation": format!("{summation:?}").to_lowercase(),
        "fused_us": 1e6 * product,
        "planned_us": planned,
        "sum_us": sum_us,
        // As `plan --gpus`, and from what one took.
        "predicted_us": planned.map(|planned| planned + sum_us),
        "predicted_from_one_us": from_one(planned, alone).map(|us| us + sum_us),
        "newton_us": 1e6 * newton,
        "plan": plan.map(ToString::to_string),
    }));
    Ok((1e6 * product, planned))
}

fn machines(member: &Member) -> Machines {
    Machines {
        gpus: member.group.size() as u32,
        nodes: 1,
        link: scaling::NVLINK,
        one_launch: scaling::ONE_LAUNCH,
        network: scaling::NETWORK,
    }
}

/// Microseconds of a member's product, of what one GPU took for all rows and what the planner says of both.
fn from_one(planned: Option<f64>, alone: Option<Times>) -> Option<f64> {
    let (measured, planned_alone) = alone?;
    Some(measured * planned? / planned_alone?)
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
