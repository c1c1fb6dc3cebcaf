//! The kernels inside this library: PTX, cubins and resource figures that `build.rs` put there.

use std::io::Read;
use std::sync::OnceLock;

use flate2::read::DeflateDecoder;

/// The kernels, compiled for one architecture.
#[derive(Debug)]
pub struct Image {
    /// The architecture's name, such as `sm_90`.
    pub arch: &'static str,
    /// Its compute capability, major and minor.
    pub capability: (u32, u32),
    ptx: Packed,
    cubin: Option<Packed>,
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

/// A file that `build.rs` packed; unpacked when it is first asked for, and kept.
struct Packed {
    packed: &'static [u8],
    unpacked: OnceLock<Vec<u8>>,
}

mod generated {
    #[allow(unused_imports, reason = "unused where nothing is embedded")]
    use super::{Image, Packed, Resource};

    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}

/// All images, oldest architecture first; empty if there was no PTX compiler ([`missing`] says why).
pub fn images() -> &'static [Image] {
    &generated::IMAGES
}

/// The image that suits a device best: the newest one that is not newer than the device.
pub fn image_for(capability: (u32, u32)) -> Option<&'static Image> {
    best(images(), capability)
}

impl Image {
    /// Whether its kernels may be launched in clusters of blocks.
    pub fn has_clusters(&self) -> bool {
        self.capability >= (9, 0)
    }
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
    /// PTX, which the driver compiles when it is loaded, on this architecture and every newer one.
    pub fn ptx(&'static self) -> &'static str {
        std::str::from_utf8(self.ptx.bytes()).expect("PTX is ASCII")
    }

    /// The machine code, if an assembler was at hand when the library was built and if it runs on a device
    /// of this compute capability: the same major number, and a minor number that is not older. Otherwise
    /// the PTX has to be loaded.
    pub fn cubin_for(&'static self, capability: (u32, u32)) -> Option<&'static [u8]> {
        let (major, minor) = self.capability;
        let fits = capability.0 == major && capability.1 >= minor;
        self.cubin.as_ref().filter(|_| fits).map(Packed::bytes)
    }
}

impl Packed {
    #[allow(dead_code, reason = "unused where nothing is embedded")]
    const fn new(packed: &'static [u8]) -> Self {
        Packed {
            packed,
            unpacked: OnceLock::new(),
        }
    }

    fn bytes(&self) -> &[u8] {
        self.unpacked.get_or_init(|| {
            let mut bytes = Vec::new();
            DeflateDecoder::new(self.packed)
                .read_to_end(&mut bytes)
                .expect("build.rs packed it");
            bytes
        })
    }
}

impl std::fmt::Debug for Packed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} packed bytes", self.packed.len())
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

    /// Deflate of nothing: one empty final block.
    const EMPTY: &[u8] = &[3, 0];

    const fn image(arch: &'static str, capability: (u32, u32)) -> Image {
        Image {
            arch,
            capability,
            ptx: Packed::new(EMPTY),
            cubin: Some(Packed::new(EMPTY)),
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
            assert!(image.ptx().contains(&format!(".target {}", image.arch)));
            if let Some(cubin) = image.cubin_for(image.capability) {
                assert!(cubin.starts_with(b"\x7fELF"));
            }
        }
    }
}
