//! The three steps in one launch of one cluster of blocks, with the bits of three launches.
//!
//! Mapping: a *team* of [`TEAM`] threads takes a piece, as a block does in launches of its own, [`TEAMS`] of them in a block. A sum is
//! that of each warp, then that of the warps of a team, in their order, then that of pieces, as a block of a team's size adds them:
//! who has a piece writes its sums to the shared memory of all blocks, and every warp adds up what its block has.
//!
//! A barrier of the cluster takes the place of the end of a launch and of the next one's begin; one more comes first, since before it
//! another block may not be there. Shared memory: two f64 for each warp and round, and three for each piece.

use super::{
    CgArgs, Stepping, Turn, Turning, add_pair, load_pair, state_before, stride, write_state,
};
use crate::cta::{Cta, Shared, WARP};
use crate::scalar::Real;
use crate::table::{Launch, Violation};
use crate::verbs::{lane, load_together, sum_lanes};

/// Blocks of the cluster.
pub const CLUSTER: u32 = 8;
/// Threads of a team, which are those of a block in launches of three steps.
const TEAM: u32 = 256;
/// Teams of a block.
const TEAMS: u32 = 4;
/// Threads of a block.
pub const BLOCK: u32 = TEAM * TEAMS;
/// Pieces that a team takes, one after the other.
const ROUNDS: usize = 2;
/// Pieces at most.
pub const MOST_PIECES: u32 = CLUSTER * TEAMS * ROUNDS as u32;
/// Elements of a thread in a piece.
const EACH: usize = 4;
/// Elements of a piece at most.
pub const PIECE: u64 = TEAM as u64 * EACH as u64;

/// Warps of a block, and of a team.
const WARPS: u32 = BLOCK / WARP;
const TEAM_WARPS: u32 = TEAM / WARP;
/// Sums of one step at most, and of all steps.
const SUMS: u32 = 2;
const ALL_SUMS: u32 = 3;

/// Shared memory of a block.
pub(super) const fn shared_bytes() -> u64 {
    (SUMS * ROUNDS as u32 * WARPS + ALL_SUMS * MOST_PIECES) as u64 * 8
}

/// The sums of a thread, of each of its pieces.
type Sums<const K: usize> = [[f64; K]; ROUNDS];

/// What a block has in shared memory.
#[derive(Clone, Copy)]
struct Staged {
    of_warps: Shared<f64>,
    of_pieces: Shared<f64>,
}

impl Staged {
    #[inline(always)]
    fn new() -> Self {
        let of_warps = Shared::at(0, SUMS * ROUNDS as u32 * WARPS);
        Staged {
            of_warps,
            of_pieces: Shared::at(of_warps.end(), ALL_SUMS * MOST_PIECES),
        }
    }

    /// Puts the sums of each warp down; a barrier of the block must follow.
    #[inline(always)]
    fn put<C: Cta, const K: usize>(&self, cta: &C, sums: &Sums<K>) {
        let warp = cta.thread() / WARP;
        for (round, sums) in sums.iter().enumerate() {
            for (k, sum) in sums.iter().enumerate() {
                let of_warp = sum_lanes::<C, f64, WARP>(cta, *sum);
                if lane(cta) == 0 {
                    let at = (round * K + k) as u32 * WARPS + warp;
                    cta.shared_write(self.of_warps, at as usize, of_warp);
                }
            }
        }
    }

    /// The sum of a team over one of its pieces, and which piece and which sum it is: of each of the first threads of a block one.
    #[inline(always)]
    fn of_team<C: Cta, const K: usize>(&self, cta: &C) -> Option<(u32, u32, f64)> {
        let (team, which) = (cta.thread() % TEAMS, cta.thread() / TEAMS);
        if which >= (ROUNDS * K) as u32 {
            return None;
        }
        let first = which * WARPS + team * TEAM_WARPS;
        let mut sum = 0.0;
        for warp in 0..TEAM_WARPS {
            sum += cta.shared_read(self.of_warps, (first + warp) as usize);
        }
        let (round, k) = (which / K as u32, which % K as u32);
        Some((piece(cta, (round, team)), k, sum))
    }

    /// The sums over all pieces, of which `first` come before those of this step; two barriers, one of the cluster.
    #[inline(always)]
    fn totals<C: Cta, const K: usize>(
        &self,
        cta: &C,
        pieces: u32,
        (sums, first): (&Sums<K>, u32),
    ) -> [f64; K] {
        self.put(cta, sums);
        cta.sync();
        if let Some((piece, k, sum)) = self.of_team::<C, K>(cta) {
            let at = (first + k) * MOST_PIECES + piece;
            let mut to = 0;
            while to < CLUSTER {
                cta.shared_write_to(to, self.of_pieces, at as usize, sum);
                to += 1;
            }
        }
        cta.sync_cluster();
        core::array::from_fn(|k| {
            let own = (first + k as u32) * MOST_PIECES + lane(cta);
            let mut total = 0.0;
            for warp in 0..MOST_PIECES / WARP {
                let mut of_lane = 0.0;
                if warp * WARP + lane(cta) < pieces {
                    of_lane += cta.shared_read(self.of_pieces, (own + warp * WARP) as usize);
                }
                total += sum_lanes::<C, f64, WARP>(cta, of_lane);
            }
            total
        })
    }
}

/// The piece of a team of this block in a round.
#[inline(always)]
fn piece<C: Cta>(cta: &C, (round, team): (u32, u32)) -> u32 {
    (round * CLUSTER + cta.cluster_rank()) * TEAMS + team
}

/// Calls `each` for this thread's elements, with what `load` finds there, of N at once, and the sums of their piece.
#[inline(always)]
fn each_element<C: Cta, T, L, const K: usize, const N: usize>(
    cta: &C,
    args: &CgArgs<'_, T>,
    load: impl Fn(usize) -> L,
    each: impl Fn(usize, L, &mut [f64; K]),
) -> Sums<K> {
    let (team, thread) = (cta.thread() / TEAM, cta.thread() % TEAM);
    let mut all = [[0.0; K]; ROUNDS];
    for (round, sums) in all.iter_mut().enumerate() {
        let start = piece(cta, (round as u32, team)) as u64 * args.piece;
        let end = args.len.min(start + args.piece);
        let mut first = start + thread as u64;
        for _ in 0..EACH / N {
            let loaded: [Option<L>; N] = load_together(first, TEAM as u64, end, &load);
            for loaded in loaded {
                if let Some(loaded) = loaded {
                    each(first as usize, loaded, sums);
                }
                first += TEAM as u64;
            }
        }
    }
    all
}

/// See the head of the file.
#[inline(always)]
pub(super) fn iteration<C: Cta, T: Real, const N: usize>(cta: &C, args: &CgArgs<'_, T>) {
    cta.launch_bounds::<BLOCK, 1>();
    let (staged, pieces) = (Staged::new(), args.pieces);
    let pairs = each_element::<_, _, _, _, N>(
        cta,
        args,
        |i| load_pair(cta, args, i),
        |_, pair, sums: &mut [f64; 1]| add_pair(pair, sums),
    );
    let before = state_before(cta, args);
    // Now all blocks are there.
    cta.sync_cluster();
    let [pq] = staged.totals(cta, pieces, (&pairs, 0));
    let stride = stride(&before, pq, args.radius);
    let steps = each_element::<_, _, _, _, N>(
        cta,
        args,
        |i| Stepping::load(cta, args, i),
        |i, of, sums: &mut [f64; 2]| of.step(cta, args, (i, stride.length), sums),
    );
    let [rz, rr] = staged.totals(cta, pieces, (&steps, 1));
    let turn = Turn::of(&before, rz, stride.length);
    let shifts = each_element::<_, _, _, _, N>(
        cta,
        args,
        |i| Turning::load(cta, args, i),
        |i, of, sums: &mut [f64; 1]| of.turn(cta, args, (i, turn), sums),
    );
    if args.means.is_some() {
        staged.put(cta, &shifts);
        cta.sync();
        if let Some((piece, _, sum)) = staged.of_team::<C, 1>(cta)
            && piece < pieces
        {
            cta.write(args.shift_partials, piece as usize, sum);
        }
    }
    if cta.block() == 0 && cta.thread() == 0 {
        write_state(cta, args, [rz, rr, pq], stride);
    }
}

/// The contract of this one besides.
pub(super) fn check<T>(launch: &Launch, args: &CgArgs<'_, T>) -> Result<(), Violation> {
    Violation::equal("grid", CLUSTER as u64, launch.grid as u64)?;
    Violation::equal("block", BLOCK as u64, launch.block as u64)?;
    Violation::equal("number of the first piece", 0, args.first as u64)?;
    Violation::at_most("pieces", MOST_PIECES as u64, args.pieces as u64)?;
    Violation::at_most("elements of a piece", PIECE, args.piece)?;
    let own = args.len.div_ceil(args.piece.max(1)).max(1);
    Violation::equal("pieces at hand", args.pieces as u64, own)
}
