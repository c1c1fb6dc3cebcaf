//! A family has the same file name in every room: body, plan, operation, reference, tests, bench.

use super::Finding;
use super::source::File;

const FAMILIES: [&str; 7] = [
    "conv1d",
    "fused",
    "kernel_sum",
    "matmul",
    "objective",
    "reduce",
    "vector",
];

const ROOMS: [&str; 6] = [
    "gpu-kernels/src",
    "host/src/plan",
    "host/src/ops",
    "host/src/reference",
    "tests",
    "benches",
];

/// A room that a family does not have.
struct Exception {
    family: &'static str,
    room: &'static str,
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[];

pub fn findings(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for family in FAMILIES {
        for room in ROOMS {
            findings.extend(finding(files, family, room, EXCEPTIONS));
        }
    }
    findings
}

fn finding(files: &[File], family: &str, room: &str, exceptions: &[Exception]) -> Option<Finding> {
    let present = files.iter().any(|file| belongs(&file.path, family, room));
    let exception = exceptions
        .iter()
        .find(|exception| exception.family == family && exception.room == room);
    let message = match (present, exception) {
        (true, None) | (false, Some(_)) => return None,
        (false, None) => format!("the family `{family}` has no file of its name here"),
        (true, Some(exception)) => format!(
            "the family `{family}` is here after all: remove the exception ({})",
            exception.reason
        ),
    };
    Some(Finding {
        file: room.to_owned(),
        line: 0,
        message,
    })
}

/// Whether a file, or one of its folders below the room, has the family's name.
fn belongs(path: &str, family: &str, room: &str) -> bool {
    let Some(inside) = path.strip_prefix(room).and_then(|p| p.strip_prefix('/')) else {
        return false;
    };
    let mut parts = inside.split('/');
    parts.any(|part| part.strip_suffix(".rs").unwrap_or(part) == family)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(paths: &[&str]) -> Vec<File> {
        paths
            .iter()
            .map(|path| File {
                path: (*path).into(),
                text: String::new(),
            })
            .collect()
    }

    #[test]
    fn a_file_or_a_folder_of_the_name_will_do() {
        let file = files(&["host/src/plan/fused.rs"]);
        assert_eq!(finding(&file, "fused", "host/src/plan", &[]), None);
        let folder = files(&["host/src/plan/fused/mod.rs"]);
        assert_eq!(finding(&folder, "fused", "host/src/plan", &[]), None);
        let neither = files(&["host/src/plan/fused_dense.rs", "host/src/ops/fused.rs"]);
        assert!(finding(&neither, "fused", "host/src/plan", &[]).is_some());
    }

    #[test]
    fn exceptions_excuse_and_outdated_ones_are_found() {
        let exceptions = [Exception {
            family: "fused",
            room: "benches",
            reason: "measured elsewhere",
        }];
        assert_eq!(finding(&[], "fused", "benches", &exceptions), None);
        let present = files(&["benches/benches/fused.rs"]);
        let found = finding(&present, "fused", "benches", &exceptions).expect("outdated");
        assert!(found.message.contains("measured elsewhere"));
    }
}
