//! What is wrong with the file of the fit that runs on this thread.

use std::cell::RefCell;

use crate::ops::OpError;

thread_local! {
    static REASON: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Says that the file is not what it has to be; what ends the solve until the fit has ended and says so.
pub(super) fn damaged(reason: String) -> OpError {
    REASON.with_borrow_mut(|first| first.get_or_insert(reason).len());
    OpError::Interrupted
}

/// What was said first, once.
pub(super) fn take() -> Option<String> {
    REASON.take()
}
