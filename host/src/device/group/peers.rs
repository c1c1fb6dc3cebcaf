//! Whether other processes of this machine live: what the operating system says of them, without a message from them.

use std::panic::{RefUnwindSafe, UnwindSafe};

use super::GroupError;

/// How a member left whose process is no more.
pub(super) const PROCESS_ENDED: &str = "its process has ended";

/// Looks for a member that is known to have failed or left.
pub(super) type Departed =
    Box<dyn Fn() -> Option<GroupError> + Send + Sync + UnwindSafe + RefUnwindSafe>;

/// What is known of the other members while they join.
pub(super) struct Others {
    pub(super) departed: Departed,
    /// Who has not come, or may not have.
    pub(super) absent: Box<dyn Fn() -> Vec<usize>>,
}

/// What ends work of others than NCCL.
pub(super) type End = Box<dyn Fn() + Send + Sync + UnwindSafe + RefUnwindSafe>;
