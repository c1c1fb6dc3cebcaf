//! Several GPUs as figures: a bar for each number of them, by shape.

use warpfuse_figures::{Axis, Bar, Figure, Shape, Sheet, Tone};

use super::{Case, Scaling, Way, Work};
use crate::curves::slug;

/// Pixels of a panel: its width, and the height of a shape's bars.
const WIDTH: f64 = 330.0;
const EACH: f64 = 34.0;

impl Scaling {
    /// Files: their names and what is in them.
    pub fn sheets(&self) -> Vec<(String, String)> {
        let each = [Way::Strong, Way::Weak].into_iter();
        let sheets = each.filter_map(|way| {
            let figures = self.panels(way);
            let (name, title) = match way {
                Way::Strong => (
                    "strong",
                    "as many rows in all: times as fast as one GPU, dashed: as many as GPUs",
                ),
                Way::Weak => (
                    "weak",
                    "as many rows of each GPU: % of one GPU's work that each does, dashed: all of it",
                ),
            };
            let sheet = Sheet {
                title: format!("{}, {title}", self.title()),
                figures,
            };
            let name = format!("{}-{name}.svg", slug(&self.folder));
            (!sheet.figures.is_empty()).then(|| (name, sheet.to_svg()))
        });
        sheets.collect()
    }

    /// All panels.
    pub fn figures(&self) -> Vec<Figure> {
        [Way::Strong, Way::Weak]
            .into_iter()
            .flat_map(|way| self.panels(way))
            .collect()
    }

    fn panels(&self, way: Way) -> Vec<Figure> {
        let works = Work::ALL.into_iter();
        works.filter_map(|work| self.panel(work, way)).collect()
    }

    fn panel(&self, work: Work, way: Way) -> Option<Figure> {
        let (shapes, all) = self.measured(work, way);
        if shapes.is_empty() {
            return None;
        }
        let (unit, of_way) = match way {
            Way::Strong => ("times as fast as one GPU", "strong"),
            Way::Weak => ("% of one GPU's work", "weak"),
        };
        let name = slug(&format!("{}-{of_way}-{}", self.folder, work.name()));
        let mut figure = Figure::new(name, work.name())
            .summary(format!(
                "{} scaling of the {}, by data.",
                of_way,
                work.name()
            ))
            .x(Axis::linear(unit))
            .y(Axis::categories("", shapes.iter().copied()))
            .size(WIDTH, EACH * shapes.len() as f64 + 40.0);
        let wide = 0.76 / all.len() as f64;
        for (number, gpus) in all.iter().enumerate() {
            let bars = shapes.iter().enumerate().filter_map(|(at, shape)| {
                let case = Case {
                    shape: (*shape).to_owned(),
                    work,
                    way,
                    gpus: *gpus,
                };
                let gain = self.gain(&case)?;
                let from = at as f64 - 0.38 + wide * number as f64;
                Some(Bar {
                    from,
                    to: from + wide,
                    value: match way {
                        Way::Strong => gain,
                        Way::Weak => 100.0 * gain,
                    },
                })
            });
            let (name, bars) = (format!("{gpus} GPUs"), bars.collect());
            figure = figure.mark(name, Tone::of(number), Shape::Bars(bars));
            if way == Way::Strong {
                figure = figure.mark("", Tone::Reference, Shape::Rule(*gpus as f64));
            }
        }
        Some(match way {
            Way::Strong => figure,
            Way::Weak => figure.mark("", Tone::Reference, Shape::Rule(100.0)),
        })
    }
}
