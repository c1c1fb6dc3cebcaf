//! How good predictions are, from linear predictors that lie on a device: one launch, and one read of some sums.

use gpu_kernels::objective::score::{
    BLOCK, CHUNK, ClassSum, NumberSum, SHARED_BYTES, ScoreArgs, ScoreVariant,
};
use gpu_kernels::objective::{Distribution, Link, MeanCode};
use gpu_kernels::{Family, In, Launch, Out};
use ndarray::Array2;

pub use gpu_kernels::objective::score::Probabilities;

use crate::cpu::objective as cpu;
use crate::device::{Buffer, Device};
use crate::ops::{Number, OpError, checks};
use crate::plan::objective as planning;

/// Exponent of two that no cell of a confusion matrix reaches, in its unit.
const CELL_BITS: f64 = 62.0;
/// Exponents of two that a weight is scaled by, at most.
const MOST_SCALE: f64 = 1_000.0;

/// Weights of rows on a device.
#[derive(Debug)]
pub struct RowWeights {
    values: Buffer<f64>,
    /// Multiples of a cell's unit in a weight of 1, a power of two.
    units: f64,
}

impl RowWeights {
    /// Puts weights on `device`.
    ///
    /// # Errors
    /// [`OpError::Parameter`] for a weight that is negative, infinite or NaN, or weights whose sum overflows;
    /// [`OpError::Device`] when there is no memory.
    pub fn new(device: &Device, weights: &[f64]) -> Result<RowWeights, OpError> {
        let wrong = |w: &&f64| !(w.is_finite() && **w >= 0.0);
        let total: f64 = weights.iter().sum();
        if let Some(found) = weights.iter().chain([&total]).find(wrong) {
            return Err(OpError::Parameter {
                name: "a weight",
                expected: "finite and not negative",
                found: *found,
            });
        }
        let scale = CELL_BITS - 1.0 - total.max(f64::MIN_POSITIVE).log2().ceil();
        Ok(RowWeights {
            values: device.upload(weights)?,
            units: scale.min(MOST_SCALE).exp2(),
        })
    }
}

/// The class of each row, on a device.
#[derive(Debug)]
pub struct ClassCodes {
    codes: Buffer<u32>,
    classes: usize,
}

impl ClassCodes {
    /// Puts codes on `device`.
    ///
    /// # Errors
    /// [`OpError::Parameter`] for fewer than two classes, or a code that is not below `classes`; [`OpError::Device`] when
    /// there is no memory.
    pub fn new(device: &Device, codes: &[u32], classes: usize) -> Result<ClassCodes, OpError> {
        if classes < 2 {
            return Err(OpError::Parameter {
                name: "the number of classes",
                expected: "2 at least",
                found: classes as f64,
            });
        }
        if let Some(code) = codes.iter().find(|code| **code as usize >= classes) {
            return Err(OpError::Parameter {
                name: "a class",
                expected: "below the number of classes",
                found: f64::from(*code),
            });
        }
        let codes = device.upload(codes)?;
        Ok(ClassCodes { codes, classes })
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// k.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Predictors of a row: 1 for two classes, else one per class.
    fn columns(&self) -> usize {
        if self.classes == 2 { 1 } else { self.classes }
    }
}

/// Sums over rows with target b, mean μ and weight w; c is the given centre and d the unit deviance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NumberSums {
    /// Σ w.
    pub weight: f64,
    /// Σ w·|b − μ|.
    pub absolute: f64,
    /// Σ w·(b − μ)².
    pub squared: f64,
    /// Σ w·(b − c).
    pub centred: f64,
    /// Σ w·(b − c)².
    pub centred_squared: f64,
    /// Σ w·d(b, μ); NaN where the distribution has no such target or mean.
    pub deviance: f64,
    /// Σ w·d(b, c).
    pub centred_deviance: f64,
}

impl NumberSums {
    fn of(sums: &[f64]) -> NumberSums {
        let sum = |place: NumberSum| sums[place as usize];
        NumberSums {
            weight: sum(NumberSum::Weight),
            absolute: sum(NumberSum::Absolute),
            squared: sum(NumberSum::Squared),
            centred: sum(NumberSum::Centred),
            centred_squared: sum(NumberSum::CentredSquared),
            deviance: sum(NumberSum::Deviance),
            centred_deviance: sum(NumberSum::CentredDeviance),
        }
    }
}

/// Sums over rows of known classes.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassSums {
    /// Σ w.
    pub weight: f64,
    /// Σ −w·ln P(row, its class), probabilities kept [`f64::EPSILON`] away from 0 and 1; 0 without probabilities.
    pub log_loss: f64,
    /// k × k: the weight of rows of class i that were taken for class j. Without weights exact; with them each is
    /// rounded to Σ w / 2⁶¹ at most.
    pub confusion: Array2<f64>,
}

/// d(b, μ): zero for an exact mean, twice the lack of log-likelihood elsewhere; NaN where the distribution has no such
/// target or mean.
pub fn unit_deviance(distribution: Distribution, b: f64, mean: f64) -> f64 {
    MeanCode::new(distribution, Link::Identity).deviance(b, mean)
}

/// Scores m linear predictors against m `targets`: μ is the mean at a predictor by `link`, d the deviance of
/// `distribution`, c the `centre`. Targets are read once, in one launch; everything is added in f64.
///
/// The order of additions depends on m alone: the same bits come out every time on the same device, and on all GPUs.
///
/// # Errors
/// [`OpError::Length`] and [`OpError::OtherDevice`] when a vector does not fit, [`OpError::Device`] when the device fails.
///
/// ```
/// use warpfuse::device::Device;
/// use warpfuse::ops::objective::{Distribution, Link, score_numbers};
/// let device = Device::auto();
/// let (t, b) = (device.upload(&[1.0_f32, 2.0])?, device.upload(&[1.0_f32, 4.0])?);
/// let sums = score_numbers(&t, &b, None, (Distribution::Gaussian, Link::Identity), 2.5)?;
/// assert_eq!((sums.squared, sums.centred_squared), (4.0, 4.5));
/// # Ok::<(), warpfuse::ops::OpError>(())
/// ```
pub fn score_numbers<T: Number>(
    predictors: &Buffer<T>,
    targets: &Buffer<T>,
    weights: Option<&RowWeights>,
    (distribution, link): (Distribution, Link),
    centre: f64,
) -> Result<NumberSums, OpError> {
    let (rows, mean) = (predictors.len(), MeanCode::new(distribution, link));
    expect("the targets", targets, rows, predictors)?;
    check_weights(weights, rows, predictors)?;
    if let Some((t, b)) = predictors.as_host_slice().zip(targets.as_host_slice()) {
        let sums = cpu::score_numbers(scored(t, weights), b, &mean, centre);
        return Ok(NumberSums::of(&sums));
    }
    let args = ScoreArgs {
        rows: rows as u64,
        targets: targets.input(),
        mean,
        centre,
        ..no_args(predictors, weights)
    };
    let sums = launch::<T>(&predictors.device(), ScoreVariant::Numbers, args)?;
    Ok(NumberSums::of(&sums))
}

/// Scores linear predictors, m × 1 for two classes and m × k for more, by rows, against the classes of the rows: one
/// launch, repeatable as [`score_numbers`].
///
/// # Errors
/// As [`score_numbers`].
///
/// ```
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::ops::objective::{ClassCodes, Probabilities, score_classes};
/// let device = Device::auto();
/// let codes = ClassCodes::new(&device, &[1, 0, 0], 2)?;
/// let t = device.upload(&[0.5_f32, -1.0, 2.0])?;
/// let sums = score_classes(&t, &codes, None, Probabilities::Softmax)?;
/// assert_eq!(sums.confusion, array![[1.0, 1.0], [0.0, 1.0]]);
/// # Ok::<(), warpfuse::ops::OpError>(())
/// ```
pub fn score_classes<T: Number>(
    predictors: &Buffer<T>,
    codes: &ClassCodes,
    weights: Option<&RowWeights>,
    probabilities: Probabilities,
) -> Result<ClassSums, OpError> {
    let (rows, k) = (codes.len(), codes.classes);
    expect(
        "the predictors",
        predictors,
        rows * codes.columns(),
        &codes.codes,
    )?;
    check_weights(weights, rows, predictors)?;
    let units = weights.map_or(1.0, |weights| weights.units);
    if let Some((t, codes)) = predictors.as_host_slice().zip(codes.codes.as_host_slice()) {
        let truth = cpu::Truth {
            codes,
            classes: k,
            probabilities,
            units,
        };
        let (sums, cells) = cpu::score_classes(scored(t, weights), truth);
        return Ok(class_sums(&sums, &cells, k, units));
    }
    let device = predictors.device();
    let mut cells = device.zeros::<u64>(k * k)?;
    let args = ScoreArgs {
        rows: rows as u64,
        columns: codes.columns() as u64,
        classes: k as u64,
        codes: codes.codes.input(),
        probabilities: probabilities as u32,
        units,
        cells: cells.output(),
        ..no_args(predictors, weights)
    };
    let sums = launch::<T>(&device, ScoreVariant::Classes, args)?;
    Ok(class_sums(&sums, &cells.to_vec()?, k, units))
}

fn class_sums(sums: &[f64], cells: &[u64], k: usize, units: f64) -> ClassSums {
    ClassSums {
        weight: sums[ClassSum::Weight as usize],
        log_loss: sums[ClassSum::LogLoss as usize],
        confusion: Array2::from_shape_fn((k, k), |(i, j)| cells[i * k + j] as f64 / units),
    }
}

fn scored<'a, T: Number>(
    predictors: &'a [T],
    weights: Option<&'a RowWeights>,
) -> cpu::Scored<'a, T> {
    let on_host = |weights: &'a RowWeights| weights.values.as_host_slice();
    cpu::Scored {
        predictors,
        weights: weights.and_then(on_host),
    }
}

fn no_args<'a, T: Number>(
    predictors: &'a Buffer<T>,
    weights: Option<&'a RowWeights>,
) -> ScoreArgs<'a, T> {
    ScoreArgs {
        rows: 0,
        columns: 1,
        classes: 0,
        predictors: predictors.input(),
        targets: In::none(),
        codes: In::none(),
        weights: weights.map_or(In::none(), |weights| weights.values.input()),
        mean: MeanCode::new(Distribution::Gaussian, Link::Identity),
        centre: 0.0,
        probabilities: Probabilities::None as u32,
        units: 1.0,
        partials: Out::none(),
        counter: Out::none(),
        sums: Out::none(),
        cells: Out::none(),
    }
}

/// Launches an entry, and reads its sums.
fn launch<T: Number>(
    device: &Device,
    variant: ScoreVariant,
    args: ScoreArgs<'_, T>,
) -> Result<Vec<f64>, OpError> {
    let chunks = args.rows.div_ceil(CHUNK) as usize;
    let mut partials = device.zeros::<f64>(chunks * variant.sums())?;
    let (mut counter, mut sums) = (
        device.zeros::<u32>(1)?,
        device.zeros::<f64>(variant.sums())?,
    );
    let entries = T::Scores::entries();
    let entry = entries.iter().find(|entry| entry.variant == variant);
    let limits = device.limits().expect("what launches has limits");
    let shape = Launch {
        grid: planning::score_blocks(args.rows, limits),
        block: BLOCK,
        shared_bytes: SHARED_BYTES,
    };
    let kernel = device.prepare(entry.expect("the table has both scores"), shape)?;
    kernel.launch(ScoreArgs {
        partials: partials.output(),
        counter: counter.output(),
        sums: sums.output(),
        ..args
    })?;
    Ok(sums.to_vec()?)
}

/// Fails unless `vector` has `len` elements and lies where `other` does.
fn expect<T: bytemuck::Pod, U: bytemuck::Pod>(
    what: &'static str,
    vector: &Buffer<T>,
    expected: usize,
    other: &Buffer<U>,
) -> Result<(), OpError> {
    checks::same_length(what, vector, expected)?;
    checks::same_device(what, &other.device(), &vector.device())
}

fn check_weights<T: Number>(
    weights: Option<&RowWeights>,
    rows: usize,
    other: &Buffer<T>,
) -> Result<(), OpError> {
    weights.map_or(Ok(()), |weights| {
        expect("the weights", &weights.values, rows, other)
    })
}
