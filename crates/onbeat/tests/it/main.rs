//! Tests of the program or the whole tree, in one binary: one link instead of five.

#![allow(clippy::disallowed_methods)] // These tests start the program, write its inputs and read the tree.
#![allow(clippy::unwrap_used)] // Clippy knows unit tests as tests, not helpers of integration tests.

mod answers;
mod mutate;
mod pages;
mod screens;
mod tidy;
mod tutorial;
