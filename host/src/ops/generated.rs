//! Kernels that were generated while the program runs, beside those of the tables.

use std::any::Any;
use std::sync::Mutex;

use gpu_kernels::describe::Description;
use gpu_kernels::{Entry, Family};

use crate::parallel::locked;

/// Entries of all families. They stay as long as the program: launches hold them.
static GENERATED: Mutex<Vec<&'static (dyn Any + Send + Sync)>> = Mutex::new(Vec::new());

/// Adds a kernel, unless it is there; its entry.
pub(crate) fn add<F: Family>(name: &str, variant: F::Variant) -> &'static Entry<F> {
    if let Some(known) = find::<F>(variant) {
        return known;
    }
    let entry: &'static Entry<F> = Box::leak(Box::new(Entry {
        name: Box::leak(name.to_owned().into_boxed_str()),
        // No body of the table: the emulator has none.
        id: usize::MAX,
        variant,
        description: Description::UNPLANNED,
    }));
    locked(&GENERATED).push(entry);
    entry
}

/// The kernel of a variant, if one was generated.
pub(super) fn find<F: Family>(variant: F::Variant) -> Option<&'static Entry<F>> {
    let all = locked(&GENERATED);
    let mut own = all
        .iter()
        .filter_map(|entry| entry.downcast_ref::<Entry<F>>());
    own.find(|entry| entry.variant == variant)
}
