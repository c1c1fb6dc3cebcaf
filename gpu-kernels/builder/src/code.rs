//! Fingerprints of kernels before anything is optimised: what has to be compiled again, and what has not.
//!
//! rustc reads, checks and translates the whole crate to LLVM's language in some seconds; optimising it takes minutes. So the
//! former is done after every change, and a kernel whose translation, with that of all that it calls, is as before keeps its
//! PTX. What cannot reach the PTX is left out of a fingerprint: the numbers of attributes and metadata (what they stand for is
//! in), and where in the source inline assembly and panics are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// How deep constants may name constants; Rust's name each other two deep.
const DEPTH: u32 = 8;

/// The fingerprint of every kernel in a text of LLVM's language, by name.
pub(crate) fn fingerprints(ir: &str) -> BTreeMap<String, u64> {
    let module = Module::read(ir);
    let functions: HashMap<&str, Function> = module
        .functions
        .iter()
        .map(|(name, text)| (*name, module.function(text)))
        .collect();
    let kernels = module.functions.iter().filter(|(_, text)| {
        let head = text.lines().next().unwrap_or_default();
        head.contains(" ptx_kernel ")
    });
    kernels
        .map(|(name, _)| (entry(name).to_owned(), with_callees(name, &functions)))
        .collect()
}

/// Definitions by name, as text.
#[derive(Default)]
struct Module<'a> {
    functions: BTreeMap<&'a str, &'a str>,
    /// Constants, types, attributes and metadata, by name with its first character.
    named: HashMap<&'a str, &'a str>,
}

/// A function without what it calls.
struct Function<'a> {
    hash: u64,
    calls: BTreeSet<&'a str>,
}

impl<'a> Module<'a> {
    fn read(ir: &'a str) -> Module<'a> {
        let mut module = Module::default();
        let mut at = 0;
        while at < ir.len() {
            let line_end = ir[at..].find('\n').map_or(ir.len(), |n| at + n);
            let line = &ir[at..line_end];
            let mut end = line_end;
            if line.starts_with("define ") {
                end = ir[at..].find("\n}").map_or(ir.len(), |n| at + n + 2);
                if let Some(name) = line.find('@').map(|start| name_at(&line[start..])) {
                    module.functions.insert(name, &ir[at..end]);
                }
            } else if let Some((name, value)) = definition(line) {
                module.named.insert(name, value);
            }
            at = end + 1;
        }
        module
    }

    fn function(&self, text: &'a str) -> Function<'a> {
        let mut hasher = DefaultHasher::new();
        let mut calls = BTreeSet::new();
        self.hash_text(text, &mut hasher, &mut calls, DEPTH);
        Function {
            hash: hasher.finish(),
            calls,
        }
    }

    /// Hashes a text; names of functions are collected, what other names stand for is hashed in their place.
    fn hash_text(
        &self,
        text: &'a str,
        hasher: &mut DefaultHasher,
        calls: &mut BTreeSet<&'a str>,
        depth: u32,
    ) {
        let mut rest = text;
        while let Some(at) = rest.find(['@', '#', '!', '%']) {
            hasher.write(&rest.as_bytes()[..at]);
            let name = name_at(&rest[at..]);
            if name == "!srcloc" {
                // A place in the source, as the metadata that follows.
                let after = &rest[at + name.len()..];
                let skipped = after.len() - after.trim_start().len();
                rest = &after[skipped + name_at(after.trim_start()).len()..];
                continue;
            }
            match self.named.get(name) {
                Some(value) if is_place(value, &self.named) => hasher.write_u8(1),
                Some(value) if depth > 0 => self.hash_text(value, hasher, calls, depth - 1),
                _ => name.hash(hasher),
            }
            if self.functions.contains_key(name) {
                calls.insert(name);
            }
            rest = &rest[at + name.len().max(1)..];
        }
        hasher.write(rest.as_bytes());
    }
}

/// `name = value`, of a constant, a type, a group of attributes or metadata.
fn definition(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix("attributes ").unwrap_or(line);
    if !line.starts_with(['@', '%', '#', '!']) {
        return None;
    }
    let name = name_at(line);
    let value = line[name.len()..].trim_start().strip_prefix('=')?;
    Some((name, value))
}

/// The name that a text begins with, its first character and quotes included.
fn name_at(text: &str) -> &str {
    let bytes = text.as_bytes();
    if bytes.get(1) == Some(&b'"') {
        let end = text[2..].find('"').map_or(text.len(), |n| n + 3);
        return &text[..end];
    }
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.$-".contains(byte);
    let length = bytes
        .iter()
        .skip(1)
        .take_while(|byte| is_part(byte))
        .count();
    &text[..bytes.len().min(1 + length)]
}

/// The name of a kernel in PTX: without LLVM's sign of a global name, and its quotes.
fn entry(name: &str) -> &str {
    name.trim_start_matches('@').trim_matches('"')
}

/// A place in the source, as panics are given: the file's name, its length, line and column.
fn is_place(value: &str, named: &HashMap<&str, &str>) -> bool {
    let Some((_, given)) = value.split_once("constant <{ ptr, [16 x i8] }> <{ ptr ") else {
        return false;
    };
    let file = named.get(name_at(given));
    file.is_some_and(|file| file.contains(".rs\\00\"") || file.contains(".rs\""))
}

/// A function's fingerprint with those of all functions that it reaches.
fn with_callees(kernel: &str, functions: &HashMap<&str, Function>) -> u64 {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![kernel];
    while let Some(name) = waiting.pop() {
        if let Some(function) = functions.get(name)
            && reached.insert(name)
        {
            waiting.extend(function.calls.iter().copied());
        }
    }
    let mut hasher = DefaultHasher::new();
    for name in reached {
        name.hash(&mut hasher);
        functions[name].hash.hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IR: &str = r#"
@alloc_1 = private unnamed_addr constant [9 x i8] c"verbs.rs\00", align 1
@alloc_2 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_1, [16 x i8] c"&\00" }>
@alloc_3 = private unnamed_addr constant [8 x i8] c"\01\02\03\04\05\06\07\08", align 8
%"Pair" = type { i32, i32 }

define internal void @"_RNv5inner"(ptr %p) unnamed_addr #0 {
start:
  %0 = load i64, ptr @alloc_3, !noundef !2
  call void asm "red", "r"(i32 1), !srcloc !7
  ret void
}

define ptx_kernel void @first([2 x i64] %0) #1 {
start:
  call void @"_RNv5inner"(ptr %x)
  call void @panic(ptr @alloc_2)
  ret void
}

define ptx_kernel void @second([2 x i64] %0) #1 {
start:
  %p = alloca %"Pair", align 4
  ret void
}

declare void @panic(ptr)

attributes #0 = { inlinehint nounwind }
attributes #1 = { nounwind }

!2 = !{}
!7 = !{i64 3204088553234942}
"#;

    /// Which of the two kernels a change of the text reaches.
    fn reached(from: &str, to: &str) -> [bool; 2] {
        assert!(IR.contains(from), "{from}");
        let (before, after) = (fingerprints(IR), fingerprints(&IR.replace(from, to)));
        assert_eq!(before.len(), 2);
        ["first", "second"].map(|name| before[name] != after[name])
    }

    #[test]
    fn a_change_reaches_whoever_calls_it() {
        assert_eq!(reached("\"red\"", "\"add\""), [true, false]);
        assert_eq!(reached("load i64", "load i32"), [true, false]);
        assert_eq!(reached("{ i32, i32 }", "{ i32, i64 }"), [false, true]);
        assert_eq!(reached("inlinehint nounwind", "nounwind"), [true, false]);
        assert_eq!(reached("#1 = { nounwind }", "#1 = { }"), [true, true]);
        assert_eq!(reached("c\"\\01", "c\"\\02"), [true, false]);
        assert_eq!(reached("!2 = !{}", "!2 = !{i64 8}"), [true, false]);
    }

    #[test]
    fn a_place_in_the_source_reaches_nothing() {
        assert_eq!(
            reached("3204088553234942", "3204088553234943"),
            [false, false]
        );
        assert_eq!(reached("c\"&\\00\"", "c\"'\\00\""), [false, false]);
    }

    #[test]
    fn numbers_may_change_as_long_as_they_stand_for_the_same() {
        let renumbered = IR
            .replace("#0", "#5")
            .replace("!7", "!9")
            .replace("!2", "!3");
        assert_eq!(fingerprints(IR), fingerprints(&renumbered));
    }
}
