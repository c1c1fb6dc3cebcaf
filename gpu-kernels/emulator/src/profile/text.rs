//! A profile as a table.

use std::fmt;

use super::{AtomicCount, Atomics, Profile, SiteCounts, SiteKey, Space};

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (blocks, steps, barriers) = (self.blocks, self.lane_steps, self.barriers);
        writeln!(
            f,
            "{blocks} blocks, {steps} lane steps, {barriers} barriers"
        )?;
        if self.sites.is_empty() {
            return Ok(());
        }
        self.atomics.fmt(f)?;
        head(f)?;
        self.sites
            .iter()
            .try_for_each(|(key, counts)| row(f, key, counts))
    }
}

impl fmt::Display for Atomics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (additions, addresses) = (self.additions(), self.addresses());
        write!(f, "{additions} global atomics to {addresses} addresses")?;
        for (i, count) in self.named().into_iter().enumerate() {
            let AtomicCount {
                buffer,
                index,
                count,
            } = count;
            let separator = if i == 0 { ", most to" } else { "," };
            write!(f, "{separator} {buffer}[{index}]: {count}")?;
        }
        writeln!(f)
    }
}

fn head(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(
        f,
        "{:<44} {:<22} {:>9} {:>10} {:>9} {:>7} {:>9} {:>6} {:>9} {:>9}",
        "site",
        "access",
        "requests",
        "accesses",
        "sectors",
        "coal.",
        "passes",
        "n-way",
        "contended",
        "divergent"
    )
}

fn row(f: &mut fmt::Formatter<'_>, key: &SiteKey, counts: &SiteCounts) -> fmt::Result {
    let file = &key.site.file;
    let start = file.char_indices().rev().nth(33).map_or(0, |(at, _)| at);
    let site = format!("{}:{}", &file[start..], key.site.line);
    let space = match key.space {
        Space::Global => "global",
        Space::Shared => "shared",
    };
    let access = format!("{space} {}", key.action);
    writeln!(
        f,
        "{site:<44} {access:<22} {:>9} {:>10} {:>9} {:>6.0}% {:>9} {:>6} {:>9} {:>9}",
        counts.requests,
        counts.accesses,
        counts.sectors,
        100.0 * counts.coalescing(),
        counts.bank_passes,
        counts.worst_conflict,
        counts.contended,
        counts.divergent,
    )
}
