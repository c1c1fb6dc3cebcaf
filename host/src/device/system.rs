//! What the operating system says about this machine (Linux; elsewhere nothing is known).

use super::MemoryInfo;
use crate::process::{address_space, container_limit};

/// The processor's name, from `/proc/cpuinfo`.
pub(crate) fn processor_name() -> Option<String> {
    parse_processor_name(&std::fs::read_to_string("/proc/cpuinfo").ok()?)
}

/// Free and total memory, from `/proc/meminfo`, or what a container or `ulimit -v` leaves where that is less.
pub(crate) fn memory_info() -> Option<MemoryInfo> {
    let machine = parse_memory_info(&std::fs::read_to_string("/proc/meminfo").ok()?)?;
    let [limit, left] = match address_space() {
        None => [usize::MAX; 2],
        Some(space) => [space.limit as usize, space.left as usize],
    };
    let container = container_limit().map_or(usize::MAX, |limit| limit as usize);
    Some(MemoryInfo {
        free_bytes: machine.free_bytes.min(left).min(container),
        total_bytes: machine.total_bytes.min(limit).min(container),
    })
}

fn parse_processor_name(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo
        .lines()
        .find(|line| line.starts_with("model name"))?;
    let name = line.split_once(':')?.1.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

fn parse_memory_info(meminfo: &str) -> Option<MemoryInfo> {
    let bytes = |key: &str| -> Option<usize> {
        let line = meminfo.lines().find(|line| line.starts_with(key))?;
        let kibibytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
        kibibytes.checked_mul(1024)
    };
    Some(MemoryInfo {
        free_bytes: bytes("MemAvailable:")?,
        total_bytes: bytes("MemTotal:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_files() {
        let name = parse_processor_name("processor\t: 0\nmodel name\t: Some CPU @ 2.00GHz\n");
        assert_eq!(name.as_deref(), Some("Some CPU @ 2.00GHz"));
        let info = parse_memory_info("MemTotal:  16 kB\nMemFree: 1 kB\nMemAvailable:  8 kB\n");
        assert_eq!(
            info,
            Some(MemoryInfo {
                free_bytes: 8192,
                total_bytes: 16384
            })
        );
    }

    #[test]
    fn unknown_files_are_unknown() {
        assert_eq!(parse_processor_name("Hardware : board\n"), None);
        assert_eq!(parse_memory_info("MemTotal: many kB\n"), None);
    }
}
