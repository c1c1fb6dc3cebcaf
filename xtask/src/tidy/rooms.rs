//! What a room must never know, beyond the rooms it may use: drivers, files, clocks, hardware.

use super::Finding;
use super::source::{File, line_of};

/// Words that must not occur in the code of a folder.
struct Ban {
    folder: &'static str,
    /// Files of the folder to which it does not apply.
    except: &'static [&'static str],
    words: &'static [&'static str],
    why: &'static str,
}

const BANS: &[Ban] = &[
    Ban {
        folder: "host/src/plan/",
        except: &[],
        words: &["std::fs", "std::io", "std::time", "std::env", "std::net"],
        why: "plans are pure: no clock, no files",
    },
    Ban {
        folder: "host/src/matrix/",
        except: &[],
        words: &["std::fs", "std::io", "std::path", "std::env"],
        why: "matrices know no files",
    },
    Ban {
        folder: "host/src/ops/",
        except: &[],
        words: &["std::fs", "std::path", "std::env"],
        why: "operations read no files",
    },
    Ban {
        folder: "host/src/learning/",
        except: &[],
        words: &["gpu_kernels::", "std::env"],
        why: "solvers name no kernel",
    },
    Ban {
        folder: "host/src/report/",
        except: &["host/src/report/tests.rs"],
        words: &["std::fs", "std::io", "std::time", "std::env"],
        why: "the same page for the same values: no clock, no files",
    },
    Ban {
        folder: "host/src/reference/",
        except: &[],
        words: &["unsafe ", "unsafe{", "rayon::"],
        why: "the reference is plain loops",
    },
    Ban {
        folder: "host/src/",
        except: &["host/src/device/"],
        words: &["cust::", "cust_raw::", "libloading::"],
        why: "only the device room knows the driver",
    },
    Ban {
        folder: "gpu-kernels/src/",
        except: &[
            "gpu-kernels/src/simt/nvptx.rs",
            "gpu-kernels/src/simt/nvptx/approximate.rs",
            "gpu-kernels/src/simt/nvptx/cluster.rs",
            "gpu-kernels/src/simt/nvptx/panic.rs",
            "gpu-kernels/src/simt/nvptx/shuffle.rs",
            "gpu-kernels/src/simt/nvptx/round.rs",
            "gpu-kernels/src/simt/nvptx/shared.rs",
            "gpu-kernels/src/simt/nvptx/system.rs",
            "gpu-kernels/src/simt/nvptx/tensor.rs",
            "gpu-kernels/src/simt/nvptx/words.rs",
        ],
        words: &["asm!(", "core::arch::"],
        why: "only simt/nvptx.rs and its folder know the hardware",
    },
    Ban {
        folder: "gpu-kernels/src/",
        except: &[
            "gpu-kernels/src/simt/nvptx.rs",
            "gpu-kernels/src/simt/nvptx/tensor.rs",
        ],
        words: &["gpu_at_least"],
        why: "only instructions of matrix products, clusters and wide additions differ between architectures, and `test` compiles only the first for each",
    },
    Ban {
        folder: "gpu-kernels/src/",
        except: &[],
        words: &["alloc::", "std::"],
        why: "kernels use `core` only",
    },
];

pub fn findings(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let code = file.code();
        for ban in BANS.iter().filter(|ban| ban.applies(&file.path)) {
            findings.extend(ban.findings(file, &code));
        }
    }
    findings
}

impl Ban {
    fn applies(&self, path: &str) -> bool {
        path.starts_with(self.folder) && !self.except.iter().any(|except| path.starts_with(except))
    }

    fn findings(&self, file: &File, code: &str) -> Vec<Finding> {
        self.words
            .iter()
            .flat_map(|word| code.match_indices(word))
            .filter(|&(at, _)| begins_a_word(code, at))
            .map(|(at, word)| Finding {
                file: file.path.clone(),
                line: line_of(code, at),
                message: format!("`{}` is not for this room: {}", word.trim_end(), self.why),
            })
            .collect()
    }
}

fn begins_a_word(code: &str, at: usize) -> bool {
    !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
}
