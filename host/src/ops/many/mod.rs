//! The fused pattern with several right-hand sides, `W = α · Xᵀ( V ⊙ (X·Y − s) ) + β · Z`, and its halves.
//!
//! Arrays are row-major: Y, W and Z of n × k elements, P of m × k, so that the k numbers of one feature or sample lie
//! together, as scikit-learn has decision functions; a multinomial model's `coef`, one row per class, is Yᵀ.
//!
//! Which way the products go:
//! - A dense X of up to 2,048 columns (f64: 1,024) is read once for up to eight right-hand sides, and once more for every
//!   further eight; the fused product of a wider one takes two passes. Eight sides of 8 to 1,024 columns take 1.4 to 2.1
//!   times as long as one on an H200.
//! - A sparse X is read once for eight, with an atomic addition for every entry and side: 13 to 37 times as long as one
//!   side. Where Y fits into shared memory (up to 12,400 columns of f32), **prepare [`Preparation::Tiles`] first**: the
//!   same products then take 1.5 to 2.5 times as long as one.
//! - One right-hand side goes the way of [`Matrix::fused`].
//!
//! Launches are planned by [`crate::plan::many`] and [`crate::plan::tiles`].
//!
//! [`Preparation::Tiles`]: super::Preparation::Tiles

mod host;
mod launch;
pub(super) mod launches;

use super::forms::Rows;
use super::matrix::Matrix;
use super::members::Members;
use super::terms::{Terms, begin};
use super::{Number, OpError};
use crate::device::Buffer;
use crate::plan::fused::{Product, Summation};

/// V of a product with several right-hand sides.
#[derive(Debug, Clone, Copy)]
pub enum RowWeights<'a, T: Number> {
    /// m elements: one weight of a row for all right-hand sides.
    OfRows(&'a Buffer<T>),
    /// m × k elements: a weight for every row and right-hand side.
    OfEntries(&'a Buffer<T>),
}

/// Everything besides X and the input. The default is α = 1 and nothing else.
#[derive(Debug, Clone, Copy)]
pub struct ManyTerms<'a, T: Number> {
    /// α.
    pub alpha: T,
    /// V.
    pub weights: Option<RowWeights<'a, T>>,
    /// s, k elements: a number for every right-hand side that is subtracted from its X·y. `transposed_many` ignores
    /// it.
    pub shift: Option<&'a Buffer<T>>,
    /// β and Z; Z is as large as the result and is not the result itself.
    pub addend: Option<(T, &'a Buffer<T>)>,
}

impl<T: Number> Default for ManyTerms<'_, T> {
    fn default() -> Self {
        ManyTerms {
            alpha: <T as gpu_kernels::Real>::ONE,
            weights: None,
            shift: None,
            addend: None,
        }
    }
}

impl<'a, T: Number> ManyTerms<'a, T> {
    /// The terms of a single right-hand side.
    fn single(&self) -> Terms<'a, T> {
        let weights = self.weights.map(|weights| match weights {
            RowWeights::OfRows(weights) | RowWeights::OfEntries(weights) => weights,
        });
        Terms {
            alpha: self.alpha,
            weights,
            shift: self.shift,
            addend: self.addend,
            solve: None,
        }
    }
}

impl<T: Number> Matrix<T> {
    /// `W = α · Xᵀ( V ⊙ (X·Y − s) ) + β · Z` for k right-hand sides: Y and W have n × k elements, row by row.
    ///
    /// Of a sparse X that several such products are to come of, prepare
    /// [`Preparation::Tiles`](super::Preparation::Tiles) first: without, every entry costs an atomic addition for each
    /// right-hand side, and eight of them more time than eight products with one.
    ///
    /// With [`Summation::Reproducible`] the right-hand sides are multiplied one after the other, through the host: as
    /// slow as that sounds, and the same bits everywhere.
    ///
    /// ```
    /// use ndarray::array;
    /// use warpfuse::device::Device;
    /// use warpfuse::matrix::Features;
    /// use warpfuse::ops::{ManyTerms, Matrix};
    ///
    /// let device = Device::auto();
    /// let x = Matrix::new(&device, Features::Dense(array![[1.0, 2.0], [0.0, 3.0]]))?;
    /// let y = device.upload(&[1.0, 0.0, 1.0, 1.0])?; // the columns (1, 1) and (0, 1)
    /// let mut w = device.zeros(4)?;
    /// x.fused_many(2, &y, &ManyTerms::default(), &mut w)?;
    /// assert_eq!(w.to_vec()?, [3.0, 2.0, 15.0, 13.0]);
    /// # Ok::<(), warpfuse::ops::OpError>(())
    /// ```
    ///
    /// # Errors
    /// [`OpError::Length`] and [`OpError::OtherDevice`] when an array does not fit, [`OpError::TooLarge`] for more
    /// right-hand sides than 32 bits count, [`OpError::Plan`] when no launch fits, [`OpError::Device`] when the device
    /// fails.
    pub fn fused_many(
        &self,
        k: usize,
        y: &Buffer<T>,
        terms: &ManyTerms<'_, T>,
        w: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        self.product_many((Product::Fused, k), y, terms, w)
    }

    /// `P = α · V ⊙ (X·Y − s) + β · Z` for k right-hand sides: Y has n × k elements; P, Z and, where it has one for
    /// every right-hand side, V have m × k.
    ///
    /// # Errors
    /// As [`Matrix::fused_many`].
    pub fn forward_many(
        &self,
        k: usize,
        y: &Buffer<T>,
        terms: &ManyTerms<'_, T>,
        p: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        self.product_many((Product::Forward, k), y, terms, p)
    }

    /// `W = α · Xᵀ( V ⊙ P ) + β · Z` for k right-hand sides: P has m × k elements, W and Z have n × k.
    ///
    /// # Errors
    /// As [`Matrix::fused_many`].
    pub fn transposed_many(
        &self,
        k: usize,
        p: &Buffer<T>,
        terms: &ManyTerms<'_, T>,
        w: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        self.product_many((Product::Transposed, k), p, terms, w)
    }

    fn product_many(
        &self,
        (product, k): (Product, usize),
        input: &Buffer<T>,
        terms: &ManyTerms<'_, T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        self.check_many((product, k), input, terms, output)?;
        if k <= 1 {
            return match k {
                0 => Ok(()),
                _ => self.product(product, input, &terms.single(), output),
            };
        }
        if self.options.summation == Summation::Reproducible {
            return self.one_by_one((product, k), input, terms, output);
        }
        if let Rows::Host(x) = &self.forms.rows {
            return x.reading(|| host::run((product, k), x, input, terms, output))?;
        }
        if let Some(members) = &self.members {
            return Self::many_of_members(members, (product, k), input, terms, output);
        }
        if product != Product::Forward {
            begin(output, &terms.single())?;
        }
        if self.rows() == 0 || self.cols() == 0 && product != Product::Forward {
            return Ok(());
        }
        self.launch_many((product, k), input, terms, output)
    }

    /// A product with several right-hand sides; shapes and devices have been checked, and sums need not repeat.
    fn many_of_members(
        members: &Members<Matrix<T>>,
        (product, k): (Product, usize),
        input: &Buffer<T>,
        terms: &ManyTerms<'_, T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let weights = match terms.weights {
            Some(RowWeights::OfRows(v)) => Some((members.part(v, 1)?, 1)),
            Some(RowWeights::OfEntries(v)) => Some((members.part(v, k)?, k)),
            None => None,
        };
        let weights = weights.as_ref().map(|(v, of)| match of {
            1 => RowWeights::OfRows(&**v),
            _ => RowWeights::OfEntries(&**v),
        });
        if product == Product::Forward {
            let z = members.optional_part(terms.addend.map(|(_, z)| z), k)?;
            let addend = terms.addend.map(|(beta, _)| beta).zip(z.as_deref());
            let own = ManyTerms {
                weights,
                addend,
                ..*terms
            };
            members.write_part(output, k, |output| {
                members.own.product_many((product, k), input, &own, output)
            })?;
            return members.gather(output, k);
        }
        let part = match product {
            Product::Transposed => Some(members.part(input, k)?),
            _ => None,
        };
        let own = ManyTerms {
            weights,
            addend: members.addend(terms.addend),
            ..*terms
        };
        let input = part.as_deref().unwrap_or(input);
        members
            .own
            .product_many((product, k), input, &own, output)?;
        members.sum(&mut [output])
    }

    fn check_many(
        &self,
        (product, k): (Product, usize),
        input: &Buffer<T>,
        terms: &ManyTerms<'_, T>,
        output: &Buffer<T>,
    ) -> Result<(), OpError> {
        let limit = u64::from(u32::MAX);
        let too_large = |what, found| OpError::TooLarge { what, limit, found };
        if k as u64 > limit {
            return Err(too_large("right-hand sides", k as u64));
        }
        let of = |rows: usize| {
            let all = rows.checked_mul(k);
            all.ok_or_else(|| too_large("elements of all right-hand sides", u64::MAX))
        };
        let (tall, wide) = (of(self.rows())?, of(self.cols())?);
        let (name, from, result, to) = match product {
            Product::Fused => ("Y", wide, "W", wide),
            Product::Forward => ("Y", wide, "P", tall),
            Product::Transposed => ("P", tall, "W", wide),
        };
        self.check_vector(name, from, input)?;
        self.check_vector(result, to, output)?;
        match terms.weights {
            Some(RowWeights::OfRows(v)) => self.check_vector("V", self.rows(), v)?,
            Some(RowWeights::OfEntries(v)) => self.check_vector("V", tall, v)?,
            None => {}
        }
        if let Some(shift) = terms.shift {
            self.check_vector("the shift", k, shift)?;
        }
        terms
            .addend
            .map_or(Ok(()), |(_, z)| self.check_vector("Z", to, z))
    }

    /// Each right-hand side as a product of its own, by way of the host.
    fn one_by_one(
        &self,
        (product, k): (Product, usize),
        input: &Buffer<T>,
        terms: &ManyTerms<'_, T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let device = self.device();
        let column = |all: &Buffer<T>, side: usize| -> Result<Buffer<T>, OpError> {
            let column: Vec<T> = all.to_vec()?.into_iter().skip(side).step_by(k).collect();
            Ok(device.upload(&column)?)
        };
        let mut all = vec![T::default(); output.len()];
        for side in 0..k {
            let weights = match terms.weights {
                Some(RowWeights::OfEntries(v)) => Some(column(v, side)?),
                _ => None,
            };
            let shift = terms.shift.map(|s| column(s, side)).transpose()?;
            let addend = terms.addend.map(|(_, z)| column(z, side)).transpose()?;
            let single = Terms {
                weights: weights.as_ref().or(terms.single().weights),
                shift: shift.as_ref(),
                addend: terms.addend.map(|(beta, _)| beta).zip(addend.as_ref()),
                alpha: terms.alpha,
                solve: None,
            };
            let mut result = device.zeros(output.len() / k)?;
            self.product(product, &column(input, side)?, &single, &mut result)?;
            let places = all.iter_mut().skip(side).step_by(k);
            places
                .zip(result.to_vec()?)
                .for_each(|(place, value)| *place = value);
        }
        Ok(output.copy_from_slice(&all)?)
    }
}
