//! Surroundings of a process: kernel, cores, other real-time threads, memory nodes.

use std::collections::BTreeMap;

use crate::gather;
use crate::line::parse_cpus;
use crate::policy_rights::BudgetSettings;
use crate::sched::FairServer;
use crate::tasks::{RtPolicy, rt_tasks, task_number};
use crate::topology::numbered;
use crate::whole;
use host::MachineFiles;
use model::fact::Fact;
use model::sort::CompactSort;
use model::units::CpuSet;
use model::vocabulary::Preempt;

/// Facts about the machine that rules about a process use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surroundings {
    pub preempt: Preempt,
    pub online: Fact<CpuSet>,
    /// CPUs of each core that has more than one.
    pub cores: Fact<Vec<CpuSet>>,
    /// Time that real-time threads may use of each period, in microseconds; -1 for all of it.
    pub rt_runtime_us: Fact<i64>,
    pub rt_period_us: Fact<i64>,
    /// Fair servers: with the release and RT_GROUP_SCHED they decide whether that limit applies,
    /// and what else does.
    pub fair_servers: Fact<Vec<FairServer>>,
    pub release: Fact<String>,
    pub group_scheduling: Fact<bool>,
    /// Settings of control groups' real-time budgets.
    pub budgets: BudgetSettings,
    /// Real-time threads of the machine, without those of the process.
    pub others: Fact<Vec<OtherThread>>,
    /// CPUs of each memory node; absent without nodes.
    pub nodes: Fact<Vec<(u32, CpuSet)>>,
    /// Other threads that woke the process's, by thread ID, with their priorities at the end.
    pub wakers: BTreeMap<u32, WakingThread>,
}

/// Real-time thread of another process, or of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherThread {
    pub tid: u32,
    pub comm: String,
    pub kernel: bool,
    pub policy: RtPolicy,
    pub priority: u32,
    /// CPUs that it may run on; none if they could not be read.
    pub allowed: Option<CpuSet>,
}

/// Thread that woke one of the process: another process's, or one without a real-time policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakingThread {
    pub comm: String,
    /// Priority on the kernel's scale, on which less comes first.
    pub rank: i64,
    pub kernel: bool,
}

/// Reads the surroundings; `without` are the IDs of this process and of the judged one.
pub fn read_surroundings(host: &MachineFiles, without: &[u32]) -> Surroundings {
    let host = host.unrecorded();
    let facts = gather(&host);
    let others = rt_tasks(&host).map(|found| {
        let tasks = found.tasks.into_iter().filter(|task| !without.contains(&task.pid));
        let other = |task: crate::tasks::RtTask| OtherThread {
            tid: task.tid,
            comm: task.stat.comm,
            kernel: task.stat.kernel,
            policy: task.policy,
            priority: task.stat.priority,
            allowed: task.allowed,
        };
        tasks.map(other).collect()
    });
    Surroundings {
        budgets: BudgetSettings::of(&facts),
        preempt: facts.preempt,
        online: facts.online,
        cores: facts.siblings,
        rt_runtime_us: facts.rt_runtime_us,
        rt_period_us: facts.rt_period_us,
        fair_servers: facts.fair_servers,
        release: facts.release,
        group_scheduling: facts.kconfig.map(|config| config.is_yes("RT_GROUP_SCHED")),
        others,
        nodes: nodes(&host),
        wakers: BTreeMap::new(),
    }
}

fn nodes(host: &MachineFiles) -> Fact<Vec<(u32, CpuSet)>> {
    const DIR: &str = "/sys/devices/system/node";
    host.list(DIR).then(|names| {
        let mut found = Vec::new();
        for node in names.iter().filter_map(|name| numbered(name, "node")) {
            let cpus = whole::text(host, &format!("{DIR}/node{node}/cpulist"));
            match cpus.parse(|text| parse_cpus(&text)) {
                Fact::Known(cpus) => found.push((node, cpus)),
                other => return other.map(|_| Vec::new()),
            }
        }
        found.compact_sort_by_key(|(node, _)| *node);
        Fact::Known(found)
    })
}

/// Name and priority, on the kernel's scale, of a thread outside of the process; none if it has
/// ended.
pub fn thread_of_machine(host: &MachineFiles, tid: u32) -> Option<WakingThread> {
    let host = host.unrecorded();
    let line = whole::bytes(&host, &format!("/proc/{tid}/stat"));
    let stat = crate::tasks::parse_task_stat(line.known()?).ok()?;
    let (_, _, nice) = super::counters::parse_faults_and_nice(line.known()?).ok()?;
    let rank = super::rank_of(stat.policy, stat.priority, nice);
    Some(WakingThread { comm: stat.comm, rank, kernel: stat.kernel })
}

/// Process ID in a text; none if it is not a number.
pub fn process_number(text: &str) -> Option<u32> {
    task_number(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::access::Access;

    #[test]
    fn nodes_with_their_cpus() {
        let file = |text: &str| Access::File(text.as_bytes().to_vec());
        let mut answers = std::collections::BTreeMap::new();
        assert_eq!(nodes(&MachineFiles::in_memory(answers.clone())), Fact::Absent);
        answers.insert("/sys/devices/system/node/node0/cpulist".to_owned(), file("0-1\n"));
        answers.insert("/sys/devices/system/node/node1/cpulist".to_owned(), file("2-3\n"));
        let found = nodes(&MachineFiles::in_memory(answers.clone()));
        let found = found.known().unwrap();
        assert_eq!((found.len(), found[1].0, found[1].1.to_string()), (2, 1, "2-3".to_owned()));
        answers.insert("/sys/devices/system/node/node1/cpulist".to_owned(), Access::Refused(libc::EACCES));
        assert_eq!(nodes(&MachineFiles::in_memory(answers)), Fact::Refused(libc::EACCES));
        assert_eq!(thread_of_machine(&MachineFiles::in_memory(Default::default()), 7), None);
    }
}
