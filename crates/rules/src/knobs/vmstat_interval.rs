//! Virtual memory statistics: how often each CPU adds its counts to the machine's.

use super::sources::{PER_CPU_KTHREADS, SYSCTL_VM};
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::unknown::unknown_from;
use crate::view::MachineView;
use crate::words::cpu_list;
use facts::Fact;
use model::slice::SliceKind;
use model::units::CpuSet;

pub static KNOB: Knob = Knob {
    id: "vmstat-interval",
    title: "interval of memory statistics",
    description: "Every vm.stat_interval seconds, 1 by default, a worker on each CPU with memory activity \
                  adds that CPU's counters to the global ones. From 6.5 on it skips CPUs of isolcpus=domain \
                  and nohz_full=, from 6.8 on also those of isolated cpuset partitions, and from 7.0 on no \
                  longer those that are only in nohz_full=.",
    rationale: "the worker runs on the CPU whose counters it adds, once per interval, for some microseconds",
    detection: "The sysctl, and whether this kernel skips all the audited CPUs, by its version. Whether an \
                RHEL kernel before 6.5 has a backport cannot be read; other distributions are assumed not to \
                have it.",
    side_effects: "The figures in /proc/vmstat and /proc/meminfo are older by up to the interval.",
    wanted: "10 s or more",
    fix: || Change::sysctl("vm.stat_interval", 10).into(),
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    disputed: "a longer interval makes the interruption rarer, not shorter: the worst case stays, as `onbeat \
               compare` of two long runs shows; a real-time task preempts the worker in any case",
    persistence: Persistence::Runtime,
    sets: PATH,
    sources: &[
        Source { title: "kernel: jitter of per-CPU threads, kworker: vmstat_update", url: PER_CPU_KTHREADS },
        Source { title: "kernel: /proc/sys/vm, stat_interval", url: SYSCTL_VM },
    ],
    cures: &[SliceKind::Workqueue],
    reads: &[PATH, PARTITIONS],
    facts: &[
        "/proc/sys/kernel/osrelease",
        "/sys/devices/system/cpu/isolated",
        "/sys/devices/system/cpu/nohz_full",
    ],
    judge,
    examples: Examples {
        fires: "/proc/sys/vm/stat_interval: 1\n--cpus 1-2",
        silent: "/proc/sys/vm/stat_interval: 10\n--cpus 1-2",
        unknown: "/proc/sys/vm/stat_interval refused\n--cpus 1-2",
    },
    ..Knob::DEFAULT
};

const PATH: &str = "/proc/sys/vm/stat_interval";
const PARTITIONS: &str = "/sys/fs/cgroup/cpuset.cpus.isolated";

fn judge(machine: &MachineView) -> Judged {
    machine.require_isolation()?;
    let seconds = machine.number(PATH)?;
    if seconds >= 10 {
        return Ok(Judgement::pass(format!("{seconds} s")));
    }
    let series = machine.series()?;
    // Red Hat's kernels keep their version and backport much of later ones.
    let may_have_it = machine.facts().release.known().is_some_and(|release| release.contains(".el"));
    if (series >= (6, 5) || may_have_it) && machine.cpus().without(&left_out(machine)?).is_empty() {
        return Err(if series >= (6, 5) {
            Judgement::not_applicable(format!("this kernel skips {}", cpu_list(machine.cpus())))
        } else {
            Judgement::unknown("it is not known whether this RHEL kernel has the change of 6.5")
        });
    }
    Ok(Judgement::fail(format!("{seconds} s")))
}

/// CPUs that the worker skips, in kernels that skip any.
fn left_out(machine: &MachineView) -> Result<CpuSet, Judgement> {
    let series = machine.series()?;
    let isolated = machine.known(&machine.facts().isolated, "/sys/devices/system/cpu/isolated")?;
    let ticks = match &machine.facts().nohz_full {
        _ if series >= (7, 0) => CpuSet::default(),
        Fact::Known(cpus) => cpus.clone(),
        Fact::Absent => CpuSet::default(),
        other => return Err(unknown_from("/sys/devices/system/cpu/nohz_full", other)),
    };
    let partitions = if series >= (6, 8) { machine.cpu_list_if_present(PARTITIONS)? } else { None };
    Ok(isolated.or(&ticks).or(&partitions.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn isolated_cpus_are_left_out_by_newer_kernels() {
        const SECOND: &str = "/proc/sys/vm/stat_interval: 1";
        check(&KNOB, SECOND, "not-applicable this kernel skips CPUs 2-3");
        check(&KNOB, &format!("{SECOND}\n/proc/sys/kernel/osrelease: 6.1.0-50-rt-amd64"), "fail low 1 s");
        let red_hat = format!("{SECOND}\n/proc/sys/kernel/osrelease: 5.14.0-503.11.1.el9_5.x86_64+rt");
        check(&KNOB, &red_hat, "unknown");
        check(&KNOB, &format!("{red_hat}\n--cpus 1-2"), "fail low 1 s");
        let ticks = format!(
            "{SECOND}\n/sys/devices/system/cpu/isolated:\n/sys/devices/system/cpu/nohz_full: 3\n\
             --cpus 3"
        );
        check(&KNOB, &ticks, "not-applicable this kernel skips CPU 3");
        check(&KNOB, &format!("{ticks}\n/proc/sys/kernel/osrelease: 7.0.1"), "fail low 1 s");
        check(&KNOB, &format!("{SECOND}\n--cpus 1-2"), "fail low 1 s");
        let partition = format!("{SECOND}\n/sys/fs/cgroup/cpuset.cpus.isolated: 1\n--cpus 1-2");
        check(&KNOB, &partition, "not-applicable this kernel skips CPUs 1-2");
        check(&KNOB, &format!("{partition}\n/proc/sys/kernel/osrelease: 6.6.1"), "fail low 1 s");
        check(&KNOB, &format!("{SECOND}\n/sys/devices/system/cpu/isolated refused\n--cpus 2"), "unknown");
        check(&KNOB, "/proc/sys/vm/stat_interval: 1000", "pass 1000 s");
        check(&KNOB, &format!("{SECOND}\n--cpus 0-3"), "not-applicable");
        check(&KNOB, "/proc/sys/vm absent", "unknown");
    }
}
