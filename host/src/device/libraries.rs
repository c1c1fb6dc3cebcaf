//! Which of NVIDIA's libraries the dynamic linker finds. Level: sys.

/// A library under the names that its versions have, the newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Library {
    /// What it is, for people.
    pub purpose: &'static str,
    /// File names.
    pub names: &'static [&'static str],
}

/// The driver, which the CUDA device needs, and the libraries that benchmarks compare with.
pub const KNOWN: [Library; 3] = [
    Library {
        purpose: "CUDA driver",
        names: &["libcuda.so.1", "libcuda.so", "nvcuda.dll"],
    },
    Library {
        purpose: "cuBLAS",
        names: &[
            "libcublas.so.13",
            "libcublas.so.12",
            "libcublas.so.11",
            "libcublas.so",
        ],
    },
    Library {
        purpose: "cuSPARSE",
        names: &[
            "libcusparse.so.13",
            "libcusparse.so.12",
            "libcusparse.so.11",
            "libcusparse.so",
        ],
    },
];

impl Library {
    /// The first name that can be opened. The library is closed again; nothing of it is called.
    ///
    /// ```
    /// use warpfuse::device::libraries::Library;
    /// let nothing = Library { purpose: "nothing", names: &["libno-such-library.so"] };
    /// assert_eq!(nothing.find(), None);
    /// ```
    pub fn find(&self) -> Option<&'static str> {
        self.names.iter().copied().find(|name| opens(name))
    }
}

#[cfg(feature = "cuda")]
fn opens(name: &str) -> bool {
    // SAFETY: initialisers of these libraries are made to run in any process that opens them, and no symbol
    // of the library is used.
    unsafe { libloading::Library::new(name) }.is_ok()
}

#[cfg(not(feature = "cuda"))]
fn opens(_name: &str) -> bool {
    false
}
