//! Shapes as a seed draws them.

use warpfuse::plan::Summation;
use warpfuse::plan::fused::{Precision, Product};

use crate::data;
use crate::shape::{Lengths, Shape};

/// Shapes of a list: twice as many as in the list of [`plan`](crate::plan), and a few that may fail.
const SHAPES: usize = 150;
/// Every third shape is judged.
const JUDGED: usize = 3;
/// Draws for one shape at most.
const DRAWS: usize = 32;

/// Bytes of X, from and to: more than L2 caches hold, and few enough for a list within minutes.
const BYTES: [f64; 2] = [8e7, 2.8e8];
const DENSE_COLUMNS: [f64; 2] = [2.0, 65_536.0];
const SPARSE_COLUMNS: [f64; 2] = [24.0, 2e7];
/// Entries of a row in the mean.
const PER_ROW: [f64; 2] = [4.0, 400.0];
/// Hundredths of the standard deviation of the logarithm of the lengths of rows.
const SPREAD: [f64; 2] = [20.0, 150.0];
/// Hundredths of the exponent of Zipf's law for columns.
const ZIPF: [f64; 2] = [60.0, 150.0];

/// Whether a model may be fitted with a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It may.
    Fit,
    /// It may not: the model is judged by these.
    Judge,
}

/// A shape of a list, and what is computed with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// The matrix.
    pub shape: Shape,
    /// The type of its elements.
    pub dtype: Precision,
    /// What is promised of the sums.
    pub summation: Summation,
    /// The fused product, and half the time one of its halves by itself.
    pub products: Vec<Product>,
    /// Whether models may be fitted with it.
    pub part: Part,
}

/// The list of a seed.
pub fn list(seed: u64) -> Vec<Drawn> {
    (0..SHAPES)
        .map(|index| Draws::of(seed, index).shape(index))
        .collect()
}

/// The numbers that are drawn for one shape.
struct Draws {
    seed: u64,
    next: usize,
}

impl Draws {
    fn of(seed: u64, index: usize) -> Draws {
        Draws {
            seed,
            next: index * DRAWS,
        }
    }

    /// Uniform in [0, 1).
    fn unit(&mut self) -> f64 {
        self.next += 1;
        data::uniform(self.seed, self.next - 1)
    }

    fn between(&mut self, [from, to]: [f64; 2]) -> f64 {
        from + (to - from) * self.unit()
    }

    /// Uniform in the logarithm.
    fn of_magnitude(&mut self, [from, to]: [f64; 2]) -> f64 {
        self.between([from.ln(), to.ln()]).exp()
    }

    fn happens(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    fn shape(&mut self, index: usize) -> Drawn {
        let dtype = match self.happens(0.5) {
            true => Precision::F32,
            false => Precision::F64,
        };
        let summation = match self.happens(0.25) {
            true => Summation::Reproducible,
            false => Summation::Free,
        };
        let products = self.products();
        let (bytes, size) = (self.of_magnitude(BYTES), f64::from(dtype.bytes()));
        let shape = match self.happens(0.25) {
            true => self.dense(bytes / size),
            false => self.sparse(bytes / (size + 4.0)),
        };
        let part = match index % JUDGED == JUDGED - 1 {
            true => Part::Judge,
            false => Part::Fit,
        };
        Drawn {
            shape,
            dtype,
            summation,
            products,
            part,
        }
    }

    fn products(&mut self) -> Vec<Product> {
        let mut products = vec![Product::Fused];
        match (self.happens(0.5), self.happens(0.5)) {
            (true, true) => products.push(Product::Forward),
            (true, false) => products.push(Product::Transposed),
            (false, _) => {}
        }
        products
    }

    fn dense(&mut self, elements: f64) -> Shape {
        let drawn = self.of_magnitude(DENSE_COLUMNS) as usize;
        // Half of the widths are round.
        let cols = match self.happens(0.5) && drawn > 32 {
            true => drawn.next_multiple_of(32),
            false => drawn,
        };
        let rows = (elements / cols as f64) as usize;
        Shape::Dense { rows, cols }
    }

    fn sparse(&mut self, entries: f64) -> Shape {
        let cols = self.of_magnitude(SPARSE_COLUMNS) as usize;
        let per_row = (self.of_magnitude(PER_ROW) as usize).min(cols / 3);
        let zipf_percent = match self.happens(0.35) {
            true => 0,
            false => self.between(ZIPF) as u32,
        };
        Shape::Drawn {
            rows: (entries / per_row as f64) as usize,
            cols,
            per_row,
            lengths: self.lengths(),
            zipf_percent,
        }
    }

    fn lengths(&mut self) -> Lengths {
        match self.unit() {
            ..0.4 => Lengths::Constant,
            ..0.48 => Lengths::Giants,
            _ => Lengths::Spread(self.between(SPREAD) as u32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_its_seeds_and_holds_all_kinds() {
        let all = list(1);
        assert_eq!(all, list(1));
        assert_ne!(all, list(2));
        let count = |is: &dyn Fn(&Drawn) -> bool| all.iter().filter(|drawn| is(drawn)).count();
        assert_eq!(count(&|drawn| drawn.part == Part::Judge), SHAPES / JUDGED);
        let kinds = [
            count(&|drawn| drawn.shape.is_sparse()),
            count(&|drawn| !drawn.shape.is_sparse()),
            count(&|drawn| drawn.shape.is_uneven()),
            count(&|drawn| drawn.dtype == Precision::F64),
            count(&|drawn| drawn.summation == Summation::Reproducible),
            count(&|drawn| drawn.products.contains(&Product::Forward)),
            count(&|drawn| drawn.products.contains(&Product::Transposed)),
        ];
        assert!(kinds.iter().all(|&kind| kind > SHAPES / 10), "{kinds:?}");
    }

    #[test]
    fn shapes_have_room_for_their_rows() {
        for drawn in list(1) {
            let bytes = match drawn.dtype {
                Precision::F32 => drawn.shape.bytes::<f32>(0),
                Precision::F64 => drawn.shape.bytes::<f64>(0),
            };
            let (rows, cols) = (drawn.shape.rows(), drawn.shape.cols());
            assert!((6e7..=BYTES[1]).contains(&(bytes as f64)), "{drawn:?}");
            assert!(
                rows > 0 && drawn.shape.entries() <= rows * cols,
                "{drawn:?}"
            );
        }
    }
}
