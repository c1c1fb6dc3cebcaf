//! The table of compiled variants: one row makes the PTX entry and its descriptor on the host.

use crate::cta::Cta;
use crate::describe::Description;

/// How a kernel is started: a one-dimensional grid of one-dimensional blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// Blocks.
    pub grid: u32,
    /// Threads per block.
    pub block: u32,
    /// Dynamic shared memory per block, in bytes.
    pub shared_bytes: u32,
}

/// What a launch breaks of its kernel's contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation {
    /// The quantity, such as `block` or `shared bytes`.
    pub what: &'static str,
    /// What the kernel requires of it, such as `at least` or `a multiple of`.
    pub rule: &'static str,
    /// The required value.
    pub required: u64,
    /// The given value.
    pub given: u64,
}

impl core::fmt::Display for Violation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Violation {
            what,
            rule,
            required,
            given,
        } = self;
        write!(f, "{what} must be {rule} {required}, but is {given}")
    }
}

impl core::error::Error for Violation {}

impl Violation {
    /// Fails unless `given >= required`.
    pub fn at_least(what: &'static str, required: u64, given: u64) -> Result<(), Violation> {
        Self::unless(given >= required, what, "at least", required, given)
    }

    /// Fails unless `given <= required`.
    pub fn at_most(what: &'static str, required: u64, given: u64) -> Result<(), Violation> {
        Self::unless(given <= required, what, "at most", required, given)
    }

    /// Fails unless `given` is a positive multiple of `required`.
    pub fn multiple_of(what: &'static str, required: u64, given: u64) -> Result<(), Violation> {
        let holds = given > 0 && given.is_multiple_of(required);
        Self::unless(holds, what, "a positive multiple of", required, given)
    }

    /// Fails unless `given == required`.
    pub fn equal(what: &'static str, required: u64, given: u64) -> Result<(), Violation> {
        Self::unless(given == required, what, "equal to", required, given)
    }

    fn unless(
        holds: bool,
        what: &'static str,
        rule: &'static str,
        required: u64,
        given: u64,
    ) -> Result<(), Violation> {
        if holds {
            Ok(())
        } else {
            Err(Violation {
                what,
                rule,
                required,
                given,
            })
        }
    }
}

/// That a family is in the list of [`for_each_family!`](crate::for_each_family); nothing else implements it.
#[diagnostic::on_unimplemented(
    message = "the family `{Self}` is not in the list of all families",
    note = "add it to `for_each_family!` in gpu-kernels/src/families.rs"
)]
pub trait Listed {}

/// Kernels that take the same arguments: the type that a prepared launch is tied to.
pub trait Family: Listed + Sized + Send + Sync + 'static {
    /// The argument struct, `repr(C)`, passed by value.
    type Args<'a>: Copy + Send + Sync;
    /// What distinguishes one entry from another.
    type Variant: Copy + core::fmt::Debug + PartialEq + Send + Sync + 'static;

    /// Name, the same in every room.
    const NAME: &'static str;

    /// Name of the unit in which its entries are compiled for the GPU: the type and its element, such as `Sparse_f32`.
    const UNIT: &'static str;

    /// All compiled entries.
    fn entries() -> &'static [Entry<Self>];

    /// Runs one thread of `entry` on any [`Cta`]: the very body that the PTX holds.
    fn run<C: Cta>(entry: &Entry<Self>, cta: &C, args: &Self::Args<'_>);

    /// Checks a launch against the contract of `entry`.
    fn check(entry: &Entry<Self>, launch: &Launch, args: &Self::Args<'_>) -> Result<(), Violation>;
}

/// One compiled kernel of a family.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry<F: Family> {
    /// Name of the entry in the PTX.
    pub name: &'static str,
    /// Position in the family's table.
    pub id: usize,
    /// Its parameters.
    pub variant: F::Variant,
    /// What it does, computed from them.
    pub description: Description,
}

/// PTX entries of instances that no table has: name, type of the arguments, body. The host knows them by the tuner that wrote them.
///
/// ```text
/// crate::table::instances! {
///     "qr_panel_f32_32_96_4", crate::qr::QrArgs<'a, f32> => crate::qr::panel::panel::<_, f32, 32, 96, 4, 128>;
/// }
/// ```
#[cfg(target_arch = "nvptx64")]
#[allow(unused_macros, reason = "a generated file uses it")]
macro_rules! instances {
    ($( $name:literal, $args:ty => $body:expr; )*) => { $(
        const _: () = {
            type Args<'a> = $args;
            // SAFETY: the name is that of no entry of a table, and no host symbol is called so.
            #[unsafe(export_name = $name)]
            unsafe extern "ptx-kernel" fn entry(args: Args<'static>) {
                $crate::table::begin(&$crate::simt::nvptx::Gpu, false);
                $body(&$crate::simt::nvptx::Gpu, &args)
            }
        };
    )* };
}

#[cfg(target_arch = "nvptx64")]
#[allow(unused_imports, reason = "a generated file uses it")]
pub(crate) use instances;

/// What every entry begins with: its blocks are in place when the launch before it in the stream ends, and go on then. On an H100
/// a chain of launches over 256 or 47,236 elements takes 1.0 µs each instead of 2.1, over 1,500,000 elements 4.5 instead of 5.6.
/// Letting the next launch begin even earlier ([`Cta::let_next_begin`](crate::Cta::let_next_begin), first of all) gains nothing for
/// small ones, and takes room from large ones: 7.8 µs.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub fn begin(cta: &impl crate::Cta, waits_itself: bool) {
    if !waits_itself {
        cta.wait_for_previous();
    }
}

/// Declares a family's entries. Each row: `name, variant => body`, the body a function of `(&C, &Args)`
/// whose first type parameter is the [`Cta`].
///
/// On nvptx64 a row becomes the entry `extern "ptx-kernel" fn name(args)`; everywhere it becomes an
/// [`Entry`] of the family and an arm of [`Family::run`]. `check` names the contract, `describe` a constant function from
/// a variant to its [`Description`].
#[macro_export]
macro_rules! kernels {
    ( family $kind:ident<$t:ident>, $family_name:literal; $($rest:tt)* ) => {
        $crate::kernels! {
            @ $kind<$t>, ($kind, $t), concat!(stringify!($kind), "_", stringify!($t)), $family_name; $($rest)*
        }
    };
    ( family $kind:ident, $family_name:literal; $($rest:tt)* ) => {
        $crate::kernels! { @ $kind, ($kind), stringify!($kind), $family_name; $($rest)* }
    };
    (
        @ $family:ty, $unit:tt, $unit_name:expr, $family_name:literal;
        args $args:ty;
        variant $variant_type:ty;
        check $check:path;
        describe $describe:path;
        $( $name:expr, $variant:expr => $body:expr; )*
    ) => {
        impl $crate::table::Family for $family {
            type Args<'a> = $args;
            type Variant = $variant_type;
            const NAME: &'static str = $family_name;
            const UNIT: &'static str = $unit_name;

            fn entries() -> &'static [$crate::table::Entry<Self>] {
                static ENTRIES: &[$crate::table::Entry<$family>] = &{
                    let mut next = 0;
                    [$( $crate::table::Entry {
                        name: $name,
                        id: { next += 1; next - 1 },
                        variant: $variant,
                        description: $describe(&$variant),
                    } ),*]
                };
                ENTRIES
            }

            fn run<C: $crate::Cta>(
                entry: &$crate::table::Entry<Self>,
                cta: &C,
                args: &Self::Args<'_>,
            ) {
                let mut next = 0;
                $( if entry.id == next { return $body(cta, args); } next += 1; )*
                let _ = (cta, args, next);
            }

            fn check(
                entry: &$crate::table::Entry<Self>,
                launch: &$crate::table::Launch,
                args: &Self::Args<'_>,
            ) -> Result<(), $crate::table::Violation> {
                $check(&entry.variant, launch, args)
            }
        }

        // The other cfg comes from the builder, which compiles the units that have changed.
        $( #[cfg(target_arch = "nvptx64")]
        #[cfg(any(not(warpfuse_units), all $unit))]
        const _: () = {
            type Args<'a> = $args;
            // SAFETY: the name is unique in the table, and no host symbol is called so.
            #[unsafe(export_name = $name)]
            unsafe extern "ptx-kernel" fn entry(args: Args<'static>) {
                const WAITS_ITSELF: bool = $describe(&$variant).waits_itself;
                $crate::table::begin(&$crate::simt::nvptx::Gpu, WAITS_ITSELF);
                $body(&$crate::simt::nvptx::Gpu, &args)
            }
        }; )*
    };
}
