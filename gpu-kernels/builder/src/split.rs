//! One PTX text of many kernels, taken apart: a text for each kernel, the same whichever kernels it was compiled with.

use std::fmt::Write;

use crate::{Arch, BuildError, bounds, checks};

/// What introduces each kernel.
const INTRODUCTION: &str = "\t// .globl\t";
/// Labels are numbered by function first, and a function is alone here.
const LABEL: &str = "$L__BB";

/// One kernel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub name: String,
    /// A complete PTX text.
    pub text: String,
}

/// Takes a text apart. Launch bounds become directives on the way.
///
/// # Errors
/// [`BuildError::Shared`] if kernels share more than declarations of shared memory, [`BuildError::Unresolved`] if they call what
/// nothing defines.
pub(crate) fn split(ptx: &str, arch: Arch) -> Result<Vec<Piece>, BuildError> {
    let first = ptx.find(INTRODUCTION).unwrap_or(ptx.len());
    let (header, rest) = ptx.split_at(first);
    let (kernels, trailer) = rest.split_at(end_of_code(rest));
    checks::check(ptx, arch)?;
    refuse_shared(header, arch)?;
    let mut pieces = Vec::new();
    for body in kernels.split(INTRODUCTION).filter(|body| !body.is_empty()) {
        let (name, code) = body.split_once('\n').unwrap_or((body, ""));
        let name = name.trim().to_owned();
        // What stands between two kernels is not the same everywhere.
        let text = bounds::applied(&relabelled(code.trim()));
        if text.matches(".entry ").count() != 1 || text.contains("\n.func") {
            return Err(shared(arch, &name));
        }
        refuse_shared(code_outside(&text), arch)?;
        pieces.push(Piece {
            text: format!("{header}{INTRODUCTION}{name}\n{text}\n{trailer}"),
            name,
        });
    }
    Ok(pieces)
}

/// Where the tables of source files and debug sections begin, which line information leaves behind the last kernel.
fn end_of_code(text: &str) -> usize {
    ["\n\t.section", "\n\t.file\t", "\n.section"]
        .iter()
        .filter_map(|mark| text.find(mark))
        .min()
        .map_or(text.len(), |at| at + 1)
}

/// Functions, variables and constants would have to go to every kernel that uses them; there are none so far.
fn refuse_shared(text: &str, arch: Arch) -> Result<(), BuildError> {
    let is_shared = |line: &&str| {
        [
            ".func",
            ".visible .func",
            ".weak",
            ".global",
            ".const",
            ".visible .global",
        ]
        .iter()
        .any(|word| line.starts_with(word))
    };
    match text.lines().find(is_shared) {
        Some(line) => Err(shared(arch, line)),
        None => Ok(()),
    }
}

fn shared(arch: Arch, what: &str) -> BuildError {
    BuildError::Shared {
        arch,
        what: what.to_owned(),
    }
}

/// What follows the kernel's closing brace.
fn code_outside(text: &str) -> &str {
    text.find("\n}").map_or("", |end| &text[end + 2..])
}

/// The same text, the function of every label being number 0.
fn relabelled(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut parts = text.split(LABEL);
    written.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let number = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
        let _ = write!(written, "{LABEL}0{}", &part[number..]);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "\
.version 8.6
.target sm_90
.extern .shared .align 16 .b8 words[];

\t// .globl\tfirst
.visible .entry first(
\t.param .u32 m
)
{
\tbra \t$L__BB7_2;
$L__BB7_2:
\tret;

}
\t// .globl\tsecond
.visible .entry second()
{
\t// launch bounds 128 7
\tbra \t$L__BB8_1;
$L__BB8_1:
\tret;

}
";

    #[test]
    fn each_kernel_is_complete_and_knows_nothing_of_its_place() {
        let pieces = split(PTX, Arch::Sm90).expect("nothing is shared");
        assert_eq!(pieces.len(), 2);
        assert_eq!(pieces[0].name, "first");
        assert!(
            pieces[0]
                .text
                .starts_with(".version 8.6\n.target sm_90\n.extern .shared")
        );
        assert!(pieces[0].text.contains("bra \t$L__BB0_2;\n$L__BB0_2:"));
        assert!(!pieces[0].text.contains("second"));
        assert!(pieces[1].text.contains("$L__BB0_1:"));
        assert!(pieces[1].text.contains(".maxntid 128, 1, 1"));
        let last = PTX.find("\t// .globl\tsecond").expect("it is there");
        let first = PTX.find("\t// .globl\tfirst").expect("it is there");
        let alone = split(&format!("{}{}", &PTX[..first], &PTX[last..]), Arch::Sm90);
        assert_eq!(alone.expect("nothing is shared")[0], pieces[1]);
    }

    #[test]
    fn source_lines_go_to_every_kernel() {
        let files = "\t.section\t.debug_macinfo\t{\t}\n\t.file\t1 \"a.rs\"\n";
        let pieces = split(&format!("{PTX}{files}"), Arch::Sm90).expect("nothing is shared");
        assert!(
            pieces.iter().all(|piece| piece.text.ends_with(files)),
            "{pieces:?}"
        );
        assert_eq!(pieces.len(), 2);
    }

    #[test]
    fn what_kernels_share_is_refused() {
        let function = PTX.replace(
            "\t// .globl\tfirst",
            ".func helper()\n{ ret; }\n\t// .globl\tfirst",
        );
        assert!(matches!(
            split(&function, Arch::Sm90),
            Err(BuildError::Shared { .. })
        ));
        let between = PTX.replace(
            "\t// .globl\tsecond",
            ".global .b8 table[4];\n\t// .globl\tsecond",
        );
        assert!(matches!(
            split(&between, Arch::Sm90),
            Err(BuildError::Shared { .. })
        ));
    }
}
