//! Products, steps of Newton's method and iterations of conjugate gradients, by one and by several.

use anyhow::Result;
use serde_json::{Value, json};
use warpfuse::device::{Buffer, Readback};
use warpfuse::ops::cg::{CgProduct, CgVectors, Stop};
use warpfuse::ops::objective::{Evaluation, Intercept, Loss, ObjectiveOut, ObjectiveSums};
use warpfuse::ops::{
    Matrix, MatrixOptions, Overlap, Preparation, Product, Spread, Terms, Vectors, vector,
};
use warpfuse::plan::fused::Summation;
use warpfuse::plan::scaling::Columns;

use super::known::{Case, Sums, Way};
use super::members::Member;
use super::shared::{Job, Part};

/// Iterations of conjugate gradients in a Newton step.
const ITERATIONS: usize = 10;
/// Seconds that a time is taken for.
const SECONDS: f64 = 0.6;

/// Microseconds of what one member took, and of what the planner expected of it.
pub type Alone = (f64, Option<f64>);

/// Times them with each way of sums and of vectors, of which one alone has one, and tells.
pub fn time(job: &Job<'_>, part: &Part) -> Result<()> {
    let (overlaps, vectors) = (&job.wanted.overlaps, &job.wanted.vectors);
    let ways = match job.member.group.is_alone() {
        true => [1, 1],
        false => [overlaps.len(), vectors.len()],
    };
    for overlap in &overlaps[..ways[0]] {
        let mut options = MatrixOptions {
            summation: job.wanted.summation,
            overlap: *overlap,
            ..MatrixOptions::default()
        };
        let (device, features) = (&job.member.device, part.features.clone());
        let mut x = Matrix::prepared(device, features, options, job.wanted.preparation)?;
        for vectors in &vectors[..ways[1]] {
            options.vectors = *vectors;
            x.replan(options);
            time_of((job, part), &x, options)?;
        }
    }
    Ok(())
}

/// What the shape is called, with what was wanted besides: cases of their own.
fn name(job: &Job<'_>, options: &MatrixOptions) -> String {
    let mut name = job.made.shape.name.to_owned();
    match job.wanted.preparation {
        Preparation::Transpose => name += ", transpose",
        Preparation::Panels => name += ", panels",
        _ => {}
    }
    name += match options.overlap {
        Overlap::Never => ", sums afterwards",
        Overlap::Halves => ", in 2 slices",
        Overlap::Thirds => ", in 3 slices",
        _ => "",
    };
    name + match options.vectors {
        Vectors::Replicated => ", vectors replicated",
        Vectors::Spread => ", vectors spread",
        _ => "",
    }
}

/// What a member alone took is kept for the others.
fn time_of((job, part): (&Job<'_>, &Part), x: &Matrix<f32>, options: MatrixOptions) -> Result<()> {
    let (member, shape) = (job.member, &job.made.shape);
    let name = name(job, &options);
    let (device, summation) = (&member.device, options.summation);
    let (m, n) = (x.rows(), x.cols());
    let fused_us = 1e6 * fused(member, x)?;
    let target: Vec<f32> = part.numbers()?.iter().map(|label| *label as f32).collect();
    let target = device.upload(&target)?;
    let mut newton = Newton::new(x, &target)?;
    let newton_us = 1e6 * member.time_for(SECONDS, || newton.step())?;
    let cg_us = 1e6 * member.time_for(SECONDS, || newton.iterations())?;
    let plan = x.used_plan(Product::Fused)?;
    let planned = plan.as_ref().and_then(|plan| plan.predicted_ns());
    let planned = planned.map(|ns| ns as f64 / 1e3);
    let columns = summed(n, summation == Summation::Reproducible && !shape.is_dense());
    let sums = |count| Some(Sums { count, columns });
    let times = [
        ("fused", fused_us, sums(1)),
        ("newton", newton_us, sums(1 + ITERATIONS)),
        ("cg", cg_us, sums(ITERATIONS)),
    ];
    let sum_us = job
        .known
        .machines(member.group.size())
        .sum_us(n as u64 * columns.summed);
    let mut line = json!({
        "what": "product",
        "shape": name,
        "rows": m,
        "cols": n,
        "per_row": shape.per_row,
        "members": member.group.size(),
        "scaling": part.way.name(),
        "summation": format!("{summation:?}").to_lowercase(),
        "stored": x.problem().stored,
        "overlap": format!("{:?}", options.overlap).to_lowercase(),
        "slices": x.column_slices(),
        "vectors": format!("{:?}", options.vectors).to_lowercase(),
        // This member's, of n.
        "own_elements": newton.spread.as_ref().map_or(n, |spread| spread.own().len()),
        // Besides the product, in an iteration.
        "vectors_model": job.known.machines(member.group.size()).vector_work(&columns),
        "fused_us": fused_us,
        "planned_us": planned,
        "sum_us": sum_us,
        // As `plan --gpus`, and from what one took.
        "predicted_us": planned.map(|planned| planned + sum_us),
        "predicted_from_one_us": job.scaled_from_one(planned).map(|us| us + sum_us),
        "newton_us": newton_us,
        // Of the iterations in a step of Newton's method.
        "cg_us": cg_us,
        "cg_iterations": ITERATIONS,
        "plan": plan.map(ToString::to_string),
    });
    if member.group.is_first() {
        let case = Case {
            shape: format!("{name} {summation:?}").to_lowercase(),
            way: part.way,
            members: member.group.size(),
        };
        extend(&mut line, job.known.note(&case, &times));
        if part.way == Way::Strong && member.group.is_alone() {
            job.made.note_alone((fused_us, planned));
        }
    }
    member.tell(&line);
    Ok(())
}

/// Of n columns, what is added up of them: fixed-point numbers, or elements.
fn summed(n: usize, fixed: bool) -> Columns {
    Columns {
        cols: n as u64,
        element: 4,
        summed: if fixed { 12 } else { 4 },
        // As an H100 copies.
        memory_gb_s: 3_000.0,
    }
}

/// Adds fields to an object.
pub fn extend(line: &mut Value, fields: serde_json::Map<String, Value>) {
    if let Some(line) = line.as_object_mut() {
        line.extend(fields);
    }
}

fn fused(member: &Member, x: &Matrix<f32>) -> Result<f64> {
    let device = &member.device;
    let y = device.upload(&vec![0.25_f32; x.cols()])?;
    let weights = device.upload(&vec![0.5_f32; x.rows()])?;
    let mut w = device.zeros::<f32>(x.cols())?;
    let terms = Terms {
        weights: Some(&weights),
        ..Terms::default()
    };
    member.time_for(SECONDS, || Ok(x.fused(&y, &terms, &mut w)?))
}

/// What a step of Newton's method needs.
struct Newton<'a> {
    x: &'a Matrix<f32>,
    target: &'a Buffer<f32>,
    sums: Buffer<f64>,
    gradient: Buffer<f32>,
    curvature: Buffer<f32>,
    y: Buffer<f32>,
    residual: Buffer<f32>,
    solve: CgVectors<f32>,
    spread: Option<Spread>,
    readback: Readback,
}

impl<'a> Newton<'a> {
    fn new(x: &'a Matrix<f32>, target: &'a Buffer<f32>) -> Result<Newton<'a>> {
        let device = &target.device();
        let (m, n) = (x.rows(), x.cols());
        let mut residual = device.zeros::<f32>(n)?;
        vector::fill(-1.0, &mut residual)?;
        let (r, stop, spread) = (residual.try_clone()?, Stop::at(0.0), x.spread(n)?);
        let solve = CgVectors::spread_over(spread.clone(), device, r, None, None, stop)?;
        Ok(Newton {
            x,
            target,
            sums: device.zeros(ObjectiveSums::LEN)?,
            gradient: device.zeros(n)?,
            curvature: device.zeros(m)?,
            y: device.zeros(n)?,
            residual,
            readback: Readback::new(device, solve.state().len())?,
            solve,
            spread,
        })
    }

    /// An evaluation with curvatures, and the iterations.
    fn step(&mut self) -> Result<()> {
        let evaluation = Evaluation {
            scale: 1.0 / self.x.rows() as f32,
            ..Evaluation::new(Loss::Logistic, self.target)
        };
        let out = ObjectiveOut {
            curvature: Some(&mut self.curvature),
            ..ObjectiveOut::new(&mut self.sums, &mut self.gradient)
        };
        self.x.objective(&evaluation, &self.y, out)?;
        self.iterations()
    }

    /// Iterations of conjugate gradients over the Hessian, as far as a step has curvatures.
    fn iterations(&mut self) -> Result<()> {
        self.solve.restart(&self.residual, Stop::at(0.0))?;
        for iteration in 0..ITERATIONS {
            let CgProduct { p, q, state, .. } = self.solve.product();
            let out = ObjectiveOut {
                solve: Some(state),
                ..ObjectiveOut::new(&mut self.sums, q)
            };
            let (x, curvature) = (self.x, &self.curvature);
            let product = || x.hessian_product(curvature, Intercept::Absent, p, out);
            match &self.spread {
                Some(spread) => x.in_shares(*spread.shares(), product)?,
                None => product()?,
            }
            self.solve.advance()?;
            self.readback.submit(self.solve.state())?;
            if iteration > 0 {
                self.readback.wait()?;
            }
        }
        self.readback.wait()?;
        Ok(())
    }
}
