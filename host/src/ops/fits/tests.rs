//! Fits of rows that cross in blocks, beside those of rows that lie on the device.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::crossing::minimise_in;
use super::made::Made;
use super::{FitRows, FitRules, MadeRows, Minima, SmallFit, minimise_each, minimise_made};
use crate::device::{Device, EmulatorOptions, MemoryOptions};
use crate::matrix::Element;
use crate::ops::Number;
use crate::ops::objective::Loss;

const COLS: usize = 3;
/// Around warps, and one without rows.
const SIZES: [usize; 15] = [33, 7, 0, 64, 1, 70, 31, 12, 40, 50, 60, 45, 55, 65, 30];

/// Numbers between −1 and 1 that look like chance.
fn number(i: usize) -> f64 {
    let bits = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((bits ^ bits >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64 / 2f64.powi(52) - 1.0
}

/// Arrays, and how many of their elements were made.
struct Data<T> {
    x: Vec<T>,
    targets: Vec<T>,
    weights: Vec<T>,
    offset: Vec<T>,
    made: AtomicUsize,
}

impl<T: Number> Data<T> {
    fn new() -> Self {
        let rows: usize = SIZES.iter().sum();
        let narrow = <T as Element>::from_f64;
        let each = |of: &dyn Fn(usize) -> f64| (0..rows).map(|i| narrow(of(i))).collect();
        Data {
            x: (0..rows * COLS).map(|i| narrow(number(i))).collect(),
            targets: each(&|i| f64::from(u8::from(number(7 * i) + number(COLS * i) > 0.0))),
            weights: each(&|i| (i % 4) as f64),
            offset: each(&|i| 0.1 * (i % 3) as f64),
            made: AtomicUsize::new(0),
        }
    }

    fn copy<'a>(&'a self, from: &'a [T]) -> impl Fn(Range<usize>, &mut [T]) + Sync + 'a {
        |range, to| {
            self.made.fetch_add(range.len(), Ordering::Relaxed);
            to.copy_from_slice(&from[range]);
        }
    }

    /// On the device, in one launch.
    fn at_once(&self, device: &Device, has_more: bool) -> Minima {
        let upload = |values: &[T]| device.upload(values).expect("a small array");
        let (weights, offset) = (upload(&self.weights), upload(&self.offset));
        let rows = FitRows {
            x: &upload(&self.x),
            rows: self.targets.len(),
            cols: COLS,
            pitch: COLS,
            targets: &upload(&self.targets),
            weights: has_more.then_some(&weights),
            offset: has_more.then_some(&offset),
        };
        minimise_each(&rows, &rules(), &fits(), &start()).expect("fits")
    }

    /// In blocks of this many bytes.
    fn crossing(&self, device: &Device, has_more: bool, block: Option<u64>) -> Minima {
        let (x, targets) = (self.copy(&self.x), self.copy(&self.targets));
        let (weights, offset) = (self.copy(&self.weights), self.copy(&self.offset));
        let made = MadeRows {
            rows: self.targets.len(),
            cols: COLS,
            x: &x,
            targets: &targets,
            weights: has_more.then_some(&weights as Made<'_, T>),
            offset: has_more.then_some(&offset as Made<'_, T>),
        };
        let found = match block {
            Some(block) => minimise_in(device, (&made, block), &rules(), &fits(), &start()),
            None => minimise_made(device, &made, &rules(), &fits(), &start()),
        };
        found.expect("fits")
    }
}

fn rules() -> FitRules<'static> {
    FitRules {
        standardizes: true,
        ..FitRules::new(Loss::Logistic)
    }
}

fn fits() -> Vec<SmallFit> {
    let mut row = 0;
    let fit = |rows: &usize| {
        row += rows;
        SmallFit {
            row: row - rows,
            rows: *rows,
            target: row - rows,
            weight: row - rows,
            scale: 1.0 / (*rows).max(1) as f64,
            l2: 0.1,
            intercept_l2: 0.0,
        }
    };
    SIZES.iter().map(fit).collect()
}

fn start() -> Vec<f64> {
    vec![0.0; SIZES.len() * (COLS + 1)]
}

fn devices() -> [Device; 2] {
    [
        Device::cpu(),
        Device::small_emulator(EmulatorOptions::default()),
    ]
}

fn blocks_of_any_size<T: Number>() {
    let data = Data::<T>::new();
    let [cpu, emulator] = devices().map(|device| data.at_once(&device, true));
    for fit in 0..SIZES.len() {
        let pairs = cpu.theta(fit).iter().zip(emulator.theta(fit));
        let worst = pairs.fold(0.0, |worst: f64, (a, b)| worst.max((a - b).abs()));
        assert!(worst < 1e-9, "fit {fit}: {worst:e}");
    }
    for device in devices() {
        for has_more in [false, true] {
            let truth = data.at_once(&device, has_more);
            for block in [Some(1), Some(40 * 16), Some(100 * 32), None] {
                let before = device.usage().sent_bytes;
                data.made.store(0, Ordering::Relaxed);
                let found = data.crossing(&device, has_more, block);
                assert_eq!(found, truth, "{device}, {has_more}, {block:?}");
                // Every element crosses once, and no array but those: the gaps between, places, numbers, and a start.
                let each = COLS + if has_more { 3 } else { 1 };
                let made = data.made.load(Ordering::Relaxed);
                assert_eq!(made, each * data.targets.len(), "{device}, {block:?}");
                let sent = (device.usage().sent_bytes - before) as usize;
                let gaps = SIZES.len() * 4 * 512 + SIZES.len() * 8 * (7 + COLS + 1);
                assert!(sent <= made * size_of::<T>() + gaps, "{sent} bytes");
            }
        }
    }
}

#[test]
fn fits_that_cross_have_the_bits_of_those_at_once() {
    blocks_of_any_size::<f32>();
    blocks_of_any_size::<f64>();
}

#[test]
fn rows_that_do_not_fit_the_device_cross_in_smaller_blocks() {
    let data = Data::<f64>::new();
    let truth = data.at_once(&devices()[1], true);
    let device = Device::small_emulator(EmulatorOptions::default());
    let all = data.targets.len() * (COLS + 3) * 8;
    device.limit_memory(MemoryOptions {
        limit_bytes: Some(all),
        ..MemoryOptions::default()
    });
    assert_eq!(data.crossing(&device, true, None), truth);
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let data = Data::<f64>::new();
    let (x, targets) = (data.copy(&data.x), data.copy(&data.targets));
    let made = MadeRows {
        rows: data.targets.len() - 1,
        cols: COLS,
        x: &x,
        targets: &targets,
        weights: None,
        offset: None,
    };
    for device in devices() {
        let fit = |made: &MadeRows<'_, f64>, start: &[f64]| {
            let error = minimise_made(&device, made, &rules(), &fits(), start);
            error.expect_err("something is wrong").to_string()
        };
        assert!(fit(&made, &start()).contains("rows of X"));
        let rows = data.targets.len();
        let made = MadeRows { rows, ..made };
        assert!(fit(&made, &start()[1..]).contains("start"));
        let made = MadeRows { cols: 65, ..made };
        assert!(fit(&made, &start()).contains("64"));
    }
}
