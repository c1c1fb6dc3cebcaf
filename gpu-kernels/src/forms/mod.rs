//! Further forms of a sparse X, made on the device where its rows lie: the layouts that the fused pattern reads.
//!
//! | file | makes |
//! |---|---|
//! | `hot` | hot columns: the layout of [`fused::hot`](crate::fused::hot) |
//! | `panels` | panels of columns and of rows: the layout of [`fused::panels`](crate::fused::panels) |
//!
//! They are a family of their own because a program can do without them: the host makes the same forms, in seconds instead
//! of milliseconds, and `cargo xtask quickstart` compiles fewer kernels.

pub mod hot;
pub mod panels;
