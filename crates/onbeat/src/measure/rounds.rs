//! The rounds before a hunt: the loop with nothing recorded and with everything, so that the difference is known.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::block::{Lane, Taken};
use super::hunter::{Hunter, Measurer};
use super::lane::Shared;
use host::{clock, rt};
use model::error::Outcome;
use model::units::Nanos;

/// How often the end of a round is looked for.
const LOOK: Nanos = Nanos(10_000_000);

/// Runs the rounds; none if a signal ended them, else what a cycle of each thread costs with everything recorded.
///
/// A refusal comes while all threads wait at the gate, before a round begins. After a signal the run itself ends at once,
/// too: what rounds are left are passed through.
pub fn rounds(
    shared: &Shared,
    lanes: &[(i32, Arc<Lane>)],
    measurers: &[Measurer],
    hunter: &mut dyn Hunter,
) -> Outcome<Option<Vec<Nanos>>> {
    let mut signalled = rt::stop_waits();
    let mut blocks: Vec<Taken> = Vec::new();
    for round in 0..shared.rounds {
        if signalled {
            shared.stop.store(true, Ordering::Relaxed);
        } else {
            shared.round_loops.store(hunter.prepare(round, measurers)?, Ordering::Release);
        }
        shared.ended.store(0, Ordering::Release);
        shared.go.store(0, Ordering::Release);
        shared.gate.wait();
        let mut slowest = Nanos(0);
        while !shared.all_have_ended(lanes.len()) {
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
        if !signalled {
            hunter.heard(round, &blocks, slowest);
        }
        shared.gate.wait();
    }
    shared.ended.store(0, Ordering::Release);
    let cost = |block: &Taken| Nanos(block.used.0 / block.cycles.max(1) as i64);
    Ok((!signalled).then(|| blocks.iter().map(cost).collect()))
}
