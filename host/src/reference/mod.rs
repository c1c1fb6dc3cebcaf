//! The truth for tests: plain f64 loops.
