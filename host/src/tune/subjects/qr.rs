//! Launches of a batch of QR factorisations.

use rayon::prelude::*;

use super::super::{Generator, Point, Refusal, Subject, TuneError};
use super::{Launches, answers, expect_launches, median_us, numbers};
use crate::device::{Buffer, Device};
use crate::matrix::Dtype;
use crate::ops::qr::{Batch, Qr, QrShape, Status, TriangleForm};
use crate::ops::{Number, OpError};
use crate::plan::qr::{
    self as plans, GeneratedPoint, Lying, QrPlan, QrPoint, for_batch, generated, planned, points,
};
use crate::plan::tuned::{Launch, class};

/// Elements of the batch that are judged at most; whole matrices, the first and the last among them.
const JUDGED: usize = 1 << 24;

/// A batch of column-major matrices of pseudo-random numbers.
#[derive(Debug)]
pub struct QrSubject<T: Number> {
    device: Device,
    batch: Batch,
    host: Vec<T>,
    a: Buffer<T>,
    launches: Launches<QrPlan>,
    /// The compiler of the points that no table has, which come last.
    generated: Option<(Generator, Vec<GeneratedPoint>)>,
    /// The factorisation of the point that was checked last.
    current: Option<(usize, Qr<T>)>,
}

impl<T: Number> QrSubject<T> {
    /// `count` matrices of a shape on a device that launches.
    ///
    /// # Errors
    /// [`TuneError::NoLaunches`] on the CPU; what [`Qr::new`] returns.
    pub fn new(device: &Device, count: usize, shape: QrShape) -> Result<QrSubject<T>, TuneError> {
        expect_launches(device)?;
        shape.check().map_err(OpError::from)?;
        let batch = Batch::column_major(shape.rows, shape.cols, count);
        let host = numbers::<T>(count * shape.rows * shape.cols, 1);
        let a = device.upload(&host)?;
        let limits = device.limits().expect("a device that launches has limits");
        let of = plans::Batch::of(shape, count, T::SIZE, limits);
        let chosen = planned(&of, Lying::Packed, device.has_clusters());
        let point = |point: QrPoint| {
            let values = point.values;
            let kept = Point::new(point.name, point.coordinates).launched_by(Launch::Qr { values });
            (kept, for_batch(point.plan, &of))
        };
        let plans: Vec<(Point, QrPlan)> = points(shape, T::SIZE).into_iter().map(point).collect();
        let found = plans.iter().position(|(_, plan)| *plan == chosen);
        let planners = || (Point::new("the planner's", Vec::new()), chosen);
        Ok(QrSubject {
            device: device.clone(),
            batch,
            host,
            a,
            launches: Launches::new(plans, found, planners),
            generated: None,
            current: None,
        })
    }

    /// One more point: launches of the caller's choice, which are run and judged as all others.
    pub fn with_launches(mut self, name: impl Into<String>, plan: QrPlan) -> QrSubject<T> {
        self.launches.push((Point::new(name, Vec::new()), plan));
        self
    }

    /// The same with points that no table has, each of which is compiled and loaded before it runs for the first time. A table of
    /// tuned launches has none of them: no program finds their kernels.
    pub fn with_generated(self, generator: Generator) -> QrSubject<T> {
        let shape = self.batch.shape();
        let limits = self.device.limits().expect("a device that launches");
        let of = plans::Batch::of(shape, self.batch.count, T::SIZE, limits);
        let all = generated(shape, T::SIZE);
        let mut subject = self;
        for GeneratedPoint { point, .. } in &all {
            let kept = Point::new(point.name.clone(), point.coordinates.clone());
            subject
                .launches
                .push((kept, for_batch(point.plan.clone(), &of)));
        }
        QrSubject {
            generated: Some((generator, all)),
            ..subject
        }
    }

    /// Compiles and loads the kernel of a point that no table has.
    fn generate(&self, point: usize) -> Result<(), Refusal> {
        let Some((generator, all)) = &self.generated else {
            return Ok(());
        };
        let name = &self.launches.points[point].name;
        let Some(one) = all.iter().find(|one| one.point.name == *name) else {
            return Ok(());
        };
        generator.make::<T::Qr>(&self.device, one.variant, &one.template)
    }

    /// The launches of a point.
    ///
    /// # Panics
    /// When there is no such point.
    pub fn plan(&self, point: usize) -> &QrPlan {
        &self.launches.all[point]
    }
}

impl<T: Number> Subject for QrSubject<T> {
    fn class(&self) -> String {
        class::qr(T::PRECISION, self.batch.count, self.batch.shape())
    }

    fn points(&self) -> &[Point] {
        &self.launches.points
    }

    fn incumbent(&self) -> usize {
        self.launches.incumbent
    }

    fn is_usable(&self) -> bool {
        answers(&self.device)
    }

    fn check(&mut self, point: usize) -> Result<(), Refusal> {
        self.current = None;
        self.generate(point)?;
        let plan = Some(self.launches.all[point].clone());
        let mut qr = Qr::with_plan(&self.device, self.batch, TriangleForm::Whole, plan)?;
        qr.factor(&self.a)?;
        if let Some(bad) = qr
            .statuses()?
            .iter()
            .position(|status| *status != Status::FINE)
        {
            return Err(Refusal::Wrong(format!(
                "matrix {bad} has a status other than fine"
            )));
        }
        let found = Found {
            shape: self.batch.shape(),
            packed: qr.factors().to_vec()?,
            first: qr.first().to_vec()?,
            t: qr.t().to_vec()?,
        };
        judge(&self.host, &found)?;
        self.current = Some((point, qr));
        Ok(())
    }

    fn time(&mut self, point: usize, hopeless_us: f64) -> Result<f64, Refusal> {
        let a = &self.a;
        match &mut self.current {
            Some((checked, qr)) if *checked == point => {
                median_us::<OpError>(&self.device, hopeless_us, || qr.factor(a))
            }
            _ => Err(Refusal::Failed("it was not checked".into())),
        }
    }
}

/// Factors of a batch.
struct Found<T> {
    shape: QrShape,
    packed: Vec<T>,
    first: Vec<T>,
    t: Vec<T>,
}

/// Matrices spread over the batch: A·x = Q·(R·x) with Q by its reflectors and by V and T, and Qᵀ·(Q·y) = y, in f64, for a
/// vector that is not known to what is judged. A wrong element anywhere shows, because the vector has no zeros.
fn judge<T: Number>(a: &[T], found: &Found<T>) -> Result<(), Refusal> {
    let QrShape { rows, cols } = found.shape;
    let count = a.len() / (rows * cols);
    let step = (a.len() / JUDGED).max(1);
    let judged: Vec<usize> = (0..count)
        .step_by(step)
        .chain(count.checked_sub(1))
        .collect();
    judged.into_par_iter().try_for_each(|i| {
        let distance = One::of(a, found, i).distance();
        // The gates of the family, in the norms of vectors.
        let bound = 20.0 * cols as f64 * epsilon::<T>();
        match distance <= bound {
            true => Ok(()),
            false => Err(Refusal::Wrong(format!(
                "matrix {i} is off by {distance:.1e} of {bound:.1e}"
            ))),
        }
    })
}

fn epsilon<T: Number>() -> f64 {
    match T::DTYPE {
        Dtype::F32 => f64::from(f32::EPSILON),
        Dtype::F64 => f64::EPSILON,
    }
}

/// One matrix and its factors in f64.
struct One {
    rows: usize,
    cols: usize,
    a: Vec<f64>,
    packed: Vec<f64>,
    first: Vec<f64>,
    t: Vec<f64>,
}

impl One {
    fn of<T: Number>(a: &[T], found: &Found<T>, i: usize) -> One {
        let QrShape { rows, cols } = found.shape;
        let least = rows.min(cols);
        let wide = |all: &[T], len: usize| -> Vec<f64> {
            all[i * len..][..len].iter().map(|x| (*x).into()).collect()
        };
        One {
            rows,
            cols,
            a: wide(a, rows * cols),
            packed: wide(&found.packed, rows * cols),
            first: wide(&found.first, least),
            t: wide(&found.t, least * least),
        }
    }

    /// The largest of the relative distances; NaN where anything is NaN.
    fn distance(&self) -> f64 {
        let least = self.rows.min(self.cols);
        let x: Vec<f64> = numbers::<f64>(self.cols, 77)
            .iter()
            .map(|x| 1.0 + x)
            .collect();
        let exact = self.times(&self.a, &x, self.rows);
        let r = self.times(&self.packed, &x, 0);
        let by_reflectors = self.reflected(r.clone(), false);
        let back = self.reflected(by_reflectors.clone(), true);
        let mut by_t = r.clone();
        let w: Vec<f64> = (0..least).map(|k| self.dot_v(k, &r)).collect();
        for k in 0..least {
            let row = &self.t[k * least..(k + 1) * least];
            let factor: f64 = row.iter().zip(&w).map(|(t, w)| t * w).sum();
            self.add_v(k, -factor, &mut by_t);
        }
        let below = (0..least).flat_map(|i| self.t[i * least..][..i].iter());
        let below: f64 = below.map(|t| t.abs()).sum();
        let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        let apart = |a: &[f64], b: &[f64]| {
            let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
            norm(&differences) / norm(b)
        };
        let all = [
            apart(&by_reflectors, &exact),
            apart(&by_t, &exact),
            apart(&back, &r),
            below,
        ];
        all.into_iter().fold(0.0, |worst, one| {
            if one > worst || one.is_nan() {
                one
            } else {
                worst
            }
        })
    }

    /// A column-major matrix times x; elements more than `below` rows under the diagonal do not count.
    fn times(&self, matrix: &[f64], x: &[f64], below: usize) -> Vec<f64> {
        let mut product = vec![0.0; self.rows];
        for (col, (column, x)) in matrix.chunks_exact(self.rows).zip(x).enumerate() {
            let counted = (col + below + 1).min(self.rows);
            let pairs = product[..counted].iter_mut().zip(column);
            pairs.for_each(|(sum, a)| *sum += a * x);
        }
        product
    }

    fn tail(&self, k: usize) -> &[f64] {
        &self.packed[k * self.rows + k + 1..(k + 1) * self.rows]
    }

    fn dot_v(&self, k: usize, c: &[f64]) -> f64 {
        let tail: f64 = self
            .tail(k)
            .iter()
            .zip(&c[k + 1..])
            .map(|(v, c)| v * c)
            .sum();
        self.first[k] * c[k] + tail
    }

    fn add_v(&self, k: usize, factor: f64, c: &mut [f64]) {
        c[k] += self.first[k] * factor;
        let below = c[k + 1..].iter_mut().zip(self.tail(k));
        below.for_each(|(c, v)| *c += v * factor);
    }

    fn reflected(&self, mut c: Vec<f64>, transposed: bool) -> Vec<f64> {
        let least = self.rows.min(self.cols);
        for i in 0..least {
            let k = if transposed { i } else { least - 1 - i };
            let z = -self.t[k * least + k] * self.dot_v(k, &c);
            self.add_v(k, z, &mut c);
        }
        c
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;

    /// Right factors of a batch on the CPU.
    fn right(shape: QrShape, count: usize) -> (Vec<f32>, Found<f32>) {
        let device = Device::cpu();
        let host = numbers::<f32>(count * shape.rows * shape.cols, 1);
        let a = device.upload(&host).expect("memory");
        let batch = Batch::column_major(shape.rows, shape.cols, count);
        let mut qr = Qr::new(&device, batch, TriangleForm::Whole).expect("a shape");
        qr.factor(&a).expect("factors");
        let values = |buffer: &Buffer<f32>| buffer.to_vec().expect("values");
        let (packed, first, t) = (values(qr.factors()), values(qr.first()), values(qr.t()));
        (
            host,
            Found {
                shape,
                packed,
                first,
                t,
            },
        )
    }

    #[test]
    fn of_twenty_planted_errors_twenty_are_refused() {
        let shape = QrShape { rows: 24, cols: 17 };
        let (a, mut found) = right(shape, 5);
        assert_eq!(judge(&a, &found), Ok(()));
        let last = 4;
        for planted in 0..20 {
            let (packed, first, t) = (found.packed.clone(), found.first.clone(), found.t.clone());
            let matrix = [0, last][planted % 2];
            let element = planted * 3 % 17;
            match planted % 5 {
                0 => found.packed[matrix * 408 + element * 24 + element] *= 1.001, // R's diagonal
                1 => found.packed[matrix * 408 + element * 24 + 23] += 0.01,       // a reflector
                2 => found.first[matrix * 17 + element] *= -1.0,
                3 => found.t[matrix * 289 + element * 17 + element] *= 1.01,
                _ => found.t[matrix * 289 + 16] = f32::NAN,
            }
            let verdict = judge(&a, &found);
            assert!(
                matches!(verdict, Err(Refusal::Wrong(_))),
                "error {planted} was not seen"
            );
            (found.packed, found.first, found.t) = (packed, first, t);
        }
        assert_eq!(judge(&a, &found), Ok(()));
    }

    #[test]
    fn the_cpu_has_nothing_to_choose() {
        let shape = QrShape { rows: 4, cols: 4 };
        let refused = QrSubject::<f32>::new(&Device::cpu(), 3, shape);
        assert!(matches!(refused, Err(TuneError::NoLaunches { .. })));
    }
}
