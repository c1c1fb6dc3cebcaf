//! A binary cache of the shape of the Criteo Terabyte, written by all threads: categories, one column of each field.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use warpfuse::io::write_cache_rows;
use warpfuse_benches::data::hash;

use super::Wanted;

/// Writes `wanted.file`.
pub fn run(wanted: &Wanted) -> Result<()> {
    let path = wanted
        .file
        .as_deref()
        .context("criteo: expected --file PATH")?;
    let (rows, cols, per_row) = (wanted.rows, wanted.cols, wanted.per_row);
    ensure!(
        per_row > 0 && per_row <= cols,
        "--per-row {per_row}: expected 1 to {cols}"
    );
    let begun = Instant::now();
    let written = write_cache_rows::<f32>(path, (rows, cols, per_row), |rows, room| {
        let stratum = (cols / per_row) as f32;
        for (row, indices) in rows.clone().zip(room.indices.chunks_mut(per_row)) {
            fill(row as u64, stratum, indices);
        }
        room.values.fill(1.0);
        let firsts = room.indices.chunks(per_row).map(|indices| indices[0]);
        for ((row, first), target) in rows.zip(firsts).zip(room.targets) {
            *target = label(row as u64, first);
        }
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{}",
        json!({
            "what": "cache written",
            "rows": rows,
            "cols": cols,
            "per_row": per_row,
            "bytes": written,
            "seconds": seconds,
            "gb_s": written as f64 / seconds / 1e9,
            "rows_s": rows as f64 / seconds,
        })
    );
    Ok(())
}

/// The columns of a row: one of each field, frequent ones first. A hash has two fields' worth of bits.
fn fill(row: u64, stratum: f32, indices: &mut [u32]) {
    let pairs = indices.len().div_ceil(2) as u64;
    for (pair, columns) in indices.chunks_mut(2).enumerate() {
        let bits = hash(row * pairs + pair as u64);
        for (half, column) in columns.iter_mut().enumerate() {
            // 24 bits are what an f32 holds, so that it stays below 1.
            let drawn = ((bits >> (32 * half)) as u32 >> 8) as f32 / (1 << 24) as f32;
            let field = (2 * pair + half) as f32;
            let own = (drawn * drawn * drawn * stratum) as u32;
            *column = (field * stratum) as u32 + own.min(stratum as u32 - 1);
        }
    }
}

/// 0 or 1, by the category of the first field as often as by chance.
fn label(row: u64, first: u32) -> f32 {
    let unit = |bits: u64| (bits >> 40) as f32 / (1 << 24) as f32;
    let (of_column, noise) = (unit(hash(u64::from(first) << 32)), unit(hash(!row)));
    f32::from(u8::from(of_column + noise > 1.0))
}
