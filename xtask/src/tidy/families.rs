//! A family has the same file name in every room: body, plan, operation, reference, tests, bench. Which families there are
//! says the table of kernels.

use std::collections::BTreeSet;

use super::Finding;
use super::source::File;

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

const ONE_PRODUCT: &str = "its launches are those of vectors: plan/vector";
const SOLVER: &str = "steps of a solver: the solver on the CPU is the reference";
const RATES: &str =
    "it measures the device, for the rates of plans; the sums of what it reads are the check";

const MECHANISM: &str = "sums of a group's devices are a mechanism of theirs: device/group/windows plans and launches them";

const fn except(family: &'static str, room: &'static str, reason: &'static str) -> Exception {
    Exception {
        family,
        room,
        reason,
    }
}

const EXCEPTIONS: &[Exception] = &[
    except("cg", "host/src/plan", ONE_PRODUCT),
    except("cg", "host/src/reference", SOLVER),
    except("design", "host/src/plan", ONE_PRODUCT),
    except("design", "host/src/reference", SOLVER),
    except(
        "design",
        "benches",
        "a part of fits, which are measured as a whole",
    ),
    except(
        "forms",
        "host/src/plan",
        "plan/form lists and weighs forms, plan/panel_making cuts the work",
    ),
    except(
        "forms",
        "host/src/reference",
        "copies of X, entry for entry: those of the host's layouts are the reference",
    ),
    except("peers", "host/src/plan", MECHANISM),
    except("peers", "host/src/ops", MECHANISM),
    except(
        "peers",
        "host/src/reference",
        "an addition, which the test of its entries does itself",
    ),
    except("stream", "host/src/plan", RATES),
    except("stream", "host/src/ops", RATES),
    except("stream", "host/src/reference", RATES),
    except("stream", "benches", RATES),
];

/// A file for each family and room.
#[cfg(test)]
pub fn expected() -> impl Iterator<Item = String> {
    let of = |family: &'static str| {
        let has = move |room: &&str| {
            let is_it = |e: &Exception| (e.family, e.room) == (family, *room);
            !EXCEPTIONS.iter().any(is_it)
        };
        ROOMS
            .into_iter()
            .filter(has)
            .map(move |room| format!("{room}/{family}.rs"))
    };
    gpu_kernels::families::family_names().flat_map(of)
}

pub fn findings(files: &[File]) -> Vec<Finding> {
    let families: BTreeSet<&str> = gpu_kernels::families::family_names().collect();
    let mut findings = Vec::new();
    for family in families {
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
