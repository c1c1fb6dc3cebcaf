//! The one list of cases that every device runs.
//!
//! Sizes straddle what kernels are cut by: vectors of 1 to 32 lanes, warps of 32, packs of 2 and 4,
//! blocks of up to 1,024 threads, panels of columns, and shared memory.

use std::collections::BTreeSet;
use std::fmt;

use warpfuse::ops::Number;

use crate::Subset;
use crate::generate::Pattern;
use crate::sample::{FULL, PLAIN, Part, Sample, Values};

/// A matrix, what its numbers are like, and the choices of optional parts that it is multiplied with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Case {
    /// m.
    pub rows: usize,
    /// n.
    pub cols: usize,
    /// Which entries are there.
    pub pattern: Pattern,
    /// What the numbers are like.
    pub values: Values,
    /// Which parts of the pattern are tried.
    pub choices: Choices,
}

/// Which optional parts a case is run with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Choices {
    /// None, and all at once.
    Ends,
    /// All sixteen.
    Every,
}

impl Choices {
    /// The choices as lists of parts.
    pub fn lists(self) -> Vec<Vec<Part>> {
        match self {
            Choices::Ends => vec![PLAIN.to_vec(), FULL.to_vec()],
            Choices::Every => (0..1 << FULL.len()).map(chosen).collect(),
        }
    }
}

/// The parts whose bit is set.
fn chosen(bits: usize) -> Vec<Part> {
    let parts = FULL.iter().enumerate();
    parts
        .filter(|(i, _)| bits & (1 << i) != 0)
        .map(|(_, part)| *part)
        .collect()
}

/// Unique in the list.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case {
            rows,
            cols,
            pattern,
            values,
            choices,
        } = self;
        write!(f, "{rows}x{cols}_{pattern}_{values}")?;
        match choices {
            Choices::Ends => Ok(()),
            Choices::Every => f.write_str("_every_term"),
        }
    }
}

impl Case {
    /// The case with none and all of the optional parts.
    pub const fn new((rows, cols): (usize, usize), pattern: Pattern, values: Values) -> Case {
        Case {
            rows,
            cols,
            pattern,
            values,
            choices: Choices::Ends,
        }
    }

    /// The case's data; the same whenever and wherever they are drawn.
    pub fn sample<T: Number>(&self) -> Sample<T> {
        Sample::new(
            self.seed(),
            (self.rows, self.cols),
            self.pattern,
            self.values,
        )
    }

    /// FNV-1a of the name.
    fn seed(&self) -> u64 {
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        self.to_string().bytes().fold(0xcbf2_9ce4_8422_2325, mix)
    }

    /// Stored entries.
    pub fn entries(&self) -> usize {
        (0..self.rows)
            .map(|row| self.pattern.row_len(row, self.rows, self.cols))
            .sum()
    }

    /// The smallest subset that has the case.
    pub fn subset(&self) -> Subset {
        let is_small = self.entries() <= 4_096 && self.cols <= 1_025 && self.rows <= 1_025;
        if is_small {
            Subset::Small
        } else {
            Subset::Full
        }
    }
}

/// Around warps and blocks.
const EDGES: [usize; 24] = [
    0, 1, 2, 3, 7, 8, 9, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000, 1023, 1024,
    1025, 2049,
];

/// The smallest sizes, in all combinations.
const CORNERS: [usize; 8] = [0, 1, 2, 3, 5, 31, 32, 33];

/// Around what a thread, a team and a block hold of a dense row.
const WIDTHS: [usize; 25] = [
    4, 5, 12, 28, 30, 36, 48, 96, 100, 200, 300, 384, 500, 512, 513, 640, 768, 900, 2048, 3000,
    4096, 5120, 8192, 20_000, 40_000,
];

/// Wider than a block holds, of f32 or of f64: around what clusters of two and of four blocks hold, and between.
const WIDE: [(usize, usize); 9] = [
    (9, 16_385),
    (5, 32_768),
    (9, 32_769),
    (7, 33_001),
    (5, 65_536),
    (3, 65_537),
    (5, 98_305),
    (2, 131_072),
    (2, 131_073),
];

/// All cases, without duplicates.
pub fn all() -> Vec<Case> {
    let lists = [
        corners(),
        edges(),
        widths(),
        row_lengths(),
        many_rows(),
        extremes(),
    ];
    let mut seen = BTreeSet::new();
    let all = lists.into_iter().flatten();
    all.filter(|case| seen.insert(case.to_string())).collect()
}

fn corners() -> Vec<Case> {
    let mut cases = Vec::new();
    for rows in CORNERS {
        for cols in CORNERS {
            cases.push(Case::new((rows, cols), Pattern::Dense, Values::Integers));
            cases.push(Case::new(
                (rows, cols),
                Pattern::Growing(4),
                Values::Integers,
            ));
        }
    }
    cases
}

fn edges() -> Vec<Case> {
    let mut cases = Vec::new();
    for size in EDGES {
        for values in [Values::Integers, Values::Uniform] {
            cases.push(Case::new((37, size), Pattern::Dense, values));
            cases.push(Case::new((size, 37), Pattern::Dense, values));
            cases.push(Case::new((130, size), Pattern::PerRow(20), values));
            cases.push(Case::new((size, 130), Pattern::Zipf(9), values));
        }
    }
    cases
}

fn widths() -> Vec<Case> {
    let of_width = |cols| {
        let rows = if cols > 4_096 { 19 } else { 150 };
        let case = move |values| Case::new((rows, cols), Pattern::Dense, values);
        [case(Values::Integers), case(Values::Uniform)]
    };
    let of_shape = |shape| {
        let case = move |values| Case::new(shape, Pattern::Dense, values);
        [case(Values::Integers), case(Values::Uniform)]
    };
    let wide = WIDE.into_iter().flat_map(of_shape);
    WIDTHS.into_iter().flat_map(of_width).chain(wide).collect()
}

fn row_lengths() -> Vec<Case> {
    let mut cases = Vec::new();
    for values in [Values::Integers, Values::Uniform] {
        let mut add = |rows, cols, pattern| cases.push(Case::new((rows, cols), pattern, values));
        for count in [1, 2, 4, 8, 15, 16, 17, 40, 70] {
            add(500, 300, Pattern::PerRow(count));
        }
        add(700, 400, Pattern::EveryOther(5));
        add(257, 129, Pattern::Empty);
        add(600, 200, Pattern::Growing(150));
        // Longer than any block has threads, alone and among short rows.
        add(301, 6_000, Pattern::Giant(5_000));
        add(1_000, 4_096, Pattern::OneFull);
        add(1, 5_000, Pattern::OneFull);
        // Wider than shared memory: 100,000 f32 and 60,000 f64 are more than any SM has.
        add(400, 60_000, Pattern::PerRow(12));
        add(300, 100_000, Pattern::Zipf(30));
        // More than 48 KB, less than what blocks may ask for.
        add(300, 20_000, Pattern::Zipf(10));
        add(2_000, 1, Pattern::PerRow(1));
        add(3_000, 70, Pattern::OneColumn);
    }
    cases
}

fn many_rows() -> Vec<Case> {
    let mut cases = Vec::new();
    for values in [Values::Integers, Values::Uniform] {
        cases.push(Case::new((100_000, 3), Pattern::Dense, values));
        cases.push(Case::new((60_000, 28), Pattern::Dense, values));
        cases.push(Case::new((100_000, 50), Pattern::PerRow(4), values));
        cases.push(Case::new((40_000, 1_000), Pattern::Zipf(15), values));
    }
    cases
}

fn extremes() -> Vec<Case> {
    use Values::{Huge, Infinity, Nan, Subnormal, Tiny};
    let mut cases = Vec::new();
    for values in [Huge, Tiny, Subnormal, Nan, Infinity] {
        cases.push(Case::new((70, 33), Pattern::Dense, values));
        cases.push(Case::new((70, 600), Pattern::Dense, values));
        // A cluster's, of f64 and of f32.
        cases.push(Case::new((3, 20_003), Pattern::Dense, values));
        cases.push(Case::new((3, 40_002), Pattern::Dense, values));
        cases.push(Case::new((300, 90), Pattern::PerRow(7), values));
        cases.push(Case::new((90, 60_000), Pattern::PerRow(7), values));
    }
    for values in [Values::Integers, Values::Uniform] {
        let shapes = [
            ((65, 129), Pattern::Dense),
            // An odd number of f64 for each of two threads, with and without padding.
            ((1_031, 33), Pattern::Dense),
            ((77, 42), Pattern::Dense),
            ((3, 33_001), Pattern::Dense),
            ((200, 65), Pattern::PerRow(9)),
        ];
        for (shape, pattern) in shapes {
            let choices = Choices::Every;
            cases.push(Case {
                choices,
                ..Case::new(shape, pattern, values)
            });
        }
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_the_small_subset_is_small() {
        let full = all();
        let names: BTreeSet<String> = full.iter().map(Case::to_string).collect();
        assert_eq!(names.len(), full.len());
        let small = full.iter().filter(|case| case.subset() == Subset::Small);
        let small = small.count();
        assert!(small < full.len() && small > 100, "{small}");
    }

    #[test]
    fn every_choice_is_tried_once() {
        let lists = Choices::Every.lists();
        assert_eq!((lists.len(), lists[0].len(), lists[15].len()), (16, 0, 4));
        assert!((0..16).all(|i| (0..i).all(|j| lists[i] != lists[j])));
    }

    #[test]
    fn data_of_a_case_are_always_the_same() {
        let case = Case::new((5, 4), Pattern::Dense, Values::Uniform);
        assert_eq!(case.sample::<f32>().y, case.sample::<f32>().y);
        assert_eq!(case.entries(), 20);
    }
}
