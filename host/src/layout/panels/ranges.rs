//! Panels shared out to blocks, before anything runs: by what they are expected to take.

use gpu_kernels::fused::panels::{CHUNK, LEADS, PIECE_WORDS};

use super::extents::Extents;
use crate::plan::rates::panels::{ENTRY_FS, OUTPUT_FS, SECTOR_FS};

/// A range ends with a panel that is so near to its end: one part in this many.
const NEAR: i64 = 32;
/// How often ranges are cut.
const ATTEMPTS: u64 = 64;
/// What there is to do in a panel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    pub(super) chunks: u32,
    /// Sectors of the inputs, in all chunks.
    pub(super) sectors: u64,
}

impl Work {
    fn chunk_fs(&self) -> u64 {
        let sectors = self.sectors.div_ceil(u64::from(self.chunks.max(1)));
        u64::from(CHUNK) * ENTRY_FS + sectors * SECTOR_FS
    }

    fn entries_fs(&self) -> u64 {
        u64::from(self.chunks) * self.chunk_fs()
    }

    /// Whether several entries find their inputs in one sector.
    fn is_stream(&self) -> bool {
        2 * self.sectors < u64::from(self.chunks) * u64::from(CHUNK)
    }
}

/// A panel where it lies.
#[derive(Debug, Clone, Copy)]
struct Panel {
    first_output: u32,
    outputs: u32,
    first_chunk: u32,
    work: Work,
}

impl Panel {
    fn whole(&self) -> Piece {
        let end = self.first_chunk + self.work.chunks;
        [
            self.first_output,
            self.outputs | LEADS,
            self.first_chunk,
            end,
        ]
    }
}

/// A run of chunks of one panel, as the kernel has it.
type Piece = [u32; PIECE_WORDS as usize];

/// Pieces and the first one of each range.
///
/// Panels that no range takes whole are shared by the first ranges. Those whose inputs come as a stream and those that
/// gather them wait for different things, and how much longer the one takes than the other is not known well: all of
/// these ranges have the same share of both, every other one in reverse order.
pub(super) fn share(all: &[Work], extents: &Extents, ranges: u32) -> (Vec<u32>, Vec<u32>) {
    let mut first_chunk = 0;
    let panels = extents.panels.iter().zip(all).map(|(extent, work)| {
        let panel = Panel {
            first_output: extent.first,
            outputs: extent.outputs,
            first_chunk,
            work: *work,
        };
        first_chunk += work.chunks;
        (panel, extent.range)
    });
    let (whole, shared): (Vec<_>, Vec<_>) = panels.partition(|(_, range)| range.is_some());
    let shared: Vec<Panel> = shared.into_iter().map(|(panel, _)| panel).collect();
    let mut pieces_of = deal(shared, extents.sharing);
    pieces_of.resize(ranges as usize, Vec::new());
    for (panel, range) in whole {
        pieces_of[range.map_or(0, |range| range as usize)].push(panel.whole());
    }
    let (mut pieces, mut firsts) = (Vec::new(), vec![0]);
    for of_range in pieces_of {
        pieces.extend(of_range.into_iter().flatten());
        firsts.push(pieces.len() as u32 / PIECE_WORDS);
    }
    (pieces, firsts)
}

/// The pieces of each range that shares the panels.
fn deal(panels: Vec<Panel>, ranges: u32) -> Vec<Vec<Piece>> {
    let width = panels.iter().map(|panel| panel.outputs).max().unwrap_or(0);
    let is_stream = |panel: &Panel| panel.work.is_stream();
    let (mut streams, mut gathers): (Vec<Panel>, Vec<Panel>) =
        panels.into_iter().partition(is_stream);
    let flushes_fs = u64::from(ranges) * u64::from(width) * OUTPUT_FS;
    let of_class = |class: &[Panel]| class.iter().map(|panel| panel.work.entries_fs()).sum();
    let shares: [u64; 2] = [of_class(&streams), of_class(&gathers)];
    if shares.iter().any(|share| *share < 2 * flushes_fs) {
        // Too little for a piece of its own in every range.
        streams.append(&mut gathers);
        streams.sort_by_key(|panel| panel.first_output);
    }
    let [streams, gathers] = [streams, gathers].map(|class| cut(&class, width, ranges));
    let both = streams.into_iter().zip(gathers).enumerate();
    let in_turn = both.map(|(i, (streams, gathers))| match i % 2 {
        0 => [streams, gathers].concat(),
        _ => [gathers, streams].concat(),
    });
    in_turn.collect()
}

/// The pieces of each range: runs of chunks, so that ranges have the same work, but for those that end with a panel near
/// by. A panel without chunks is a piece, too.
///
/// How many pieces there are is known when they have been cut: some quotas are tried, from one that is enough for a piece
/// more in every range downwards, and the one is taken with which the longest range is shortest.
fn cut(panels: &[Panel], width: u32, ranges: u32) -> Vec<Vec<Piece>> {
    let entries: u64 = panels.iter().map(|panel| panel.work.entries_fs()).sum();
    let of_piece = u64::from(width) * OUTPUT_FS;
    let pieces = panels.len() as u64 + u64::from(ranges);
    let most = (entries + pieces * of_piece).div_ceil(u64::from(ranges.max(1)));
    let quotas = (0..ATTEMPTS).map(|i| (most - most / (2 * ATTEMPTS) * i).max(1) as i64);
    // To end with a panel near by saves a piece, and may make one range longer than all others.
    let attempts = quotas.flat_map(|quota| {
        [quota / NEAR, 0].map(|near| Attempt::of(panels, of_piece as i64, (quota, near), ranges))
    });
    let best = attempts.min_by_key(|attempt| attempt.longest);
    best.map_or_else(Vec::new, |best| best.ranges)
}

/// Panels cut to ranges of some quota.
struct Attempt {
    ranges: Vec<Vec<Piece>>,
    /// What the longest range takes.
    longest: i64,
}

impl Attempt {
    /// A range ends with a panel that ends no more than `near` before or behind it.
    fn of(panels: &[Panel], of_piece: i64, (quota, near): (i64, i64), ranges: u32) -> Self {
        let mut all = vec![Vec::new(); ranges as usize];
        // What a range takes too much or too little is made up for by the next.
        let (mut range, mut left, mut taken) = (0, quota, vec![0; ranges as usize]);
        for panel in panels {
            let of_chunk = panel.work.chunk_fs() as i64;
            let (mut from, end) = (panel.first_chunk, panel.first_chunk + panel.work.chunks);
            let mut leads = LEADS;
            loop {
                let is_last = range + 1 == all.len();
                let of_rest = i64::from(end - from) * of_chunk + of_piece;
                let ends_here = is_last || of_rest <= left + near;
                let room = (left - of_piece).max(0) / of_chunk;
                let to = match ends_here {
                    true => end,
                    false => from + room.min(i64::from(end - from)) as u32,
                };
                if ends_here || to > from {
                    all[range].push([panel.first_output, panel.outputs | leads, from, to]);
                    let of_this = i64::from(to - from) * of_chunk + of_piece;
                    taken[range] += of_this;
                    left -= of_this;
                    leads = 0;
                }
                from = to;
                if !is_last && (left <= near.max(of_piece) || !ends_here) {
                    (range, left) = (range + 1, left + quota);
                }
                if ends_here {
                    break;
                }
            }
        }
        Attempt {
            ranges: all,
            longest: taken.into_iter().max().unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::extents::Extent;
    use super::*;

    /// Panels of `width` outputs whose chunks `ranges` ranges share.
    fn extents(outputs: u32, width: u32, ranges: u32) -> Extents {
        let firsts = (0..outputs).step_by(width as usize);
        let panels = firsts.map(|first| Extent {
            first,
            outputs: width.min(outputs - first),
            range: None,
        });
        Extents {
            panels: panels.collect(),
            sharing: ranges,
        }
    }

    /// What each range takes, when panels have the same sums.
    fn of_ranges(panels: &[Work], width: u32, (pieces, firsts): (&[u32], &[u32])) -> Vec<u64> {
        let of_piece = |piece: &[u32]| {
            let work = &panels[(piece[0] / width) as usize];
            u64::from(piece[3] - piece[2]) * work.chunk_fs() + u64::from(width) * OUTPUT_FS
        };
        let of_range = |range: &[u32]| {
            let of_range = &pieces[4 * range[0] as usize..4 * range[1] as usize];
            of_range.chunks(4).map(of_piece).sum()
        };
        firsts.windows(2).map(of_range).collect()
    }

    #[test]
    fn ranges_share_the_chunks_and_leave_no_panel_out() {
        let chunks = [10, 0, 37, 1, 1, 200, 0];
        let panels = chunks.map(|chunks| Work { chunks, sectors: 0 });
        let (pieces, firsts) = share(&panels, &extents(33, 5, 4), 4);
        assert_eq!((firsts.len(), firsts[0]), (5, 0));
        assert!(firsts.is_sorted());
        assert_eq!(*firsts.last().unwrap() as usize, pieces.len() / 4);
        let mut next = (0, 0);
        for piece in pieces.chunks(4) {
            let is_next = piece[0] == next.0 + 5 || next == (0, 0);
            assert!(is_next || piece[0] == next.0);
            assert_eq!(piece[1] & LEADS != 0, is_next);
            assert_eq!(piece[2], next.1);
            next = (piece[0], piece[3]);
        }
        assert_eq!(next, (30, 249));
        for range in firsts.windows(2) {
            let of_range = &pieces[4 * range[0] as usize..4 * range[1] as usize];
            let taken: u32 = of_range.chunks(4).map(|piece| piece[3] - piece[2]).sum();
            assert!(taken <= 249_u32.div_ceil(4) + 63 / NEAR as u32, "{taken}");
        }
    }

    /// Eight panels of frequent columns, the others of rare ones.
    fn skewed() -> Vec<Work> {
        let panel = |i: u32| match i < 8 {
            true => Work {
                chunks: 24_900,
                sectors: 24_900 * 16,
            },
            false => Work {
                chunks: 644,
                sectors: 644 * u64::from(CHUNK),
            },
        };
        (0..200).map(panel).collect()
    }

    #[test]
    fn ranges_take_equally_long_however_dear_their_chunks_are() {
        let (panels, width) = (skewed(), 32_736);
        let (pieces, firsts) = share(&panels, &extents(200 * width, width, 132), 132);
        let all = of_ranges(&panels, width, (&pieces, &firsts));
        let (most, sum) = (all.iter().max().unwrap(), all.iter().sum::<u64>());
        assert!(most * 132 < sum * 9 / 8, "{all:?}");
        // The last range has what is left.
        let least = all[..131].iter().min().unwrap();
        assert!(least * 132 > sum * 7 / 8, "{all:?}");
    }

    #[test]
    fn ranges_have_their_share_of_streams_and_of_gathers() {
        let (panels, width) = (skewed(), 32_736);
        let (pieces, firsts) = share(&panels, &extents(200 * width, width, 132), 132);
        // The last range has what is left.
        for range in firsts[..131].windows(2) {
            let of_range = &pieces[4 * range[0] as usize..4 * range[1] as usize];
            let (mut streams, mut gathers) = (0, 0);
            for piece in of_range.chunks(4) {
                match piece[0] / width < 8 {
                    true => streams += piece[3] - piece[2],
                    false => gathers += piece[3] - piece[2],
                }
            }
            // A second piece takes as long as 580 chunks.
            assert!((870..2_100).contains(&streams), "{streams}");
            assert!((480..1_600).contains(&gathers), "{gathers} of {range:?}");
        }
        let leading = pieces.chunks(4).filter(|piece| piece[1] & LEADS != 0);
        assert_eq!(leading.count(), 200);
    }
    #[test]
    fn panels_that_a_range_takes_whole_are_pieces_behind_the_shared_ones() {
        let mut extents = extents(30, 5, 2);
        extents.panels[4].range = Some(2);
        extents.panels[5].range = Some(1);
        let panels = [7, 0, 3, 9, 4, 2].map(|chunks| Work { chunks, sectors: 0 });
        let (pieces, firsts) = share(&panels, &extents, 4);
        let of_range = |range: usize| {
            let of_range = firsts[range] as usize..firsts[range + 1] as usize;
            pieces[4 * of_range.start..4 * of_range.end].chunks(4)
        };
        assert_eq!(of_range(1).last(), Some(&[25, 5 | LEADS, 23, 25][..]));
        assert_eq!(of_range(2).collect::<Vec<_>>(), [[20, 5 | LEADS, 19, 23]]);
        assert_eq!(of_range(3).count(), 0);
        let chunks: u32 = pieces.chunks(4).map(|piece| piece[3] - piece[2]).sum();
        assert_eq!(chunks, 25);
    }

    #[test]
    fn a_panel_that_ends_near_by_makes_no_range_longer_than_others() {
        // Cold columns of 4,000,000 rows of 20 over 40,000 columns in f64: one range had 4,007 chunks, the others 3,944.
        let (width, ranges) = (11_160, 132);
        let panels = [173_846, 173_055, 173_045].map(|chunks| Work {
            chunks,
            sectors: 1_000_000,
        });
        let (pieces, firsts) = share(&panels, &extents(3 * width, width, ranges), ranges);
        let taken = of_ranges(&panels, width, (&pieces, &firsts));
        let mean = taken.iter().sum::<u64>() / u64::from(ranges);
        let longest = taken.into_iter().max().unwrap_or(0);
        assert!(longest < mean + mean / 200, "{longest} of {mean}");
    }
}
