//! Colours: as values, and as the style sheet that has them.

/// Colours of a scheme, as `#rrggbb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Palette {
    /// Behind everything.
    pub ground: &'static str,
    /// Text.
    pub text: &'static str,
    /// Text that matters less, and what others are compared with.
    pub quiet: &'static str,
    /// Lines of the grid.
    pub grid: &'static str,
    /// Series in their order.
    pub series: [&'static str; 5],
}

/// On white.
pub const LIGHT: Palette = Palette {
    ground: "#ffffff",
    text: "#1f2328",
    quiet: "#57606a",
    grid: "#d8dee4",
    series: ["#0969da", "#bc4c00", "#8250df", "#1a7f37", "#bf3989"],
};

/// On a dark ground.
pub const DARK: Palette = Palette {
    ground: "#0d1117",
    text: "#e6edf3",
    quiet: "#9198a1",
    grid: "#30363d",
    series: ["#58a6ff", "#f0883e", "#bc8cff", "#3fb950", "#f778ba"],
};

/// The style sheet of all figures: light, dark where the reader prefers that, light on paper.
///
/// Its classes are below `.wf`, so that a page may have others of the same names.
pub const STYLE: &str = "\
.wf { --t: #1f2328; --q: #57606a; --g: #d8dee4; --c0: #0969da; --c1: #bc4c00; --c2: #8250df; --c3: #1a7f37; --c4: #bf3989 }
@media screen and (prefers-color-scheme: dark) {
.wf { --t: #e6edf3; --q: #9198a1; --g: #30363d; --c0: #58a6ff; --c1: #f0883e; --c2: #bc8cff; --c3: #3fb950; --c4: #f778ba }
}
.wf text { font: 12px system-ui, sans-serif; fill: var(--t) }
.wf .h { font-weight: 600; font-size: 13px }
.wf .q { fill: var(--q) }
.wf .grid { stroke: var(--g); stroke-width: 1 }
.wf .axis { stroke: var(--q); stroke-width: 1 }
.wf .c0 { stroke: var(--c0); fill: var(--c0) }
.wf .c1 { stroke: var(--c1); fill: var(--c1) }
.wf .c2 { stroke: var(--c2); fill: var(--c2) }
.wf .c3 { stroke: var(--c3); fill: var(--c3) }
.wf .c4 { stroke: var(--c4); fill: var(--c4) }
.wf .ref { stroke: var(--q); fill: var(--q) }
.wf .line { fill: none; stroke-width: 2 }
.wf .line.ref { stroke-width: 1.5; stroke-dasharray: 5 4 }
.wf .bar, .wf .cell, .wf .dot { stroke: none }
.wf .band { stroke: none; fill-opacity: 0.18 }
";

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let byte = u8::from_str_radix(&colour[at..at + 2], 16).expect("two digits");
            match f64::from(byte) / 255.0 {
                v if v <= 0.04045 => v / 12.92,
                v => ((v + 0.055) / 1.055).powf(2.4),
            }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    /// WCAG's ratio.
    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn text_and_marks_have_the_contrast_that_wcag_aa_asks_for() {
        for palette in [LIGHT, DARK] {
            for text in [palette.text, palette.quiet] {
                assert!(contrast(text, palette.ground) >= 4.5, "{text}");
            }
            for series in palette.series {
                assert!(contrast(series, palette.ground) >= 4.5, "{series}");
            }
        }
        assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 1e-9);
    }

    #[test]
    fn the_style_sheet_has_the_palettes() {
        for palette in [LIGHT, DARK] {
            let all = [palette.text, palette.quiet, palette.grid];
            for colour in all.into_iter().chain(palette.series) {
                assert!(STYLE.contains(colour), "{colour}");
            }
        }
    }

    /// Text on the darkest cell that has any.
    #[test]
    fn text_on_cells_can_be_read() {
        for palette in [LIGHT, DARK] {
            let mix = |at: usize| {
                let part = |colour: &str| {
                    f64::from(u8::from_str_radix(&colour[at..at + 2], 16).expect("two digits"))
                };
                let share = crate::draw::DARKEST_UNDER_TEXT;
                (share * part(palette.series[0]) + (1.0 - share) * part(palette.ground)).round()
            };
            let cell = format!(
                "#{:02x}{:02x}{:02x}",
                mix(1) as u8,
                mix(3) as u8,
                mix(5) as u8
            );
            assert!(contrast(palette.text, &cell) >= 4.5, "{cell}");
        }
    }
}
