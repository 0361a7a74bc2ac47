//! The steps of an isolation: a partition, then what the rules ask for of these CPUs.

use facts::survey::Survey;
use model::error::{Failure, Result};
use model::fact::Fact;
use model::isolation::{INNER_GROUP, PARTITION_RULE};
use model::plan::{LeftOut, PlanDocument, PlannedChange};
use model::setting::{Comparison, Key, Setting};
use model::text::quoted;
use model::units::CpuSet;
use regex_lite::{Regex, RegexBuilder};
use rules::knobs;
use rules::partition::{self, Obstacle};

use crate::plan::{PlanRequest, RuleRequest};

/// The rules that are about what comes to single CPUs, each a step that can be left out.
pub const RULES: [&str; 15] = [
    "default-irq-affinity",
    "irq-affinity",
    "kernel-thread-affinity",
    "rcu-offload-affinity",
    "workqueue-cpumask",
    "workqueue-queues",
    "watchdog",
    "network-queues",
    "idle-states",
    "resume-latency-qos",
    "cpufreq-governor",
    "machine-check-polling",
    "vmstat-interval",
    "writeback-affinity",
    "writeback-interval",
];

/// Rules that take a safeguard away: steps with --yes alone.
pub const RISKY: [&str; 2] = ["rt-throttling", "fair-server"];

/// What is wanted of an isolation.
#[derive(Clone, Debug, Default)]
pub struct IsolationRequest {
    pub cpus: CpuSet,
    /// The memory nodes of its processes, as a list.
    pub memory_nodes: Option<String>,
    /// The interrupts that are moved, by the names of their handlers; all where it is none.
    pub interrupts: Option<Regex>,
    /// The steps that are left out, by their rules.
    pub without: Vec<String>,
    /// Whether safeguards may be taken away.
    pub risky: bool,
}

/// An expression for the names of interrupts.
///
/// # Errors
/// Usage: it is none, or one that takes too much.
pub fn interrupt_names(text: &str) -> Result<Regex> {
    let wrong = |why: String| {
        Failure::usage(format!(
            "--irqs: {} is no regular expression ({why}): try one like 'eth0|nvme'",
            quoted(text)
        ))
    };
    RegexBuilder::new(text).size_limit(1 << 20).build().map_err(|error| wrong(error.to_string()))
}

/// The memory nodes of a flag.
///
/// # Errors
/// Usage: it is no list of nodes.
pub fn memory_nodes(text: &str) -> Result<String> {
    let nodes = CpuSet::parse(text).ok().filter(|nodes| !nodes.is_empty());
    let refuse =
        || Failure::usage(format!("--numa: {} is no list of memory nodes: give one like 0", quoted(text)));
    nodes.map(|nodes| nodes.to_string()).ok_or_else(refuse)
}

/// What is asked of the planning of rules: the steps but the partition.
///
/// # Errors
/// Usage: a step is left out that is none.
pub fn rules_request(wanted: &IsolationRequest) -> Result<PlanRequest> {
    let steps = || RULES.into_iter().chain(RISKY);
    for name in &wanted.without {
        if name != PARTITION_RULE && !steps().any(|rule| rule == name) {
            let names: Vec<&str> = std::iter::once(PARTITION_RULE).chain(steps()).collect();
            return Err(Failure::usage(format!(
                "--without: {} is no step of an isolation: they are {}",
                quoted(name),
                names.join(", ")
            )));
        }
    }
    let asked = steps().filter(|rule| wanted.risky || !RISKY.contains(rule));
    let asked = asked.filter(|rule| !wanted.without.iter().any(|name| name == rule));
    let rules = asked.filter(|rule| knobs::ALL.iter().any(|knob| knob.id == *rule));
    Ok(PlanRequest {
        rules: rules.map(|rule| RuleRequest { rule: rule.to_owned(), value: None }).collect(),
        without: Vec::new(),
    })
}

/// Puts the partition before the steps of the rules, and takes from these what is not wanted.
///
/// # Errors
/// Not supported: this machine has no partitions. Usage: something has the CPUs already.
pub fn arrange(
    survey: &Survey,
    plan: &mut PlanDocument,
    wanted: &IsolationRequest,
    now: &dyn Fn(&Key) -> Fact<String>,
) -> Result<()> {
    let moved = |change: &PlannedChange| match (&change.setting.key, &wanted.interrupts) {
        (Key::Irq(number), Some(names)) => is_named(survey, *number, names),
        _ => true,
    };
    plan.changes.retain(moved);
    leave_detectors_on(plan);
    for change in &mut plan.changes {
        // What the kernel does not let move stays, and `isolate list` names it.
        change.setting.optional |= matches!(change.setting.key, Key::Irq(_) | Key::Task { .. });
    }
    let first = partition(survey, wanted, now)?;
    plan.changes.splice(0..0, first);
    Ok(())
}

fn is_named(survey: &Survey, number: u32, names: &Regex) -> bool {
    let irqs = survey.irqs.known().map_or(&[][..], |irqs| irqs.irqs.as_slice());
    let of = irqs.iter().find(|irq| irq.number == number);
    of.is_some_and(|irq| irq.actions.iter().any(|action| names.is_match(action)))
}

/// The detectors of lockups are kept off these CPUs, never switched off: with them a machine loses
/// its last witness.
fn leave_detectors_on(plan: &mut PlanDocument) {
    const SWITCHES: [&str; 4] =
        ["kernel.watchdog", "kernel.soft_watchdog", "kernel.nmi_watchdog", "kernel.watchdog_thresh"];
    let is_switch = |change: &PlannedChange| matches!(&change.setting.key, Key::Sysctl(name) if SWITCHES.contains(&name.as_str()));
    if let Some(change) = plan.changes.iter().find(|change| is_switch(change)) {
        let left = LeftOut {
            rule: change.rule.clone(),
            why: "an isolation keeps the lockup detectors off its CPUs, and does not switch them off"
                .to_owned(),
            instead: format!("onbeat tune apply {}", change.rule),
        };
        plan.left_out.push(left);
        plan.changes.retain(|change| !is_switch(change));
    }
}

fn partition(
    survey: &Survey,
    wanted: &IsolationRequest,
    now: &dyn Fn(&Key) -> Fact<String>,
) -> Result<Vec<PlannedChange>> {
    if wanted.without.iter().any(|rule| rule == PARTITION_RULE) {
        return match &wanted.memory_nodes {
            None => Ok(Vec::new()),
            Some(_) => {
                Err(Failure::usage("--numa is a setting of the partition: leave out --without cpu-isolation"))
            }
        };
    }
    let mut settings = partition::settings(survey, &wanted.cpus).map_err(|obstacle| match obstacle {
        Obstacle::NotSupported(why) => Failure::not_supported(why),
        Obstacle::InTheWay(why) => Failure::usage(why),
    })?;
    if let Some(nodes) = &wanted.memory_nodes {
        let inner = Key::Group(format!("{INNER_GROUP}/"));
        let at = settings.iter().position(|setting| setting.key == inner).map_or(settings.len(), |at| at + 1);
        let key = Key::GroupFile(format!("{INNER_GROUP}/cpuset.mems"));
        settings.insert(at, Setting { readback: Comparison::List, ..Setting::new(key, nodes) });
    }
    let change = |setting: Setting| {
        let read = now(&setting.key).known().map_or_else(String::new, |read| read.trim().to_owned());
        let why = format!("CPU {} is taken out of load balancing, and all threads off it", wanted.cpus);
        PlannedChange { why, ..PlannedChange::new(setting, PARTITION_RULE, &read) }
    };
    Ok(settings.into_iter().map(change).collect())
}
