//! Least squares whose panels read A where it lies, and of tiny matrices in one launch.

use anyhow::{Context, Result, ensure};
use warpfuse::device::Device;
use warpfuse::ops::Number;
use warpfuse::ops::qr::{Batch, LeastSquares, Matrices, Status};
use warpfuse_tests::Subset;

use super::families::Kind;
use super::{layouts, products};
use crate::entries::number;
use crate::suite::{Suite, Test};

/// Adds all cases.
pub fn add(suite: &mut Suite) {
    add_type::<f32>(suite);
    add_type::<f64>(suite);
}

fn add_type<T: Number>(suite: &mut Suite) {
    for (cols, subset) in [(32, Subset::Small), (64, Subset::Full)] {
        let name = format!("qr/least-there-132x{cols}/{}", T::DTYPE);
        suite.add(Test::new(name).within(subset), move |device| {
            in_gaps::<T>(device, (132, cols))
        });
    }
    // Kernels of two columns a lane and of one.
    for (rows, cols) in [(8, 8), (16, 16), (32, 32), (16, 12)] {
        let name = format!("qr/least-tiny-{rows}x{cols}/{}", T::DTYPE);
        suite.add(Test::new(name), move |device| {
            among_others::<T>(device, (rows, cols))
        });
    }
}

/// Matrices of all kinds between random ones: each has its own status, and the random ones their solutions.
fn among_others<T: Number>(device: &Device, shape: (usize, usize)) -> Result<()> {
    let kinds: Vec<Kind> = Kind::ALL
        .iter()
        .flat_map(|kind| [*kind, Kind::Random])
        .collect();
    let seeds = (0..).zip(&kinds).map(|(i, kind)| (*kind, 70 + i));
    let a: Vec<Vec<T>> = seeds.map(|(kind, seed)| kind.draw(shape, seed)).collect();
    let (rows, count) = (shape.0, kinds.len());
    let (batch, of_c) = (
        Batch::column_major(rows, shape.1, count),
        Batch::column_major(rows, 1, count),
    );
    let c: Vec<T> = Kind::Random.draw((rows, count), 69);
    let mut x = device.upload(&c)?;
    let mut least = LeastSquares::new(device, batch, 1)?;
    least.solve(&device.upload(&a.concat())?, &mut x, &of_c)?;
    let (statuses, x) = (least.statuses()?, x.to_vec()?);
    for (i, (kind, status)) in kinds.iter().zip(statuses).enumerate() {
        let what = format!("matrix {i} ({kind:?}) has the status {status:?}");
        ensure!(status.not_finite != kind.is_finite(), "{what}");
        match kind {
            Kind::Zero | Kind::ZeroColumns => ensure!(status.zero_pivot, "{what}"),
            Kind::Random => {
                ensure!(status == Status::FINE, "{what}");
                let [c, x] = [&c, &x].map(|all| &all[i * rows..][..rows]);
                let one = Batch::column_major(rows, 1, 1);
                products::is_least::<T>(&a[i..=i], (c, x), &one)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Columns with gaps between them, as many matrices as there are multiprocessors and more, so that columns wait for the panels before
/// them. The last two have a NaN in A and in C.
fn in_gaps<T: Number>(device: &Device, (rows, cols): (usize, usize)) -> Result<()> {
    let count = device.limits().map_or(5, |limits| limits.sms as usize + 3);
    let batch = Batch {
        ld: rows + 4,
        stride: (rows + 4) * cols + 8,
        ..Batch::column_major(rows, cols, count)
    };
    let seeds = (0..count as u64).map(|i| 50 + i);
    let mut a: Vec<Vec<T>> = seeds.map(|i| Kind::Random.draw((rows, cols), i)).collect();
    let mut c: Vec<T> = Kind::Random.draw((rows, count), 49);
    a[count - 2][rows * cols - 1] = number::<T>(f64::NAN);
    c[rows * count - 1] = number::<T>(f64::NAN);
    let of_c = Batch::column_major(rows, 1, count);
    let placed = layouts::place(&a, &Matrices::from(batch));
    let mut x = device.upload(&c)?;
    let mut least = LeastSquares::new(device, batch, 1)?;
    least.solve(&device.upload(&placed)?, &mut x, &of_c)?;
    let statuses = least.statuses()?;
    for (i, status) in statuses.iter().enumerate() {
        // The CPU, which has no such panels, looks at A alone.
        let is_bad = i + 2 == count || (i + 1 == count && !device.is_cpu());
        ensure!(status.not_finite == is_bad, "matrix {i}: {status:?}");
    }
    let x = x.to_vec()?;
    products::is_least::<T>(&a[..count - 2], (&c, &x), &of_c).context("read there")
}
