//! SVG as text.

use std::fmt::Write;

/// A text with the characters escaped that mean something in HTML and XML, and without those that XML cannot have.
///
/// ```
/// assert_eq!(warpfuse_figures::escape("a<b & \"c\""), "a&lt;b &amp; &quot;c&quot;");
/// ```
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(' '),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A length with at most one decimal.
pub(crate) fn length(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// Where text stands relative to its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A growing SVG.
#[derive(Debug, Default)]
pub(crate) struct Canvas(String);

impl Canvas {
    pub(crate) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let class = attribute("class", class);
        let (x, y, text) = (length(x), length(y), escape(text));
        self.line(format_args!(
            "<text{class} x=\"{x}\" y=\"{y}\"{anchor}>{text}</text>"
        ));
    }

    pub(crate) fn segment(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(length);
        self.line(format_args!(
            "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"
        ));
    }

    /// A rectangle between two corners, with the share of its colour that is seen.
    pub(crate) fn rectangle(&mut self, class: &str, a: (f64, f64), b: (f64, f64), opacity: f64) {
        let [x, y] = [a.0.min(b.0), a.1.min(b.1)].map(length);
        let [width, height] = [(a.0 - b.0).abs(), (a.1 - b.1).abs()].map(length);
        let opacity = match opacity {
            o if o < 1.0 => format!(" fill-opacity=\"{o:.2}\""),
            _ => String::new(),
        };
        self.line(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"{opacity}/>"
        ));
    }

    pub(crate) fn dot(&mut self, class: &str, (x, y): (f64, f64), radius: f64) {
        let [x, y, radius] = [x, y, radius].map(length);
        self.line(format_args!(
            "<circle class=\"dot {class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>"
        ));
    }

    pub(crate) fn path(&mut self, element: &str, class: &str, points: &[(f64, f64)]) {
        let mut text = String::new();
        for (x, y) in points {
            let blank = if text.is_empty() { "" } else { " " };
            // Writing to a String cannot fail.
            let _ = write!(text, "{blank}{},{}", length(*x), length(*y));
        }
        self.line(format_args!(
            "<{element} class=\"{class}\" points=\"{text}\"/>"
        ));
    }

    pub(crate) fn raw(&mut self, text: &str) {
        self.0.push_str(text);
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.0, "{text}");
    }

    pub(crate) fn finish(self) -> String {
        self.0
    }
}

fn attribute(name: &str, value: &str) -> String {
    match value {
        "" => String::new(),
        value => format!(" {name}=\"{value}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_short_and_zero_has_no_sign() {
        assert_eq!(
            [-0.01, 1.0, 2.25, 10.06].map(length),
            ["0", "1", "2.2", "10.1"]
        );
    }

    #[test]
    fn control_characters_do_not_reach_the_page() {
        assert_eq!(escape("a\u{0}b\nc<'>"), "a\u{fffd}b c&lt;&#39;&gt;");
    }
}
