//! Launch bounds: how many threads a kernel's blocks have, and how many blocks an SM shall hold.
//!
//! PTX has directives for both, by which ptxas chooses the number of registers; rustc has no attribute that would make
//! them. So a body says it in a comment, in inline assembly: `// launch bounds 128 7`. Here the comment becomes
//! the directives of the entry that it is in.

/// What a comment begins with.
const MARK: &str = "// launch bounds ";

/// The text with the directives that its comments ask for. Entries that have some are left as they are.
pub(crate) fn applied(ptx: &str) -> String {
    let mut written = String::with_capacity(ptx.len() + 64);
    let mut rest = ptx;
    while let Some(entry) = next_entry(rest) {
        let (before, from_entry) = rest.split_at(entry);
        written.push_str(before);
        let end = next_entry(&from_entry[1..]).map_or(from_entry.len(), |next| next + 1);
        let (entry, after) = from_entry.split_at(end);
        push_entry(&mut written, entry);
        rest = after;
    }
    written.push_str(rest);
    written
}

/// Where the next entry begins.
fn next_entry(text: &str) -> Option<usize> {
    text.find(".visible .entry ")
}

/// An entry is `.visible .entry name(parameters)`, directives, and a body from the first line with `{` alone on.
fn push_entry(written: &mut String, entry: &str) {
    let body = entry.find("\n{");
    match (bounds(entry), body) {
        (Some((threads, blocks)), Some(body)) if !entry[..body].contains(".maxntid") => {
            written.push_str(&entry[..body]);
            written.push_str(&format!(
                "\n.maxntid {threads}, 1, 1\n.minnctapersm {blocks}"
            ));
            written.push_str(&entry[body..]);
        }
        _ => written.push_str(entry),
    }
}

/// Threads and blocks of the first comment.
fn bounds(entry: &str) -> Option<(u32, u32)> {
    let (_, said) = entry.split_once(MARK)?;
    let line = said.lines().next()?;
    let (threads, blocks) = line.trim().split_once(' ')?;
    Some((threads.parse().ok()?, blocks.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "\
.version 8.6
.visible .entry first(
\t.param .u32 m
)
{
\t// begin inline asm
\t// launch bounds 128 7
\t// end inline asm
\tret;
}
\t// .globl\tsecond
.visible .entry second(
\t.param .u32 m
)
{
\tret;
}
";

    #[test]
    fn a_comment_becomes_directives_of_its_entry() {
        let text = applied(PTX);
        let directives = ".maxntid 128, 1, 1\n.minnctapersm 7\n{";
        assert_eq!(text.matches(directives).count(), 1, "{text}");
        assert!(text.find(directives) < text.find("second"), "{text}");
    }

    #[test]
    fn nothing_is_added_twice_or_without_a_comment() {
        let text = applied(PTX);
        assert_eq!(applied(&text), text);
        let plain = PTX.replace("launch bounds", "bounds");
        assert_eq!(applied(&plain), plain);
    }

    #[test]
    fn what_is_no_number_is_left_alone() {
        let odd = PTX.replace("128 7", "many");
        assert_eq!(applied(&odd), odd);
    }
}
