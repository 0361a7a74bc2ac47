//! Memory of another node.

use std::collections::BTreeSet;

use super::rule::{CheckJudge, CheckRule};
use super::sources::NUMA;
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use crate::unknown::unknown_from;
use facts::Fact;
use facts::process::ProgramThread;

pub static CHECK: CheckRule = CheckRule {
    id: "distant-memory",
    title: "memory on another node",
    description: "On a machine with several memory nodes, most of the process's pages are not on the node of \
                  the thread's CPU.",
    rationale: "each access that misses the caches takes 1.5 to 2 times as long, and shares a link with all \
                other such accesses",
    detection: "By the pages per node in /proc/PID/numa_maps and the CPUs of each node. Which of the pages \
                the thread uses is not known, so the severity is low.",
    wanted: "the pages are on the node where the thread runs",
    fix: "start the program with numactl --membind, or touch the thread's memory in the thread itself after \
          it is pinned",
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    sources: &[Source { title: "kernel: NUMA", url: NUMA }],
    reads: &["/proc/PID/numa_maps", "/sys/devices/system/node/node#/cpulist"],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "machine nodes=0-1;2-3\npages 0=10 1=900",
        silent: "machine nodes=0-1;2-3\npages 0=900 1=10",
        unknown: "machine nodes=0-1;2-3\npages refused",
    },
};

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    let nodes = match &program.machine.nodes {
        Fact::Known(nodes) if nodes.len() > 1 => nodes,
        Fact::Known(_) | Fact::Absent => {
            return Err(Judgement::not_applicable("the machine has one memory node"));
        }
        other => return Err(unknown_from("/sys/devices/system/node", other)),
    };
    let allowed = program.allowed(thread)?;
    let near: BTreeSet<u32> =
        nodes.iter().filter(|(_, cpus)| !cpus.and(allowed).is_empty()).map(|(node, _)| *node).collect();
    let maps = &program.process.nodes;
    let maps = maps.known().ok_or_else(|| unknown_from("numa_maps of the process", maps))?;
    let (mut own, mut others) = (0, 0);
    for (node, pages) in maps.iter().flat_map(|mapping| &mapping.pages) {
        *(if near.contains(node) { &mut own } else { &mut others }) += pages;
    }
    Ok(Judgement::fail_if(others > own, format!("{others} of {} pages are on other nodes", own + others)))
}
