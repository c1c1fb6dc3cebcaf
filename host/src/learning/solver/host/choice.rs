//! Which method solves which problem, and why.

use crate::learning::solver::Solver;

pub(in crate::learning) use super::place::Place;

/// A method of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::learning) enum Direct {
    /// Newton's, with a Cholesky factor of the Hessian.
    Cholesky,
    /// Newton's, with coordinate descent.
    CoordinateDescent,
    /// R of X̃, and singular values where columns depend on each other.
    Qr,
    /// Singular values of X̃.
    Svd,
    /// Least squares: by Cholesky where the columns are far from depending on each other, else by orthogonal factors.
    LeastSquares,
    /// Newton's, with products of matrices instead of the Hessian of a softmax.
    Products,
    /// Newton's, with products of the stored entries of a sparse X instead of the Hessian of one predictor.
    Stored,
    /// For losses with kinks.
    InteriorPoint,
    /// Conjugate gradients over the rows of a sparse X.
    Dual,
}

/// A problem, as far as the choice depends on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::learning) struct Shape {
    /// m.
    pub(in crate::learning) rows: usize,
    /// n.
    pub(in crate::learning) cols: usize,
    /// Stored entries.
    pub(in crate::learning) entries: u64,
    /// Whether X is sparse.
    pub(in crate::learning) sparse: bool,
    /// Linear predictors of a row.
    pub(in crate::learning) predictors: usize,
    /// Whether the loss is a square.
    pub(in crate::learning) quadratic: bool,
    /// Whether there is an l1 term.
    pub(in crate::learning) has_l1: bool,
    /// Whether there is a ridge.
    pub(in crate::learning) has_l2: bool,
    /// Whether the loss has kinks.
    pub(in crate::learning) kinked: bool,
    /// What coefficients have to do besides.
    pub(in crate::learning) constraint: Constraint,
    pub(in crate::learning) place: Place,
    /// Why a GPU cannot have R of X, where it cannot; looked at where X is on a device alone.
    pub(in crate::learning) no_triangle: Option<&'static str>,
}

/// What coefficients have to do besides being penalised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::learning) enum Constraint {
    None,
    /// Penalties differ between columns in a way that no scaling of the columns stands for.
    Factors,
    /// They may not be negative.
    NonNegative,
}

/// A method, and why it was chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::learning) struct Chosen {
    /// What the report names.
    pub(in crate::learning) solver: Solver,
    pub(in crate::learning) reason: &'static str,
    /// `None`: iterations on the device.
    pub(in crate::learning) direct: Option<Direct>,
}

impl Chosen {
    /// Of fits that share their products with X.
    pub(in crate::learning) fn batched() -> Chosen {
        on_device(Solver::NewtonCg, "several fits share each read of X")
    }

    /// Of small fits that one launch makes.
    pub(in crate::learning) fn together() -> Chosen {
        on_device(Solver::NewtonCholesky, "many small fits in one launch")
    }
}

/// Elements of X̃ up to which it is written out for its factors: 128 MiB.
pub(super) const MOST_ELEMENTS: f64 = (1 << 24) as f64;
/// The same of a dense X with a ridge, of which the Gram matrix of the rows is formed without: 1 GiB, should rows depend on
/// each other after all.
pub(super) const MOST_STREAMED: f64 = (1 << 27) as f64;
/// Coordinates up to which a Hessian is formed: 128 MiB.
const MOST_COORDINATES: f64 = 4096.0;
/// The same where it is requested: 2 GiB.
pub(super) const MOST_FORCED: f64 = 16_384.0;
/// Columns up to which a softmax has a Hessian per class.
const MOST_BLOCK: usize = 2048;
/// Multiplications (of products of matrices, 10⁹ and more a second) up to which the host solves: some seconds.
const HOST_WORK: f64 = 4e10;
/// The same where a GPU has X as well: about as long as its launches take.
const SMALL_WORK: f64 = 1e8;
/// The same of a softmax and of least squares with an l1 penalty, whose iterations on a GPU are ten times as many or as long,
/// and of perfect fits.
const SMALL_WORK_OF_MANY: f64 = 1e9;
/// Entries of a sparse X up to which the host takes them in Newton's steps: some hundred milliseconds for all of them.
const MOST_STORED: u64 = 1 << 24;
/// Newton iterations to be expected.
const NEWTON_STEPS: f64 = 8.0;
/// Products with X of one Newton step of a softmax.
const INNER_STEPS: f64 = 8.0;
/// Products with X that iterations without a Hessian take: 12 to 894 were recorded.
const ITERATIONS: f64 = 87.0;
/// How many multiplications of a product of matrices take as long as one with a vector, which waits for memory.
const VECTOR_SLOWER: f64 = 8.0;
/// The same where X stays in the last cache, and how many entries those are: 32 MiB.
const VECTOR_SLOWER_NEAR: f64 = 3.0;
const NEAR: u64 = 1 << 22;
/// Products that are worth trying at least.
const FEW_PRODUCTS: f64 = 8.0;
/// Why a solver was chosen that was requested.
const FORCED: &str = "requested";
/// Work up to which iterations are not looked at: nothing takes long.
const TRIFLE: f64 = 2e9;

impl Shape {
    pub(super) fn coordinates(&self) -> f64 {
        (self.cols + 1) as f64 * self.predictors as f64
    }

    /// Multiplications of one Hessian, over `cols` columns.
    fn hessian(&self, cols: f64) -> f64 {
        let k = self.predictors as f64;
        self.rows as f64 * cols * cols * k * (k + 1.0) / 4.0
    }

    /// Of all Newton steps.
    fn newton(&self) -> f64 {
        let steps = if self.quadratic { 1.0 } else { NEWTON_STEPS };
        let factor = self.coordinates().powi(3) / 6.0;
        steps * (self.hessian((self.cols + 1) as f64) + factor)
    }

    /// Of iterations that multiply X with vectors, in multiplications of a product of matrices that take as long.
    fn iterations(&self) -> f64 {
        2.0 * self.entries as f64 * self.predictors as f64 * ITERATIONS * VECTOR_SLOWER
    }

    /// Of a softmax by products: half as many factors of k blocks as steps, and some products for each step.
    fn products(&self) -> f64 {
        let (m, n, k) = (
            self.rows as f64,
            (self.cols + 1) as f64,
            self.predictors as f64,
        );
        let blocks = k * (m * n * n / 2.0 + n.powi(3) / 6.0);
        // A product with k columns is as fast as that of matrices from about 16 columns on.
        let narrow = (16.0 / k).max(1.0);
        NEWTON_STEPS * (0.5 * blocks + INNER_STEPS * 2.0 * m * n * k * narrow)
    }

    fn svd(&self) -> f64 {
        let (m, n) = (self.rows as f64, self.coordinates());
        m.max(n) * m.min(n).powi(2) + 4.0 * m.min(n).powi(3)
    }

    /// Of coordinate descent, whose Hessians are over the columns that matter: as many as rows at most, and not all of many
    /// columns but perhaps half. A weak penalty on many columns of a sparse X is left to products, which touch stored
    /// entries only.
    fn descent(&self) -> f64 {
        let n = (self.cols + 1) as f64;
        let active = n.min(self.rows.max(64) as f64).min(512.0_f64.max(n / 2.0));
        let k = self.predictors as f64;
        NEWTON_STEPS * (self.hessian(active) + (active * k).powi(3) / 6.0)
            + NEWTON_STEPS * 2.0 * self.entries as f64 * k
    }

    /// The problem over the space of its rows, where there are fewer of them than columns, and the work to get there.
    pub(super) fn over_rows(&self) -> Option<(Shape, f64)> {
        let (m, n) = (self.rows as f64, self.cols as f64);
        let is_round = !self.has_l1 && self.constraint == Constraint::None;
        let is_wide = self.cols > self.rows && m * n <= most_elements(self) && is_round;
        let rows = Shape {
            cols: self.rows,
            entries: self.rows as u64 * self.rows as u64,
            ..*self
        };
        is_wide.then_some((rows, 2.0 * n * m * m))
    }

    /// Whether it is a ridge of a sparse X that is wide, and too large for a factor over its rows.
    fn is_dual(&self) -> bool {
        let large = self.rows as f64 * self.cols as f64 > MOST_ELEMENTS;
        let ridge = self.quadratic && self.has_l2 && !self.has_l1 && !self.kinked;
        self.sparse && self.cols > self.rows && large && ridge
    }

    /// Of a ridge by Cholesky: over the rows where there are fewer of them.
    fn ridge(&self) -> f64 {
        let (m, n) = (self.rows as f64, (self.cols + 1) as f64);
        let least = m.min(n);
        m * n * least / 2.0 + least.powi(3) / 6.0
    }

    /// Whether Newton's steps are taken by the stored entries of a sparse X: a ridge gives every direction curvature.
    fn is_stored(&self) -> bool {
        let round = self.has_l2 && !self.has_l1 && !self.quadratic;
        let one = self.predictors == 1 && self.place == Place::Host;
        self.sparse && round && one && self.entries <= MOST_STORED
    }

    /// Whether products take a softmax to its minimum before its Hessian does.
    fn is_for_products(&self) -> bool {
        let suits = self.predictors > 1 && self.cols < MOST_BLOCK;
        let faster = self.coordinates() > MOST_COORDINATES || self.products() < self.newton();
        suits && self.products() <= self.most_work() && faster
    }

    /// Whether there are coefficients without any residual: least squares without a penalty, of no fewer columns than rows.
    fn fits_perfectly(&self) -> bool {
        self.quadratic && !self.has_l1 && !self.has_l2 && self.cols >= self.rows
    }

    fn most_work(&self) -> f64 {
        match self.place {
            Place::Host => HOST_WORK,
            // Without a Gram matrix the iterations of an l1 penalty are many where columns are correlated, and each of them
            // waits for the GPU: seconds for what takes milliseconds.
            Place::Both if self.has_l1 && !self.quadratic => HOST_WORK,
            Place::Both if self.has_l1 || self.predictors > 1 => SMALL_WORK_OF_MANY,
            // The minimum is a perfect fit, 0: a gradient that is small beside the first one is still far from it.
            Place::Both if self.fits_perfectly() => SMALL_WORK_OF_MANY,
            Place::Both => SMALL_WORK,
            Place::Device | Place::Shared | Place::Reproducible => 0.0,
        }
    }
}

/// Elements of X̃ up to which a problem is solved over its rows.
fn most_elements(shape: &Shape) -> f64 {
    match shape.has_l2 && !shape.sparse {
        true => MOST_STREAMED,
        false => MOST_ELEMENTS,
    }
}

/// The method for a problem, of the solver requested.
pub(in crate::learning) fn choose(shape: &Shape, asked: Solver) -> Chosen {
    let forced = FORCED;
    match asked {
        Solver::Auto if shape.kinked => {
            let reason = "a loss with kinks";
            direct(Solver::InteriorPoint, Direct::InteriorPoint, reason)
        }
        Solver::Auto if shape.constraint != Constraint::None => constrained(shape),
        Solver::Auto => automatic(shape),
        Solver::NewtonCg | Solver::Lbfgs | Solver::ConjugateGradient => on_device(asked, forced),
        Solver::NewtonCholesky => direct(asked, Direct::Cholesky, forced),
        Solver::CoordinateDescent => direct(asked, Direct::CoordinateDescent, forced),
        Solver::Qr if shape.place == Place::Device => on_device(asked, forced),
        Solver::Qr => direct(asked, Direct::Qr, forced),
        Solver::Svd => direct(asked, Direct::Svd, forced),
        Solver::InteriorPoint => direct(asked, Direct::InteriorPoint, forced),
    }
}

/// How many products with X are worth trying before the factors of a Hessian are formed: together they take as long. `None`
/// where few would do for nothing.
pub(in crate::learning) fn products_worth(shape: &Shape, chosen: &Chosen) -> Option<usize> {
    let is_ridge = shape.quadratic && shape.has_l2 && !shape.has_l1 && !shape.kinked;
    let is_plain = is_ridge && shape.constraint == Constraint::None;
    let by_itself = chosen.direct == Some(Direct::Cholesky) && chosen.reason != FORCED;
    if !is_plain || !by_itself || shape.place != Place::Host {
        return None;
    }
    let slower = if shape.entries <= NEAR {
        VECTOR_SLOWER_NEAR
    } else {
        VECTOR_SLOWER
    };
    let products = shape.ridge() / (2.0 * shape.entries as f64 * slower);
    (products >= FEW_PRODUCTS).then_some(products as usize)
}

/// What the host alone can do, whatever it takes.
fn constrained(shape: &Shape) -> Chosen {
    match shape.constraint {
        Constraint::NonNegative => direct(
            Solver::CoordinateDescent,
            Direct::CoordinateDescent,
            "coefficients that may not be negative",
        ),
        _ if shape.has_l1 => direct(
            Solver::CoordinateDescent,
            Direct::CoordinateDescent,
            "an l1 penalty that differs between columns",
        ),
        _ => direct(
            Solver::NewtonCholesky,
            Direct::Cholesky,
            "a penalty that differs between columns",
        ),
    }
}

fn automatic(shape: &Shape) -> Chosen {
    if let Some((rows, work)) = shape.over_rows()
        && work <= 0.5 * shape.most_work()
    {
        let chosen = automatic(&rows);
        if chosen.direct.is_some() {
            let reason = "more columns than rows: solved over the space of the rows";
            return Chosen { reason, ..chosen };
        }
    }
    let most = shape.most_work();
    match shape.place {
        Place::Device => return on_device(iterative(shape), "X is on a device"),
        Place::Shared => return on_device(iterative(shape), "several processes share the rows"),
        Place::Reproducible => {
            let reason = "reproducible: the same steps on every device";
            return on_device(iterative(shape), reason);
        }
        Place::Host | Place::Both => {}
    }
    if shape.is_dual() {
        return direct(
            Solver::ConjugateGradient,
            Direct::Dual,
            "sparse, with more columns than rows: products in the space of the rows",
        );
    }
    if shape.has_l1 {
        return if shape.descent() <= most {
            direct(
                Solver::CoordinateDescent,
                Direct::CoordinateDescent,
                "an l1 penalty, and few enough columns matter for their Gram matrix",
            )
        } else {
            on_device(iterative(shape), "Gram matrices of this size take too long")
        };
    }
    if shape.quadratic && !shape.has_l2 && shape.svd() <= most.min(HOST_WORK / 4.0) {
        return direct(
            Solver::Svd,
            Direct::LeastSquares,
            "least squares without a penalty: columns may depend on each other",
        );
    }
    if shape.is_for_products() {
        let reason =
            "a softmax: products of matrices on the host, preconditioned by a Hessian per class";
        return direct(Solver::NewtonCg, Direct::Products, reason);
    }
    let fits = shape.coordinates() <= MOST_COORDINATES && shape.newton() <= most;
    if fits && (shape.newton() <= TRIFLE.min(most) || shape.newton() <= shape.iterations()) {
        return direct(
            Solver::NewtonCholesky,
            Direct::Cholesky,
            "few enough coefficients for their Hessian",
        );
    }
    if shape.is_stored() {
        let reason =
            "sparse: products with the stored entries of the rows that have curvature, on the host";
        return direct(Solver::NewtonCg, Direct::Stored, reason);
    }
    on_device(
        iterative(shape),
        "a Hessian of this size takes longer than products with it",
    )
}

/// By products with X.
fn iterative(shape: &Shape) -> Solver {
    if shape.quadratic && !shape.has_l1 {
        Solver::ConjugateGradient
    } else {
        Solver::NewtonCg
    }
}

fn on_device(solver: Solver, reason: &'static str) -> Chosen {
    Chosen {
        solver,
        reason,
        direct: None,
    }
}

fn direct(solver: Solver, method: Direct, reason: &'static str) -> Chosen {
    Chosen {
        solver,
        reason,
        direct: Some(method),
    }
}
