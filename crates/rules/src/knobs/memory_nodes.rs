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
    description: "On machines with several memory nodes (sockets, or parts of one) the memory of a CPU's own \
                  node is near and all other memory is farther away, over links that all CPUs share.",
    rationale: "data shared by threads on two nodes is far from one of them: each cache miss takes longer, \
                and even longer under load on the link between the nodes",
    detection: "The nodes of the audited CPUs. The location of a task's memory and the nodes of its devices \
                are not judged: see /proc/PID/numa_maps and the devices' numa_node.",
    side_effects: "Fewer CPUs to choose from. The task's memory has to be there too: bind it (numactl \
                   --membind, cpuset.mems) before it allocates.",
    wanted: "all on one node",
    fix: || {
        Remedy::advice(
            AdviceReason::Machine,
            "choose CPUs of one node, if possible that of their device, and bind the task's memory to it",
        )
    },
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    disputed: "tasks that share nothing may be on different nodes, each with its memory: under a memory \
               load, `onbeat compare` a run with all threads on one node and one with them spread",
    persistence: Persistence::Boot,
    unsettable: "it is not known which task's memory and which device are concerned",
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
        let phrases = ours.iter().map(|(node, cpus)| format!("{} on node {node}", cpu_list(cpus)));
        return Ok(Judgement::fail(truncate_list(phrases)));
    }
    match (untold, &nodes[..]) {
        (Some(why), _) => Err(why),
        (None, []) if !machine.kconfig()?.is_yes("NUMA") => {
            Err(Judgement::not_applicable("this kernel has no CONFIG_NUMA: it has one memory node"))
        }
        (None, []) => Err(Judgement::unknown(
            "/sys/devices/system/node is not there, though the kernel has CONFIG_NUMA",
        )),
        (None, [_]) => Err(Judgement::not_applicable("there is one memory node")),
        (None, _) => {
            let all: CpuSet = ours.iter().fold(CpuSet::default(), |all, (_, cpus)| all.or(cpus));
            match (ours.first(), machine.cpus().without(&all)) {
                (Some((node, _)), rest) if rest.is_empty() => Ok(Judgement::pass(format!("node {node}"))),
                (_, rest) => Err(Judgement::unknown(format!("the node of {} is not known", cpu_list(&rest)))),
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
        check(&KNOB, &nodes("0-1", "2"), "unknown the node of CPU 3 is not known");
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
            "not-applicable this kernel has no CONFIG_NUMA: it has one memory node",
        );
        check(&KNOB, &format!("{none}\n/boot/config-6.12.9-rt-amd64 absent"), "unknown");
        check(&KNOB, "/sys/devices/system/node refused", "unknown");
    }
}
