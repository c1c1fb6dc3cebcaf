//! Values to places on an axis, and the ticks between them.

use crate::figure::{Axis, Kind};
use crate::text::{fixed, superscript};

/// An axis whose ends are known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    is_log: bool,
    least: f64,
    most: f64,
    start: f64,
    end: f64,
}

/// A value with its place and what is written beside it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) label: String,
}

/// Share of the range that is left free beyond the outermost values.
const MARGIN: f64 = 0.04;
/// Numbers whose differences and ratios are finite: others are left out.
const GREATEST: f64 = 1e150;

impl Scale {
    /// A scale with room for all values that can be shown; `None` where there are none.
    pub(crate) fn of(axis: &Axis, values: &[f64]) -> Option<Scale> {
        let is_log = axis.kind == Kind::Log;
        if let Kind::Categories(names) = &axis.kind {
            let most = names.len() as f64 - 0.5;
            return (most > 0.0).then(|| Scale::between(false, -0.5, most));
        }
        if let Some((least, most)) = axis.range {
            let is_range = least.abs() <= GREATEST && most.abs() <= GREATEST && least < most;
            let shows = is_range && (!is_log || least >= 1.0 / GREATEST);
            return shows.then(|| Scale::between(is_log, least, most));
        }
        let is_shown = |v: &&f64| match is_log {
            true => (1.0 / GREATEST..=GREATEST).contains(*v),
            false => v.abs() <= GREATEST,
        };
        let shown = values.iter().filter(is_shown);
        let (least, most) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), v| {
            (least.min(*v), most.max(*v))
        });
        (least <= most).then(|| Scale::around(is_log, least, most))
    }

    fn between(is_log: bool, least: f64, most: f64) -> Scale {
        Scale {
            is_log,
            least,
            most,
            start: 0.0,
            end: 1.0,
        }
    }

    /// With a margin; a zero at an end stays the end.
    fn around(is_log: bool, least: f64, most: f64) -> Scale {
        if is_log {
            let margin = (most / least).powf(MARGIN).max(1.1);
            return Scale::between(true, least / margin, most * margin);
        }
        let size = least.abs().max(most.abs());
        let range = match most - least {
            range if range > 1e-12 * size => range,
            _ if size == 0.0 => 1.0,
            _ => size,
        };
        let keep = |end: f64, margin: f64| if end == 0.0 { 0.0 } else { end + margin };
        let is_one = least == most;
        let low = if is_one {
            least - MARGIN * range
        } else {
            keep(least, -MARGIN * range)
        };
        Scale::between(
            false,
            low,
            keep(most, MARGIN * range).max(low + MARGIN * range),
        )
    }

    /// The same between these places.
    pub(crate) fn placed(mut self, start: f64, end: f64) -> Scale {
        (self.start, self.end) = (start, end);
        self
    }

    /// Where a value lies; `None` for values that cannot be shown.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let share = self.share(value)?;
        (-1e-6..=1.0 + 1e-6)
            .contains(&share)
            .then(|| self.of_share(share))
    }

    /// Where a value lies, or the nearer end.
    pub(crate) fn clamped(&self, value: f64) -> Option<f64> {
        match self.share(value) {
            Some(share) => Some(self.of_share(share.clamp(0.0, 1.0))),
            // What is below every positive number begins at the axis.
            None if self.is_log && value <= 0.0 => Some(self.start),
            None => None,
        }
    }

    /// The place of a share of the axis's length.
    pub(crate) fn of_share(&self, share: f64) -> f64 {
        self.start + share * (self.end - self.start)
    }

    fn share(&self, value: f64) -> Option<f64> {
        let share = match self.is_log {
            true if value > 0.0 => (value / self.least).ln() / (self.most / self.least).ln(),
            true => return None,
            false => (value - self.least) / (self.most - self.least),
        };
        share.is_finite().then_some(share)
    }

    /// At most about `count` round values, and what the label of the axis has to say besides.
    pub(crate) fn ticks(&self, count: usize) -> (Vec<Tick>, String) {
        let values = match self.is_log {
            true => self.powers(count),
            false => self.steps(count),
        };
        let (labels, unit) = match self.is_log {
            true => (
                values.iter().map(|v| power_label(*v)).collect(),
                String::new(),
            ),
            false => step_labels(&values),
        };
        let tick = |(value, label): (f64, String)| {
            Some(Tick {
                at: self.place(value)?,
                label,
            })
        };
        let ticks = values.into_iter().zip::<Vec<String>>(labels);
        (ticks.filter_map(tick).collect(), unit)
    }

    /// Multiples of 1, 2 or 5 times a power of ten.
    fn steps(&self, count: usize) -> Vec<f64> {
        let rough = (self.most - self.least) / count.max(1) as f64;
        let power = rough.log10().floor() as i32;
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|digit| scaled(digit, power))
            .find(|step| *step >= rough * (1.0 - 1e-9));
        let Some(step) = step.filter(|step| *step > 0.0 && step.is_finite()) else {
            return Vec::new();
        };
        let tolerance = 1e-9 * step;
        let first = ((self.least - tolerance) / step).ceil();
        let last = ((self.most + tolerance) / step).floor();
        let many = (last - first).clamp(0.0, 50.0) as usize;
        (0..=many).map(|i| (first + i as f64) * step).collect()
    }

    /// Powers of ten; with twice and five times them where those are few, and not all where they are many.
    fn powers(&self, count: usize) -> Vec<f64> {
        let (first, last) = (self.least.log10(), self.most.log10());
        let within = |v: &f64| (self.least * (1.0 - 1e-9)..=self.most * (1.0 + 1e-9)).contains(v);
        let tens: Vec<i32> = (first.ceil() as i32..=last.floor() as i32).collect();
        if tens.len() >= 3 {
            let every = tens.len().div_ceil(count.max(1)) as i32;
            let chosen = tens
                .into_iter()
                .filter(|power| power.rem_euclid(every) == 0);
            return chosen.map(|power| scaled(1.0, power)).collect();
        }
        let all = first.floor() as i32..=last.ceil() as i32;
        let digits = |power| [1.0, 2.0, 5.0].map(|digit| scaled(digit, power));
        let few: Vec<f64> = all.flat_map(digits).filter(within).collect();
        if few.len() >= 2 {
            few
        } else {
            self.steps(count)
        }
    }
}

/// Dividing by an exact power of ten keeps 0.2 what it is when printed.
fn scaled(digit: f64, power: i32) -> f64 {
    let scale = 10f64.powi(power.abs());
    if power < 0 {
        digit / scale
    } else {
        digit * scale
    }
}

/// Powers beyond a thousand, or below a thousandth, as such.
fn power_label(value: f64) -> String {
    let power = value.log10().round();
    let is_power = (value / 10f64.powf(power) - 1.0).abs() < 1e-9;
    match value {
        v if (1e-3..1e4).contains(&v) => format!("{}", (v * 1e9).round() / 1e9),
        _ if is_power => format!("10{}", superscript(power as i32)),
        v => {
            let power = v.log10().floor();
            let digit = (v / 10f64.powf(power) * 1e3).round() / 1e3;
            format!("{digit}·10{}", superscript(power as i32))
        }
    }
}

/// Labels in one notation, and the power of ten that all are multiplied by.
fn step_labels(values: &[f64]) -> (Vec<String>, String) {
    let most = values.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
    if most == 0.0 {
        return (values.iter().map(|v| fixed(*v, 0)).collect(), String::new());
    }
    let power = most.log10().floor() as i32;
    let unit = match power {
        p if p >= 4 => p.div_euclid(3) * 3,
        p if p <= -4 => p,
        _ => 0,
    };
    let step = match values {
        [a, b, ..] => b - a,
        _ => most,
    };
    let decimals = unit - (step.abs().log10() + 1e-9).floor() as i32;
    let decimals = decimals.clamp(0, 9) as usize;
    let suffix = match unit {
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        _ => "",
    };
    let label = |v: &f64| match fixed(v / scaled(1.0, unit), decimals) {
        zero if *v == 0.0 => zero,
        text => text + suffix,
    };
    let common = match (unit, suffix) {
        (0, _) => String::new(),
        (_, "") => format!("×10{}", superscript(unit)),
        _ => String::new(),
    };
    (values.iter().map(label).collect(), common)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale, count: usize) -> Vec<String> {
        let (ticks, _) = scale.ticks(count);
        ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn linear_ticks_are_round_and_few() {
        let scale = Scale::between(false, 0.0, 1.0);
        assert_eq!(
            labels(&scale, 5),
            ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
        let scale = Scale::between(false, -130.0, 270.0);
        assert_eq!(labels(&scale, 5), ["−100", "0", "100", "200"]);
        let scale = Scale::between(false, 0.0, 45_000.0);
        assert_eq!(labels(&scale, 5), ["0", "10k", "20k", "30k", "40k"]);
    }

    #[test]
    fn small_numbers_share_a_power() {
        let (ticks, unit) = Scale::between(false, 0.0, 4e-6).ticks(4);
        let labels: Vec<&str> = ticks.iter().map(|tick| tick.label.as_str()).collect();
        assert_eq!(
            (labels.as_slice(), unit.as_str()),
            (&["0", "1", "2", "3", "4"][..], "×10⁻⁶")
        );
    }

    #[test]
    fn decades_are_equally_long_and_all_values_have_room() {
        let axis = Axis::log("");
        let scale = Scale::of(&axis, &[10.0, 1e5])
            .expect("values")
            .placed(0.0, 100.0);
        let (ticks, _) = scale.ticks(6);
        assert_eq!(ticks.len(), 5);
        for three in ticks.windows(3) {
            assert!((three[2].at - 2.0 * three[1].at + three[0].at).abs() < 1e-9);
        }
        assert!(ticks[0].at > 0.0 && ticks[4].at < 100.0);
        assert_eq!(ticks[4].label, "10⁵");
    }

    #[test]
    fn few_decades_have_more_ticks_and_many_fewer() {
        let of = |values: &[f64]| Scale::of(&Axis::log(""), values).expect("values");
        assert_eq!(labels(&of(&[0.3, 2.0]), 5), ["0.5", "1", "2"]);
        assert!(labels(&of(&[1e-30, 1.0]), 6).len() <= 6);
        assert!(labels(&of(&[1.01, 1.02]), 4).len() >= 2);
    }

    #[test]
    fn what_cannot_be_shown_has_no_place() {
        assert_eq!(Scale::of(&Axis::log(""), &[f64::NAN, 0.0, -1.0]), None);
        assert_eq!(Scale::of(&Axis::linear(""), &[f64::INFINITY]), None);
        let scale = Scale::of(&Axis::log(""), &[1.0, 10.0]).expect("values");
        assert_eq!((scale.place(0.0), scale.clamped(-1.0)), (None, Some(0.0)));
        assert_eq!(scale.clamped(f64::NAN), None);
    }

    #[test]
    fn one_value_has_a_range() {
        for value in [0.0, 5.0, -3e-9] {
            let scale = Scale::of(&Axis::linear(""), &[value]).expect("a value");
            let place = scale.place(value).expect("a place");
            assert!((0.0..=1.0).contains(&place), "{value} at {place}");
        }
    }
}
