//! The rules of the source tree, read from the tree: layers, words, lengths, links.
//!
//! Each check is a function from a file to what is wrong with it, tried on bad samples beside it; a
//! check that cannot fail is a defect.

#![allow(clippy::disallowed_methods)] // A test of the tree reads the tree.

mod layers;
mod lengths;
mod tree;
mod words;

/// Fails with one line per offence.
fn expect_none(offences: impl Iterator<Item = String>) {
    let offences: Vec<String> = offences.collect();
    assert!(offences.is_empty(), "\n{}\n", offences.join("\n"));
}
