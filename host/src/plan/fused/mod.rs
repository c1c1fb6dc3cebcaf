//! The launch model of the fused pattern `w = α·Xᵀ(v ⊙ (X·y)) + β·z` and of its two halves.
//!
//! A [`Planner`] holds what is known about the device and the compiled kernels; it turns a
//! [`Problem`] and a [`Product`] into a [`Plan`]. Two models choose: the published one
//! ([`Model::Published`]: vector size from the mean row, block size from occupancy), and by default the
//! least predicted time ([`Model::Predicted`]). Whatever the model, a user can fix parts of the plan
//! ([`Forced`]) or hand in a whole one ([`Plan::validate`]).
//!
//! | term | meaning |
//! |---|---|
//! | vector | the threads that work on one row together, VS of them |
//! | block | BS threads, BS/VS vectors |
//! | coarsening | C, the rows that one vector works through |
//! | thread load | TL, the elements of a row that one thread keeps in registers |

pub(crate) mod balanced;
mod candidate;
mod choose;
mod cost;
mod dense_cost;
mod even;
mod forced;
mod geometry;
mod hot;
mod judge;
mod launch;
mod panels;
mod place;
mod planner;
mod predicted;
mod prediction;
mod preparation;
mod published;
mod published_dense;
mod reason;
mod rows;
mod scanned;
pub(crate) mod sell;
mod sparse_cost;
mod strategy;
mod streamed;
mod tabulated;
mod value;

#[cfg(test)]
mod tests;

pub use candidate::{Candidate, SharedUse, Storage, Team};
pub(crate) use even::tells_frequent;
pub use forced::Forced;
pub use geometry::wasted_warps;
pub(crate) use hot::{MOST_OF_PANELS, places as hot_places, threads_of_cold};
pub(crate) use panels::are_made_as_many;
pub use place::Measured;
pub use planner::Planner;
pub use predicted::{Explained, Trial};
pub use prediction::{Bound, Prediction};
pub use preparation::Weighing;
pub use published::vector_size;
pub use published_dense::dense_vector_size;
pub use reason::Reason;
pub use strategy::Strategy;
pub use value::{Model, Plan, PlanSummary};

pub use super::problem::{
    ColumnUse, Maker, Precision, Problem, Processor, Product, Stored, StoredValues, Summation,
};
