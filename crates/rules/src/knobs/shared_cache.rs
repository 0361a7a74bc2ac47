//! Shared caches: lines of a real-time task that the rest of the machine can evict.

use std::collections::{BTreeMap, BTreeSet};

use super::per_cpu::numbered;
use super::sources::{ABI, RESCTRL, RT_HARDWARE};
use super::unsettable;
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::cpu_list;
use facts::line::{parse_cpus, parse_u64, parse_word};
use model::slice::SliceKind;
use model::units::CpuSet;

const LEVEL: &str = "/sys/devices/system/cpu/cpu#/cache/index#/level";
const SHARED: &str = "/sys/devices/system/cpu/cpu#/cache/index#/shared_cpu_list";
const GROUP_CPUS: &str = "/sys/fs/resctrl/*/cpus_list";
const GROUP_MODE: &str = "/sys/fs/resctrl/*/mode";
const GROUP_PARTS: &str = "/sys/fs/resctrl/*/schemata";

pub static KNOB: Knob = Knob {
    id: "shared-cache",
    title: "shared caches",
    description: "The caches that the audited CPUs share with CPUs for other work. On many Arm processors \
                  and on E cores the cores of a cluster share an L2; most or all cores share the last-level \
                  cache.",
    rationale: "other work evicts cache lines of the real-time task, and then each access waits for memory: \
                hundreds of nanoseconds each, which add up with the size of the code and data",
    detection: "The CPUs that share a cache of level 2 or higher with the audited ones. A resctrl group in \
                mode exclusive with all audited CPUs and a part of the cache counts as a separate cache. \
                System caches outside of the CPUs, and memory bandwidth, are not considered.",
    side_effects: "Another choice of CPUs, or less cache for the other work (resctrl). On many processors \
                   the last-level cache cannot be separated.",
    wanted: "no cache is shared with other work, or a part of it is reserved",
    fix: Remedy::default,
    severity: Severity::Info,
    evidence: EvidenceKind::Documented,
    disputed: "the effect depends on the size of the task: `onbeat compare` a run on the idle machine and \
               one with a load that sweeps through memory",
    persistence: Persistence::Runtime,
    unsettable: unsettable::MACHINE,
    sources: &[
        Source { title: "kernel: considering hardware, system memory and cache", url: RT_HARDWARE },
        Source { title: "kernel: user interface for resource control, resource group modes", url: RESCTRL },
        Source { title: "kernel: sysfs ABI, /sys/devices/system/cpu/cpu*/cache/index*", url: ABI },
    ],
    cures: &[SliceKind::Unexplained],
    reads: &[LEVEL, SHARED, GROUP_CPUS, GROUP_MODE, GROUP_PARTS],
    facts: &["/sys/devices/system/cpu/online", "/sys/devices/system/cpu/isolated"],
    judge,
    examples: Examples {
        fires: "/sys/devices/system/cpu/cpu2/cache/index2/level: 2
                /sys/devices/system/cpu/cpu2/cache/index2/shared_cpu_list: 1-2",
        silent: "/sys/devices/system/cpu/cpu2/cache absent
                 /sys/devices/system/cpu/cpu3/cache absent
                 /sys/devices/system/cpu/cpu2/cache/index3/level: 3
                 /sys/devices/system/cpu/cpu2/cache/index3/shared_cpu_list: 2-3
                 /sys/devices/system/cpu/cpu3/cache/index3/level: 3
                 /sys/devices/system/cpu/cpu3/cache/index3/shared_cpu_list: 2-3",
        unknown: "/sys/devices/system/cpu/cpu2/cache absent
                  /sys/devices/system/cpu/cpu2/cache/index3/level: 3
                  /sys/devices/system/cpu/cpu2/cache/index3/shared_cpu_list: 2-3
                  /sys/devices/system/cpu/cpu3/cache refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    machine.require_isolation()?;
    let housekeeping = machine.housekeeping_cpus()?;
    let mut untold = None;
    // Audited CPUs by level and list of sharers: all sharers have the same text.
    let mut caches: BTreeMap<(u64, String), CpuSet> = BTreeMap::new();
    let mut lists = numbered(machine, SHARED, |text| Ok(text.to_owned()))?;
    for (at, level) in numbered(machine, LEVEL, parse_u64)? {
        let list = lists.remove(&at).unwrap_or_else(|| {
            Err(Judgement::unknown(format!("the CPUs that share a cache with CPU {} are not known", at.0)))
        });
        match (level, list) {
            // Every CPU has a first level; if no other is listed, there may well be more.
            (Ok(..=1), _) => {}
            (Ok(level), Ok(list)) => drop(caches.entry((level, list)).or_default().0.insert(at.0)),
            (Err(why), _) | (_, Err(why)) => drop(untold.get_or_insert(why)),
        }
    }
    let mut seen = CpuSet::default();
    // The audited CPUs that share each level, and the CPUs that they share it with.
    let mut shared: BTreeMap<u64, (CpuSet, CpuSet)> = BTreeMap::new();
    for ((level, list), cpus) in caches {
        match parse_cpus(&list) {
            Ok(all) if all.and(&housekeeping).is_empty() => {}
            Ok(all) => {
                let (ours, theirs) = shared.entry(level).or_default();
                (*ours, *theirs) = (ours.or(&cpus), theirs.or(&all.and(&housekeeping)));
            }
            Err(why) => {
                let why =
                    format!("{} of {} cannot be parsed: {why}", SHARED.replace('#', "N"), cpu_list(&cpus));
                untold.get_or_insert(Judgement::unknown(why));
            }
        }
        seen = seen.or(&cpus);
    }
    let apart = if shared.is_empty() { BTreeSet::new() } else { kept_apart(machine) };
    if let Some((level, (ours, theirs))) = shared.into_iter().find(|(level, _)| !apart.contains(level)) {
        return Ok(sharing(level, &ours, &theirs));
    }
    let unseen = machine.cpus().without(&seen);
    match untold {
        Some(why) => Err(why),
        None if !unseen.is_empty() => {
            Err(Judgement::unknown(format!("the caches of {} are not known", cpu_list(&unseen))))
        }
        None if !apart.is_empty() => Ok(Judgement::pass("reserved by resctrl")),
        None => Ok(Judgement::pass("none beyond the audited CPUs")),
    }
}

fn sharing(level: u64, ours: &CpuSet, theirs: &CpuSet) -> Judgement {
    // The last level is hardly ever private; the second is, on most processors.
    let severity = if level == 2 { Severity::Medium } else { Severity::Info };
    Judgement::fail(format!("L{level} of {} shared with {}", cpu_list(ours), cpu_list(theirs)))
        .severity(severity)
        .fix(Remedy::advice(
            AdviceReason::Machine,
            format!(
                "choose CPUs that share no L{level} with others, or give {} a part of it: a resctrl group \
                 with their cpus_list and mode exclusive, if the processor has cache allocation",
                cpu_list(ours)
            ),
        ))
}

/// Levels of which an exclusive group with all audited CPUs has a part; empty if that cannot be
/// read.
fn kept_apart(machine: &MachineView) -> BTreeSet<u64> {
    let parts = machine.each(GROUP_PARTS, |text| Ok(levels(text)));
    let (Ok(cpus), Ok(modes), Ok(parts)) =
        (machine.each(GROUP_CPUS, parse_cpus), machine.each(GROUP_MODE, parse_word), parts)
    else {
        return BTreeSet::new();
    };
    let exclusive: BTreeSet<&[String]> =
        modes.into_iter().filter(|(_, mode)| mode == "exclusive").map(|(group, _)| group).collect();
    let ours: BTreeSet<&[String]> = cpus
        .into_iter()
        .filter(|(_, cpus)| machine.cpus().without(cpus).is_empty())
        .map(|(group, _)| group)
        .collect();
    let ours = parts.into_iter().filter(|(group, _)| exclusive.contains(group) && ours.contains(group));
    ours.flat_map(|(_, levels)| levels).collect()
}

/// Cache levels in a group's schemata: `L3:0=f;1=f`, `L2CODE:0=3`; memory bandwidth is not a cache.
fn levels(schemata: &str) -> BTreeSet<u64> {
    let level = |line: &str| line.trim().strip_prefix('L')?.get(..1)?.parse().ok();
    schemata.lines().filter_map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const GROUP: &str = "/sys/fs/resctrl/rt/cpus_list: 2-3\n/sys/fs/resctrl/rt/schemata:\n| \
                         MB:0=100\n| L3:0=f\n/sys/fs/resctrl/rt/mode: ";

    #[test]
    fn the_nearest_shared_level_counts() {
        check(&KNOB, "", "fail info L3 of CPUs 2-3 shared with CPUs 0-1");
        check(
            &KNOB,
            "/sys/devices/system/cpu/cpu3/cache/index2/shared_cpu_list: 0,3",
            "fail medium L2 of CPU 3 shared with CPU 0",
        );
        check(
            &KNOB,
            "/sys/devices/system/cpu/cpu3/cache/index0/shared_cpu_list: 0,3",
            "fail info L3 of CPUs 2-3 shared with CPUs 0-1",
        );
    }

    #[test]
    fn an_exclusive_group_keeps_it_apart() {
        check(&KNOB, &format!("{GROUP}exclusive"), "pass reserved by resctrl");
        check(&KNOB, &format!("{GROUP}shareable"), "fail info L3 of CPUs 2-3 shared with CPUs 0-1");
        check(
            &KNOB,
            &format!("{GROUP}exclusive\n/sys/fs/resctrl/rt/cpus_list: 3"),
            "fail info L3 of CPUs 2-3 shared with CPUs 0-1",
        );
        check(
            &KNOB,
            &format!("{GROUP}exclusive\n/sys/fs/resctrl refused"),
            "fail info L3 of CPUs 2-3 shared with CPUs 0-1",
        );
        let nearer =
            format!("{GROUP}exclusive\n/sys/devices/system/cpu/cpu3/cache/index2/shared_cpu_list: 0,3");
        check(&KNOB, &nearer, "fail medium L2 of CPU 3 shared with CPU 0");
        check(
            &KNOB,
            &format!("{nearer}\n/sys/fs/resctrl/rt/schemata:\n| L2CODE:0=3\n| L2DATA:0=3\n|     L3:0=f"),
            "pass reserved by resctrl",
        );
        let untold = "/sys/devices/system/cpu/cpu3/cache/index3/shared_cpu_list refused";
        check(&KNOB, &format!("{GROUP}exclusive\n{untold}"), "unknown");
    }

    #[test]
    fn an_unreported_cache_does_not_count_as_private() {
        let none = "/sys/devices/system/cpu/cpu2/cache absent\n/sys/devices/system/cpu/cpu3/cache \
                    absent";
        check(&KNOB, none, "unknown the caches of CPUs 2-3 are not known");
        let own = "--cpus 2\n/sys/devices/system/cpu/cpu2/cache/index3/shared_cpu_list: 2";
        check(&KNOB, own, "pass none beyond the audited CPUs");
        check(&KNOB, &format!("{own}\n/sys/devices/system/cpu/cpu2/cache/index3/level: last"), "unknown");
        for list in ["absent", "refused"] {
            check(
                &KNOB,
                &format!("{own}\n/sys/devices/system/cpu/cpu2/cache/index3/shared_cpu_list {list}"),
                "unknown",
            );
        }
        check(&KNOB, "--cpus 2\n/sys/devices/system/cpu/cpu2/cache/index3/shared_cpu_list: all", "unknown");
        check(
            &KNOB,
            "--cpus 0-3",
            "not-applicable no CPU is isolated: name the audited CPUs with --cpus, if any",
        );
    }
}
