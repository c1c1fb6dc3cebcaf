//! What the cost model knows of the places where sums are: a row of a table each, with the times that its figures are from.

use gpu_kernels::describe::{Number, Sums};
use gpu_kernels::fused::CLUSTER;
use gpu_kernels::fused::Place;

/// A time that a figure was taken from, on an H200.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// What was computed. X has 4,000,000 rows of 20 entries of f32 unless it says otherwise.
    pub case: &'static str,
    /// When.
    pub date: &'static str,
    /// What it took, microseconds.
    pub us: f64,
}

/// How additions to sums are charged; pairs are of f32 and of f64.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Adds {
    /// As floats added to shared memory at random.
    SharedFloat,
    /// As fixed-point numbers added to shared memory at random; lanes without an entry of a row take as long.
    SharedFixed,
    /// As this many gathers from shared memory.
    SharedGathers([f64; 2]),
    /// For each instruction that the SMs issue this many, of which a share is left where nothing is between them.
    Network {
        per_instruction: [f64; 2],
        share_alone: f64,
    },
    /// As this many floats added to global memory at random, which queue up where rows have a column in common.
    Global([f64; 2]),
}

/// What is known of kernels over the rows of X with sums in one place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PlaceCost {
    /// Dependent round trips to memory of a step over CSR rows: offsets, where they do not come a row ahead, and entries.
    pub round_trips: f64,
    /// More of them for each entry that a lane adds, in f32 and in f64.
    pub round_trips_of_entry: [f64; 2],
    /// More of them where no gather hits the L1 cache, of products with y and of `Xᵀ·p`. Fitted: gathers that miss are a
    /// third round trip.
    pub round_trips_of_misses: [f64; 2],
    /// What additions add to them in `Xᵀ·p`; in the fused product gathers hide half of it.
    pub round_trips_of_adds: f64,
    /// How often each row is walked.
    pub walks: f64,
    /// How much longer uneven rows take.
    pub uneven: f64,
    /// Instructions of a lane for a row.
    pub per_row: f64,
    /// Instructions that an entry takes more than one that is added as a float.
    pub per_add: f64,
    /// Additions.
    pub adds: Adds,
    /// What each block of an SM takes to begin, microseconds.
    pub begin_us: f64,
    /// Where the figures are from.
    pub measured: &'static [Measured],
}

const fn on(date: &'static str, case: &'static str, us: f64) -> Measured {
    Measured { case, date, us }
}

/// Instructions of a lane for a sparse row, read off the compiled kernels, to the nearest few.
const PER_ROW: f64 = 25.0;

/// Floats in global memory, and what other places differ from: offsets, then entries, then gathers.
const GLOBAL: PlaceCost = PlaceCost {
    round_trips: 2.0,
    round_trips_of_entry: [0.0; 2],
    round_trips_of_misses: [1.0, 0.0],
    round_trips_of_adds: 0.0,
    walks: 1.0,
    uneven: 1.0,
    per_row: PER_ROW,
    per_add: 0.0,
    adds: Adds::Global([1.0; 2]),
    begin_us: 0.0,
    measured: &[
        on("2026-11-21", "X·y, n = 1,000,000", 640.0),
        on(
            "2026-11-21",
            "by Zipf's law, exponent 1.1, n = 1,000,000, VS = 8",
            11_600.0,
        ),
    ],
};

/// Floats in the shared memory of each block: an addition is a loop of compare-and-swap.
const SHARED: PlaceCost = PlaceCost {
    round_trips_of_adds: 1.5,
    adds: Adds::SharedFloat,
    measured: &[
        on(
            "2026-11-22",
            "Xᵀ·p, n = 10,000, two blocks of 1,024 threads",
            250.0,
        ),
        on(
            "2026-11-22",
            "Xᵀ·p, n = 10,000, one block of 1,024 threads",
            340.0,
        ),
        on("2026-11-21", "n = 40,000, VS = 4", 810.0),
        on("2026-11-21", "n = 40,000, VS = 8", 760.0),
    ],
    ..GLOBAL
};

/// Floats in the shared memory of each vector: no atomics. Offsets come a row ahead, and y is in shared memory.
const PRIVATE: PlaceCost = PlaceCost {
    round_trips: 1.5,
    round_trips_of_entry: [0.07, 0.0],
    round_trips_of_misses: [0.0; 2],
    per_row: 73.0,
    adds: Adds::SharedGathers([0.7, 4.0]),
    measured: &[
        on("2026-11-22", "n = 100, VS = 4", 163.0),
        on("2026-11-22", "n = 100, VS = 8", 180.0),
        on("2026-11-22", "n = 100, VS = 16", 296.0),
        on("2026-11-22", "n = 100, VS = 32", 525.0),
        on("2026-11-22", "n = 100, f64", 316.0),
    ],
    ..GLOBAL
};

/// Integers in global memory, offsets a row ahead: two words of eight bytes for one of f64's.
const FIXED_GLOBAL: PlaceCost = PlaceCost {
    round_trips: 1.5,
    round_trips_of_misses: [1.0; 2],
    per_add: 14.0,
    adds: Adds::Global([1.0, 2.0]),
    measured: &[
        on("2026-11-22", "n = 40,000", 1_080.0),
        on("2026-11-22", "n = 28,000, f64", 2_100.0),
    ],
    ..GLOBAL
};

/// Integers in the shared memory of each block.
const FIXED_SHARED: PlaceCost = PlaceCost {
    adds: Adds::SharedFixed,
    begin_us: 0.5,
    measured: &[
        on(
            "2026-11-22",
            "n = 1,000, f64, nine blocks of 128 threads",
            283.0,
        ),
        on(
            "2026-11-22",
            "n = 1,000, f64, one block of 1,024 threads",
            261.0,
        ),
        on("2026-11-22", "n = 1,000, f64, VS = 4", 260.0),
        on("2026-11-22", "n = 1,000, f64, VS = 8", 350.0),
        on("2026-11-22", "n = 1,000, f64, VS = 32", 700.0),
        on(
            "2026-11-22",
            "Xᵀ·p, n = 10,000, two blocks of 768 threads",
            190.0,
        ),
        on(
            "2026-11-22",
            "Xᵀ·p, n = 10,000, one block of 768 threads",
            212.0,
        ),
        on("2026-11-22", "n = 10,000, f64, y in shared memory", 289.0),
        on("2026-11-22", "n = 10,000, f64, y outside", 388.0),
        on("2026-11-22", "n = 28,000, y outside", 800.0),
    ],
    ..FIXED_GLOBAL
};

/// Integers in the shared memory of a cluster's blocks, which add over its network at the SMs' clock.
const FIXED_SPREAD: PlaceCost = PlaceCost {
    adds: Adds::Network {
        per_instruction: [220.0 / 927.0, 90.0 / 927.0],
        share_alone: 0.45,
    },
    begin_us: 0.5,
    measured: &[
        on("2026-11-22", "n = 28,000", 750.0),
        on("2026-11-22", "n = 40,000", 850.0),
        on("2026-11-22", "n = 28,000, f64", 1_440.0),
        on(
            "2026-11-22",
            "49 million entries in rows of 73, n = 47,236 by Zipf's law",
            570.0,
        ),
        on(
            "2026-11-22",
            "Xᵀ·p, 49 million entries in rows of 73, n = 47,236 by Zipf's law",
            610.0,
        ),
    ],
    ..FIXED_GLOBAL
};

/// Integers in the shared memory of a cluster's blocks, which walk the same rows. With n = 28,000 in f64 0.54 round trips of
/// an entry would do for the time, but then X·y and `Xᵀ·p`, 1,105 µs, came before a sum of floats that takes 1,047 and is
/// predicted to take 1,230; sums over a cluster's network take 1,444.
const FIXED_SPLIT: PlaceCost = PlaceCost {
    round_trips: 0.7,
    round_trips_of_entry: [0.32, 0.85],
    round_trips_of_misses: [0.0; 2],
    walks: CLUSTER as f64,
    uneven: 4.0,
    adds: Adds::SharedFixed,
    begin_us: 0.5,
    measured: &[
        on(
            "2026-11-22",
            "Xᵀ·p, five entries of a lane, 32 warps of an SM",
            384.0,
        ),
        on(
            "2026-11-22",
            "Xᵀ·p, three entries of a lane, 32 warps of an SM",
            567.0,
        ),
        on(
            "2026-11-22",
            "Xᵀ·p, one entry of a lane, 32 warps of an SM",
            1_236.0,
        ),
        on("2026-11-22", "n = 28,000, f64", 760.0),
        on(
            "2026-11-22",
            "n = 10,000, log-normal rows, VS = 8 (equal rows 540)",
            1_120.0,
        ),
        on(
            "2026-11-22",
            "677,399 × 47,236, rows of 73 in the mean",
            850.0,
        ),
    ],
    ..FIXED_GLOBAL
};

/// The row for sums over the rows of X; the one for floats in global memory where there are none.
pub(super) const fn of(sums: Sums) -> &'static PlaceCost {
    match (sums.place, sums.number) {
        (Place::Shared, Number::Float) => &SHARED,
        (Place::Private, _) => &PRIVATE,
        (Place::Shared, Number::Fixed) => &FIXED_SHARED,
        (Place::Spread, _) => &FIXED_SPREAD,
        (Place::Split, _) => &FIXED_SPLIT,
        (Place::Global, Number::Fixed) => &FIXED_GLOBAL,
        (Place::Global | Place::Registers | Place::Absent, _) => &GLOBAL,
    }
}
