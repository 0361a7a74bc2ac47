//! Rounds before a hunt: the loop without recording and with all events, to measure the difference.

use std::sync::atomic::Ordering;

use super::block::DrainedBlock;
use super::hunter::{Hunter, MeasuringThread};
use super::shared::Shared;
use super::worker::ReadyThread;
use host::{clock, rt};
use model::error::Result;
use model::units::Nanos;

/// Interval of the checks for the end of a round.
const POLL: Nanos = Nanos(10_000_000);

/// Runs the rounds; returns the cost of a cycle of each thread with everything recorded, none if a
/// signal ended the rounds.
///
/// An error is returned while all threads wait at the barrier before a round. After a signal, the
/// remaining rounds are skipped and the run ends immediately.
pub fn rounds(
    shared: &Shared,
    threads: &[ReadyThread],
    hunter: &mut dyn Hunter,
) -> Result<Option<Vec<Nanos>>> {
    let measuring: Vec<MeasuringThread> = threads.iter().map(|ready| ready.thread).collect();
    let mut signalled = rt::stop_pending();
    let mut blocks: Vec<DrainedBlock> = Vec::new();
    for round in 0..shared.rounds {
        if signalled {
            shared.stop.store(true, Ordering::Relaxed);
        } else {
            shared.round_loops.store(hunter.prepare_round(round, &measuring)?, Ordering::Release);
        }
        shared.ended.store(0, Ordering::Release);
        shared.start_at.store(0, Ordering::Release);
        shared.barrier.wait();
        let mut slowest = Nanos(0);
        while !shared.all_have_ended(threads.len()) {
            let due = clock::monotonic() + POLL;
            let woken = rt::wait_until(due);
            slowest = slowest.max(clock::monotonic() - due);
            if woken == rt::Woken::Stop {
                signalled = true;
                shared.stop.store(true, Ordering::Relaxed);
            }
            if signalled {
                measuring.iter().for_each(|thread| rt::interrupt_sleep(thread.id));
            }
        }
        blocks.resize_with(threads.len(), DrainedBlock::default);
        for (ready, block) in threads.iter().zip(&mut blocks) {
            ready.buffers.take_last(clock::monotonic(), block);
        }
        if !signalled {
            hunter.round_done(round, &blocks, slowest);
        }
        shared.barrier.wait();
    }
    shared.ended.store(0, Ordering::Release);
    let cost = |block: &DrainedBlock| Nanos(block.used.0 / block.cycles.max(1) as i64);
    Ok((!signalled).then(|| blocks.iter().map(cost).collect()))
}
