//! Report pages in a real browser: at three widths and in both colour schemes nothing overlaps, no text is cut, no request
//! leaves the page, and contrast is what WCAG AA asks for.
//!
//! Needs Chromium (Debian's package `chromium`), by one of its names on the PATH or as `WARPFUSE_BROWSER`; without it the
//! cases are ignored. `WARPFUSE_SCREENSHOTS=DIR` keeps a picture of each page, width and scheme.

mod chrome;
mod pages;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use chrome::Chrome;
use libtest_mimic::{Arguments, Failed, Trial};
use pages::Page;

/// A phone, a window, a large screen; pixels.
const WIDTHS: [u32; 3] = [400, 1000, 1600];
const SCHEMES: [&str; 2] = ["light", "dark"];
const MOST_BYTES: u64 = 400 * 1024;
/// Says in the browser what is wrong with a page.
const CHECKS: &str = include_str!("checks.js");

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let browser = chrome::find();
    let trial = |page: Page| {
        let (browser, name) = (browser.clone(), page.name());
        let trial = Trial::test(name, move || check(&browser.expect("a browser"), &page));
        trial.with_ignored_flag(chrome::find().is_none())
    };
    let mut trials: Vec<Trial> = pages::all().into_iter().map(trial).collect();
    let found = browser.clone();
    let faults = Trial::test("faults are found", move || {
        faults(&found.expect("a browser"))
    });
    trials.push(faults.with_ignored_flag(browser.is_none()));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// All that is wrong with a page, at all widths, in both schemes.
fn check(browser: &Path, page: &Page) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let path = page.make(folder.path())?;
    let bytes = fs::metadata(&path)?.len();
    let mut wrong = Vec::new();
    if bytes > MOST_BYTES {
        wrong.push(format!("{bytes} bytes, at most {MOST_BYTES} are allowed"));
    }
    let mut chrome = Chrome::start(browser)?;
    for width in WIDTHS {
        for scheme in SCHEMES {
            let found = look(&mut chrome, &path, (width, scheme))?;
            wrong.extend(found.iter().map(|one| format!("{width} {scheme}: {one}")));
            keep(&mut chrome, page, (width, scheme))?;
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n").into()),
    }
}

/// Opens a page and lists what is wrong with it.
fn look(chrome: &mut Chrome, path: &Path, view: (u32, &str)) -> Result<Vec<String>, Failed> {
    let requests = chrome.open(path, view)?;
    let left = requests
        .into_iter()
        .filter(|url| !url.starts_with("file://"));
    let mut wrong: Vec<String> = left.map(|url| format!("a request of {url}")).collect();
    let found = chrome.evaluate(CHECKS)?;
    let found = found.as_array().ok_or("the checks answer with a list")?;
    wrong.extend(
        found
            .iter()
            .map(|one| one.as_str().unwrap_or("?").to_owned()),
    );
    Ok(wrong)
}

/// Keeps a picture where one is requested.
fn keep(chrome: &mut Chrome, page: &Page, (width, scheme): (u32, &str)) -> Result<(), Failed> {
    let Some(folder) = std::env::var_os("WARPFUSE_SCREENSHOTS").map(PathBuf::from) else {
        return Ok(());
    };
    fs::create_dir_all(&folder)?;
    let name = page.name().replace(' ', "-");
    let picture = chrome.picture()?;
    fs::write(folder.join(format!("{name}-{width}-{scheme}.png")), picture)?;
    Ok(())
}

/// A page with one fault of each kind: the checks must name them all.
fn faults(browser: &Path) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("faults.html");
    fs::write(&path, include_str!("faults.html"))?;
    let mut chrome = Chrome::start(browser)?;
    let wrong = look(&mut chrome, &path, (400, "light"))?.join("\n");
    for fault in [
        "a request of http://",
        "overlaps",
        "is cut",
        "contrast",
        "wide",
        "small",
    ] {
        if !wrong.contains(fault) {
            return Err(format!("`{fault}` is not found in:\n{wrong}").into());
        }
    }
    Ok(())
}
