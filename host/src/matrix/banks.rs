//! The order of entries in which lanes that read shared memory together meet in few banks.
//!
//! A warp reads packs of 16 bytes in four goes of eight lanes. Each go takes as long as the group of four banks that most
//! of its lanes want; with random places that is 2.9 lanes of 8. A sum may be taken in any order, so for each step of the
//! walk every lane gives, of its next entries, one whose bank nobody in its go has taken yet.

use gpu_kernels::cta::WARP;

/// Lanes that read packs together.
const GO: usize = 8;
/// Groups of banks that a pack fills one of.
const BANKS: u32 = 8;
/// How far ahead a lane looks for an entry.
const AHEAD: usize = 24;

/// An entry: the row that is read, and the value.
pub(crate) type Entry<T> = (u16, T);

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
    fn banks(self) -> u32 {
        BANKS / self.packs
    }

    /// A row of zeros in a bank.
    fn spare_in(self, bank: u32) -> u16 {
        let banks = self.banks();
        let first = u32::from(self.spare);
        (first + (bank + banks - first % banks) % banks) as u16
    }
}

/// Lanes of one class in one go that want each bank, in one step.
type Wanted = [[[u8; BANKS as usize]; 2]; WARP as usize / GO];

/// Takes all entries out of `lanes`, in steps: `place(step, lane, entry)` is called for every lane of every step, with
/// `zero` where it has none.
pub(crate) fn arrange<T: Copy>(
    lanes: &mut [Vec<Entry<T>>],
    (steps, zero): (usize, T),
    rows: Rows,
    mut place: impl FnMut(usize, usize, Entry<T>),
) {
    for step in 0..steps {
        let mut wanted = Wanted::default();
        for (lane, entries) in lanes.iter_mut().enumerate() {
            let class = &mut wanted[lane / GO][lane % rows.packs as usize];
            let left = steps - step;
            let entry = match next(entries, left, class, rows.banks()) {
                Some(at) => entries.remove(at),
                None => (rows.spare_in(free(class, rows.banks())), zero),
            };
            class[(u32::from(entry.0) % rows.banks()) as usize] += 1;
            place(step, lane, entry);
        }
    }
}

/// The entry that waits for the fewest others; none where it can be left for a later step.
fn next<T>(
    entries: &[Entry<T>],
    left: usize,
    wanted: &[u8; BANKS as usize],
    banks: u32,
) -> Option<usize> {
    let waits = |entry: &Entry<T>| wanted[(u32::from(entry.0) % banks) as usize];
    let mut best: Option<(usize, u8)> = None;
    for (at, entry) in entries.iter().take(AHEAD).enumerate() {
        let waits = waits(entry);
        if best.is_none_or(|(_, least)| waits < least) {
            best = Some((at, waits));
        }
        if waits == 0 {
            break;
        }
    }
    let (at, waits) = best?;
    (waits == 0 || entries.len() >= left).then_some(at)
}

/// The bank that the fewest want.
fn free(wanted: &[u8; BANKS as usize], banks: u32) -> u32 {
    let least = (0..banks).min_by_key(|bank| wanted[*bank as usize]);
    least.unwrap_or(0)
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

    /// The lanes of the same class that want the fullest bank, summed over steps, goes and classes.
    fn waits(lanes: &[Vec<Entry<u32>>], steps: usize, of: impl Fn(usize, usize) -> u16) -> u32 {
        let mut sum = 0;
        for step in 0..steps {
            let mut wanted = Wanted::default();
            for lane in 0..lanes.len() {
                let bank = u32::from(of(step, lane)) % ROWS.banks();
                wanted[lane / GO][lane % 2][bank as usize] += 1;
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
        assert!(4 * arranged < 3 * drawn, "{arranged} against {drawn}");
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
