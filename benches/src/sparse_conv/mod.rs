//! Convolutional layers with sparse filters: the source's layer by each of its steps, and layers of known networks at
//! several densities by every strategy, the planner's choice first.

#[cfg(test)]
mod replay;
mod run;

use anyhow::Result;
use warpfuse::ops::sparse_conv::{ConvElement, ConvShape, ConvStrategy, F16, I8, I16};

use crate::case::{Case, Numbers, SEED};
use crate::data;
use crate::gpu::Gpu;
use crate::record::Recorder;
use crate::shape::Shape;
use run::{Inputs, Run, one_a_slice, random};

/// Channels, filters, side of the map, side of the filters: the 3 × 3 layers of ResNet-50 and VGG-16, five 1 × 1 layers.
const LAYERS: [[usize; 4]; 14] = [
    [64, 64, 56, 3],
    [128, 128, 28, 3],
    [256, 256, 14, 3],
    [512, 512, 7, 3],
    [64, 64, 224, 3],
    [128, 128, 112, 3],
    [256, 256, 56, 3],
    [512, 512, 28, 3],
    [512, 512, 14, 3],
    [64, 256, 56, 1],
    [256, 64, 56, 1],
    [512, 128, 28, 1],
    [1024, 256, 14, 1],
    [2048, 512, 7, 1],
];
/// Nonzeros of a thousand weights.
const DENSITIES: [usize; 5] = [50, 100, 111, 200, 500];
/// Images.
const BATCHES: [usize; 2] = [1, 16];
/// Layers that the planner's constants are fitted to: drawn, none of them in [`LAYERS`].
const DRAWN: usize = 40;

/// Records all cases of the family.
///
/// # Errors
/// When a result cannot be written.
pub fn record(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    source(gpu, recorder)?;
    for batch in BATCHES {
        sparse_inputs(gpu, recorder, batch)?;
    }
    for batch in BATCHES {
        for sizes in LAYERS {
            let shape = layer(batch, sizes);
            each_type(gpu, recorder, "layer", (&shape, &DENSITIES))?;
        }
    }
    for i in 0..DRAWN {
        let (shape, permille) = drawn(i);
        each_type(gpu, recorder, "drawn", (&shape, &[permille]))?;
    }
    Ok(())
}

/// A layer by a counter: sizes and densities like those of networks, but others.
fn drawn(i: usize) -> (ConvShape, usize) {
    let of = |what: usize, choices: &[usize]| {
        let at = data::uniform(SEED + 70, 16 * i + what) * choices.len() as f64;
        choices[at as usize]
    };
    let widths = [48, 96, 160, 192, 320, 384, 640];
    let (channels, filters) = (of(0, &widths), of(1, &widths));
    let side = of(2, &[6, 10, 12, 20, 24, 34, 40, 48, 64, 96]);
    let kernel = of(3, &[1, 3, 3, 5]);
    let batch = of(4, &[1, 1, 2, 4, 8, 12]);
    let permille = of(5, &[20, 40, 70, 90, 130, 160, 250, 350, 600]);
    (layer(batch, [channels, filters, side, kernel]), permille)
}

/// A layer in each type, with random filters of several densities.
fn each_type(
    gpu: &Gpu,
    recorder: &Recorder,
    work: &'static str,
    layer: (&ConvShape, &[usize]),
) -> Result<()> {
    table::<I16>(gpu, recorder, (work, "i16"), layer)?;
    table::<I8>(gpu, recorder, (work, "i8"), layer)?;
    table::<F16>(gpu, recorder, (work, "f16"), layer)?;
    table::<f32>(gpu, recorder, (work, "f32"), layer)
}

fn layer(batch: usize, [channels, filters, side, kernel]: [usize; 4]) -> ConvShape {
    ConvShape {
        batch,
        padding: [kernel / 2; 2],
        ..ConvShape::new(channels, [side; 2], filters, [kernel; 2])
    }
}

fn case(work: &'static str, numbers: &'static str, shape: &ConvShape, permille: usize) -> Case {
    Case {
        family: "sparse_conv",
        work,
        shape: Shape::Layer {
            batch: shape.batch,
            channels: shape.channels,
            filters: shape.filters,
            side: shape.size[0],
            kernel: shape.kernel[0],
            permille,
        },
        dtype: Numbers::Named(numbers),
        seed: SEED,
    }
}

/// The source's layer without pooling, over inputs of which 50, 80 and 95 % are zero: whether it pays to skip them.
fn sparse_inputs(gpu: &Gpu, recorder: &Recorder, batch: usize) -> Result<()> {
    let shape = ConvShape {
        batch,
        pool: None,
        ..ConvShape::of_the_source()
    };
    for (work, zeros) in [("zeros_50", 500), ("zeros_80", 800), ("zeros_95", 950)] {
        over_zeros::<I16>(gpu, recorder, (work, "i16"), (&shape, zeros))?;
        over_zeros::<F16>(gpu, recorder, (work, "f16"), (&shape, zeros))?;
        over_zeros::<f32>(gpu, recorder, (work, "f32"), (&shape, zeros))?;
    }
    Ok(())
}

fn over_zeros<E: ConvElement>(
    gpu: &Gpu,
    recorder: &Recorder,
    (work, numbers): (&'static str, &'static str),
    (shape, zeros): (&ConvShape, u16),
) -> Result<()> {
    let case = case(work, numbers, shape, 111);
    if !recorder.wants(&case) {
        return Ok(());
    }
    let inputs = Inputs::<E>::with_zeros(gpu, shape, zeros)?;
    recorder.measure(&case, || {
        Run::new(&inputs, one_a_slice(shape.filter_shape()))?.compare()
    })
}

/// The source's layer: one nonzero a slice, 2 × 2 max pooling, 16-bit integers.
fn source(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    let shape = ConvShape::of_the_source();
    of_source::<I16>(gpu, recorder, "i16", &shape)?;
    of_source::<F16>(gpu, recorder, "f16", &shape)?;
    of_source::<f32>(gpu, recorder, "f32", &shape)
}

fn of_source<E: ConvElement>(
    gpu: &Gpu,
    recorder: &Recorder,
    numbers: &'static str,
    shape: &ConvShape,
) -> Result<()> {
    let named = |work| case(work, numbers, shape, 111);
    let works = [
        "source_cpu1",
        "source_cpu",
        "source_coo",
        "source_packed",
        "source_direct",
    ];
    let rest = [
        "source_staged",
        "source_skip",
        "source_tensor",
        "source_best",
        "source_arrays",
        "source_slices",
    ];
    if !works
        .into_iter()
        .chain(rest)
        .any(|work| recorder.wants(&named(work)))
    {
        return Ok(());
    }
    let inputs = Inputs::new(gpu, shape)?;
    let run = Run::<E>::new(&inputs, one_a_slice(shape.filter_shape()))?;
    recorder.measure(&named("source_cpu1"), || run.on_cpu(1))?;
    recorder.measure(&named("source_cpu"), || run.on_cpu(0))?;
    for (work, strategy) in [
        ("source_coo", Some(ConvStrategy::Coo)),
        ("source_packed", Some(ConvStrategy::Packed)),
        ("source_direct", Some(ConvStrategy::Direct)),
        ("source_staged", Some(ConvStrategy::Staged)),
        ("source_skip", Some(ConvStrategy::Skip)),
        ("source_tensor", Some(ConvStrategy::Tensor)),
        ("source_best", None),
    ] {
        if E::PIECES > 0 || strategy != Some(ConvStrategy::Tensor) {
            recorder.measure(&named(work), || run.time(strategy))?;
        }
    }
    recorder.measure(&named("source_arrays"), || run.with_arrays())?;
    recorder.measure(&named("source_slices"), || run.with_slices())?;
    let many = ConvShape {
        batch: 16,
        ..*shape
    };
    let of_many = case("source_arrays", numbers, &many, 111);
    if !recorder.wants(&of_many) {
        return Ok(());
    }
    let inputs = Inputs::new(gpu, &many)?;
    let run = Run::<E>::new(&inputs, one_a_slice(many.filter_shape()))?;
    recorder.measure(&of_many, || run.with_arrays())
}

/// The strategies of one layer at several densities.
fn table<E: ConvElement>(
    gpu: &Gpu,
    recorder: &Recorder,
    (work, numbers): (&'static str, &'static str),
    (shape, densities): (&ConvShape, &[usize]),
) -> Result<()> {
    let cases = densities
        .iter()
        .map(|permille| (permille, case(work, numbers, shape, *permille)));
    let wanted: Vec<_> = cases.filter(|(_, case)| recorder.wants(case)).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let inputs = Inputs::<E>::new(gpu, shape)?;
    for (permille, case) in wanted {
        recorder.measure(&case, || {
            let run = Run::new(&inputs, random(shape.filter_shape(), *permille))?;
            run.compare()
        })?;
    }
    Ok(())
}
