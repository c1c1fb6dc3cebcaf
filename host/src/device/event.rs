//! Timing of work on a device.

use std::time::Instant;

use super::cuda::EventPair;
use super::{Device, DeviceError};

/// Measures the time between two points of a device's work: by events in its stream on a CUDA device,
/// by the clock elsewhere.
///
/// ```
/// use warpfuse::device::{Device, Timer};
///
/// let device = Device::cpu();
/// let mut timer = Timer::new(&device)?;
/// timer.start()?;
/// let buffer = device.zeros::<f32>(1000)?;
/// let microseconds = timer.stop()?;
/// assert!(microseconds >= 0.0 && buffer.len() == 1000);
/// # Ok::<(), warpfuse::device::DeviceError>(())
/// ```
#[derive(Debug)]
pub struct Timer(Kind);

#[derive(Debug)]
enum Kind {
    Cuda(EventPair),
    Cpu(Instant),
}

impl Timer {
    /// A timer for a device's work.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the driver makes no events.
    pub fn new(device: &Device) -> Result<Timer, DeviceError> {
        Ok(Timer(match device {
            Device::Cuda(device) => Kind::Cuda(EventPair::new(device)?),
            Device::Cpu(_) | Device::Emulator(_) => Kind::Cpu(Instant::now()),
        }))
    }

    /// Marks the beginning: after everything submitted so far.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when an earlier launch failed.
    pub fn start(&mut self) -> Result<(), DeviceError> {
        match &mut self.0 {
            Kind::Cuda(events) => events.start(),
            Kind::Cpu(start) => {
                *start = Instant::now();
                Ok(())
            }
        }
    }

    /// Marks the end, waits until the work before it has ended, and returns the microseconds since
    /// [`Timer::start`].
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when work between the marks failed, or there was no start.
    pub fn stop(&mut self) -> Result<f64, DeviceError> {
        match &mut self.0 {
            Kind::Cuda(events) => events.stop(),
            Kind::Cpu(start) => Ok(start.elapsed().as_secs_f64() * 1e6),
        }
    }
}

/// Microseconds that the work submitted by `work` takes on `device`.
///
/// # Errors
/// What `work` returns, and [`DeviceError::Driver`] as [`Timer`] does.
pub fn time<E: From<DeviceError>>(
    device: &Device,
    work: impl FnOnce() -> Result<(), E>,
) -> Result<f64, E> {
    let mut timer = Timer::new(device)?;
    timer.start()?;
    work()?;
    Ok(timer.stop()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_covers_the_work() {
        let microseconds = time(&Device::cpu(), || -> Result<(), DeviceError> {
            std::thread::sleep(std::time::Duration::from_millis(5));
            Ok(())
        });
        assert!(microseconds.unwrap() >= 5000.0);
    }

    #[test]
    fn an_error_of_the_work_comes_through() {
        let error = DeviceError::UnknownDevice { text: "x".into() };
        let result = time(&Device::cpu(), || Err(error.clone()));
        assert_eq!(result.unwrap_err(), error);
    }
}
