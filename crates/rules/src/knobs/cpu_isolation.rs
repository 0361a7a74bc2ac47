//! Isolation of CPUs: whether the scheduler spreads other tasks over the audited ones.

use super::sources::{CGROUP_V2, ISOLATION, PARAMETERS};
use crate::change::{AdviceReason, Change, Persistence};
use crate::intent::CpuSelection;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::load_balancing::{balanced_cpus, flags_alone, isolate_at_boot};
use crate::partition::groups_within;
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::cpu_list;
use facts::Fact;
use model::slice::SliceKind;
use model::units::CpuSet;

pub static KNOB: Knob = Knob {
    id: "cpu-isolation",
    title: "isolation of the audited CPUs",
    description: "Load balancing moves tasks to any CPU that they are allowed on. CPUs are taken out of it \
                  at boot by isolcpus=domain, or at run time by an isolated cpuset partition (cgroup v2, \
                  from 6.1 on). Both also keep unbound workqueues off (partitions: from 6.8 on).",
    rationale: "load balancing moves other tasks to the audited CPUs: each runs kernel code there, and \
                evicts caches",
    detection: "/sys/devices/system/cpu/isolated for isolcpus=, cpuset.cpus.isolated of the root group and \
                each partition for cgroup v2, sched_load_balance for v1. On kernels without \
                cpuset.cpus.isolated, groups more than two levels down are not read; neither are nested sets \
                of v1, nor hierarchies mounted elsewhere than /sys/fs/cgroup.",
    side_effects: "The scheduler does not spread the threads of a program over isolated CPUs: each has to be \
                   pinned. CPUs in isolcpus= stay isolated until the next boot, and container managers may \
                   fail to start without these CPUs. Before 6.7 a partition has to be directly below the \
                   root, and systemd removes it when it reloads its units (systemctl daemon-reload).",
    wanted: "the audited CPUs are out of load balancing",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "make an isolated cpuset partition of the CPUs, in a control group below the root, and check \
             that it reads back as isolated; or boot with isolcpus=managed_irq,domain,LIST",
        )
    },
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    disputed: "the kernel's guide recommends partitions and calls isolcpus= less flexible; a 6.12 kernel \
               refused a partition with CPUs of isolcpus=: `onbeat compare` of six runs with each shows \
               whether they differ here",
    persistence: Persistence::Runtime,
    sources: &[
        Source { title: "kernel: CPU isolation, scheduler domain isolation", url: ISOLATION },
        Source { title: "kernel: control groups v2, cpuset.cpus.partition", url: CGROUP_V2 },
        Source { title: "kernel: command line, isolcpus=", url: PARAMETERS },
    ],
    cures: &[
        SliceKind::Thread,
        SliceKind::Preempted,
        SliceKind::Workqueue,
        SliceKind::Switch,
        SliceKind::Softirq,
        SliceKind::Ipi,
    ],
    // The servers first: writing one while its CPU is isolated and idle subtracts more from the
    // CPU's deadline bandwidth than there is, of which 6.12 warns (dl_server_stop()).
    after: &["cgroup-cpuset", "isolation-support", "fair-server", "ext-server"],
    facts: &[
        "/sys/devices/system/cpu/isolated",
        "/sys/fs/cgroup/cpuset.cpus.isolated",
        "/sys/fs/cgroup/GROUP/cpuset.cpus.partition",
        "/sys/fs/cgroup/cpuset/cpuset.sched_load_balance",
    ],
    judge,
    examples: Examples {
        fires: "--cpus 2-3
                /sys/devices/system/cpu/isolated:
                /sys/fs/cgroup/cpuset.cpus.isolated:
                cmdline - isolcpus=managed_irq,domain,2-3",
        silent: "--cpus 2-3
                /sys/devices/system/cpu/isolated: 2-3",
        unknown: "--cpus 2-3
                  /sys/devices/system/cpu/isolated refused
                  /sys/fs/cgroup/cpuset.cpus.isolated:",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    if let Err(why) = machine.require_isolation() {
        // Meant to be isolated, and therefore not among the CPUs that are.
        let meant = flags_alone(machine).filter(|_| machine.intent.chosen == CpuSelection::All);
        return meant.map_or(Err(why), |meant| Ok(Judgement::fail(meant.words()).fix(meant.remedy)));
    }
    let exposed = balanced_cpus(machine)?;
    if exposed.is_empty() {
        return Ok(Judgement::pass(format!("{} out of load balancing", cpu_list(machine.cpus()))));
    }
    Ok(Judgement::fail(format!("load is balanced over {}", cpu_list(&exposed))).fix(isolated(machine)))
}

/// Remedy that isolates the CPUs: at run time if control groups can.
fn isolated(machine: &MachineView) -> Remedy {
    let boot = isolate_at_boot(machine);
    match &machine.survey.groups {
        Fact::Known(groups) if groups.controllers.iter().any(|name| name == "cpuset") => {
            let (cpus, root) = (machine.cpus().clone(), groups.root.clone());
            let nested = groups.has_nested_partitions();
            let within = groups_within(groups, &cpus);
            let partition = match within.as_slice() {
                [] => Remedy::from(Change::Partition { cpus, root, nested }),
                [group] => switched(&root, &group.path, &cpus),
                // None of them can have the CPUs of the others.
                _ => return boot,
            };
            // Isolated partitions came with 6.1: without signs of them `isolated` is refused.
            match machine.series() {
                Ok(series) if series < (6, 1) && !nested => boot,
                _ => partition.or(boot),
            }
        }
        _ => boot,
    }
}

/// Makes the group that has some of the CPUs already the partition: the kernel refuses another one
/// next to it.
fn switched(root: &str, group: &str, cpus: &CpuSet) -> Remedy {
    let words = format!(
        "cd {root}{group}; echo {cpus} >cpuset.cpus; echo isolated >cpuset.cpus.partition; cat \
         cpuset.cpus.partition must then print isolated; repeat this after each systemctl daemon-reload"
    );
    Remedy::advice(AdviceReason::Program, words).with_persistence(Persistence::Runtime)
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    const OPEN: &str =
        "--cpus 2-3\n/sys/devices/system/cpu/isolated:\n/sys/fs/cgroup/cpuset.cpus.isolated absent";
    const RT: &str = "/sys/fs/cgroup/rt.slice/cpuset.cpus.effective: 2-3\n\
                      /sys/fs/cgroup/rt.slice/cpuset.cpus.partition:";

    #[test]
    fn whatever_takes_them_out_counts() {
        check(&KNOB, "", "pass CPUs 2-3 out of load balancing");
        check(&KNOB, OPEN, "fail high load is balanced over CPUs 2-3");
        check(&KNOB, "--cpus 1-2", "fail high load is balanced over CPU 1");
        check(&KNOB, &format!("{OPEN}\n{RT} isolated"), "pass");
        check(&KNOB, &format!("{OPEN}\n{RT} isolated invalid (Parent is not a partition root)"), "fail high");
        check(&KNOB, &format!("{OPEN}\n{RT} root"), "fail high");
        check(
            &KNOB,
            &format!(
                "{OPEN}\n/sys/fs/cgroup/cpuset.cpus.isolated: 3\n\
                 /sys/devices/system/cpu/isolated: 2"
            ),
            "pass",
        );
        // A stopped tick keeps no task away.
        check(
            &KNOB,
            "/sys/devices/system/cpu/isolated:\n/sys/devices/system/cpu/nohz_full: 3",
            "fail high load is balanced over CPU 3",
        );
    }

    #[test]
    fn cpus_that_a_list_names_without_the_flag_are_meant_to_be_isolated() {
        let none = "/sys/devices/system/cpu/isolated:\n/sys/fs/cgroup/cpuset.cpus.isolated:\n/proc/cmdline: ";
        for flag in ["managed_irq", "managed_irq,nohz"] {
            let failed = format!(
                "fail high isolcpus={flag},2-3 lacks the flag domain: load is balanced over CPUs 2-3"
            );
            check(&KNOB, &format!("{none}isolcpus={flag},2-3"), &failed);
        }
        let mut machine = Machine::base();
        machine.edit(&format!("{none}isolcpus=managed_irq,2-3"));
        let fix = machine.finding(&KNOB).fix;
        assert!(fix.contains("isolcpus=domain,managed_irq,2-3"), "{fix}");
        let unknown = "not-applicable no CPU is isolated: name the audited CPUs with --cpus, if any";
        check(&KNOB, &format!("{none}quiet"), unknown);
        check(&KNOB, &format!("{none}isolcpus=managed_irq,2-N"), unknown);
    }

    #[test]
    fn kernels_before_isolated_partitions_isolate_at_boot() {
        for (release, first) in [("5.10.9", "add isolcpus="), ("6.1.9", "cd /sys/fs/cgroup")] {
            let mut machine = Machine::base();
            machine.edit(&format!("{OPEN}\n/proc/sys/kernel/osrelease: {release}\n/proc/cmdline: quiet"));
            let fix = machine.finding(&KNOB).fix;
            assert!(fix.starts_with(first), "{release}: {fix}");
        }
    }

    #[test]
    fn a_group_of_these_cpus_becomes_the_partition() {
        let fix = |edits: &str| {
            let mut machine = Machine::base();
            machine.edit(&format!("{OPEN}\n{RT} member\n{edits}\n/proc/cmdline: quiet"));
            machine.finding(&KNOB).fix
        };
        let own = "/sys/fs/cgroup/rt.slice/cpuset.cpus:";
        for has in ["2-3", "3"] {
            let fix = fix(&format!("{own} {has}"));
            let first = "cd /sys/fs/cgroup/rt.slice; echo 2-3 >cpuset.cpus; echo isolated >";
            assert!(fix.starts_with(first), "{fix}");
        }
        for other in ["", "0-3", "0-1"] {
            let fix = fix(&format!("{own} {other}"));
            assert!(fix.contains("mkdir"), "{fix}");
        }
        let two =
            "/sys/fs/cgroup/b.slice/cpuset.cpus: 2\n/sys/fs/cgroup/b.slice/cpuset.cpus.partition: member";
        let fix = fix(&format!("{own} 3\n{two}"));
        assert!(fix.contains("isolcpus=") && !fix.contains("cpuset.cpus"), "{fix}");
    }

    #[test]
    fn version_one_balances_nowhere_or_in_sets() {
        let old = |root: u8, rt: u8, docker: u8| {
            format!(
                "--cpus 2-3\n/sys/devices/system/cpu/isolated:\n/sys/fs/cgroup absent
                 /sys/fs/cgroup/cpuset/cpuset.sched_load_balance: {root}
                 /sys/fs/cgroup/cpuset/rt/cpuset.cpus: 2-3
                 /sys/fs/cgroup/cpuset/rt/cpuset.sched_load_balance: {rt}
                 /sys/fs/cgroup/cpuset/docker/cpuset.cpus: 0-3
                 /sys/fs/cgroup/cpuset/docker/cpuset.sched_load_balance: {docker}"
            )
        };
        check(&KNOB, &old(0, 0, 0), "pass");
        check(&KNOB, &old(0, 1, 0), "fail high");
        check(&KNOB, &old(1, 0, 0), "fail high");
        check(&KNOB, &old(0, 0, 1), "fail high");
        let rt = "/sys/fs/cgroup/cpuset/rt";
        // CPUs that no set has are not balanced; an unreadable set may have any CPU.
        check(&KNOB, &format!("{}\n{rt} absent", old(0, 1, 0)), "pass");
        check(&KNOB, &format!("{}\n{rt}/cpuset.sched_load_balance refused", old(0, 0, 0)), "unknown");
        let root = "/sys/fs/cgroup/cpuset/cpuset.sched_load_balance";
        check(&KNOB, &format!("{}\n{root} refused", old(0, 0, 0)), "unknown");
    }

    #[test]
    fn the_word_for_the_next_boot_has_flags_that_the_kernel_knows() {
        let fix = |release: &str| {
            let mut machine = Machine::base();
            machine.edit(&format!(
                "{OPEN}\n/proc/sys/kernel/osrelease: {release}\ncmdline - isolcpus=managed_irq,domain,2-3"
            ));
            machine.finding(&KNOB).fix
        };
        assert!(fix("6.12.9").contains("isolcpus=managed_irq,domain,2-3"));
        assert!(fix("4.19.200").contains("isolcpus=domain,2-3"), "{}", fix("4.19.200"));
    }

    #[test]
    fn the_parameter_takes_a_kernel_that_knows_it() {
        let mut machine = Machine::base();
        machine.edit(&format!("{OPEN}\n/sys/fs/cgroup absent\ncmdline - isolcpus=managed_irq,domain,2-3"));
        assert!(!machine.finding(&KNOB).fix.contains("CPU_ISOLATION"));
        machine.edit("CONFIG_CPU_ISOLATION=n");
        let fix = machine.finding(&KNOB).fix;
        assert!(fix.contains("CONFIG_CPU_ISOLATION") && fix.contains("isolcpus="), "{fix}");
    }

    #[test]
    fn many_scattered_cpus_are_counted() {
        let mut machine = Machine::base();
        machine.edit(&format!("{OPEN}\n/sys/devices/system/cpu/online: 0-255\n--cpus 0-255:1/2"));
        let value = machine.finding(&KNOB).value;
        assert!(value.len() < 150 && value.ends_with("... (128 CPUs)"), "{value}");
    }

    #[test]
    fn what_could_not_be_read_may_be_isolated() {
        check(&KNOB, &format!("{OPEN}\n/sys/fs/cgroup/cpuset.cpus.isolated refused"), "unknown");
        check(&KNOB, &format!("{OPEN}\n{RT} nonsense"), "unknown");
        check(&KNOB, &format!("{OPEN}\n/sys/fs/cgroup refused"), "unknown");
        check(&KNOB, &format!("{OPEN}\n/sys/fs/cgroup/cgroup.type: domain"), "unknown");
        check(&KNOB, &format!("{OPEN}\n/sys/fs/cgroup absent"), "fail high");
        check(&KNOB, "--cpus 0-3", "not-applicable");
    }
}
