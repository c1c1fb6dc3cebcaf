//! Blocks whose strips, panels and columns are all whole and lie in packs: addresses are added up instead of computed.

use super::super::args::QrArgs;
use super::block::Block;
use super::{
    Columns, ROWS, STRIP, STRIPS, TENSOR_COLUMNS, TILES, each_two, enlarge, of_v, one_panel, place,
    place_v, read_rows, square,
};
use crate::cta::{Cta, WARP};
use crate::verbs::lane;

/// Where a block copies from next, element by element of the arrays.
#[derive(Clone, Copy)]
struct Walk {
    /// The panel, and the end of all.
    panel: u32,
    until: u32,
    /// The warp's first row, and the end of all rows.
    row: u32,
    end: u32,
    /// The lane's first pack of the first strip of reflectors.
    v: u64,
    /// From a strip to the next, and four columns on.
    strip: u64,
    four: u64,
    /// The thread's first element of T.
    t: u64,
    /// Rows of T.
    least: u32,
    /// The lane's first component.
    first: u64,
}

impl Walk {
    #[inline(always)]
    fn new<C: Cta, const WARPS: u32>(cta: &C, block: &Block<WARPS>) -> Walk {
        let (lane, site, since) = (lane(cta), &block.site, block.since);
        let row = since + block.row(0);
        Walk {
            panel: since,
            until: block.until,
            row,
            end: site.rows,
            v: site.in_f(row + lane % 8 * 4, since + lane / 8) as u64,
            strip: (STRIP * WARPS) as u64,
            four: 4 * site.f_col,
            t: site.in_t(since + block.warp, since + lane) as u64,
            least: site.least(),
            first: site.first + (since + lane) as u64,
        }
    }

    /// The next panel.
    #[inline(always)]
    fn step(&mut self) {
        self.panel += TENSOR_COLUMNS;
        self.v += 8 * self.four;
        self.t += (TENSOR_COLUMNS * (self.least + 1)) as u64;
        self.first += TENSOR_COLUMNS as u64;
    }

    /// What holds of the first row of each strip that is there.
    #[inline(always)]
    fn strips<const WARPS: u32>(&self, holds: impl Fn(u32) -> bool) -> [bool; STRIPS as usize] {
        [0, 1].map(|strip| {
            let row = self.row + strip * STRIP * WARPS;
            row < self.end && holds(row)
        })
    }

    /// This warp's tiles that have rows of the panel: from the first to the end. Strips above the panel come first.
    #[inline(always)]
    fn tiles<const WARPS: u32>(&self) -> [u32; 2] {
        let count = |is: [bool; 2]| 4 * (is[0] as u32 + is[1] as u32);
        let above = count(self.strips::<WARPS>(|row| row + STRIP <= self.panel));
        [above, count(self.strips::<WARPS>(|_| true))]
    }

    /// Begins to copy the panel: this warp's rows of V, and of T.
    #[inline(always)]
    #[track_caller]
    fn stage<C: Cta, const WARPS: u32>(&self, cta: &C, args: &QrArgs<'_, f32>) {
        let thread = cta.fresh(cta.thread());
        let to = place(thread / WARP, thread % WARP);
        let mut at = self.t;
        for row in 0..TENSOR_COLUMNS / WARPS {
            let to = to + (row * WARPS * TENSOR_COLUMNS) as usize;
            cta.copy_of(square::<WARPS>(WARPS + 2), to, args.t, at as usize, true);
            at += (WARPS * self.least) as u64;
        }
        let from = self.strips::<WARPS>(|row| row + STRIP > self.panel);
        let steps = (self.v, self.strip, self.four);
        each_pack(cta, steps, from, |place, at| {
            cta.copy_pack_of(of_v(cta), place, args.f, at);
        });
        cta.end_copies();
    }
}

/// Calls `f` for the lane's packs of these strips: where it is in the warp's part, and where it is in a matrix; `at` is there the
/// first, and `four` columns are from a column to the fourth behind it.
#[inline(always)]
#[track_caller]
fn each_pack<C: Cta>(
    cta: &C,
    (at, strip_step, four): (u64, u64, u64),
    strips: [bool; STRIPS as usize],
    mut f: impl FnMut(usize, usize),
) {
    let lane = cta.fresh(cta.thread()) % WARP;
    let place = place_v(lane / 8, lane % 8 * 4);
    for strip in 0..STRIPS {
        if strips[strip as usize] {
            let mut at = at + strip as u64 * strip_step;
            for p in 0..TENSOR_COLUMNS / 4 {
                let down = (p * 4 * ROWS * TILES as u32 + strip * STRIP) as usize;
                f(place + down, at as usize);
                at += four;
            }
        }
    }
}

/// Of a strip of reflectors that begins with their first components: those, and zeros above them.
#[inline(always)]
#[track_caller]
fn clear_above<C: Cta>(cta: &C, strip: u32, first: f32) {
    let down = cta.fresh(cta.thread()) % WARP;
    for p in 0..TENSOR_COLUMNS {
        if down <= p {
            let value = if down == p { first } else { 0.0 };
            cta.shared_write(of_v(cta), place_v(p, strip * STRIP + down), value);
        }
    }
}

/// C, through the warp's part of shared memory.
#[inline(always)]
#[track_caller]
fn read_whole<C: Cta, const WARPS: u32>(
    cta: &C,
    args: &QrArgs<'_, f32>,
    block: &Block<WARPS>,
    walk: &Walk,
) -> Columns {
    let (site, lane) = (&block.site, lane(cta));
    let at = |origin: u64, col_step: u64| {
        let first = origin + (walk.row + lane % 8 * 4) as u64;
        let col = (block.first + lane / 8) as u64;
        (first + col * col_step, walk.strip, 4 * col_step)
    };
    let (v, strips) = (of_v(cta), walk.strips::<WARPS>(|_| true));
    if args.a.is_some() {
        each_pack(cta, at(site.a, site.a_col), strips, |place, at| {
            cta.copy_whole_pack(v, place, args.a, at, true);
        });
    } else {
        each_pack(cta, at(site.f, site.f_col), strips, |place, at| {
            cta.copy_pack_of(v, place, args.f, at);
        });
    }
    cta.end_copies();
    cta.copies_done::<0>();
    cta.sync_warp();
    let mut columns = Columns::default();
    let [_, end] = walk.tiles::<WARPS>();
    each_two(cta, |[m, i, half], at| {
        if (i as u32) < end {
            [columns[i][m][2 * half], columns[i][m][2 * half + 1]] = read_rows(cta, at);
        }
    });
    cta.sync_warp();
    columns
}

/// A block whose parts are all whole.
#[inline(always)]
#[track_caller]
pub fn whole<C: Cta, const WARPS: u32>(cta: &C, args: &QrArgs<'_, f32>, block: &Block<WARPS>) {
    let mut walk = Walk::new(cta, block);
    let mut columns = read_whole(cta, args, block, &walk);
    let down = enlarge::<C, WARPS>(cta, &mut columns);
    walk.stage::<C, WARPS>(cta, args);
    // A loop that ends below keeps C in one set of registers.
    loop {
        let begins = walk.strips::<WARPS>(|row| row == walk.panel);
        let mut first = 0.0;
        if begins[0] || begins[1] {
            first = cta.read(args.first, walk.first as usize);
        }
        cta.copies_done::<0>();
        cta.sync_warp();
        for strip in 0..STRIPS {
            if begins[strip as usize] {
                clear_above(cta, strip, first);
                cta.sync_warp();
            }
        }
        one_panel::<C, WARPS>(cta, &mut columns, walk.tiles::<WARPS>());
        walk.step();
        if walk.panel >= walk.until {
            break;
        }
        walk.stage::<C, WARPS>(cta, args);
    }
    Block::<WARPS>::of(cta, args).write(cta, args, (&columns, down));
}
