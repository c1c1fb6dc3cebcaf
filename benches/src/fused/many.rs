//! Several right-hand sides in one read of X, beside one.

use anyhow::Result;
use warpfuse::matrix::Features;
use warpfuse::ops::{ManyTerms, Matrix, Number, Preparation, Terms};
use warpfuse::plan::fused::Product;

use crate::case::{Case, SEED};
use crate::data;
use crate::gpu::Gpu;
use crate::record::{Measured, Recorder};
use crate::shape::Shape;
use crate::truth::{self, HostTerms};

/// Numbers of right-hand sides, each with the name of its case.
const SIDES: [(usize, &str); 3] = [
    (4, "fused_many_4"),
    (8, "fused_many_8"),
    (32, "fused_many_32"),
];

/// The same over tiles of a sparse X.
const SIDES_OF_TILES: [(usize, &str); 3] = [
    (4, "fused_many_4_tiles"),
    (8, "fused_many_8_tiles"),
    (32, "fused_many_32_tiles"),
];

/// As many elements as matter: X dense up to what a block holds, sparse from shared memory to beyond the caches.
pub const MATRICES: [Shape; 21] = [
    Shape::Dense {
        rows: 125_000_000,
        cols: 2,
    },
    Shape::Dense {
        rows: 31_250_000,
        cols: 8,
    },
    Shape::Dense {
        rows: 20_833_333,
        cols: 12,
    },
    Shape::Dense {
        rows: 7_812_500,
        cols: 32,
    },
    Shape::Dense {
        rows: 6_250_000,
        cols: 40,
    },
    Shape::Dense {
        rows: 3_906_250,
        cols: 64,
    },
    Shape::Dense {
        rows: 2_500_000,
        cols: 100,
    },
    Shape::Dense {
        rows: 1_250_000,
        cols: 200,
    },
    Shape::Dense {
        rows: 1_000_000,
        cols: 250,
    },
    Shape::Dense {
        rows: 488_281,
        cols: 512,
    },
    Shape::Dense {
        rows: 250_000,
        cols: 1_000,
    },
    Shape::Dense {
        rows: 11_000_000,
        cols: 28,
    },
    Shape::Dense {
        rows: 8_000_000,
        cols: 128,
    },
    Shape::Dense {
        rows: 2_000_000,
        cols: 500,
    },
    Shape::Dense {
        rows: 1_000_000,
        cols: 1_024,
    },
    Shape::Dense {
        rows: 250_000,
        cols: 4_096,
    },
    Shape::Sparse {
        rows: 4_000_000,
        cols: 1_000,
        per_row: 20,
    },
    Shape::Sparse {
        rows: 4_000_000,
        cols: 4_000,
        per_row: 20,
    },
    Shape::Sparse {
        rows: 4_000_000,
        cols: 10_000,
        per_row: 20,
    },
    Shape::Sparse {
        rows: 4_000_000,
        cols: 12_000,
        per_row: 20,
    },
    Shape::Sparse {
        rows: 4_000_000,
        cols: 1_000_000,
        per_row: 20,
    },
];

/// Records every number of sides over one matrix.
///
/// # Errors
/// When a result cannot be written.
pub fn record<T: Number>(gpu: &Gpu, recorder: &Recorder, shape: Shape) -> Result<()> {
    let case = |(_, work)| Case {
        family: "fused",
        work,
        shape,
        dtype: T::DTYPE.into(),
        seed: SEED,
    };
    let cases: Vec<Case> = SIDES.into_iter().map(case).collect();
    let of_tiles: Vec<Case> = SIDES_OF_TILES.into_iter().map(case).collect();
    let wanted = |cases: &[Case]| cases.iter().any(|case| recorder.wants(case));
    if !wanted(&cases) && !wanted(&of_tiles) {
        return Ok(());
    }
    let mut subject = match Subject::<T>::new(gpu, shape) {
        Ok(subject) => subject,
        Err(reason) => return recorder.fail(&cases, &reason),
    };
    for ((sides, _), case) in SIDES.into_iter().zip(&cases) {
        recorder.measure(case, || subject.measure(sides))?;
    }
    if wanted(&of_tiles) {
        subject
            .matrix
            .prepare(Preparation::Tiles { passes: None })?;
    }
    if !subject.matrix.has_tiles() {
        return Ok(());
    }
    for ((sides, _), case) in SIDES_OF_TILES.into_iter().zip(&of_tiles) {
        recorder.measure(case, || subject.measure(sides))?;
    }
    Ok(())
}

struct Subject<'a, T: Number> {
    gpu: &'a Gpu,
    shape: Shape,
    features: std::sync::Arc<Features<T>>,
    matrix: Matrix<T>,
    ceiling_gbs: f64,
}

impl<'a, T: Number> Subject<'a, T> {
    fn new(gpu: &'a Gpu, shape: Shape) -> Result<Self> {
        let ceiling_gbs = gpu.ceiling_gbs(shape.bytes::<T>(4))?;
        let features = std::sync::Arc::new(shape.features::<T>(SEED)?);
        let matrix = Matrix::new(&gpu.device, features.clone())?;
        Ok(Subject {
            gpu,
            shape,
            features,
            matrix,
            ceiling_gbs,
        })
    }

    /// Checks the first and the last side, then times all of them, and one by itself.
    fn measure(&self, sides: usize) -> Result<Measured> {
        let (device, cols) = (&self.gpu.device, self.shape.cols());
        let y = data::values::<T>(cols * sides, SEED + 10);
        let column = |all: &[T], side: usize| -> Vec<T> {
            all.iter().skip(side).step_by(sides).copied().collect()
        };
        let (input, mut w) = (device.upload(&y)?, device.zeros::<T>(cols * sides)?);
        let terms = ManyTerms::default();
        self.matrix.fused_many(sides, &input, &terms, &mut w)?;
        let found = w.to_vec()?;
        let mut error = 0.0_f64;
        for side in [0, sides - 1] {
            let own = column(&y, side);
            let truth = truth::product(&self.features, Product::Fused, &own, &HostTerms::default());
            error = error.max(truth::checked_error(&column(&found, side), &truth)?);
        }
        let sampler = &self.gpu.sampler;
        let times = sampler.time(device, || {
            self.matrix.fused_many(sides, &input, &terms, &mut w)
        })?;
        let (one, mut w) = (device.upload(&y[..cols])?, device.zeros::<T>(cols)?);
        let single = sampler.time(device, || {
            self.matrix.fused(&one, &Terms::default(), &mut w)
        })?;
        let bytes = self.shape.bytes::<T>(4) + 2 * cols * sides * size_of::<T>();
        let mut measured = Measured::new(format!("{sides} sides"), times, bytes)
            .with_ceiling(self.ceiling_gbs)
            .with_error(error);
        measured.details.insert("one_us", single.median_us);
        measured
            .details
            .insert("times_one", times.median_us / single.median_us);
        Ok(measured)
    }
}
