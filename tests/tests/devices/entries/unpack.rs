//! Entries that unpack a block of X: what comes out is what was put in, bit by bit.

use anyhow::{Result, ensure};
use gpu_kernels::fused::{UnpackArgs, UnpackVariant};
use gpu_kernels::{Entry, In, Launch, Out};
use warpfuse::matrix::Element;
use warpfuse::ops::Number;
use warpfuse_tests::Subset;
use warpfuse_tests::generate::Random;
use warpfuse_tests::launcher::{Array, Launcher, guarded, unguarded};

use super::{blocks, grids, number};

/// Behind the end of an output.
const CANARY: f64 = -12_345.0;
const CANARY_COLUMN: u32 = 0xcafe_f00d;

/// Runs one entry on every length, with all blocks and grids.
pub fn check<L: Launcher, T: Number>(
    launcher: &L,
    entry: &'static Entry<T::Unpack>,
    subset: Subset,
) -> Result<()> {
    for len in [0, 1, 2, 31, 33, 255, 1_001] {
        for block in blocks(launcher, entry, subset)? {
            for &grid in grids(subset) {
                let shape = Launch {
                    grid,
                    block,
                    shared_bytes: 0,
                };
                match entry.variant {
                    UnpackVariant::Columns => columns::<L, T>(launcher, entry, shape, len)?,
                    UnpackVariant::OfRows => of_rows::<L, T>(launcher, entry, shape, len)?,
                    UnpackVariant::Narrow => narrow::<L, T>(launcher, entry, shape, len)?,
                    UnpackVariant::Lengths => lengths::<L, T>(launcher, entry, shape, len)?,
                    UnpackVariant::Bf16 | UnpackVariant::Single => {
                        values::<L, T>(launcher, entry, shape, len)?;
                    }
                }
            }
        }
    }
    Ok(())
}

fn no_args<'a, T>(len: usize) -> UnpackArgs<'a, T> {
    UnpackArgs {
        len: len as u64,
        packed: In::none(),
        offsets: In::none(),
        constants: In::none(),
        indices: Out::none(),
        values: Out::none(),
    }
}

/// Any word, of which kernels take the bits that they want.
fn words(len: usize, seed: usize) -> Vec<u32> {
    let random = &mut Random::new(seed as u64);
    (0..len)
        .map(|_| (random.signed() * 2e9) as i64 as u32)
        .collect()
}

fn half(words: &[u32], i: usize) -> u32 {
    words[i / 2] >> (16 * (i % 2)) & 0xffff
}

fn columns<L: Launcher, T: Number>(
    launcher: &L,
    entry: &'static Entry<T::Unpack>,
    shape: Launch,
    len: usize,
) -> Result<()> {
    let packed = words(len.div_ceil(2), len);
    let given = guarded(launcher, &packed, u32::MAX)?;
    let mut indices = guarded(launcher, &vec![7; len], CANARY_COLUMN)?;
    let args = UnpackArgs {
        packed: given.input(),
        indices: indices.output(),
        ..no_args(len)
    };
    launcher.launch(entry, shape, args)?;
    let found = unguarded(&indices, CANARY_COLUMN)?;
    let expected: Vec<u32> = (0..len).map(|i| half(&packed, i)).collect();
    ensure!(found == expected, "{len} columns");
    Ok(())
}

fn values<L: Launcher, T: Number>(
    launcher: &L,
    entry: &'static Entry<T::Unpack>,
    shape: Launch,
    len: usize,
) -> Result<()> {
    let is_half = entry.variant == UnpackVariant::Bf16;
    let packed = words(if is_half { len.div_ceil(2) } else { len }, len);
    let given = guarded(launcher, &packed, u32::MAX)?;
    let mut values = guarded(launcher, &vec![number::<T>(7.0); len], number(CANARY))?;
    let args = UnpackArgs {
        packed: given.input(),
        values: values.output(),
        ..no_args(len)
    };
    launcher.launch(entry, shape, args)?;
    for (i, found) in unguarded(&values, number(CANARY))?.into_iter().enumerate() {
        let bits = if is_half {
            half(&packed, i) << 16
        } else {
            packed[i]
        };
        let expected = f64::from(f32::from_bits(bits));
        let found = Element::to_f64(found);
        let is_same = found == expected || found.is_nan() && expected.is_nan();
        ensure!(
            is_same,
            "value {i} of {len} is {found}, expected {expected}"
        );
    }
    Ok(())
}

/// Rows of 0 to 70 entries, longer and shorter than a warp.
fn of_rows<L: Launcher, T: Number>(
    launcher: &L,
    entry: &'static Entry<T::Unpack>,
    shape: Launch,
    rows: usize,
) -> Result<()> {
    let (mut offsets, mut expected) = (vec![0_u32], Vec::new());
    let constants: Vec<T> = (0..rows)
        .map(|row| number(1.0 / (row + 3) as f64))
        .collect();
    for (row, constant) in constants.iter().enumerate() {
        expected.extend(std::iter::repeat_n(*constant, row * 13 % 71));
        offsets.push(expected.len() as u32);
    }
    let given = guarded(launcher, &constants, number(f64::NAN))?;
    let ends = guarded(launcher, &offsets, u32::MAX)?;
    let before = vec![number::<T>(7.0); expected.len()];
    let mut values = guarded(launcher, &before, number(CANARY))?;
    let args = UnpackArgs {
        constants: given.input(),
        offsets: ends.input(),
        values: values.output(),
        ..no_args(rows)
    };
    launcher.launch(entry, shape, args)?;
    ensure!(
        unguarded(&values, number(CANARY))? == expected,
        "{rows} rows"
    );
    Ok(())
}

/// Integers of 64 bits: those that 32 hold, and others.
fn narrow<L: Launcher, T: Number>(
    launcher: &L,
    entry: &'static Entry<T::Unpack>,
    shape: Launch,
    len: usize,
) -> Result<()> {
    let low = words(len, len + 1);
    let high = |i: usize| u32::from(i % 5 == 3) * (i as u32 + 1);
    let packed: Vec<u32> = (0..len).flat_map(|i| [low[i], high(i)]).collect();
    let given = guarded(launcher, &packed, u32::MAX)?;
    let mut indices = guarded(launcher, &vec![7; len], CANARY_COLUMN)?;
    let args = UnpackArgs {
        packed: given.input(),
        indices: indices.output(),
        ..no_args(len)
    };
    launcher.launch(entry, shape, args)?;
    let fits = |i: usize| if high(i) == 0 { low[i] } else { u32::MAX };
    let expected: Vec<u32> = (0..len).map(fits).collect();
    ensure!(
        unguarded(&indices, CANARY_COLUMN)? == expected,
        "{len} integers"
    );
    Ok(())
}

/// Differences of offsets, which need not ascend.
fn lengths<L: Launcher, T: Number>(
    launcher: &L,
    entry: &'static Entry<T::Unpack>,
    shape: Launch,
    rows: usize,
) -> Result<()> {
    let offsets = words(rows + 1, rows + 2);
    let given = guarded(launcher, &offsets, u32::MAX)?;
    let mut lengths = guarded(launcher, &vec![7; rows], CANARY_COLUMN)?;
    let args = UnpackArgs {
        offsets: given.input(),
        indices: lengths.output(),
        ..no_args(rows)
    };
    launcher.launch(entry, shape, args)?;
    let expected: Vec<u32> = offsets
        .windows(2)
        .map(|pair| pair[1].wrapping_sub(pair[0]))
        .collect();
    ensure!(
        unguarded(&lengths, CANARY_COLUMN)? == expected,
        "{rows} rows"
    );
    Ok(())
}
