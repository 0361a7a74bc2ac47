//! Facts that the kernel checks before it lets a process take a real-time policy.
//!
//! Source: `__sched_setscheduler()` and `user_check_sched_setscheduler()` of
//! kernel/sched/syscalls.c (kernel/sched/core.c before 6.11), user_namespaces(7), and "CPU" of
//! Documentation/admin-guide/cgroup-v2.rst.

use crate::Facts;
use crate::cgroup::{Cgroups, parse_cgroups};
use crate::cmdline::Cmdline;
use crate::kbool::kint;
use crate::kconfig::{Kconfig, OptionValue};
use crate::limits::{Capabilities, Limit, parse_capabilities, parse_limits};
use crate::line::parse_i64;
use crate::whole;
use host::MachineFiles;
use model::fact::Fact;

/// Facts that decide whether a process may take a real-time policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRights {
    /// RLIMIT_RTPRIO.
    pub limit: Fact<Limit>,
    pub capabilities: Fact<Capabilities>,
    /// Mode of the filter of system calls: 0 for none.
    pub filter: Fact<u32>,
    /// True if its capabilities are those of the machine, rather than of a user namespace.
    pub initial_users: Fact<bool>,
    /// Control group whose separate budget applies; absent for the machine's root group.
    pub group: Fact<BudgetGroup>,
}

/// Kernel settings that decide with the above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetSettings {
    /// Time that real-time tasks may use in all; below 0 no group's budget applies.
    pub rt_runtime_us: Fact<i64>,
    /// True if the kernel gives budgets to groups.
    pub has_budgets: Fact<bool>,
}

impl BudgetSettings {
    /// Settings of a machine.
    pub fn of(machine: &Facts) -> BudgetSettings {
        let rt_runtime_us = machine.rt_runtime_us.clone();
        let has_budgets = machine.kconfig.clone().then(|config| match has_group_budgets(&config, None) {
            Some(known) => Fact::Known(known),
            None => {
                machine.cmdline.clone().map(|words| has_group_budgets(&config, Some(&words)) == Some(true))
            }
        });
        BudgetSettings { rt_runtime_us, has_budgets }
    }
}

/// A control group below the root, for the scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetGroup {
    /// Folder of the group.
    pub dir: String,
    /// `cpu.rt_runtime_us`; version 2 has no such file, and leaves the budget of each group at 0.
    pub runtime_us: Option<i64>,
}

/// Reads the rights of a process, by its folder in `/proc`.
pub fn read_policy_rights(host: &MachineFiles, dir: &str) -> PolicyRights {
    let text = |name: &str| whole::text(host, &format!("{dir}/{name}"));
    let status = text("status");
    let group = text("cgroup").parse(|text| parse_cgroups(&text)).then(|groups| budget_group(host, &groups));
    PolicyRights {
        limit: text("limits").parse(|text| parse_limits(&text)).map(|limits| limits.rt_priority),
        capabilities: status.clone().parse(|text| parse_capabilities(&text)),
        initial_users: match text("uid_map") {
            // Kernels without user namespaces.
            Fact::Absent if status.known().is_some() => Fact::Known(true),
            map => map.map(|text| is_initial(&text)),
        },
        filter: status.then(|text| parse_filter(&text)),
        group,
    }
}

/// True if a kernel gives budgets of real-time execution to control groups: by its configuration
/// and, if that leaves the decision to them, the words of its command line; none if those are
/// needed and not known.
pub fn has_group_budgets(config: &Kconfig, words: Option<&Cmdline>) -> Option<bool> {
    if !config.is_yes("RT_GROUP_SCHED") {
        return Some(false);
    }
    // A kernel that knows rt_group_sched= (6.16) lists this option whenever the other is set.
    let default = match config.get("RT_GROUP_SCHED_DEFAULT_DISABLED") {
        OptionValue::Absent => return Some(true),
        default => default == OptionValue::No,
    };
    let read = |value: &str| kint(value).filter(|number| (0..=1).contains(number));
    Some(words?.in_effect("rt_group_sched", read).map_or(default, |(_, number)| number == 1))
}

/// Finds the group whose budget applies: in version 1 the process's, in version 2 the nearest with
/// the controller enabled.
fn budget_group(host: &MachineFiles, groups: &Cgroups) -> Fact<BudgetGroup> {
    const FILE: &str = "cpu.rt_runtime_us";
    if let Some((controllers, path)) = &groups.cpu {
        let mounts = [format!("/sys/fs/cgroup/{controllers}"), "/sys/fs/cgroup/cpu".to_owned()];
        // In a container without a namespace of groups its group is mounted as the root.
        let dirs = mounts.iter().map(|mount| format!("{mount}{path}")).chain(mounts.iter().cloned());
        for dir in dirs {
            match whole::text(host, &format!("{dir}/{FILE}")).parse(|text| parse_i64(&text)) {
                Fact::Known(us) => return Fact::Known(BudgetGroup { dir, runtime_us: Some(us) }),
                Fact::Absent => {}
                other => return other.then(|_| Fact::Absent),
            }
        }
        return Fact::Absent;
    }
    let Some(path) = &groups.unified else {
        return Fact::Malformed("the control group is not accessible from here".to_owned());
    };
    const MOUNT: &str = "/sys/fs/cgroup";
    let mut rest = path.as_str();
    loop {
        let dir = format!("{MOUNT}{rest}");
        // Missing on the root group, and unless the controller is enabled.
        match whole::text(host, &format!("{dir}/cpu.weight")) {
            Fact::Known(_) => return Fact::Known(BudgetGroup { dir, runtime_us: None }),
            Fact::Absent => {}
            other => return other.then(|_| Fact::Absent),
        }
        match rest.rsplit_once('/') {
            Some((above, _)) => rest = above,
            None => break,
        }
    }
    // Exists on every group but the machine's root.
    match whole::text(host, &format!("{MOUNT}/cgroup.type")) {
        Fact::Known(_) => {
            Fact::Malformed("the control groups above this container are not visible".to_owned())
        }
        other => other.then(|_| Fact::Absent),
    }
}

/// Mode of the seccomp filter in `/proc/PID/status`; kernels without seccomp have no such line.
fn parse_filter(text: &str) -> Fact<u32> {
    let line = text.lines().find_map(|line| line.strip_prefix("Seccomp:"));
    let mode = line.map_or(Ok(0), |mode| mode.trim().parse());
    mode.map_or(Fact::Malformed("expected a number after 'Seccomp:'".to_owned()), Fact::Known)
}

/// Tells whether `uid_map` is that of the machine itself: all users, each as itself, in one line.
fn is_initial(text: &str) -> bool {
    text.split_whitespace().eq(["0", "0", "4294967295"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::access::Access;
    use proptest::prelude::*;

    fn machine(files: &[(&str, &str)]) -> MachineFiles {
        let file = |(path, text): &(&str, &str)| ((*path).to_owned(), Access::File(text.as_bytes().to_vec()));
        MachineFiles::in_memory(files.iter().map(file).collect())
    }

    fn group(cgroup: &str, files: &[(&str, &str)]) -> Fact<BudgetGroup> {
        budget_group(&machine(files), &parse_cgroups(cgroup).unwrap())
    }

    fn known(dir: &str, runtime_us: Option<i64>) -> Fact<BudgetGroup> {
        Fact::Known(BudgetGroup { dir: format!("/sys/fs/cgroup{dir}"), runtime_us })
    }

    #[test]
    fn version_one_has_a_file_for_each_group() {
        let own = ("/sys/fs/cgroup/cpu,cpuacct/docker/a/cpu.rt_runtime_us", "0\n");
        let top = ("/sys/fs/cgroup/cpu,cpuacct/cpu.rt_runtime_us", "950000\n");
        let cgroup = "4:cpu,cpuacct:/docker/a\n0::/docker/a\n";
        assert_eq!(group(cgroup, &[own, top]), known("/cpu,cpuacct/docker/a", Some(0)));
        assert_eq!(group("4:cpu,cpuacct:/\n", &[own, top]), known("/cpu,cpuacct", Some(950_000)));
        // The container's own group is what is mounted.
        let mounted = [("/sys/fs/cgroup/cpu/cpu.rt_runtime_us", "0\n")];
        assert_eq!(group(cgroup, &mounted), known("/cpu", Some(0)));
        assert_eq!(group(cgroup, &[("/sys/fs/cgroup/cpu/cpu.shares", "1024\n")]), Fact::Absent);
        let odd = [("/sys/fs/cgroup/cpu/cpu.rt_runtime_us", "much\n")];
        assert!(matches!(group("1:cpu:/\n", &odd), Fact::Malformed(_)));
    }

    #[test]
    fn version_two_has_none_and_the_controller_tells() {
        let weight = |dir: &str| (format!("/sys/fs/cgroup{dir}/cpu.weight"), "100\n");
        let slice = weight("/system.slice");
        let on = [(slice.0.as_str(), slice.1)];
        assert_eq!(group("0::/system.slice/a.service\n", &on), known("/system.slice", None));
        assert_eq!(group("0::/user.slice\n", &on), Fact::Absent);
        assert_eq!(group("0::/\n", &on), Fact::Absent);
        let inside = [("/sys/fs/cgroup/cgroup.type", "domain\n")];
        assert!(matches!(group("0::/\n", &inside), Fact::Malformed(_)));
        let top = [inside[0], ("/sys/fs/cgroup/cpu.weight", "100\n")];
        assert_eq!(group("0::/\n", &top), known("", None));
        assert!(matches!(group("0::/../b\n", &inside), Fact::Malformed(_)));
    }

    #[test]
    fn a_process_by_its_folder() {
        let read = |files: &[(&str, &str)]| read_policy_rights(&machine(files), "/proc/7");
        let status = "CapEff:\t0000000000800000\nSeccomp:\t2\n";
        let rights = read(&[("/proc/7/status", status), ("/proc/7/uid_map", "  0  1000  1\n")]);
        assert_eq!((&rights.filter, &rights.initial_users), (&Fact::Known(2), &Fact::Known(false)));
        assert!(rights.capabilities.known().unwrap().sys_nice());
        assert_eq!((rights.limit, rights.group), (Fact::Absent, Fact::Absent));
        let rights = read(&[("/proc/7/uid_map", "         0          0 4294967295\n")]);
        assert_eq!((rights.filter, rights.initial_users), (Fact::Absent, Fact::Known(true)));
        assert_eq!(read(&[]).initial_users, Fact::Absent);
    }

    proptest! {
        #[test]
        fn reading_is_total(text in "((Seccomp:|0::/|3:cpu:/)?\\PC{0,12}\n?){0,5}") {
            let files = ["status", "limits", "cgroup", "uid_map"].map(|name| format!("/proc/7/{name}"));
            let files: Vec<(&str, &str)> = files.iter().map(|path| (path.as_str(), text.as_str())).collect();
            read_policy_rights(&machine(&files), "/proc/7");
        }
    }
}
