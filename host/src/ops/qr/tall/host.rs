//! R of a tall matrix on the CPU.

use rayon::prelude::*;

use super::{CPU_ROWS, Dressing, TallQr};
use crate::cpu::qr as cpu;
use crate::device::Buffer;
use crate::ops::Number;
use crate::ops::qr::host::ON_HOST;

impl<T: Number> TallQr<T> {
    pub(super) fn on_cpu(&mut self, a: &Buffer<T>, dressing: &Dressing<'_, T>) {
        let a = a.as_host_slice().expect(ON_HOST);
        let [means, roots, targets] = [dressing.means, dressing.roots, dressing.targets]
            .map(|buffer| buffer.map(|buffer| buffer.as_host_slice().expect(ON_HOST)));
        let (n, piece) = (self.width, self.piece);
        let count = piece.rows.div_ceil(CPU_ROWS);
        let of_block = |block: usize| {
            let first = block * CPU_ROWS;
            let rows = CPU_ROWS.min(piece.rows - first);
            let element = |col: usize, row: usize| {
                let plain = match targets {
                    Some(targets) if col == piece.cols => targets[first + row],
                    _ => a[piece.at(first + row, col)] - means.map_or(T::ZERO, |means| means[col]),
                };
                roots.map_or(plain, |roots| plain * roots[first + row])
            };
            let columns = (0..n).flat_map(|col| (0..rows).map(move |row| element(col, row)));
            r_of(columns.collect(), rows, n)
        };
        let mut found: Vec<(Vec<T>, u32)> = (0..count).into_par_iter().map(of_block).collect();
        let mut status = found.iter().fold(0, |all, (_, status)| all | status);
        while found.len() > 1 {
            let of_pair = |pair: &[(Vec<T>, u32)]| {
                let rows = pair.len() * n;
                let element = |col: usize, row: usize| pair[row / n].0[row % n * n + col];
                let columns = (0..n).flat_map(|col| (0..rows).map(move |row| element(col, row)));
                r_of(columns.collect(), rows, n)
            };
            found = found.par_chunks(2).map(of_pair).collect();
            status = found.iter().fold(status, |all, (_, status)| all | status);
        }
        let last = self.levels.last_mut().and_then(Buffer::as_host_slice_mut);
        last.expect("the buffers lie on the CPU")
            .copy_from_slice(&found[0].0);
        let words = self.status.as_host_slice_mut();
        words.expect("the buffers lie on the CPU").fill(status);
    }
}

/// Row-major R, with zeros, of a column-major block.
fn r_of<T: Number>(mut packed: Vec<T>, rows: usize, n: usize) -> (Vec<T>, u32) {
    let mut status = 0;
    let mut job = cpu::Job {
        rows,
        cols: n,
        packed: &mut packed,
        first: &mut vec![T::ZERO; n],
        t: &mut [],
        status: &mut status,
    };
    cpu::factor(&mut job);
    let mut r = vec![T::ZERO; n * n];
    for col in 0..n {
        for row in 0..rows.min(col + 1) {
            r[row * n + col] = packed[col * rows + row];
        }
    }
    (r, status)
}
