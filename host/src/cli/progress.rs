//! What happens meanwhile, on stderr: bars, remarks, warnings, logs.

use std::env;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::args::{LogFormat, Verbosity};
use super::output;
use super::time_left::TimeLeft;
use crate::io::Progress as ReadProgress;
use crate::learning::{FoldProgress, Iteration, Progress as FitProgress};

/// The variable that sets the log filter instead of `-v`: levels of modules, such as `warpfuse=debug,warn`, in the syntax of
/// tracing's `Targets`.
const LOG_VARIABLE: &str = "WARPFUSE_LOG";
/// How often a line shows that the program goes on, whatever it waits for.
const TICK: Duration = Duration::from_millis(200);
/// Bytes of a file that are read before a bar is worth its flicker.
const WORTH_A_BAR: u64 = 32 << 20;

/// The user, as seen from a subcommand.
#[derive(Debug, Clone)]
pub(super) struct Ui {
    verbosity: Verbosity,
    bars: bool,
    format: LogFormat,
    command: String,
}

impl Ui {
    /// Starts logging. Bars are shown on a terminal only.
    pub(super) fn start((verbosity, format): (Verbosity, LogFormat), command: String) -> Ui {
        start_log(verbosity, format);
        let is_read = verbosity != Verbosity::Quiet && format == LogFormat::Text;
        let bars = is_read && io::stderr().is_terminal();
        Ui {
            verbosity,
            bars,
            format,
            command,
        }
    }

    /// What was typed, as a shell reads it.
    pub(super) fn command(&self) -> &str {
        &self.command
    }

    /// Says something that need not be known.
    pub(super) fn remark(&self, text: impl Display) {
        if self.verbosity != Verbosity::Quiet {
            self.say("INFO", format_args!("{text}"), &text);
        }
    }

    /// Says something that must not be missed, even with `-q`.
    pub(super) fn warn(&self, text: impl Display) {
        self.say("WARN", format_args!("warning: {text}"), &text);
    }

    /// Says why the program ends, in lines as people read them.
    pub(super) fn error(&self, text: &str) {
        let text = text.trim_end();
        self.say("ERROR", text, &text.strip_prefix("error: ").unwrap_or(text));
    }

    /// A line for people, or an object for programs, in the form of the log's events.
    fn say(&self, level: &str, line: impl Display, message: &dyn Display) {
        if output::is_silent() {
            return;
        }
        match self.format {
            LogFormat::Text => to_stderr(line),
            LogFormat::Json => {
                let message = message.to_string();
                to_stderr(serde_json::json!({ "level": level, "message": message }));
            }
        }
    }

    /// A bar for the bytes of `path`.
    pub(super) fn reading(&self, path: &Path) -> Bar {
        tracing::debug!(what = "reading", "begun");
        let large = path
            .metadata()
            .map_or(true, |file| file.len() >= WORTH_A_BAR);
        let template =
            "reading {bar:32} {bytes} of {total_bytes}, {msg} lines, {bytes_per_sec}, {eta} left";
        Bar::new(self.bars && large, template)
    }

    /// A bar for the fits of a cross-validation.
    pub(super) fn fits(&self, count: usize) -> Bar {
        let bar = Bar::new(
            self.bars,
            "fitting {bar:32} {pos} of {len} models, {elapsed}{msg}",
        );
        bar.line.set_length(count as u64);
        bar.going()
    }

    /// A line for the iterations of a solver, which stops when its `measure` is `tolerance`. Before the first one, and where a
    /// factor takes the place of iterations, it counts seconds.
    pub(super) fn iterations(&self, measure: &'static str, tolerance: f64) -> Bar {
        tracing::debug!(what = "fitting", "begun");
        let mut bar = Bar::new(self.bars, "fitting {spinner} {elapsed}{msg}");
        (bar.measure, bar.left) = (measure, TimeLeft::new(tolerance));
        bar.going()
    }

    /// A line for a part of the run without steps that could be counted, with its seconds so far.
    pub(super) fn doing(&self, what: &'static str) -> Bar {
        tracing::debug!(what, "begun");
        let bar = Bar::new(self.bars, "{msg} {spinner} {elapsed}");
        bar.line.set_message(what);
        bar.going()
    }
}

/// A bar that clears itself away when dropped.
pub(super) struct Bar {
    line: ProgressBar,
    /// What a solver brings down.
    measure: &'static str,
    left: TimeLeft,
}

impl Bar {
    fn new(shown: bool, template: &str) -> Bar {
        let bar = if shown && !output::is_silent() {
            ProgressBar::new(0)
        } else {
            ProgressBar::hidden()
        };
        let style = ProgressStyle::with_template(template);
        let style = style.expect("templates are written in this file");
        Bar {
            line: bar.with_style(style),
            measure: "",
            left: TimeLeft::new(0.0),
        }
    }

    /// The same, drawn anew from time to time.
    fn going(self) -> Bar {
        if !self.line.is_hidden() {
            self.line.enable_steady_tick(TICK);
        }
        self
    }

    /// What a reader reports to.
    pub(super) fn reader(&self) -> ReadProgress {
        let bar = self.line.clone();
        ReadProgress::of(move |so_far| {
            bar.set_length(so_far.total_bytes);
            bar.set_position(so_far.bytes);
            bar.set_message(HumanCount(so_far.lines).to_string());
        })
    }

    /// Shows an iteration.
    pub(super) fn iteration(&self, progress: FitProgress) {
        let FitProgress {
            iteration,
            max_iter,
            residual_ratio,
        } = progress;
        let seconds = self.line.elapsed().as_secs_f64();
        let left = self.left.after(seconds, residual_ratio, max_iter);
        self.line.set_message(format!(
            ", iteration {iteration} of at most {max_iter}, {} {residual_ratio:.1e}{left}",
            self.measure
        ));
        tracing::debug!(iteration, gradient = residual_ratio);
    }
}

impl Bar {
    /// Shows a fit of a cross-validation.
    pub(super) fn fit(&self, fit: &FoldProgress) {
        self.line.inc(1);
        self.line.set_message(format!(", score {:.4}", fit.score));
        tracing::info!(
            fold = fit.fold,
            point = fit.point,
            score = fit.score,
            "fitted"
        );
    }

    /// Shows an outer iteration of a solver that may take `most`.
    pub(super) fn solver_iteration(&self, iteration: Iteration, most: usize) {
        self.line.inc(1);
        let number = self.line.position();
        let mut message = format!(
            ", iteration {number} of at most {most}, {} {:.1e}, loss {:.6}",
            self.measure, iteration.gradient_ratio, iteration.objective
        );
        if let Some(validation) = iteration.validation {
            message += &format!(", validation {validation:.6}");
        }
        message += &self
            .left
            .after(iteration.seconds, iteration.gradient_ratio, most);
        self.line.set_message(message);
        tracing::debug!(
            iteration = number,
            objective = iteration.objective,
            gradient = iteration.gradient_ratio,
            inner = iteration.inner,
            seconds = iteration.seconds
        );
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.line.finish_and_clear();
    }
}

fn start_log(verbosity: Verbosity, format: LogFormat) {
    let level = match verbosity {
        Verbosity::Quiet => "error",
        Verbosity::Normal => "warn",
        Verbosity::Verbose => "warpfuse=info,warn",
        Verbosity::Debug => "warpfuse=debug,info",
    };
    let wanted = env::var(LOG_VARIABLE).ok();
    let wanted: Option<Targets> = wanted.and_then(|text| text.parse().ok());
    let filter = wanted.unwrap_or_else(|| level.parse().expect("each of these is a filter"));
    let log = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(format == LogFormat::Text && io::stderr().is_terminal())
        .without_time()
        .with_target(false)
        .log_internal_errors(false);
    let log = match format {
        LogFormat::Text => log.boxed(),
        LogFormat::Json => log.json().flatten_event(true).boxed(),
    };
    let log = log.with_filter(filter);
    // A library user may have started a log of their own; then theirs is used.
    let _ = tracing_subscriber::registry().with(log).try_init();
}

fn to_stderr(text: impl Display) {
    // Unlike `eprintln!` this does not panic when stderr is closed.
    let _ = writeln!(io::stderr().lock(), "{text}");
}
