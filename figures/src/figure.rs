//! Figures as plain values.

/// Two axes and what is drawn between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// The stem of a file name: lower-case letters, digits and hyphens.
    pub name: String,
    /// The head.
    pub title: String,
    /// What the figure shows, for those who cannot see it.
    pub summary: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn, the first at the bottom.
    pub marks: Vec<Mark>,
    /// Width of the whole figure in pixels of its own.
    pub width: f64,
    /// Height of the space between the axes.
    pub height: f64,
}

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What is shown along it, with its unit.
    pub label: String,
    /// How values become places.
    pub kind: Kind,
    /// Least and greatest value that are shown, where the marks do not decide.
    pub range: Option<(f64, f64)>,
}

/// How values become places.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Equal steps for equal differences.
    Linear,
    /// Equal steps for equal ratios; values that are not positive are left out.
    Log,
    /// Names at 0, 1, 2 …, from the left, or from the top.
    Categories(Vec<String>),
}

/// Which colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Blue.
    First,
    /// Orange.
    Second,
    /// Purple.
    Third,
    /// Green.
    Fourth,
    /// Pink.
    Fifth,
    /// Grey and dashed: what others are compared with.
    Reference,
}

impl Tone {
    /// Tones of series in their order; after the fifth they begin again.
    pub fn of(number: usize) -> Tone {
        const ALL: [Tone; 5] = [
            Tone::First,
            Tone::Second,
            Tone::Third,
            Tone::Fourth,
            Tone::Fifth,
        ];
        ALL[number % ALL.len()]
    }

    /// Its class in [`STYLE`](crate::STYLE).
    pub(crate) fn class(self) -> &'static str {
        match self {
            Tone::First => "c0",
            Tone::Second => "c1",
            Tone::Third => "c2",
            Tone::Fourth => "c3",
            Tone::Fifth => "c4",
            Tone::Reference => "ref",
        }
    }
}

/// Something that is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// Its name in the legend; none if it is empty.
    pub name: String,
    /// Its colour.
    pub tone: Tone,
    /// What it looks like.
    pub shape: Shape,
}

/// What a mark looks like.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Points (x, y) joined by straight lines.
    Line(Vec<(f64, f64)>),
    /// Points (x, y) joined by steps: y holds until the next x.
    Steps(Vec<(f64, f64)>),
    /// Points (x, y).
    Points(Vec<(f64, f64)>),
    /// Bars from 0, or from the axis where it is logarithmic; along x where the vertical axis has categories.
    Bars(Vec<Bar>),
    /// Between a lower and an upper line.
    Band(Vec<Interval>),
    /// Whiskers with a point in the middle; along x where the vertical axis has categories.
    Errors(Vec<Interval>),
    /// Rectangles, the darker the greater.
    Cells(Vec<Cell>),
    /// A line across, at this x.
    Rule(f64),
    /// A line along, at this y.
    Level(f64),
}

/// A bar over a part of an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    /// Where it begins on its axis.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// How long it is.
    pub value: f64,
}

/// A place with a lower, a middle and an upper value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Where it is.
    pub at: f64,
    /// The lower end.
    pub low: f64,
    /// The value itself.
    pub middle: f64,
    /// The upper end.
    pub high: f64,
}

/// A rectangle with a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Left and right end.
    pub x: (f64, f64),
    /// Lower and upper end.
    pub y: (f64, f64),
    /// How dark it is, relative to the other cells; not negative.
    pub value: f64,
    /// What is written into it.
    pub label: String,
}

impl Axis {
    /// Equal steps for equal differences.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis {
            label: label.into(),
            kind: Kind::Linear,
            range: None,
        }
    }

    /// Equal steps for equal ratios.
    pub fn log(label: impl Into<String>) -> Axis {
        Axis {
            kind: Kind::Log,
            ..Axis::linear(label)
        }
    }

    /// Names.
    pub fn categories<N: Into<String>>(
        label: impl Into<String>,
        names: impl IntoIterator<Item = N>,
    ) -> Axis {
        Axis {
            kind: Kind::Categories(names.into_iter().map(Into::into).collect()),
            ..Axis::linear(label)
        }
    }

    /// Shows values from `least` to `most`.
    #[must_use]
    pub fn range(mut self, least: f64, most: f64) -> Axis {
        self.range = Some((least, most));
        self
    }
}

impl Figure {
    /// A figure without marks.
    pub fn new(name: impl Into<String>, title: impl Into<String>) -> Figure {
        Figure {
            name: name.into(),
            title: title.into(),
            summary: String::new(),
            x: Axis::linear(""),
            y: Axis::linear(""),
            marks: Vec::new(),
            width: 460.0,
            height: 220.0,
        }
    }

    /// Says what it shows.
    #[must_use]
    pub fn summary(mut self, summary: impl Into<String>) -> Figure {
        self.summary = summary.into();
        self
    }

    /// With this horizontal axis.
    #[must_use]
    pub fn x(mut self, axis: Axis) -> Figure {
        self.x = axis;
        self
    }

    /// With this vertical axis.
    #[must_use]
    pub fn y(mut self, axis: Axis) -> Figure {
        self.y = axis;
        self
    }

    /// This many pixels wide, and so high between the axes.
    #[must_use]
    pub fn size(mut self, width: f64, height: f64) -> Figure {
        (self.width, self.height) = (width, height);
        self
    }

    /// With one more mark, on top of the others.
    #[must_use]
    pub fn mark(mut self, name: impl Into<String>, tone: Tone, shape: Shape) -> Figure {
        self.marks.push(Mark {
            name: name.into(),
            tone,
            shape,
        });
        self
    }

    /// With a line.
    #[must_use]
    pub fn line(self, name: impl Into<String>, tone: Tone, points: Vec<(f64, f64)>) -> Figure {
        self.mark(name, tone, Shape::Line(points))
    }

    /// With steps.
    #[must_use]
    pub fn steps(self, name: impl Into<String>, tone: Tone, points: Vec<(f64, f64)>) -> Figure {
        self.mark(name, tone, Shape::Steps(points))
    }

    /// With points.
    #[must_use]
    pub fn points(self, name: impl Into<String>, tone: Tone, points: Vec<(f64, f64)>) -> Figure {
        self.mark(name, tone, Shape::Points(points))
    }

    /// With bars of these values, the first around 0.
    #[must_use]
    pub fn bars(self, name: impl Into<String>, tone: Tone, values: &[f64]) -> Figure {
        let bar = |(at, value): (usize, &f64)| Bar {
            from: at as f64 - 0.36,
            to: at as f64 + 0.36,
            value: *value,
        };
        let bars = values.iter().enumerate().map(bar).collect();
        self.mark(name, tone, Shape::Bars(bars))
    }
}

impl Shape {
    /// All values along x, and all along y; `across` says that categories lie along y.
    pub(crate) fn values(&self, across: bool) -> (Vec<f64>, Vec<f64>) {
        let (places, sizes) = match self {
            Shape::Line(points) | Shape::Steps(points) | Shape::Points(points) => {
                return points.iter().copied().unzip();
            }
            Shape::Rule(x) => return (vec![*x], Vec::new()),
            Shape::Level(y) => return (Vec::new(), vec![*y]),
            Shape::Cells(cells) => {
                let ends = |end: (f64, f64)| [end.0, end.1];
                return (
                    cells.iter().flat_map(|cell| ends(cell.x)).collect(),
                    cells.iter().flat_map(|cell| ends(cell.y)).collect(),
                );
            }
            Shape::Bars(bars) => (
                bars.iter().flat_map(|bar| [bar.from, bar.to]).collect(),
                bars.iter().flat_map(|bar| [bar.value, 0.0]).collect(),
            ),
            Shape::Band(all) | Shape::Errors(all) => (
                all.iter().map(|one| one.at).collect(),
                all.iter()
                    .flat_map(|one| [one.low, one.middle, one.high])
                    .collect::<Vec<f64>>(),
            ),
        };
        if across {
            (sizes, places)
        } else {
            (places, sizes)
        }
    }
}
