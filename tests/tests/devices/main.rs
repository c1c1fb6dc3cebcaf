//! The cases of the kit on every device, each as a test of its own.
//!
//! Cases of a device that is not there are reported as ignored. Options are libtest's; see
//! [`warpfuse_tests::engines`] for `WARPFUSE_DEVICES`, [`warpfuse_tests::Subset`] for
//! `WARPFUSE_TEST_SUBSET` and [`warpfuse_tests::shard`] for `WARPFUSE_TEST_SHARD`. At the end the groups of tests
//! that took longest are printed, and the worst errors, which are written to `WARPFUSE_TEST_REPORT` as JSON where that names a file.

mod awkward;
mod changed_file;
mod contract;
mod conv1d;
mod curves;
mod derivatives;
mod entries;
mod estimators;
mod fits;
mod fixed;
mod forms;
mod fused;
mod head;
mod kernel_ridge;
mod kernel_sum;
mod learning;
mod least_squares;
mod many;
mod matmul;
mod metrics;
mod model_selection;
mod objective;
mod one_pass_with_head;
mod ordered;
mod panels;
mod passes;
mod plans;
mod prepared_fits;
mod properties;
mod qr;
mod reduce;
mod same_bits;
mod same_fits;
mod softmax;
mod sparse_conv;
mod spectral;
mod streamed;
mod suite;
mod tuning;
mod vector;

use std::process::ExitCode;

use libtest_mimic::Arguments;
use suite::Suite;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut suite = Suite::from_environment();
    fused::add(&mut suite);
    head::add(&mut suite);
    fixed::add(&mut suite);
    ordered::add(&mut suite);
    many::add(&mut suite);
    panels::add(&mut suite);
    forms::add(&mut suite);
    streamed::add(&mut suite);
    changed_file::add(&mut suite);
    prepared_fits::add(&mut suite);
    vector::add(&mut suite);
    objective::add(&mut suite);
    softmax::add(&mut suite);
    derivatives::add(&mut suite);
    awkward::add(&mut suite);
    passes::add(&mut suite);
    curves::add(&mut suite);
    one_pass_with_head::add(&mut suite);
    kernel_sum::add(&mut suite);
    kernel_ridge::add(&mut suite);
    matmul::add(&mut suite);
    learning::add(&mut suite);
    least_squares::add(&mut suite);
    estimators::add(&mut suite);
    same_fits::add(&mut suite);
    spectral::add(&mut suite);
    metrics::add(&mut suite);
    model_selection::add(&mut suite);
    plans::add(&mut suite);
    properties::add(&mut suite);
    qr::add(&mut suite);
    fits::add(&mut suite);
    tuning::add(&mut suite);
    reduce::add(&mut suite);
    conv1d::add(&mut suite);
    sparse_conv::add(&mut suite);
    contract::add(&mut suite);
    entries::add(&mut suite);
    suite.run(&arguments)
}
