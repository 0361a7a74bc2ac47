//! Complete document of a run whose spikes are not in memory.

use serde::Serialize;

use model::keyword::Word;
use model::labels::Labels;
use model::load::LoadRun;
use model::run::{
    CpuRun, CrossCheck, Culprit, Host, Integrity, Overhead, Plan, ProgramRun, Recorder, Run, SpinGap,
    ThreadRun,
};
use model::units::Nanos;
use model::vocabulary::{Command, Ended};

/// Fields of [`Run`], with a separate list of spikes.
#[derive(Serialize)]
pub struct Document<'a, S> {
    schema: &'a str,
    id: &'a str,
    command: &'a Word<Command>,
    complete: bool,
    ended: &'a Word<Ended>,
    version: &'a str,
    started: &'a str,
    utc_offset_s: Option<i32>,
    #[serde(skip_serializing_if = "str::is_empty")]
    boot: &'a str,
    #[serde(skip_serializing_if = "Labels::is_empty")]
    labels: &'a Labels,
    checkpoint_mono_ns: Option<Nanos>,
    plan: &'a Plan,
    host: &'a Host,
    elapsed_ns: Option<Nanos>,
    cpus: &'a [CpuRun],
    integrity: &'a [Integrity],
    #[serde(skip_serializing_if = "is_empty")]
    loads: &'a [LoadRun],
    overhead: &'a Overhead,
    spikes: &'a S,
    spikes_dropped: u64,
    culprits: &'a [Culprit],
    recorder: &'a Option<Recorder>,
    #[serde(skip_serializing_if = "is_empty")]
    cross_check: &'a [CrossCheck],
    #[serde(skip_serializing_if = "is_empty")]
    threads: &'a [ThreadRun],
    #[serde(skip_serializing_if = "is_zero")]
    threads_dropped: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: &'a Option<ProgramRun>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gaps: Option<&'a [SpinGap]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gaps_dropped: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overrun_signals: Option<u64>,
}

/// Test that serde calls for a list behind a reference.
fn is_empty<T>(list: &&[T]) -> bool {
    list.is_empty()
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl<'a, S> Document<'a, S> {
    /// Document of the run with these spikes.
    pub fn of(run: &'a Run, spikes: &'a S) -> Document<'a, S> {
        // Destructured by name, so that a new field of a run cannot be forgotten here.
        let Run {
            schema,
            id,
            command,
            complete,
            ended,
            version,
            started,
            utc_offset_s,
            boot,
            labels,
            checkpoint_mono_ns,
            plan,
            host,
            elapsed_ns,
            cpus,
            integrity,
            loads,
            overhead,
            spikes: _,
            spikes_dropped,
            culprits,
            recorder,
            threads,
            threads_dropped,
            program,
            gaps,
            gaps_dropped,
            overrun_signals,
            cross_check,
        } = run;
        Document {
            schema,
            id,
            command,
            complete: *complete,
            ended,
            version,
            started,
            utc_offset_s: *utc_offset_s,
            boot,
            labels,
            checkpoint_mono_ns: *checkpoint_mono_ns,
            plan,
            host,
            elapsed_ns: *elapsed_ns,
            cpus,
            integrity,
            loads,
            overhead,
            spikes,
            spikes_dropped: *spikes_dropped,
            culprits,
            recorder,
            threads,
            threads_dropped: *threads_dropped,
            program,
            gaps: gaps.as_deref(),
            gaps_dropped: *gaps_dropped,
            overrun_signals: *overrun_signals,
            cross_check,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::Spike;

    #[test]
    fn it_is_the_run_byte_for_byte() {
        let spike = Spike { latency_ns: Nanos(7), ..Spike::default() };
        let run = Run {
            id: "a".into(),
            spikes: vec![spike],
            spikes_dropped: 3,
            loads: vec![LoadRun::default()],
            recorder: Some(Recorder::default()),
            gaps: Some(vec![SpinGap::default()]),
            gaps_dropped: Some(4),
            overrun_signals: Some(5),
            cross_check: vec![CrossCheck::default()],
            labels: [("a".to_owned(), "b".to_owned())].into_iter().collect(),
            threads: vec![ThreadRun::default()],
            threads_dropped: 2,
            program: Some(ProgramRun::default()),
            elapsed_ns: Some(Nanos(1)),
            ..Run::default()
        };
        let bare = Run { spikes: Vec::new(), ..run.clone() };
        let document = serde_json::to_string(&Document::of(&bare, &run.spikes)).expect("a document");
        assert_eq!(document, serde_json::to_string(&run).expect("a run"));
    }
}
