//! `onbeat probe irq --irq` without `--read`: events from outside.

use std::sync::Arc;

use super::{KeptRun, measured};
use crate::cli::running::PreparedRun;
use crate::hunt::source::EventSource;
use crate::probe::irq::InterruptNames;
use crate::probe::irq_outside::OutsideEvents;
use model::error::{Exit, Failure, Result};
use model::vocabulary::{Ended, IntegrityKind};
use trace::interrupt_path::WatchedInterrupt;

/// Observes the events of an interrupt of that number and handler.
pub fn measure(
    prepared: PreparedRun,
    events: Box<dyn EventSource + Send>,
    line: WatchedInterrupt,
    names: InterruptNames,
) -> Result<(KeptRun, Option<Failure>)> {
    let body = Arc::new(OutsideEvents::new(events, line));
    let results = body.clone();
    let kept = measured(prepared, body, None, move |run| {
        // They are about measuring threads, which sleep here.
        let of_threads = [IntegrityKind::PageFault, IntegrityKind::RtCompetitor];
        run.integrity.retain(|entry| !of_threads.iter().any(|kind| entry.kind == *kind));
        if let Some(cpu) = run.cpus.first_mut() {
            cpu.responses = Some(results.responses(&names));
        }
    })?;
    let none = kept.run.samples().is_none_or(|samples| samples == 0) && kept.run.ended != Ended::Signal;
    let failure = none.then(|| Failure {
        exit: Exit::Inconclusive,
        message: "the interrupt woke no thread during the run: increase -D, or cause events with --read"
            .to_owned(),
    });
    Ok((kept, failure))
}
