//! Entries put where their panels lie.

use super::rows::Rows;
use super::{PRESENT, PanelMakingArgs};
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::fused::panels::CHUNK;
use crate::scalar::Real;
use crate::verbs::{FULL, each_of_block, global_thread, global_threads, global_warp, lane};

/// Entries of a lane that are on the way together.
const TOGETHER: usize = (CHUNK / WARP) as usize;

/// The panels of a window in shared memory, and the counters of this warp.
struct Window {
    bounds: Shared<u32>,
    counters: Shared<u32>,
    panels: u32,
    /// The largest power of two up to the number of panels.
    half: u32,
}

impl Window {
    /// A barrier must follow.
    #[inline(always)]
    fn load<C: Cta, T>(cta: &C, args: &PanelMakingArgs<'_, T>) -> Self {
        let panels = args.panels;
        let bounds = Shared::at(0, panels + 1);
        each_of_block(cta, panels + 1, |i| {
            let bound: u32 = cta.load(args.bounds, args.first as usize + i, Cache::Keep);
            cta.shared_write(bounds, i, bound);
        });
        let warp = cta.thread() / WARP;
        Window {
            bounds,
            counters: Shared::at(4 * (panels + 1 + panels * warp), panels),
            panels,
            half: 1 << (31 - panels.leading_zeros()),
        }
    }

    /// Calls `each` for the panels of a lane.
    #[inline(always)]
    fn each_of_warp<C: Cta>(&self, cta: &C, mut each: impl FnMut(u32)) {
        let mut panel = lane(cta);
        while panel < self.panels {
            each(panel);
            panel += WARP;
        }
    }

    /// The panels of some ranks; as many as there are for one that is not in the window.
    #[inline(always)]
    fn panels_of<C: Cta>(&self, cta: &C, ranks: &[u32; TOGETHER]) -> [u32; TOGETHER] {
        let mut found = [0; TOGETHER];
        let mut step = self.half;
        while step > 0 {
            for k in 0..TOGETHER {
                let next = found[k] + step;
                if next < self.panels && cta.shared_read(self.bounds, next as usize) <= ranks[k] {
                    found[k] = next;
                }
            }
            step /= 2;
        }
        let first: u32 = cta.shared_read(self.bounds, 0);
        let end: u32 = cta.shared_read(self.bounds, self.panels as usize);
        for k in 0..TOGETHER {
            if ranks[k] < first || ranks[k] >= end {
                found[k] = self.panels;
            }
        }
        found
    }
}

/// The run of a warp.
struct Run {
    number: u32,
    first: u32,
    end: u32,
}

impl Run {
    #[inline(always)]
    fn of<C: Cta, T>(cta: &C, args: &PanelMakingArgs<'_, T>) -> Self {
        let (number, entries) = (global_warp(cta), args.columns.len());
        let first = number as u64 * args.run as u64;
        Run {
            number,
            first: first.min(entries) as u32,
            end: (first + args.run as u64).min(entries) as u32,
        }
    }

    /// The places of a run in `counts`.
    #[inline(always)]
    fn counts<T>(&self, args: &PanelMakingArgs<'_, T>) -> usize {
        self.number as usize * args.panels as usize
    }
}

/// The ranks of this lane's entries from `first` on; none of any column for those at `end` and behind it.
#[inline(always)]
#[expect(
    clippy::needless_range_loop,
    reason = "iterators over registers put them into local memory"
)]
fn ranks<C: Cta, T>(
    cta: &C,
    args: &PanelMakingArgs<'_, T>,
    (first, end): (u32, u32),
) -> [u32; TOGETHER] {
    let mut ranks = [u32::MAX; TOGETHER];
    for k in 0..TOGETHER {
        // Runs end where entries do, which 32 bits count.
        let left = end - first;
        let behind = k as u32 * WARP + lane(cta);
        if behind < left {
            ranks[k] = cta.load(args.columns, (first + behind) as usize, Cache::Once);
        }
    }
    if args.ranks.is_some() {
        for k in 0..TOGETHER {
            if ranks[k] != u32::MAX {
                ranks[k] = cta.load(args.ranks, ranks[k] as usize, Cache::Keep);
            }
        }
    }
    ranks
}

/// [`PanelMakingVariant::Count`](super::PanelMakingVariant::Count).
#[inline(always)]
pub(super) fn count<C: Cta, T: Real>(cta: &C, args: &PanelMakingArgs<'_, T>) {
    let window = Window::load(cta, args);
    window.each_of_warp(cta, |panel| {
        cta.shared_write(window.counters, panel as usize, 0);
    });
    cta.sync();
    let run = Run::of(cta, args);
    let mut first = run.first;
    while first < run.end {
        let ranks = ranks(cta, args, (first, run.end));
        for panel in window.panels_of(cta, &ranks) {
            if panel < window.panels {
                cta.shared_fetch_add(window.counters, panel as usize, 1);
            }
        }
        first += (run.end - first).min(CHUNK);
    }
    cta.sync_warp();
    if run.first < run.end {
        window.each_of_warp(cta, |panel| {
            let count = cta.shared_read(window.counters, panel as usize);
            cta.write(args.counts, run.counts(args) + panel as usize, count);
        });
    }
}

/// Runs whose counts a thread has on the way together.
const RUNS: usize = 8;

/// [`PanelMakingVariant::Sum`](super::PanelMakingVariant::Sum): a thread takes a panel.
#[inline(always)]
#[expect(
    clippy::needless_range_loop,
    reason = "iterators over registers put them into local memory"
)]
pub(super) fn sum<C: Cta, T: Real>(cta: &C, args: &PanelMakingArgs<'_, T>) {
    let mut panel = global_thread(cta);
    while panel < args.panels as u64 {
        let at = |run: usize| run * args.panels as usize + panel as usize;
        let runs = (args.counts.len() / args.panels as u64) as usize;
        let (mut run, mut before) = (0, 0);
        while run < runs {
            let mut counts = [0; RUNS];
            for k in 0..RUNS {
                if run + k < runs {
                    counts[k] = cta.read(args.counts, at(run + k));
                }
            }
            for k in 0..RUNS {
                if run + k < runs {
                    cta.write(args.counts, at(run + k), before);
                    before += counts[k];
                }
            }
            run += RUNS;
        }
        cta.write(args.totals, panel as usize, before);
        panel += global_threads(cta);
    }
}

/// The lanes with the same number as this one, which `bits` bits hold; those that are not `wanted` have none.
#[inline(always)]
pub(super) fn alike<C: Cta>(cta: &C, (number, bits): (u32, u32), wanted: bool) -> u32 {
    let mut alike = cta.ballot(wanted, FULL);
    let mut bit = 0;
    while bit < bits {
        let is_set = number >> bit & 1 != 0;
        let set = cta.ballot(is_set, FULL);
        alike &= if is_set { set } else { !set };
        bit += 1;
    }
    alike
}

/// How many before this lane's have been counted of `counter`; counts one for each wanted lane, of the lower lanes first. The whole
/// warp calls.
#[inline(always)]
pub(super) fn count_one<C: Cta>(
    cta: &C,
    counters: Shared<u32>,
    (counter, bits): (u32, u32),
    wanted: bool,
) -> u32 {
    let alike = alike(cta, (counter, bits), wanted);
    let before = (alike & ((1 << lane(cta)) - 1)).count_ones();
    let mut counted = 0;
    if wanted {
        counted = cta.shared_read(counters, counter as usize);
    }
    cta.sync_warp();
    if wanted && before == 0 {
        cta.shared_write(counters, counter as usize, counted + alike.count_ones());
    }
    cta.sync_warp();
    counted + before
}

/// [`PanelMakingVariant::Split`](super::PanelMakingVariant::Split).
#[inline(always)]
pub(super) fn split<C: Cta, T: Real>(cta: &C, args: &PanelMakingArgs<'_, T>) {
    let window = Window::load(cta, args);
    let run = Run::of(cta, args);
    let has_entries = run.first < run.end;
    if has_entries {
        window.each_of_warp(cta, |panel| {
            let before: u32 = cta.read(args.counts, run.counts(args) + panel as usize);
            cta.shared_write(window.counters, panel as usize, before);
        });
    }
    cta.sync();
    if !has_entries {
        return;
    }
    let bits = u32::BITS - (args.panels - 1).leading_zeros();
    let mut rows = Rows::from(cta, args, run.first);
    let mut first = run.first;
    while first < run.end {
        let ranks = ranks(cta, args, (first, run.end));
        let panels = window.panels_of(cta, &ranks);
        for k in 0..TOGETHER {
            let behind = k as u32 * WARP + lane(cta);
            // Of no row where there is no entry: that of the last.
            let entry = first + behind.min(run.end - first - 1);
            let row = rows.of(cta, entry);
            let (panel, wanted) = (panels[k], panels[k] < window.panels);
            let before = count_one(cta, window.counters, (panel, bits), wanted);
            if wanted {
                let sum = ranks[k] - cta.shared_read(window.bounds, panel as usize);
                let group: u32 = cta.load(args.groups, (args.first + panel) as usize, Cache::Keep);
                let at = group as usize * CHUNK as usize + before as usize;
                cta.write(args.ends, at, PRESENT | (row as u64) << 16 | sum as u64);
                if args.values.is_some() {
                    let value: T = cta.load(args.values, entry as usize, Cache::Once);
                    cta.write(args.split_values, at, value);
                }
            }
        }
        first += (run.end - first).min(CHUNK);
    }
}
