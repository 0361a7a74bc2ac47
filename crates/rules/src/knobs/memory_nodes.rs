//! Memory nodes: whether the CPUs that matter have their memory in one place.

use super::sources::{NUMA, TOPOLOGY};
use crate::case::{Case, unread};
use crate::change::Because;
use crate::judgement::{Judged, Judgement, Severity};
use crate::remedy::Remedy;
use crate::words::{named, some_of};
use crate::{Evidence, Examples, Knob, Lasts, Slice, Source};
use facts::Fact;
use facts::line::parse_cpus;
use model::units::CpuSet;

const NODES: &str = "/sys/devices/system/node/node#/cpulist";

pub static KNOB: Knob = Knob {
    id: "memory-nodes",
    title: "memory nodes",
    what: "On machines with several memory nodes (sockets, or parts of one) each CPU has memory of its own node near and all other memory \
           farther away, with the links between shared by everybody.",
    why: "data that threads on two nodes share is far from one of them: each miss takes longer, and longer still while others load the link between the nodes",
    tell: "Which nodes the CPUs that matter belong to. Where the memory of a task really is, and at which node its devices are, is not judged: \
           /proc/PID/numa_maps and the devices' numa_node tell.",
    cost: "Fewer CPUs to choose from. A task also needs its memory there: bind it (numactl --membind, cpuset.mems) before it allocates.",
    wanted: "all on one node",
    fix: || {
        Remedy::advice(
            Because::Machine,
            "choose CPUs of one node, that of their device if there is one, and bind the task's memory to it",
        )
    },
    severity: Severity::Low,
    evidence: Evidence::Documented,
    contested: "tasks that share nothing may well be spread, each with its own memory: `onbeat compare` a run with all threads on one node and \
                one with them spread, beside a load on memory",
    lasts: Lasts::Boot,
    sources: &[
        Source { title: "kernel: what is NUMA?", url: NUMA },
        Source { title: "kernel: CPU topology in sysfs", url: TOPOLOGY },
    ],
    cures: &[Slice::Unexplained],
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

fn judge(case: &Case) -> Judged {
    case.needs_isolation()?;
    let texts = case.texts(NODES)?;
    let (mut nodes, mut untold): (Vec<(&str, CpuSet)>, _) = (Vec::new(), None);
    for text in texts {
        let node = text.names.first().map_or("", String::as_str);
        match text.content.clone().parse(|content| parse_cpus(&content)) {
            Fact::Known(cpus) => nodes.push((node, cpus)),
            other => drop(untold.get_or_insert(unread(&text.path, &other))),
        }
    }
    let ours: Vec<(&str, CpuSet)> = nodes
        .iter()
        .map(|(node, cpus)| (*node, cpus.and(case.cpus())))
        .filter(|(_, cpus)| !cpus.is_empty())
        .collect();
    if ours.len() > 1 {
        let shown = ours.iter().map(|(node, cpus)| format!("{} on node {node}", named(cpus)));
        return Ok(Judgement::fail(some_of(shown)));
    }
    match (untold, &nodes[..]) {
        (Some(why), _) => Err(why),
        (None, []) if !case.kconfig()?.is_yes("NUMA") => {
            Err(Judgement::not_applicable("this kernel has no CONFIG_NUMA: all memory is one"))
        }
        (None, []) => Err(Judgement::unknown(
            "/sys/devices/system/node is not there, though the kernel has CONFIG_NUMA",
        )),
        (None, [_]) => Err(Judgement::not_applicable("there is one memory node")),
        (None, _) => {
            let all: CpuSet = ours.iter().fold(CpuSet::default(), |all, (_, cpus)| all.or(cpus));
            match (ours.first(), case.cpus().without(&all)) {
                (Some((node, _)), rest) if rest.is_empty() => Ok(Judgement::pass(format!("node {node}"))),
                (_, rest) => Err(Judgement::unknown(format!("the node of {} is not told", named(&rest)))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    /// Two nodes with these CPUs.
    fn nodes(first: &str, second: &str) -> String {
        format!(
            "/sys/devices/system/node/node0/cpulist: {first}\n/sys/devices/system/node/node1/cpulist: {second}"
        )
    }

    #[test]
    fn one_node_is_enough() {
        check(&KNOB, "", "not-applicable there is one memory node");
        check(&KNOB, &nodes("0-1", "2-3"), "pass node 1");
        check(&KNOB, &nodes("0-3", ""), "pass node 0");
        check(&KNOB, &nodes("0,2", "1,3"), "fail low CPU 2 on node 0, CPU 3 on node 1");
        check(&KNOB, &nodes("0-1", "2"), "unknown the node of CPU 3 is not told");
        check(
            &KNOB,
            "--cpus 0-3",
            "not-applicable no CPU is set apart: say with --cpus which ones matter, if some do",
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
