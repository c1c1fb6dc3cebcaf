//! Sums in the order in which the blocks of a GPU add them, so that vectors have the same sums on every device.
//!
//! Thread t of a grid adds the elements t, t + threads of the grid, …, a block adds its threads as a tree
//! (`gpu_kernels::verbs::sum_block`), and one block adds the blocks. Blocks and threads follow from the number of elements
//! alone.

use super::dispatch::dispatch;
use super::scalar::Scalar;
use crate::parallel;

/// Threads of a warp.
const WARP: usize = 32;
/// Threads of a block at most.
const MOST_THREADS: usize = 256;
/// Elements that each thread should have before a block more is worth launching.
const PER_THREAD: usize = 4;
/// Blocks at most: four for each of the 132 SMs of an H200. It is one number for every device, so that the order of the
/// additions is.
const MOST_BLOCKS: usize = 4 * 132;
/// Blocks whose threads' sums stay in the nearest cache.
const TOGETHER: usize = 16;
/// Elements that are worth several threads.
const MANY: usize = 64 * 1024;

/// Blocks and threads, as far as sums depend on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// At least one.
    pub blocks: usize,
    /// Of each block, whole warps.
    pub threads: usize,
}

impl Grid {
    /// That of a sum over `len` elements.
    ///
    /// ```
    /// use warpfuse::cpu::grid::Grid;
    /// assert_eq!(Grid::of(3), Grid { blocks: 1, threads: 32 });
    /// assert_eq!(Grid::of(1 << 40), Grid { blocks: 528, threads: 256 });
    /// ```
    pub fn of(len: usize) -> Grid {
        let threads = Grid::one_block(len, MOST_THREADS).threads;
        let blocks = len.div_ceil(threads * PER_THREAD);
        Grid {
            blocks: blocks.clamp(1, MOST_BLOCKS),
            threads,
        }
    }

    /// A thread for each of `len` elements, as far as blocks reach: for work whose parts wait, and whose sums have no order.
    ///
    /// ```
    /// use warpfuse::cpu::grid::Grid;
    /// assert_eq!(Grid::wide(20_000), Grid { blocks: 79, threads: 256 });
    /// ```
    pub fn wide(len: usize) -> Grid {
        let threads = Grid::one_block(len, MOST_THREADS).threads;
        Grid {
            blocks: len.div_ceil(threads).clamp(1, MOST_BLOCKS),
            threads,
        }
    }

    /// One block of no more than `most` threads, and no idle warp.
    pub fn one_block(len: usize, most: usize) -> Grid {
        let warps = len.div_ceil(WARP).clamp(1, (most / WARP).max(1));
        Grid {
            blocks: 1,
            threads: warps * WARP,
        }
    }

    /// K sums over `len` elements, of which `add` adds number i to the sums of a thread.
    ///
    /// ```
    /// use warpfuse::cpu::grid::Grid;
    /// let sums = Grid::of(4).sums(4, |i, [count, sum]| (*count, *sum) = (*count + 1.0, *sum + i as f64));
    /// assert_eq!(sums, [4.0, 6.0]);
    /// ```
    #[inline(always)]
    pub fn sums<const K: usize>(
        self,
        len: usize,
        add: impl FnMut(usize, &mut [f64; K]),
    ) -> [f64; K] {
        self.totals(&self.partials(len, add))
    }

    /// The sums of each block.
    #[inline(always)]
    pub fn partials<const K: usize>(
        self,
        len: usize,
        add: impl FnMut(usize, &mut [f64; K]),
    ) -> Vec<[f64; K]> {
        let mut partials = Vec::with_capacity(self.blocks);
        let mut run = each_lane(add);
        for first in (0..self.blocks).step_by(TOGETHER) {
            partials.extend(self.some(len, first, &mut run));
        }
        partials
    }

    /// Those of [`TOGETHER`] blocks, `first` the first of them; `run` adds the elements from a number on to the sums of as
    /// many threads.
    #[inline(always)]
    fn some<const K: usize>(
        self,
        len: usize,
        first: usize,
        run: &mut impl FnMut(usize, &mut [[f64; K]]),
    ) -> Vec<[f64; K]> {
        let blocks = TOGETHER.min(self.blocks - first);
        let mut lanes = vec![[0.0; K]; blocks * self.threads];
        dispatch(
            #[inline(always)]
            || {
                for start in (first * self.threads..len).step_by(self.blocks * self.threads) {
                    let count = lanes.len().min(len - start);
                    run(start, &mut lanes[..count]);
                }
            },
        );
        lanes.chunks_exact(self.threads).map(of_block).collect()
    }

    /// The sums of all blocks, as one block of these threads adds them.
    pub fn totals<const K: usize>(self, partials: &[[f64; K]]) -> [f64; K] {
        let mut lanes = vec![[0.0; K]; self.threads];
        for (i, partial) in partials.iter().enumerate() {
            let lane = &mut lanes[i % self.threads];
            lane.iter_mut().zip(partial).for_each(|(a, b)| *a += b);
        }
        of_block(&lanes)
    }
}

/// Elements of one piece that a block of as many threads as there can be adds up fast enough.
const ALONE: usize = 8192;
/// Threads of that block at most.
const ALONE_THREADS: usize = 1024;
/// Elements of a piece at most, as long as there are not [`MOST_ROUNDS`] pieces for each block.
const MOST_ELEMENTS: usize = 16 * 1024;
/// Pieces of each of the blocks at most: as many blocks of each of four GPUs have one then. All blocks add up the sums of
/// all pieces, which takes longer the more there are.
const MOST_ROUNDS: usize = 4;

/// The pieces of a vector's elements that are added up by themselves, by a block each, and whose sums are added then as one
/// block adds them. They follow from the number of elements alone, so that whoever has some of them, members of a group or one
/// device all, gets the same sums.
///
/// ```
/// use warpfuse::cpu::grid::Pieces;
/// assert_eq!(Pieces::of(8_192), Pieces { elements: 8_192, count: 1, threads: 1_024 });
/// assert_eq!(Pieces::of(29_890_095), Pieces { elements: 14_176, count: 2_109, threads: 256 });
/// let [sum] = Pieces::of(3).totals(&Pieces::of(3).sums(3, |i, [sum]| *sum += i as f64));
/// assert_eq!(sum, 3.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pieces {
    /// Elements of each, whole warps where there are several; the last one may have fewer.
    pub elements: usize,
    /// At least one.
    pub count: usize,
    /// Of a block.
    pub threads: usize,
}

impl Pieces {
    /// Those of `len` elements.
    pub fn of(len: usize) -> Pieces {
        if len <= ALONE {
            let Grid { threads, .. } = Grid::one_block(len, ALONE_THREADS);
            return Pieces {
                elements: len.max(1),
                count: 1,
                threads,
            };
        }
        let rounds = len.div_ceil(MOST_BLOCKS * MOST_ELEMENTS);
        let most = MOST_BLOCKS * rounds.min(MOST_ROUNDS);
        let wanted = len.div_ceil(MOST_THREADS * PER_THREAD).min(most);
        let elements = len.div_ceil(wanted).next_multiple_of(WARP);
        Pieces {
            elements,
            count: len.div_ceil(elements),
            threads: MOST_THREADS,
        }
    }

    /// Blocks that take `len` elements of some of the pieces.
    pub fn grid(self, len: usize) -> Grid {
        let own = len.div_ceil(self.elements);
        Grid {
            blocks: own.clamp(1, MOST_BLOCKS),
            threads: self.threads,
        }
    }

    /// K sums of each piece of `len` elements that are whole pieces, or end with the last one; `add` adds number i to the sums of
    /// a thread.
    pub fn sums<const K: usize>(
        self,
        len: usize,
        add: impl Fn(usize, &mut [f64; K]) + Sync,
    ) -> Vec<[f64; K]> {
        self.each(len, |start, count| {
            let of_block = Grid {
                blocks: 1,
                threads: self.threads,
            };
            of_block.partials(
                count,
                #[inline(always)]
                |i, sums| add(start + i, sums),
            )[0]
        })
    }

    /// `Σ aᵢ·bᵢ` of each piece, as [`Pieces::sums`], each product and sum rounded once.
    pub fn dots<T: Scalar>(self, a: &[T], b: &[T]) -> Vec<[f64; 1]> {
        self.each(a.len(), |start, count| {
            let (a, b) = (&a[start..start + count], &b[start..start + count]);
            let of_block = Grid {
                blocks: 1,
                threads: self.threads,
            };
            of_block.some(count, 0, &mut dot_of_lanes(a, b))[0]
        })
    }

    /// What `of_piece` makes of the first element and the number of elements of each piece.
    fn each<R: Send>(self, len: usize, of_piece: impl Fn(usize, usize) -> R + Sync) -> Vec<R> {
        let task = |number: usize| {
            let start = number * self.elements;
            of_piece(start, self.elements.min(len - start))
        };
        let own = len.div_ceil(self.elements);
        match len <= MANY {
            true => (0..own).map(task).collect(),
            false => parallel::map(own, task),
        }
    }

    /// The sums of all pieces, as one block adds them.
    pub fn totals<const K: usize>(self, of_pieces: &[[f64; K]]) -> [f64; K] {
        self.grid(0).totals(of_pieces)
    }
}

/// The sums over the threads of a block: a butterfly in each warp, and warps in order.
fn of_block<const K: usize>(lanes: &[[f64; K]]) -> [f64; K] {
    let mut sums = [0.0; K];
    let (warps, _) = lanes.as_chunks::<WARP>();
    for warp in warps {
        let mut warp = *warp;
        let mut distance = WARP / 2;
        while distance > 0 {
            let (low, high) = warp.split_at_mut(distance);
            for (low, high) in low.iter_mut().zip(&*high) {
                low.iter_mut().zip(high).for_each(|(a, b)| *a += b);
            }
            distance /= 2;
        }
        sums.iter_mut().zip(warp[0]).for_each(|(a, b)| *a += b);
    }
    sums
}

/// Adds elements from a number on to the sums of threads, one by one.
#[inline(always)]
fn each_lane<const K: usize>(
    mut add: impl FnMut(usize, &mut [f64; K]),
) -> impl FnMut(usize, &mut [[f64; K]]) {
    #[inline(always)]
    move |start, lanes| {
        for (i, lane) in lanes.iter_mut().enumerate() {
            add(start + i, lane);
        }
    }
}

/// `Σ aᵢ·bᵢ`, each product and sum rounded once.
pub(super) fn dot<T: Scalar>(a: &[T], b: &[T]) -> f64 {
    let grid = Grid::of(a.len());
    let of_some = |number: usize| grid.some(a.len(), number * TOGETHER, &mut dot_of_lanes(a, b));
    let pieces = grid.blocks.div_ceil(TOGETHER);
    let partials = if a.len() <= MANY {
        (0..pieces).flat_map(of_some).collect()
    } else {
        parallel::map(pieces, of_some).concat()
    };
    grid.totals(&partials)[0]
}

/// Adds products from a number on to the sums of threads.
#[inline(always)]
fn dot_of_lanes<T: Scalar>(a: &[T], b: &[T]) -> impl FnMut(usize, &mut [[f64; 1]]) {
    #[inline(always)]
    move |start, lanes| {
        let pairs = a[start..].iter().zip(&b[start..]);
        for ([sum], (a, b)) in lanes.iter_mut().zip(pairs) {
            *sum = f64::mul_add((*a).into(), (*b).into(), *sum);
        }
    }
}
