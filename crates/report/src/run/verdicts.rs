//! Verdicts of the probes that test something, and their lines below the table.

use super::{cross_check, inversions, jobs, migrations, noise, packets, responses};
use model::run::Run;

/// The verdict; none for runs that only measure.
pub fn verdict(run: &Run) -> Option<String> {
    inversions::verdict(run)
        .or_else(|| migrations::verdict(run))
        .or_else(|| jobs::verdict(run))
        .or_else(|| packets::verdict(run))
        .or_else(|| responses::verdict(run))
}

/// Lines below the table.
pub fn lines(run: &Run) -> impl Iterator<Item = String> {
    let of = [
        inversions::lines,
        migrations::lines,
        jobs::lines,
        packets::lines,
        responses::lines,
        noise::lines,
        cross_check::lines,
    ];
    of.into_iter().flat_map(|lines| lines(run))
}
