//! Whole arrays.

use std::any::type_name;

use gpu_kernels::In;
use gpu_kernels::reduce::{
    Additive, Extreme, Products, ReduceArgs, ReduceVariant, Reduction, Search, Sought, Spread,
    Squares, Statistic, Sum, Term, Total,
};

use super::launch::{no_arguments, order_number, prepare, total};
use super::{Moments, Reducer, Reducible};
use crate::cpu::reduce as cpu;
use crate::device::{Buffer, Prepared};
use crate::ops::{OpError, checks};
use crate::plan::reduce::{Reproducibility, WholePlan, whole, whole_fixed};

/// A reduction that is submitted again and again; from [`Reducer::repeated`].
#[derive(Debug)]
pub struct Repeated<'a, T: Reducible> {
    prepared: Prepared<T::Reduce>,
    args: ReduceArgs<'a, T>,
}

impl<T: Reducible> Repeated<'_, T> {
    /// Submits it, in one launch, and waits for nothing. The total stays on the device.
    ///
    /// # Errors
    /// [`OpError::Device`] when the device fails.
    pub fn submit(&self) -> Result<(), OpError> {
        Ok(self.prepared.launch(self.args)?)
    }

    /// The kernel's entry and its number of blocks.
    pub fn entry(&self) -> (&'static str, u32) {
        (self.prepared.entry().name, self.prepared.shape().grid)
    }
}

impl Reducer {
    /// Σ xᵢ, in f64 for floats, in i64 modulo 2⁶⁴ for integers. Waits for the result, as all of these do.
    ///
    /// # Errors
    /// [`OpError::OtherDevice`] when x lies elsewhere, [`OpError::Device`] when the device fails.
    pub fn sum<T: Reducible>(&mut self, x: &Buffer<T>) -> Result<T::Sum, OpError> {
        let term = Term::Value;
        let total: Sum<T::Sum> = self.of_elements(Statistic::Sum(term), Additive(term), x)?;
        Ok(total.0)
    }

    /// [`sum`](Reducer::sum) cut by a plan of the caller's choice, one of [`points`](crate::plan::reduce::points) for this
    /// length, on a GPU or an emulator.
    ///
    /// # Errors
    /// As [`repeated`](Reducer::repeated).
    pub fn sum_by<T: Reducible>(
        &mut self,
        x: &Buffer<T>,
        plan: &WholePlan,
    ) -> Result<T::Sum, OpError> {
        let statistic = Statistic::Sum(Term::Value);
        self.repeated_by(statistic, x, plan)?.submit()?;
        Ok(self.fetch::<Sum<T::Sum>>()?.0)
    }

    /// Σ xᵢ·yᵢ, as [`sum`](Reducer::sum).
    ///
    /// # Errors
    /// [`OpError::Length`] when the lengths differ, else as [`sum`](Reducer::sum).
    pub fn dot<T: Reducible>(&mut self, x: &Buffer<T>, y: &Buffer<T>) -> Result<T::Sum, OpError> {
        self.expect_here("x", x)?;
        self.expect_here("y", y)?;
        checks::same_length("y", y, x.len())?;
        if let Some(pair) = x.as_host_slice().zip(y.as_host_slice()) {
            return Ok(cpu::pairs(Products, pair, chunks::<T>(x.len())).0);
        }
        if x.is_empty() {
            return Ok(Sum::NONE.0);
        }
        let (prepared, args) = self.prepare(Statistic::Products, x, y.input())?;
        prepared.launch(args)?;
        Ok(self.fetch::<Sum<T::Sum>>()?.0)
    }

    /// Σ |xᵢ|, as [`sum`](Reducer::sum).
    ///
    /// # Errors
    /// As [`sum`](Reducer::sum).
    pub fn norm1<T: Reducible>(&mut self, x: &Buffer<T>) -> Result<T::Sum, OpError> {
        let term = Term::Magnitude;
        let total: Sum<T::Sum> = self.of_elements(Statistic::Sum(term), Additive(term), x)?;
        Ok(total.0)
    }

    /// √Σ xᵢ², the squares added in f64.
    ///
    /// # Errors
    /// As [`sum`](Reducer::sum).
    pub fn norm2<T: Reducible>(&mut self, x: &Buffer<T>) -> Result<f64, OpError> {
        let total: Sum<f64> = self.of_elements(Statistic::Squares, Squares, x)?;
        Ok(total.0.sqrt())
    }

    /// max |xᵢ|, unsigned for integers; `None` of an empty array.
    ///
    /// # Errors
    /// As [`sum`](Reducer::sum).
    pub fn norm_max<T: Reducible>(
        &mut self,
        x: &Buffer<T>,
    ) -> Result<Option<T::Magnitude>, OpError> {
        let found = self.search(Sought::Magnitude, x)?;
        Ok(found.map(|found| T::magnitude_of(found.rank)))
    }

    /// Count, mean and variance in one pass.
    ///
    /// # Errors
    /// As [`sum`](Reducer::sum).
    pub fn moments<T: Reducible>(&mut self, x: &Buffer<T>) -> Result<Moments, OpError> {
        let total: gpu_kernels::reduce::Moments =
            self.of_elements(Statistic::Moments, Spread, x)?;
        Ok(total.into())
    }

    /// The least element; `None` of an empty array.
    ///
    /// # Errors
    /// As [`sum`](Reducer::sum).
    pub fn min<T: Reducible>(&mut self, x: &Buffer<T>) -> Result<Option<T>, OpError> {
        let found = self.search(Sought::Least, x)?;
        Ok(found.map(|found| T::of_rank(found.rank, Sought::Least)))
    }

    /// The greatest element; `None` of an empty array.
    ///
    /// # Errors
    /// As [`sum`](Reducer::sum).
    pub fn max<T: Reducible>(&mut self, x: &Buffer<T>) -> Result<Option<T>, OpError> {
        let found = self.search(Sought::Greatest, x)?;
        Ok(found.map(|found| T::of_rank(found.rank, Sought::Greatest)))
    }

    /// The index of the first least element.
    ///
    /// # Errors
    /// As [`sum`](Reducer::sum).
    pub fn arg_min<T: Reducible>(&mut self, x: &Buffer<T>) -> Result<Option<usize>, OpError> {
        let found = self.search(Sought::Least, x)?;
        Ok(found.map(|found| found.index as usize))
    }

    /// The index of the first greatest element.
    ///
    /// # Errors
    /// As [`sum`](Reducer::sum).
    pub fn arg_max<T: Reducible>(&mut self, x: &Buffer<T>) -> Result<Option<usize>, OpError> {
        let found = self.search(Sought::Greatest, x)?;
        Ok(found.map(|found| found.index as usize))
    }

    /// How many elements are not zero.
    ///
    /// # Errors
    /// As [`sum`](Reducer::sum).
    pub fn count<T: Reducible>(&mut self, x: &Buffer<T>) -> Result<u64, OpError> {
        let term = Term::IsNonzero;
        let total: Sum<T::Sum> = self.of_elements(Statistic::Sum(term), Additive(term), x)?;
        Ok(super::parts::count_of(total.0))
    }

    /// Whether an element is not zero; false of an empty array.
    ///
    /// # Errors
    /// As [`sum`](Reducer::sum).
    pub fn any<T: Reducible>(&mut self, x: &Buffer<T>) -> Result<bool, OpError> {
        Ok(self.count(x)? > 0)
    }

    /// Whether no element is zero; true of an empty array.
    ///
    /// # Errors
    /// As [`sum`](Reducer::sum).
    pub fn all<T: Reducible>(&mut self, x: &Buffer<T>) -> Result<bool, OpError> {
        Ok(self.count(x)? == x.len() as u64)
    }

    /// The reduction of x (of x with itself for products), ready to be submitted again and again without a look
    /// at shapes and kernels; on a GPU or an emulator.
    ///
    /// # Errors
    /// As [`sum`](Reducer::sum); [`OpError::Length`] when x is empty; [`OpError::Device`] on the CPU.
    pub fn repeated<'a, T: Reducible>(
        &'a mut self,
        statistic: Statistic,
        x: &'a Buffer<T>,
    ) -> Result<Repeated<'a, T>, OpError> {
        self.expect_here("x", x)?;
        if x.is_empty() {
            return Err(OpError::Length {
                what: "x",
                expected: 1,
                found: 0,
            });
        }
        let plan = self.plan::<T>(statistic, x.len());
        self.repeated_by(statistic, x, &plan)
    }

    /// [`repeated`](Reducer::repeated) cut by a plan of the caller's choice.
    ///
    /// # Errors
    /// As [`repeated`](Reducer::repeated).
    pub fn repeated_by<'a, T: Reducible>(
        &'a mut self,
        statistic: Statistic,
        x: &'a Buffer<T>,
        plan: &WholePlan,
    ) -> Result<Repeated<'a, T>, OpError> {
        self.expect_here("x", x)?;
        let (prepared, args) = self.prepare_by(statistic, (x, x.input()), plan)?;
        Ok(Repeated { prepared, args })
    }

    fn search<T: Reducible>(
        &mut self,
        sought: Sought,
        x: &Buffer<T>,
    ) -> Result<Option<Extreme<T::Rank>>, OpError> {
        let found = self.of_elements(Statistic::Search(sought), Search(sought), x)?;
        Ok((!x.is_empty()).then_some(found))
    }

    fn of_elements<T: Reducible, R: Reduction<T>>(
        &mut self,
        statistic: Statistic,
        reduction: R,
        x: &Buffer<T>,
    ) -> Result<R::Total, OpError> {
        self.expect_here("x", x)?;
        if let Some(values) = x.as_host_slice() {
            return Ok(cpu::elements(reduction, values, chunks::<T>(x.len())));
        }
        if x.is_empty() {
            return Ok(R::Total::NONE);
        }
        let (prepared, args) = self.prepare(statistic, x, In::none())?;
        prepared.launch(args)?;
        self.fetch()
    }

    /// The launch and its arguments; `y` is the second operand of products.
    fn prepare<'a, T: Reducible>(
        &'a mut self,
        statistic: Statistic,
        x: &'a Buffer<T>,
        y: In<'a, T>,
    ) -> Result<(Prepared<T::Reduce>, ReduceArgs<'a, T>), OpError> {
        let plan = self.plan::<T>(statistic, x.len());
        self.prepare_by(statistic, (x, y), &plan)
    }

    fn prepare_by<'a, T: Reducible>(
        &'a mut self,
        statistic: Statistic,
        (x, y): (&'a Buffer<T>, In<'a, T>),
        plan: &WholePlan,
    ) -> Result<(Prepared<T::Reduce>, ReduceArgs<'a, T>), OpError> {
        let variant = ReduceVariant::Whole(statistic);
        self.reserve(plan.chunks * variant.words(), 1)?;
        let prepared = prepare::<T>(&self.device, variant, plan.grid)?;
        let args = ReduceArgs {
            x: x.input(),
            y,
            len: x.len() as u64,
            chunks: plan.chunks,
            rows_per_chunk: plan.rows_per_chunk,
            order: order_number(plan.order),
            partials: self.partials.output(),
            tickets: self.tickets.output(),
            out: self.out.output(),
            ..no_arguments()
        };
        Ok((prepared, args))
    }

    fn plan<T: Reducible>(&self, statistic: Statistic, len: usize) -> WholePlan {
        let Some(limits) = self.device.limits() else {
            return whole_fixed(len as u64, T::SIZE);
        };
        // Other chunks give other bits, and sums alone were measured.
        let is_free = self.level != Reproducibility::Device;
        let is_measured = is_free && statistic == Statistic::Sum(Term::Value);
        let tuned = self.device.tuned().filter(|_| is_measured);
        tuned
            .and_then(|table| table.reduce((type_name::<T>(), T::SIZE), len))
            .unwrap_or_else(|| whole(len as u64, T::SIZE, self.level, limits))
    }

    fn fetch<R: Total>(&self) -> Result<R, OpError> {
        let mut words = [0; gpu_kernels::reduce::total::MOST_WORDS];
        self.out.read(0, &mut words[..R::WORDS])?;
        Ok(total(&words))
    }
}

/// The chunks that every level has on the CPU.
fn chunks<T: Reducible>(len: usize) -> cpu::Chunks {
    debug_assert_eq!(Reproducibility::default(), Reproducibility::Device);
    let plan = whole_fixed(len as u64, T::SIZE);
    cpu::Chunks {
        rows_per_chunk: plan.rows_per_chunk as usize,
    }
}
