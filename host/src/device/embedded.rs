//! The kernels inside this library: PTX, machine code and resource figures that `build.rs` put there.
//!
//! Kernels are packed in groups of neighbours by name, so that a program unpacks little more than what it launches. PTX is there for the newest architecture only, whose machine code devices of later generations cannot run.

use std::sync::{Mutex, PoisonError};

/// The kernels, compiled for one architecture.
#[derive(Debug)]
pub struct Image {
    /// The architecture's name, such as `sm_90`.
    pub arch: &'static str,
    /// Its compute capability, major and minor.
    pub capability: (u32, u32),
    ptx: Option<Archive>,
    cubin: Option<Archive>,
    /// Sorted by name.
    kernels: &'static [Kernel],
}

/// One kernel of an image.
#[derive(Debug)]
pub struct Kernel {
    /// Its name.
    pub entry: &'static str,
    /// Registers of a thread and static shared memory of a block, as the assembler said.
    takes: Option<(u32, u32)>,
    ptx: Part,
    cubin: Part,
}

/// What one kernel takes of a multiprocessor when compiled for one architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    /// 32-bit registers per thread.
    pub registers: u32,
    /// Static shared memory per block, in bytes; what is given at launch comes on top.
    pub shared_bytes: u32,
}

/// What can be loaded into a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Machine code of the device's generation.
    MachineCode,
    /// Text that the driver compiles, for the image's architecture and every newer one.
    Ptx,
}

/// The packed files of all kernels of an image.
struct Archive {
    content: &'static [u8],
    groups: &'static [Group],
    /// The group that was unpacked last, and its number: kernels of one family are loaded one after the other.
    last: Mutex<Option<(usize, Vec<u8>)>>,
}

/// Where a group begins in its archive, its bytes there, and its bytes when unpacked.
#[derive(Clone, Copy, Debug)]
struct Group(usize, usize, usize);

/// The group of a kernel, where it begins there when unpacked, and its bytes.
#[derive(Clone, Copy, Debug)]
struct Part(usize, usize, usize);

mod generated {
    #[allow(unused_imports, reason = "unused where nothing is embedded")]
    use super::{Archive, Group, Image, Kernel, Part};

    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}

/// All images, oldest architecture first; empty if there was no PTX compiler ([`missing`] says why).
pub fn images() -> &'static [Image] {
    &generated::IMAGES
}

/// The image that suits a device best: the newest one that is not newer than the device and that it can run.
pub fn image_for(capability: (u32, u32)) -> Option<&'static Image> {
    best(images(), capability, |image| image.form_for(capability))
}

/// The newest image with PTX for a device, whatever machine code there is: what a device of a later generation gets.
pub fn ptx_for(capability: (u32, u32)) -> Option<&'static Image> {
    best(images(), capability, |image| {
        image.ptx.is_some().then_some(Form::Ptx)
    })
}

/// What the assembler said about a kernel, if there was one when the library was built.
///
/// `arch` is an image's name for its architecture, such as `sm_90`.
pub fn resources(arch: &str, entry: &str) -> Option<Resource> {
    let image = images().iter().find(|image| image.arch == arch)?;
    image.kernel(entry)?.resource()
}

/// Why no kernels are embedded, and what to do about it; `None` if there are.
pub fn missing() -> Option<&'static str> {
    generated::MISSING
}

impl Image {
    /// Whether its kernels may be launched in clusters of blocks.
    pub fn has_clusters(&self) -> bool {
        self.capability >= (9, 0)
    }

    /// All kernels, by name.
    pub fn kernels(&self) -> &'static [Kernel] {
        self.kernels
    }

    /// The kernel of this name.
    pub fn kernel(&self, entry: &str) -> Option<&'static Kernel> {
        let at = self
            .kernels
            .binary_search_by_key(&entry, |kernel| kernel.entry);
        at.ok().map(|at| &self.kernels[at])
    }

    /// Whether it holds something in this form.
    pub fn has(&self, form: Form) -> bool {
        self.archive(form).is_some()
    }

    /// In which form a device of this compute capability can load it: machine code if an assembler was at hand when the library
    /// was built and the major number is the same and the minor number not older, else PTX; `None` if neither is there.
    pub fn form_for(&self, capability: (u32, u32)) -> Option<Form> {
        let (major, minor) = self.capability;
        let fits = capability.0 == major && capability.1 >= minor;
        let machine_code = self.cubin.as_ref().filter(|_| fits);
        let ptx = self.ptx.as_ref().filter(|_| capability >= self.capability);
        machine_code
            .map(|_| Form::MachineCode)
            .or(ptx.map(|_| Form::Ptx))
    }

    /// A kernel's file; `None` if the image does not hold this form.
    ///
    /// # Panics
    /// If the library's own data are damaged.
    pub fn unpacked(&self, kernel: &Kernel, form: Form) -> Option<Vec<u8>> {
        let part = match form {
            Form::MachineCode => kernel.cubin,
            Form::Ptx => kernel.ptx,
        };
        self.archive(form).map(|archive| archive.unpacked(part))
    }

    fn archive(&self, form: Form) -> Option<&Archive> {
        match form {
            Form::MachineCode => self.cubin.as_ref(),
            Form::Ptx => self.ptx.as_ref(),
        }
    }
}

impl Kernel {
    /// What the assembler said about it, if there was one when the library was built.
    pub fn resource(&self) -> Option<Resource> {
        self.takes.map(|(registers, shared_bytes)| Resource {
            registers,
            shared_bytes,
        })
    }

    /// Bytes of its files when unpacked.
    pub fn bytes(&self) -> usize {
        self.cubin.2 + self.ptx.2
    }
}

impl Archive {
    #[allow(dead_code, reason = "unused where nothing is embedded")]
    const fn new(content: &'static [u8], groups: &'static [Group]) -> Self {
        Archive {
            content,
            groups,
            last: Mutex::new(None),
        }
    }

    fn unpacked(&self, Part(at, start, bytes): Part) -> Vec<u8> {
        // Replaced whole, so a panic elsewhere leaves it usable.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = last.take().filter(|(kept, _)| *kept == at);
        let (_, group) = last.insert(kept.unwrap_or_else(|| (at, self.group(at))));
        group[start..start + bytes].to_vec()
    }

    fn group(&self, at: usize) -> Vec<u8> {
        let Group(start, packed, unpacked) = self.groups[at];
        zstd::bulk::decompress(&self.content[start..start + packed], unpacked)
            .expect("build.rs packed it")
    }
}

impl std::fmt::Debug for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} packed bytes", self.content.len())
    }
}

fn best(
    images: &'static [Image],
    capability: (u32, u32),
    form: impl Fn(&Image) -> Option<Form>,
) -> Option<&'static Image> {
    images
        .iter()
        .filter(|image| image.capability <= capability && form(image).is_some())
        .max_by_key(|image| image.capability)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn image(arch: &'static str, capability: (u32, u32), ptx: bool) -> Image {
        Image {
            arch,
            capability,
            ptx: if ptx {
                Some(Archive::new(&[], &[]))
            } else {
                None
            },
            cubin: Some(Archive::new(&[], &[])),
            kernels: &[],
        }
    }

    static TWO: [Image; 2] = [image("sm_80", (8, 0), false), image("sm_90", (9, 0), true)];

    #[test]
    fn the_newest_image_that_the_device_can_run_is_taken() {
        let name = |capability| {
            best(&TWO, capability, |image| image.form_for(capability)).map(|image| image.arch)
        };
        assert_eq!(name((7, 5)), None);
        assert_eq!(name((8, 0)), Some("sm_80"));
        assert_eq!(name((8, 9)), Some("sm_80"));
        assert_eq!(name((9, 0)), Some("sm_90"));
        assert_eq!(name((12, 0)), Some("sm_90"));
    }

    #[test]
    fn machine_code_runs_within_its_major_number_only() {
        assert_eq!(TWO[0].form_for((8, 6)), Some(Form::MachineCode));
        assert_eq!(TWO[0].form_for((9, 0)), None);
        assert_eq!(TWO[1].form_for((8, 9)), None);
        assert_eq!(TWO[1].form_for((9, 0)), Some(Form::MachineCode));
        assert_eq!(TWO[1].form_for((10, 0)), Some(Form::Ptx));
    }

    #[test]
    fn kernels_are_cut_out_of_their_groups() {
        let texts = [b"one".as_slice(), b"two", b"three"];
        let of_two = [texts[0], texts[1]].concat();
        let packed = [of_two.as_slice(), texts[2]].map(|group| {
            let packed = zstd::bulk::compress(group, 3).expect("memory suffices");
            (packed, group.len())
        });
        let content: Vec<u8> = packed
            .iter()
            .flat_map(|(packed, _)| packed.clone())
            .collect();
        let (first, second) = (packed[0].0.len(), packed[1].0.len());
        let groups = [
            Group(0, first, packed[0].1),
            Group(first, second, packed[1].1),
        ];
        let archive = Archive::new(content.leak(), Vec::from(groups).leak());
        let parts = [Part(0, 0, 3), Part(0, 3, 3), Part(1, 0, 5)];
        // Forwards, backwards, and a group anew after another.
        for at in [0, 1, 2, 2, 1, 0, 2] {
            assert_eq!(archive.unpacked(parts[at]), texts[at]);
        }
    }

    #[test]
    fn what_is_embedded_is_consistent() {
        assert_eq!(images().is_empty(), missing().is_some());
        for image in images() {
            let names: Vec<&str> = image.kernels().iter().map(|kernel| kernel.entry).collect();
            assert!(names.is_sorted() && !names.is_empty());
            for kernel in image.kernels() {
                let found = image.kernel(kernel.entry).map(|found| found.entry);
                assert_eq!(found, Some(kernel.entry));
                assert_eq!(resources(image.arch, kernel.entry), kernel.resource());
            }
            for kernel in image.kernels().iter().step_by(50) {
                if let Some(ptx) = image.unpacked(kernel, Form::Ptx) {
                    let ptx = String::from_utf8(ptx).expect("PTX is ASCII");
                    assert!(ptx.contains(&format!(".target {}", image.arch)));
                    assert!(ptx.contains(&format!(".entry {}(", kernel.entry)));
                }
                if let Some(cubin) = image.unpacked(kernel, Form::MachineCode) {
                    assert!(cubin.starts_with(b"\x7fELF"));
                }
            }
        }
        let newest = images().last();
        assert!(newest.is_none_or(|image| image.has(Form::Ptx)));
    }
}
