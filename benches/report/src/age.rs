//! Which records are older than the code that they measure.
//!
//! A record names its commit. Git says whether the family's code has changed since, lines that are only comments aside. A commit
//! that the history does not have (it was rebased after the run) is judged by dates: when the code was last written, and when the
//! run began. What all kernels share (`simt`, `cta`, the compiler) is not looked at: it would make every record old.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::record::Record;

/// A family's code, from the root of the workspace. One line for every family that `benches/` records.
const CODE: [(&str, &[&str]); 14] = [
    ("cg", &["gpu-kernels/src/cg.rs", "host/src/ops/cg.rs"]),
    ("conv1d", &["gpu-kernels/src/conv1d"]),
    (
        "cpu",
        &[
            "host/src/cpu/fused.rs",
            "host/src/cpu/sparse",
            "host/src/cpu/dense",
            "host/src/cpu/sell",
        ],
    ),
    ("fused", &["gpu-kernels/src/fused"]),
    ("io", &["host/src/io/libsvm"]),
    ("kernel_sum", &["gpu-kernels/src/kernel_sum"]),
    (
        "learning",
        &["gpu-kernels/src/objective", "gpu-kernels/src/fused"],
    ),
    ("matmul", &["gpu-kernels/src/matmul"]),
    ("objective", &["gpu-kernels/src/objective"]),
    ("plan", &["host/src/plan", "gpu-kernels/src/fused"]),
    ("qr", &["gpu-kernels/src/qr"]),
    ("reduce", &["gpu-kernels/src/reduce"]),
    ("sparse_conv", &["gpu-kernels/src/sparse_conv"]),
    ("vector", &["gpu-kernels/src/vector.rs"]),
];

/// How a record stands to today's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Age {
    /// The code is the one that was measured.
    Current,
    /// The code has changed since.
    Older,
    /// There is no history to ask, or no code is known for the family.
    Unknown,
}

/// The ages of all records, asked once for every family and commit.
#[derive(Clone, Debug, Default)]
pub struct Ages(BTreeMap<(String, String), Age>);

impl Ages {
    /// Asks the history of the workspace at `root`.
    pub fn of(records: &[Record], root: &Path) -> Ages {
        let mut ages = BTreeMap::new();
        for record in records {
            let key = (record.family.clone(), record.commit.clone());
            ages.entry(key).or_insert_with(|| age(record, root));
        }
        Ages(ages)
    }

    /// Of one record.
    pub fn age(&self, record: &Record) -> Age {
        let key = (record.family.clone(), record.commit.clone());
        self.0.get(&key).copied().unwrap_or(Age::Unknown)
    }

    /// How many of the records are older than their code.
    pub fn older<'a>(&self, records: impl IntoIterator<Item = &'a Record>) -> usize {
        let older = |record: &&Record| self.age(record) == Age::Older;
        records.into_iter().filter(older).count()
    }
}

fn age(record: &Record, root: &Path) -> Age {
    let Some((_, code)) = CODE.iter().find(|(family, _)| *family == record.family) else {
        return Age::Unknown;
    };
    match has_changed(root, &record.commit, code) {
        Some(true) => Age::Older,
        Some(false) => Age::Current,
        None => by_date(&record.date, written(root, code).as_deref()),
    }
}

/// Whether code differs from that of a commit; `None` where the history does not have it.
fn has_changed(root: &Path, commit: &str, code: &[&str]) -> Option<bool> {
    let mut arguments = vec![
        "diff",
        "--unified=0",
        "--ignore-blank-lines",
        "-I^[[:space:]]*//",
        commit,
        "HEAD",
        "--",
    ];
    arguments.extend(code);
    arguments.extend([":(exclude)**/tests.rs", ":(exclude)**/tests/**"]);
    git(root, &arguments).map(|difference| !difference.is_empty())
}

/// When code was last written, UTC, in the form of a record's date.
fn written(root: &Path, code: &[&str]) -> Option<String> {
    let mut arguments = vec![
        "log",
        "--format=%ad",
        "--date=format-local:%Y-%m-%dT%H:%M:%SZ",
        "--",
    ];
    arguments.extend(code);
    let dates = git(root, &arguments)?;
    dates.lines().max().map(str::to_owned)
}

fn by_date(measured: &str, written: Option<&str>) -> Age {
    match written {
        _ if measured.is_empty() => Age::Unknown,
        Some(written) if written > measured => Age::Older,
        Some(_) => Age::Current,
        None => Age::Unknown,
    }
}

/// What git prints; `None` if it cannot answer.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    git.current_dir(root).env("TZ", "UTC").args(arguments);
    let output = git.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(text)
}

#[cfg(test)]
mod tests {
    use super::super::record::parse;
    use super::*;

    /// A repository with one kernel, and the commits in which it was made, explained and changed.
    struct History {
        folder: std::path::PathBuf,
        commits: Vec<String>,
    }

    impl History {
        fn new(name: &str) -> History {
            let name = format!("warpfuse-age-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir_all(folder.join("gpu-kernels/src/qr")).expect("a temporary folder");
            let mut history = History {
                folder,
                commits: Vec::new(),
            };
            history.git(&["init", "--quiet"]);
            for text in [
                "fn r() {}\n",
                "// Why.\nfn r() {}\n",
                "// Why.\nfn q() {}\n",
            ] {
                history.commit(text);
            }
            history
        }

        fn git(&self, arguments: &[&str]) -> String {
            let who = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
            let arguments: Vec<&str> = who.iter().chain(arguments).copied().collect();
            git(&self.folder, &arguments).unwrap_or_else(|| panic!("git {arguments:?}"))
        }

        fn commit(&mut self, text: &str) {
            let file = self.folder.join("gpu-kernels/src/qr/mod.rs");
            std::fs::write(file, text).expect("writable");
            self.git(&["add", "."]);
            self.git(&["commit", "--quiet", "--message", "one"]);
            let commit = self.git(&["rev-parse", "HEAD"]);
            self.commits.push(commit.trim().to_owned());
        }

        fn age(&self, commit: &str, date: &str) -> Age {
            let line = r#"{"family":"qr","case":{"work":"r","layout":"vector","len":9},"dtype":"f32","failed":"no","device":"G","#;
            let line = format!(r#"{line}"commit":"{commit}","date":"{date}"}}"#);
            let records = parse(&line).expect("a record");
            Ages::of(&records, &self.folder).age(&records[0])
        }
    }

    impl Drop for History {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    #[test]
    fn code_that_changed_makes_a_record_old_and_a_comment_does_not() {
        let mut history = History::new("diff");
        let [made, explained, changed] = [0, 1, 2].map(|i| history.commits[i].clone());
        let of = |history: &History, commit: &str| history.age(commit, "2026-11-26T10:00:00Z");
        assert_eq!(of(&history, &made), Age::Older);
        assert_eq!(of(&history, &changed), Age::Current);
        history.commit("fn q() {}\n");
        assert_eq!(of(&history, &changed), Age::Current);
        assert_eq!(of(&history, &explained), Age::Older);
    }

    #[test]
    fn a_commit_that_is_gone_is_judged_by_dates() {
        let history = History::new("date");
        let gone = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(history.age(gone, "2001-01-01T00:00:00Z"), Age::Older);
        assert_eq!(history.age(gone, "2999-01-01T00:00:00Z"), Age::Current);
        assert_eq!(history.age(gone, ""), Age::Unknown);
    }

    #[test]
    fn without_a_history_nothing_is_known() {
        let folder = std::env::temp_dir().join(format!("warpfuse-age-none-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        assert_eq!(has_changed(&folder, "HEAD", &["gpu-kernels/src/qr"]), None);
        assert_eq!(written(&folder, &["gpu-kernels/src/qr"]), None);
        let _ = std::fs::remove_dir_all(&folder);
    }

    #[test]
    fn the_code_of_every_family_is_there() {
        for (family, code) in CODE {
            for path in code {
                let path = super::super::root().join(path);
                assert!(path.exists(), "{family}: {}", path.display());
            }
        }
    }
}
