//! The probes: small kernels over arrays of several sizes, timed by events.

use gpu_kernels::stream::probe::{AT_ONCE, ProbeArgs, ProbeVariant, Probes};
use gpu_kernels::stream::{Stream, StreamArgs};
use gpu_kernels::{Entry, Family, Launch, Real};

use crate::device::{Buffer, Device, DeviceError, Prepared, Timer};
use crate::plan::rates::{ProbedRates, SizeTable};

/// Elements that are gathered from, and added to in global memory: from one SM's L1 cache to beyond L2.
const GATHERED: [u32; 10] = [
    10_000, 100_000, 1_000_000, 4_000_000, 6_000_000, 8_000_000, 10_000_000, 16_000_000,
    20_000_000, 80_000_000,
];
const ADDED_TO: [u32; 10] = [
    1_000, 4_000, 10_000, 100_000, 1_000_000, 4_000_000, 10_000_000, 16_000_000, 20_000_000,
    80_000_000,
];
/// Columns of a typical w in shared memory; of f64 two blocks fit on an SM of every architecture.
const SHARED_LEN: u32 = 5_000;
/// Groups of operations per thread: some milliseconds at the slowest.
const STEPS: u32 = 128;
/// Bytes of the plain read: of a quarter as many, launching took an H200 5 % of the time.
const MOST_STREAM_BYTES: usize = 4 << 30;
const SHARE_OF_MEMORY: usize = 8;
/// Blocks per SM and threads per block of the plain read; the best counts.
const STREAM_SHAPES: [(u32, u32); 3] = [(4, 512), (8, 256), (16, 256)];
const WARM_UP: usize = 2;
/// An odd number, so that there is a middle one.
const SAMPLES: usize = 7;
/// Launches in a row, whose cost is shared out.
const LAUNCHES: u32 = 64;

/// Runs all probes.
pub(super) fn run(device: &Device) -> Result<ProbedRates, DeviceError> {
    let prober = Prober::new(device)?;
    let mut singles = Arrays::<f32>::new(&prober)?;
    let shared = |variant| Probe {
        variant,
        len: SHARED_LEN,
    };
    let gather = prober.table(&mut singles, ProbeVariant::Gather, &GATHERED)?;
    let scatter_f32 = prober.table(&mut singles, ProbeVariant::Scatter, &ADDED_TO)?;
    let shared_add_f32 = prober.rate(&mut singles, shared(ProbeVariant::SharedAdd))?;
    let shared_count = prober.rate(&mut singles, shared(ProbeVariant::SharedCount))?;
    let shared_gather = prober.rate(&mut singles, shared(ProbeVariant::SharedGather))?;
    let launch_us = prober.launch_us(&mut singles)?;
    drop(singles);
    let mut doubles = Arrays::<f64>::new(&prober)?;
    Ok(ProbedRates {
        stream_gbs: prober.stream_gbs()?,
        shared_add_f32,
        shared_add_f64: prober.rate(&mut doubles, shared(ProbeVariant::SharedAdd))?,
        shared_count,
        shared_gather,
        gather,
        scatter_f32,
        scatter_f64: prober.table(&mut doubles, ProbeVariant::Scatter, &ADDED_TO)?,
        launch_us,
        host: None,
    })
}

/// What is done with how many elements.
#[derive(Clone, Copy)]
struct Probe {
    variant: ProbeVariant,
    len: u32,
}

/// A device under its probes.
struct Prober<'a> {
    device: &'a Device,
    sms: u32,
    threads_per_sm: u32,
    free_bytes: usize,
}

/// What a probe reads and writes.
struct Arrays<T> {
    source: Buffer<T>,
    target: Buffer<T>,
    sums: Buffer<T>,
}

impl<T: bytemuck::Pod + Real> Arrays<T> {
    fn new(prober: &Prober<'_>) -> Result<Self, DeviceError> {
        let threads = (prober.sms * prober.threads_per_sm) as usize;
        let len = prober.longest(T::SIZE) as usize;
        Ok(Arrays {
            source: prober.device.zeros(len)?,
            target: prober.device.zeros(len)?,
            sums: prober.device.zeros(threads)?,
        })
    }
}

impl<'a> Prober<'a> {
    fn new(device: &'a Device) -> Result<Self, DeviceError> {
        let limits = device.limits().ok_or_else(|| DeviceError::Unsupported {
            what: "probe",
            device: device.to_string(),
            why: "it has no SMs",
        })?;
        let free_bytes = device.memory_info().map_or(0, |memory| memory.free_bytes);
        Ok(Prober {
            device,
            sms: limits.sms,
            threads_per_sm: limits.max_threads_per_sm,
            free_bytes,
        })
    }

    /// The most elements of `size` bytes that a probe addresses: no more than memory has room for, but the sizes that
    /// every device has.
    fn longest(&self, size: u32) -> u32 {
        let room = self.free_bytes / SHARE_OF_MEMORY / size as usize;
        let sizes = ADDED_TO.into_iter().filter(|&len| len as usize <= room);
        sizes.max().unwrap_or(1_000_000).max(1_000_000)
    }

    fn table<T: bytemuck::Pod + Real>(
        &self,
        arrays: &mut Arrays<T>,
        variant: ProbeVariant,
        lengths: &[u32],
    ) -> Result<SizeTable, DeviceError>
    where
        Probes<T>: ProbeFamily<T>,
    {
        let most = arrays.source.len() as u32;
        let lengths = lengths.iter().copied().filter(|&len| len <= most);
        let points = lengths.map(|len| {
            let bytes = f64::from(len) * f64::from(T::SIZE);
            Ok((bytes, self.rate(arrays, Probe { variant, len })?))
        });
        Ok(SizeTable::new(
            points.collect::<Result<Vec<_>, DeviceError>>()?,
        ))
    }

    /// 10⁹ operations a second.
    fn rate<T: bytemuck::Pod + Real>(
        &self,
        arrays: &mut Arrays<T>,
        probe: Probe,
    ) -> Result<f64, DeviceError>
    where
        Probes<T>: ProbeFamily<T>,
    {
        let shared_bytes = probe.variant.shared_bytes(probe.len, T::SIZE) as u32;
        // Large blocks share one copy of the array; few copies leave L1 to gathers.
        let block = if shared_bytes > 0 { 1_024 } else { 256 };
        let launch = Launch {
            grid: self.sms * (self.threads_per_sm / block).max(1),
            block,
            shared_bytes,
        };
        let kernel = self.device.prepare(entry::<T>(probe.variant), launch)?;
        let us = self.median_us(1, || kernel.launch(arguments(arrays, probe.len, STEPS)))?;
        let threads = f64::from(launch.grid) * f64::from(block);
        Ok(threads * f64::from(STEPS) * AT_ONCE as f64 / us / 1e3)
    }

    /// The time of one launch of many that do next to nothing.
    fn launch_us(&self, arrays: &mut Arrays<f32>) -> Result<f64, DeviceError> {
        let launch = Launch {
            grid: 1,
            block: 32,
            shared_bytes: 0,
        };
        let kernel = self
            .device
            .prepare(entry::<f32>(ProbeVariant::Gather), launch)?;
        self.median_us(LAUNCHES, || kernel.launch(arguments(arrays, 1, 1)))
    }

    /// 10⁹ bytes a second of a plain read.
    fn stream_gbs(&self) -> Result<f64, DeviceError> {
        let bytes = MOST_STREAM_BYTES.min(self.free_bytes / SHARE_OF_MEMORY);
        let words = self.device.zeros::<f32>((bytes / 4).max(4))?;
        let mut total = self.device.zeros::<f32>(1)?;
        let entry = &Stream::<f32>::entries()[0];
        let mut best = 0.0_f64;
        for (per_sm, block) in STREAM_SHAPES {
            let grid = self.sms * per_sm;
            let shape = Launch {
                grid,
                block,
                shared_bytes: 0,
            };
            let kernel: Prepared<Stream<f32>> = self.device.prepare(entry, shape)?;
            let us = self.median_us(1, || {
                kernel.launch(StreamArgs {
                    x: words.input(),
                    total: total.output(),
                })
            })?;
            best = best.max(words.len() as f64 * 4.0 / us / 1e3);
        }
        Ok(best)
    }

    /// Microseconds of one of `calls` calls in a row.
    fn median_us(
        &self,
        calls: u32,
        mut work: impl FnMut() -> Result<(), DeviceError>,
    ) -> Result<f64, DeviceError> {
        let mut timer = Timer::new(self.device)?;
        (0..WARM_UP).try_for_each(|_| work())?;
        let mut samples = [0.0; SAMPLES];
        for sample in &mut samples {
            timer.start()?;
            (0..calls).try_for_each(|_| work())?;
            *sample = timer.stop()? / f64::from(calls);
        }
        samples.sort_by(f64::total_cmp);
        Ok(samples[SAMPLES / 2])
    }
}

/// The probes of one element type.
trait ProbeFamily<T>:
    Family<Variant = ProbeVariant> + for<'a> Family<Args<'a> = ProbeArgs<'a, T>>
{
}

impl ProbeFamily<f32> for Probes<f32> {}
impl ProbeFamily<f64> for Probes<f64> {}

fn entry<T>(variant: ProbeVariant) -> &'static Entry<Probes<T>>
where
    Probes<T>: ProbeFamily<T>,
{
    let entries = Probes::<T>::entries();
    let found = entries.iter().find(|entry| entry.variant == variant);
    found.expect("the tables have the probes that are run")
}

fn arguments<T: bytemuck::Pod>(arrays: &mut Arrays<T>, len: u32, steps: u32) -> ProbeArgs<'_, T> {
    ProbeArgs {
        len,
        steps,
        source: arrays.source.input(),
        target: arrays.target.output(),
        sums: arrays.sums.output(),
    }
}
