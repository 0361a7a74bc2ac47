//! Memory controllers are polled for errors.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{EDAC_MC_C, WORKQUEUE};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "edac-poll",
    title: "polling for memory errors",
    signature: "A kernel worker runs a function of EDAC, every second by default.",
    detection: "By the exact function of the work; drivers that get an interrupt for each error have no such \
                work.",
    remedy: "increase edac_mc_poll_msec of the module edac_core, which delays the report of corrected \
             errors, or keep its worker off this CPU",
    kinds: &[SliceKind::Workqueue, SliceKind::PreemptOff],
    sources: &[
        Source { title: "kernel: drivers/edac/edac_mc.c", url: EDAC_MC_C },
        Source { title: "kernel: workqueues", url: WORKQUEUE },
    ],
    evidence: EvidenceKind::Source,
    cured_by: &["workqueue-cpumask"],
    provoke: "edac_mc_poll_msec of 100 on hardware with a polled EDAC driver",
    matches: |context| {
        context.work_item_in(FUNCTIONS).map(|function| format!("{function} ran in a kernel worker"))
    },
    examples: SpikeExamples {
        fires: "victim comm=logger prio=120\nworkqueue ns=90000 function=edac_mc_workq_function \
                comm=kworker/1:2 pid=60 prio=120",
        silent: "victim comm=logger prio=120\nworkqueue ns=90000 function=vmstat_update \
                 comm=kworker/1:2 pid=60 prio=120",
    },
    ..CulpritRule::DEFAULT
};

/// Functions of its work items.
const FUNCTIONS: &[&str] =
    &["edac_device_workq_function", "edac_mc_workq_function", "edac_pci_workq_function"];
