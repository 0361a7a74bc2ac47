//! Steps of an isolation: disabling safeguards, a partition, then the remedies of rules for these
//! CPUs.

use facts::survey::Survey;
use model::error::{Failure, Result};
use model::fact::Fact;
use model::isolation::{INNER_GROUP, PARTITION_RULE};
use model::plan::{LeftOut, PlanDocument, PlannedChange, WITH_CONSENT};
use model::setting::{Comparison, Key, Setting};
use model::text::quoted_value;
use model::units::{CpuSet, named_cpus};
use regex_lite::{Regex, RegexBuilder};
use rules::knobs;
use rules::partition::{self, Obstacle};

use crate::plan::{PlanRequest, RuleRequest};

/// Rules for work that arrives on single CPUs; each is a step that can be omitted.
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

/// Rules that disable a safeguard: planned as steps, and applied only with --yes.
pub const RISKY: [&str; 2] = ["rt-throttling", "fair-server"];

/// Parameters of an isolation.
#[derive(Clone, Debug, Default)]
pub struct IsolationRequest {
    pub cpus: CpuSet,
    /// Memory nodes of its processes, as a list.
    pub memory_nodes: Option<String>,
    /// Names of the handlers of interrupts to move; all interrupts if none.
    pub interrupts: Option<Regex>,
    /// Rules of the steps to omit.
    pub without: Vec<String>,
    /// True if safeguards may be disabled.
    pub risky: bool,
}

/// Parses an expression for the names of interrupts.
///
/// # Errors
/// Usage: it is invalid, or too large.
pub fn interrupt_names(text: &str) -> Result<Regex> {
    let wrong = |why: String| {
        Failure::usage(format!(
            "invalid --irqs {}: expected a regular expression such as 'eth0|nvme' ({why})",
            quoted_value(text)
        ))
    };
    RegexBuilder::new(text).size_limit(1 << 20).build().map_err(|error| wrong(error.to_string()))
}

/// Parses the memory nodes of a flag.
///
/// # Errors
/// Usage: it is not a list of nodes.
pub fn memory_nodes(text: &str) -> Result<String> {
    let nodes = CpuSet::parse(text).ok().filter(|nodes| !nodes.is_empty());
    let refuse = || {
        Failure::usage(format!(
            "invalid --numa {}: expected a list of memory nodes such as 0",
            quoted_value(text)
        ))
    };
    nodes.map(|nodes| nodes.to_string()).ok_or_else(refuse)
}

/// Plan request for the rules: all steps except the partition.
///
/// # Errors
/// Usage: an unknown step is to be omitted.
pub fn rules_request(wanted: &IsolationRequest) -> Result<PlanRequest> {
    let steps = || RULES.into_iter().chain(RISKY);
    for name in &wanted.without {
        if name != PARTITION_RULE && !steps().any(|rule| rule == name) {
            let names: Vec<&str> = std::iter::once(PARTITION_RULE).chain(steps()).collect();
            return Err(Failure::usage(format!(
                "invalid --without {}: expected a step of the isolation: {}",
                quoted_value(name),
                names.join(", ")
            )));
        }
    }
    let asked = steps().filter(|rule| !wanted.without.iter().any(|name| name == rule));
    let rules = asked.filter(|rule| knobs::ALL.iter().any(|knob| knob.id == *rule));
    Ok(PlanRequest {
        rules: rules.map(|rule| RuleRequest { rule: rule.to_owned(), value: None }).collect(),
        without: Vec::new(),
    })
}

/// Puts the partition before the steps of the rules, but after those of safeguards, and removes
/// unwanted steps.
///
/// A kernel 6.12 warns when the fair server of a CPU in a partition is written to
/// (`dl_rq_change_utilization()` and `task_non_contending()`, kernel/sched/deadline.c): in a guest
/// 24 times in 8 rounds within the partition, and never before its creation or after its undo.
///
/// # Errors
/// Not supported: this machine has no partitions. Usage: the CPUs are isolated already.
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
    if !wanted.risky {
        leave_safeguards(plan);
    }
    for change in &mut plan.changes {
        // An interrupt or thread that the kernel does not move stays, and `isolate list` shows it.
        change.setting.optional |= matches!(change.setting.key, Key::Irq(_) | Key::Task { .. });
    }
    let first = partition(survey, wanted, now)?;
    let (mut changes, rest): (Vec<_>, Vec<_>) =
        std::mem::take(&mut plan.changes).into_iter().partition(|change| RISKY.contains(&&*change.rule));
    changes.extend(first.into_iter().chain(rest));
    plan.changes = changes;
    Ok(())
}

fn is_named(survey: &Survey, number: u32, names: &Regex) -> bool {
    let irqs = survey.irqs.known().map_or(&[][..], |irqs| irqs.irqs.as_slice());
    let of = irqs.iter().find(|irq| irq.number == number);
    of.is_some_and(|irq| irq.actions.iter().any(|action| names.is_match(action)))
}

/// Keeps the lockup detectors enabled: they are kept off these CPUs, but a machine without them
/// loses its last witness.
fn leave_detectors_on(plan: &mut PlanDocument) {
    const SWITCHES: [&str; 4] =
        ["kernel.watchdog", "kernel.soft_watchdog", "kernel.nmi_watchdog", "kernel.watchdog_thresh"];
    let is_switch = |change: &PlannedChange| match &change.setting.key {
        Key::Sysctl(name) => SWITCHES.contains(&name.as_str()),
        _ => false,
    };
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

/// Omits steps that disable a safeguard, and lists them.
fn leave_safeguards(plan: &mut PlanDocument) {
    for rule in RISKY {
        if plan.changes.iter().any(|change| change.rule == rule) {
            plan.changes.retain(|change| change.rule != rule);
            plan.left_out.push(LeftOut {
                rule: rule.to_owned(),
                why: "a safeguard would be lost".to_owned(),
                instead: WITH_CONSENT.to_owned(),
            });
        }
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
                Err(Failure::usage("--numa is a setting of the partition: omit --without cpu-isolation"))
            }
        };
    }
    if let Some(nodes) = &wanted.memory_nodes {
        require_nodes(nodes, now)?;
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
        let why = format!("no load balancing over {}, and no other threads there", named_cpus(&wanted.cpus));
        PlannedChange { why, ..PlannedChange::new(setting, PARTITION_RULE, &read) }
    };
    Ok(settings.into_iter().map(change).collect())
}

/// File with the nodes that have memory; the kernel refuses others (cpuset.mems).
const NODES_WITH_MEMORY: &str = "devices/system/node/has_memory";

/// Refuses memory nodes that the machine does not have; if that is not readable, the kernel will
/// refuse them.
fn require_nodes(nodes: &str, now: &dyn Fn(&Key) -> Fact<String>) -> Result<()> {
    let there = match now(&Key::Sysfs(NODES_WITH_MEMORY.to_owned())) {
        Fact::Known(text) => CpuSet::parse(text.trim()).ok(),
        // A kernel without CONFIG_NUMA has one.
        Fact::Absent => CpuSet::parse("0").ok(),
        _ => None,
    };
    let Some(there) = there else { return Ok(()) };
    match CpuSet::parse(nodes).unwrap_or_default().without(&there) {
        missing if missing.is_empty() => Ok(()),
        missing => Err(Failure::usage(format!(
            "invalid --numa: memory node {missing} does not exist; choose among {there}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::error::Exit;
    use rules::fixture::Machine;

    fn wanted(cpus: &str) -> IsolationRequest {
        IsolationRequest { cpus: CpuSet::parse(cpus).unwrap(), ..IsolationRequest::default() }
    }

    fn change(key: &str, rule: &str) -> PlannedChange {
        PlannedChange::new(Setting::new(key.parse().unwrap(), "0-1"), rule, "0-3")
    }

    /// Keys of a plan after its steps were put in order.
    fn arranged(plan: Vec<PlannedChange>, wanted: &IsolationRequest) -> Result<(Vec<String>, PlanDocument)> {
        let survey = Machine::base().read();
        let mut document = PlanDocument::new("", plan, Vec::new());
        arrange(&survey, &mut document, wanted, &|_| Fact::Absent)?;
        Ok((document.changes.iter().map(|change| change.setting.key.to_string()).collect(), document))
    }

    #[test]
    fn every_step_is_a_rule() {
        for rule in RULES.into_iter().chain(RISKY).chain([PARTITION_RULE]) {
            assert!(knobs::ALL.iter().any(|knob| knob.id == rule), "{rule}");
        }
    }

    #[test]
    fn steps_are_left_out_by_their_names() {
        let names = |request: &IsolationRequest| -> Vec<String> {
            rules_request(request).unwrap().rules.into_iter().map(|rule| rule.rule).collect()
        };
        assert_eq!(names(&wanted("2-3")).len(), RULES.len() + RISKY.len());
        let without = IsolationRequest { without: vec!["watchdog".to_owned()], ..wanted("2-3") };
        assert!(!names(&without).contains(&"watchdog".to_owned()));
        let other = IsolationRequest { without: vec!["swap".to_owned()], ..wanted("2-3") };
        assert_eq!(rules_request(&other).unwrap_err().exit, Exit::Usage);
    }

    #[test]
    fn what_takes_a_safeguard_away_is_named_and_waits_for_consent() {
        let plan = || {
            vec![
                change("sysctl:kernel.sched_rt_runtime_us", "rt-throttling"),
                change("sysctl:vm.stat_interval", "vmstat-interval"),
            ]
        };
        let (keys, document) = arranged(plan(), &wanted("2-3")).unwrap();
        assert!(!keys.contains(&"sysctl:kernel.sched_rt_runtime_us".to_owned()), "{keys:?}");
        assert_eq!(document.left_out.len(), 1);
        let left = &document.left_out[0];
        assert_eq!((left.rule.as_str(), left.instead.as_str()), ("rt-throttling", WITH_CONSENT));
        let (keys, document) = arranged(plan(), &IsolationRequest { risky: true, ..wanted("2-3") }).unwrap();
        assert!(keys.contains(&"sysctl:kernel.sched_rt_runtime_us".to_owned()), "{keys:?}");
        assert!(document.left_out.is_empty());
    }

    #[test]
    fn fair_servers_are_set_while_their_cpus_are_in_no_partition() {
        let server = "sysfs:kernel/debug/sched/fair_server/cpu3/runtime";
        let plan = vec![
            change("sysctl:vm.stat_interval", "vmstat-interval"),
            change("sysctl:kernel.sched_rt_runtime_us", "rt-throttling"),
            change(server, "fair-server"),
        ];
        let (keys, _) = arranged(plan, &IsolationRequest { risky: true, ..wanted("2-3") }).unwrap();
        let at = |key: &str| keys.iter().position(|one| one == key).unwrap();
        // Undo uses the reverse order.
        assert!(at("sysctl:kernel.sched_rt_runtime_us") < at(server), "{keys:?}");
        assert!(at(server) < at("cgroup:cgroup.subtree_control"), "{keys:?}");
        assert_eq!(at("sysctl:vm.stat_interval"), keys.len() - 1, "{keys:?}");
    }

    #[test]
    fn the_partition_comes_first_and_has_the_memory_nodes() {
        let request = IsolationRequest { memory_nodes: Some("0".to_owned()), ..wanted("2-3") };
        let (keys, _) =
            arranged(vec![change("sysctl:vm.stat_interval", "vmstat-interval")], &request).unwrap();
        let expected = [
            "cgroup:cgroup.subtree_control",
            "cgroup:onbeat/",
            "cgroup:onbeat/cpuset.cpus.exclusive",
            "cgroup:onbeat/cgroup.subtree_control",
            "cgroup:onbeat/rt/",
            "cgroup:onbeat/rt/cpuset.mems",
            "cgroup:onbeat/rt/cpuset.cpus.exclusive",
            "cgroup:onbeat/rt/cpuset.cpus.partition",
            "sysctl:vm.stat_interval",
        ];
        assert_eq!(keys, expected);
        let without = IsolationRequest { without: vec![PARTITION_RULE.to_owned()], ..request };
        assert_eq!(arranged(Vec::new(), &without).unwrap_err().exit, Exit::Usage);
    }

    #[test]
    fn memory_nodes_are_those_that_have_memory() {
        let survey = Machine::base().read();
        let arranged = |nodes: &str, has: Fact<String>| {
            let wanted = IsolationRequest { memory_nodes: Some(nodes.to_owned()), ..wanted("2-3") };
            let mut plan = PlanDocument::new("", Vec::new(), Vec::new());
            let now = |key: &Key| {
                if key.to_string() == "sysfs:devices/system/node/has_memory" {
                    has.clone()
                } else {
                    Fact::Absent
                }
            };
            arrange(&survey, &mut plan, &wanted, &now).map_err(|failure| failure.message)
        };
        let two = || Fact::Known("0,2\n".to_owned());
        assert_eq!(arranged("0", two()), Ok(()));
        let refused = arranged("1-3", two()).unwrap_err();
        assert_eq!(refused, "invalid --numa: memory node 1,3 does not exist; choose among 0,2");
        assert!(arranged("1", Fact::Absent).unwrap_err().ends_with("choose among 0"));
        assert_eq!(arranged("7", Fact::Refused(13)), Ok(()));
    }

    #[test]
    fn detectors_stay_on_and_interrupts_are_chosen_by_name() {
        let survey = Machine::base().read();
        let irqs = &survey.irqs.known().unwrap().irqs;
        let (first, other) = (&irqs[0], &irqs[1]);
        let plan = vec![
            change(&format!("irq:{}", first.number), "irq-affinity"),
            change(&format!("irq:{}", other.number), "irq-affinity"),
            change("sysctl:kernel.watchdog", "watchdog"),
            change("sysctl:kernel.watchdog_cpumask", "watchdog"),
        ];
        let name = interrupt_names(&format!("^{}$", first.actions[0])).unwrap();
        let without = vec![PARTITION_RULE.to_owned()];
        let request = IsolationRequest { interrupts: Some(name), without, ..wanted("2-3") };
        let (keys, document) = arranged(plan, &request).unwrap();
        assert_eq!(keys, [format!("irq:{}", first.number), "sysctl:kernel.watchdog_cpumask".to_owned()]);
        assert!(document.changes[0].setting.optional);
        assert_eq!(document.left_out.len(), 1);
    }

    #[test]
    fn what_a_flag_takes_is_said() {
        for text in ["(", "a{1,99999}{1,99999}"] {
            assert_eq!(interrupt_names(text).unwrap_err().exit, Exit::Usage, "{text}");
        }
        assert_eq!(memory_nodes("1,0").unwrap(), "0-1");
        for text in ["", "x", "-1"] {
            assert_eq!(memory_nodes(text).unwrap_err().exit, Exit::Usage, "{text}");
        }
    }
}
