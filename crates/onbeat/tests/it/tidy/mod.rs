//! Rules of the source tree that neither a manifest nor Clippy checks.
//!
//! Each check is a function from a file to its faults, tried on bad samples next to it: a check
//! that cannot fail is a defect.

mod code;
mod lines;
mod ratchets;
mod sizes;
mod subjects;
mod tree;
mod walls;

/// Fails with one line per offence.
fn expect_none(offences: impl IntoIterator<Item = String>) {
    let offences: Vec<String> = offences.into_iter().collect();
    assert!(offences.is_empty(), "\n{}\n", offences.join("\n"));
}

/// Fails for more offences than a limit that the tree does not meet yet; lower the limit with their
/// number.
fn expect_at_most(most: usize, offences: impl IntoIterator<Item = String>) {
    let offences: Vec<String> = offences.into_iter().collect();
    let count = offences.len();
    assert!(count <= most, "{count} instead of {most}, yours among these:\n{}\n", offences.join("\n"));
}
