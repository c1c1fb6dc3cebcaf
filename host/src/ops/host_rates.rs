//! What this machine's CPU and the link to a GPU do: measured by passes over made-up data and by copies.

use std::time::Instant;

use super::{Matrix, MatrixOptions, OpError, Preparation, Terms};
use crate::device::{Device, LinkProbe};
use crate::matrix::{Features, csr_from_parts};
use crate::plan::rates::{HostRates, SizeTable, SparseWork, Speedup};
use crate::plan::streaming::LinkRates;

/// Bytes of dense rows, which no cache holds.
const DENSE_BYTES: usize = 512 << 20;
const DENSE_COLS: usize = 128;
/// Entries of sparse rows, and of each row.
const ENTRIES: usize = 1 << 25;
const PER_ROW: usize = 16;
/// Columns: vectors that L1 holds, that L2 holds with the sums of a thread and without, that L3 holds, and that none does.
const COLS: [usize; 6] = [1_000, 1 << 15, 1 << 16, 1 << 18, 1 << 20, 20_000_000];
/// Entries of an X that one thread reads.
const FEW_ENTRIES: usize = 60_000;
/// Entries of an X whose arrays take no time to reach a device.
const PLACED: usize = 16_000;
/// Passes that are timed; an odd number, so that there is a middle one.
const PASSES: usize = 5;
/// Bytes that cross the link each way of copying.
const LINK_BYTES: usize = 1 << 30;

/// Measures for some seconds: copies to `device`, and passes of the CPU with all its threads. Takes 1 GiB of host memory.
///
/// ```no_run
/// use warpfuse::device::Device;
/// use warpfuse::ops::measure_host;
/// let host = measure_host(&Device::cuda(0)?)?;
/// println!("{} GB/s to the device", host.link.pinned_gbs);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`OpError::Device`] when the device fails or has too little memory.
pub fn measure_host(device: &Device) -> Result<HostRates, OpError> {
    let LinkProbe {
        pinned_gbs,
        staged_gbs,
        pinning_gbs,
    } = device.probe_link(LINK_BYTES)?;
    let dense_gbs = DENSE_BYTES as f64 / pass_seconds(dense(DENSE_BYTES))? / 1e9;
    let sparse_rates = COLS.map(|cols| {
        let seconds = pass_seconds(sparse(ENTRIES, cols))?;
        Ok::<_, OpError>(((4 * cols) as f64, seconds))
    });
    let sparse_seconds = sparse_rates.into_iter().collect::<Result<Vec<_>, _>>()?;
    let few = 4 * FEW_ENTRIES;
    let dense_alone = few as f64 / pass_seconds(dense(few))? / 1e9;
    let sparse_alone = FEW_ENTRIES as f64 / pass_seconds(sparse(FEW_ENTRIES, COLS[0]))? / 1e9;
    let all = ENTRIES as f64 / sparse_seconds[0].1 / 1e9;
    let speedup = Speedup {
        dense: (dense_gbs / dense_alone).max(1.0),
        sparse: (all / sparse_alone).max(1.0),
    };
    let rates = sparse_seconds.into_iter().map(|(bytes, seconds)| {
        let own = SparseWork {
            entries: ENTRIES as u64,
            rows: (ENTRIES / PER_ROW) as u64,
            bytes: (8 * ENTRIES + 4 * ENTRIES / PER_ROW) as u64,
            cols: bytes as u64 / 4,
        };
        // What is left without the sums' copies, of as many threads as there are.
        let reading = (seconds - own.copying_seconds(dense_gbs)).max(0.1 * seconds);
        let alone = (speedup.sparse / own.copies() as f64).max(1.0);
        (bytes, ENTRIES as f64 * alone / reading / 1e9)
    });
    Ok(HostRates {
        link: LinkRates {
            pinned_gbs,
            staged_gbs,
            pinning_gbs,
        },
        dense_gbs,
        sparse: SizeTable::new(rates.collect::<Vec<_>>()),
        speedup,
        placing_seconds: placing_seconds(device)?,
    })
}

/// Seconds until a device has computed with a small sparse X that is to be read a few times, the second time: planning its
/// form takes longer than its arrays.
fn placing_seconds(device: &Device) -> Result<f64, OpError> {
    let mut seconds = 0.0;
    for times in [1, 2] {
        let x = sparse(PLACED * times, PLACED / PER_ROW);
        let begun = Instant::now();
        let few = Preparation::For { evaluations: 10 };
        let x = Matrix::prepared(device, x, MatrixOptions::default(), few)?;
        let y = device.upload(&vec![0.5_f32; x.cols()])?;
        let mut w = device.zeros(x.cols())?;
        x.fused(&y, &Terms::default(), &mut w)?;
        device.synchronize()?;
        seconds = begun.elapsed().as_secs_f64();
    }
    Ok(seconds)
}

/// The middle one of some fused products on the CPU.
fn pass_seconds(features: Features<f32>) -> Result<f64, OpError> {
    let cpu = Device::cpu();
    let x = Matrix::with_options(&cpu, features, MatrixOptions::default())?;
    let y = cpu.upload(&vec![0.5_f32; x.cols()])?;
    let mut w = cpu.zeros(x.cols())?;
    let mut once = || {
        let begun = Instant::now();
        x.fused(&y, &Terms::default(), &mut w)?;
        Ok::<f64, OpError>(begun.elapsed().as_secs_f64())
    };
    // Memory of the pass's own.
    once()?;
    let mut seconds = (0..PASSES).map(|_| once()).collect::<Result<Vec<_>, _>>()?;
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[PASSES / 2].max(1e-9))
}

fn dense(bytes: usize) -> Features<f32> {
    let rows = bytes / 4 / DENSE_COLS;
    // Zeros that were never written are one page of memory, read from the cache.
    let values = crate::parallel::map(rows * DENSE_COLS, |place| (place % 13) as f32);
    let x = ndarray::Array2::from_shape_vec((rows, DENSE_COLS), values);
    Features::Dense(x.expect("as many elements"))
}

/// Rows with an entry somewhere in each of equal ranges of columns.
fn sparse(entries: usize, cols: usize) -> Features<f32> {
    let rows = entries / PER_ROW;
    let range = cols / PER_ROW;
    let column = |place: usize| {
        // The finaliser of SplitMix64 (Steele, Lea, Flood, 2014).
        let mut bits = (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits ^= bits >> 27;
        (place % PER_ROW * range) as u32 + (bits % range as u64) as u32
    };
    let offsets = (0..=rows).map(|row| (row * PER_ROW) as u64).collect();
    let indices = crate::parallel::map(entries, column);
    let x = csr_from_parts((rows, cols), offsets, indices, vec![0.5; entries]);
    Features::Sparse(x.expect("columns ascend"))
}
