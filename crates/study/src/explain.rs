//! A hunt's spikes explained again, from the windows in its bundle: later, elsewhere, without root.

use std::collections::BTreeMap;
use std::path::Path;

use crate::findings::Findings;
use bundle::events::each_window;
use bundle::read::Bundle;
use bundle::room::Room;
use model::error::{Failure, Result};
use model::run::{Run, Spike};
use model::text::{quoted, several};
use model::vocabulary::Command;
use rules::culprits::context::StealInterval;
use trace::timeline::Cost;
use trace::window::Window;

/// A hunt explained again.
pub struct ExplainedRun {
    /// The run with its new explanation.
    pub run: Run,
    /// Remarks on repairs and omissions in reading the bundle.
    pub remarks: Vec<String>,
}

/// Explains a bundle of `hunt` again; a run of another command is refused.
pub fn open(path: &Path) -> Result<ExplainedRun> {
    let mut bundle = Bundle::open(path)?;
    let mut stolen = Vec::new();
    bundle.each_block(|block| stolen.extend(StealInterval::of(block)))?;
    let (mut run, mut remarks) = (std::mem::take(&mut bundle.run), std::mem::take(&mut bundle.remarks));
    if run.command != Command::Hunt {
        return Err(Failure::usage(format!(
            "{} is a run of `onbeat {}` without a trace: give one of `onbeat hunt`",
            quoted(path),
            run.command
        )));
    }
    let unread = explain(path, &mut run, &stolen, |_| ())?;
    if unread > 0 {
        remarks.push(format!(
            "{} of events could not be read: their stored explanation stays",
            several(unread, "window", "windows")
        ));
    }
    Ok(ExplainedRun { run, remarks })
}

/// Completes a hunt that was killed, or is running: the culprits of its spikes since the last
/// checkpoint are not in its document, and the last spikes are in the events alone. Returns the
/// number of unreadable windows; any other run stays unchanged.
pub fn bring_up_to_date(path: &Path, bundle: &mut Bundle) -> Result<u64> {
    if bundle.run.complete || bundle.run.command != Command::Hunt {
        return Ok(0);
    }
    let mut stolen = Vec::new();
    bundle.each_block(|block| stolen.extend(StealInterval::of(block)))?;
    explain(path, &mut bundle.run, &stolen, |_| ())
}

/// Explains all windows anew, and passes them on; spikes without a window stay unchanged. Returns
/// the number of unreadable windows.
pub fn explain(
    bundle: &Path,
    run: &mut Run,
    stolen: &[StealInterval],
    mut each: impl FnMut(Window),
) -> Result<u64> {
    let cost = Cost::of(run);
    let (mut findings, mut room, mut dropped) = (Findings::default(), Room::default(), 0);
    let mut keep = |mut spike: Spike| {
        findings.add(&mut spike, &run.host);
        dropped += room.put(spike, 0);
    };
    let spikes = std::mem::take(&mut run.spikes);
    let mut before: BTreeMap<_, _> =
        spikes.into_iter().map(|spike| ((spike.cpu, spike.actual_ns), spike)).collect();
    let unread = each_window(bundle, |window| {
        let spike = Findings::explain(&window, &run.host, cost);
        before.remove(&(spike.cpu, spike.actual_ns));
        keep(spike);
        each(window);
    })?;
    before.into_values().for_each(&mut keep);
    run.spikes = room.into_list();
    let passed_over = run.recorder.as_ref().map_or(0, |recorder| recorder.spikes_passed_over);
    run.spikes_dropped = run.spikes_dropped.max(dropped.saturating_add(passed_over));
    // After the spikes, so that the relevant seconds are known.
    findings.stole(stolen.iter().copied());
    run.spikes.iter_mut().for_each(|spike| findings.settle(&run.host, spike));
    findings.conclude(run);
    Ok(unread)
}
