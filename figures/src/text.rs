//! Widths of text without a font, and numbers as labels.

/// Pixels that a text in a sans-serif font takes at most, about: wide letters count more than narrow ones.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let of = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '!' | '\'' | ' ' => 0.36,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '⁻' | '⁰'..='⁹' | '¹' | '²' | '³' => {
            0.44
        }
        'm' | 'w' | 'M' | 'W' | '%' | '@' | 'µ' => 0.98,
        '=' | '<' | '>' | '+' | '−' | '×' => 0.86,
        'A'..='Z' | '_' | '–' | '·' => 0.76,
        c if c.is_ascii() => 0.64,
        // Others may be as wide as they are high.
        c if (c as u32) < 0x0600 => 0.70,
        _ => 1.0,
    };
    size * text.chars().map(of).sum::<f64>()
}

/// A text of at most `most` pixels: the end gives way to an ellipsis.
pub(crate) fn shortened(text: &str, size: f64, most: f64) -> String {
    if width(text, size) <= most {
        return text.to_owned();
    }
    let mut kept: Vec<char> = text.chars().collect();
    while kept.pop().is_some() {
        let shorter: String = kept.iter().collect::<String>().trim_end().to_owned() + "…";
        if width(&shorter, size) <= most {
            return shorter;
        }
    }
    String::new()
}

/// Lines of at most `most` pixels, broken between words; a longer word is shortened.
pub(crate) fn wrapped(text: &str, size: f64, most: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let word = shortened(word, size, most);
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), size) <= most => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// An exponent, such as `⁻³`.
pub(crate) fn superscript(exponent: i32) -> String {
    let digit = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => '⁰',
    };
    exponent.to_string().chars().map(digit).collect()
}

/// A number with a fixed number of decimals; a minus as long as a digit, and none before a zero.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| c == '0' || c == '.') => rest.to_owned(),
        Some(rest) => format!("−{rest}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_broken_or_shortened() {
        assert_eq!(wrapped("one two", 10.0, 1e3), ["one two"]);
        assert_eq!(wrapped("one two", 10.0, 30.0), ["one", "two"]);
        let short = shortened("incomprehensible", 10.0, 40.0);
        assert!(
            short.ends_with('…') && width(&short, 10.0) <= 40.0,
            "{short}"
        );
        assert_eq!(shortened("abc", 10.0, 1.0), "");
        assert!(wrapped("", 10.0, 1.0).is_empty());
    }

    #[test]
    fn numbers_have_a_true_minus() {
        assert_eq!(fixed(-1.25, 1), "−1.2");
        assert_eq!(fixed(-0.01, 1), "0.0");
        assert_eq!(superscript(-12), "⁻¹²");
    }
}
