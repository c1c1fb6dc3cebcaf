//! The order in which sums over a dense X are reproducible, for kernels and for the CPU.
//!
//! Kernels of family `Dense` add in an order that their variant, the size of their blocks and the number of blocks
//! decide. With [`DenseArgs::chunks`](crate::fused::DenseArgs::chunks) the rows are shared out as to that many blocks, of which
//! a launch takes as many at a time as it has, and [`DenseTotals`](crate::fused::DenseTotals) adds up what each came to. So the
//! bits are those of one launch, whatever the grid; [`DenseOrder`] names it by the shape of X and the element type alone.
//!
//! Source: ours; a fixed tree is the usual way to reproducible sums.

use crate::cta::WARP;
use crate::fused::{DenseVariant, Held, Product, TeamSize};

/// Columns up to which rows are not padded to whole packs of 16 bytes: kernels take them as they come.
const UNPADDED_COLUMNS: u64 = 32;

/// Packs of rows from which these start at multiples of a cache line, of 8 packs. On an H200, f32, 1 GB: 6,016 columns in
/// 0.236 ms and 10,016 in 0.236, where 6,000 and 10,000 take 0.240 and 0.243 with rows that start at multiples of 64 bytes.
const ALIGNED_PACKS: u64 = 1_024;

/// Elements from one row to the next where 16 bytes hold `pack`: padding costs wider rows at most a part in ten.
pub const fn leading_dimension(cols: u64, pack: u64) -> u64 {
    match cols {
        ..=UNPADDED_COLUMNS => cols,
        _ if cols >= ALIGNED_PACKS * pack => cols.next_multiple_of(8 * pack),
        _ => cols.next_multiple_of(pack),
    }
}

/// Sums into which the chunks' are added, each by itself, before these are added.
pub const SLOTS: u32 = 32;

/// SMs of the device whose grids the chunks are made for, an H200's: its blocks all take as many.
const SMS: u64 = 132;
/// Chunks that such a block takes, so that devices with fewer SMs lose less. Each costs 3 µs: all blocks of an SM end
/// one, and begin to wait for the next, at the same time.
const ROUNDS: u64 = 2;

/// Columns up to which a warp holds a row in registers.
const OF_A_WARP: u64 = 1_024;
/// Packs of a row that a thread has in registers where a block holds it, of f32.
const BLOCK_PACKS: u64 = 2;
/// Threads of blocks whose warps work by themselves.
const THREADS: u32 = 128;
/// Threads of blocks with a ring, at most, and the packs of each that are compiled.
const RING_THREADS: u64 = crate::fused::dense::ring::THREADS as u64;
const RING_PACKS: [u64; 10] = [4, 6, 8, 10, 12, 16, 20, 24, 28, 32];

/// The order of sums over a dense X, as the launch that adds in it.
///
/// ```
/// use gpu_kernels::fused::{DenseOrder, Product, TeamSize};
/// let order = DenseOrder::of(Product::Fused, 1_000_000, 100, 4).expect("a block holds 100 columns");
/// assert_eq!((order.team, order.tl, order.threads), (TeamSize::Lanes(32), 4, Some(128)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DenseOrder {
    /// What is computed.
    pub product: Product,
    /// Who shares a row.
    pub team: TeamSize,
    /// Elements of a row per thread.
    pub tl: u32,
    /// Elements that follow one another in a thread.
    pub width: u32,
    /// Rows of a team that follow one another in its sums, but for [`Held::Ring`].
    pub rows: u32,
    /// Where rows are.
    pub held: Held,
    /// Threads of a block; `None` where the sums of a block do not depend on it.
    pub threads: Option<u32>,
    /// Parts into which the rows are shared out; 0 for [`Product::Forward`].
    pub chunks: u32,
}

impl DenseOrder {
    /// The order for m rows of n elements of `size` bytes; `None` where no kernel holds a row for
    /// [`Product::Fused`], which is [`Product::Forward`] and [`Product::Transposed`] then.
    pub fn of(product: Product, rows: u64, cols: u64, size: u32) -> Option<DenseOrder> {
        let pack = 16 / size;
        let in_packs = leading_dimension(cols, pack as u64).is_multiple_of(pack as u64);
        let order = match product {
            Product::Fused if (1..=pack as u64 / 2).contains(&cols) => {
                rows_of_threads(cols as u32, pack)
            }
            Product::Fused if !in_packs => tiles(cols, 1 + u32::from(cols.is_multiple_of(2)), pack),
            Product::Fused => fused(cols, pack)?,
            Product::Forward => half(product, cols, if in_packs { pack } else { 1 }, [1, 2, 2]),
            Product::Transposed => half(product, cols, if in_packs { pack } else { 1 }, [1, 2, 4]),
        };
        Some(DenseOrder {
            chunks: order.chunks_of(rows, cols, pack),
            ..order
        })
    }

    /// Whether an entry adds in this order.
    pub fn is_of(&self, variant: &DenseVariant) -> bool {
        let held = variant.held.held();
        let same_rows = variant.rows == self.rows || held == Held::Ring;
        let own = (variant.product, variant.team, variant.tl, variant.width);
        variant.cluster() == 1
            && held == self.held
            && same_rows
            && own == (self.product, self.team, self.tl, self.width)
    }

    /// Teams that run in lockstep.
    pub const fn teams(&self) -> u32 {
        match self.team {
            TeamSize::Lanes(lanes) => WARP / lanes,
            TeamSize::Block => 1,
        }
    }

    /// Groups of teams in a block that work by themselves.
    pub const fn groups(&self) -> u32 {
        match (self.team, self.threads) {
            (TeamSize::Lanes(_), Some(threads)) => threads / WARP,
            _ => 1,
        }
    }

    /// Rows that a group takes before a row of another group follows.
    pub const fn group_rows(&self) -> u64 {
        match self.held {
            Held::Ring => 1,
            _ => self.rows as u64 * self.teams() as u64,
        }
    }

    /// Panels into which n columns are cut.
    pub fn panels(&self, cols: u64) -> u64 {
        let team = self.team.threads(self.threads.unwrap_or(WARP));
        cols.div_ceil(team as u64 * self.tl as u64).max(1)
    }

    fn chunks_of(&self, rows: u64, cols: u64, pack: u32) -> u32 {
        let panels = self.panels(cols);
        let most = match self.product {
            Product::Forward => return 0,
            _ => (SMS * self.resident(pack) / panels).max(1) * self.rounds(),
        };
        let of_a_block = self.groups() as u64 * self.group_rows();
        most.min(rows.div_ceil(of_a_block)).max(1) as u32
    }

    /// Blocks that an SM holds, of those that are fastest.
    const fn resident(&self, pack: u32) -> u64 {
        let packs = self.tl / self.width;
        match (self.product, self.held, self.width, packs) {
            (Product::Transposed, _, 1, _) if pack == 4 => 6,
            (Product::Transposed, _, 1, _) | (Product::Transposed, _, 4, ..=2) => 4,
            (Product::Transposed, ..) => 3,
            (_, Held::Ring, _, ..=4) => 2,
            (_, Held::Ring, ..) => 1,
            (_, Held::Tiles, 1, packs) if self.teams() == WARP / 2 => match packs {
                ..=17 => 3,
                _ => 2,
            },
            (_, Held::Tiles, 1, 7) => 5,
            (_, Held::Tiles, ..=2, _) => 4,
            (_, Held::Tiles, _, ..=9) => 3,
            (_, Held::Tiles, ..) => 2,
            _ => match (self.team, self.width, packs) {
                (TeamSize::Block, ..) => 3,
                (_, 1, 1) if pack == 2 => 3,
                (_, 1, 2) => 3,
                (_, 4, ..=4) | (_, 2, 2 | 3) => 5,
                (_, 4, ..=6) | (_, 2, ..=7) => 4,
                (_, 4, _) => 3,
                _ => 2,
            },
        }
    }

    /// Wide rows fill a ring for long, and make long sums.
    const fn rounds(&self) -> u64 {
        match (self.held, self.tl / self.width) {
            (Held::Ring, 5..) => 1,
            _ => ROUNDS,
        }
    }
}

const ORDER: DenseOrder = DenseOrder {
    product: Product::Fused,
    team: TeamSize::Lanes(1),
    tl: 1,
    width: 1,
    rows: 8,
    held: Held::Registers,
    threads: Some(THREADS),
    chunks: 0,
};

/// The lanes for this many packs of a row, and the packs of each.
fn lanes(packs: u64) -> (u32, u32) {
    let lanes = packs.next_power_of_two().min(WARP as u64);
    (lanes as u32, packs.div_ceil(lanes).max(1) as u32)
}

/// Rows of up to 8 bytes: each in the registers of a thread, of blocks that are as large as three of an SM may be.
/// Two columns of f32 in 0.932 ms for 4 GB on an H200, in tiles, which wait for all warps of a block, in 1.048.
fn rows_of_threads(cols: u32, pack: u32) -> DenseOrder {
    let rows = if cols == 1 { 8 } else { 4 };
    DenseOrder {
        tl: cols,
        rows,
        threads: Some(pack * THREADS),
        ..ORDER
    }
}

/// Rows that start anywhere, or that are an odd number of packs: a thread on each.
fn tiles(cols: u64, width: u32, pack: u32) -> DenseOrder {
    let packs = cols.div_ceil(width as u64);
    // Packs of a thread that are compiled, and its rows at a time.
    let compiled: &[(u32, u32)] = match (width, pack) {
        (1, 4) => &TILES_OF_ONE,
        (1, _) => &TILES_OF_ONE_F64,
        (2, _) => &TILES_OF_TWO,
        _ => &TILES_OF_FOUR,
    };
    let found = compiled.iter().find(|(held, _)| *held as u64 >= packs);
    let (held, rows) = *found.expect("rows that are not padded have at most 31 elements");
    DenseOrder {
        tl: held * width,
        width,
        rows,
        held: Held::Tiles,
        ..ORDER
    }
}

/// Rows of as many packs of two: a warp on a row would have half of its lanes idle.
const OF_TWO_THREADS: core::ops::RangeInclusive<u64> = 17..=21;

/// Rows of an odd number of packs of two: half of the row for each of two threads.
fn tiles_of_two_threads(packs: u32) -> DenseOrder {
    DenseOrder {
        team: TeamSize::Lanes(2),
        tl: packs,
        width: 1,
        rows: 1,
        held: Held::Tiles,
        ..ORDER
    }
}

fn fused(cols: u64, pack: u32) -> Option<DenseOrder> {
    let packs = cols.div_ceil(pack as u64);
    if pack == 4 && (9..16).contains(&packs) && packs % 2 == 1 {
        return Some(tiles(cols, pack, pack));
    }
    if pack == 2 && OF_TWO_THREADS.contains(&packs) && packs % 2 == 1 {
        return Some(tiles_of_two_threads(packs as u32));
    }
    if cols <= OF_A_WARP {
        let (lanes, least) = lanes(packs);
        let (held, rows) = *REGISTERS.iter().find(|(held, _)| *held >= least)?;
        return Some(DenseOrder {
            team: TeamSize::Lanes(lanes),
            tl: held * pack,
            width: pack,
            rows,
            ..ORDER
        });
    }
    let (held, of_packs, rows) = if packs <= RING_THREADS * BLOCK_PACKS && pack == 4 {
        (Held::Registers, BLOCK_PACKS, 4)
    } else {
        let fits = |held: &&u64| packs <= RING_THREADS * **held;
        (Held::Ring, *RING_PACKS.iter().find(fits)?, 1)
    };
    Some(DenseOrder {
        team: TeamSize::Block,
        tl: of_packs as u32 * pack,
        width: pack,
        rows,
        held,
        threads: Some(RING_THREADS as u32),
        ..ORDER
    })
}

/// One of the halves, with this many packs of a thread for up to 32, 64 and more packs of a row.
fn half(product: Product, cols: u64, width: u32, held: [u32; 3]) -> DenseOrder {
    let packs = cols.div_ceil(width as u64);
    let held = match packs {
        ..=32 => held[0],
        33..=64 => held[1],
        _ => held[2],
    };
    let threads = match product {
        Product::Forward => None,
        _ => Some(2 * THREADS),
    };
    DenseOrder {
        product,
        team: TeamSize::Lanes(lanes(packs).0),
        tl: held * width,
        width,
        rows: 8 / held,
        threads,
        ..ORDER
    }
}

/// Packs of a thread that are compiled, and rows at a time: of [`Held::Registers`], 16 bytes each.
const REGISTERS: [(u32, u32); 10] = [
    (1, 8),
    (2, 4),
    (3, 2),
    (4, 2),
    (5, 1),
    (6, 1),
    (7, 1),
    (8, 2),
    (12, 1),
    (16, 1),
];
/// The same of [`Held::Tiles`], by the elements of a pack.
const TILES_OF_ONE: [(u32, u32); 10] = [
    (5, 4),
    (7, 4),
    (9, 2),
    (11, 2),
    (13, 2),
    (15, 2),
    (17, 2),
    (21, 1),
    (25, 1),
    (31, 1),
];
const TILES_OF_ONE_F64: [(u32, u32); 11] = [
    (3, 8),
    (5, 4),
    (7, 4),
    (9, 2),
    (11, 2),
    (13, 2),
    (15, 1),
    (17, 1),
    (21, 1),
    (25, 1),
    (31, 1),
];
const TILES_OF_TWO: [(u32, u32); 7] = [(3, 4), (5, 4), (7, 2), (9, 2), (11, 1), (13, 1), (15, 1)];
const TILES_OF_FOUR: [(u32, u32); 4] = [(9, 1), (11, 1), (13, 1), (15, 1)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Kernels;
    use crate::table::Family;

    const PRODUCTS: [Product; 3] = [Product::Fused, Product::Forward, Product::Transposed];

    /// All narrow widths, and wider ones.
    fn widths() -> impl Iterator<Item = u64> {
        (0..2_200).chain((2_200..70_000).step_by(61))
    }

    fn each_width_has_an_entry<T: Kernels>() {
        let held = RING_THREADS * 32 * 16 / T::SIZE as u64;
        for cols in widths() {
            for product in PRODUCTS {
                let Some(order) = DenseOrder::of(product, 1_000_000, cols, T::SIZE) else {
                    assert!(product == Product::Fused && cols > held, "{cols}: no order");
                    continue;
                };
                let mut entries = T::Dense::entries().iter();
                let entry = entries.find(|entry| order.is_of(&entry.variant));
                let entry = entry.unwrap_or_else(|| panic!("{cols}: no entry for {order:?}"));
                let threads = order.threads.unwrap_or(WARP);
                assert!(threads <= entry.variant.most_threads(), "{cols}: {order:?}");
                let columns = entry.variant.columns(threads);
                assert!(
                    product != Product::Fused || columns >= cols,
                    "{cols}: {order:?}"
                );
            }
        }
    }

    #[test]
    fn each_width_has_an_entry_that_holds_it() {
        each_width_has_an_entry::<f32>();
        each_width_has_an_entry::<f64>();
    }

    #[test]
    fn no_chunk_is_empty() {
        for cols in widths() {
            for rows in [1, 2, 77, 1_000, 123_456, u32::MAX as u64] {
                for product in [Product::Fused, Product::Transposed] {
                    let Some(order) = DenseOrder::of(product, rows, cols, 4) else {
                        continue;
                    };
                    let of_a_block = order.groups() as u64 * order.group_rows();
                    assert!((order.chunks as u64 - 1) * of_a_block < rows, "{order:?}");
                }
            }
        }
    }
}
