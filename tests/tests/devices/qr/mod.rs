//! QR factorisations: every matrix of every batch against its residuals in f64.

mod emulated;
mod families;
mod layouts;
mod least;
mod others;
mod products;
mod spread;
mod squares;
mod streams;
mod tall;

use anyhow::{Result, ensure};
use families::Kind;
use gpu_kernels::qr::QrVariant;
use warpfuse::device::Device;
use warpfuse::matrix::Element;
use warpfuse::ops::Number;
use warpfuse::ops::qr::{Batch, Matrices, Qr, QrShape, Status, TriangleForm};
use warpfuse::plan::qr::{self as plan, QrPlan, panels, plan_with};
use warpfuse::reference::qr::{Factors, residuals};
use warpfuse_tests::Subset;
use warpfuse_tests::tolerance::unit_roundoff;

use super::suite::{Suite, Test};

/// Around lanes of 8, 16 and 32, chunks of 8 rows, panels of 32 columns, and what blocks hold.
const SHAPES: [(usize, usize); 38] = [
    (1, 1),
    (1, 2),
    (2, 1),
    (3, 3),
    (8, 8),
    (9, 7),
    (7, 9),
    (16, 16),
    (17, 15),
    (13, 17),
    (5, 31),
    (31, 5),
    (32, 32),
    (24, 32),
    (32, 9),
    (33, 1),
    (33, 33),
    (1, 33),
    (20, 40),
    (40, 20),
    (64, 64),
    (65, 63),
    (63, 70),
    (97, 35),
    (35, 97),
    (100, 100),
    (129, 40),
    (160, 130),
    (257, 33),
    (300, 70),
    (513, 20),
    (600, 300),
    (512, 512),
    (1_025, 30),
    (1_100, 60),
    (2_049, 20),
    (2_100, 40),
    (4_096, 9),
];

/// Adds all cases.
pub fn add(suite: &mut Suite) {
    for (turn, shape) in SHAPES.into_iter().enumerate() {
        add_shape(suite, shape, turn);
    }
    add_type::<f32>(suite);
    add_type::<f64>(suite);
    emulated::add(suite);
    layouts::add(suite);
    least::add(suite);
    others::add(suite);
    products::add(suite);
    spread::add(suite);
    squares::add(suite);
    streams::add(suite);
    tall::add(suite);
}

fn add_shape(suite: &mut Suite, (rows, cols): (usize, usize), turn: usize) {
    let subset = if rows * cols > 8_000 {
        Subset::Full
    } else {
        Subset::Small
    };
    suite.add_in_both(
        |dtype| Test::new(format!("qr/{rows}x{cols}/{dtype}")).within(subset),
        move |device| mixed::<f32>(device, (rows, cols), turn),
        move |device| mixed::<f64>(device, (rows, cols), turn + 1),
    );
}

fn add_type<T: Number>(suite: &mut Suite) {
    for panel in panels(T::SIZE) {
        let most = panel.most()[0] as usize;
        let subset = if most > 512 {
            Subset::Full
        } else {
            Subset::Small
        };
        let name = format!("qr/{}/{}", told(panel), T::DTYPE);
        suite.add(Test::new(name).within(subset), move |device| {
            by_panel::<T>(device, panel)
        });
    }
    for variant in plan::tiny() {
        let name = format!("qr/{}/{}", told(variant), T::DTYPE);
        suite.add(Test::new(name), move |device| {
            by_lanes::<T>(device, variant)
        });
    }
}

fn told(variant: QrVariant) -> String {
    match variant {
        QrVariant::Panel { lanes, rows, warps } => format!("panel-{lanes}-{rows}-{warps}"),
        QrVariant::Lanes { lanes, rows } => format!("lanes-{lanes}-{rows}"),
        QrVariant::Columns { lanes, each, rows } => format!("columns-{lanes}-{each}-{rows}"),
        other => format!("{other:?}"),
    }
}

/// A batch that has every kind of matrix once.
fn mixed<T: Number>(device: &Device, (rows, cols): (usize, usize), turn: usize) -> Result<()> {
    let kinds = kinds(device, rows * cols, turn);
    let batch = Batch::column_major(rows, cols, kinds.len());
    let qr = Qr::new(device, batch, TriangleForm::Whole)?;
    judge::<T>(device, qr, &kinds)
}

/// All kinds of matrices. Of large ones a GPU has five, and the CPU, which has one way for all shapes, one. Emulators have
/// every second kind of those that no warp holds, by turns.
fn kinds(device: &Device, elements: usize, turn: usize) -> Vec<Kind> {
    let all = Kind::ALL.into_iter();
    match Subset::of(device) {
        // Of one element type, every second shape is an emulator's.
        Subset::Small if elements > 32 * 32 => all.skip(turn / 2 % 2).step_by(2).collect(),
        Subset::Full if elements > 20_000 && device.is_cpu() => {
            all.skip(turn % 2).take(1).collect()
        }
        Subset::Full if elements > 20_000 => all.take(5).collect(),
        _ => all.collect(),
    }
}

fn by_panel<T: Number>(device: &Device, panel: QrVariant) -> Result<()> {
    if device.is_cpu() {
        return Ok(());
    }
    let rows = (panel.most()[0] as usize).saturating_sub(3);
    // A part of a panel; panels of any width, and a part of another.
    for cols in [9, 34] {
        let shape = QrShape { rows, cols };
        let kinds = [Kind::Random, Kind::Tiny, Kind::Graded];
        let batch = Batch::column_major(rows, cols, kinds.len());
        let plan = plan_with(&[panel], shape);
        ensure!(plan.is_some(), "the panel has room for its rows");
        let qr = Qr::with_plan(device, batch, TriangleForm::Whole, plan)?;
        judge::<T>(device, qr, &kinds)?;
    }
    Ok(())
}

/// Matrices that fill the entry, and such that do not.
fn by_lanes<T: Number>(device: &Device, variant: QrVariant) -> Result<()> {
    if device.is_cpu() {
        return Ok(());
    }
    let [most_rows, most_cols] = variant.most().map(|most| most as usize);
    for (rows, cols) in [
        (most_rows, most_cols),
        (most_rows - 1, most_cols),
        (3, most_cols - 2),
    ] {
        let kinds = Kind::ALL;
        let batch = Batch::column_major(rows, cols, kinds.len());
        let plan = Some(QrPlan::Lanes(variant));
        let qr = Qr::with_plan(device, batch, TriangleForm::Whole, plan)?;
        judge::<T>(device, qr, &kinds)?;
    }
    Ok(())
}

/// Factors column-major matrices without gaps, and judges each.
fn judge<T: Number>(device: &Device, mut qr: Qr<T>, kinds: &[Kind]) -> Result<()> {
    let Some(QrShape { rows, cols }) = qr.matrices().largest() else {
        return Ok(());
    };
    let drawn = kinds.iter().zip(100..);
    let a: Vec<Vec<T>> = drawn
        .map(|(kind, seed)| kind.draw((rows, cols), seed))
        .collect();
    let on_device = device.upload(&a.concat())?;
    qr.factor(&on_device)?;
    check::<T>(&qr, &a, kinds)
}

/// The factors of matrix `i`, in f64.
fn factors<T: Number>(qr: &Qr<T>) -> Result<Vec<Factors>> {
    let wide = |values: Vec<T>| -> Vec<f64> { values.iter().map(|x| x.to_f64_exact()).collect() };
    let all = wide(qr.factors().to_vec()?);
    let (first, t) = (wide(qr.first().to_vec()?), wide(qr.t().to_vec()?));
    let one = |i: usize| {
        let parts = qr.parts(i);
        let QrShape { rows, cols } = parts.shape;
        let least = rows.min(cols);
        Factors {
            rows,
            cols,
            packed: all[parts.factors..][..rows * cols].to_vec(),
            first: first[parts.first..][..least].to_vec(),
            t: t[parts.t..][..least * least].to_vec(),
        }
    };
    Ok((0..qr.matrices().count()).map(one).collect())
}

/// An element in f64.
trait Exact {
    fn to_f64_exact(&self) -> f64;
}

impl<T: Number> Exact for T {
    fn to_f64_exact(&self) -> f64 {
        <T as Element>::to_f64(*self)
    }
}

/// Every matrix against its gates, every status against its kind. `a` is column-major.
fn check<T: Number>(qr: &Qr<T>, a: &[Vec<T>], kinds: &[Kind]) -> Result<()> {
    let statuses = qr.statuses()?;
    for (i, factors) in factors(qr)?.into_iter().enumerate() {
        let (kind, status) = (kinds[i], statuses[i]);
        ensure!(
            status.not_finite != kind.is_finite(),
            "matrix {i} ({kind:?}) has the status {status:?}"
        );
        if !kind.is_finite() {
            continue;
        }
        let is_zero = kind == Kind::Zero || (kind == Kind::ZeroColumns && factors.cols > 1);
        if is_zero && (kind == Kind::Zero || factors.rows.min(factors.cols) > 1) {
            ensure!(
                status.zero_pivot,
                "matrix {i} ({kind:?}) has the status {status:?}"
            );
        }
        if kind == Kind::Random {
            ensure!(
                status == Status::FINE,
                "matrix {i} has the status {status:?}"
            );
        }
        gates::<T>(&a[i], &factors)
            .map_err(|error| error.context(format!("matrix {i} ({kind:?})")))?;
    }
    Ok(())
}

/// ‖R − QᵀA‖₁ ≤ 20·n·ε·‖A‖₁, ‖QᵀQ − I‖₁ ≤ 100·n·ε, zeros below T's diagonal.
fn gates<T: Number>(a: &[T], factors: &Factors) -> Result<()> {
    let wide: Vec<f64> = a.iter().map(|x| x.to_f64_exact()).collect();
    let found = residuals(&wide, factors);
    let epsilon = 2.0 * unit_roundoff(T::DTYPE);
    let n = factors.cols as f64;
    // Below the smallest normal number there is no relative accuracy: a unit of the last subnormal place for each term.
    let least = match T::SIZE {
        4 => f64::from(f32::from_bits(1)),
        _ => f64::from_bits(1),
    };
    let underflow = least * (factors.rows * factors.cols) as f64;
    let of_r = 20.0 * n * epsilon * found.norm + underflow;
    ensure!(found.of_r <= of_r, "‖R − QᵀA‖₁ is {} of {of_r}", found.of_r);
    let of_q = 100.0 * n * epsilon;
    ensure!(found.of_q <= of_q, "‖QᵀQ − I‖₁ is {} of {of_q}", found.of_q);
    let least = factors.rows.min(factors.cols);
    for i in 0..least {
        let below = &factors.t[i * least..][..i];
        ensure!(
            below.iter().all(|t| *t == 0.0),
            "row {i} of T has {below:?} below the diagonal"
        );
    }
    Ok(())
}

/// Places of equal shape as a batch would have them.
fn pieces_of(matrices: &Matrices) -> Vec<warpfuse::ops::qr::Piece> {
    (0..matrices.count()).map(|i| matrices.piece(i)).collect()
}
