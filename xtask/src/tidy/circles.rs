//! Circles of imports within a room: files that use each other can only be read, moved and compiled together.
//!
//! Two or three files that are one idea may use each other. What a parent re-exports is a door: whoever goes through it uses
//! the file behind, and the door itself uses nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::source::File;

/// Files that may use each other.
const MOST_FILES: usize = 3;

/// A folder below the root of a crate, and the root.
struct Room {
    root: &'static str,
    folder: &'static str,
}

const ROOMS: [Room; 4] = [
    Room {
        root: "host/src/",
        folder: "plan",
    },
    Room {
        root: "host/src/",
        folder: "ops",
    },
    Room {
        root: "host/src/",
        folder: "learning",
    },
    Room {
        root: "gpu-kernels/src/",
        folder: "",
    },
];

/// A room that still has a larger circle.
struct Exception {
    folder: &'static str,
    /// Files of its largest circle at most.
    files: usize,
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[];

pub fn findings(files: &[File]) -> Vec<Finding> {
    let of_room = |room: &Room| {
        let circles = Modules::of(files, room.root).circles(room.folder);
        let exception = EXCEPTIONS.iter().find(|one| one.folder == room.folder);
        judge(room, &circles, exception)
    };
    ROOMS.iter().flat_map(of_room).collect()
}

fn judge(room: &Room, circles: &[Vec<String>], exception: Option<&Exception>) -> Vec<Finding> {
    let most = exception.map_or(MOST_FILES, |exception| exception.files);
    let mut found: Vec<Finding> = circles
        .iter()
        .filter(|circle| circle.len() > most)
        .map(|circle| Finding {
            file: circle[0].clone(),
            line: 0,
            message: format!(
                "a circle of {} files that use each other, expected at most {most}: move what they share below them ({})",
                circle.len(),
                circle.join(", ")
            ),
        })
        .collect();
    let largest = circles.iter().map(Vec::len).max().unwrap_or(0);
    if let Some(exception) = exception.filter(|_| largest <= MOST_FILES) {
        found.push(Finding {
            file: format!("{}{}", room.root, room.folder),
            line: 0,
            message: format!(
                "no large circle is left here: remove the exception ({})",
                exception.reason
            ),
        });
    }
    found
}

/// The path of a module below the root of its crate.
type Module = Vec<String>;

/// A module's file, and what it names.
#[derive(Default)]
struct Source {
    file: String,
    /// Paths of the names that it imports for itself, by the name.
    imports: BTreeMap<String, Vec<String>>,
    /// The same of those that it re-exports.
    doors: BTreeMap<String, Vec<String>>,
    /// Other paths.
    paths: Vec<Vec<String>>,
}

/// The modules of a crate.
struct Modules(BTreeMap<Module, Source>);

impl Modules {
    fn of(files: &[File], root: &str) -> Self {
        let inside = |file: &&File| file.is_rust() && file.path.starts_with(root);
        let modules = files.iter().filter(inside).filter_map(|file| {
            let module = module_of(&file.path[root.len()..])?;
            Some((module, Source::of(file)))
        });
        Modules(modules.collect())
    }

    /// Files that use each other, in groups of two and more, of a folder.
    fn circles(&self, folder: &str) -> Vec<Vec<String>> {
        let is_inside =
            |module: &&Module| folder.is_empty() || module.first().is_some_and(|m| m == folder);
        let inside: BTreeSet<&Module> = self.0.keys().filter(is_inside).collect();
        let mut uses: BTreeMap<&Module, BTreeSet<&Module>> = BTreeMap::new();
        for module in &inside {
            let used = self.used(module);
            uses.insert(*module, used.intersection(&inside).copied().collect());
        }
        let reached: BTreeMap<&Module, BTreeSet<&Module>> = uses
            .keys()
            .map(|module| (*module, reached(module, &uses)))
            .collect();
        let mut left = inside;
        let mut circles = Vec::new();
        while let Some(module) = left.pop_first() {
            let back = |other: &&&Module| {
                reached[module].contains(**other) && reached[**other].contains(module)
            };
            let others: Vec<&Module> = left.iter().filter(back).copied().collect();
            left.retain(|other| !others.contains(other));
            if !others.is_empty() {
                let all = [module].into_iter().chain(others);
                circles.push(all.map(|module| self.0[module].file.clone()).collect());
            }
        }
        circles
    }

    /// The modules in whose files something is that a module names.
    fn used(&self, module: &Module) -> BTreeSet<&Module> {
        let source = &self.0[module];
        let behind_doors = source
            .doors
            .values()
            .filter_map(|path| self.home(module, path, 0));
        // What is below a module is its own to offer.
        let behind_doors = behind_doors.filter(|home| !home.starts_with(module));
        let imported = source.imports.values();
        let named = imported
            .chain(&source.paths)
            .filter_map(|path| self.home(module, path, 0));
        let all = named.chain(behind_doors);
        all.filter(|home| *home != module).collect()
    }

    /// The module in whose file the end of a path is; `None` for other crates.
    fn home(&self, module: &Module, path: &[String], doors: usize) -> Option<&Module> {
        let (mut at, mut rest) = self.start(module, path)?;
        while let Some((name, after)) = rest.split_first() {
            let below: Module = at.iter().chain([name]).cloned().collect();
            if !self.0.contains_key(&below) {
                break;
            }
            (at, rest) = (below, after);
        }
        let source = self.0.get(&at);
        let door = source.and_then(|source| source.doors.get(rest.first()?));
        // Doors may lead through doors, but not for ever.
        if let Some(door) = door.filter(|_| doors < 8) {
            let through: Vec<String> = door.iter().chain(&rest[1..]).cloned().collect();
            return self.home(&at, &through, doors + 1);
        }
        self.0.get_key_value(&at).map(|(module, _)| module)
    }

    fn start<'p>(&self, module: &Module, path: &'p [String]) -> Option<(Module, &'p [String])> {
        let (first, after) = path.split_first()?;
        match first.as_str() {
            "crate" => Some((Module::new(), after)),
            "self" => Some((module.clone(), after)),
            "super" => {
                let supers = path.iter().take_while(|name| *name == "super").count();
                let depth = module.len().checked_sub(supers)?;
                Some((module[..depth].to_vec(), &path[supers..]))
            }
            _ => {
                if let Some(import) = self
                    .0
                    .get(module)
                    .and_then(|source| source.imports.get(first))
                {
                    // An import of another crate, or of itself, begins nowhere.
                    let is_local = matches!(import[0].as_str(), "crate" | "self" | "super");
                    let full: Vec<String> = import.iter().chain(after).cloned().collect();
                    let home = is_local.then(|| self.home(module, &full, 0)).flatten()?;
                    return Some((home.clone(), &[]));
                }
                let below: Module = module.iter().chain([first]).cloned().collect();
                self.0.contains_key(&below).then(|| (module.clone(), path))
            }
        }
    }
}

/// What is reached from a module in any number of steps.
fn reached<'m>(
    from: &'m Module,
    uses: &BTreeMap<&'m Module, BTreeSet<&'m Module>>,
) -> BTreeSet<&'m Module> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        for next in &uses[module] {
            if found.insert(*next) {
                open.push(next);
            }
        }
    }
    found
}

/// `None` for programs of their own, which are no modules.
fn module_of(inside: &str) -> Option<Module> {
    let path = inside.strip_suffix(".rs")?;
    let path = path.strip_suffix("/mod").unwrap_or(path);
    let names = path
        .split('/')
        .filter(|name| *name != "lib")
        .map(str::to_owned);
    (!path.starts_with("bin/") && path != "main").then(|| names.collect())
}

impl Source {
    fn of(file: &File) -> Self {
        let code = file.code();
        let mut source = Source {
            file: file.path.clone(),
            ..Source::default()
        };
        let mut body = String::new();
        let mut left = code.as_str();
        while let Some((before, is_door, tree, after)) = next_import(left) {
            body.push_str(before);
            for (name, path) in expand(tree) {
                let list = if is_door {
                    &mut source.doors
                } else {
                    &mut source.imports
                };
                list.insert(name, path);
            }
            left = after;
        }
        body.push_str(left);
        source.paths = paths(&body);
        source
    }
}

/// The next `use`: what is before, whether it re-exports, its tree, and what is after.
fn next_import(code: &str) -> Option<(&str, bool, &str, &str)> {
    let mut from = 0;
    loop {
        let at = from + code[from..].find("use ")?;
        let line = code[..at].rfind('\n').map_or(0, |end| end + 1);
        let visibility = code[line..at].trim();
        if visibility.is_empty() || visibility.starts_with("pub") && !visibility.contains(' ') {
            let tree = &code[at + "use ".len()..];
            let end = tree.find(';')?;
            return Some((
                &code[..line],
                !visibility.is_empty(),
                &tree[..end],
                &tree[end + 1..],
            ));
        }
        from = at + "use ".len();
    }
}

/// The names that a tree of imports brings, and their paths.
fn expand(tree: &str) -> Vec<(String, Vec<String>)> {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let (path, renamed) = match tree.split_once(" as ") {
            Some((path, name)) => (path, Some(name.trim())),
            None => (tree, None),
        };
        let mut path: Vec<String> = path
            .split("::")
            .map(|name| name.trim().to_owned())
            .collect();
        if path.len() > 1 && path.last().is_some_and(|name| name == "self") {
            path.pop();
        }
        let name = renamed.map(str::to_owned).or_else(|| path.last().cloned());
        return name.map(|name| (name, path)).into_iter().collect();
    };
    let before = tree[..open].trim().trim_end_matches(':');
    let close = tree.rfind('}').unwrap_or(tree.len());
    let inner = &tree[open + 1..close];
    let within = |part: &str| expand(&format!("{before}::{}", part.trim()));
    parts(inner).into_iter().flat_map(within).collect()
}

/// The parts of a group, which may have groups in them.
fn parts(group: &str) -> Vec<&str> {
    let (mut parts, mut from, mut open) = (Vec::new(), 0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => open += 1,
            '}' => open -= 1,
            ',' if open == 0 => {
                parts.push(&group[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&group[from..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// Paths in code, macros left out.
fn paths(code: &str) -> Vec<Vec<String>> {
    let is_of_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(is_of_path) {
        let path = &rest[at..];
        let end = path.find(|c| !is_of_path(c)).unwrap_or(path.len());
        let is_macro = path[end..].starts_with('!') || rest[..at].ends_with('$');
        let names: Vec<&str> = path[..end].split("::").collect();
        let is_path = names.len() > 1 && names.iter().all(|name| !name.contains(':'));
        if is_path && !is_macro && !names[0].is_empty() {
            let names = names.into_iter().filter(|name| !name.is_empty());
            found.push(names.map(str::to_owned).collect());
        }
        rest = &path[end..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let file = |(path, text): &(&str, &str)| File {
            path: format!("host/src/{path}"),
            text: (*text).into(),
        };
        let files: Vec<File> = files.iter().map(file).collect();
        Modules::of(&files, "host/src/").circles("ops")
    }

    #[test]
    fn files_that_use_each_other_are_a_circle_and_a_chain_is_none() {
        let chain = [
            ("ops/mod.rs", "mod a;\nmod b;\nmod c;\n"),
            ("ops/a.rs", "use super::b::B;"),
            ("ops/b.rs", "use crate::ops::c::C;"),
            ("ops/c.rs", ""),
        ];
        assert_eq!(circles(&chain), Vec::<Vec<String>>::new());
        let back = ("ops/c.rs", "fn f() { super::a::go() }");
        let found = circles(&[chain[0], chain[1], chain[2], back]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].len(), 3);
    }

    #[test]
    fn doors_lead_to_the_file_behind_and_use_nothing() {
        let doors = [
            (
                "ops/mod.rs",
                "mod a;\nmod b;\npub use a::A;\npub(crate) use b::{B, deep::{C as D}};\n",
            ),
            ("ops/a.rs", "use super::B;"),
            ("ops/b.rs", ""),
        ];
        assert_eq!(circles(&doors), Vec::<Vec<String>>::new());
        let back = [
            doors[0],
            doors[1],
            ("ops/b.rs", "use crate::ops::{self, A};"),
        ];
        assert_eq!(circles(&back).len(), 1);
    }

    #[test]
    fn paths_begin_at_imported_modules_and_macros_are_none() {
        let files = [
            ("ops/a.rs", "use super::b;\nfn f() { b::go() }"),
            (
                "ops/b.rs",
                "fn go() { crate::a!(); std::a::b(); x.y(a::b) }",
            ),
        ];
        assert_eq!(circles(&files), Vec::<Vec<String>>::new());
    }

    #[test]
    fn large_circles_are_found_and_outdated_exceptions_too() {
        let room = &ROOMS[1];
        let circle: Vec<String> = (0..4).map(|i| format!("{i}.rs")).collect();
        let exception = Exception {
            folder: "ops",
            files: 4,
            reason: "for now",
        };
        assert_eq!(judge(room, &[circle[..3].to_vec()], None), []);
        assert_eq!(judge(room, std::slice::from_ref(&circle), None).len(), 1);
        assert_eq!(judge(room, &[circle], Some(&exception)), []);
        assert!(
            judge(room, &[], Some(&exception))[0]
                .message
                .contains("for now")
        );
    }
}
