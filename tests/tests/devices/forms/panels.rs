//! Panels made on a device, against those that the host makes: the same entries in the same chunks.

use std::collections::HashSet;
use std::fmt;

use anyhow::{Result, ensure};
use gpu_kernels::fused::panels::{CHUNK, LEADS, PIECE_WORDS};
use warpfuse::device::Device;
use warpfuse::layout::panels::{PanelLayout, PanelSize};
use warpfuse::matrix::{CsrMatrix, Dtype, Element, Storage};
use warpfuse::ops::Number;
use warpfuse::ops::panel_making::PanelSource;
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::sample::Values;

use crate::suite::{Suite, Test};

/// What panels are made of, and how wide the widest may be.
#[derive(Clone, Copy)]
struct Making {
    case: Case,
    widest: usize,
}

impl fmt::Display for Making {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_widest_{}", self.case, self.widest)
    }
}

/// One panel and several, one huge column, no entries, long rows and many empty ones, more panels than a window has, rows
/// that 16 bits do not reach.
const MATRICES: [((usize, usize), Pattern, usize); 15] = [
    ((1, 1), Pattern::PerRow(1), 4_000),
    ((300, 90), Pattern::PerRow(7), 16_000),
    ((300, 90), Pattern::PerRow(7), 8),
    ((700, 300), Pattern::Growing(40), 33),
    ((257, 129), Pattern::Zipf(40), 10),
    ((301, 1_000), Pattern::Giant(900), 100),
    ((3_000, 33), Pattern::OneColumn, 7),
    ((31, 700), Pattern::OneFull, 60),
    ((2_001, 700), Pattern::OneFull, 60),
    ((65, 129), Pattern::Empty, 50),
    ((90, 5_000), Pattern::PerRow(9), 1),
    ((40, 200_000), Pattern::PerRow(7), 16_000),
    ((70_000, 300), Pattern::EveryOther(1), 30),
    ((200_000, 40), Pattern::OneFull, 16),
    ((150_000, 2), Pattern::OneColumn, 1),
];

/// Inputs that a chunk reaches, whichever is its first.
const REACH: usize = 1 << 16;
/// How much more the order of entries in chunks may cost than the host's, which weighs two for each chunk.
const DEARER: f64 = 1.15;
/// Columns up to which entries are put in the very order that the host's have.
const ONE_DIGIT: usize = 1 << 11;

/// Adds a test for each matrix and type.
pub fn add(suite: &mut Suite) {
    for (shape, pattern, widest) in MATRICES {
        let case = Case::new(shape, pattern, Values::Integers);
        let making = Making { case, widest };
        let test = |dtype: Dtype| {
            let test = Test::new(format!("panel_making/{making}/{dtype}"));
            test.within(case.subset()).of_entries()
        };
        suite.add_in_both(
            test,
            move |device| check::<f32>(device, making),
            move |device| check::<f64>(device, making),
        );
    }
    for gap in [65_535, 65_536, 200_000] {
        let test = |dtype: Dtype| {
            let test = Test::new(format!("panel_making/gaps_of_{gap}/{dtype}"));
            test.of_entries()
        };
        suite.add_in_both(
            test,
            move |device| check_gaps::<f32>(device, gap),
            move |device| check_gaps::<f64>(device, gap),
        );
    }
}

fn check<T: Number>(device: &Device, making: Making) -> Result<()> {
    let sample = making.case.sample::<T>();
    match sample.features.storage() {
        Storage::Sparse(x) => check_matrix(device, x, making.widest),
        Storage::Dense(_) => Ok(()),
    }
}

/// Rows far apart, in chunks of all fillings.
fn check_gaps<T: Number>(device: &Device, gap: usize) -> Result<()> {
    let rows = 3 * gap + 400;
    let columns_of = |row: usize| match (row % gap, row / gap) {
        (0..=90, _) => 0..3_u32,
        (_, 1) if row < gap + 300 => 1..2,
        _ => 0..0,
    };
    let (mut offsets, mut indices) = (vec![0], Vec::new());
    for row in 0..rows {
        indices.extend(columns_of(row));
        offsets.push(indices.len() as u64);
    }
    let value = |i: usize| Element::from_f64((i % 97) as f64);
    let values = (0..indices.len()).map(value).collect();
    let x = warpfuse::matrix::csr_from_parts((rows, 4), offsets, indices, values)?;
    check_matrix::<T>(device, &x, 2)
}

fn check_matrix<T: Number>(device: &Device, x: &CsrMatrix<T>, widest: usize) -> Result<()> {
    for ranges in [1, 5] {
        let size = PanelSize {
            widest,
            ranges,
            result: x.cols(),
        };
        let made = PanelSource::new(device, x)?.make(size)?.fetch()?;
        compare(&made, &PanelLayout::of_columns(x, size), x.rows() <= REACH)?;
        let ones = PanelSource::of_ones(device, x)?.make(size)?.fetch()?;
        compare(
            &ones,
            &PanelLayout::of_columns_of_ones(x, size),
            x.rows() <= REACH,
        )?;
        // Not a panel for every few of very many rows.
        let size = PanelSize {
            widest: widest.max(x.rows() / 100),
            ..size
        };
        let rows = PanelSource::new(device, x)?.make_rows(size)?.fetch()?;
        compare(&rows, &PanelLayout::of_rows(x, size), x.cols() <= ONE_DIGIT)?;
    }
    Ok(())
}

/// An entry: its sum among all, its input, the bits of its value.
type Entry = (u32, u32, u64);

fn compare<T: Number>(
    made: &PanelLayout<T>,
    expected: &PanelLayout<T>,
    is_same_order: bool,
) -> Result<()> {
    ensure!(
        (made.outputs, made.inputs, made.width)
            == (expected.outputs, expected.inputs, expected.width),
        "{} by {}, {} sums",
        made.outputs,
        made.inputs,
        made.width
    );
    ensure!(made.order == expected.order, "another order");
    if is_same_order {
        ensure!(made.bases == expected.bases, "other chunks");
        ensure!(made.pieces == expected.pieces, "other pieces");
        ensure!(made.ranges == expected.ranges, "other ranges");
    }
    let (mut found, mut wanted) = (chunks(made)?, chunks(expected)?);
    if !is_same_order {
        found = vec![found.concat()];
        wanted = vec![wanted.concat()];
        found[0].sort_unstable();
        wanted[0].sort_unstable();
    }
    ensure!(found == wanted, "other entries");
    let (made, expected) = (cost(made), cost(expected));
    ensure!(
        made <= DEARER * expected,
        "entries of chunks in an order that costs {made}, the host's {expected}"
    );
    Ok(())
}

/// What a product takes for entries in their order: for each go of as many lanes as are served together the sums of its busiest
/// bank, one after the other, and a request for each line of inputs, of which five take as long.
fn cost<T: Number>(layout: &PanelLayout<T>) -> f64 {
    let lanes = 128 / size_of::<T>();
    let (mut turns, mut requests) = (0, 0);
    for (chunk, base) in layout.keys.chunks_exact(CHUNK as usize).zip(&layout.bases) {
        for go in 0..CHUNK as usize / lanes {
            let (step, first) = (go % 4, go / 4 * lanes);
            let keys = (first..first + lanes).map(|lane| chunk[4 * lane + step]);
            let (mut banks, mut lines) = (vec![0; lanes], HashSet::new());
            for key in keys.filter(|key| key >> 16 < layout.width) {
                banks[(key >> 16) as usize % lanes] += 1;
                lines.insert((base + (key & 0xffff)) as usize / lanes);
            }
            turns += banks.into_iter().max().unwrap_or(0);
            requests += lines.len();
        }
    }
    5.0 * f64::from(turns) + requests as f64
}

/// The entries of each chunk, in order; chunks in the order of the pieces.
fn chunks<T: Number>(layout: &PanelLayout<T>) -> Result<Vec<Vec<Entry>>> {
    let mut all = Vec::new();
    let mut leading = Vec::new();
    for piece in layout.pieces.chunks_exact(PIECE_WORDS as usize) {
        let outputs = piece[1] & !LEADS;
        leading.extend((outputs != piece[1]).then_some(piece[0]));
        for chunk in piece[2]..piece[3] {
            all.push((chunk, entries(layout, chunk, (piece[0], outputs))?));
        }
    }
    leading.sort_unstable();
    ensure!(
        leading.windows(2).all(|pair| pair[0] < pair[1]),
        "two pieces lead"
    );
    all.sort_unstable();
    let numbers = all.iter().map(|(chunk, _)| *chunk);
    ensure!(
        numbers.eq(0..layout.bases.len() as u32),
        "chunks are not in one piece each"
    );
    Ok(all.into_iter().map(|(_, entries)| entries).collect())
}

fn entries<T: Number>(
    layout: &PanelLayout<T>,
    chunk: u32,
    (first, outputs): (u32, u32),
) -> Result<Vec<Entry>> {
    let mut all = Vec::new();
    for at in (chunk * CHUNK) as usize..((chunk + 1) * CHUNK) as usize {
        let (sum, distance) = (layout.keys[at] >> 16, layout.keys[at] & 0xffff);
        let value = layout
            .values
            .get(at)
            .map_or(1.0, |value| Element::to_f64(*value));
        if sum >= layout.width {
            // What fills a chunk adds zeros to the sum of its lane, or ones where there are no values.
            let lane = at as u32 % CHUNK / 4;
            ensure!(
                sum - layout.width == lane && distance == 0,
                "filled with {sum}"
            );
            ensure!(
                layout.values.is_empty() || value == 0.0,
                "filled with {value}"
            );
            continue;
        }
        ensure!(sum < outputs, "sum {sum} of {outputs}");
        let input = layout.bases[chunk as usize] + distance;
        all.push((first + sum, input, value.to_bits()));
    }
    ensure!(!all.is_empty(), "chunk {chunk} is empty");
    all.sort_unstable();
    Ok(all)
}
