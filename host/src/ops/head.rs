//! The head of a sparse matrix: its most frequent columns, kept apart.

use std::sync::Arc;

use gpu_kernels::Family;
use gpu_kernels::fused::{FixedVariant, Place, Product as KernelProduct};
use gpu_kernels::objective::{Columns, LossClass};

use super::catalog::registers_on;
use super::forms::Rows;
use super::forms::head::{Head, HeadSize};
use super::forms::rows::arrays;
use super::matrix::Matrix;
use super::{Number, OpError, Preparation};
use crate::layout::head::by_frequency;
use crate::plan::fused::{Forced, Plan, Product, Stored, Summation};
use crate::plan::objective::{self as planning, HeadedKernel};
use crate::plan::streaming::LinkRates;

impl<T: Number> Matrix<T> {
    /// Keeps the most frequent columns of a sparse matrix on a GPU apart, where that makes products with Xᵀ and objectives
    /// faster: in data with power laws nearly every row adds to the first elements of w, or of the gradient, and the additions
    /// queue up. Sums of such columns are more accurate, too: in f32 a chain of as many additions as X has rows loses digits.
    /// Costs another 4 bytes per entry on the device. Returns how many columns those are: 0 on the CPU, for a dense matrix,
    /// and where it does not pay. [`Preparation::For`] and its like do it by themselves.
    ///
    /// Results differ from those before by rounding, but for reproducible sums, which have the same bits with a head and without.
    /// Further forms ([`Matrix::prepare`]) and products with several sides do not use the head. Blocks that stream are marked when they have come, which takes the memory of one of
    /// them.
    ///
    /// ```
    /// use warpfuse::device::Device;
    /// use warpfuse::matrix::Features;
    /// use warpfuse::ops::Matrix;
    /// use warpfuse::ops::objective::HeadSize;
    ///
    /// let x = Features::Dense(ndarray::array![[1.0, 2.0], [0.0, 3.0]]);
    /// assert_eq!(Matrix::new(&Device::cpu(), x)?.tell_head(HeadSize::Planned)?, 0);
    /// # Ok::<(), warpfuse::ops::OpError>(())
    /// ```
    ///
    /// # Errors
    /// [`OpError::Device`] when the device has too little memory.
    pub fn tell_head(&mut self, size: HeadSize) -> Result<usize, OpError> {
        if let Some(members) = &mut self.members {
            return members.own.tell_head(size);
        }
        let Rows::Sparse(rows) = &self.forms.rows else {
            return Ok(0);
        };
        let Some(limits) = self.device().limits() else {
            return Ok(0);
        };
        let is_planned = size == HeadSize::Planned;
        if is_planned && !planning::may_have_head(self.problem()) {
            return Ok(0);
        }
        let features = rows.features()?;
        let indices = arrays(&features).indices;
        let least = match size {
            HeadSize::Places(_) => 1,
            HeadSize::Planned => planning::least_frequent(limits),
        };
        let frequent = by_frequency(indices, self.cols(), least);
        let places = match size {
            HeadSize::Places(places) => (places as usize).min(frequent.len()),
            HeadSize::Planned => {
                let counts: Vec<u64> = frequent.iter().map(|one| one.entries).collect();
                planning::head_places(limits, self.problem(), &counts)
            }
        };
        if places == 0 {
            return Ok(0);
        }
        // Whether they fit, and marks of all of them are kept, is known once they are there.
        rows.place()?;
        let order: Vec<u32> = frequent[..places].iter().map(|one| one.column).collect();
        let head = Head::of(self.device(), rows, (&order, self.cols()))?;
        self.forms.head = Some((Arc::new(head), size));
        self.plans.replan();
        Ok(places)
    }

    /// Nanoseconds that a head is expected to save over the products that are announced, beyond what it costs to make where
    /// there is none yet; 0 where there can be none.
    pub(super) fn saved_by_head(&self, preparation: Preparation) -> Result<u64, OpError> {
        let (product, evaluations) = match preparation {
            Preparation::For { evaluations } => (Product::Fused, evaluations),
            Preparation::ForProduct {
                product,
                evaluations,
            } => (product, evaluations),
            _ => return Ok(0),
        };
        let uses_heads = self.uses_heads(product) || self.adds_integers_globally(product)?;
        if !uses_heads || !planning::may_have_head(self.problem()) {
            return Ok(0);
        }
        self.upload_rows()?;
        let each = self.plan(product)?.map_or(0, |plan| self.saved(&plan));
        let cost = match &self.forms.head {
            Some(_) => 0,
            None => planning::head_cost_ns(self.problem()),
        };
        Ok(each.saturating_mul(evaluations).saturating_sub(cost))
    }

    /// Whether a head is to be made for what is announced, of which products save that much by it. For objectives the planner
    /// decides once columns have been counted.
    pub(super) fn wants_head(
        &self,
        preparation: Preparation,
        saved_by_head: u64,
    ) -> Result<bool, OpError> {
        let pays = match preparation {
            Preparation::ForObjectives { .. } => {
                self.shape.stored == Stored::Rows
                    && (!self.is_reproducible()
                        || self.adds_integers_globally(Product::Transposed)?)
                    && self.may_gain_beside_link()?
            }
            _ => saved_by_head > 0,
        };
        Ok(pays && self.forms.head.is_none())
    }

    /// Whether kernels over X take longer without a head than X takes to cross the link, if it streams.
    fn may_gain_beside_link(&self) -> Result<bool, OpError> {
        if !self.forms.rows.stream() || !planning::may_have_head(self.problem()) {
            return Ok(true);
        }
        self.upload_rows()?;
        let plan = self.plan(Product::Fused)?;
        Ok(plan.is_some_and(|plan| self.saved(&plan) > 0))
    }

    /// Nanoseconds that a head is expected to save of a product over the rows, which the device has.
    fn saved(&self, plan: &Plan) -> u64 {
        let Some(limits) = self.device().limits() else {
            return 0;
        };
        let residency = self.residency();
        let crossing = residency.streams.then(|| {
            let bytes = residency.block_bytes - residency.resident_bytes;
            let rates = LinkRates::of_threads(rayon::current_num_threads());
            (bytes as f64 / rates.pinned_gbs) as u64
        });
        planning::saved_by_head_ns(limits, self.problem(), plan, crossing)
    }

    /// Whether a head would be used by a product.
    fn uses_heads(&self, product: Product) -> bool {
        product != Product::Forward
            && self.shape.stored == Stored::Rows
            && self.options.summation == Summation::Free
            && self.options.forced == Forced::default()
            && matches!(self.forms.rows, Rows::Sparse(_))
    }

    /// Whether reproducible sums of a product are integers in global memory, where those of frequent columns queue up.
    fn adds_integers_globally(&self, product: Product) -> Result<bool, OpError> {
        if !self.is_reproducible() || !matches!(self.forms.rows, Rows::Sparse(_)) {
            return Ok(false);
        }
        Ok(self
            .plan(product)?
            .is_some_and(|plan| global_walk::<T>(&plan).is_some()))
    }

    /// `plan` with a walk of integers that knows of a head, where there is a head and its walk adds them in global memory.
    pub(super) fn fixed_with_head(&self, plan: Plan) -> Plan {
        let headed = || {
            let (head, _) = self.forms.head.as_ref()?;
            let (product, vs) = global_walk::<T>(&plan)?;
            let kernel = self.headed(headed_walk::<T>(product, vs)?, vs);
            let walk = plan.then.as_deref().unwrap_or(&plan);
            let places = (product, head.order.len() as u32);
            let rows = self.rows() as u64;
            planning::with_fixed_head(self.device().limits()?, walk, places, rows, kernel)
        };
        if self.options.forced != Forced::default() {
            return plan;
        }
        match headed() {
            None => plan,
            Some(walk) if plan.then.is_some() => Plan {
                then: Some(Box::new(walk)),
                ..plan
            },
            Some(walk) => walk,
        }
    }

    /// `plan`, of a product, with the kernel for a head, where there is one that fits.
    pub(super) fn product_with_head(&self, plan: &Plan) -> Option<Plan> {
        let (head, size) = self.forms.head.as_ref()?;
        let pays = *size != HeadSize::Planned || self.saved(plan) > 0;
        if !pays || !self.uses_heads(plan.product) {
            return None;
        }
        let product = KernelProduct::from(plan.product);
        let kernels = T::Headed::entries().iter();
        let kernels = kernels.filter(|entry| entry.variant.product == product);
        let kernels = kernels.map(|entry| self.headed(entry.name, entry.variant.vs));
        self.with_kernel(head, plan, &kernels.collect::<Vec<_>>())
    }

    /// `plan`, of objectives with such losses, with the kernel for a head, where there is one that fits.
    pub(super) fn plan_with_head(&self, plan: &Plan, class: LossClass) -> Option<Plan> {
        let (head, _) = self.forms.head.as_ref()?;
        let kernels = T::SparseObjective::entries().iter();
        let kernels = kernels
            .filter(|entry| entry.variant.class == class)
            .filter(|entry| entry.variant.columns == Columns::Headed)
            .map(|entry| self.headed(entry.name, entry.variant.sparse.vs));
        self.with_kernel(head, plan, &kernels.collect::<Vec<_>>())
    }

    fn headed(&self, name: &'static str, vs: u32) -> HeadedKernel {
        HeadedKernel {
            name,
            vs,
            registers: registers_on(self.device(), name),
        }
    }

    fn with_kernel(&self, head: &Head<T>, plan: &Plan, kernels: &[HeadedKernel]) -> Option<Plan> {
        let limits = self.device().limits()?;
        let places = head.order.len() as u32;
        let size = (self.rows() as u64, self.problem().nnz.unwrap_or_default());
        planning::with_head(limits, plan, places, size, kernels)
    }
}

/// What the walk of a plan computes, and its lanes for a row, if it adds integers in global memory.
fn global_walk<T: Number>(plan: &Plan) -> Option<(KernelProduct, u32)> {
    let walk = plan.then.as_deref().unwrap_or(plan);
    let mut entries = T::Fixed::entries().iter();
    let entry = entries.find(|entry| entry.name == walk.kernel)?;
    match entry.variant {
        FixedVariant::Accumulate {
            product,
            place: Place::Global,
            vs,
            ..
        } => Some((product, vs)),
        _ => None,
    }
}

/// The walk with as many lanes for a row that knows of a head: dot products have their order.
fn headed_walk<T: Number>(product: KernelProduct, vs: u32) -> Option<&'static str> {
    let is_it = |variant: FixedVariant| match variant {
        FixedVariant::Headed {
            product: of,
            vs: lanes,
            ..
        } => of == product && lanes == vs,
        _ => false,
    };
    let mut entries = T::Fixed::entries().iter();
    let entry = entries.find(|entry| is_it(entry.variant))?;
    Some(entry.name)
}
