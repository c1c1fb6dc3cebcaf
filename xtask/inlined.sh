#!/bin/sh
# A wrapper of the compiler for tests (cargo's RUSTC_WORKSPACE_WRAPPER): without optimisation every step of an iterator is a call.
# Inlining before LLVM compiles no longer, as there is less to compile; taking variables out of memory takes a twentieth.
# xtask/README.md has figures. Inlining has no stable flag; the source is compiled without this too, by lints and in release.
RUSTC_BOOTSTRAP=1 exec "$@" -Zmir-opt-level=2 -Zinline-mir=yes -Cpasses=sroa,early-cse,simplifycfg
