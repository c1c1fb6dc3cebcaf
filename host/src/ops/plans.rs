//! What a matrix keeps of its plans.

use std::sync::OnceLock;

use super::forms::OnDevice;
use super::many::launches::ManyLaunches;
use super::objective::launches::ObjectiveLaunches;
use super::{Number, OpError};
use crate::plan::fused::Plan;

/// Plans with their kernels, made when they are first used.
pub(super) struct Plans<T: Number> {
    /// Of each [`Product`](crate::plan::fused::Product).
    pub(super) products: [OnceLock<Result<Launches<T>, OpError>>; 3],
    pub(super) objectives: ObjectiveLaunches<T>,
    pub(super) many: ManyLaunches<T>,
}

impl<T: Number> Default for Plans<T> {
    fn default() -> Self {
        Plans {
            products: Default::default(),
            objectives: ObjectiveLaunches::default(),
            many: ManyLaunches::default(),
        }
    }
}

impl<T: Number> Plans<T> {
    /// Forgets all plans.
    pub(super) fn replan(&mut self) {
        *self = Plans::default();
    }
}

/// What is launched for one product.
pub(super) struct Launches<T: Number> {
    pub(super) plan: Plan,
    /// None for two products one after the other.
    pub(super) over: Option<Box<dyn OnDevice<T>>>,
}
