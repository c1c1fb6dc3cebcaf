//! Printouts that users know by heart. `TRYCMD=overwrite cargo test -p warpfuse --test cli` takes new ones.

use crate::program;

#[test]
fn help_and_plans_look_as_they_did() {
    trycmd::TestCases::new()
        .register_bin("warpfuse", program::path().as_path())
        .case("tests/cli/snapshots/*.trycmd");
}
