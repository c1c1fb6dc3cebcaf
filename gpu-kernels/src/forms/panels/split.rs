//! Entries put where their panels lie, or those with the same digit.

use super::counting::count_one;
use super::rows::Rows;
use super::step::{Step, TOGETHER};
use super::window::Window;
use super::{By, PRESENT, PanelMakingArgs};
use crate::cta::{Cache, Cta, WARP};
use crate::fused::panels::CHUNK;
use crate::scalar::Real;
use crate::verbs::{global_thread, global_threads, global_warp, lane};

/// The run of a warp.
struct Run {
    number: u32,
    first: u32,
    end: u32,
}

impl Run {
    #[inline(always)]
    fn of<C: Cta, T>(cta: &C, args: &PanelMakingArgs<'_, T>) -> Self {
        let (number, entries) = (global_warp(cta), args.entries());
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
        let step = Step::load(cta, args, (first, run.end));
        for panel in window.panels_of(cta, args, &step.numbers) {
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

/// [`PanelMakingVariant::Split`](super::PanelMakingVariant::Split).
#[inline(always)]
#[expect(
    clippy::needless_range_loop,
    reason = "iterators over registers put them into local memory"
)]
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
    let mut rows = Rows::from(cta, args, run.first);
    let mut first = run.first;
    while first < run.end {
        let step = Step::load(cta, args, (first, run.end));
        let panels = window.panels_of(cta, args, &step.numbers);
        for k in 0..TOGETHER {
            let behind = k as u32 * WARP + lane(cta);
            // Of no row where there is no entry: that of the last.
            let number = first + behind.min(run.end - first - 1);
            let mut other = step.others[k];
            if !args.pairs.is_some() {
                other = rows.of(cta, number);
            }
            let entry = Entry {
                number,
                output: step.numbers[k],
                other,
            };
            entry.put(cta, args, (&window, panels[k]));
        }
        first += (run.end - first).min(CHUNK);
    }
}

/// An entry on its way.
struct Entry {
    number: u32,
    /// What it is split by, and the other one of row and column.
    output: u32,
    other: u32,
}

impl Entry {
    /// Writes the entry where its panel goes on, if it has one in the window; the whole warp calls.
    #[inline(always)]
    fn put<C: Cta, T: Real>(
        &self,
        cta: &C,
        args: &PanelMakingArgs<'_, T>,
        (window, panel): (&Window, u32),
    ) {
        let bits = u32::BITS - (args.panels - 1).leading_zeros();
        let wanted = panel < window.panels;
        let before = count_one(cta, window.counters, (panel, bits), wanted);
        if wanted {
            let group: u32 = cta.load(args.groups, (args.first + panel) as usize, Cache::Keep);
            // Digits leave no room behind those of one value.
            let (mut unit, mut word) = (1, (self.other as u64) << 32 | self.output as u64);
            if args.by != By::Digit {
                let sum = self.output - cta.shared_read(window.bounds, panel as usize);
                (unit, word) = (CHUNK, PRESENT | (self.other as u64) << 16 | sum as u64);
            }
            let at = group as usize * unit as usize + before as usize;
            cta.write(args.ends, at, word);
            if args.values.is_some() {
                let value: T = cta.load(args.values, self.number as usize, Cache::Once);
                cta.write(args.split_values, at, value);
            }
        }
    }
}
