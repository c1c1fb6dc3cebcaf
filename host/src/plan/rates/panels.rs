//! What panels take, measured on an H200: blocks share panels out by it before anything runs, so that only the
//! proportions count.

/// Femtoseconds that a whole H200 takes for an entry: 8 bytes and an addition in shared memory, some of it at once. With
/// [`SECTOR_FS`], the best of those tried over the cold columns of matrices of kddb's shape and by Zipf's law, 1,000,000 and
/// 20,000,000 columns: 2,450 and 1,200 (724, 314, 467 µs), 1,900 and 1,200 (727, 313, 470), 1,900 and 1,700 (725, 306,
/// 466), 1,600 and 2,000 (735, 302, 471). The others are fitted to the cycles that each of 132 blocks took.
pub(crate) const ENTRY_FS: u64 = 1_900;
/// The same for a sector of the inputs, from L2. A panel of rare columns wants one for each entry, one of frequent columns
/// one for eight.
pub(crate) const SECTOR_FS: u64 = 1_500;
/// The same for an output of a panel whose chunks are dealt out: its sum is set to zero and added to global memory. A panel
/// of many columns with few entries each costs as much for its sums as for its entries: without it the last block had
/// nearly all panels of 20,000,000 columns by Zipf's law to itself (7.4 ms).
pub(crate) const OUTPUT_FS: u64 = 4_700;
/// The same for an output of a panel that a block takes whole, beside what it adds to a sector of the result, which as
/// many outputs share as meet there.
pub(crate) const WHOLE_OUTPUT_FS: f64 = 1_500.0;
pub(crate) const SECTOR_OF_RESULT_FS: f64 = 15_000.0;
