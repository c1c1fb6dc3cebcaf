//! The kernels inside this library: PTX, cubins and resource figures that `build.rs` put there.

/// The kernels, compiled for one architecture.
#[derive(Clone, Copy, Debug)]
pub struct Image {
    /// The architecture's name, such as `sm_90`.
    pub arch: &'static str,
    /// Its compute capability, major and minor.
    pub capability: (u32, u32),
    /// PTX, which the driver compiles when it is loaded, on this architecture and every newer one.
    pub ptx: &'static str,
    /// Machine code, aligned to 16 bytes, where an assembler was at hand when the library was built.
    pub cubin: Option<&'static [u8]>,
}

/// What one kernel takes of a multiprocessor when compiled for one architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The architecture's name, such as `sm_90`.
    pub arch: &'static str,
    /// The kernel's name.
    pub entry: &'static str,
    /// 32-bit registers per thread.
    pub registers: u32,
    /// Static shared memory per block, in bytes; what is given at launch comes on top.
    pub shared_bytes: u32,
}

/// `include_bytes!` promises no alignment, and the driver reads a cubin as an ELF file in place.
#[allow(dead_code, reason = "unused where no cubin is embedded")]
#[repr(C, align(16))]
struct Aligned<T>(T);

mod generated {
    #[allow(unused_imports, reason = "unused where nothing is embedded")]
    use super::{Aligned, Image, Resource};

    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}

/// All images, oldest architecture first; empty if there was no PTX compiler ([`missing`] says why).
pub fn images() -> &'static [Image] {
    generated::IMAGES
}

/// The image that suits a device best: the newest one that is not newer than the device.
pub fn image_for(capability: (u32, u32)) -> Option<&'static Image> {
    best(images(), capability)
}

/// What the assembler said about a kernel, if there was one when the library was built.
///
/// `arch` is an image's name for its architecture, such as `sm_90`.
pub fn resources(arch: &str, entry: &str) -> Option<Resource> {
    find(generated::RESOURCES, arch, entry)
}

/// Why no kernels are embedded, and what to do about it; `None` if there are.
pub fn missing() -> Option<&'static str> {
    generated::MISSING
}

impl Image {
    /// The machine code, if it runs on a device of this compute capability: the same major number, and a
    /// minor number that is not older. Otherwise the PTX has to be loaded.
    pub fn cubin_for(&self, capability: (u32, u32)) -> Option<&'static [u8]> {
        let (major, minor) = self.capability;
        self.cubin
            .filter(|_| capability.0 == major && capability.1 >= minor)
    }
}

fn best(images: &'static [Image], capability: (u32, u32)) -> Option<&'static Image> {
    images
        .iter()
        .filter(|image| image.capability <= capability)
        .max_by_key(|image| image.capability)
}

/// `build.rs` sorts by architecture and entry, as text.
fn find(table: &[Resource], arch: &str, entry: &str) -> Option<Resource> {
    table
        .binary_search_by_key(&(arch, entry), |resource| (resource.arch, resource.entry))
        .ok()
        .map(|index| table[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn image(arch: &'static str, capability: (u32, u32)) -> Image {
        Image {
            arch,
            capability,
            ptx: "",
            cubin: Some(&[1]),
        }
    }

    static TWO: [Image; 2] = [image("sm_80", (8, 0)), image("sm_90", (9, 0))];

    #[test]
    fn the_newest_image_that_is_not_too_new_is_taken() {
        let name = |capability| best(&TWO, capability).map(|image| image.arch);
        assert_eq!(name((7, 5)), None);
        assert_eq!(name((8, 0)), Some("sm_80"));
        assert_eq!(name((8, 9)), Some("sm_80"));
        assert_eq!(name((9, 0)), Some("sm_90"));
        assert_eq!(name((12, 0)), Some("sm_90"));
    }

    #[test]
    fn machine_code_runs_within_its_major_number_only() {
        assert!(TWO[0].cubin_for((8, 6)).is_some());
        assert!(TWO[0].cubin_for((9, 0)).is_none());
        assert!(TWO[1].cubin_for((8, 9)).is_none());
    }

    #[test]
    fn what_is_embedded_is_consistent() {
        assert_eq!(images().is_empty(), missing().is_some());
        for resource in generated::RESOURCES {
            assert_eq!(resources(resource.arch, resource.entry), Some(*resource));
        }
        for image in images() {
            assert!(image.ptx.contains(&format!(".target {}", image.arch)));
            let cubin = image.cubin.unwrap_or_default();
            assert!(cubin.is_empty() || cubin.as_ptr().addr() % 16 == 0);
        }
    }
}
