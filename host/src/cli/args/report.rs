//! Arguments of whatever writes a report page.

use std::path::PathBuf;

use clap::Args;

/// What is written for people to look at.
#[derive(Debug, Args)]
#[command(next_help_heading = "Report")]
pub(in crate::cli) struct ReportArgs {
    /// Write a page for people: figures, tables, advice, and the command that repeats it; one file that needs no other.
    /// With --json, what the page shows is in the object too
    #[arg(long, value_name = "FILE.html")]
    pub(in crate::cli) report: Option<PathBuf>,

    /// Write the figures of the page alone, as SVG, into this folder
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) figures: Option<PathBuf>,
}

impl ReportArgs {
    /// Whether there is anything to write.
    pub(in crate::cli) fn is_wanted(&self) -> bool {
        self.report.is_some() || self.figures.is_some()
    }
}
