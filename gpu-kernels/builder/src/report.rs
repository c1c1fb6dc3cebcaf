//! Reads what `ptxas -v` says about each kernel.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Arch;

/// What one kernel takes of a multiprocessor, as the assembler reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// The kernel's name.
    pub entry: String,
    /// 32-bit registers per thread.
    pub registers: u32,
    /// Static shared memory per block, in bytes; what is given at launch comes on top.
    pub shared_bytes: u32,
    /// Local memory per thread for variables, in bytes.
    pub stack_bytes: u32,
    /// Bytes per thread written to local memory because registers ran out.
    pub spill_store_bytes: u32,
    /// Bytes per thread read back.
    pub spill_load_bytes: u32,
}

impl Resources {
    /// Whether variables live in local memory, which is device memory and slow.
    pub fn uses_local_memory(&self) -> bool {
        self.stack_bytes + self.spill_store_bytes + self.spill_load_bytes > 0
    }

    /// `sm_90 name: 16 bytes of stack, 8 stored, 8 loaded`.
    pub(crate) fn local_memory(&self, arch: Arch) -> String {
        format!(
            "  {arch} {}: {} bytes of stack, {} bytes of spills stored, {} loaded",
            self.entry, self.stack_bytes, self.spill_store_bytes, self.spill_load_bytes
        )
    }
}

/// Reads the whole report: one value per kernel, sorted by name.
///
/// Lines that are not understood are passed over, for the report has many; what matters is checked by the
/// caller, which knows the kernels that must be there. Functions that are not kernels are left out.
///
/// ```
/// let said = "ptxas info    : Compiling entry function 'axpy' for 'sm_90'\n\
///             ptxas info    : Function properties for axpy\n    \
///             0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
///             ptxas info    : Used 12 registers, 64 bytes smem, 372 bytes cmem[0]\n";
/// let all = gpu_kernels_builder::parse_report(said);
/// assert_eq!((all[0].entry.as_str(), all[0].registers, all[0].shared_bytes), ("axpy", 12, 64));
/// ```
pub fn parse(report: &str) -> Vec<Resources> {
    let mut kernels = BTreeMap::<String, Resources>::new();
    // The report announces a kernel, then its properties, then (last) its registers. Properties of
    // functions that it calls may stand in between, so both announcements are followed.
    let mut kernel = String::new();
    let mut function = String::new();
    for line in report.lines() {
        if let Some(name) = between(line, "Compiling entry function '", '\'') {
            kernel = name.to_owned();
            kernels.entry(kernel.clone()).or_default().entry = kernel.clone();
        } else if let Some((_, name)) = line.split_once("Function properties for ") {
            function = name.trim().to_owned();
        } else if line.contains("bytes stack frame") {
            if let Some(resources) = kernels.get_mut(&function) {
                read_local_memory(line, resources);
            }
        } else if let (Some(usage), Some(resources)) = (usage(line), kernels.get_mut(&kernel)) {
            read_usage(usage, resources);
        }
    }
    kernels.into_values().filter(|k| k.registers > 0).collect()
}

/// `    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads`
fn read_local_memory(line: &str, into: &mut Resources) {
    for part in line.split(',') {
        let bytes = leading_number(part);
        if part.contains("stack frame") {
            into.stack_bytes = bytes;
        } else if part.contains("spill stores") {
            into.spill_store_bytes = bytes;
        } else if part.contains("spill loads") {
            into.spill_load_bytes = bytes;
        }
    }
}

/// `ptxas info    : Used 32 registers, used 1 barriers, 16 bytes smem, 400 bytes cmem[0]`
fn usage(line: &str) -> Option<&str> {
    let (_, usage) = line.split_once("Used ")?;
    usage.contains(" registers").then_some(usage)
}

fn read_usage(usage: &str, into: &mut Resources) {
    for part in usage.split(',') {
        if part.contains("registers") {
            into.registers = leading_number(part);
        } else if part.contains("smem") {
            into.shared_bytes = leading_number(part);
        }
    }
}

/// The number that a part such as ` 16 bytes smem` or `16+4 bytes smem` starts with.
fn leading_number(part: &str) -> u32 {
    let part = part.trim_start();
    let amount = part.split_whitespace().next().unwrap_or_default();
    // Older releases print static and compiler-made shared memory as a sum.
    amount
        .split('+')
        .filter_map(|number| number.parse::<u32>().ok())
        .sum()
}

fn between<'a>(line: &'a str, before: &str, after: char) -> Option<&'a str> {
    let (_, rest) = line.split_once(before)?;
    rest.split_once(after).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "\
ptxas info    : 4 bytes gmem, 24 bytes cmem[4]
ptxas info    : Compiling entry function 'sparse' for 'sm_90'
ptxas info    : Function properties for sparse
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 16 bytes cumulative stack size, 4096 bytes smem, 428 bytes cmem[0]
ptxas info    : Compile time = 42.1 ms
ptxas info    : Function properties for helper
    128 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function 'dense' for 'sm_90'
ptxas info    : Function properties for dense
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers, 400 bytes cmem[0]
";

    #[test]
    fn kernels_are_read_and_sorted() {
        let all = parse(REPORT);
        let dense = Resources {
            entry: "dense".into(),
            registers: 32,
            ..Resources::default()
        };
        let sparse = Resources {
            entry: "sparse".into(),
            registers: 255,
            shared_bytes: 4096,
            stack_bytes: 16,
            spill_store_bytes: 8,
            spill_load_bytes: 12,
        };
        assert_eq!(all, [dense, sparse]);
    }

    #[test]
    fn only_kernels_with_local_memory_use_it() {
        let all = parse(REPORT);
        assert!(!all[0].uses_local_memory());
        assert!(all[1].uses_local_memory());
    }

    #[test]
    fn sums_of_shared_memory_are_added() {
        assert_eq!(leading_number(" 1024+32 bytes smem"), 1056);
    }

    #[test]
    fn a_kernel_without_a_register_count_is_not_made_up() {
        let cut = "ptxas info    : Compiling entry function 'cut' for 'sm_90'\n";
        assert!(parse(cut).is_empty());
        assert!(parse("").is_empty());
    }
}
