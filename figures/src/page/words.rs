//! Sentences with code in them: options of the command line, and what stands between backticks.

/// A part of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span<'a> {
    /// As it is.
    Plain(&'a str),
    /// Code.
    Code(&'a str),
}

/// The parts of a sentence, in their order.
pub(crate) fn spans(text: &str) -> Vec<Span<'_>> {
    let mut spans = Vec::new();
    for (at, part) in text.split('`').enumerate() {
        match at % 2 {
            1 => spans.push(Span::Code(part)),
            _ => with_options(part, &mut spans),
        }
    }
    spans
}

fn with_options<'a>(mut text: &'a str, spans: &mut Vec<Span<'a>>) {
    while let Some(start) = option_start(text) {
        let (before, from) = text.split_at(start);
        let is_option = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let end = from.find(|c| !is_option(c)).unwrap_or(from.len());
        spans.extend((!before.is_empty()).then_some(Span::Plain(before)));
        spans.push(Span::Code(&from[..end]));
        text = &from[end..];
    }
    spans.extend((!text.is_empty()).then_some(Span::Plain(text)));
}

/// Where `--` and a letter follow on a space, a bracket or nothing.
fn option_start(text: &str) -> Option<usize> {
    text.match_indices("--").map(|(at, _)| at).find(|at| {
        let before = text[..*at].chars().next_back();
        let after = text[at + 2..].chars().next();
        before.is_none_or(|c| " (".contains(c)) && after.is_some_and(|c| c.is_ascii_lowercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_backticks_are_code() {
        let found = spans("scale (--standardize), or `warpfuse plan --measure`: --max-iter");
        let expected = [
            Span::Plain("scale ("),
            Span::Code("--standardize"),
            Span::Plain("), or "),
            Span::Code("warpfuse plan --measure"),
            Span::Plain(": "),
            Span::Code("--max-iter"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn dashes_alone_are_not() {
        for text in ["a -- b", "a--b", "--", ""] {
            let code = spans(text).iter().any(|span| matches!(span, Span::Code(_)));
            assert!(!code, "{text}");
        }
    }
}
