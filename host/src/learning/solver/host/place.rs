//! Where X is, as far as methods of the host depend on it.

/// Where X is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::learning) enum Place {
    /// On the CPU.
    Host,
    /// On a GPU, with a copy on the host.
    Both,
    /// On a GPU alone, or on a device whose kernels are to be run.
    Device,
    /// Here in part: members of a group share the rows.
    Shared,
    /// On the CPU, where a fit is to take the steps that any other device takes.
    Reproducible,
}

/// Why the host cannot solve a problem, and what to do.
pub(super) struct NoRows {
    pub(super) what: &'static str,
    pub(super) remedy: &'static str,
    /// Where a solver was requested that only the host has.
    pub(super) remedy_of_solver: &'static str,
}

impl Place {
    /// Why the host does not have all rows, where it does not.
    pub(super) fn has_no_rows(self) -> Option<NoRows> {
        match self {
            Place::Host | Place::Both | Place::Reproducible => None,
            Place::Device => Some(NoRows {
                what: "features that are on a device alone",
                remedy: "fit on the CPU",
                remedy_of_solver: "fit on the CPU, or leave the choice to auto",
            }),
            Place::Shared => Some(NoRows {
                what: "rows that several processes share",
                remedy: "run one process, with all rows",
                remedy_of_solver: "leave the choice to auto, or run one process, with all rows",
            }),
        }
    }
}
