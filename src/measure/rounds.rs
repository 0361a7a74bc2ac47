//! The rounds before a hunt: the loop with nothing recorded and with everything, so that the difference is known.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::block::{Lane, Taken};
use super::hunter::{Hunter, Measurer};
use super::lane::Shared;
use crate::error::Outcome;
use crate::host::{clock, rt};
use crate::units::Nanos;

/// How often the end of a round is looked for.
const LOOK: Nanos = Nanos(10_000_000);

/// Runs the rounds; true if a signal ended them, after which the run itself ends at once, too.
///
/// A refusal comes while all threads wait at the gate, before a round begins.
pub fn rounds(
    shared: &Shared,
    lanes: &[(i32, Arc<Lane>)],
    measurers: &[Measurer],
    hunter: &mut dyn Hunter,
) -> Outcome<bool> {
    let mut signalled = false;
    let mut blocks: Vec<Taken> = Vec::new();
    for round in 0..shared.rounds {
        let loops = hunter.prepare(round, measurers)?;
        shared.round_loops.store(loops, Ordering::Release);
        shared.ended.store(0, Ordering::Release);
        shared.gate.wait();
        let mut slowest = Nanos(0);
        while shared.ended.load(Ordering::Acquire) < lanes.len() {
            let due = clock::monotonic() + LOOK;
            let woken = rt::wait_until(due);
            slowest = slowest.max(clock::monotonic() - due);
            if woken == rt::Woken::Stop {
                signalled = true;
                shared.stop.store(true, Ordering::Relaxed);
            }
            if signalled {
                measurers.iter().for_each(|own| rt::nudge(own.thread));
            }
        }
        blocks.resize_with(lanes.len(), Taken::default);
        for ((_, lane), block) in lanes.iter().zip(&mut blocks) {
            lane.take_last(clock::monotonic(), block);
        }
        hunter.heard(round, &blocks, slowest);
        shared.gate.wait();
    }
    shared.ended.store(0, Ordering::Release);
    Ok(signalled)
}
