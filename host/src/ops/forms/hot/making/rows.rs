//! Which rows share a slice.

use gpu_kernels::In;
use gpu_kernels::forms::hot::{OrderArgs, OrderVariant};
use gpu_kernels::fused::hot::lengths::{KEYS, keys};
use gpu_kernels::fused::hot::{CLASSES, LANES, NONE};

use super::columns::Columns;
use super::launch::{Order, WARP, no_order};
use crate::device::Buffer;
use crate::layout::parallel::sum_up;
use crate::ops::OpError;

/// Rows in the order of slices.
pub(super) struct Rows {
    /// The row at each position; none where they are the same.
    pub order: Option<Buffer<u32>>,
    /// The slices behind the last of each class.
    pub slices: [u32; CLASSES],
    pub positions: usize,
    /// The steps before each slice, and their number.
    pub steps: Buffer<u64>,
    pub hot_steps: usize,
    pub cold_steps: usize,
    /// The cold entries before each position, and their number.
    pub cold_offsets: Buffer<u32>,
    pub cold_entries: u32,
}

/// What is known of each row.
struct Lengths {
    hot: Buffer<u32>,
    cold: Buffer<u32>,
    keys: Buffer<u32>,
}

/// Where rows go: the first position of each key, and positions without a row.
struct Places {
    starts: Vec<u32>,
    slices: [u32; CLASSES],
    padding: Vec<std::ops::Range<usize>>,
    positions: usize,
}

impl Places {
    /// Of the number of rows of each key; each class begins with a slice.
    fn of(totals: &[u32]) -> Self {
        let (mut starts, mut padding) = (Vec::new(), Vec::new());
        let (mut slices, mut count, mut position) = ([0; CLASSES], 0, 0);
        for (class, end) in slices.iter_mut().enumerate() {
            let (rows, first) = (WARP as u32 / LANES[class], position);
            for total in &totals[keys(class)] {
                starts.push(position);
                position += total;
            }
            let padded = first + (position - first).next_multiple_of(rows);
            padding.push(position as usize..padded as usize);
            position = padded;
            count += (padded - first) / rows;
            *end = count;
        }
        Places {
            starts,
            slices,
            padding,
            positions: position as usize,
        }
    }
}

impl Rows {
    /// Of this many rows with these offsets and columns.
    pub(super) fn of(
        order: &Order<'_>,
        (offsets, indices, rows): (In<'_, u32>, In<'_, u32>, usize),
        columns: &Columns,
    ) -> Result<Self, OpError> {
        let lengths = lengths(order, (offsets, indices, rows), columns)?;
        let tallies = order.tally(&lengths.keys, KEYS as usize)?;
        let places = Places::of(&tallies.totals);
        let is_even = tallies.totals.iter().filter(|count| **count > 0).count() == 1;
        let starts = places.starts.clone();
        let in_order = match is_even {
            true => None,
            false => {
                let mut to = order.device.zeros(places.positions)?;
                order.sort(&lengths.keys, (&tallies, starts), (&mut to, None))?;
                for padding in &places.padding {
                    to.write(padding.start, &vec![NONE; padding.len()])?;
                }
                Some(to)
            }
        };
        Self::stepped(order, (&lengths, places), in_order)
    }

    /// The steps of slices, and the cold entries before each position.
    fn stepped(
        order: &Order<'_>,
        (lengths, places): (&Lengths, Places),
        in_order: Option<Buffer<u32>>,
    ) -> Result<Self, OpError> {
        let slices = places.slices[CLASSES - 1] as usize;
        let mut steps: Buffer<u64> = order.device.zeros(slices + 1)?;
        let mut cold_offsets = order.device.zeros(places.positions + 1)?;
        let args = OrderArgs {
            rows: lengths.keys.len() as u32,
            slices: places.slices,
            order: in_order.as_ref().map_or(In::none(), Buffer::input),
            hot_lengths: lengths.hot.input(),
            cold_lengths: lengths.cold.input(),
            to: cold_offsets.output(),
            steps: steps.output(),
            ..no_order(slices)
        };
        order.run(OrderVariant::Stepped, slices, args)?;
        order.scan(&mut cold_offsets)?;
        let mut sums = steps.to_vec()?;
        sum_up(&mut sums);
        steps.copy_from_slice(&sums)?;
        let all = sums[slices];
        Ok(Rows {
            order: in_order,
            slices: places.slices,
            positions: places.positions,
            steps,
            hot_steps: all as u32 as usize,
            cold_steps: (all >> 32) as usize,
            cold_entries: cold_offsets.read_scalar(places.positions)?,
            cold_offsets,
        })
    }
}

fn lengths(
    order: &Order<'_>,
    (offsets, indices, rows): (In<'_, u32>, In<'_, u32>, usize),
    columns: &Columns,
) -> Result<Lengths, OpError> {
    let zeros = || order.device.zeros(rows);
    let mut lengths = Lengths {
        hot: zeros()?,
        cold: zeros()?,
        keys: zeros()?,
    };
    let args = OrderArgs {
        offsets,
        indices,
        members: columns.members.input(),
        to: lengths.hot.output(),
        second: lengths.cold.output(),
        third: lengths.keys.output(),
        ..no_order(rows)
    };
    order.run(OrderVariant::Rows, rows * WARP, args)?;
    Ok(lengths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_begin_with_slices() {
        let mut totals = vec![0; KEYS as usize];
        let classes: Vec<_> = (0..CLASSES).map(keys).collect();
        totals[classes[0].start + 3] = 2;
        totals[classes[1].start] = 3;
        totals[classes[4].start + 1] = 5;
        totals[classes[4].start + 7] = 12;
        let places = Places::of(&totals);
        assert_eq!(places.slices, [2, 4, 4, 4, 6]);
        assert_eq!(places.positions, 2 + 4 + 32);
        let starts = [classes[0].start + 3, classes[1].start, classes[4].start + 7];
        assert_eq!(starts.map(|key| places.starts[key]), [0, 2, 11]);
        let padding: Vec<_> = places
            .padding
            .into_iter()
            .filter(|p| !p.is_empty())
            .collect();
        assert_eq!(padding, [5..6, 23..38]);
    }
}
