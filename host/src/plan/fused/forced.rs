//! Parts of a plan that the user decides.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::candidate::{Candidate, Team};
use super::reason::Reason;
use super::strategy::Strategy;

/// What the user fixes; the model chooses the rest.
///
/// ```
/// use warpfuse::plan::fused::{Forced, Strategy};
/// let forced = Forced { strategy: Some(Strategy::GlobalW), bs: Some(512), ..Forced::default() };
/// assert_eq!(forced.to_string(), "strategy = global_w, bs = 512");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Forced {
    /// How the product is computed.
    pub strategy: Option<Strategy>,
    /// Vector size.
    pub vs: Option<u32>,
    /// Block size.
    pub bs: Option<u32>,
    /// Elements of a row per thread.
    pub tl: Option<u32>,
    /// Rows that a vector loads before it uses the first.
    pub rows_in_flight: Option<u32>,
    /// Elements per load.
    pub width: Option<u32>,
    /// Blocks resident on an SM.
    pub blocks_per_sm: Option<u32>,
}

impl Forced {
    /// Whether nothing is fixed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether `kernel` in blocks of `bs` is what the user wants.
    pub(super) fn allows(&self, kernel: &Candidate, bs: u32) -> bool {
        self.allows_kernel(kernel)
            && self.vs.is_none_or(|vs| vs == kernel.team.size(bs))
            && self.bs.is_none_or(|wanted| wanted == bs)
    }

    /// Whether vectors of `team` may be what the user wants; a block's depend on its size.
    pub(super) fn allows_team(&self, team: Team) -> bool {
        match (self.vs, team) {
            (Some(vs), Team::Lanes(lanes)) => vs == lanes,
            (_, Team::Block) | (None, _) => true,
        }
    }

    /// Whether `kernel` is what the user wants, whatever the block size.
    ///
    /// The parts of two products are forced through their own kernels, so that two products rule out none.
    pub(super) fn allows_kernel(&self, kernel: &Candidate) -> bool {
        let strategy = self.strategy.filter(|s| !s.is_two_products());
        strategy.is_none_or(|strategy| strategy == kernel.strategy)
            && self.tl.is_none_or(|tl| tl == kernel.tl)
            && self
                .rows_in_flight
                .is_none_or(|rows| rows == kernel.rows_in_flight)
            && self.width.is_none_or(|width| width == kernel.width)
    }

    /// A reason for each part that is fixed.
    pub(super) fn reasons(&self) -> impl Iterator<Item = Reason> {
        self.parts().map(|(field, value)| Reason::Forced {
            field: field.to_owned(),
            value,
        })
    }

    fn parts(&self) -> impl Iterator<Item = (&'static str, String)> {
        let number = |field, value: Option<u32>| value.map(|v| (field, v.to_string()));
        [
            self.strategy.map(|s| ("strategy", s.to_string())),
            number("vs", self.vs),
            number("bs", self.bs),
            number("tl", self.tl),
            number("rows_in_flight", self.rows_in_flight),
            number("width", self.width),
            number("blocks_per_sm", self.blocks_per_sm),
        ]
        .into_iter()
        .flatten()
    }
}

impl fmt::Display for Forced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (field, value)) in self.parts().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{field} = {value}")?;
        }
        Ok(())
    }
}
