//! When members of a group keep a share of a solve's vectors each, and products that leave them the sums of those.

use super::forms::site::machines;
use super::options::Vectors;
use super::spread::{Spread, Wish};
use super::{Matrix, Number, OpError};
use crate::device::group::Shares;
use crate::plan::fused::Summation;
use crate::plan::scaling::Columns;

/// Elements from which on members ask each other whether spreading pays; a vector of fewer is a moment's work.
const WORTH_ASKING: usize = 1 << 20;

impl<T: Number> Matrix<T> {
    /// How members of a group keep the vectors of `len` elements, as many as X has columns or one more, of a solve: each a share
    /// of them, or `None` for all of them. See [`Vectors`]. Collective: all members ask.
    ///
    /// # Errors
    /// [`OpError::Device`] when the group fails.
    ///
    /// ```
    /// use warpfuse::device::Device;
    /// use warpfuse::matrix::Features;
    /// use warpfuse::ops::Matrix;
    /// let x = Matrix::new(&Device::cpu(), Features::Dense(ndarray::array![[1.0, 2.0]]))?;
    /// assert!(x.spread(2)?.is_none());
    /// # Ok::<(), warpfuse::ops::OpError>(())
    /// ```
    pub fn spread(&self, len: usize) -> Result<Option<Spread>, OpError> {
        let Some(share) = self.forms.rows.share() else {
            return Ok(None);
        };
        let pays = match self.options.vectors {
            Vectors::Replicated => false,
            Vectors::Spread => true,
            Vectors::Planned => len >= WORTH_ASKING && self.spreading_pays(len)?,
        };
        let spread = Spread::over(share.group(), len).filter(|_| pays);
        if let Some(spread) = &spread {
            let own = spread.own();
            tracing::info!(?own, "vectors are spread over the members");
        }
        Ok(spread)
    }

    /// What the [model](crate::plan::scaling) expects, of all members.
    fn spreading_pays(&self, len: usize) -> Result<bool, OpError> {
        let Some(members) = &self.members else {
            // Of CPUs time says nothing.
            return Ok(false);
        };
        let machines = machines(members.group());
        let pays = self
            .device()
            .limits()
            .zip(machines)
            .is_some_and(|(limits, machines)| {
                let fixed = if self.is_reproducible() {
                    8 * T::LIMBS
                } else {
                    0
                };
                let work = machines.vector_work(&Columns {
                    cols: len as u64,
                    element: T::SIZE as u64,
                    summed: T::SIZE as u64 + fixed as u64,
                    memory_gb_s: limits.rates.stream_gbs,
                });
                let slices = members.own.site.slices.as_ref();
                let hidden_us = slices.map_or(0.0, |slices| slices.saves_us());
                work.beside(hidden_us).spreading_pays()
            });
        // Sums in the order of the rows go from host to host, all columns of them.
        let is_carried =
            self.options.summation == Summation::Reproducible && self.shape.nnz.is_none();
        members.all(pays && !is_carried)
    }

    /// Has `work` compute products whose sums are those of this member's share of the columns at least; what the other columns
    /// have afterwards means nothing. A product of which nothing is left but sums in the order of the rows, or over another
    /// number of columns, has them all.
    ///
    /// ```
    /// use warpfuse::device::Device;
    /// use warpfuse::device::group::{Shares, run_threads};
    /// use warpfuse::matrix::Features;
    /// use warpfuse::ops::{Matrix, OpError, Terms};
    /// let found = run_threads(2, |group| {
    ///     let device = Device::cpu().in_group(&group)?;
    ///     let x = Matrix::new(&device, Features::Dense(ndarray::array![[1.0, 2.0]]))?;
    ///     let (p, mut w) = (device.upload(&[1.0, 1.0])?, device.zeros(2)?);
    ///     x.in_shares(Shares::even(2, 2), || x.transposed(&p, &Terms::default(), &mut w))?;
    ///     Ok::<_, OpError>(w.to_vec()?[group.rank()])
    /// });
    /// assert_eq!(found, [Ok(2.0), Ok(4.0)]);
    /// ```
    pub fn in_shares<R>(&self, shares: Shares, work: impl FnOnce() -> R) -> R {
        let wish = self.forms.rows.share().map(|share| share.wish().clone());
        let _granted = wish.map(|wish| Granted::new(wish, shares));
        work()
    }
}

/// A wish until the end of some work, however it ends.
struct Granted(Wish);

impl Granted {
    fn new(wish: Wish, shares: Shares) -> Granted {
        wish.set(Some(shares));
        Granted(wish)
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        self.0.set(None);
    }
}
