//! Columns of T in squares of 32 × 32.

use anyhow::{Result, ensure};
use warpfuse::device::Device;
use warpfuse::ops::Number;
use warpfuse::ops::qr::{Batch, Qr, TriangleForm};
use warpfuse::plan::qr::Made;
use warpfuse_tests::Subset;

use super::families::Kind;
use super::{judge, layouts, streams};
use crate::suite::{Suite, Test};

/// One pair of panels, and many; rows that end within 32 or within 16; fewer rows than columns.
const SHAPES: [(usize, usize); 5] = [(64, 64), (100, 64), (96, 131), (132, 128), (164, 160)];

/// More of them.
const LARGER: (usize, usize) = (224, 192);

/// 32 rows of T by a warp, and by a block.
const WAYS: [(&str, Made); 2] = [
    ("squares", Made::InSquares),
    ("shared-squares", Made::InSharedSquares),
];

/// Adds all cases.
pub fn add(suite: &mut Suite) {
    suite.add(Test::new("qr/squares/refused/f32"), refused);
    for way in WAYS {
        for shape in SHAPES {
            add_way(suite, way, (shape, Subset::Small));
        }
        add_way(suite, way, (LARGER, Subset::Full));
    }
    let parts_of = |dtype| Test::new(format!("qr/squares/parts/{dtype}"));
    suite.add_in_both(parts_of, parts::<f32>, parts::<f64>);
}

fn add_way(
    suite: &mut Suite,
    (way, made): (&str, Made),
    (shape, subset): ((usize, usize), Subset),
) {
    let (rows, cols) = shape;
    suite.add_in_both(
        |dtype| Test::new(format!("qr/{way}/{rows}x{cols}/{dtype}")).within(subset),
        move |device| forced::<f32>(device, shape, made),
        move |device| forced::<f64>(device, shape, made),
    );
}

fn in_squares<T: Number>(device: &Device, batch: Batch, made: Made) -> Result<Qr<T>> {
    let qr = Qr::new(device, batch, TriangleForm::Whole)?;
    Ok(qr.with_columns_of_t(made)?)
}

fn forced<T: Number>(device: &Device, (rows, cols): (usize, usize), made: Made) -> Result<()> {
    if device.is_cpu() {
        return Ok(());
    }
    let kinds = [
        Kind::Random,
        Kind::Graded,
        Kind::Nan,
        Kind::Tiny,
        Kind::Huge,
        Kind::ZeroColumns,
        Kind::Subnormal,
    ];
    // All kinds where a matrix is small.
    let kinds = match rows * cols > 10_000 {
        true => &kinds[..3],
        false => &kinds[..],
    };
    let batch = Batch::column_major(rows, cols, kinds.len());
    judge::<T>(device, in_squares(device, batch, made)?, kinds)
}

/// Parts of a batch in streams make the same bits.
fn parts<T: Number>(device: &Device) -> Result<()> {
    if device.is_cpu() {
        return Ok(());
    }
    // Of which three streams have none, four, and four.
    let batch = Batch::column_major(68, 64, 8);
    let a: Vec<T> = Kind::Random.draw((batch.rows, batch.cols * batch.count), 8);
    let a = device.upload(&a)?;
    for (_, made) in WAYS {
        let one = streams::bits(in_squares::<T>(device, batch, made)?.in_streams(1), &a)?;
        let found = streams::bits(in_squares::<T>(device, batch, made)?.in_streams(3), &a)?;
        ensure!(found == one, "three streams have other bits");
    }
    Ok(())
}

/// Matrices that do not consist of squares, or are of different shapes.
fn refused(device: &Device) -> Result<()> {
    if device.is_cpu() {
        return Ok(());
    }
    let narrow = Qr::<f32>::new(device, Batch::column_major(70, 45, 2), TriangleForm::Whole)?;
    let (matrices, ..) = layouts::ragged_of::<f32>(&[(64, 64), (96, 64)]);
    let ragged = Qr::<f32>::new(device, matrices, TriangleForm::Whole)?;
    for qr in [narrow, ragged] {
        let found = qr.with_columns_of_t(Made::InSquares);
        let error = found.expect_err("there are no squares").to_string();
        ensure!(error.contains("InSquares"), "found {error}");
    }
    Ok(())
}
