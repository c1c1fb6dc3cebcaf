//! Columns that tensor cores change: behind each panel, or in front of their own.

use anyhow::{Result, ensure};
use gpu_kernels::qr::QrVariant;
use warpfuse::device::Device;
use warpfuse::matrix::Dtype;
use warpfuse::ops::Number;
use warpfuse::ops::qr::{Batch, Matrices, Qr, QrShape, TriangleForm};
use warpfuse::plan::qr::{Lying, Others, QrPlan, plan_of};
use warpfuse_tests::Subset;

use super::families::Kind;
use super::{check, judge, layouts};
use crate::suite::{Suite, Test};

/// Whole strips, panels and columns; and parts of each.
const SHAPES: [(usize, usize); 6] = [
    (64, 96),
    (96, 64),
    (160, 64),
    (45, 70),
    (70, 45),
    (129, 100),
];

/// Adds all cases.
pub fn add(suite: &mut Suite) {
    for before in [false, true] {
        add_when(suite, before);
    }
    suite.add(Test::new("qr/tensor-mixed/f32"), mixed);
    suite.add(Test::new("qr/tensor-last-column/f32"), last_column);
}

fn add_when(suite: &mut Suite, before: bool) {
    let test = |case: String| {
        let when = if before { "before" } else { "behind" };
        move |dtype: Dtype| Test::new(format!("qr/tensor-{when}/{case}/{dtype}"))
    };
    for shape @ (rows, cols) in SHAPES {
        suite.add_in_both(
            test(format!("{rows}x{cols}")),
            move |device| forced::<f32>(device, shape, 8, before),
            move |device| forced::<f64>(device, shape, 8, before),
        );
    }
    // Kernels of their own, of each type.
    let of_16_warps = test("16-warps".to_owned());
    suite.add(of_16_warps(Dtype::F32), move |device| {
        forced::<f32>(device, (70, 64), 16, before)
    });
    suite.add(of_16_warps(Dtype::F64), move |device| {
        forced::<f64>(device, (70, 64), 16, before)
    });
    // Panels of more rows have 16 columns in f64.
    for (rows, cols, warps) in [([512, 512], 96, 8), ([1_000, 512], 64, 16)] {
        let test = test(format!("all-rows-of-{warps}-warps"));
        suite.add_in_both(
            |dtype| test(dtype).within(Subset::Full),
            move |device| forced::<f32>(device, (rows[0], cols), warps, before),
            move |device| forced::<f64>(device, (rows[1], cols), warps, before),
        );
    }
    suite.add_in_both(
        test("ragged".to_owned()),
        move |device| ragged::<f32>(device, before),
        move |device| ragged::<f64>(device, before),
    );
    suite.add_in_both(
        test("row-major".to_owned()),
        move |device| row_major::<f32>(device, before),
        move |device| row_major::<f64>(device, before),
    );
}

/// The planner's panels, and other columns by the kernel of this number of warps.
pub(super) fn plan<T: Number>(shape: QrShape, warps: u32, before: bool) -> QrPlan {
    let mut plan = plan_of(shape, T::SIZE, Lying::Otherwise);
    if let QrPlan::Panels(steps) = &mut plan {
        let kernel = QrVariant::Tensor { warps };
        for step in steps {
            step.others = match before {
                true => Others::Before(kernel),
                false => Others::Behind(kernel),
            };
        }
    }
    plan
}

fn qr<T: Number>(device: &Device, matrices: Matrices, warps: u32, before: bool) -> Result<Qr<T>> {
    let shape = matrices.largest().expect("there are matrices");
    let plan = plan::<T>(shape, warps, before);
    Ok(Qr::with_plan(
        device,
        matrices,
        TriangleForm::Whole,
        Some(plan),
    )?)
}

fn forced<T: Number>(
    device: &Device,
    (rows, cols): (usize, usize),
    warps: u32,
    before: bool,
) -> Result<()> {
    if device.is_cpu() {
        return Ok(());
    }
    let kinds = [
        Kind::Random,
        Kind::Graded,
        Kind::Nan,
        Kind::Tiny,
        Kind::Huge,
        Kind::Subnormal,
        Kind::Infinite,
    ];
    // All kinds where a matrix is small.
    let kinds = match rows * cols > 5_000 {
        true => &kinds[..3],
        false => &kinds[..],
    };
    let matrices = Batch::column_major(rows, cols, kinds.len()).into();
    judge::<T>(device, qr(device, matrices, warps, before)?, kinds)
}

/// A NaN behind the last panel is seen, whoever reads it.
fn last_column(device: &Device) -> Result<()> {
    if device.is_cpu() {
        return Ok(());
    }
    let (rows, cols) = (64, 96);
    let mut qr = qr::<f32>(device, Batch::column_major(rows, cols, 2).into(), 8, true)?;
    let mut a: Vec<f32> = Kind::Random.draw((rows, 2 * cols), 3);
    a[2 * rows * cols - 1] = f32::NAN;
    qr.factor(&device.upload(&a)?)?;
    let not_finite: Vec<bool> = qr.statuses()?.iter().map(|of| of.not_finite).collect();
    ensure!(not_finite == [false, true], "found {not_finite:?}");
    Ok(())
}

/// Matrices of different shapes, some of which end before a panel.
fn ragged<T: Number>(device: &Device, before: bool) -> Result<()> {
    if device.is_cpu() {
        return Ok(());
    }
    let shapes = [(40, 33), (1, 1), (70, 5), (12, 66), (64, 64), (7, 3)];
    let (matrices, a, kinds) = layouts::ragged_of(&shapes);
    let mut qr = qr(device, matrices.clone(), 8, before)?;
    qr.factor(&device.upload(&layouts::place(&a, &matrices))?)?;
    check::<T>(&qr, &a, &kinds)
}

/// Rows side by side.
fn row_major<T: Number>(device: &Device, before: bool) -> Result<()> {
    if device.is_cpu() {
        return Ok(());
    }
    let (rows, cols) = (64, 64);
    let kinds = [Kind::Random, Kind::Clustered];
    let batch = Batch {
        ld: cols + 3,
        stride: rows * (cols + 3),
        ..Batch::row_major(rows, cols, kinds.len())
    };
    let a: Vec<Vec<T>> = kinds
        .iter()
        .zip(7..)
        .map(|(kind, seed)| kind.draw((rows, cols), seed))
        .collect();
    let matrices = Matrices::from(batch);
    let mut qr = qr(device, matrices.clone(), 8, before)?;
    qr.factor(&device.upload(&layouts::place(&a, &matrices))?)?;
    check::<T>(&qr, &a, &kinds)
}

/// A plan in which some columns wait and others do not is refused.
fn mixed(device: &Device) -> Result<()> {
    if device.is_cpu() {
        return Ok(());
    }
    let matrices = Matrices::from(Batch::column_major(64, 64, 1));
    let shape = QrShape { rows: 64, cols: 64 };
    let mut plan = plan::<f32>(shape, 8, true);
    if let QrPlan::Panels(steps) = &mut plan {
        steps[1].others = Others::Behind(steps[1].update);
    }
    let mut qr = Qr::<f32>::with_plan(device, matrices, TriangleForm::Panels, Some(plan))?;
    let a = device.upload(&vec![1.0; 64 * 64])?;
    let error = qr.factor(&a).expect_err("the plan is mixed");
    ensure!(error.to_string().contains("all wait"), "found {error}");
    Ok(())
}
