//! Row-major and column-major batches with gaps, ragged ones, and what is refused.

use anyhow::{Result, ensure};
use warpfuse::device::{Buffer, Device};
use warpfuse::ops::qr::{Batch, Matrices, Order, Piece, Qr, TriangleForm};
use warpfuse::ops::{Number, OpError};

use super::families::Kind;
use super::{Exact, check, pieces_of};
use crate::entries::number;
use crate::suite::{Suite, Test};

/// Adds all cases.
pub fn add(suite: &mut Suite) {
    for (rows, cols) in [(6, 4), (16, 16), (32, 32), (12, 30), (45, 37), (70, 20)] {
        suite.add_in_both(
            |dtype| Test::new(format!("qr/strided-{rows}x{cols}/{dtype}")),
            move |device| strided::<f32>(device, (rows, cols)),
            move |device| strided::<f64>(device, (rows, cols)),
        );
    }
    suite.add(Test::new("qr/ragged-tiny/f32"), |device| {
        ragged::<f32>(device, TINY)
    });
    suite.add(Test::new("qr/ragged-tiny/f64"), |device| {
        ragged::<f64>(device, TINY)
    });
    suite.add(Test::new("qr/ragged/f32"), |device| {
        ragged::<f32>(device, MIXED)
    });
    suite.add(Test::new("qr/ragged/f64"), |device| {
        ragged::<f64>(device, MIXED)
    });
    suite.add(Test::new("qr/apart/f32"), apart::<f32>);
    suite.add(Test::new("qr/apart/f64"), apart::<f64>);
    suite.add(Test::new("qr/empty"), empty);
    suite.add(Test::new("qr/refuses"), refuses);
}

const TINY: &[(usize, usize)] = &[(3, 5), (16, 16), (1, 1), (9, 2), (13, 14), (2, 16), (16, 1)];
const MIXED: &[(usize, usize)] = &[
    (40, 33),
    (1, 1),
    (70, 5),
    (12, 66),
    (64, 64),
    (33, 32),
    (7, 3),
];

/// The matrices where `matrices` says, NaN everywhere else.
pub fn place<T: Number>(a: &[Vec<T>], matrices: &Matrices) -> Vec<T> {
    let pieces = pieces_of(matrices);
    let end = |piece: &Piece| piece.offset + piece.ld * piece.rows.max(piece.cols);
    let len = pieces.iter().map(end).max().unwrap_or(0);
    let mut all = vec![number(f64::NAN); len];
    for (a, piece) in a.iter().zip(&pieces) {
        for row in 0..piece.rows {
            for col in 0..piece.cols {
                let at = match piece.order {
                    Order::ColumnMajor => col * piece.ld + row,
                    Order::RowMajor => row * piece.ld + col,
                };
                all[piece.offset + at] = a[col * piece.rows + row];
            }
        }
    }
    all
}

/// Matrices in buffers of their own, row-major and column-major: the bits of one buffer.
fn apart<T: Number>(device: &Device) -> Result<()> {
    let shapes = MIXED.iter().copied();
    let pieces: Vec<Piece> = shapes
        .enumerate()
        .map(|(i, (rows, cols))| Piece {
            rows,
            cols,
            offset: i,
            order: [Order::ColumnMajor, Order::RowMajor][i % 2],
            ld: [rows, cols][i % 2] + i,
        })
        .collect();
    let draw = |(i, piece): (usize, &Piece)| -> Vec<T> {
        Kind::Random.draw((piece.rows, piece.cols), 40 + i as u64)
    };
    let a: Vec<Vec<T>> = pieces.iter().enumerate().map(draw).collect();
    let alone = |i: usize| place(&a[i..=i], &Matrices::Each(vec![pieces[i]]));
    let buffers = (0..a.len()).map(|i| device.upload(&alone(i)));
    let buffers = buffers.collect::<Result<Vec<_>, _>>()?;
    let mut together = pieces.clone();
    let mut before = 0;
    for (piece, buffer) in together.iter_mut().zip(&buffers) {
        piece.offset += before;
        before += buffer.len();
    }
    let expected = factored(device, &a, Matrices::Each(together))?;
    let mut qr = Qr::new(device, pieces, TriangleForm::Whole)?;
    let refs: Vec<&Buffer<T>> = buffers.iter().collect();
    qr.factor_apart(&refs)?;
    ensure!(qr.statuses()? == expected.statuses()?);
    ensure!(qr.factors().to_vec()? == expected.factors().to_vec()?);
    ensure!(qr.first().to_vec()? == expected.first().to_vec()?);
    ensure!(qr.t().to_vec()? == expected.t().to_vec()?);
    ensure!(qr.factor_apart(&refs[1..]).is_err());
    Ok(())
}

fn factored<T: Number>(device: &Device, a: &[Vec<T>], matrices: Matrices) -> Result<Qr<T>> {
    let on_device = device.upload(&place(a, &matrices))?;
    let mut qr = Qr::new(device, matrices, TriangleForm::Whole)?;
    qr.factor(&on_device)?;
    Ok(qr)
}

/// The same bits whatever the strides.
fn strided<T: Number>(device: &Device, (rows, cols): (usize, usize)) -> Result<()> {
    let kinds = [
        Kind::Random,
        Kind::Huge,
        Kind::Nan,
        Kind::Deficient,
        Kind::Clustered,
    ];
    let drawn = kinds.iter().zip(7..);
    let a: Vec<Vec<T>> = drawn
        .map(|(kind, seed)| kind.draw((rows, cols), seed))
        .collect();
    let dense = Batch::column_major(rows, cols, kinds.len());
    let first = factored(device, &a, dense.into())?;
    check(&first, &a, &kinds)?;
    let by_row = Batch::row_major(rows, cols, kinds.len());
    for batch in [
        by_row,
        Batch {
            ld: rows + 3,
            stride: (rows + 3) * cols + 5,
            ..dense
        },
        Batch {
            ld: cols + 1,
            stride: (cols + 1) * rows + 2,
            ..by_row
        },
    ] {
        let other = factored(device, &a, batch.into())?;
        let bits = |qr: &Qr<T>| -> Result<Vec<u64>> {
            let all = [
                qr.factors().to_vec()?,
                qr.first().to_vec()?,
                qr.t().to_vec()?,
            ];
            let bits = all
                .concat()
                .into_iter()
                .map(|x| match x.to_f64_exact().is_nan() {
                    true => u64::MAX,
                    false => gpu_kernels::Word::to_bits(x),
                });
            Ok(bits.collect())
        };
        ensure!(bits(&other)? == bits(&first)?, "{batch:?} gives other bits");
    }
    Ok(())
}

fn ragged<T: Number>(device: &Device, shapes: &[(usize, usize)]) -> Result<()> {
    let (matrices, a, kinds) = ragged_of::<T>(shapes);
    check(&factored(device, &a, matrices)?, &a, &kinds)
}

/// Matrices of these shapes, by rows and by columns, with gaps: where they lie, what they are, and their kinds.
pub fn ragged_of<T: Number>(shapes: &[(usize, usize)]) -> (Matrices, Vec<Vec<T>>, Vec<Kind>) {
    let kinds: Vec<Kind> = Kind::ALL.into_iter().cycle().take(shapes.len()).collect();
    let drawn = shapes.iter().zip(&kinds).zip(30..);
    let a: Vec<Vec<T>> = drawn
        .map(|((shape, kind), seed)| kind.draw(*shape, seed))
        .collect();
    let mut offset = 3;
    let piece = |(i, &(rows, cols)): (usize, &(usize, usize))| {
        let order = if i % 2 == 0 {
            Order::ColumnMajor
        } else {
            Order::RowMajor
        };
        let ld = i % 3 + if i % 2 == 0 { rows } else { cols };
        let piece = Piece {
            rows,
            cols,
            offset,
            order,
            ld,
        };
        offset += ld * rows.max(cols) + 1;
        piece
    };
    let pieces: Vec<Piece> = shapes.iter().enumerate().map(piece).collect();
    (pieces.into(), a, kinds)
}

fn empty(device: &Device) -> Result<()> {
    let nothing = device.upload::<f32>(&[])?;
    let mut qr = Qr::<f32>::new(device, Batch::column_major(4, 4, 0), TriangleForm::Whole)?;
    qr.factor(&nothing)?;
    ensure!(qr.statuses()?.is_empty());
    let mut qr = Qr::<f32>::new(device, Vec::new(), TriangleForm::Panels)?;
    qr.factor(&nothing)?;
    let mut c = device.upload::<f32>(&[])?;
    qr.solve(&mut c, &Batch::column_major(4, 1, 0))?;
    Ok(())
}

fn refuses(device: &Device) -> Result<()> {
    let new = |batch| Qr::<f32>::new(device, batch, TriangleForm::Whole);
    for (rows, cols) in [(0, 3), (3, 0), (4_097, 2), (2, 4_097)] {
        let refused = new(Batch::column_major(rows, cols, 2)).err();
        ensure!(
            matches!(refused, Some(OpError::Qr(_))),
            "{rows}x{cols}: {refused:?}"
        );
    }
    let mut qr = new(Batch::column_major(3, 5, 2))?;
    let short = qr.factor(&device.zeros(29)?).err();
    ensure!(
        matches!(short, Some(OpError::Length { expected: 30, .. })),
        "{short:?}"
    );
    let narrow = Batch {
        ld: 2,
        ..Batch::column_major(3, 5, 2)
    };
    let refused = new(narrow)?.factor(&device.zeros(100)?).err();
    ensure!(
        matches!(refused, Some(OpError::Length { expected: 3, .. })),
        "{refused:?}"
    );
    qr.factor(&device.zeros(30)?)?;
    let mut c = device.zeros(6)?;
    let wide = qr.solve(&mut c, &Batch::column_major(3, 1, 2)).err();
    ensure!(matches!(wide, Some(OpError::Qr(_))), "{wide:?}");
    let other = qr.solve(&mut c, &Batch::column_major(3, 1, 3)).err();
    ensure!(other.is_some(), "a batch of another size was taken");
    Ok(())
}
