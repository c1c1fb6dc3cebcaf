//! The order of entries in which lanes that read shared memory together meet in few banks.
//!
//! A warp reads packs of 16 bytes in four goes of eight lanes. Each go takes as long as the group of four banks that most
//! of its lanes want; with random places that is 2.9 lanes of 8. A sum may be taken in any order, and outputs of one length
//! may change places, so
//! - [`even_out`] puts outputs together whose entries want all banks equally often, and
//! - [`arrange`] gives each step of the walk an entry of every lane by a matching of lanes and banks, the banks that most
//!   entries are left of first: as an edge colouring of the bipartite multigraph whose edges are the entries (König 1916:
//!   as many colours as its largest degree).
//!
//! Of rows with 20 random entries a go then takes 1.14 lanes' time, of columns with 9 or so 1.05 (that each lane took the
//! first of its next entries whose bank was free: 1.65 and 1.66).

use std::cmp::Reverse;

use gpu_kernels::cta::WARP;

/// Lanes that read packs together.
const GO: usize = 8;
/// Groups of banks that a pack fills one of.
const BANKS: usize = 8;
/// Outputs that the next lane's is chosen from.
const POOL: usize = 32;

/// An entry: the row that is read, and the value.
pub(crate) type Entry<T> = (u16, T);

/// How many of something want each bank.
type PerBank = [u32; BANKS];

/// How rows lie in shared memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    /// Packs of 16 bytes of a row, 1 or 2; neighbouring lanes begin with different ones.
    pub packs: u32,
    /// The first of as many rows of zeros as there are banks: what fills lanes up.
    pub spare: u16,
}

impl Rows {
    /// Banks that the lanes of a class, which begin with the same pack, share out among them.
    fn banks(self) -> usize {
        BANKS / self.packs as usize
    }

    /// The bank of a row.
    fn bank(self, row: u16) -> usize {
        usize::from(row) % self.banks()
    }

    /// A row of zeros in a bank.
    fn spare_in(self, bank: usize) -> u16 {
        let (banks, first) = (self.banks(), usize::from(self.spare));
        (first + (bank + banks - first % banks) % banks) as u16
    }

    /// How many entries want each bank.
    fn count<T>(self, entries: &[Entry<T>]) -> PerBank {
        let mut counts = PerBank::default();
        for (row, _) in entries {
            counts[self.bank(*row)] += 1;
        }
        counts
    }
}

/// Reorders outputs, each with its entries, so that those that become lanes of one class and go want the banks equally
/// often. Only outputs of the same `length` change places, so that the order by length stays.
pub(crate) fn even_out<'a, O: Copy, T: 'a>(
    outputs: &mut [O],
    rows: Rows,
    entries: impl Fn(&O) -> &'a [Entry<T>],
    length: impl Fn(&O) -> usize,
) {
    let mut wanted: Vec<PerBank> = outputs.iter().map(|o| rows.count(entries(o))).collect();
    let mut loads = [PerBank::default(); 2];
    for lane in 0..outputs.len() {
        if lane % GO == 0 {
            loads = Default::default();
        }
        let load = &mut loads[lane % rows.packs as usize];
        let alike = outputs[lane..].iter().take(POOL);
        let own = length(&outputs[lane]);
        let alike = alike.take_while(|other| length(other) == own).count();
        let fullest = |at: &usize| {
            let all = load.iter().zip(&wanted[*at]).map(|(a, b)| a + b);
            let squares: u32 = all.clone().map(|count| count.saturating_mul(count)).sum();
            (all.max(), squares)
        };
        let best = (lane..lane + alike).min_by_key(fullest).unwrap_or(lane);
        outputs[lane..=best].rotate_right(1);
        wanted[lane..=best].rotate_right(1);
        for (load, more) in load.iter_mut().zip(&wanted[lane]) {
            *load += more;
        }
    }
}

/// Takes all entries out of `lanes`, in steps: `place(step, lane, entry)` is called for every lane of every step, with
/// `zero` where it has none.
pub(crate) fn arrange<T: Copy>(
    lanes: &mut [Vec<Entry<T>>],
    (steps, zero): (usize, T),
    rows: Rows,
    mut place: impl FnMut(usize, usize, Entry<T>),
) {
    for lane in lanes.iter_mut() {
        lane.sort_by_key(|(row, _)| rows.bank(*row));
    }
    let packs = rows.packs as usize;
    for first in (0..WARP as usize).step_by(GO) {
        for class in 0..packs {
            let own: Vec<usize> = (first + class..first + GO).step_by(packs).collect();
            let mut left = Left::of(lanes, &own, rows);
            for step in 0..steps {
                let banks = left.share_out(steps - step);
                for (i, bank) in banks.into_iter().enumerate().take(own.len()) {
                    let entry = match bank {
                        Bank::Own(bank) => lanes[own[i]][left.take(i, bank)],
                        Bank::Spare(bank) => (rows.spare_in(bank), zero),
                    };
                    place(step, own[i], entry);
                }
            }
        }
    }
    lanes.iter_mut().for_each(Vec::clear);
}

/// What a lane reads in a step.
#[derive(Clone, Copy)]
enum Bank {
    /// An entry of its own in this bank.
    Own(usize),
    /// A row of zeros in this bank.
    Spare(usize),
}

/// The entries that are left of the lanes of a class, which lie in the order of their banks.
struct Left {
    lanes: usize,
    banks: usize,
    starts: [PerBank; GO],
    counts: [PerBank; GO],
}

impl Left {
    fn of<T>(lanes: &[Vec<Entry<T>>], own: &[usize], rows: Rows) -> Self {
        let (mut starts, mut counts) = ([PerBank::default(); GO], [PerBank::default(); GO]);
        for (i, lane) in own.iter().enumerate() {
            counts[i] = rows.count(&lanes[*lane]);
            let mut start = 0;
            for (bank, count) in counts[i].iter().enumerate() {
                starts[i][bank] = start;
                start += count;
            }
        }
        Left {
            lanes: own.len(),
            banks: rows.banks(),
            starts,
            counts,
        }
    }

    /// The place of an entry of a lane in a bank, which is no longer left.
    fn take(&mut self, lane: usize, bank: usize) -> usize {
        self.counts[lane][bank] -= 1;
        (self.starts[lane][bank] + self.counts[lane][bank]) as usize
    }

    /// A bank for every lane, of which as few as can be have the same, where this many steps are left.
    fn share_out(&self, steps: usize) -> [Bank; GO] {
        let mut totals = PerBank::default();
        for counts in &self.counts[..self.lanes] {
            totals
                .iter_mut()
                .zip(counts)
                .for_each(|(all, own)| *all += own);
        }
        let mut order: [usize; BANKS] = std::array::from_fn(|bank| bank);
        order[..self.banks].sort_by_key(|bank| Reverse(totals[*bank]));
        let mut matched = [None; GO];
        for bank in &order[..self.banks] {
            self.find_lane(*bank, &mut matched, &mut 0);
        }
        let mut wanted = PerBank::default();
        matched
            .iter()
            .flatten()
            .for_each(|bank: &usize| wanted[*bank] += 1);
        let mut shared = [Bank::Spare(0); GO];
        for lane in 0..self.lanes {
            shared[lane] = match matched[lane] {
                Some(bank) => Bank::Own(bank),
                None => {
                    let bank = self.second_best(lane, steps, (&wanted, &totals));
                    let (Bank::Own(number) | Bank::Spare(number)) = bank;
                    wanted[number] += 1;
                    bank
                }
            };
        }
        shared
    }

    /// Finds a lane for a bank among those that have entries there, if need be by finding other banks for others.
    fn find_lane(&self, bank: usize, matched: &mut [Option<usize>; GO], seen: &mut u32) -> bool {
        for lane in 0..self.lanes {
            if self.counts[lane][bank] == 0 || *seen >> lane & 1 != 0 {
                continue;
            }
            *seen |= 1 << lane;
            let is_free = match matched[lane] {
                None => true,
                Some(other) => self.find_lane(other, matched, seen),
            };
            if is_free {
                matched[lane] = Some(bank);
                return true;
            }
        }
        false
    }

    /// The bank of a lane that has none for itself: of zeros where its entries can be left for later steps.
    fn second_best(
        &self,
        lane: usize,
        steps: usize,
        (wanted, totals): (&PerBank, &PerBank),
    ) -> Bank {
        let counts = &self.counts[lane];
        let is_urgent = counts.iter().sum::<u32>() as usize >= steps;
        let all = 0..self.banks;
        let own = all.clone().filter(|bank| is_urgent && counts[*bank] > 0);
        match own.min_by_key(|bank| (wanted[*bank], Reverse(totals[*bank]))) {
            Some(bank) => Bank::Own(bank),
            None => Bank::Spare(all.min_by_key(|bank| wanted[*bank]).unwrap_or(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: Rows = Rows {
        packs: 2,
        spare: 1_001,
    };

    /// 32 lanes with `count` entries each, of rows that a generator draws.
    fn lanes(count: usize) -> Vec<Vec<Entry<u32>>> {
        let mut state = 1_u32;
        let mut draw = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 16
        };
        let mut lane = |_| {
            (0..count as u32)
                .map(|i| ((draw() % 1_000) as u16, i + 1))
                .collect()
        };
        (0..WARP).map(&mut lane).collect()
    }

    /// Lanes of one class in one go that want each bank, in one step.
    type Wanted = [[[u8; BANKS]; 2]; WARP as usize / GO];

    /// The lanes of the same class that want the fullest bank, summed over steps, goes and classes.
    fn waits(lanes: &[Vec<Entry<u32>>], steps: usize, of: impl Fn(usize, usize) -> u16) -> u32 {
        let mut sum = 0;
        for step in 0..steps {
            let mut wanted = Wanted::default();
            for lane in 0..lanes.len() {
                let bank = ROWS.bank(of(step, lane));
                wanted[lane / GO][lane % 2][bank] += 1;
            }
            let most = |class: &[u8; 8]| u32::from(class.iter().copied().max().unwrap_or(0));
            sum += wanted.iter().flatten().map(most).sum::<u32>();
        }
        sum
    }

    #[test]
    fn every_entry_is_placed_once_and_banks_are_shared_out() {
        let (before, steps) = (lanes(20), 20);
        let mut rest = before.clone();
        let mut placed = vec![vec![(0, 0); WARP as usize]; steps];
        arrange(&mut rest, (steps, 0), ROWS, |step, lane, entry| {
            placed[step][lane] = entry;
        });
        assert!(rest.iter().all(Vec::is_empty));
        for (lane, entries) in before.iter().enumerate() {
            let mut own: Vec<_> = placed.iter().map(|step| step[lane]).collect();
            let mut expected = entries.clone();
            own.sort_unstable();
            expected.sort_unstable();
            assert_eq!(own, expected);
        }
        let drawn = waits(&before, steps, |step, lane| before[lane][step].0);
        let arranged = waits(&before, steps, |step, lane| placed[step][lane].0);
        assert!(3 * arranged < 2 * drawn, "{arranged} against {drawn}");
    }

    #[test]
    fn outputs_of_one_length_are_put_together_by_their_banks() {
        let all = lanes(20);
        let length = |lane: &usize| if *lane < 4 { 24 } else { 20 };
        let mut order: Vec<usize> = (0..all.len()).collect();
        even_out(&mut order, ROWS, |lane| &all[*lane][..], length);
        assert!(order[..4].iter().all(|lane| *lane < 4));
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..all.len()).collect::<Vec<_>>());
        let fullest = |order: &[usize]| -> u32 {
            let class = |go: &[usize], class: usize| {
                let counts = go
                    .iter()
                    .skip(class)
                    .step_by(2)
                    .map(|l| ROWS.count(&all[*l]));
                let sums = counts.reduce(|a, b| std::array::from_fn(|i| a[i] + b[i]));
                sums.and_then(|sums| sums.into_iter().max()).unwrap_or(0)
            };
            let goes = order.chunks(GO);
            goes.map(|go| class(go, 0) + class(go, 1)).sum()
        };
        let before: Vec<usize> = (0..all.len()).collect();
        assert!(fullest(&order) < fullest(&before));
    }

    #[test]
    fn lanes_without_entries_read_zeros() {
        let mut lanes = vec![vec![(3, 7)]; WARP as usize];
        let mut seen = [0; WARP as usize];
        arrange(&mut lanes, (4, 0), ROWS, |_, lane, (row, value)| {
            seen[lane] += value;
            assert!(value == 7 && row == 3 || value == 0 && (1_001..1_009).contains(&row));
        });
        assert_eq!(seen, [7; WARP as usize]);
    }
}
