//! Which rooms of the library use which: the arrows of the house, and no others.

use super::Finding;
use super::source::{File, line_of};

const LIBRARY: &str = "host/src/";

/// A room and the rooms that it may use.
struct Room {
    name: &'static str,
    uses: &'static [&'static str],
}

/// `bytes → io → matrix → plan → device → operation → learning → report → cli`, in words. The CPU's bodies work on
/// slices and know no room; the reference knows matrices alone.
const ROOMS: &[Room] = &[
    // Loops on all threads: the only room that everyone may use.
    Room {
        name: "parallel",
        uses: &[],
    },
    Room {
        name: "process",
        uses: &[],
    },
    Room {
        name: "mapped",
        uses: &["parallel"],
    },
    // Files that have no name until they are complete.
    Room {
        name: "unfinished",
        uses: &[],
    },
    // Files that are written as a whole or not at all: of data and of models.
    Room {
        name: "whole",
        uses: &["unfinished"],
    },
    Room {
        name: "matrix",
        uses: &["mapped", "parallel"],
    },
    Room {
        name: "io",
        uses: &[
            "mapped",
            "matrix",
            "parallel",
            "process",
            "unfinished",
            "whole",
        ],
    },
    Room {
        name: "reference",
        uses: &["matrix"],
    },
    Room {
        name: "cpu",
        uses: &["parallel", "process"],
    },
    Room {
        name: "plan",
        uses: &["matrix", "parallel"],
    },
    Room {
        name: "layout",
        uses: &["matrix", "plan", "parallel"],
    },
    Room {
        name: "device",
        uses: &["plan", "cpu", "parallel", "process"],
    },
    Room {
        name: "ops",
        uses: &["matrix", "plan", "layout", "cpu", "device", "parallel"],
    },
    Room {
        name: "learning",
        uses: &["matrix", "device", "ops", "parallel", "whole"],
    },
    Room {
        name: "tune",
        uses: &["process", "matrix", "plan", "device", "ops", "reference"],
    },
    Room {
        name: "report",
        uses: &[
            "matrix", "plan", "device", "ops", "learning", "tune", "parallel",
        ],
    },
    Room {
        name: "cli",
        uses: &[
            "process", "matrix", "io", "plan", "device", "ops", "learning", "tune", "report",
            "parallel", "whole",
        ],
    },
    Room {
        name: "bin",
        uses: &["cli"],
    },
];

pub fn findings(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        if let Some(inside) = file.path.strip_prefix(LIBRARY) {
            match room_of(inside) {
                Some(room) => findings.extend(forbidden_uses(file, inside, room)),
                None => findings.extend(unknown_room(file, inside)),
            }
        }
    }
    findings
}

fn room_of(inside: &str) -> Option<&'static Room> {
    let name = inside.split('/').next()?.trim_end_matches(".rs");
    ROOMS.iter().find(|room| room.name == name)
}

/// A folder that the table does not know would be free of rules.
fn unknown_room(file: &File, inside: &str) -> Option<Finding> {
    (inside != "lib.rs").then(|| Finding {
        file: file.path.clone(),
        line: 0,
        message:
            "this room is not in the table of xtask/src/tidy/arrows.rs: add it with what it may use"
                .into(),
    })
}

fn forbidden_uses(file: &File, inside: &str, room: &Room) -> Vec<Finding> {
    let code = file.code();
    let mut findings = Vec::new();
    for (position, used) in used_rooms(&code, depth(inside)) {
        if used != room.name && !room.uses.contains(&used) {
            findings.push(Finding {
                file: file.path.clone(),
                line: line_of(&code, position),
                message: format!(
                    "`{}` uses `{used}`, but may use only: {}",
                    room.name,
                    list(room.uses)
                ),
            });
        }
    }
    findings
}

fn list(names: &[&str]) -> String {
    if names.is_empty() {
        return "nothing".into();
    }
    names.join(", ")
}

/// How many `super` lead from the module of a file to the crate's root.
fn depth(inside: &str) -> usize {
    let parts = inside.split('/').count();
    if inside.ends_with("/mod.rs") {
        parts - 1
    } else {
        parts
    }
}

/// Rooms named in paths, with the position of the path.
fn used_rooms(code: &str, depth: usize) -> Vec<(usize, &'static str)> {
    let to_root = "super::".repeat(depth);
    let mut used = Vec::new();
    for root in ["crate::", "warpfuse::", to_root.as_str()] {
        for (at, _) in code.match_indices(root) {
            if code[..at].ends_with(|c: char| c.is_alphanumeric() || "_$:".contains(c)) {
                continue;
            }
            for name in names_at(&code[at + root.len()..]) {
                used.extend(
                    ROOMS
                        .iter()
                        .find(|room| room.name == name)
                        .map(|room| (at, room.name)),
                );
            }
        }
    }
    used
}

/// The first names of a path: one, or those of a group such as `{io::read, matrix::{Csr, Dense}}`.
fn names_at(path: &str) -> Vec<&str> {
    let Some(group) = path.strip_prefix('{') else {
        return vec![name(path)];
    };
    let mut names = vec![name(group)];
    let mut open = 1;
    for (at, c) in group.char_indices() {
        match c {
            '{' => open += 1,
            '}' => open -= 1,
            ',' if open == 1 => names.push(name(&group[at + 1..])),
            _ => {}
        }
        if open == 0 {
            break;
        }
    }
    names
}

fn name(text: &str) -> &str {
    let text = text.trim_start();
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_'));
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(code: &str, depth: usize) -> Vec<&'static str> {
        used_rooms(code, depth)
            .into_iter()
            .map(|(_, name)| name)
            .collect()
    }

    #[test]
    fn paths_groups_and_nested_groups_are_read() {
        assert_eq!(names("use crate::io::read;", 1), ["io"]);
        assert_eq!(
            names("use crate::{io::{read, plan}, matrix,\n    ops::X};", 1),
            ["io", "matrix", "ops"]
        );
        assert_eq!(names("let x = crate::plan::occupancy(1);", 1), ["plan"]);
    }

    #[test]
    fn supers_that_reach_the_root_are_followed() {
        assert_eq!(names("use super::super::io::X;", 2), ["io"]);
        assert!(names("use super::io::X;", 2).is_empty());
    }

    #[test]
    fn other_crates_are_not_ours() {
        assert!(names("use my_crate::io::X; use x::crate::io;", 1).is_empty());
    }

    #[test]
    fn the_table_knows_the_rooms_it_names_and_has_no_circle() {
        for (index, room) in ROOMS.iter().enumerate() {
            for used in room.uses {
                let position = ROOMS.iter().position(|other| other.name == *used);
                assert!(
                    position.is_some_and(|p| p < index),
                    "{} uses {used}",
                    room.name
                );
            }
        }
    }

    #[test]
    fn depths_count_modules() {
        assert_eq!(depth("io/mod.rs"), 1);
        assert_eq!(depth("io/libsvm.rs"), 2);
        assert_eq!(depth("bin/warpfuse.rs"), 2);
    }
}
