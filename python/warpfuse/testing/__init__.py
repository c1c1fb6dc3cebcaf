"""Tests of other projects, run against warpfuse."""
