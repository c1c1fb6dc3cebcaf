//! Running the program.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// How a run ended.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// The program under test; WARPFUSE_BIN names another one, for instance on a machine without Rust.
pub fn path() -> PathBuf {
    let other = std::env::var_os("WARPFUSE_BIN").map(PathBuf::from);
    other.unwrap_or_else(|| env!("CARGO_BIN_EXE_warpfuse").into())
}

/// A file of the sample data.
pub fn sample(name: &str) -> PathBuf {
    let bundled = std::env::var_os("WARPFUSE_DATA_DIR").map(PathBuf::from);
    let folder =
        bundled.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data"));
    folder.join(name)
}

/// The sample data set.
pub fn diabetes() -> String {
    sample("diabetes.libsvm").display().to_string()
}

/// Runs the program with nothing on stdin.
pub fn run<S: AsRef<str>>(arguments: impl IntoIterator<Item = S>) -> Run {
    run_with(arguments, b"")
}

/// Runs the program with `input` on stdin.
pub fn run_with<S: AsRef<str>>(arguments: impl IntoIterator<Item = S>, input: &[u8]) -> Run {
    let arguments = arguments
        .into_iter()
        .map(|argument| OsString::from(argument.as_ref()));
    let mut child = Command::new(path())
        .args(arguments)
        .env_remove("WARPFUSE_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // A program that does not read its input may be gone by now.
    let _ = child.stdin.take().expect("stdin is piped").write_all(input);
    let output = child.wait_with_output().expect("the program ends");
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    let code = output
        .status
        .code()
        .unwrap_or_else(|| panic!("killed by a signal: {}\n{stderr}", output.status));
    assert!(!stderr.contains("panicked"), "{stderr}");
    Run {
        code,
        stdout,
        stderr,
    }
}

impl Run {
    /// Asserts the exit code.
    pub fn expect_code(self, code: i32) -> Run {
        assert_eq!(
            self.code, code,
            "stdout: {}\nstderr: {}",
            self.stdout, self.stderr
        );
        self
    }

    /// The one JSON object that stdout must be.
    pub fn json(&self) -> Value {
        let value: Value = serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!(
                "{error} in stdout: {}\nstderr: {}",
                self.stdout, self.stderr
            )
        });
        assert!(value.is_object(), "{value}");
        value
    }
}

/// A folder of files that goes away with the value.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    /// The path of a file in the folder, as an argument.
    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, content).expect("the folder can be written");
        path
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("the file is there")
    }
}

/// A number of a JSON object.
pub fn number(value: &Value, name: &str) -> f64 {
    value[name]
        .as_f64()
        .unwrap_or_else(|| panic!("`{name}` is no number in {value}"))
}

/// The numbers of an array of a JSON object.
pub fn numbers(value: &Value, name: &str) -> Vec<f64> {
    let array = value[name]
        .as_array()
        .unwrap_or_else(|| panic!("`{name}` is no array in {value}"));
    array
        .iter()
        .map(|number| number.as_f64().expect("a number"))
        .collect()
}

/// Trains linear regression on the sample data on the CPU; the model goes to `to`.
pub fn train_to(to: &str) -> Run {
    let data = diabetes();
    run(["train", "linreg", &data, "--device", "cpu", "-o", to]).expect_code(0)
}
