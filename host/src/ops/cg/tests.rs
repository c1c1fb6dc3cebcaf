//! Solves that begin anew.

use super::*;
use crate::device::EmulatorOptions;

/// One block's work, and that of several.
const LENGTHS: [usize; 2] = [777, 60_001];

fn numbers<T: Number>(device: &Device, len: usize, seed: usize) -> Buffer<T> {
    let element = |i: usize| <T as Element>::from_f64(((i * 37 + seed) % 101) as f64 / 50.0 - 1.0);
    let vector: Vec<T> = (0..len).map(element).collect();
    device.upload(&vector).expect("memory")
}

/// D⁻¹, which holds some coordinates.
fn inverse<T: Number>(device: &Device, len: usize) -> Buffer<T> {
    let element = |i: usize| <T as Element>::from_f64((i % 5) as f64 / 4.0);
    let inverse: Vec<T> = (0..len).map(element).collect();
    device.upload(&inverse).expect("memory")
}

fn solve<T: Number>(device: &Device, len: usize, seed: usize) -> CgVectors<T> {
    let (r, means) = (numbers(device, len, seed), numbers(device, len, 5));
    let inverse = Some(inverse(device, len));
    let vectors = CgVectors::new(device, r, inverse, Some(means), Stop::at(1e-3));
    vectors.expect("memory")
}

/// Everything that a solve goes on from.
fn bits<T: Number>(vectors: &CgVectors<T>) -> Vec<Vec<u64>> {
    let of = |vector: &Buffer<T>| {
        let vector = vector.to_vec().expect("memory").into_iter();
        vector.map(|x| Element::to_f64(x).to_bits()).collect()
    };
    let state = vectors.state().to_vec().expect("memory").into_iter();
    let shift = vectors.shift.as_ref().expect("there are means");
    vec![
        of(&vectors.w),
        of(&vectors.r),
        of(&vectors.p),
        of(shift),
        state.map(f64::to_bits).collect(),
    ]
}

/// Whatever the vectors held before, numbers or not.
fn begins_anew<T: Number>(device: &Device) {
    for len in LENGTHS {
        let expected = bits(&solve::<T>(device, len, 2));
        let mut vectors = solve::<T>(device, len, 1);
        let mut lent = numbers::<T>(device, len, 3);
        for nan in [false, true] {
            vectors.q.copy_from(&lent).expect("memory");
            vectors.advance().expect("an iteration");
            if nan {
                let mut other = numbers(device, len, 4);
                super::vector::fill(<T as Element>::from_f64(f64::NAN), &mut lent).expect("memory");
                vectors.lend(&mut lent, &mut other);
            }
            let r = numbers(device, len, 2);
            vectors.restart(&r, Stop::at(1e-3)).expect("memory");
            assert!(bits(&vectors) == expected, "{len} elements, NaN: {nan}");
        }
    }
}

#[test]
fn a_solve_that_begins_anew_is_a_new_one() {
    for device in [Device::cpu(), Device::emulator(EmulatorOptions::default())] {
        begins_anew::<f32>(&device);
        begins_anew::<f64>(&device);
    }
}

#[test]
fn kernels_may_have_as_many_threads_as_pieces_want() {
    for len in [1, 777, 8_192, 8_193, 60_001, 30_000_000] {
        let pieces = Pieces::of(len);
        let most = match pieces.count {
            1 => gpu_kernels::cg::LARGE,
            _ => gpu_kernels::cg::BLOCK,
        };
        assert!(pieces.threads <= most as usize, "{len} elements");
    }
}
