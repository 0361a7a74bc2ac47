//! Managers of containers and virtual machines: programs that start the work of others on any CPU
//! that its group allows.

use super::sources::CGROUP_V2;
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::competing_tuners;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::{unknown_absent, unknown_from};
use crate::view::MachineView;
use crate::words::cpu_list;
use facts::Fact;
use facts::line::parse_cpus;
use model::slice::SliceKind;
use model::units::{CpuSet, named_cpus};

pub static KNOB: Knob = Knob {
    id: "container-managers",
    title: "container managers",
    description: "docker, containerd, CRI-O, kubelet, libvirt, LXD and Incus start containers and virtual \
                  machines in separate control groups. These may get CPUs that isolcpus= took out of load \
                  balancing: it removes no CPU from a control group.",
    rationale: "a task in such a group can be placed on any of its CPUs, including isolated ones, and \
                without load balancing nothing moves it away again",
    detection: "Which managers run, and the CPUs of the slices that they use, or of the root group if a \
                slice has no cpuset (v2). The CPUs of single containers are not read; podman has no \
                permanent process and is not detected.",
    side_effects: "Containers share fewer CPUs. Containers that should run on the isolated CPUs have to be \
                   placed there explicitly.",
    wanted: "no manager, or its containers are kept off the audited CPUs",
    fix: Remedy::default,
    severity: Severity::Medium,
    evidence: EvidenceKind::Source,
    disputed: "if the real-time work itself runs in containers with dedicated CPUs (kubelet's static \
               policy), these belong there, and the manager has to keep the others off: `onbeat measure` on \
               those CPUs, with the other containers busy, shows whether it does",
    persistence: Persistence::Runtime,
    unsettable: "the manager's configuration decides where its containers run, and it rewrites its groups",
    sources: &[
        Source {
            title: "docker: the effect of a container's cpuset with isolcpus=",
            url: "https://github.com/moby/moby/issues/31086",
        },
        Source {
            title: "crun: affinity is set again after a task moved into its group",
            url: "https://github.com/containers/crun/pull/1315",
        },
        Source { title: "kernel: control groups, cpuset.cpus.effective", url: CGROUP_V2 },
    ],
    cures: &[SliceKind::Thread],
    reads: &[ROOT, SYSTEM, MACHINE, PODS, KUBEPODS, DOCKER],
    facts: &["/proc/PID/stat", "/sys/devices/system/cpu/isolated"],
    programs: PROGRAMS,
    judge,
    examples: Examples {
        fires: "program + dockerd
                /sys/fs/cgroup/cpuset.cpus.effective: 0-3
                /sys/fs/cgroup/system.slice/cpuset.cpus.effective: 0-3
                --cpus 2-3",
        silent: "program + dockerd
                 /sys/fs/cgroup/docker absent
                 /sys/fs/cgroup/system.slice/cpuset.cpus.effective: 0-1
                 --cpus 2-3",
        unknown: "program + dockerd
                  /sys/fs/cgroup/system.slice/cpuset.cpus.effective refused
                  --cpus 2-3",
    },
    ..Knob::DEFAULT
};

const ROOT: &str = "/sys/fs/cgroup/cpuset.cpus.effective";
const SYSTEM: &str = "/sys/fs/cgroup/system.slice/cpuset.cpus.effective";
const MACHINE: &str = "/sys/fs/cgroup/machine.slice/cpuset.cpus.effective";
const PODS: &str = "/sys/fs/cgroup/kubepods.slice/cpuset.cpus.effective";
/// Control group of kubelet's pods, if it creates its groups without systemd.
const KUBEPODS: &str = "/sys/fs/cgroup/kubepods/cpuset.cpus.effective";
const DOCKER: &str = "/sys/fs/cgroup/docker/cpuset.cpus.effective";

const PROGRAMS: &[&str] =
    &["containerd", "crio", "dockerd", "incusd", "kubelet", "libvirtd", "lxd", "virtqemud"];

/// Groups in which a manager starts its work; if none exists, it is below the root.
fn places(program: &str) -> &'static [&'static str] {
    match program {
        // Groups of docker, created by systemd or by docker.
        "dockerd" => &[SYSTEM, DOCKER],
        "containerd" => &[SYSTEM, PODS, KUBEPODS],
        "crio" | "kubelet" => &[PODS, KUBEPODS],
        "libvirtd" | "virtqemud" => &[MACHINE],
        _ => &[],
    }
}

fn judge(machine: &MachineView) -> Judged {
    machine.require_isolation()?;
    let running = competing_tuners::running_programs(machine.survey, PROGRAMS);
    let complete = || running.and_no_more().map(|()| Judgement::pass("none runs"));
    if running.found.is_empty() {
        return complete();
    }
    let legs = running.found.iter().map(|program| may_use(machine, program));
    let hidden = complete().err().map(Err);
    Judgement::all(legs.chain(hidden))
}

/// Passes if the work of a manager may not use the audited CPUs.
fn may_use(machine: &MachineView, program: &'static str) -> Judged {
    let mut allowed = CpuSet::default();
    let mut there = false;
    for path in places(program) {
        match machine.survey.texts.one(path).parse(parse_cpus) {
            Fact::Known(cpus) => {
                there = true;
                allowed = allowed.or(&cpus);
            }
            Fact::Absent => {}
            other => return Err(unknown_from(path, &other)),
        }
    }
    if !there {
        allowed = machine.cpu_list_if_present(ROOT)?.ok_or_else(|| unknown_absent(ROOT))?;
    }
    let ours = allowed.and(machine.cpus());
    if ours.is_empty() {
        return Ok(Judgement::pass(format!("{program}: not {}", cpu_list(machine.cpus()))));
    }
    let rest = machine.housekeeping_cpus()?;
    // Before, the kernel takes only `root` and `member` (kernel/cgroup/cpuset.c).
    let (partition, persistence) = match machine.series() {
        Ok(series) if series < (6, 1) => (String::new(), Persistence::Boot),
        _ => {
            (format!("make an isolated cpuset partition of {}, or ", named_cpus(&ours)), Persistence::Runtime)
        }
    };
    let words = format!(
        "{partition}systemctl set-property SLICE AllowedCPUs={rest} for the slice that {program} puts its \
         work in"
    );
    let remedy = Remedy::advice(AdviceReason::Program, words).with_persistence(persistence);
    Ok(Judgement::fail(format!("{program}: {}", cpu_list(&ours))).fix(remedy))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    const GROUPS: &str = "/sys/fs/cgroup absent\n/sys/fs/cgroup/cpuset.cpus.effective: 0-3";

    #[test]
    fn a_partition_is_offered_where_the_kernel_isolates_one() {
        for (release, is_offered) in [("5.15.148-rt", false), ("6.1.0-rt", true)] {
            let mut machine = Machine::base();
            machine.edit(&format!(
                "program + dockerd\n{GROUPS}\n--cpus 2-3\n/proc/sys/kernel/osrelease: {release}"
            ));
            let fix = machine.finding(&KNOB).fix;
            assert!(fix.contains("AllowedCPUs=0-1"), "{fix}");
            assert_eq!(fix.contains("partition of CPU"), is_offered, "{fix}");
        }
    }

    #[test]
    fn the_groups_of_a_manager_decide() {
        check(&KNOB, "", "pass none runs");
        check(&KNOB, "program + dockerd\n--cpus 0-3", "not-applicable");
        check(&KNOB, &format!("program + lxd\n{GROUPS}"), "fail medium lxd: CPUs 2-3");
        let partition = "/sys/fs/cgroup absent\n/sys/fs/cgroup/cpuset.cpus.effective: 0-1";
        check(&KNOB, &format!("program + lxd\n{partition}"), "pass lxd: not CPUs 2-3");
        let pods = format!("{GROUPS}\n/sys/fs/cgroup/kubepods.slice/cpuset.cpus.effective: 0-1");
        check(&KNOB, &format!("program + kubelet\n{pods}"), "pass kubelet: not CPUs 2-3");
        let pods = pods.replace("kubepods.slice", "kubepods");
        check(&KNOB, &format!("program + crio\n{pods}"), "pass crio: not CPUs 2-3");
        check(
            &KNOB,
            &format!("program + kubelet\nprogram + libvirtd\n{pods}"),
            "fail medium libvirtd: CPUs 2-3",
        );
        let docker = format!(
            "{GROUPS}\n/sys/fs/cgroup/system.slice/cpuset.cpus.effective: 0-1\n\
             /sys/fs/cgroup/docker/cpuset.cpus.effective: 1-2"
        );
        check(&KNOB, &format!("program + dockerd\n{docker}"), "fail medium dockerd: CPU 2");
    }

    #[test]
    fn what_does_not_show_may_be_there() {
        check(&KNOB, "/proc/1/stat refused", "unknown");
        check(&KNOB, "program + lxd\n/sys/fs/cgroup absent", "unknown");
        check(&KNOB, "program + kubelet\n/sys/fs/cgroup refused", "unknown");
        let unclear = format!("program + lxd\n/proc/1/stat refused\n{GROUPS}");
        check(&KNOB, &unclear, "fail medium lxd: CPUs 2-3");
        check(&KNOB, &unclear.replace("0-3", "0-1"), "unknown");
    }
}
