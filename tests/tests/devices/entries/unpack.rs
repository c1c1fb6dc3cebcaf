//! Entries that unpack a block of X: what comes out is what was put in, bit by bit.

use anyhow::{Result, ensure};
use gpu_kernels::fused::head::HEAD;
use gpu_kernels::fused::{UnpackArgs, UnpackVariant};
use gpu_kernels::{Entry, In, Launch, Out};
use warpfuse::device::Device;
use warpfuse::layout::head::HeadColumns;
use warpfuse::matrix::Element;
use warpfuse::ops::Number;
use warpfuse_tests::Subset;
use warpfuse_tests::generate::Random;
use warpfuse_tests::launcher::{Guarded, launch};

use super::{CANARY_WORD, input, launches, number, output, words};

/// Columns whose sums are added.
const COLUMNS: usize = 7;

/// Runs one entry on every length, with all blocks and grids.
pub fn check<T: Number>(
    device: &Device,
    entry: &'static Entry<T::Unpack>,
    subset: Subset,
) -> Result<()> {
    for len in [0, 1, 2, 31, 33, 255, 1_001] {
        for shape in launches(device, entry, subset, |_| 0)? {
            let trial = Trial::<T> {
                device,
                entry,
                shape,
                len,
            };
            match entry.variant {
                UnpackVariant::Columns => trial.columns()?,
                UnpackVariant::OfRows => trial.of_rows()?,
                UnpackVariant::Narrow => trial.narrow()?,
                UnpackVariant::Lengths => trial.lengths()?,
                UnpackVariant::Marked => trial.marked()?,
                UnpackVariant::Bf16 | UnpackVariant::Single => trial.values()?,
                UnpackVariant::Counted => trial.counted()?,
                UnpackVariant::Added => trial.added()?,
            }
        }
    }
    Ok(())
}

/// One launch of one entry, over this many columns, values, rows or integers.
struct Trial<'a, T: Number> {
    device: &'a Device,
    entry: &'static Entry<T::Unpack>,
    shape: Launch,
    len: usize,
}

impl<T: Number> Trial<'_, T> {
    fn columns(&self) -> Result<()> {
        let packed = random_words(self.len.div_ceil(2), self.len);
        let given = words(self.device, &packed)?;
        let expected: Vec<u32> = (0..self.len).map(|i| half(&packed, i)).collect();
        self.indices(&expected, |args| args.packed = given.input())
    }

    /// Integers of 64 bits: those that 32 hold, and others.
    fn narrow(&self) -> Result<()> {
        let low = random_words(self.len, self.len + 1);
        let high = |i: usize| u32::from(i % 5 == 3) * (i as u32 + 1);
        let packed: Vec<u32> = (0..self.len).flat_map(|i| [low[i], high(i)]).collect();
        let given = words(self.device, &packed)?;
        let fits = |i: usize| if high(i) == 0 { low[i] } else { u32::MAX };
        let expected: Vec<u32> = (0..self.len).map(fits).collect();
        self.indices(&expected, |args| args.packed = given.input())
    }

    /// Differences of offsets, which need not ascend.
    fn lengths(&self) -> Result<()> {
        let offsets = random_words(self.len + 1, self.len + 2);
        let given = words(self.device, &offsets)?;
        let pairs = offsets.windows(2);
        let expected: Vec<u32> = pairs.map(|pair| pair[1].wrapping_sub(pair[0])).collect();
        self.indices(&expected, |args| args.offsets = given.input())
    }

    /// Columns with a place, without one, and beyond the list.
    fn marked(&self) -> Result<()> {
        let order = [40, 3, 31, 0, 32, 63, 1];
        let layout = HeadColumns::of(&order, 64);
        let column = |i: usize| (i * 7 % 90) as u32;
        let columns: Vec<u32> = (0..self.len).map(column).collect();
        let given = words(self.device, &columns)?;
        // Kernels look at all of it.
        let members = self.device.upload(&layout.members)?;
        let places = words(self.device, &layout.places)?;
        let marked = |column: &u32| match order.iter().position(|own| own == column) {
            None => *column,
            Some(place) => place as u32 | HEAD,
        };
        let expected: Vec<u32> = columns.iter().map(marked).collect();
        self.indices(&expected, |args| {
            args.packed = given.input();
            (args.members, args.places) = (members.input(), places.input());
        })
    }

    fn values(&self) -> Result<()> {
        let is_half = self.entry.variant == UnpackVariant::Bf16;
        let words_of = |len: usize| if is_half { len.div_ceil(2) } else { len };
        let packed = random_words(words_of(self.len), self.len);
        let given = words(self.device, &packed)?;
        let single = |i: usize| match is_half {
            true => f32::from_bits(half(&packed, i) << 16),
            false => f32::from_bits(packed[i]),
        };
        let expected: Vec<T> = (0..self.len).map(|i| number(single(i).into())).collect();
        self.numbers(&expected, |args| args.packed = given.input())
    }

    /// Rows of 0 to 70 entries, longer and shorter than a warp.
    fn of_rows(&self) -> Result<()> {
        let (mut offsets, mut expected) = (vec![0_u32], Vec::new());
        let constants = (0..self.len).map(|row| number(1.0 / (row + 3) as f64));
        let constants: Vec<T> = constants.collect();
        for (row, constant) in constants.iter().enumerate() {
            expected.extend(std::iter::repeat_n(*constant, row * 13 % 71));
            offsets.push(expected.len() as u32);
        }
        let given = input(self.device, &constants)?;
        let ends = words(self.device, &offsets)?;
        self.numbers(&expected, |args| {
            (args.constants, args.offsets) = (given.input(), ends.input());
        })
    }

    /// Entries of seven columns: small whole numbers, whose sums are exact in any order.
    fn entries(&self) -> (Vec<u32>, Vec<T>) {
        let columns = (0..self.len).map(|i| (i * 5 % COLUMNS) as u32);
        let value = |i: usize| number((i % 4) as f64);
        (columns.collect(), (0..self.len).map(value).collect())
    }

    /// With values of which three in four are not 1, and without any.
    fn counted(&self) -> Result<()> {
        let (columns, values) = self.entries();
        let mut expected = vec![2.0; COLUMNS + 1];
        for (column, i) in columns.iter().zip(0..) {
            expected[*column as usize] += 1.0;
            expected[COLUMNS] += f64::from(u8::from(i % 4 != 1));
        }
        self.sums(&columns, Some(&values), &expected)?;
        expected[COLUMNS] = 2.0;
        self.sums(&columns, None, &expected)
    }

    fn added(&self) -> Result<()> {
        let (columns, values) = self.entries();
        let mut expected = vec![2.0; 2 * COLUMNS];
        for (column, value) in columns.iter().zip(&values) {
            let (at, value) = (2 * *column as usize, Element::to_f64(*value));
            expected[at] += value;
            expected[at + 1] += value * value;
        }
        self.sums(&columns, Some(&values), &expected)
    }

    /// Launches over these entries and compares what was added to sums of 2 each.
    fn sums(&self, columns: &[u32], values: Option<&[T]>, expected: &[f64]) -> Result<()> {
        let given = words(self.device, columns)?;
        let values = values
            .map(|values| input(self.device, values))
            .transpose()?;
        // Its last element is where it ends.
        let mut found = self.device.upload(&vec![2.0_f64; expected.len()])?;
        let args = UnpackArgs {
            packed: given.input(),
            constants: values.as_ref().map_or(In::none(), |values| values.input()),
            sums: found.output(),
            ..no_args(self.len)
        };
        launch(self.device, self.entry, self.shape, args)?;
        ensure!(found.to_vec()? == expected, "{} entries", self.len);
        Ok(())
    }

    /// Launches with the given inputs and compares the indices that come out.
    fn indices<'a>(&self, expected: &[u32], give: impl FnOnce(&mut UnpackArgs<'a, T>)) -> Result<()>
    where
        T: 'a,
    {
        let mut found = Guarded::new(self.device, &vec![7; expected.len()], CANARY_WORD)?;
        let mut args = no_args(self.len);
        give(&mut args);
        let args = UnpackArgs {
            indices: found.output(),
            ..args
        };
        launch(self.device, self.entry, self.shape, args)?;
        ensure!(found.values()? == expected, "{} indices", self.len);
        Ok(())
    }

    /// The same of numbers.
    fn numbers<'a>(&self, expected: &[T], give: impl FnOnce(&mut UnpackArgs<'a, T>)) -> Result<()>
    where
        T: 'a,
    {
        let mut found = output(self.device, &vec![number::<T>(7.0); expected.len()])?;
        let mut args = no_args(self.len);
        give(&mut args);
        let args = UnpackArgs {
            values: found.output(),
            ..args
        };
        launch(self.device, self.entry, self.shape, args)?;
        for (i, (found, expected)) in found.values()?.into_iter().zip(expected).enumerate() {
            let (found, expected) = (Element::to_f64(found), Element::to_f64(*expected));
            let is_same = found == expected || found.is_nan() && expected.is_nan();
            ensure!(
                is_same,
                "number {i} of {} is {found}, expected {expected}",
                self.len
            );
        }
        Ok(())
    }
}

fn no_args<'a, T>(len: usize) -> UnpackArgs<'a, T> {
    UnpackArgs {
        len: len as u64,
        packed: In::none(),
        offsets: In::none(),
        constants: In::none(),
        members: In::none(),
        places: In::none(),
        indices: Out::none(),
        values: Out::none(),
        sums: Out::none(),
    }
}

/// Any words, of which kernels take the bits that they want.
fn random_words(len: usize, seed: usize) -> Vec<u32> {
    let random = &mut Random::new(seed as u64);
    (0..len)
        .map(|_| (random.signed() * 2e9) as i64 as u32)
        .collect()
}

fn half(words: &[u32], i: usize) -> u32 {
    words[i / 2] >> (16 * (i % 2)) & 0xffff
}
