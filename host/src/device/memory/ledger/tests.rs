//! The account beside plain sums.

use proptest::prelude::*;

use super::*;

fn limited(bytes: usize) -> Ledger {
    let ledger = Ledger::default();
    ledger.limit(MemoryOptions::limited(bytes));
    ledger
}

#[test]
fn the_peak_outlives_what_was_held() {
    let ledger = Ledger::default();
    let first = ledger.hold(100);
    drop(ledger.hold(50));
    let second = ledger.hold(20);
    let held = |usage: Usage| (usage.live_bytes, usage.peak_bytes, usage.allocations);
    assert_eq!(held(ledger.usage()), (120, 150, 3));
    drop((first, second));
    assert_eq!(held(ledger.usage()), (0, 150, 3));
}

#[test]
fn copies_are_counted_each_way() {
    let ledger = Ledger::default();
    ledger.sent(7);
    ledger.sent(1);
    ledger.received(3);
    let usage = ledger.usage();
    assert_eq!((usage.sent_bytes, usage.received_bytes), (8, 3));
}

#[test]
fn a_refusal_names_the_largest_holders_and_leaves_the_account_as_it_was() {
    let ledger = limited(100);
    let held: Vec<_> = [30, 10, 30, 5].map(|bytes| ledger.hold(bytes)).into();
    assert!(ledger.hold(26).is_none());
    assert!(ledger.hold(usize::MAX).is_none());
    let text = ledger.holding().to_string();
    assert_eq!(
        text,
        "75 of at most 100 bytes are held, by 2 of 30 bytes, 1 of 10 bytes and 1 of 5 bytes"
    );
    assert!(ledger.hold(25).is_some());
    drop(held);
    assert_eq!((ledger.usage().live_bytes, ledger.usage().refused), (0, 2));
    assert_eq!(
        ledger.holding().to_string(),
        "0 of at most 100 bytes are held"
    );
}

#[test]
fn a_lower_limit_refuses_until_enough_is_freed() {
    let ledger = limited(100);
    let held = ledger.hold(80);
    ledger.limit(MemoryOptions::limited(50));
    assert!(ledger.hold(1).is_none());
    drop(held);
    assert!(ledger.hold(50).is_some());
    ledger.limit(MemoryOptions::default());
    assert!(ledger.hold(1 << 40).is_some());
}

#[test]
fn threads_never_exceed_the_limit_together() {
    use rayon::prelude::*;
    let ledger = limited(1_000);
    (0..10_000_usize).into_par_iter().for_each(|at| {
        let held = ledger.hold(at % 400);
        assert!(ledger.usage().live_bytes <= 1_000);
        drop(held);
    });
    assert_eq!(ledger.usage().live_bytes, 0);
    assert!(ledger.usage().peak_bytes <= 1_000);
    assert!(ledger.holding().largest.is_empty());
}

proptest! {
    /// Beside a list of what is held.
    #[test]
    fn the_account_agrees_with_a_plain_list(
        limit in 0_usize..2_000,
        steps in prop::collection::vec((any::<bool>(), 0_usize..600), 0..200),
    ) {
        let ledger = limited(limit);
        let (mut held, mut bytes, mut peak) = (Vec::new(), 0, 0);
        for (allocates, size) in steps {
            if !allocates && !held.is_empty() {
                let (_, freed): (Held, usize) = held.swap_remove(size % held.len());
                bytes -= freed;
            } else if let Some(new) = ledger.hold(size) {
                prop_assert!(bytes + size <= limit);
                held.push((new, size));
                bytes += size;
            } else {
                prop_assert!(bytes + size > limit);
            }
            peak = peak.max(bytes);
            prop_assert_eq!(ledger.usage().live_bytes, bytes);
            prop_assert_eq!(ledger.usage().peak_bytes, peak);
        }
        drop(held);
        prop_assert_eq!(ledger.usage().live_bytes, 0);
    }
}
