//! Cache-aware balancing: threads of a process that are moved to one cache.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::{SCHED_DEBUG_C, SCHED_TOPOLOGY_C};
use crate::change::{Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::load_balancing;
use crate::unknown::unknown_absent;
use crate::view::MachineView;
use crate::words::cpu_list;
use facts::line::{parse_u64, parse_word};
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "cache-aware-balancing",
    title: "cache-aware load balancing",
    description: "From 7.2 on a kernel with SCHED_CACHE by default gathers the ordinary threads of a process \
                  on CPUs that share a last-level cache.",
    rationale: "it migrates threads that would otherwise stay, and fills some CPUs while others are idle",
    detection: "llc_balancing/enabled in debugfs, which takes root, on machines with more than one \
                last-level cache. It does not affect CPUs that are out of load balancing.",
    side_effects: "The threads of a process are spread over more caches, and share data more slowly.",
    wanted: "0 if ordinary tasks share the audited CPUs",
    fix: || Change::write(ENABLED, 0).into(),
    severity: Severity::Info,
    evidence: EvidenceKind::Source,
    persistence: Persistence::Runtime,
    sets: ENABLED,
    sources: &[
        Source { title: "kernel: kernel/sched/topology.c, sched_cache_active_set()", url: SCHED_TOPOLOGY_C },
        Source { title: "kernel: kernel/sched/debug.c, llc_balancing", url: SCHED_DEBUG_C },
    ],
    cures: &[SliceKind::Switch, SliceKind::Thread, SliceKind::Softirq],
    reads: &[ENABLED, LEVEL, SHARED],
    facts: &["/boot/config-RELEASE", "/proc/sys/kernel/osrelease", "/sys/devices/system/cpu/isolated"],
    judge,
    examples: Examples {
        fires: "--cpus 1-3
                /sys/kernel/debug/sched/llc_balancing/enabled: 1
                /sys/devices/system/cpu/cpu2/cache/index3/shared_cpu_list: 2-3
                /sys/devices/system/cpu/cpu3/cache/index3/shared_cpu_list: 2-3
                /sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list: 0-1
                /sys/devices/system/cpu/cpu1/cache/index3/shared_cpu_list: 0-1",
        silent: "--cpus 1-3
                 /sys/kernel/debug/sched/llc_balancing/enabled: 0",
        unknown: "--cpus 1-3
                  /sys/devices/system/cpu/cpu2/cache/index3/shared_cpu_list: 2-3
                  CONFIG_SCHED_CACHE=y
                  /sys/kernel/debug/sched/llc_balancing refused",
    },
    ..Knob::DEFAULT
};

const ENABLED: &str = "/sys/kernel/debug/sched/llc_balancing/enabled";
const LEVEL: &str = "/sys/devices/system/cpu/cpu#/cache/index#/level";
const SHARED: &str = "/sys/devices/system/cpu/cpu#/cache/index#/shared_cpu_list";

fn judge(machine: &MachineView) -> Judged {
    let enabled = match machine.number_if_present(ENABLED) {
        Ok(Some(enabled)) => enabled,
        unread => {
            may_have(machine)?;
            // Without the files of caches their number is open.
            let caches = last_level_caches(machine).ok().filter(|caches| *caches > 0);
            concerns(machine, caches.unwrap_or(usize::MAX))?;
            return Err(unread.err().unwrap_or_else(|| unknown_absent(ENABLED)));
        }
    };
    if enabled == 0 {
        return Ok(Judgement::pass("0"));
    }
    concerns(machine, last_level_caches(machine)?)?;
    Ok(Judgement::fail(enabled.to_string()))
}

/// Returns early if it cannot touch the audited CPUs, whether the switch can be read or not.
fn concerns(machine: &MachineView, last_level_caches: usize) -> Result<(), Judgement> {
    if last_level_caches < 2 {
        return Err(Judgement::not_applicable("one last-level cache: nothing to balance between"));
    }
    if load_balancing::is_off(machine) {
        let cpus = cpu_list(machine.cpus());
        return Err(Judgement::not_applicable(format!("out of load balancing: {cpus}")));
    }
    Ok(())
}

/// Returns early if the kernel has none, whether the switch can be read or not.
fn may_have(machine: &MachineView) -> Result<(), Judgement> {
    match (machine.kconfig().map(|config| config.is_yes("SCHED_CACHE")), machine.series()) {
        (Ok(true), _) => Ok(()),
        (Ok(false), _) => Err(Judgement::not_applicable("the kernel has no SCHED_CACHE")),
        (Err(_), Ok(series)) if series < (7, 0) => Err(Judgement::not_applicable("it came with 7.x")),
        (Err(untold), _) => Err(untold),
    }
}

/// Number of caches of the highest level, distinguished by the CPUs that share them.
fn last_level_caches(machine: &MachineView) -> Result<usize, Judgement> {
    let levels: BTreeMap<&[String], u64> = machine.each(LEVEL, parse_u64)?.into_iter().collect();
    let shared = machine.each(SHARED, parse_word)?;
    let last = shared.iter().filter_map(|(names, _)| levels.get(names)).max();
    let of_last = shared.iter().filter(|(names, _)| levels.get(names) == last);
    Ok(of_last.map(|(_, cpus)| cpus.as_str()).collect::<BTreeSet<&str>>().len())
}

#[cfg(test)]
mod tests {
    use super::{ENABLED, KNOB};
    use crate::fixture::check;

    #[test]
    fn it_counts_with_a_second_cache_for_cpus_that_are_balanced() {
        check(&KNOB, KNOB.examples.fires, "fail info 1");
        check(
            &KNOB,
            &format!("{ENABLED}: 1"),
            "not-applicable one last-level cache: nothing to balance between",
        );
        let apart = KNOB.examples.fires.replace("--cpus 1-3", "");
        check(&KNOB, &apart, "not-applicable out of load balancing: CPUs 2-3");
        check(&KNOB, "", "not-applicable the kernel has no SCHED_CACHE");
        check(&KNOB, &format!("{ENABLED} refused"), "not-applicable the kernel has no SCHED_CACHE");
        let unread = format!("CONFIG_SCHED_CACHE=y\n{ENABLED} refused");
        let one = "not-applicable one last-level cache: nothing to balance between";
        check(&KNOB, &format!("--cpus 1-3\n{unread}"), one);
        check(&KNOB, &KNOB.examples.fires.replace(&format!("{ENABLED}: 1"), &unread), "unknown");
        let none: String =
            (0..4).map(|cpu| format!("\n/sys/devices/system/cpu/cpu{cpu}/cache absent")).collect();
        check(&KNOB, &format!("--cpus 1-3\n{unread}{none}"), "unknown");
        check(&KNOB, &format!("{unread}{none}"), "not-applicable out of load balancing: CPUs 2-3");
        check(&KNOB, "/boot absent", "not-applicable it came with 7.x");
        check(&KNOB, "--cpus 1-3\n/boot absent\n/proc/sys/kernel/osrelease: 7.3.4", "unknown");
    }
}
