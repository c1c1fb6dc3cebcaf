//! Further forms of a sparse X that the device makes, beside those of the host.

mod hot;
mod panels;
mod transpose;

use crate::suite::Suite;

/// Adds all cases.
pub fn add(suite: &mut Suite) {
    hot::add(suite);
    panels::add(suite);
    transpose::add(suite);
}
