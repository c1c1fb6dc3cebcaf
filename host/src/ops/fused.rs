//! The fused pattern `w = α · Xᵀ( v ⊙ (X·y − s) ) + β · z` and its halves.

use gpu_kernels::cg::state;

use super::blocks::Part;
use super::forms::halves::Halves;
use super::forms::head::HeadKernel;
use super::forms::{Call, OnDevice, Rows, Within};
use super::matrix::Matrix;
use super::members::Members;
use super::plans::Launches;
pub use super::terms::Terms;
use super::terms::begin;
use super::{Number, OpError, checks};
use crate::device::Buffer;
use crate::plan::fused::{Plan, Planner, Product};

impl<T: Number> Matrix<T> {
    /// `w = α · Xᵀ( v ⊙ (X·y − s) ) + β · z`: y and w have n elements, v has m. X is read once (twice, when
    /// it is dense and wider than registers hold).
    ///
    /// Where the plan sums fixed-point integers ([`Strategy::is_fixed`](crate::plan::fused::Strategy::is_fixed)),
    /// the first use makes a second copy of the values of X, every column scaled by a power of two. See
    /// [`gpu_kernels::fused::fixed_point`] for the error.
    ///
    /// # Errors
    /// [`OpError::Length`] and [`OpError::OtherDevice`] when a vector does not fit, [`OpError::Plan`] when no
    /// launch does, [`OpError::Device`] when the device fails.
    pub fn fused(
        &self,
        y: &Buffer<T>,
        terms: &Terms<'_, T>,
        w: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        self.product(Product::Fused, y, terms, w)
    }

    /// `p = α · v ⊙ (X·y − s) + β · z`: y has n elements, p, v and z have m.
    ///
    /// # Errors
    /// As [`Matrix::fused`].
    pub fn forward(
        &self,
        y: &Buffer<T>,
        terms: &Terms<'_, T>,
        p: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        self.product(Product::Forward, y, terms, p)
    }

    /// `w = α · Xᵀ( v ⊙ p ) + β · z`: p and v have m elements, w and z have n.
    ///
    /// # Errors
    /// As [`Matrix::fused`].
    pub fn transposed(
        &self,
        p: &Buffer<T>,
        terms: &Terms<'_, T>,
        w: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        self.product(Product::Transposed, p, terms, w)
    }

    /// `w = Xᵀ·p` of p that is known to be bounded by something: over sparse rows, sums that are promised to repeat have the
    /// scale of that, wherever they are added.
    ///
    /// # Errors
    /// As [`Matrix::fused`].
    pub(super) fn transposed_within(
        &self,
        p: &Buffer<T>,
        within: &Within<'_, T>,
        w: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        if !self.is_reproducible() || self.shape.nnz.is_none() {
            return self.transposed(p, &Terms::default(), w);
        }
        if let Rows::Host(x) = &self.forms.rows {
            return x.transposed_within(p, within, w);
        }
        if let Some(members) = &self.members {
            let own = members.part(p, 1)?;
            let weights = members.optional_part(within.weights, 1)?;
            let of_rows = Some(within.input).filter(|_| within.product == Product::Transposed);
            let of_rows = members.optional_part(of_rows, 1)?;
            let within = Within {
                input: of_rows.as_deref().unwrap_or(within.input),
                weights: weights.as_deref(),
                ..*within
            };
            // Added within.
            return members.own.transposed_within(&own, &within, w);
        }
        let has_rows = self.rows() > 0 || self.site.together.is_some();
        if !has_rows || self.cols() == 0 {
            return Ok(w.fill_zero()?);
        }
        if !self.writes_all(Product::Transposed)? {
            w.fill_zero()?;
        }
        self.run(Call {
            within: Some(*within),
            ..Call::plain(Product::Transposed, p, w)
        })
    }

    pub(super) fn product(
        &self,
        product: Product,
        input: &Buffer<T>,
        terms: &Terms<'_, T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        self.check(product, input, terms, output)?;
        if let Rows::Host(x) = &self.forms.rows {
            return x.product((product, self.options.summation), input, terms, output);
        }
        if let Some(members) = &self.members {
            return Self::product_of_members(members, product, input, terms, output);
        }
        let accumulates = product != Product::Forward;
        // A member without rows takes part in the sums of all.
        let has_rows = self.rows() > 0 || self.site.together.is_some() && accumulates;
        if !has_rows || self.cols() == 0 && accumulates {
            return begin(output, terms);
        }
        if let Some(beside) = self.beside()? {
            return self.product_beside(beside, (product, input), terms, output);
        }
        if accumulates && !self.writes_all(product)? {
            begin(output, terms)?;
        }
        self.launch(Part::All, product, (input, terms), output)
    }

    /// A product over the rows of all members; shapes and devices have been checked.
    fn product_of_members(
        members: &Members<Matrix<T>>,
        product: Product,
        input: &Buffer<T>,
        terms: &Terms<'_, T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        if let Some(host) = &members.on_host {
            return product_on_host(host, product, input, terms, output);
        }
        let weights = members.optional_part(terms.weights, 1)?;
        let weights = weights.as_deref();
        if product == Product::Forward {
            let z = members.optional_part(terms.addend.map(|(_, z)| z), 1)?;
            let addend = terms.addend.map(|(beta, _)| beta).zip(z.as_deref());
            let own = Terms {
                weights,
                addend,
                ..*terms
            };
            members.write_part(output, 1, |output| {
                members.own.product(product, input, &own, output)
            })?;
            return members.gather(output, 1);
        }
        let part = match product {
            Product::Transposed => Some(members.part(input, 1)?),
            _ => None,
        };
        let input = part.as_deref().unwrap_or(input);
        let addend = match members.repeats {
            true => terms.addend,
            false => members.addend(terms.addend),
        };
        let own = Terms {
            weights,
            addend,
            ..*terms
        };
        let compute = |w: &mut Buffer<T>| members.own.product(product, input, &own, w);
        let slices = members.own.site.slices.as_ref();
        if let Some(slices) = slices.filter(|_| !members.wants_share(output.len())) {
            return slices.add_up(output, compute);
        }
        compute(output)?;
        match members.repeats {
            // Added within.
            true => Ok(()),
            false => members.sum_columns(output),
        }
    }

    /// Whether the launches of a product write all of w, β·z included.
    pub(super) fn writes_all(&self, product: Product) -> Result<bool, OpError> {
        match &self.launches(product)?.over {
            Some(form) => Ok(form.writes_all()),
            // The second of two products has β·z.
            None => self.writes_all(Product::Transposed),
        }
    }

    /// Launches what was planned over a part of the rows, without checks; an accumulating product adds to `output`, where β·z is already, or
    /// writes all of it when its kernels do.
    pub(super) fn launch(
        &self,
        part: Part,
        product: Product,
        (input, terms): (&Buffer<T>, &Terms<'_, T>),
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        self.run(Call {
            product,
            input,
            terms: *terms,
            output,
            part,
            within: None,
        })
    }

    fn run(&self, call: Call<'_, '_, T>) -> Result<(), OpError> {
        match &self.launches(call.product)?.over {
            Some(form) => form.run(&self.site, call),
            None => self.site.in_two_products(call, |half| self.run(half)),
        }
    }

    /// The plan of a product with its prepared kernel, made once.
    fn launches(&self, product: Product) -> Result<&Launches<T>, OpError> {
        let slot = &self.plans.products[product as usize];
        slot.get_or_init(|| self.make_launches(product))
            .as_ref()
            .map_err(OpError::clone)
    }

    fn make_launches(&self, product: Product) -> Result<Launches<T>, OpError> {
        let plan = self
            .plan(product)?
            .expect("a matrix on a GPU has limits to plan with");
        let plan = self.fixed_with_head(plan);
        tracing::debug!(%plan, "planned");
        if let (Some(plan), Rows::Sparse(rows), Some((head, _))) = (
            self.product_with_head(&plan),
            &self.forms.rows,
            &self.forms.head,
        ) {
            let kernel = HeadKernel::prepare(&self.site, (rows, head), &plan)?;
            let over: Option<Box<dyn OnDevice<T>>> = Some(Box::new(kernel));
            return Ok(Launches { plan, over });
        }
        let asked = (&self.shape, self.options.summation);
        // What streams crosses the link once for both products.
        let halves = match &plan.then {
            Some(_) => self.make_halves()?,
            None => None,
        };
        let over: Option<Box<dyn OnDevice<T>>> = match halves {
            Some(halves) => Some(Box::new(halves)),
            None => self.forms.launches(&self.site, asked, &plan)?,
        };
        Ok(Launches { plan, over })
    }

    /// Kernels of both halves that can be launched block by block, of rows that stream; none where all of X is on the
    /// device, or sums are promised to repeat.
    pub(super) fn make_halves(&self) -> Result<Option<Halves<T>>, OpError> {
        if self.is_reproducible() || !self.forms.rows.stream() {
            return Ok(None);
        }
        let Some((limits, kernels)) = self.choices()? else {
            return Ok(None);
        };
        let planner = Planner::new(limits, &kernels).model(self.options.model);
        let block = self.shape.part(self.forms.rows.blocks());
        let plans = planner.halves(&block)?;
        self.forms.halves(&self.site, plans.each_ref())
    }

    /// The plan that this matrix uses for a product on a GPU, `None` on the CPU.
    ///
    /// # Errors
    /// As [`Matrix::plan`], and [`OpError::Device`] when the kernel cannot be loaded.
    pub fn used_plan(&self, product: Product) -> Result<Option<&Plan>, OpError> {
        if self.device().is_cpu() {
            return Ok(None);
        }
        if let Some(members) = &self.members {
            return members.own.used_plan(product);
        }
        Ok(Some(&self.launches(product)?.plan))
    }

    fn check(
        &self,
        product: Product,
        input: &Buffer<T>,
        terms: &Terms<'_, T>,
        output: &Buffer<T>,
    ) -> Result<(), OpError> {
        let (m, n) = (self.rows(), self.cols());
        let (name, from, result, to) = match product {
            Product::Fused => ("y", n, "w", n),
            Product::Forward => ("y", n, "p", m),
            Product::Transposed => ("p", m, "w", n),
        };
        self.check_vector(name, from, input)?;
        self.check_vector(result, to, output)?;
        terms
            .weights
            .map_or(Ok(()), |v| self.check_vector("v", m, v))?;
        terms
            .shift
            .map_or(Ok(()), |s| self.check_vector("the shift", 1, s))?;
        let len = state::LEN;
        terms
            .solve
            .map_or(Ok(()), |of| self.check_vector("the state", len, of))?;
        terms
            .addend
            .map_or(Ok(()), |(_, z)| self.check_vector("z", to, z))
    }

    pub(super) fn check_vector<U: bytemuck::Pod>(
        &self,
        what: &'static str,
        expected: usize,
        vector: &Buffer<U>,
    ) -> Result<(), OpError> {
        checks::same_length(what, vector, expected)?;
        checks::same_device(what, self.device(), &vector.device())
    }
}

/// A product whose sums have the order of all rows, by the CPU of each member.
fn product_on_host<T: Number>(
    host: &Matrix<T>,
    product: Product,
    input: &Buffer<T>,
    terms: &Terms<'_, T>,
    output: &mut Buffer<T>,
) -> Result<(), OpError> {
    let there = host.device();
    let copy =
        |vector: &Buffer<T>| -> Result<Buffer<T>, OpError> { Ok(there.upload(&vector.to_vec()?)?) };
    let optional = |vector: Option<&Buffer<T>>| vector.map(copy).transpose();
    let (weights, shift) = (optional(terms.weights)?, optional(terms.shift)?);
    let addend = optional(terms.addend.map(|(_, z)| z))?;
    let own = Terms {
        alpha: terms.alpha,
        weights: weights.as_ref(),
        shift: shift.as_ref(),
        addend: terms.addend.map(|(beta, _)| beta).zip(addend.as_ref()),
        solve: None,
    };
    let mut result = there.zeros(output.len())?;
    host.product(product, &copy(input)?, &own, &mut result)?;
    let result = result.as_host_slice().expect("it lies on the CPU");
    Ok(output.copy_from_slice(result)?)
}
