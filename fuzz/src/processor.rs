//! Processor time of this process.

/// Seconds that its threads have computed together; those of the clock where the system does not tell.
#[cfg(unix)]
pub fn seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure is there to be written.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
}

/// Seconds since the first call.
#[cfg(not(unix))]
pub fn seconds() -> f64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn computing_takes_processor_time() {
        let begun = seconds();
        // However fast the machine is, this ends only when some has passed.
        let mut steps = 0u64;
        while seconds() <= begun {
            steps += 1;
        }
        assert!(std::hint::black_box(steps) < u64::MAX);
    }
}
