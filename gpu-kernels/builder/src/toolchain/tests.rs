//! Discovery among fake toolchains: folders with shell scripts that answer as rustc does.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::*;

/// A folder that goes away with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("warpfuse-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a writable temporary folder");
        Scratch(path)
    }

    /// A sysroot under this folder whose rustc answers with `version`.
    fn toolchain(&self, name: &str, version: &str, source: Source) -> PathBuf {
        let sysroot = self.0.join("toolchains").join(name);
        answering_rustc(&sysroot.join("bin"), &sysroot, version);
        script(&sysroot.join("bin/cargo"), "exit 0");
        if source == Source::Present {
            add_source(&sysroot);
        }
        sysroot
    }

    fn rustup(&self) -> Surroundings {
        Surroundings {
            rustup_home: Some(self.0.clone()),
            ..Surroundings::default()
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[derive(PartialEq)]
enum Source {
    Present,
    Absent,
}

fn script(path: &Path, body: &str) {
    fs::create_dir_all(path.parent().expect("a file in a folder")).expect("writable");
    fs::write(path, format!("#!/bin/sh\n{body}\n")).expect("writable");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("own file");
}

fn answering_rustc(bin: &Path, sysroot: &Path, version: &str) {
    let body = format!(
        "if [ \"$1\" = --print ]; then echo '{}'; else echo 'rustc {version} (abc 2026-01-01)'; fi",
        sysroot.display()
    );
    script(&bin.join("rustc"), &body);
}

fn add_source(sysroot: &Path) {
    let file = sysroot.join(LIBRARY);
    fs::create_dir_all(file.parent().expect("a file in a folder")).expect("writable");
    fs::write(file, "").expect("writable");
}

#[test]
fn the_active_toolchain_comes_first() {
    let scratch = Scratch::new("active");
    scratch.toolchain("1.95.0-x", "1.95.0", Source::Present);
    let active = scratch.toolchain("nightly-x", "1.97.0-nightly", Source::Present);
    let around = Surroundings {
        active_cargo: Some(active.join("bin/cargo")),
        ..scratch.rustup()
    };
    let found = discover(&around).expect("two good toolchains");
    assert_eq!((found.sysroot, found.origin), (active, Origin::Active));
}

#[test]
fn a_toolchain_without_source_is_passed_over() {
    let scratch = Scratch::new("source");
    let active = scratch.toolchain("1.95.0-x", "1.95.0", Source::Absent);
    let other = scratch.toolchain("stable-x", "1.96.1", Source::Present);
    let around = Surroundings {
        active_cargo: Some(active.join("bin/cargo")),
        ..scratch.rustup()
    };
    let found = discover(&around).expect("stable has its source");
    assert_eq!((found.sysroot, found.origin), (other, Origin::Rustup));
}

#[test]
fn numbered_toolchains_precede_nightly() {
    let scratch = Scratch::new("order");
    scratch.toolchain("beta-x", "1.97.0-beta.1", Source::Present);
    scratch.toolchain("nightly-x", "1.98.0-nightly", Source::Present);
    let numbered = scratch.toolchain("1.95.0-x", "1.95.0", Source::Present);
    let found = discover(&scratch.rustup()).expect("three good toolchains");
    assert_eq!(found.sysroot, numbered);
}

#[test]
fn an_old_compiler_is_refused_with_its_version() {
    let scratch = Scratch::new("old");
    scratch.toolchain("1.63.0-x", "1.63.0", Source::Present);
    let message = discover(&scratch.rustup())
        .expect_err("too old")
        .to_string();
    assert!(message.contains("1.63.0"), "{message}");
    assert!(
        message.contains("rustup component add rust-src"),
        "{message}"
    );
}

#[test]
fn the_variable_is_obeyed_or_an_error() {
    let scratch = Scratch::new("variable");
    scratch.toolchain("1.95.0-x", "1.95.0", Source::Present);
    let bare = scratch.toolchain("stable-x", "1.96.0", Source::Absent);
    let around = Surroundings {
        rustc: Some(bare.join("bin/rustc")),
        ..scratch.rustup()
    };
    let message = discover(&around).expect_err("no source").to_string();
    assert!(message.contains("WARPFUSE_RUSTC"), "{message}");

    add_source(&bare);
    let found = discover(&around).expect("source is there now");
    assert_eq!((found.sysroot, found.origin), (bare, Origin::Variable));
}

#[test]
fn a_distribution_compiler_is_called_by_its_path() {
    let scratch = Scratch::new("system");
    // As Debian has it: binaries in usr/bin, the sysroot is usr.
    let usr = scratch.0.join("usr");
    answering_rustc(&usr.join("bin"), &usr, "1.96.0");
    script(&usr.join("bin/cargo"), "exit 0");
    add_source(&usr);
    let around = Surroundings {
        system_bin: Some(usr.join("bin")),
        ..Surroundings::default()
    };
    let found = discover(&around).expect("the distribution's");
    assert_eq!(found.cargo, usr.join("bin/cargo"));
    assert_eq!(found.origin, Origin::System);
}

#[test]
fn a_proxy_resolves_to_the_binaries_of_its_sysroot() {
    let scratch = Scratch::new("proxy");
    let real = scratch.toolchain("1.95.0-x", "1.95.0", Source::Present);
    let proxies = scratch.0.join("cargo-bin");
    answering_rustc(&proxies, &real, "1.95.0");
    let around = Surroundings {
        path: vec![scratch.0.join("empty"), proxies],
        ..Surroundings::default()
    };
    let found = discover(&around).expect("behind the proxy");
    assert_eq!(found.rustc, real.join("bin/rustc"));
    assert_eq!(found.cargo, real.join("bin/cargo"));
}

#[test]
fn a_compiler_that_fails_is_reported() {
    let scratch = Scratch::new("broken");
    let bin = scratch.0.join("bin");
    script(
        &bin.join("rustc"),
        "echo 'error: toolchain is not installed' >&2; exit 1",
    );
    let around = Surroundings {
        path: vec![bin],
        ..Surroundings::default()
    };
    let message = discover(&around).expect_err("broken").to_string();
    assert!(message.contains("toolchain is not installed"), "{message}");
}

#[test]
fn releases_are_read_from_version_lines() {
    assert_eq!(release("rustc 1.95.0 (abc 2026-04-14)"), Some((1, 95)));
    assert_eq!(release("rustc 1.97.0-nightly (abc)"), Some((1, 97)));
    assert_eq!(release("rustc"), None);
}
