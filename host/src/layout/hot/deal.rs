//! Which of a row's entries is taken next: one whose bank of shared memory few lanes want in this step.

/// Banks of shared memory.
const BANKS: usize = 32;
/// Entries of a row among which one is chosen for a lane: as many as six bits count.
const WINDOW: usize = 64;
/// Bits of an entry's number in the window, and the bit at which lanes are counted.
const LEFT: u32 = 6;
const TAKEN: u32 = 26;
/// Entries of one bank in a slice, at most: a row has as many entries as there are places at most, and rows that share
/// a slice are short.
const MOST_LEFT: u32 = (1 << (TAKEN - LEFT)) - 1;

/// How much a lane wants each bank, the least number first: of those that have been taken least in this step one of
/// which most entries are left. Six bits count the lanes, then 20 the entries that are gone; six are left for an entry's
/// number.
pub(super) struct Banks([u32; BANKS]);

impl Banks {
    /// Of rows of a slice with these places.
    pub(super) fn of<'a>(rows: impl Iterator<Item = &'a [u16]>) -> Self {
        let mut keys = [MOST_LEFT << LEFT; BANKS];
        for place in rows.flatten() {
            keys[bank(*place)] -= 1 << LEFT;
        }
        Banks(keys)
    }

    /// No lane has taken anything.
    pub(super) fn begin_step(&mut self) {
        self.0.iter_mut().for_each(|key| *key &= (1 << TAKEN) - 1);
    }

    /// The entry among the last ones whose bank has been taken least in this step, of those one whose bank has most
    /// entries left, of those the first; none where there are no entries.
    pub(super) fn best(&self, places: &[u16]) -> Option<usize> {
        let from = places.len().saturating_sub(WINDOW);
        let key = |place: u16, number: u32| self.0[bank(place)] + number;
        // Four at a time, as each minimum waits for the one before.
        let mut least = [u32::MAX; 4];
        let (fours, rest) = places[from..].as_chunks::<4>();
        let mut number = 0;
        for four in fours {
            for (least, place) in least.iter_mut().zip(four) {
                *least = key(*place, number).min(*least);
                number += 1;
            }
        }
        for place in rest {
            least[0] = key(*place, number).min(least[0]);
            number += 1;
        }
        let least = least[0].min(least[1]).min(least[2].min(least[3]));
        let number = least as usize % WINDOW;
        (!places.is_empty()).then_some(from + number)
    }

    /// A lane takes an entry with this place.
    pub(super) fn take(&mut self, place: u16) {
        self.0[bank(place)] += (1 << TAKEN) + (1 << LEFT);
    }
}

fn bank(place: u16) -> usize {
    usize::from(place) % BANKS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As it is defined, with counters of its own.
    fn expected(places: &[u16], taken: &[u32; BANKS], left: &[u32; BANKS]) -> Option<usize> {
        let from = places.len().saturating_sub(WINDOW);
        let key = |place: &u16| (taken[bank(*place)], u32::MAX - left[bank(*place)]);
        let window = places[from..].iter().enumerate();
        let best = window.min_by_key(|(_, place)| key(place));
        best.map(|(number, _)| from + number)
    }

    #[test]
    fn the_least_wanted_bank_comes_first() {
        let place = |i: u32| (i.wrapping_mul(2_654_435_761) >> 16) as u16;
        let mut rows: Vec<Vec<u16>> = [0, 1, 3, 24, 64, 65, 300]
            .into_iter()
            .map(|length| (0..length).map(|i| place(i + 7 * length)).collect())
            .collect();
        let mut left = [0; BANKS];
        for place in rows.iter().flatten() {
            left[bank(*place)] += 1;
        }
        let mut banks = Banks::of(rows.iter().map(|row| &row[..]));
        while rows.iter().any(|row| !row.is_empty()) {
            let mut taken = [0; BANKS];
            banks.begin_step();
            for lane in 0..32 {
                let row = &mut rows[lane % 7];
                let best = banks.best(row);
                assert_eq!(best, expected(row, &taken, &left));
                if let Some(best) = best {
                    let place = row.swap_remove(best);
                    banks.take(place);
                    taken[bank(place)] += 1;
                    left[bank(place)] -= 1;
                }
            }
        }
    }
}
