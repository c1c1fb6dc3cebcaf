//! Panics of lanes: caught quietly, with the line that raised them.
//!
//! Only a panic hook learns where a panic was raised. Ours is installed once, keeps what lanes raise to
//! itself, and hands everything else to the hook that was there before.

use std::cell::{Cell, RefCell};
use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::sync::Once;

use super::fault::{FaultKind, Site};

thread_local! {
    static RUNS_LANES: Cell<bool> = const { Cell::new(false) };
    static RAISED: RefCell<Option<Raised>> = const { RefCell::new(None) };
}

/// A panic of a lane.
pub(super) struct Raised {
    pub message: String,
    pub site: Site,
}

impl Raised {
    /// The panic that a lane of this thread raised last.
    pub fn take() -> Option<Raised> {
        RAISED.take()
    }

    /// What it says about the kernel.
    pub fn into_kind(self) -> FaultKind {
        let message = self.message;
        if message.starts_with("attempt to ") && message.contains("overflow") {
            FaultKind::Overflow { message }
        } else {
            FaultKind::Panicked { message }
        }
    }
}

/// While this lives, panics of this thread are those of lanes.
pub(super) struct Quiet {
    before: bool,
}

impl Quiet {
    pub fn begin() -> Quiet {
        static INSTALL: Once = Once::new();
        INSTALL.call_once(install);
        Quiet {
            before: RUNS_LANES.replace(true),
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        RUNS_LANES.set(self.before);
    }
}

fn install() {
    let previous = take_hook();
    set_hook(Box::new(move |info| {
        if RUNS_LANES.get() {
            RAISED.set(Some(describe(info)));
        } else {
            previous(info);
        }
    }));
}

fn describe(info: &PanicHookInfo<'_>) -> Raised {
    let message = info.payload_as_str().unwrap_or("no message").to_owned();
    let unknown = Site {
        file: "unknown".to_owned(),
        line: 0,
        column: 0,
    };
    Raised {
        message,
        site: info.location().map_or(unknown, Site::from),
    }
}
