//! How fast lanes run and change places.

use std::time::{Duration, Instant};

use gpu_kernels::fused::sparse::fused_of_eight_lanes;
use gpu_kernels::fused::{Place, Product, Sparse, SparseArgs};
use gpu_kernels::{Cta, Family, In, Launch};
use serde::{Deserialize, Serialize};

use crate::{Emulator, EmulatorOptions, Kernel};

/// Measured on one core with all checks on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LaneSpeed {
    /// Accessor calls per second in the fused sparse kernel.
    #[serde(rename = "lane_steps_per_second")]
    pub steps_per_second: f64,
    /// From a lane at a barrier to the next of 1,024 lanes.
    pub nanoseconds_per_switch: f64,
}

/// Time that is given to a measurement.
const BUDGET: Duration = Duration::from_millis(200);

/// Measures both speeds, in about half a second.
pub fn lane_speed() -> LaneSpeed {
    LaneSpeed {
        steps_per_second: steps_per_second(),
        nanoseconds_per_switch: nanoseconds_per_switch(),
    }
}

/// What `each` returns per second in the fastest of many short runs: on a busy machine other programs
/// interrupt some of them, but not all.
fn rate(mut each: impl FnMut() -> u64) -> f64 {
    let (start, mut best) = (Instant::now(), 0.0f64);
    while start.elapsed() < BUDGET {
        let run = Instant::now();
        let done = each();
        best = best.max(done as f64 / run.elapsed().as_secs_f64());
    }
    best
}

/// 512 rows of 28 nonzeros, a copy of w per block, 8 lanes to a row: reads and atomics in global and
/// shared memory, shuffles, and barriers, in the mix of a real kernel.
fn steps_per_second() -> f64 {
    const ROWS: u32 = 512;
    const COLUMNS: u32 = 200;
    const LENGTH: u32 = 28;
    let emulator = Emulator::new(EmulatorOptions::default());
    let offsets: Vec<u32> = (0..=ROWS).map(|row| row * LENGTH).collect();
    let column = |k: u32| (k * 7 + k / LENGTH * 13) % COLUMNS;
    let indices: Vec<u32> = (0..ROWS * LENGTH).map(column).collect();
    let fits = "100 KB fit";
    let offsets = emulator.upload("offsets", &offsets).expect(fits);
    let indices = emulator.upload("indices", &indices).expect(fits);
    let values = vec![1.0f32; (ROWS * LENGTH) as usize];
    let values = emulator.upload("values", &values).expect(fits);
    let y = emulator
        .upload("y", &[1.0f32; COLUMNS as usize])
        .expect(fits);
    let w = emulator
        .upload("w", &[0.0f32; COLUMNS as usize])
        .expect(fits);
    let args = SparseArgs {
        rows: ROWS,
        cols: COLUMNS,
        offsets: offsets.input(),
        indices: indices.input(),
        values: values.input(),
        input: y.input(),
        weights: In::none(),
        shift: In::none(),
        addend: In::none(),
        solve: In::none(),
        output: w.output(),
        alpha: 1.0,
        beta: 0.0,
    };
    let entry = Sparse::<f32>::entries()
        .iter()
        .find(|entry| {
            let variant = entry.variant;
            (variant.product, variant.place, variant.vs) == (Product::Fused, Place::Shared, 8)
        })
        .expect("the family has a fused kernel of 8 lanes");
    let shape = Launch {
        grid: 2,
        block: 128,
        shared_bytes: entry.variant.shared_bytes(COLUMNS, 128, 4) as u32,
    };
    // Of this variant alone: by the table all kernels of the family would be compiled for it.
    rate(|| {
        let profile = emulator.launch_body(entry, &shape, &args, |_, thread, args| {
            fused_of_eight_lanes(thread, args)
        });
        profile.map_or(0, |profile| profile.lane_steps)
    })
}

/// 1,024 lanes that do nothing but wait for each other.
fn nanoseconds_per_switch() -> f64 {
    const ROUNDS: u32 = 100;
    let emulator = Emulator::new(EmulatorOptions::default());
    let kernel = Kernel {
        family: "self_check",
        entry: "barriers",
    };
    let shape = Launch {
        grid: 1,
        block: 1024,
        shared_bytes: 0,
    };
    let switches_per_second = rate(|| {
        let run = emulator.run(kernel, &shape, &|thread| {
            (0..ROUNDS).for_each(|_| thread.sync())
        });
        run.map_or(0, |profile| profile.lane_steps)
    });
    1e9 / switches_per_second
}
