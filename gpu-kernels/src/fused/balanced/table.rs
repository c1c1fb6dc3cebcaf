//! The compiled balanced entries, their contract, and what they do.

use crate::cta::WARP;
use crate::describe::{Description, Form, Input, Load, Task, Walk};
use crate::fused::balanced::finish::finish;
use crate::fused::balanced::pieces::{InMemory, InShared, scan};
use crate::fused::balanced::walk::{walk, walk_at_once};
use crate::fused::balanced::{
    Balanced, BalancedArgs, BalancedVariant, HELD, PER_THREAD, THREADS, blocks_at_once, partition,
    threads_of_shared, tiles,
};
use crate::fused::{Place, Product, SparseVariant, TeamSize, sparse};
use crate::scalar::Real;
use crate::table::{Launch, Violation};

/// What the vectors have to be as long as for.
const FORWARD: SparseVariant = SparseVariant {
    product: Product::Forward,
    place: Place::Absent,
    vs: 1,
    held: 1,
};

/// The contract of every balanced entry.
fn check<T: Real>(
    variant: &BalancedVariant,
    launch: &Launch,
    args: &BalancedArgs<'_, T>,
) -> Result<(), Violation> {
    let x = &args.x;
    let shared = variant
        .shared(T::SIZE)
        .bytes(x.cols as u64, launch.block, WARP);
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    match variant {
        BalancedVariant::Partition => {
            Violation::at_most("rows", (u32::MAX - WARP) as u64, x.rows as u64)?;
            sparse::check_csr(x)?;
        }
        _ => sparse::check(&FORWARD, launch, x)?,
    }
    if let Some(threads) = variant.threads(T::SIZE) {
        Violation::equal("block", threads as u64, launch.block as u64)?;
    }
    let nonzeros = args.nonzeros as u64;
    Violation::at_most("nonzeros", x.indices.len(), nonzeros)?;
    let tiles = tiles(x.rows as u64, nonzeros) as u64;
    let inputs = x.cols as u64;
    crate::fused::check_optional(&args.input_weights, "length of input weights", inputs)?;
    Violation::at_least("length of starts", tiles + 1, args.starts.len())?;
    Violation::at_least("length of heads", tiles, args.heads.len())?;
    Violation::at_least("length of carries", tiles, args.carries.len())?;
    let at_once = match variant {
        BalancedVariant::WalkAtOnce => tiles,
        _ => 0,
    };
    Violation::at_least("grid", at_once, launch.grid as u64)?;
    Violation::at_least("length of tickets", at_once, args.tickets.len())
}

/// What an entry of elements of type T does: *walk* serves X and its stored transpose, *scan* X alone.
const fn describe<T: Real>(variant: &BalancedVariant) -> Description {
    const fn task(product: Product, form: Form) -> Option<Task> {
        Some(Task { product, form })
    }
    let rows = task(Product::Forward, Form::Rows);
    let walk = Description {
        tasks: [rows, None, None],
        walk: Walk::MergePartitions,
        team: TeamSize::Block,
        load: Load::entries(PER_THREAD),
        shared: variant.shared(T::SIZE),
        most_threads: THREADS,
        ..Description::UNPLANNED
    };
    let scan = Description {
        walk: Walk::ScannedPartitions,
        team: TeamSize::Lanes(WARP),
        load: Load::entries(HELD as u32),
        ..walk
    };
    match variant {
        BalancedVariant::Walk => Description {
            tasks: [
                rows,
                task(Product::Fused, Form::Transpose),
                task(Product::Transposed, Form::Transpose),
            ],
            ..walk
        },
        BalancedVariant::Scan => scan,
        BalancedVariant::ScanOfShared => Description {
            input: Input::Shared,
            most_threads: threads_of_shared(T::SIZE),
            ..scan
        },
        _ => Description::UNPLANNED,
    }
}

macro_rules! balanced_family {
    ($t:ident, $blocks:literal) => {
        crate::kernels! {
            family Balanced<$t>, "fused";
            args BalancedArgs<'a, $t>;
            variant BalancedVariant;
            check check::<$t>;
            describe describe::<$t>;
            concat!("balanced_partition_", stringify!($t)), BalancedVariant::Partition => partition::<_, $t>;
            concat!("balanced_walk_", stringify!($t)), BalancedVariant::Walk => walk::<_, $t, $blocks>;
            concat!("balanced_walk_at_once_", stringify!($t)), BalancedVariant::WalkAtOnce
                => walk_at_once::<_, $t, { blocks_at_once(size_of::<$t>() as u32) }>;
            concat!("balanced_scan_", stringify!($t)), BalancedVariant::Scan => scan::<_, $t, InMemory, THREADS, $blocks>;
            concat!("balanced_scan_of_shared_", stringify!($t)), BalancedVariant::ScanOfShared
                => scan::<_, $t, InShared<$t>, { threads_of_shared(size_of::<$t>() as u32) }, 1>;
            concat!("balanced_finish_", stringify!($t)), BalancedVariant::Finish => finish::<_, $t>;
        }
    };
}

// Blocks that share an SM: with fewer, too few entries are on the way.
balanced_family!(f32, 4);
balanced_family!(f64, 3);
