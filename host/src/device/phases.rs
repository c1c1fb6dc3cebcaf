//! Where the time of a run goes, and which bytes move.

use std::fmt;
use std::time::Instant;

use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};

use super::Device;

/// A part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Opening the device and loading its kernels; beside reading.
    Open,
    /// From files to matrices in host memory.
    Read,
    /// Sums over columns on the host.
    Statistics,
    /// Conversion, upload, and whatever further forms of the matrix are made.
    Place,
    /// From the first evaluation to the coefficients.
    Solve,
    /// The figures of the report.
    Evaluate,
    /// What a report page shows besides: curves, residuals, standard errors.
    Report,
}

impl Phase {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Open => "open",
            Phase::Read => "read",
            Phase::Statistics => "statistics",
            Phase::Place => "place",
            Phase::Solve => "solve",
            Phase::Evaluate => "evaluate",
            Phase::Report => "report",
        }
    }
}

/// What a phase took.
///
/// In JSON with [`gbs`](PhaseCost::gbs) beside its fields.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PhaseCost {
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Bytes read from files.
    pub read_bytes: u64,
    /// Bytes copied to the device.
    pub sent_bytes: u64,
    /// Bytes copied from the device.
    pub received_bytes: u64,
}

impl PhaseCost {
    /// Bytes from files and across the link, 10⁹ a second; 0 where none moved or no time passed.
    pub fn gbs(&self) -> f64 {
        let bytes = self.read_bytes + self.sent_bytes + self.received_bytes;
        match self.seconds > 0.0 {
            true => bytes as f64 / self.seconds / 1e9,
            false => 0.0,
        }
    }
}

impl Serialize for PhaseCost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = serializer.serialize_struct("PhaseCost", 5)?;
        all.serialize_field("seconds", &self.seconds)?;
        all.serialize_field("read_bytes", &self.read_bytes)?;
        all.serialize_field("sent_bytes", &self.sent_bytes)?;
        all.serialize_field("received_bytes", &self.received_bytes)?;
        all.serialize_field("gbs", &self.gbs())?;
        all.end()
    }
}

/// What the phases of a run took, in the order in which they began.
///
/// In JSON an object with an object for each phase.
///
/// ```
/// use warpfuse::device::{Device, Phase, Phases};
///
/// let (device, mut phases) = (Device::cpu(), Phases::default());
/// let x = phases.time(Phase::Place, &device, || device.upload(&[1.0_f32, 2.0]))?;
/// assert_eq!(phases.of(Phase::Place).sent_bytes, 8);
/// # drop(x);
/// # Ok::<(), warpfuse::device::DeviceError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Phases(Vec<(Phase, PhaseCost)>);

impl Phases {
    /// Runs `work` as `phase`: its seconds, and the bytes that `device` counts meanwhile, are added to those of the phase.
    pub fn time<R>(&mut self, phase: Phase, device: &Device, work: impl FnOnce() -> R) -> R {
        let (before, begun) = (device.usage(), Instant::now());
        let result = work();
        let after = device.usage();
        self.add(
            phase,
            PhaseCost {
                seconds: begun.elapsed().as_secs_f64(),
                read_bytes: 0,
                sent_bytes: after.sent_bytes - before.sent_bytes,
                received_bytes: after.received_bytes - before.received_bytes,
            },
        );
        result
    }

    /// Adds to what `phase` took, and logs it.
    pub fn add(&mut self, phase: Phase, cost: PhaseCost) {
        let PhaseCost {
            seconds,
            read_bytes,
            sent_bytes,
            received_bytes,
        } = cost;
        let name = phase.name();
        tracing::info!(
            phase = name,
            seconds,
            read_bytes,
            sent_bytes,
            received_bytes,
            "phase"
        );
        self.merge(phase, cost);
    }

    /// Adds what another run, or a part of this one, took.
    pub fn extend(&mut self, other: &Phases) {
        for (phase, cost) in &other.0 {
            self.merge(*phase, *cost);
        }
    }

    /// What a phase took; nothing if it never was.
    pub fn of(&self, phase: Phase) -> PhaseCost {
        let found = self.0.iter().find(|(of, _)| *of == phase);
        found.map_or_else(PhaseCost::default, |(_, cost)| *cost)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (Phase, PhaseCost)> + '_ {
        self.0.iter().copied()
    }

    fn merge(&mut self, phase: Phase, cost: PhaseCost) {
        let at = self.0.iter().position(|(of, _)| *of == phase);
        let at = at.unwrap_or_else(|| {
            self.0.push((phase, PhaseCost::default()));
            self.0.len() - 1
        });
        let sum = &mut self.0[at].1;
        sum.seconds += cost.seconds;
        sum.read_bytes += cost.read_bytes;
        sum.sent_bytes += cost.sent_bytes;
        sum.received_bytes += cost.received_bytes;
    }
}

impl Serialize for Phases {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (phase, cost) in &self.0 {
            map.serialize_entry(phase.name(), cost)?;
        }
        map.end()
    }
}

/// Names and seconds.
impl fmt::Display for Phases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (phase, cost)) in self.iter().enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            write!(f, "{comma}{} {:.3} s", phase.name(), cost.seconds)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_of_one_phase_are_added_and_phases_keep_their_order() {
        let cost = |seconds, sent_bytes| PhaseCost {
            seconds,
            sent_bytes,
            ..PhaseCost::default()
        };
        let mut part = Phases::default();
        part.add(Phase::Place, cost(0.5, 10));
        part.add(Phase::Read, cost(0.25, 0));
        let mut all = Phases::default();
        all.add(Phase::Read, cost(1.0, 0));
        all.extend(&part);
        assert_eq!(all.to_string(), "read 1.250 s, place 0.500 s");
        assert_eq!(all.of(Phase::Place).sent_bytes, 10);
        assert_eq!(all.of(Phase::Solve), PhaseCost::default());
        let json = serde_json::to_value(&all).expect("JSON");
        assert_eq!(json["read"]["seconds"], 1.25);
        assert_eq!(json["place"]["sent_bytes"], 10);
        assert_eq!(json["place"]["gbs"], 20e-9);
    }
}
