//! Matrix products: every variant, every combination of transposes, sizes around tiles.

mod halves;
mod ladder;

use anyhow::{Context, Result, ensure};
use gpu_kernels::matmul::MatmulVariant;
use gpu_kernels::{Family, Kernels};
use ndarray::{Array2, s};
use warpfuse::device::Device;
use warpfuse::matrix::{Dtype, Element};
use warpfuse::ops::matmul::{Choice, Factor, Layout, Op, matmul, product};
use warpfuse::ops::{Number, OpError};
use warpfuse::plan::matmul::Arithmetic;
use warpfuse::reference::matmul as reference;
use warpfuse_tests::Subset;
use warpfuse_tests::generate::Random;
use warpfuse_tests::tolerance::{Truth, growth, unit_roundoff};

use super::suite::{self, Suite, Test};

/// m, n, k: around the steps of 8 and 16, the tiles of 16, 64 and 128, thin and wide, long enough that blocks share
/// tiles, and whole tiles of whole panels.
const SHAPES: [(usize, usize, usize); 17] = [
    (0, 3, 2),
    (3, 0, 2),
    (2, 3, 0),
    (1, 1, 1),
    (15, 17, 16),
    (17, 15, 33),
    (64, 64, 32),
    (65, 63, 7),
    (128, 128, 16),
    (129, 130, 50),
    (127, 257, 65),
    (1, 300, 100),
    (300, 1, 129),
    (3, 4, 70),
    (70, 33, 1_000),
    (519, 264, 77),
    (256, 384, 96),
];

/// Behind the end of each stored row.
const GUARD: f64 = 1e30;

/// Adds every variant in both element types.
pub fn add(suite: &mut Suite) {
    add_type::<f32>(suite);
    add_type::<f64>(suite);
    ladder::add(suite);
    halves::add(suite);
}

fn add_type<T: Number>(suite: &mut Suite) {
    let variants = <T as Kernels>::Matmul::entries().iter();
    let products = variants.filter(|entry| entry.variant.is_product());
    let choices = products.map(|entry| (entry.name, Choice::Variant(entry.variant)));
    let planned = [
        ("planned", Choice::Best),
        ("split", Choice::With(Arithmetic::SplitTf32)),
        ("halves", Choice::With(Arithmetic::SplitF16)),
    ];
    for (name, choice) in choices.chain(planned) {
        let is_variant = matches!(choice, Choice::Variant(_));
        for (m, n, k) in SHAPES {
            let name = format!("matmul/{m}x{n}x{k}/{name}/{}", T::DTYPE);
            // The rungs compute the same on an emulator, where a tile takes a second; large ones go to GPUs.
            let mut test = Test::new(name);
            let is_large = m * n * k > 10_000;
            // The CPU has one way for all choices, large ones are multiplied there once.
            if is_variant || (is_large && matches!(choice, Choice::With(_))) {
                test = test.of_entries();
            }
            if is_large {
                test = test.within(Subset::Full);
            }
            suite.add(test, move |device| run::<T>(device, (m, n, k), choice));
        }
    }
    suite.add(
        Test::new(format!("matmul/arrays/{}", T::DTYPE)),
        arrays::<T>,
    );
    suite.add(
        Test::new(format!("matmul/refusals/{}", T::DTYPE)),
        refuses::<T>,
    );
}

/// What the elements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Values {
    /// Small integers: no rounding anywhere.
    Integers,
    /// Between −1 and 1.
    Uniform,
}

impl Values {
    fn draw(self, random: &mut Random) -> f64 {
        match self {
            Values::Integers => random.integer(4),
            Values::Uniform => random.signed(),
        }
    }
}

/// A matrix with padded rows, stored as `op` wants it.
struct Stored<T> {
    /// op(the stored matrix), in f64.
    wide: Array2<f64>,
    values: Vec<T>,
    layout: Layout,
    op: Op,
}

impl<T: Number> Stored<T> {
    fn new(
        random: &mut Random,
        (rows, cols): (usize, usize),
        op: Op,
        padding: usize,
        values: Values,
    ) -> Stored<T> {
        let draw = |_| Element::to_f64(number::<T>(values.draw(random)));
        let wide = Array2::from_shape_vec((rows, cols), (0..rows * cols).map(draw).collect())
            .expect("as many as the shape has");
        let stored = match op {
            Op::AsStored => wide.view(),
            Op::Transposed => wide.t(),
        };
        let (rows, cols) = stored.dim();
        let ld = cols + padding;
        let mut padded = Array2::from_elem((rows, ld), GUARD);
        padded.slice_mut(s![.., ..cols]).assign(&stored);
        let values = padded.iter().map(|value| number(*value)).collect();
        let layout = Layout { rows, cols, ld };
        Stored {
            wide,
            values,
            layout,
            op,
        }
    }
}

fn run<T: Number>(device: &Device, shape: (usize, usize, usize), choice: Choice) -> Result<()> {
    let ops = [Op::AsStored, Op::Transposed];
    let slow = Subset::of(device) == Subset::Small || device.is_cpu();
    let stored = [
        (0, Values::Integers),
        (3, Values::Uniform),
        (4, Values::Uniform),
    ];
    let pairs = ops.into_iter().flat_map(|a| ops.map(|b| (a, b)));
    for (i, (a, b)) in pairs.enumerate() {
        for (j, (padding, values)) in stored.into_iter().enumerate() {
            // Each in some combination is enough where a product is slow.
            if slow && i % stored.len() != j {
                continue;
            }
            one::<T>(device, shape, (a, b), (padding, values), choice)
                .with_context(|| format!("{a:?}, {b:?}, rows padded by {padding}, {values:?}"))?;
        }
    }
    Ok(())
}

fn one<T: Number>(
    device: &Device,
    (m, n, k): (usize, usize, usize),
    (op_a, op_b): (Op, Op),
    (padding, values): (usize, Values),
    choice: Choice,
) -> Result<()> {
    let random = &mut Random::new((m * 7 + n * 3 + k) as u64);
    let a = Stored::<T>::new(random, (m, k), op_a, padding, values);
    let b = Stored::<T>::new(random, (k, n), op_b, padding, values);
    let c = Stored::<T>::new(random, (m, n), Op::AsStored, padding, values);
    let (on_a, on_b) = (device.upload(&a.values)?, device.upload(&b.values)?);
    for (alpha, beta) in [(1.0, 0.0), (-2.0, 0.5)] {
        let mut start = c.values.clone();
        if beta == 0.0 {
            // What is not to be read may be anything.
            let rows = start.chunks_mut(c.layout.ld.max(1));
            rows.for_each(|row| row[..n].fill(number(f64::NAN)));
        }
        let mut on_c = device.upload(&start)?;
        let left = factor(&on_a, &a);
        let right = factor(&on_b, &b);
        let (scale, keep) = (number(alpha), number(beta));
        matmul::<T>(scale, &left, &right, keep, (&mut on_c, c.layout), choice)?;
        let truth = truth::<T>(
            alpha,
            beta,
            (&a.wide, &b.wide, &c.wide),
            (k, values),
            choice,
        );
        let computed = on_c.to_vec()?;
        let rows = computed.chunks(c.layout.ld.max(1));
        let inner: Vec<T> = rows
            .clone()
            .flat_map(|row| row[..n].iter().copied())
            .collect();
        let untouched = rows
            .flat_map(|row| &row[n..])
            .all(|value| *value == number(GUARD));
        ensure!(untouched, "the padding of C was written");
        suite::check(device, "matmul", &inner, &truth)?;
    }
    Ok(())
}

fn factor<'a, T: Number>(
    buffer: &'a warpfuse::device::Buffer<T>,
    stored: &Stored<T>,
) -> Factor<'a, T> {
    Factor {
        buffer,
        layout: stored.layout,
        op: stored.op,
    }
}

/// How f32 numbers are split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Split {
    Not,
    Tf32,
    F16,
}

impl Split {
    fn of<T: Number>(choice: Choice) -> Split {
        match choice {
            _ if T::DTYPE == Dtype::F64 => Split::Not,
            Choice::Variant(MatmulVariant::SplitTf32) | Choice::With(Arithmetic::SplitTf32) => {
                Split::Tf32
            }
            Choice::Variant(MatmulVariant::SplitF16) | Choice::With(Arithmetic::SplitF16) => {
                Split::F16
            }
            _ => Split::Not,
        }
    }

    /// What is lost of products of these magnitudes. Sums of TF32 lose 2⁻²⁰ of each: what is dropped of the lower parts, and
    /// their product.
    fn lost(self, a: &Array2<f64>, b: &Array2<f64>) -> Array2<f64> {
        match self {
            Split::Not => Array2::zeros((a.nrows(), b.ncols())),
            Split::Tf32 => a.dot(b) * f64::powi(2.0, -20),
            Split::F16 => halves::lost(a, b),
        }
    }
}

fn truth<T: Number>(
    alpha: f64,
    beta: f64,
    (a, b, c): (&Array2<f64>, &Array2<f64>, &Array2<f64>),
    (k, values): (usize, Values),
    choice: Choice,
) -> Truth {
    let exact = reference::product(alpha, a.view(), b.view(), beta, c.view());
    let values_of = exact.iter().copied().collect();
    if values == Values::Integers {
        return Truth::exact(values_of);
    }
    let relative = growth(k + 3, unit_roundoff(T::DTYPE));
    let magnitude = |x: &Array2<f64>| x.mapv(f64::abs);
    let (a, b, c) = (magnitude(a), magnitude(b), magnitude(c));
    let sums = reference::product(alpha.abs(), a.view(), b.view(), beta.abs(), c.view());
    let lost = Split::of::<T>(choice).lost(&a, &b) * alpha.abs();
    Truth {
        values: values_of,
        bounds: (sums * relative + lost).into_iter().collect(),
    }
}

fn arrays<T: Number>(device: &Device) -> Result<()> {
    let random = &mut Random::new(3);
    let draw = |_| number::<T>(random.integer(5));
    let values: Vec<T> = (0..15).map(draw).collect();
    let a = Array2::from_shape_vec((5, 3), values)?;
    let found = product(device, a.view(), a.t())?.mapv(Element::to_f64);
    let wide = a.mapv(Element::to_f64);
    ensure!(found == wide.dot(&wide.t()), "{found}");
    Ok(())
}

fn refuses<T: Number>(device: &Device) -> Result<()> {
    let six = device.zeros::<T>(6)?;
    let mut c = device.zeros::<T>(4)?;
    let (one, zero) = (number(1.0), T::default());
    let wide = Factor::new(&six, 2, 3);
    let refused = |result| matches!(result, Err(OpError::Length { .. }));
    let square = Layout::dense(2, 2);
    ensure!(
        refused(matmul(
            one,
            &wide,
            &wide,
            zero,
            (&mut c, square),
            Choice::Best
        )),
        "inner sizes that differ"
    );
    let tall = Factor::new(&six, 3, 2);
    let mut with = |left: &Factor<'_, T>, layout| {
        refused(matmul(
            one,
            left,
            &tall,
            zero,
            (&mut c, layout),
            Choice::Best,
        ))
    };
    ensure!(with(&wide, Layout::dense(2, 3)), "C of another shape");
    let narrow = Layout {
        ld: 1,
        ..Layout::dense(2, 2)
    };
    ensure!(with(&wide, narrow), "rows of C that overlap");
    let long = Factor {
        layout: Layout {
            ld: 4,
            ..Layout::dense(2, 3)
        },
        ..Factor::new(&six, 2, 3)
    };
    ensure!(with(&long, square), "a buffer that is too short");
    let sum = Choice::Variant(MatmulVariant::Combine);
    let refused = matmul(one, &wide, &tall, zero, (&mut c, square), sum);
    ensure!(
        device.is_cpu() || matches!(refused, Err(OpError::NoVariant { .. })),
        "a sum of parts as a product"
    );
    Ok(matmul(
        one,
        &wide,
        &tall,
        zero,
        (&mut c, square),
        Choice::Best,
    )?)
}

fn number<T: Number>(value: f64) -> T {
    <T as Element>::from_f64(value)
}
