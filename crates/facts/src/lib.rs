//! Facts about a machine: one file per kernel text, each a parser from text to value, total on any
//! input.
//!
//! Only [`gather`], [`survey`] and the functions they call read files, through `host`; none of it
//! may run in the measuring loop.

pub mod arrivals;
pub mod boot_cmdline;
pub mod boot_entries;
pub mod boot_texts;
pub mod cgroup;
pub mod choice;
pub mod clocksource;
pub mod cmdline;
pub mod consoles;
pub mod cpu_lists;
pub mod cpuinfo;
pub mod differences;
pub mod ethtool;
pub mod groups;
pub mod hwlat;
pub mod interrupts;
pub mod irqbalance;
pub mod irqs;
pub mod kbool;
pub mod kconfig;
pub mod kconfig_file;
pub mod kmsg;
pub mod limits;
pub mod limits_conf;
pub mod line;
pub mod policy_refusal;
pub mod policy_rights;
pub mod power;
pub mod preempt;
pub mod process;
pub mod sched;
pub mod stat;
pub mod survey;
pub mod swaps;
pub mod tasks;
pub mod texts;
pub mod threads;
pub mod threads_on;
pub mod timer_list;
pub mod topology;
pub mod uname;
pub mod virt;
pub mod whole;

mod gather;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use gather::gather;

use kconfig::{Kconfig, OptionValue};
pub use model::fact::{Fact, errno_name};
use model::run;
use model::units::{Cpu, CpuSet};
use model::vocabulary::Preempt;

/// Facts of a machine, each with the outcome of reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// `uname -r`
    pub release: Fact<String>,
    /// `uname -v`
    pub version: Fact<String>,
    /// `uname -m`
    pub machine: Fact<String>,
    /// The kernel's command line, without init's part, serial numbers and MAC addresses.
    pub cmdline: Fact<cmdline::Cmdline>,
    /// The configuration, if it is the running kernel's.
    pub kconfig: Fact<Kconfig>,
    /// The preemption model, judged from the above and two more files.
    pub preempt: Preempt,
    /// True for PREEMPT_RT: also known of some kernels whose model is not.
    pub realtime: Option<bool>,
    /// CPUs that are online.
    pub online: Fact<CpuSet>,
    /// CPUs that are plugged in.
    pub present: Fact<CpuSet>,
    /// CPUs out of load balancing by `isolcpus=`; cpuset partitions do not show here up to 6.18.
    pub isolated: Fact<CpuSet>,
    /// CPUs of `nohz_full=`.
    pub nohz_full: Fact<CpuSet>,
    /// The CPUs of each core that has more than one.
    pub siblings: Fact<Vec<CpuSet>>,
    /// Kind of core of each CPU; empty where all are of one kind.
    pub core_types: BTreeMap<Cpu, String>,
    /// Processor model, with the board's where the processor has no name.
    pub model: Fact<String>,
    /// Feature flags of the first x86 CPU, as in `/proc/cpuinfo`; absent on other architectures.
    pub cpu_flags: Fact<Vec<String>>,
    /// The clocksource in use; [`clocksource::quality`] judges it.
    pub clocksource: Fact<String>,
    /// The available clocksources.
    pub clocksources: Fact<Vec<String>>,
    /// Time that real-time tasks may use of each period; -1 for all of it.
    pub rt_runtime_us: Fact<i64>,
    pub rt_period_us: Fact<i64>,
    /// Time that the fair server may take from real-time tasks, per CPU (6.12 on, debugfs).
    pub fair_servers: Fact<Vec<sched::FairServer>>,
    /// The real-time budget of this process's control group; absent where groups have none.
    pub cgroup_rt_runtime_us: Fact<i64>,
    /// Quota statistics of this process's control group.
    pub cpu_stat: Fact<cgroup::CpuStat>,
    /// Distinct cpufreq drivers; hardly ever more than one.
    pub cpufreq_driver: Fact<Vec<String>>,
    pub governors: Fact<Vec<String>>,
    /// Cpuidle driver, `none` where there is none.
    pub cpuidle_driver: Fact<String>,
    /// Idle states of the first online CPU, shallow to deep.
    pub idle_states: Fact<Vec<String>>,
    /// The declared exit latency of each, in microseconds.
    pub idle_exit_us: Fact<Vec<u64>>,
    /// Resource limits of this process.
    pub limits: Fact<limits::Limits>,
    /// Effective capabilities of this process.
    pub capabilities: Fact<limits::Capabilities>,
    /// The hypervisor's name as [`virt::judge`] gives it.
    pub virtualization: String,
    troubles: Vec<String>,
}

impl Facts {
    /// Values that could not be read or parsed, as `path: reason`; those that are merely absent are
    /// not listed.
    pub fn unknown(&self) -> Vec<String> {
        self.troubles.clone()
    }

    /// The kind of a CPU's core, `""` where all are of one kind.
    pub fn core_type(&self, cpu: Cpu) -> &str {
        self.core_types.get(&cpu).map_or("", String::as_str)
    }

    /// True if an option of the configuration is built in; none if the configuration is not known.
    pub fn option(&self, name: &str) -> Option<bool> {
        self.kconfig.known().map(|config| config.is_yes(name))
    }
}

/// The facts as the `host` part of run.json.
pub fn describe(facts: &Facts) -> run::Host {
    run::Host {
        release: text(&facts.release),
        kernel: text(&facts.version),
        machine: text(&facts.machine),
        preempt: facts.preempt.into(),
        clocksource: text(&facts.clocksource),
        virtualization: facts.virtualization.clone(),
        model: text(&facts.model),
        cmdline: facts.cmdline.known().map(|cmdline| cmdline.text.clone()).unwrap_or_default(),
        online: text(&facts.online),
        isolated: text(&facts.isolated),
        nohz_full: text(&facts.nohz_full),
        siblings: facts.siblings.known().into_iter().flatten().map(CpuSet::to_string).collect(),
        governor: words(&facts.governors).join(","),
        cpufreq_driver: words(&facts.cpufreq_driver).join(","),
        cpuidle_driver: text(&facts.cpuidle_driver),
        idle_states: words(&facts.idle_states).to_vec(),
        idle_exit_ns: idle_exit_ns(facts),
        rt_runtime_us: facts.rt_runtime_us.known().copied(),
        rt_period_us: facts.rt_period_us.known().copied(),
        fair_server_runtime_ns: facts.fair_servers.known().and_then(|all| sched::fair_server_runtime_ns(all)),
        cgroup_rt_runtime_us: facts.cgroup_rt_runtime_us.known().copied(),
        rtprio_limit: facts.limits.known().and_then(|limits| limits.rt_priority.soft),
        memlock_limit: facts.limits.known().and_then(|limits| limits.locked_memory.soft),
        capabilities: facts.capabilities.known().map(|set| set.names()).unwrap_or_default(),
        high_res_timers: facts.option("HIGH_RES_TIMERS"),
        hz: facts.kconfig.known().and_then(|config| match config.get("HZ") {
            OptionValue::Value(hz) => hz.parse().ok(),
            _ => None,
        }),
        unknown: facts.unknown(),
    }
}

/// One latency per idle state, or none at all: a gap would shift the others.
fn idle_exit_ns(facts: &Facts) -> Vec<u64> {
    let exits = facts.idle_exit_us.known().map_or(&[][..], Vec::as_slice);
    let complete = exits.len() == words(&facts.idle_states).len();
    exits.iter().filter(|_| complete).map(|us| us.saturating_mul(1_000)).collect()
}

fn text<T: ToString>(fact: &Fact<T>) -> String {
    fact.known().map(T::to_string).unwrap_or_default()
}

fn words(fact: &Fact<Vec<String>>) -> &[String] {
    fact.known().map_or(&[], Vec::as_slice)
}
