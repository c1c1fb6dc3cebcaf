//! The matrices that factorisations are judged on.

use warpfuse::ops::Number;
use warpfuse_tests::generate::Random;

use crate::entries::number;

/// What a matrix is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Uniform between −1 and 1.
    Random,
    /// Columns of norms from 1 to 2⁻⁴⁰ and back.
    Graded,
    /// Columns that differ from one another by a thousandth.
    Clustered,
    /// The last columns are sums of the first, but for a few units of the last place.
    NearDeficient,
    /// Every third column is the one before.
    Deficient,
    /// Integers, with columns of zeros.
    ZeroColumns,
    /// Nothing but zeros.
    Zero,
    /// Already upper triangular.
    Triangular,
    /// Norms whose squares underflow.
    Tiny,
    /// Norms whose squares overflow.
    Huge,
    /// Of subnormal and zero elements.
    Subnormal,
    /// A NaN somewhere.
    Nan,
    /// An infinity somewhere.
    Infinite,
}

impl Kind {
    pub const ALL: [Kind; 13] = [
        Kind::Random,
        Kind::Graded,
        Kind::Clustered,
        Kind::NearDeficient,
        Kind::Deficient,
        Kind::ZeroColumns,
        Kind::Zero,
        Kind::Triangular,
        Kind::Tiny,
        Kind::Huge,
        Kind::Subnormal,
        Kind::Nan,
        Kind::Infinite,
    ];

    /// Whether factors can be right.
    pub fn is_finite(self) -> bool {
        !matches!(self, Kind::Nan | Kind::Infinite)
    }

    /// A column-major matrix.
    pub fn draw<T: Number>(self, (rows, cols): (usize, usize), seed: u64) -> Vec<T> {
        let random = &mut Random::new(seed);
        let mut a: Vec<f64> = (0..rows * cols).map(|_| random.signed()).collect();
        let narrow = T::SIZE == 4;
        let at = |row: usize, col: usize| col * rows + row;
        for col in 0..cols {
            for row in 0..rows {
                let value = a[at(row, col)];
                a[at(row, col)] = match self {
                    Kind::Graded => value * 2.0_f64.powi(-((col * 7 % 41) as i32)),
                    Kind::Clustered if col > 0 => a[at(row, 0)] + 1e-3 * value,
                    Kind::NearDeficient if col > cols / 2 => {
                        let unit = if narrow { 1e-7 } else { 1e-15 };
                        a[at(row, 0)] + a[at(row, col - 1)] + unit * value
                    }
                    Kind::Deficient if col % 3 == 2 => a[at(row, col - 1)],
                    Kind::ZeroColumns if col % 4 == 1 => 0.0,
                    Kind::ZeroColumns => (value * 5.0).round(),
                    Kind::Zero => 0.0,
                    Kind::Triangular if row > col => 0.0,
                    Kind::Tiny => value * if narrow { 1e-30 } else { 1e-250 },
                    Kind::Huge => value * if narrow { 1e30 } else { 1e250 },
                    Kind::Subnormal => value * if narrow { 1e-40 } else { 1e-310 },
                    _ => value,
                };
            }
        }
        let place = seed as usize % (rows * cols);
        match self {
            Kind::Nan => a[place] = f64::NAN,
            Kind::Infinite => a[place] = f64::INFINITY,
            _ => {}
        }
        a.into_iter().map(number).collect()
    }
}
