//! Layers on GPUs and emulators: their launches.

use std::sync::Mutex;

use gpu_kernels::sparse_conv::{
    Geometry, LIST_BLOCK, SKIP_BLOCK, STAGED_BLOCK, SkipGeometry, SparseConvArgs,
    SparseConvVariant, StagedGeometry, TENSOR_TEAM, TensorGeometry, cells_at_once,
    tensor_shared_bytes,
};
use gpu_kernels::{Entry, Family, In, Launch, Out};

use super::element::ConvElement;
use super::error::SparseConvError;
use super::format::Format;
use super::layer::Layer;
use super::maps::Maps;
use crate::device::{Buffer, Device, DeviceError, Prepared};
use crate::layout::sparse_conv::ConvSteps;
use crate::matrix::filters::SparseFilters;
use crate::ops::OpError;
use crate::parallel::locked;
use crate::plan::sparse_conv::{ConvPlan, ConvShape, ConvStrategy, Tiles};

/// Threads of a block of kernels that take any number.
const BLOCK: u32 = 128;
/// Blocks of one launch at most where threads go on to further outputs.
const MOST_BLOCKS: u64 = 1 << 20;

/// A layer on a GPU.
pub(super) struct OnGpu<E: ConvElement> {
    plan: ConvPlan,
    format: Format<E>,
    bias: Option<Buffer<E::Sum>>,
    /// The convolution; with pooling where that is fused.
    geometry: Geometry,
    /// The whole layer.
    whole: Geometry,
    convolve: Prepared<E::Kernels>,
    pool: Option<Stage<E, E::Sum>>,
    planes: Option<Stage<E, f32>>,
}

/// A further launch, with the buffer between it and the convolution.
type Stage<E, T> = (Prepared<<E as ConvElement>::Kernels>, Mutex<Buffer<T>>);

impl<E: ConvElement> OnGpu<E> {
    pub fn new(
        device: &Device,
        (plan, steps): (ConvPlan, Option<ConvSteps>),
        shape: &ConvShape,
        filters: &SparseFilters<E::Value>,
        layer: Layer<'_, E::Sum>,
    ) -> Result<OnGpu<E>, SparseConvError> {
        let format = Format::new(device, &plan, (shape, filters), steps)?;
        let whole = shape.geometry(layer.rectify);
        let geometry = if plan.pools_apart {
            shape.geometry_before_pooling(layer.rectify)
        } else {
            whole
        };
        let (convolve, planes) = (
            launch_of::<E>(&plan, &geometry),
            planes_of::<E>(shape, &plan),
        );
        Ok(OnGpu {
            convolve: prepare::<E>(device, variant_of(&plan), convolve)?,
            planes: match planes {
                Some((variant, launch, words)) => Some((
                    prepare::<E>(device, variant, launch)?,
                    Mutex::new(device.zeros(words)?),
                )),
                None => None,
            },
            pool: match plan.pools_apart {
                true => Some((
                    prepare::<E>(
                        device,
                        SparseConvVariant::Finish,
                        each(shape.results() as u64),
                    )?,
                    Mutex::new(device.zeros(shape.sums())?),
                )),
                false => None,
            },
            bias: layer.bias.map(|bias| device.upload(bias)).transpose()?,
            plan,
            format,
            geometry,
            whole,
        })
    }

    pub fn plan(&self) -> &ConvPlan {
        &self.plan
    }

    pub fn filter_bytes(&self) -> usize {
        self.format.bytes()
    }

    pub fn run(&self, x: &Maps<E>, out: &mut Buffer<E::Sum>) -> Result<(), OpError> {
        if out.is_empty() {
            return Ok(());
        }
        let mut args = self.args(x);
        // Held until all is launched: launches of one layer from several threads take turns.
        let mut planes = self
            .planes
            .as_ref()
            .map(|(prepared, planes)| (prepared, locked(planes)));
        if let Some((prepared, planes)) = &mut planes {
            let made = SparseConvArgs {
                planes_out: planes.output(),
                ..args
            };
            prepared.launch(made)?;
        }
        if let Some((_, planes)) = &planes {
            args.planes = planes.input();
        }
        let Some((prepared, sums)) = &self.pool else {
            args.out = out.output();
            return Ok(self.convolve.launch(args)?);
        };
        let mut sums = locked(sums);
        let convolved = SparseConvArgs {
            out: sums.output(),
            ..args
        };
        self.convolve.launch(convolved)?;
        let pooled = SparseConvArgs {
            sums: sums.input(),
            out: out.output(),
            // Bias and rectification are in the sums.
            bias: In::none(),
            geometry: Geometry {
                from: self.geometry.to,
                ..self.whole
            },
            ..args
        };
        Ok(prepared.launch(pooled)?)
    }

    /// Everything but results and what lies between launches.
    fn args<'a>(&'a self, x: &'a Maps<E>) -> SparseConvArgs<'a, E> {
        let bias = self.bias.as_ref().map_or(In::none(), Buffer::input);
        let mut args = no_args(x, bias, self.geometry);
        self.format.fill(&mut args);
        if let Tiles::Skip(bands) = self.plan.tiles {
            args.skip = bands.geometry;
        }
        args
    }
}

/// Inputs, bias and sizes alone.
pub(super) fn no_args<'a, E: ConvElement>(
    x: &'a Maps<E>,
    bias: In<'a, E::Sum>,
    geometry: Geometry,
) -> SparseConvArgs<'a, E> {
    SparseConvArgs {
        x: x.words().input(),
        bias,
        starts: In::none(),
        places: In::none(),
        cols: In::none(),
        values: In::none(),
        packed: In::none(),
        packed_bits: [0; 2],
        steps: In::none(),
        planes: In::none(),
        planes_out: Out::none(),
        sums: In::none(),
        first_image: 0,
        out: Out::none(),
        geometry,
        tensor: TensorGeometry::default(),
        staged: StagedGeometry::default(),
        skip: SkipGeometry::default(),
    }
}

fn variant_of(plan: &ConvPlan) -> SparseConvVariant {
    match (plan.strategy, plan.tiles) {
        (ConvStrategy::Coo, _) => SparseConvVariant::Coo,
        (ConvStrategy::Packed, _) => SparseConvVariant::Packed,
        (ConvStrategy::Tensor, Tiles::Tensor(tiles)) => SparseConvVariant::Tensor {
            weights: tiles.pieces.weights,
            teams: tiles.teams,
        },
        (ConvStrategy::Skip, _) => SparseConvVariant::Skip,
        (ConvStrategy::Staged, Tiles::Staged(tiles)) => SparseConvVariant::Staged {
            filters: tiles.filters,
            outputs: tiles.outputs,
        },
        _ => SparseConvVariant::Direct,
    }
}

/// A thread for each item.
pub(super) fn each(items: u64) -> Launch {
    Launch {
        grid: items.div_ceil(BLOCK.into()).clamp(1, MOST_BLOCKS) as u32,
        block: BLOCK,
        shared_bytes: 0,
    }
}

fn launch_of<E: ConvElement>(plan: &ConvPlan, g: &Geometry) -> Launch {
    let product = |of: [u32; 2]| u64::from(of[0]) * u64::from(of[1]);
    let maps = u64::from(g.batch) * u64::from(g.filters);
    match (plan.strategy, plan.tiles) {
        (ConvStrategy::Tensor, Tiles::Tensor(tiles)) => Launch {
            grid: tiles.blocks as u32,
            block: tiles.teams * TENSOR_TEAM,
            shared_bytes: tensor_shared_bytes::<E>(&tiles.geometry, tiles.teams) as u32,
        },
        (ConvStrategy::Staged, Tiles::Staged(tiles)) => Launch {
            grid: tiles.blocks as u32,
            block: STAGED_BLOCK,
            shared_bytes: tiles.shared_bytes as u32,
        },
        (ConvStrategy::Skip, Tiles::Skip(bands)) => Launch {
            grid: bands.blocks as u32,
            block: SKIP_BLOCK,
            shared_bytes: bands.shared_bytes as u32,
        },
        (ConvStrategy::Direct, _) => {
            // A warp's run is 32 results of pooling, or 128 outputs.
            let run = if plan.pools_apart || g.pool.kind == gpu_kernels::sparse_conv::POOL_NONE {
                128
            } else {
                32
            };
            each(maps * product(g.pool.out).div_ceil(run) * 32)
        }
        _ => each(maps * product(g.out)),
    }
}

/// The launch before the convolution, and the words that it makes.
fn planes_of<E: ConvElement>(
    shape: &ConvShape,
    plan: &ConvPlan,
) -> Option<(SparseConvVariant, Launch, usize)> {
    match plan.tiles {
        Tiles::None => None,
        Tiles::Tensor(tiles) => {
            let cells = shape.batch * shape.size[0] * shape.size[1] * shape.groups;
            let words = cells * tiles.geometry.bytes() as usize / 4;
            let at_once = cells_at_once::<E>(&shape.geometry(false));
            let launch = each(words as u64 / u64::from(at_once));
            Some((SparseConvVariant::Planes, launch, words * E::PIECES))
        }
        Tiles::Staged(tiles) => {
            let launch = each(shape.inputs() as u64);
            Some((SparseConvVariant::Pad, launch, tiles.words))
        }
        Tiles::Skip(bands) => {
            let launch = Launch {
                grid: (shape.batch * shape.channels) as u32,
                block: LIST_BLOCK,
                shared_bytes: LIST_BLOCK / 32 * 4,
            };
            Some((SparseConvVariant::List, launch, bands.words))
        }
    }
}

pub(super) fn prepare<E: ConvElement>(
    device: &Device,
    variant: SparseConvVariant,
    launch: Launch,
) -> Result<Prepared<E::Kernels>, DeviceError> {
    let entries = E::Kernels::entries();
    let found = entries
        .iter()
        .find(|entry: &&Entry<E::Kernels>| entry.variant == variant);
    device.prepare(found.expect("a kernel that suits the type"), launch)
}
