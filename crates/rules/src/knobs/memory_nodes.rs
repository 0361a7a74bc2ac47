//! Memory nodes: whether the audited CPUs share one.

use super::sources::{NUMA, TOPOLOGY};
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_from;
use crate::view::MachineView;
use crate::words::{cpu_list, truncate_list};
use facts::Fact;
use facts::line::parse_cpus;
use model::slice::SliceKind;
use model::units::CpuSet;

const NODES: &str = "/sys/devices/system/node/node#/cpulist";

pub static KNOB: Knob = Knob {
    id: "memory-nodes",
    title: "memory nodes",
    description: "On machines with several memory nodes (sockets, or parts of one) each CPU has \
                  memory of its own node near and all other memory farther away, with the links \
                  between shared by everybody.",
    rationale: "data that threads on two nodes share is far from one of them: each miss takes \
                longer, and longer still while others load the link between the nodes",
    detection: "Which nodes the audited CPUs belong to. Where the memory of a task really is, and at which \
                node its devices are, is not judged: /proc/PID/numa_maps and the devices' numa_node tell.",
    side_effects: "Fewer CPUs to choose from. A task also needs its memory there: bind it \
                   (numactl --membind, cpuset.mems) before it allocates.",
    wanted: "all on one node",
    fix: || {
        Remedy::advice(
            AdviceReason::Machine,
            "choose CPUs of one node, that of their device if there is one, and bind the task's \
             memory to it",
        )
    },
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    disputed: "tasks that share nothing may well be spread, each with its own memory: `onbeat \
               compare` a run with all threads on one node and one with them spread, beside a \
               load on memory",
    persistence: Persistence::Boot,
    unsettable: "whose memory is meant, and at which device, is not known",
    sources: &[
        Source { title: "kernel: what is NUMA?", url: NUMA },
        Source { title: "kernel: CPU topology in sysfs", url: TOPOLOGY },
    ],
    cures: &[SliceKind::Unexplained],
    reads: &[NODES],
    facts: &["/sys/devices/system/cpu/online", "/sys/devices/system/cpu/isolated", "/boot/config-RELEASE"],
    judge,
    examples: Examples {
        fires: "/sys/devices/system/node/node0/cpulist: 0-2
                /sys/devices/system/node/node1/cpulist: 3",
        silent: "/sys/devices/system/node/node0/cpulist: 0-1
                 /sys/devices/system/node/node1/cpulist: 2-3",
        unknown: "/sys/devices/system/node/node0/cpulist: 0-2
                  /sys/devices/system/node/node1/cpulist refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    machine.require_isolation()?;
    let texts = machine.texts(NODES)?;
    let (mut nodes, mut untold): (Vec<(&str, CpuSet)>, _) = (Vec::new(), None);
    for text in texts {
        let node = text.names.first().map_or("", String::as_str);
        match text.content.clone().parse(|content| parse_cpus(&content)) {
            Fact::Known(cpus) => add_node(&mut nodes, node, cpus),
            other => drop(untold.get_or_insert(unknown_from(&text.path, &other))),
        }
    }
    let ours: Vec<(&str, CpuSet)> = nodes
        .iter()
        .map(|(node, cpus)| (*node, cpus.and(machine.cpus())))
        .filter(|(_, cpus)| !cpus.is_empty())
        .collect();
    if ours.len() > 1 {
        let shown = ours.iter().map(|(node, cpus)| format!("{} on node {node}", cpu_list(cpus)));
        return Ok(Judgement::fail(truncate_list(shown)));
    }
    match (untold, &nodes[..]) {
        (Some(why), _) => Err(why),
        (None, []) if !machine.kconfig()?.is_yes("NUMA") => {
            Err(Judgement::not_applicable("this kernel has no CONFIG_NUMA: all memory is one"))
        }
        (None, []) => Err(Judgement::unknown(
            "/sys/devices/system/node is not there, though the kernel has CONFIG_NUMA",
        )),
        (None, [_]) => Err(Judgement::not_applicable("there is one memory node")),
        (None, _) => {
            let all: CpuSet = ours.iter().fold(CpuSet::default(), |all, (_, cpus)| all.or(cpus));
            match (ours.first(), machine.cpus().without(&all)) {
                (Some((node, _)), rest) if rest.is_empty() => Ok(Judgement::pass(format!("node {node}"))),
                (_, rest) => Err(Judgement::unknown(format!("the node of {} is not told", cpu_list(&rest)))),
            }
        }
    }
}

/// Adds a node. Nodes with common CPUs are parts of one, as of numa=fake= (mm/numa_emulation.c).
fn add_node<'a>(nodes: &mut Vec<(&'a str, CpuSet)>, node: &'a str, cpus: CpuSet) {
    match nodes.iter_mut().find(|(_, others)| !others.and(&cpus).is_empty()) {
        Some((_, others)) => *others = others.or(&cpus),
        None => nodes.push((node, cpus)),
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    /// Two nodes with these CPUs.
    fn nodes(first: &str, second: &str) -> String {
        format!(
            "/sys/devices/system/node/node0/cpulist: {first}\n\
             /sys/devices/system/node/node1/cpulist: {second}"
        )
    }

    #[test]
    fn one_node_is_enough() {
        check(&KNOB, "", "not-applicable there is one memory node");
        check(&KNOB, &nodes("0-1", "2-3"), "pass node 1");
        check(&KNOB, &nodes("0-3", ""), "pass node 0");
        check(&KNOB, &nodes("0,2", "1,3"), "fail low CPU 2 on node 0, CPU 3 on node 1");
        check(&KNOB, &nodes("0-1", "2"), "unknown the node of CPU 3 is not told");
        check(&KNOB, &nodes("0-3", "0-3"), "not-applicable there is one memory node");
        let split = "/sys/devices/system/node/node2/cpulist: 2\n/sys/devices/system/node/node3/cpulist: 3";
        check(
            &KNOB,
            &format!("{}\n{split}", nodes("0-2", "0-2")),
            "fail low CPU 2 on node 0, CPU 3 on node 3",
        );
        check(
            &KNOB,
            "--cpus 0-3",
            "not-applicable no CPU is isolated: name the audited CPUs with --cpus, if any",
        );
    }

    #[test]
    fn no_nodes_is_not_one_node() {
        let none = "/sys/devices/system/node absent";
        check(&KNOB, &format!("{none}\nCONFIG_NUMA=y"), "unknown");
        check(
            &KNOB,
            &format!("{none}\nCONFIG_NUMA=n"),
            "not-applicable this kernel has no CONFIG_NUMA: all memory is one",
        );
        check(&KNOB, &format!("{none}\n/boot/config-6.12.9-rt-amd64 absent"), "unknown");
        check(&KNOB, "/sys/devices/system/node refused", "unknown");
    }
}
