//! Convolutional layers with sparse filters as users call them, and every strategy that suits.

mod ladder;
mod special;

use anyhow::{Context, Result, ensure};
use warpfuse::device::Device;
use warpfuse::matrix::filters::{FilterValue, SparseFilters, magnitude};
use warpfuse::ops::sparse_conv::{
    Bf16, ConvElement, ConvShape, ConvStrategy, ConvSum, F16, I8, I8Wide, I16, I16Wide, Layer,
    MapLayout, Maps, Pool, SparseConv, SparseConvError,
};
use warpfuse::reference::sparse_conv as reference;
use warpfuse_tests::Subset;
use warpfuse_tests::generate::Random;

use super::suite::{Suite, Test};

/// A layer with random numbers.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    shape: ConvShape,
    density: f64,
    rectify: bool,
}

fn case(name: &'static str, density: f64, shape: ConvShape) -> Case {
    Case {
        name,
        shape,
        density,
        rectify: false,
    }
}

fn padded(channels: usize, size: [usize; 2], filters: usize, side: usize) -> ConvShape {
    ConvShape {
        padding: [side / 2; 2],
        ..ConvShape::new(channels, size, filters, [side; 2])
    }
}

/// Sizes around warps, tiles of 32 filters and 128 outputs, parts of 32 channels; every field of a shape.
fn cases() -> Vec<Case> {
    let pool = |pool, shape| ConvShape {
        pool: Some(pool),
        ..shape
    };
    let overlapping = Pool {
        window: [3, 2],
        stride: [2, 1],
        ..Pool::max(3)
    };
    vec![
        case("one", 1.0, ConvShape::new(1, [1, 1], 1, [1, 1])),
        case("none", 0.0, padded(3, [4, 5], 2, 3)),
        case("ninth", 1.0 / 9.0, padded(5, [6, 7], 33, 3)),
        case("dense", 1.0, padded(33, [5, 9], 3, 3)),
        // One more than a tile, in every direction at once.
        case("tiles", 1.0 / 18.0, padded(33, [9, 15], 33, 3)),
        Case {
            rectify: true,
            ..case(
                "rectified",
                0.3,
                pool(Pool::max(2), padded(4, [7, 10], 3, 3)),
            )
        },
        case(
            "average",
            0.4,
            pool(Pool::average(2), padded(3, [8, 8], 5, 3)),
        ),
        case(
            "threes",
            0.4,
            pool(Pool::average(3), padded(3, [10, 9], 2, 3)),
        ),
        case(
            "overlapping",
            0.4,
            pool(overlapping, padded(3, [9, 8], 2, 3)),
        ),
        case(
            "wide_window",
            0.4,
            pool(Pool::max(7), padded(2, [15, 14], 2, 1)),
        ),
        case("pointwise", 0.2, ConvShape::new(70, [6, 6], 9, [1, 1])),
        case(
            "strides",
            0.3,
            ConvShape {
                batch: 2,
                stride: [2, 3],
                padding: [2, 0],
                dilation: [1, 2],
                ..ConvShape::new(3, [11, 13], 4, [3, 2])
            },
        ),
        case(
            "groups",
            0.5,
            ConvShape {
                batch: 2,
                groups: 3,
                layout: MapLayout::Nhwc,
                ..padded(6, [5, 6], 9, 3)
            },
        ),
        case(
            "depthwise",
            0.5,
            ConvShape {
                groups: 4,
                ..padded(4, [5, 5], 4, 5)
            },
        ),
        case("eleven", 0.05, padded(2, [12, 9], 2, 11)),
        case(
            "longer_than_the_map",
            0.5,
            ConvShape::new(2, [3, 3], 2, [5, 5]),
        ),
        case(
            "no_images",
            0.5,
            ConvShape {
                batch: 0,
                ..padded(2, [3, 3], 2, 3)
            },
        ),
        case("rows", 0.5, ConvShape::new(3, [1, 300], 2, [1, 7])),
    ]
}

/// Where there is time.
fn large_cases() -> Vec<Case> {
    let source = ConvShape::of_the_source();
    vec![
        case(
            "source_quarter",
            1.0 / 9.0,
            ConvShape {
                channels: 128,
                filters: 70,
                ..source
            },
        ),
        case(
            "many_parts",
            0.02,
            ConvShape {
                channels: 1_300,
                ..padded(1_300, [7, 7], 33, 3)
            },
        ),
        case(
            "batch",
            0.1,
            ConvShape {
                batch: 3,
                ..padded(65, [14, 14], 96, 3)
            },
        ),
        case(
            "large_map",
            0.1,
            ConvShape {
                stride: [2, 2],
                ..padded(3, [112, 113], 16, 7)
            },
        ),
    ]
}

/// Adds all cases.
pub fn add(suite: &mut Suite) {
    for (cases, subset) in [(cases(), Subset::Small), (large_cases(), Subset::Full)] {
        for case in cases {
            add_type::<I8>(suite, case, subset, "i8");
            add_type::<I8Wide>(suite, case, subset, "i8_in_i64");
            add_type::<I16>(suite, case, subset, "i16");
            add_type::<I16Wide>(suite, case, subset, "i16_in_i64");
            add_type::<F16>(suite, case, subset, "f16");
            add_type::<Bf16>(suite, case, subset, "bf16");
            add_type::<f32>(suite, case, subset, "f32");
            add_type::<f64>(suite, case, subset, "f64");
        }
    }
    special::add(suite);
    ladder::add(suite);
}

fn add_type<E: ConvElement>(suite: &mut Suite, case: Case, subset: Subset, name: &str) {
    let name = format!("sparse_conv/{}/{name}", case.name);
    suite.add(Test::new(name).within(subset), move |device| {
        run::<E>(device, &case)
    });
}

/// Integers up to what 32-bit sums hold for the case, halves otherwise: sums of both are exact in f64.
fn draw<V: FilterValue>(len: usize, seed: u64, most: f64) -> Vec<V> {
    let random = &mut Random::new(seed);
    let mut number = || V::from_f64((random.signed() * most).round());
    (0..len).map(|_| number()).collect()
}

fn filters_of<E: ConvElement>(case: &Case) -> Result<SparseFilters<E::Value>> {
    let shape = case.shape.filter_shape();
    // 2³¹ over the largest input and all terms of a filter.
    let terms = (shape.channels * shape.height * shape.width) as f64;
    let most = if E::MOST.is_infinite() {
        8.0
    } else if E::Sum::MOST > 2.0_f64.powi(32) {
        // Of 16 bits these do not fit into one byte, as most of those below do.
        1_000.0
    } else {
        (2.0_f64.powi(24) / E::MOST / terms).clamp(1.0, E::MOST - 1.0) * 4.0
    };
    let weights = draw::<E::Value>(shape.weights(), 7, most.min(E::MOST - 1.0).min(1_000.0));
    Ok(magnitude(shape, &weights, case.density)?)
}

fn inputs_of<E: ConvElement>(shape: &ConvShape) -> Vec<E::Value> {
    let most = if E::MOST.is_infinite() { 8.0 } else { E::MOST };
    draw::<E::Value>(shape.inputs(), 9, most)
}

/// Where element (image, channel, row, column) of maps lies.
fn place(layout: MapLayout, [channels, rows, cols]: [usize; 3], at: [usize; 4]) -> usize {
    let [image, channel, row, col] = at;
    match layout {
        MapLayout::Nchw => ((image * channels + channel) * rows + row) * cols + col,
        MapLayout::Nhwc => ((image * rows + row) * cols + col) * channels + channel,
    }
}

/// The result in the layout of the shape, computed in f64. Exact for the numbers that are drawn here.
fn truth<V: FilterValue>(
    shape: &ConvShape,
    rectify: bool,
    x: &[V],
    filters: &SparseFilters<V>,
    bias: &[f64],
) -> Vec<f64> {
    let layer = reference::Layer {
        batch: shape.batch,
        in_per_group: shape.channels / shape.groups,
        size: shape.size,
        filters: shape.filters,
        out_per_group: shape.filters / shape.groups,
        kernel: shape.kernel,
        stride: shape.stride,
        padding: shape.padding,
        dilation: shape.dilation,
        out: shape.out(),
        rectify,
    };
    let sizes = [shape.channels, shape.size[0], shape.size[1]];
    let input = |at| x[place(shape.layout, sizes, at)].to_f64();
    let weights: Vec<f64> = filters.to_dense().iter().map(|w| w.to_f64()).collect();
    let (sums, _) = reference::convolve(&layer, input, &weights, bias);
    let results = match shape.pool {
        None => sums,
        Some(pool) => {
            let windows = reference::Windows {
                average: pool
                    == Pool {
                        kind: Pool::average(1).kind,
                        ..pool
                    },
                window: pool.window,
                stride: pool.stride,
                out: shape.result(),
            };
            if sums.is_empty() {
                sums
            } else {
                reference::pool(&windows, shape.out(), &sums)
            }
        }
    };
    let [rows, cols] = shape.result();
    let mut ordered = vec![0.0; results.len()];
    for (i, result) in results.into_iter().enumerate() {
        let (rest, col) = (i / cols, i % cols);
        let (rest, row) = (rest / rows, rest % rows);
        let at = [rest / shape.filters, rest % shape.filters, row, col];
        ordered[place(shape.layout, [shape.filters, rows, cols], at)] = result;
    }
    ordered
}

/// Whether a result is the truth, which is an integer or, of a mean, a fraction.
fn ensure_equal<S: ConvSum>(found: &[S], truth: &[f64], what: &str) -> Result<()> {
    ensure!(
        found.len() == truth.len(),
        "{what}: {} results",
        found.len()
    );
    for (i, (found, truth)) in found.iter().zip(truth).enumerate() {
        // Means of integers are rounded towards zero, those of floats to the nearest.
        let good = if S::MOST.is_finite() {
            found.to_f64() == truth.trunc()
        } else {
            (found.to_f64() - truth).abs() <= truth.abs() * f64::from(f32::EPSILON)
        };
        ensure!(good, "{what}: result {i} is {found:?}, expected {truth}");
    }
    Ok(())
}

fn run<E: ConvElement>(device: &Device, case: &Case) -> Result<()> {
    let shape = &case.shape;
    let (filters, x) = (filters_of::<E>(case)?, inputs_of::<E>(shape));
    let bias: Vec<f64> = (0..shape.filters)
        .map(|f| 3.0 * (f % 5) as f64 - 6.0)
        .collect();
    let truth = truth(shape, case.rectify, &x, &filters, &bias);
    let sums: Vec<E::Sum> = bias.iter().map(|b| sum_of::<E>(*b)).collect();
    let layer = |strategy| Layer {
        bias: Some(&sums),
        rectify: case.rectify,
        strategy,
        ..Layer::default()
    };
    let on_x = Maps::<E>::upload(device, &x)?;
    let run = |strategy: Option<ConvStrategy>| -> Result<Vec<E::Sum>, SparseConvError> {
        let conv = SparseConv::<E>::new(device, shape, &filters, layer(strategy))?;
        let mut out = device.zeros(shape.results())?;
        conv.run(&on_x, &mut out)?;
        // Twice: what lies between launches is used again.
        conv.run(&on_x, &mut out)?;
        Ok(out.to_vec()?)
    };
    ensure_equal(&run(None)?, &truth, "the planner's")?;
    if device.is_cpu() {
        return Ok(());
    }
    for strategy in ConvStrategy::ALL {
        match run(Some(strategy)) {
            Ok(found) => ensure_equal(&found, &truth, &strategy.to_string())?,
            Err(SparseConvError::Strategy { .. }) if !strategy.is_of_the_source() => {}
            // f64 weights that f32 cannot hold are not packed; those of the cases are integers.
            other => {
                other.with_context(|| strategy.to_string())?;
            }
        }
    }
    Ok(())
}

/// A small integer as a sum.
fn sum_of<E: ConvElement>(value: f64) -> E::Sum {
    let one = [1, -1].map(|sign| E::Value::from_f64(f64::from(sign)));
    let [plus, minus] = one.map(|one| {
        E::multiply_add(
            E::wide(one),
            E::wide(E::Value::from_f64(1.0)),
            E::Sum::default(),
        )
    });
    let step = if value < 0.0 { minus } else { plus };
    use gpu_kernels::sparse_conv::Accumulator;
    (0..value.abs() as u32).fold(E::Sum::default(), |sum, _| sum.plus(step))
}
