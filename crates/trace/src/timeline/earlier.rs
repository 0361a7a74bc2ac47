//! Time of an earlier cycle, as a later one has it.

use model::run::{Slice, Spike};
use model::units::Nanos;

/// Slices of an earlier cycle that are taken over.
const MAX_SLICES: usize = 512;

/// The words where the earlier cycle's time has no cause either.
const UNKNOWN: &str = "its previous cycle overran, and no event tells what kept that one";

/// Says that the earlier cycle's cause is unknown, where that is most of what is unexplained.
pub(super) fn tell_unknown(spike: &mut Spike, of_earlier: i64) {
    let most = of_earlier.saturating_mul(2) > spike.unexplained_ns.0;
    if most && !spike.unexplained_why.is_empty() {
        UNKNOWN.clone_into(&mut spike.unexplained_why);
    }
}

/// Slices cut to a stretch of time, in order and without overlap, whatever they were.
pub(super) fn within(slices: &[Slice], from: Nanos, to: Nanos) -> Vec<Slice> {
    let (mut cut, mut reached) = (Vec::new(), from.0);
    for slice in slices.iter().take(MAX_SLICES) {
        let start = slice.start_ns.0.max(reached);
        let end = slice.start_ns.0.saturating_add(slice.ns.0).min(to.0);
        if start < end {
            cut.push(Slice { start_ns: Nanos(start), ns: Nanos(end - start), ..slice.clone() });
            reached = end;
        }
    }
    cut
}
