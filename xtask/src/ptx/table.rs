//! The resource figures as a text table.

use std::fmt::Write;

use gpu_kernels_builder::{Image, PtxOutput, Resources};

/// One table per architecture, then where the files lie.
pub fn text(output: &PtxOutput) -> String {
    let mut text = String::new();
    for image in &output.images {
        let _ = writeln!(text, "{}", rows(image));
    }
    let _ = writeln!(text, "compiled by {}", output.toolchain.version);
    for image in &output.images {
        let _ = writeln!(text, "{}: {}", image.arch, image.folder.display());
    }
    text
}

fn rows(image: &Image) -> String {
    let width = image
        .resources
        .iter()
        .map(|kernel| kernel.entry.len())
        .max()
        .unwrap_or(0)
        .max(image.arch.name().len());
    let mut text = format!(
        "{:width$} {:>9} {:>8} {:>7} {:>7}\n",
        image.arch, "registers", "shared B", "stack B", "spill B"
    );
    for kernel in &image.resources {
        let _ = writeln!(
            text,
            "{:width$} {:>9} {:>8} {:>7} {:>7}",
            kernel.entry,
            kernel.registers,
            kernel.shared_bytes,
            kernel.stack_bytes,
            spills(kernel),
        );
    }
    text
}

fn spills(kernel: &Resources) -> u32 {
    kernel.spill_store_bytes + kernel.spill_load_bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_kernels_builder::Arch;

    #[test]
    fn names_and_figures_line_up() {
        let kernel = |entry: &str, registers| Resources {
            entry: entry.into(),
            registers,
            shared_bytes: 16,
            ..Resources::default()
        };
        let image = Image {
            arch: Arch::Sm90,
            folder: "k".into(),
            kernels: Vec::new(),
            assembled: true,
            resources: vec![kernel("a", 32), kernel("longer_name", 128)],
        };
        let text = rows(&image);
        let lines: Vec<_> = text.lines().collect();
        assert!(
            lines.iter().all(|line| line.len() == lines[0].len()),
            "{text}"
        );
        assert!(
            lines[2].starts_with("longer_name       128       16"),
            "{text}"
        );
    }
}
