//! Where the entries of a chunk lie: in which of the four steps of a warp, and in which lane.
//!
//! A chunk has entries that follow one another in the order of their inputs; which of them meet in a step is free. Two
//! things cost: sums of one bank of shared memory are added one after the other, and each step that wants a line of 128
//! bytes of the inputs asks the L2 cache for it again, as far as its sectors are not there yet. (Of elements of 8 bytes,
//! half a warp is served at a time: a *go*.) In the order of the inputs a step of 32 random sums has 3.6 in its busiest
//! bank. Two other ways, of which each chunk has the cheaper one:
//! - dealt out by banks, 2.2, but every line is wanted by all goes: for chunks that want few lines;
//! - whole lines put where their banks are wanted least: 2.3 to 2.9, and no line is requested twice.
//!
//! Measured on an H200, 80 million uniform entries in 4,000,000 rows, both passes, against the order of the inputs: with
//! 40,000 columns 369 µs instead of 472, with 1,000,000 423 instead of 519, with 4,000,000 530 instead of 577. With all
//! chunks dealt out, 30,000,000 columns took 1.17 ms; in the order of the inputs 1.04, and so 1.03. In f64 40,000 columns
//! take 535 instead of 710 µs.

use std::cmp::Reverse;
use std::ops::Range;

use gpu_kernels::cta::WARP;
use gpu_kernels::fused::panels::CHUNK;

use super::SECTOR;

/// Steps of a warp over a chunk.
const STEPS: usize = (CHUNK / WARP) as usize;
/// Bytes of one row of all banks of shared memory, and of a line of the L1 cache.
const LINE: usize = 128;
/// Banks of the narrowest elements.
const BANKS: usize = LINE / 4;
/// Goes of the widest elements, whose halves of a step are taken one after the other.
const GOES: usize = 2 * STEPS;
/// Requests to the L2 cache that take as long as an addition; from 2 to 16 makes no difference.
const REQUESTS_OF_TURN: usize = 5;
/// Up to this many lines entries are dealt out, and from this many on lines stay whole: the other way is not cheaper.
const FEW_LINES: usize = 8;
const MANY_LINES: usize = 64;

/// An entry's input, and its sum.
pub(super) type Ends = (u32, u16);

/// The place of each entry of a chunk: four neighbours are a lane's, one for each step.
pub(super) type Places = [u8; CHUNK as usize];

/// What an element fills.
#[derive(Debug, Clone, Copy)]
pub(super) struct Widths {
    /// Elements of a line: the banks, and the lanes that are served together (a *go*).
    line: usize,
    /// Elements of a sector.
    sector: usize,
}

impl Widths {
    /// For sums and inputs of 4 or 8 bytes.
    pub(super) const fn of_bytes(size: usize) -> Self {
        Widths {
            line: LINE / size,
            sector: SECTOR / size,
        }
    }

    /// Places for at most [`CHUNK`] entries in the order of their inputs.
    pub(super) fn places(self, entries: &[Ends]) -> Places {
        let lines = self.lines(entries);
        if lines.len() <= FEW_LINES {
            return self.dealt_out(entries).0;
        }
        let (whole, goes) = self.by_lines(entries, &lines);
        if lines.len() >= MANY_LINES {
            return whole;
        }
        let of_whole = self.cost(entries, &lines, (&whole, &goes));
        let (dealt, goes) = self.dealt_out(entries);
        if self.cost(entries, &lines, (&dealt, &goes)) < of_whole {
            dealt
        } else {
            whole
        }
    }

    fn bank(self, (_, sum): Ends) -> usize {
        usize::from(sum) % self.line
    }

    /// Goes of a warp over a chunk.
    fn goes(self) -> usize {
        CHUNK as usize / self.line
    }

    /// The place of the entry that is taken with this many others before it in a go.
    fn place(self, go: usize, before: usize) -> u8 {
        let lane = go / STEPS * self.line + before;
        (lane * STEPS + go % STEPS) as u8
    }

    /// The go that a place is part of.
    fn go(self, place: u8) -> usize {
        let (lane, step) = (usize::from(place) / STEPS, usize::from(place) % STEPS);
        lane / self.line * STEPS + step
    }

    /// Neighbours whose inputs are of one line, as many of them as a go has lanes at most.
    fn lines(self, entries: &[Ends]) -> Vec<Range<usize>> {
        let line = |entry: &Ends| entry.0 as usize / self.line;
        let (mut lines, mut first) = (Vec::with_capacity(entries.len()), 0);
        for run in entries.chunk_by(|a, b| line(a) == line(b)) {
            for part in run.chunks(self.line) {
                lines.push(first..first + part.len());
                first += part.len();
            }
        }
        lines
    }

    /// In the order of their banks, one for each go in turn.
    fn dealt_out(self, entries: &[Ends]) -> (Places, Goes) {
        let mut next = [0; BANKS + 1];
        for entry in entries {
            next[self.bank(*entry) + 1] += 1;
        }
        for bank in 1..next.len() {
            next[bank] += next[bank - 1];
        }
        let (mut places, mut goes) = ([0; CHUNK as usize], Goes::default());
        for (place, entry) in places.iter_mut().zip(entries) {
            let bank = self.bank(*entry);
            let (go, before) = (next[bank] % self.goes(), next[bank] / self.goes());
            *place = self.place(go, before);
            goes.add(go, bank);
            next[bank] += 1;
        }
        (places, goes)
    }

    /// Each line in a go, those of several entries first, while there is room.
    fn by_lines(self, entries: &[Ends], lines: &[Range<usize>]) -> (Places, Goes) {
        let (mut places, mut goes) = ([0; CHUNK as usize], Goes::default());
        let mut banks = [0; CHUNK as usize];
        for (bank, entry) in banks.iter_mut().zip(entries) {
            *bank = self.bank(*entry) as u8;
        }
        let mut several: Vec<_> = lines.iter().filter(|line| line.len() > 1).collect();
        several.sort_by_key(|line| Reverse(line.len()));
        let single = lines.iter().filter(|line| line.len() == 1);
        for line in several.into_iter().chain(single) {
            let whole = goes.least_wanted(self, &banks[line.clone()]);
            for i in line.clone() {
                let one = || goes.least_wanted(self, &banks[i..=i]);
                let go = whole
                    .or_else(one)
                    .expect("a chunk has room for its entries");
                places[i] = self.place(go, usize::from(goes.lanes[go]));
                goes.add(go, banks[i].into());
            }
        }
        (places, goes)
    }

    fn cost(
        self,
        entries: &[Ends],
        lines: &[Range<usize>],
        (places, goes): (&Places, &Goes),
    ) -> usize {
        REQUESTS_OF_TURN * goes.turns() + self.requests(entries, lines, places)
    }

    /// For each line, the goes in which a sector of it is wanted for the first time.
    fn requests(self, entries: &[Ends], lines: &[Range<usize>], places: &Places) -> usize {
        let of_line = |line: &Range<usize>| {
            let mut firsts = [GOES; LINE / SECTOR];
            for i in line.clone() {
                let first = &mut firsts[entries[i].0 as usize % self.line / self.sector];
                *first = self.go(places[i]).min(*first);
            }
            let goes = firsts.iter().fold(0_u32, |goes, go| goes | 1 << go);
            (goes & ((1 << GOES) - 1)).count_ones() as usize
        };
        lines.iter().map(of_line).sum()
    }
}

/// What lanes want that are served together.
#[derive(Debug, Clone, Copy, Default)]
struct Goes {
    lanes: [u8; GOES],
    /// The sums of each bank, by go.
    wanted: [[u8; GOES]; BANKS],
}

impl Goes {
    fn add(&mut self, go: usize, bank: usize) {
        self.lanes[go] += 1;
        self.wanted[bank][go] += 1;
    }

    /// The go with room for entries of these banks that wants them least.
    fn least_wanted(&self, widths: Widths, banks: &[u8]) -> Option<usize> {
        let mut sums = [0_u16; GOES];
        for bank in banks {
            let wanted = &self.wanted[usize::from(*bank)];
            sums.iter_mut()
                .zip(wanted)
                .for_each(|(sum, wanted)| *sum += u16::from(*wanted));
        }
        let has_room = |go: &usize| usize::from(self.lanes[*go]) + banks.len() <= widths.line;
        let all = (0..widths.goes()).filter(has_room);
        all.min_by_key(|go| (sums[*go], self.lanes[*go]))
    }

    /// The sums of the busiest bank of each go, all together.
    fn turns(&self) -> usize {
        let mut busiest = [0; GOES];
        for wanted in &self.wanted {
            busiest
                .iter_mut()
                .zip(wanted)
                .for_each(|(most, wanted)| *most = (*most).max(*wanted));
        }
        busiest.into_iter().map(usize::from).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F32: Widths = Widths::of_bytes(4);

    /// A chunk of random sums whose inputs are on average so far apart.
    fn chunk(spacing: u32, count: usize) -> Vec<Ends> {
        let mut state = 1_u32;
        let mut draw = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        };
        let mut one = || (draw() % (spacing * CHUNK), (draw() % 30_000) as u16);
        let mut entries: Vec<Ends> = (0..count).map(|_| one()).collect();
        entries.sort_unstable();
        entries
    }

    const F64: Widths = Widths::of_bytes(8);

    fn in_order(widths: Widths) -> Places {
        std::array::from_fn(|i| widths.place(i / widths.line, i % widths.line))
    }

    fn turns(widths: Widths, entries: &[Ends], places: &Places) -> usize {
        let mut goes = Goes::default();
        for (entry, place) in entries.iter().zip(places) {
            goes.add(widths.go(*place), widths.bank(*entry));
        }
        goes.turns()
    }

    #[test]
    fn every_entry_has_a_place_of_its_own() {
        for (spacing, count) in [(1, 128), (6, 128), (50, 128), (3, 77), (9, 1), (1_000, 127)] {
            for widths in [F32, F64] {
                let entries = chunk(spacing, count);
                let lines = widths.lines(&entries);
                assert_eq!(lines.iter().map(|line| line.len()).sum::<usize>(), count);
                let both = [
                    widths.dealt_out(&entries),
                    widths.by_lines(&entries, &lines),
                ];
                for (places, goes) in both {
                    assert_eq!(goes.turns(), turns(widths, &entries, &places));
                    let mut taken = places[..count].to_vec();
                    taken.sort_unstable();
                    taken.dedup();
                    assert_eq!(taken.len(), count);
                    assert!(taken.iter().all(|place| u32::from(*place) < CHUNK));
                }
            }
        }
    }

    #[test]
    fn fewer_sums_of_a_bank_meet() {
        for (widths, spacing, least, most) in [
            (F32, 1, 12, 10),
            (F32, 12, 12, 11),
            (F32, 50, 12, 10),
            (F64, 1, 20, 16),
            (F64, 50, 20, 18),
        ] {
            let entries = chunk(spacing, 128);
            let turns = |places: Places| turns(widths, &entries, &places);
            let (before, after) = (turns(in_order(widths)), turns(widths.places(&entries)));
            assert!(before >= least && after <= most, "{before} to {after}");
        }
    }

    #[test]
    fn lines_are_asked_for_once_where_there_are_many() {
        let entries = chunk(25, 128);
        let lines = F32.lines(&entries);
        let requests = |places: Places| F32.requests(&entries, &lines, &places);
        assert!(requests(F32.places(&entries)) <= lines.len() + 2);
        assert!(requests(F32.dealt_out(&entries).0) > lines.len() * 5 / 4);
    }

    #[test]
    fn a_line_that_more_lanes_want_than_a_step_has_is_split() {
        let entries: Vec<Ends> = (0..128).map(|i| (7, i)).collect();
        assert_eq!(F32.lines(&entries), [0..32, 32..64, 64..96, 96..128]);
        assert_eq!(turns(F32, &entries, &F32.places(&entries)), 4);
    }
}
