//! Several figures in one file.

use crate::figure::Figure;
use crate::layout::{HEAD, LINE};
use crate::style::STYLE;
use crate::svg::{Anchor, Canvas, escape, length};
use crate::text;

/// Figures beside each other, below a common head.
#[derive(Debug, Clone, PartialEq)]
pub struct Sheet {
    /// The head.
    pub title: String,
    /// From the left to the right.
    pub figures: Vec<Figure>,
}

impl Sheet {
    /// A file of its own.
    pub fn to_svg(&self) -> String {
        const GAP: f64 = 30.0;
        let bodies: Vec<(String, f64)> = self.figures.iter().map(Figure::body).collect();
        let widths: f64 = self.figures.iter().map(|figure| figure.width).sum();
        let width = widths + GAP * self.figures.len().saturating_sub(1) as f64;
        let title = text::wrapped(&self.title, HEAD, width);
        let top = LINE * title.len() as f64 + 6.0;
        let height = top
            + bodies
                .iter()
                .fold(0.0_f64, |most, (_, height)| most.max(*height));
        let mut canvas = Canvas::default();
        for (number, line) in title.iter().enumerate() {
            canvas.text("h", (0.0, 13.0 + LINE * number as f64), Anchor::Start, line);
        }
        let mut left = 0.0;
        for (figure, (body, _)) in self.figures.iter().zip(bodies) {
            canvas.raw(&format!(
                "<g transform=\"translate({},{})\">\n",
                length(left),
                length(top)
            ));
            canvas.raw(&body);
            canvas.raw("</g>\n");
            left += figure.width + GAP;
        }
        let (width, height) = (length(width), length(height));
        format!(
            "<svg class=\"wf\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n{}</svg>\n",
            escape(&self.title),
            canvas.finish()
        )
    }
}
