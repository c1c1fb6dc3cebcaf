//! The families of one element type: what generic host code is written against.

use crate::cg::{Cg, CgArgs, CgVariant};
use crate::design::orthant::{OrthantArgs, OrthantVariant, Orthants};
use crate::design::{DesignArgs, DesignVariant, Designs};
use crate::fits::{FitArgs, FitVariant, Fits};
use crate::forms::hot::{HotMaking, MakingArgs, MakingVariant};
use crate::forms::panels::{PanelMaking, PanelMakingArgs, PanelMakingVariant};
use crate::fused::fixed::point::FixedPoint;
use crate::fused::{
    Balanced, BalancedArgs, BalancedVariant, CarriedArgs, CarriedVariant, Dense, DenseArgs,
    DenseCarried, DenseMany, DenseManyArgs, DenseManyVariant, DenseTotals, DenseVariant, Even,
    EvenArgs, EvenVariant, Fixed, FixedArgs, FixedVariant, Headed, HeadedArgs, HeadedVariant, Hot,
    HotArgs, HotVariant, PanelArgs, PanelVariant, Panels, Sparse, SparseArgs, SparseMany,
    SparseManyArgs, SparseManyVariant, SparseVariant, TilesMany, TilesManyArgs, TilesManyVariant,
    TotalArgs, TotalVariant, Unpack, UnpackArgs, UnpackVariant,
};
use crate::kernel_sum::{KernelSumArgs, KernelSumVariant, KernelSums};
use crate::math::Elementary;
use crate::matmul::{Matmul, MatmulArgs, MatmulVariant};
use crate::objective::{
    DenseObjective, DenseObjectiveArgs, DenseObjectiveVariant, DenseSoftmax, DenseSoftmaxArgs,
    DenseSoftmaxVariant, RowObjective, RowObjectiveArgs, RowObjectiveVariant, ScoreArgs,
    ScoreVariant, Scores, SoftmaxColumns, SoftmaxColumnsArgs, SoftmaxColumnsVariant,
    SparseObjective, SparseObjectiveArgs, SparseObjectiveVariant, SparseSoftmax, SparseSoftmaxArgs,
    SparseSoftmaxVariant,
};
use crate::qr::reflector::Ranged;
use crate::qr::{Qr, QrArgs, QrVariant};
use crate::table::Family;
use crate::vector::{VectorArgs, VectorVariant, Vectors};

/// A real number type for which every family has entries.
pub trait Kernels: Elementary + FixedPoint + Ranged {
    /// Sparse fused pattern and its halves.
    type Sparse: Family<Variant = SparseVariant> + for<'a> Family<Args<'a> = SparseArgs<'a, Self>>;
    /// Sparse fused pattern with the most frequent columns' sums in shared memory.
    type Headed: Family<Variant = HeadedVariant> + for<'a> Family<Args<'a> = HeadedArgs<'a, Self>>;
    /// Sparse fused pattern with fixed-point sums.
    type Fixed: Family<Variant = FixedVariant> + for<'a> Family<Args<'a> = FixedArgs<'a, Self>>;
    /// Sparse fused pattern with the most frequent columns in shared memory.
    type Hot: Family<Variant = HotVariant> + for<'a> Family<Args<'a> = HotArgs<'a, Self>>;
    /// The most frequent columns kept apart where X lies.
    type HotMaking: Family<Variant = MakingVariant>
        + for<'a> Family<Args<'a> = MakingArgs<'a, Self>>;
    /// X·y of sparse X, the work cut by nonzeros.
    type Balanced: Family<Variant = BalancedVariant>
        + for<'a> Family<Args<'a> = BalancedArgs<'a, Self>>;
    /// Sparse fused pattern, an even share of the entries for each warp.
    type Even: Family<Variant = EvenVariant> + for<'a> Family<Args<'a> = EvenArgs<'a, Self>>;
    /// Halves of the sparse fused pattern over panels.
    type Panels: Family<Variant = PanelVariant> + for<'a> Family<Args<'a> = PanelArgs<'a, Self>>;
    /// Panels made where X lies.
    type PanelMaking: Family<Variant = PanelMakingVariant>
        + for<'a> Family<Args<'a> = PanelMakingArgs<'a, Self>>;
    /// Dense fused pattern and its halves.
    type Dense: Family<Variant = DenseVariant> + for<'a> Family<Args<'a> = DenseArgs<'a, Self>>;
    /// Sums over the chunks of a dense X.
    type DenseTotals: Family<Variant = TotalVariant>
        + for<'a> Family<Args<'a> = TotalArgs<'a, Self>>;
    /// Sums over the blocks of a dense X, in an order.
    type DenseCarried: Family<Variant = CarriedVariant>
        + for<'a> Family<Args<'a> = CarriedArgs<'a, Self>>;
    /// Dense fused pattern and its halves, several right-hand sides.
    type DenseMany: Family<Variant = DenseManyVariant>
        + for<'a> Family<Args<'a> = DenseManyArgs<'a, Self>>;
    /// Sparse fused pattern and its halves, several right-hand sides.
    type SparseMany: Family<Variant = SparseManyVariant>
        + for<'a> Family<Args<'a> = SparseManyArgs<'a, Self>>;
    /// Sparse fused pattern and its halves over tiles, several right-hand sides.
    type TilesMany: Family<Variant = TilesManyVariant>
        + for<'a> Family<Args<'a> = TilesManyArgs<'a, Self>>;
    /// Arrays of a block of X from fewer bytes.
    type Unpack: Family<Variant = UnpackVariant> + for<'a> Family<Args<'a> = UnpackArgs<'a, Self>>;
    /// Objectives of sparse X.
    type SparseObjective: Family<Variant = SparseObjectiveVariant>
        + for<'a> Family<Args<'a> = SparseObjectiveArgs<'a, Self>>;
    /// Objectives of dense X.
    type DenseObjective: Family<Variant = DenseObjectiveVariant>
        + for<'a> Family<Args<'a> = DenseObjectiveArgs<'a, Self>>;
    /// Objectives of rows that were multiplied before.
    type RowObjective: Family<Variant = RowObjectiveVariant>
        + for<'a> Family<Args<'a> = RowObjectiveArgs<'a, Self>>;
    /// Scores of predictions.
    type Scores: Family<Variant = ScoreVariant> + for<'a> Family<Args<'a> = ScoreArgs<'a, Self>>;
    /// Softmax objectives of sparse X.
    type SparseSoftmax: Family<Variant = SparseSoftmaxVariant>
        + for<'a> Family<Args<'a> = SparseSoftmaxArgs<'a, Self>>;
    /// Their gradients from the rows of Xᵀ.
    type SoftmaxColumns: Family<Variant = SoftmaxColumnsVariant>
        + for<'a> Family<Args<'a> = SoftmaxColumnsArgs<'a, Self>>;
    /// Softmax objectives of dense X of few columns.
    type DenseSoftmax: Family<Variant = DenseSoftmaxVariant>
        + for<'a> Family<Args<'a> = DenseSoftmaxArgs<'a, Self>>;
    /// Vectors.
    type Vectors: Family<Variant = VectorVariant> + for<'a> Family<Args<'a> = VectorArgs<'a, Self>>;
    /// Conjugate gradients.
    type Cg: Family<Variant = CgVariant> + for<'a> Family<Args<'a> = CgArgs<'a, Self>>;
    /// Sums over kernels.
    type KernelSums: Family<Variant = KernelSumVariant>
        + for<'a> Family<Args<'a> = KernelSumArgs<'a, Self>>;
    /// Matrix products.
    type Matmul: Family<Variant = MatmulVariant> + for<'a> Family<Args<'a> = MatmulArgs<'a, Self>>;
    /// Many small fits.
    type Fits: Family<Variant = FitVariant> + for<'a> Family<Args<'a> = FitArgs<'a, Self>>;
    /// QR factorisations.
    type Qr: Family<Variant = QrVariant> + for<'a> Family<Args<'a> = QrArgs<'a, Self>>;
    /// Vectors around products with a centred and scaled X.
    type Designs: Family<Variant = DesignVariant> + for<'a> Family<Args<'a> = DesignArgs<'a, Self>>;
    /// Vectors of l1 penalties.
    type Orthants: Family<Variant = OrthantVariant>
        + for<'a> Family<Args<'a> = OrthantArgs<'a, Self>>;
}

macro_rules! all_families {
    ($($t:ident)*) => { $(
        impl Kernels for $t {
            type Sparse = Sparse<$t>;
            type Headed = Headed<$t>;
            type Fixed = Fixed<$t>;
            type Hot = Hot<$t>;
            type HotMaking = HotMaking<$t>;
            type Balanced = Balanced<$t>;
            type Even = Even<$t>;
            type Panels = Panels<$t>;
            type PanelMaking = PanelMaking<$t>;
            type Dense = Dense<$t>;
            type DenseTotals = DenseTotals<$t>;
            type DenseCarried = DenseCarried<$t>;
            type DenseMany = DenseMany<$t>;
            type SparseMany = SparseMany<$t>;
            type TilesMany = TilesMany<$t>;
            type Unpack = Unpack<$t>;
            type SparseObjective = SparseObjective<$t>;
            type DenseObjective = DenseObjective<$t>;
            type RowObjective = RowObjective<$t>;
            type Scores = Scores<$t>;
            type SparseSoftmax = SparseSoftmax<$t>;
            type SoftmaxColumns = SoftmaxColumns<$t>;
            type DenseSoftmax = DenseSoftmax<$t>;
            type Vectors = Vectors<$t>;
            type Cg = Cg<$t>;
            type KernelSums = KernelSums<$t>;
            type Matmul = Matmul<$t>;
            type Fits = Fits<$t>;
            type Qr = Qr<$t>;
            type Designs = Designs<$t>;
            type Orthants = Orthants<$t>;
        }
    )* };
}

all_families!(f32 f64);
