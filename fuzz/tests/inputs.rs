//! A hundred thousand inputs; `cargo run --release -p warpfuse-fuzz` takes as many as wanted.

use warpfuse_fuzz::campaign;
use warpfuse_fuzz::memory::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Inputs of a test run, from the environment or 100,000.
fn inputs() -> u64 {
    let asked = std::env::var("WARPFUSE_FUZZ_INPUTS").ok();
    asked
        .and_then(|count| count.parse().ok())
        .unwrap_or(100_000)
}

#[test]
fn no_input_ends_in_a_panic_a_hang_or_without_bound() {
    let outcome = campaign::run(0..inputs(), None).expect("files can be written");
    assert!(outcome.failures.is_empty(), "{:#?}", outcome.failures);
    // Neither are all inputs refused nor all taken, of any subject.
    for (subject, count) in &outcome.counts {
        assert!(
            count.taken > 0 && count.taken < count.inputs,
            "{subject}: {count:?}"
        );
    }
}
