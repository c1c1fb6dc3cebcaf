//! The arguments of record mode.

use std::path::PathBuf;
use std::str::FromStr;

/// What record mode understands.
pub const USAGE: &str = "usage: --record OUTDIR [--filter TEXT[,TEXT…]]… [--budget-ms N] [--peers FILE] [--drawn SEED] [--seconds N]";

/// What is to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The folder that receives a folder for the device.
    pub out: PathBuf,
    /// Which cases.
    pub filter: Filter,
    /// For how long each case is sampled, milliseconds.
    pub budget_ms: u32,
    /// Times of peers that another program measured: [`Outside`](crate::outside::Outside).
    pub peers: Option<PathBuf>,
    /// The seed of a list of shapes, instead of those of the family; see [`crate::plan::drawn`].
    pub drawn: Option<u64>,
    /// Seconds after which no further shape of such a list begins.
    pub seconds: Option<u64>,
}

/// Cases whose names contain one of the texts, or end with it where a `$` follows; all cases when there are none. A text `a+b` wants
/// both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter(Vec<String>);

impl Filter {
    /// Whether a name is wanted.
    pub fn wants(&self, name: &str) -> bool {
        let has = |text: &str| match text.strip_suffix('$') {
            Some(end) => name.ends_with(end),
            None => name.contains(text),
        };
        self.0.is_empty() || self.0.iter().any(|texts| texts.split('+').all(has))
    }

    /// Adds texts that are separated by commas.
    pub fn add(&mut self, list: &str) {
        self.0.extend(
            list.split(',')
                .filter(|text| !text.is_empty())
                .map(str::to_owned),
        );
    }
}

impl Options {
    /// Reads arguments; `None` where `--record` is not among them, for then they are criterion's.
    ///
    /// # Errors
    /// With what is wrong, and the usage.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Option<Options>, String> {
        let arguments: Vec<String> = arguments.into_iter().collect();
        if !arguments.iter().any(|argument| argument == "--record") {
            return Ok(None);
        }
        let mut options = Options {
            out: PathBuf::new(),
            filter: Filter::default(),
            budget_ms: 300,
            peers: None,
            drawn: None,
            seconds: None,
        };
        let mut rest = arguments.into_iter();
        while let Some(argument) = rest.next() {
            // What cargo adds.
            if argument != "--bench" {
                let value = rest
                    .next()
                    .ok_or(format!("`{argument}` needs a value; {USAGE}"))?;
                options.set(&argument, &value)?;
            }
        }
        Ok(Some(options))
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "--record" => self.out = value.into(),
            "--filter" => self.filter.add(value),
            "--peers" => self.peers = Some(value.into()),
            "--budget-ms" => self.budget_ms = number(value)?,
            "--drawn" => self.drawn = Some(number(value)?),
            "--seconds" => self.seconds = Some(number(value)?),
            _ => return Err(format!("`{name}` is unknown; {USAGE}")),
        }
        Ok(())
    }
}

fn number<N: FromStr>(value: &str) -> Result<N, String> {
    let expected = |_| format!("`{value}` is no whole number; {USAGE}");
    value.parse().map_err(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<Options>, String> {
        Options::parse(text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn record_mode_has_its_own_arguments() {
        let options = parse("--bench --record out --filter f32,f64 --filter cg").expect("valid");
        let options = options.expect("record mode");
        assert_eq!((options.out, options.budget_ms), ("out".into(), 300));
        assert!(options.filter.wants("cg/dense") && !options.filter.wants("cpu/sum"));
    }

    #[test]
    fn a_dollar_is_the_end_of_a_name() {
        let options = parse("--record out --filter f32/fused$,cg").expect("valid");
        let filter = options.expect("record mode").filter;
        assert!(filter.wants("plan/f32/fused") && filter.wants("cg/f32"));
        assert!(!filter.wants("fused/f32/fused_many_8"));
    }

    #[test]
    fn a_plus_wants_both() {
        let options = parse("--record out --filter fused/sparse+/f32/,cg").expect("valid");
        let filter = options.expect("record mode").filter;
        assert!(filter.wants("fused/sparse-9x9x2/f32/forward") && filter.wants("cg/f64"));
        assert!(
            !filter.wants("fused/sparse-9x9x2/f64/forward") && !filter.wants("fused/dense/f32/x")
        );
    }

    #[test]
    fn everything_else_is_for_criterion() {
        assert_eq!(parse("--bench fused --sample-size 20"), Ok(None));
    }

    #[test]
    fn mistakes_are_named() {
        for mistake in [
            "--record",
            "--record out --budget-ms x",
            "--record out --drawn some",
            "--record out --frobnicate 1",
        ] {
            assert!(
                parse(mistake).is_err_and(|text| text.contains(USAGE)),
                "{mistake}"
            );
        }
    }
}
