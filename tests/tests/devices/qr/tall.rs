//! R of tall matrices in every layout, of every kind, and of rows that are dressed.

use anyhow::{Context, Result, ensure};
use warpfuse::device::Device;
use warpfuse::ops::Number;
use warpfuse::ops::qr::{Dressing, Order, Piece, TallQr, TallSource};
use warpfuse_tests::Subset;
use warpfuse_tests::tolerance::unit_roundoff;

use super::Exact;
use super::families::Kind;
use crate::entries::number;
use crate::suite::{Suite, Test};

/// Where a matrix lies: its order, what lies between its lines, and before its first element.
#[derive(Debug, Clone, Copy)]
struct Lie {
    order: Order,
    gap: usize,
    offset: usize,
}

/// In whole packs or not.
const LIES: [Lie; 5] = [
    Lie {
        order: Order::RowMajor,
        gap: 0,
        offset: 0,
    },
    Lie {
        order: Order::RowMajor,
        gap: 1,
        offset: 4,
    },
    Lie {
        order: Order::ColumnMajor,
        gap: 0,
        offset: 8,
    },
    Lie {
        order: Order::ColumnMajor,
        gap: 3,
        offset: 0,
    },
    Lie {
        order: Order::RowMajor,
        gap: 4,
        offset: 3,
    },
];

/// Adds all cases.
pub fn add(suite: &mut Suite) {
    for (rows, cols) in [
        (516, 1),
        (600, 4),
        (528, 7),
        (1_040, 28),
        (517, 31),
        (560, 32),
    ] {
        let name = format!("qr/tall-lies-{rows}x{cols}/f32");
        suite.add(Test::new(name), move |device| {
            LIES.iter().try_for_each(|lie| {
                let source = r_of::<f32>(device, (rows, cols), (Kind::Random, *lie))?;
                expect(device, source, TallSource::Products).with_context(|| format!("{lie:?}"))
            })
        });
    }
    for kind in Kind::ALL {
        let name = format!("qr/tall-{kind:?}");
        suite.add(Test::new(format!("{name}/f32")), move |device| {
            judged::<f32>(device, kind)
        });
        suite.add(Test::new(format!("{name}/f64")), move |device| {
            judged::<f64>(device, kind)
        });
    }
    for (rows, cols) in [(700, 28), (530, 31), (640, 3)] {
        suite.add_in_both(
            |dtype| Test::new(format!("qr/tall-dressed-{rows}x{cols}/{dtype}")),
            move |device| dressed::<f32>(device, (rows, cols)),
            move |device| dressed::<f64>(device, (rows, cols)),
        );
    }
    let many = Test::new("qr/tall-many-blocks/f32").within(Subset::Full);
    suite.add(many, |device| {
        let source = r_of::<f32>(device, (70_003, 8), (Kind::Graded, LIES[0]))?;
        expect(device, source, TallSource::Products)
    });
}

/// Columns whose products say too little are factored by reflectors, others are not.
fn judged<T: Number>(device: &Device, kind: Kind) -> Result<()> {
    let shape = (900, 12);
    if !kind.is_finite() {
        let a: Vec<T> = kind.draw(shape, 3);
        let mut tall = TallQr::new(device, piece(shape, LIES[2]))?;
        tall.factor(&device.upload(&place(&a, shape, LIES[2]))?)?;
        ensure!(tall.status()?.not_finite, "{kind:?} is not told");
        return Ok(());
    }
    let source = r_of::<T>(device, shape, (kind, LIES[0]))?;
    let is_certain = !matches!(
        kind,
        Kind::NearDeficient | Kind::Deficient | Kind::ZeroColumns | Kind::Zero | Kind::Subnormal
    );
    match is_certain {
        true => expect(device, source, of_type::<T>()),
        false if kind == Kind::Subnormal => Ok(()),
        false => expect(device, source, TallSource::Reflectors),
    }
}

/// Where R of certain columns comes from on a GPU.
fn of_type<T: Number>() -> TallSource {
    if T::SIZE == 4 {
        TallSource::Products
    } else {
        TallSource::Reflectors
    }
}

fn expect(device: &Device, found: TallSource, expected: TallSource) -> Result<()> {
    let expected = if device.is_cpu() {
        TallSource::Reflectors
    } else {
        expected
    };
    ensure!(found == expected, "{found:?} instead of {expected:?}");
    Ok(())
}

fn piece((rows, cols): (usize, usize), lie: Lie) -> Piece {
    let inner = match lie.order {
        Order::ColumnMajor => rows,
        Order::RowMajor => cols,
    };
    Piece {
        rows,
        cols,
        offset: lie.offset,
        order: lie.order,
        ld: inner + lie.gap,
    }
}

/// A column-major matrix where it has to lie, and NaN where it does not.
fn place<T: Number>(a: &[T], shape: (usize, usize), lie: Lie) -> Vec<T> {
    let Piece {
        rows,
        cols,
        offset,
        order,
        ld,
    } = piece(shape, lie);
    let outer = match order {
        Order::ColumnMajor => cols,
        Order::RowMajor => rows,
    };
    let mut all = vec![number::<T>(f64::NAN); offset + ld * outer];
    for col in 0..cols {
        for row in 0..rows {
            let at = match order {
                Order::ColumnMajor => col * ld + row,
                Order::RowMajor => row * ld + col,
            };
            all[offset + at] = a[col * rows + row];
        }
    }
    all
}

/// Factors a matrix and judges R.
fn r_of<T: Number>(
    device: &Device,
    shape @ (rows, _): (usize, usize),
    (kind, lie): (Kind, Lie),
) -> Result<TallSource> {
    let a: Vec<T> = kind.draw(shape, 5 + rows as u64);
    let all = device.upload(&place(&a, shape, lie))?;
    let mut tall = TallQr::new(device, piece(shape, lie))?;
    // Twice: tickets are ready for the next launch.
    tall.factor(&all)?;
    tall.factor(&all)?;
    let wide: Vec<f64> = a.iter().map(|x| x.to_f64_exact()).collect();
    same_products(&wide, rows, &tall).with_context(|| format!("{kind:?}, {lie:?}"))?;
    ensure!(!tall.status()?.not_finite);
    Ok(tall.source()?)
}

/// RᵀR = (A + ΔA)ᵀ(A + ΔA) with a small ΔA, column by column: that holds of every kind of matrix.
fn same_products<T: Number>(a: &[f64], rows: usize, tall: &TallQr<T>) -> Result<()> {
    let (cols, r) = (a.len() / rows, tall.r()?);
    // Near 1, where squares are in range: by a power of two, in two steps.
    let largest = a.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
    let half = if largest > 0.0 {
        -(largest.log2() as i32) / 2
    } else {
        0
    };
    let near = |x: f64| x * 2.0_f64.powi(half) * 2.0_f64.powi(half);
    let a: Vec<f64> = a.iter().map(|x| near(*x)).collect();
    let r = r.mapv(|x| near(x.to_f64_exact()));
    let columns: Vec<&[f64]> = a.chunks(rows).collect();
    let dot =
        |i: usize, j: usize| -> f64 { columns[i].iter().zip(columns[j]).map(|(a, b)| a * b).sum() };
    let bound = 20.0 * cols as f64 * 2.0 * unit_roundoff(T::DTYPE);
    for i in 0..cols {
        ensure!(
            (0..i).all(|j| r[[i, j]] == 0.0),
            "row {i} of R is no row of a triangle"
        );
        for j in i..cols {
            let terms = (0..=i).map(|k| r[[k, i]] * r[[k, j]]);
            let (found, exact) = (terms.sum::<f64>(), dot(i, j));
            let scale = (dot(i, i) * dot(j, j)).sqrt();
            // Lengths that are themselves no normal numbers are as exact as these.
            let least = near(f64::from(f32::MIN_POSITIVE)) * dot(j, j).sqrt().max(dot(i, i).sqrt());
            let least = if T::SIZE == 4 { least } else { 0.0 };
            ensure!(
                (found - exact).abs() <= bound * scale + least,
                "({i}, {j}) of RᵀR is {found}, not {exact} ± {}",
                bound * scale
            );
        }
    }
    Ok(())
}

/// Centred columns, rows times roots, targets behind: R of what they become.
fn dressed<T: Number>(device: &Device, (rows, cols): (usize, usize)) -> Result<()> {
    let a: Vec<T> = Kind::Random.draw((rows, cols), 91);
    let targets: Vec<T> = Kind::Random.draw((rows, 1), 92);
    let roots: Vec<T> = (0..rows)
        .map(|i| number::<T>(0.5 + (i % 7) as f64))
        .collect();
    let means: Vec<T> = (0..cols).map(|j| number::<T>(j as f64 / 8.0)).collect();
    let on_device = [&targets, &roots, &means].map(|list| device.upload(list));
    let [targets_there, roots_there, means_there] = on_device;
    let (targets_there, roots_there, means_there) = (targets_there?, roots_there?, means_there?);
    for lie in [LIES[0], LIES[1], LIES[3]] {
        let all = device.upload(&place(&a, (rows, cols), lie))?;
        for has_roots in [true, false] {
            for has_targets in [true, false] {
                let dressing = Dressing {
                    means: Some(&means_there),
                    roots: has_roots.then_some(&roots_there),
                    targets: has_targets.then_some(&targets_there),
                };
                let piece = piece((rows, cols), lie);
                let mut tall = match has_targets {
                    true => TallQr::with_targets(device, piece)?,
                    false => TallQr::new(device, piece)?,
                };
                tall.factor_dressed(&all, &dressing)?;
                let root = |i: usize| {
                    if has_roots {
                        roots[i].to_f64_exact()
                    } else {
                        1.0
                    }
                };
                let width = cols + usize::from(has_targets);
                let element = |j: usize, i: usize| match j == cols {
                    true => targets[i].to_f64_exact() * root(i),
                    false => (a[j * rows + i].to_f64_exact() - means[j].to_f64_exact()) * root(i),
                };
                let exact: Vec<f64> = (0..width)
                    .flat_map(|j| (0..rows).map(move |i| (j, i)))
                    .map(|(j, i)| element(j, i))
                    .collect();
                same_products(&exact, rows, &tall).with_context(|| {
                    format!("{lie:?}, roots {has_roots}, targets {has_targets}")
                })?;
                expect(device, tall.source()?, of_type::<T>())?;
            }
        }
    }
    Ok(())
}
