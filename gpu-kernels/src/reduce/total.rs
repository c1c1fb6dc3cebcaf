//! What is reduced to what: pure arithmetic, which GPU and CPU share, so that both get the same bits.

use super::element::{Accumulator, Element, Rank, Sought};

/// The result of a part, which is combined with those of other parts. At most [`MOST_WORDS`] words of 8 bytes.
pub trait Total: Copy + Send + Sync + 'static {
    /// Words that it is stored in.
    const WORDS: usize;
    /// The result of no elements.
    const NONE: Self;
    /// The result of both parts, `later` being the one of higher indices.
    fn with(self, later: Self) -> Self;
    /// As words; those beyond `WORDS` are zero.
    fn to_words(self) -> [u64; MOST_WORDS];
    /// From its words.
    fn from_words(words: [u64; MOST_WORDS]) -> Self;
}

/// Words of the largest total.
pub const MOST_WORDS: usize = 3;

/// How a slot takes in values, one after the other, and what comes of it.
pub trait Reduction<V>: Copy + Send + Sync {
    /// What a slot holds.
    type Running: Copy + Send;
    /// What comes of it.
    type Total: Total;
    /// Before the first value; `pivot` is the first value of the part, the same for all its slots.
    fn start(&self) -> Self::Running;
    /// Takes in the value of index `index`; indices ascend.
    fn step(&self, running: &mut Self::Running, value: V, pivot: V, index: u64);
    /// The result of a slot.
    fn finish(&self, running: Self::Running, pivot: V) -> Self::Total;
}

/// A sum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sum<S>(pub S);

impl<S: Accumulator> Total for Sum<S> {
    const WORDS: usize = 1;
    const NONE: Self = Sum(S::ZERO);
    #[inline(always)]
    fn with(self, later: Self) -> Self {
        Sum(self.0.plus(later.0))
    }
    #[inline(always)]
    fn to_words(self) -> [u64; MOST_WORDS] {
        [self.0.to_bits(), 0, 0]
    }
    #[inline(always)]
    fn from_words(words: [u64; MOST_WORDS]) -> Self {
        Sum(S::from_bits(words[0]))
    }
}

/// What is added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Term {
    /// x.
    Value = 0,
    /// |x|.
    Magnitude = 1,
    /// 1 where x is not zero (a NaN is not), else 0.
    IsNonzero = 2,
}

impl Term {
    /// The term of this number, as kernels get it.
    #[inline(always)]
    pub fn of_number(number: u32) -> Term {
        match number {
            0 => Term::Value,
            1 => Term::Magnitude,
            _ => Term::IsNonzero,
        }
    }
}

/// Σ term(x) in the accumulator of the elements.
#[derive(Debug, Clone, Copy)]
pub struct Additive(pub Term);

impl<T: Element> Reduction<T> for Additive {
    type Running = T::Sum;
    type Total = Sum<T::Sum>;
    #[inline(always)]
    fn start(&self) -> T::Sum {
        T::Sum::ZERO
    }
    #[inline(always)]
    fn step(&self, running: &mut T::Sum, value: T, _: T, _: u64) {
        let term = match self.0 {
            Term::Value => value.to_sum(),
            Term::Magnitude => value.to_sum().magnitude(),
            Term::IsNonzero if value.is_nonzero() => T::Sum::ONE,
            Term::IsNonzero => T::Sum::ZERO,
        };
        *running = running.plus(term);
    }
    #[inline(always)]
    fn finish(&self, running: T::Sum, _: T) -> Sum<T::Sum> {
        Sum(running)
    }
}

/// Σ x², in f64 for every element type.
#[derive(Debug, Clone, Copy)]
pub struct Squares;

impl<T: Element> Reduction<T> for Squares {
    type Running = f64;
    type Total = Sum<f64>;
    #[inline(always)]
    fn start(&self) -> f64 {
        0.0
    }
    #[inline(always)]
    fn step(&self, running: &mut f64, value: T, _: T, _: u64) {
        let value = value.to_f64();
        *running += value * value;
    }
    #[inline(always)]
    fn finish(&self, running: f64, _: T) -> Sum<f64> {
        Sum(running)
    }
}

/// Σ x·y.
#[derive(Debug, Clone, Copy)]
pub struct Products;

impl<T: Element> Reduction<(T, T)> for Products {
    type Running = T::Sum;
    type Total = Sum<T::Sum>;
    #[inline(always)]
    fn start(&self) -> T::Sum {
        T::Sum::ZERO
    }
    #[inline(always)]
    fn step(&self, running: &mut T::Sum, (x, y): (T, T), _: (T, T), _: u64) {
        *running = running.plus(x.to_sum().times(y.to_sum()));
    }
    #[inline(always)]
    fn finish(&self, running: T::Sum, _: (T, T)) -> Sum<T::Sum> {
        Sum(running)
    }
}

/// The highest rank and the lowest index that has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extreme<R> {
    /// The rank.
    pub rank: R,
    /// The index; `u64::MAX` of no elements.
    pub index: u64,
}

impl<R: Rank> Extreme<R> {
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        let is_higher = other.rank > self.rank;
        if is_higher || (other.rank == self.rank && other.index < self.index) {
            other
        } else {
            self
        }
    }
}

impl<R: Rank> Total for Extreme<R> {
    const WORDS: usize = 2;
    const NONE: Self = Extreme {
        rank: R::LOWEST,
        index: u64::MAX,
    };
    #[inline(always)]
    fn with(self, later: Self) -> Self {
        self.or(later)
    }
    #[inline(always)]
    fn to_words(self) -> [u64; MOST_WORDS] {
        [self.rank.to_bits(), self.index, 0]
    }
    #[inline(always)]
    fn from_words(words: [u64; MOST_WORDS]) -> Self {
        Extreme {
            rank: R::from_bits(words[0]),
            index: words[1],
        }
    }
}

/// The sought element and where it is first.
#[derive(Debug, Clone, Copy)]
pub struct Search(pub Sought);

impl Search {
    /// The search of this number, as kernels get it.
    #[inline(always)]
    pub fn of_number(number: u32) -> Search {
        Search(match number {
            0 => Sought::Least,
            1 => Sought::Greatest,
            _ => Sought::Magnitude,
        })
    }
}

impl<T: Element> Reduction<T> for Search {
    type Running = Extreme<T::Rank>;
    type Total = Extreme<T::Rank>;
    #[inline(always)]
    fn start(&self) -> Extreme<T::Rank> {
        Extreme::NONE
    }
    #[inline(always)]
    fn step(&self, running: &mut Extreme<T::Rank>, value: T, _: T, index: u64) {
        let rank = value.rank(self.0);
        // Indices ascend: of equals the first stays. The lowest rank has to beat nothing at all.
        let is_first = T::REACHES_LOWEST && running.index == u64::MAX;
        if rank > running.rank || is_first {
            *running = Extreme { rank, index };
        }
    }
    #[inline(always)]
    fn finish(&self, running: Extreme<T::Rank>, _: T) -> Extreme<T::Rank> {
        running
    }
}

/// Number of elements, their mean, and the sum of squared deviations from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// n.
    pub count: f64,
    /// Σ x / n.
    pub mean: f64,
    /// Σ (x − mean)².
    pub deviations: f64,
}

impl Total for Moments {
    const WORDS: usize = 3;
    const NONE: Self = Moments {
        count: 0.0,
        mean: 0.0,
        deviations: 0.0,
    };
    /// Chan, Golub and LeVeque 1983.
    #[inline(always)]
    fn with(self, later: Self) -> Self {
        if later.count == 0.0 {
            return self;
        }
        if self.count == 0.0 {
            return later;
        }
        let count = self.count + later.count;
        let apart = later.mean - self.mean;
        let share = later.count / count;
        Moments {
            count,
            mean: self.mean + apart * share,
            deviations: self.deviations + later.deviations + apart * apart * (self.count * share),
        }
    }
    #[inline(always)]
    fn to_words(self) -> [u64; MOST_WORDS] {
        [self.count, self.mean, self.deviations].map(f64::to_bits)
    }
    #[inline(always)]
    fn from_words(words: [u64; MOST_WORDS]) -> Self {
        let [count, mean, deviations] = words.map(f64::from_bits);
        Moments {
            count,
            mean,
            deviations,
        }
    }
}

/// Mean and squared deviations in one pass: sums of x − pivot and of its square, so that a mean that is large
/// beside the spread costs no digits.
#[derive(Debug, Clone, Copy)]
pub struct Spread;

/// Sums over the values of one slot.
#[derive(Debug, Clone, Copy)]
pub struct Shifted {
    count: u32,
    sum: f64,
    squares: f64,
}

impl<T: Element> Reduction<T> for Spread {
    type Running = Shifted;
    type Total = Moments;
    #[inline(always)]
    fn start(&self) -> Shifted {
        Shifted {
            count: 0,
            sum: 0.0,
            squares: 0.0,
        }
    }
    #[inline(always)]
    fn step(&self, running: &mut Shifted, value: T, pivot: T, _: u64) {
        let shifted = value.to_f64() - pivot.to_f64();
        running.count += 1;
        running.sum += shifted;
        running.squares += shifted * shifted;
    }
    #[inline(always)]
    fn finish(&self, running: Shifted, pivot: T) -> Moments {
        if running.count == 0 {
            return Moments::NONE;
        }
        let count = running.count as f64;
        let mean = running.sum / count;
        let deviations = running.squares - running.sum * mean;
        Moments {
            count,
            mean: pivot.to_f64() + mean,
            // Rounding may leave less than nothing; a NaN stays.
            deviations: if deviations < 0.0 { 0.0 } else { deviations },
        }
    }
}
