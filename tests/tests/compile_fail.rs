//! Launches that the compiler has to refuse.
//!
//! `TRYBUILD=overwrite` rewrites the expected messages.

#[test]
fn wrong_launches_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
