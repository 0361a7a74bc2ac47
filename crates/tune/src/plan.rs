//! Plans: remedies of failing rules, as changes in the order in which they are made.

use facts::survey::Survey;
use model::error::{Failure, Result};
use model::fact::Fact;
use model::plan::{LeftOut, PlanDocument, PlannedChange};
use model::setting::{Key, Risk, Setting};
use model::text::quoted_value;
use model::units::CpuSet;
use rules::audit::{Audit, Finding};
use rules::change::Change;
use rules::judgement::AuditVerdict;
use rules::knob::Knob;
use rules::knobs;

use crate::isolate::refusal::require_separable;
use crate::order::ordered;

/// Parameters of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanRequest {
    /// Only these rules; if empty, all that fail.
    pub rules: Vec<RuleRequest>,
    /// Excluded rules.
    pub without: Vec<String>,
}

/// Rule requested by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleRequest {
    pub rule: String,
    /// Value to use instead of the rule's own.
    pub value: Option<String>,
}

impl RuleRequest {
    /// Parses `RULE` or `RULE=VALUE`.
    ///
    /// # Errors
    /// Usage: there is no such rule.
    pub fn parse(text: &str) -> Result<RuleRequest> {
        let (rule, value) = match text.split_once('=') {
            Some((rule, value)) => (rule, Some(value.to_owned())),
            None => (text, None),
        };
        knob_of(rule)?;
        Ok(RuleRequest { rule: rule.to_owned(), value })
    }
}

fn knob_of(rule: &str) -> Result<&'static Knob> {
    knobs::ALL.iter().copied().find(|knob| knob.id == rule).ok_or_else(|| {
        Failure::usage(format!("unknown rule {}: `onbeat rules` lists all rules", quoted_value(rule)))
    })
}

/// Creates a plan from an audit; `now` reads the value of a key, on the machine or in its capture.
///
/// # Errors
/// Usage: a rule is unknown or has two values, or its setting does not accept the value.
pub fn plan(
    survey: &Survey,
    audit: &Audit,
    request: &PlanRequest,
    boot: &str,
    now: &dyn Fn(&Key) -> Fact<String>,
) -> Result<PlanDocument> {
    for rule in request.without.iter().chain(request.rules.iter().map(|named| &named.rule)) {
        knob_of(rule)?;
    }
    require_one_value(&request.rules)?;
    let cpus = CpuSet::parse(&audit.cpus).unwrap_or_default();
    let (mut changes, mut left_out): (Vec<PlannedChange>, Vec<LeftOut>) = (Vec::new(), Vec::new());
    for knob in ordered(knobs::ALL.to_vec()) {
        let named = request.rules.iter().find(|named| named.rule == knob.id);
        if request.without.iter().any(|rule| rule == knob.id)
            || (named.is_none() && !request.rules.is_empty())
        {
            continue;
        }
        let Some(finding) = audit.findings.iter().find(|finding| finding.rule == knob.id) else { continue };
        match of_rule(survey, knob, finding, &cpus, named)?.on_machine(knob, named, now) {
            Wanted::Nothing => {}
            Wanted::Left(left) => left_out.push(left),
            Wanted::Settings(settings) => {
                if let Some((key, other)) = contradicted(&settings, &changes) {
                    if named.is_some() && request.rules.iter().any(|named| named.rule == other) {
                        return Err(Failure::usage(format!(
                            "{} and {other} need different values of {key}: omit one of them",
                            knob.id
                        )));
                    }
                    let why = format!("it needs a different value of {key} than {other}, which is changed");
                    left_out.push(LeftOut { rule: knob.id.to_owned(), why, instead: String::new() });
                    continue;
                }
                if let Some(other) = conflicting(knob, &changes) {
                    let why = format!("it must not be combined with {other}, which is changed");
                    left_out.push(LeftOut { rule: knob.id.to_owned(), why, instead: String::new() });
                    continue;
                }
                changes
                    .extend(settings.into_iter().filter_map(|setting| planned(knob, finding, setting, now)));
            }
        }
    }
    Ok(PlanDocument::new(boot, without_repeats(changes), left_out))
}

/// Rule among the changes that this one must not be combined with.
fn conflicting(knob: &Knob, changes: &[PlannedChange]) -> Option<String> {
    let forbids = |rule: &str| {
        let other = knobs::ALL.iter().find(|other| other.id == rule);
        knob.conflicts.contains(&rule) || other.is_some_and(|other| other.conflicts.contains(&knob.id))
    };
    changes.iter().map(|change| &change.rule).find(|rule| forbids(rule)).cloned()
}

/// Key planned with another value than one of these, and the rule that requests it.
fn contradicted(settings: &[Setting], changes: &[PlannedChange]) -> Option<(Key, String)> {
    let other = |setting: &Setting| {
        let is_other = |change: &&PlannedChange| {
            change.setting.key == setting.key && !setting.is_met_by(&change.setting.wanted)
        };
        changes.iter().find(is_other).map(|change| (setting.key.clone(), change.rule.clone()))
    };
    settings.iter().find_map(other)
}

/// Refuses two values of one rule, of which only one could be set.
fn require_one_value(rules: &[RuleRequest]) -> Result<()> {
    for (at, named) in rules.iter().enumerate() {
        let other = |other: &&RuleRequest| other.rule == named.rule && other.value != named.value;
        if let Some(other) = rules.iter().take(at).find(other) {
            let request_text = |one: &RuleRequest| match &one.value {
                Some(value) => format!("{}={}", one.rule, quoted_value(value)),
                None => one.rule.clone(),
            };
            let (first, second) = (request_text(other), request_text(named));
            return Err(Failure::usage(format!(
                "{first} and {second} are two values of one rule: omit one of them"
            )));
        }
    }
    Ok(())
}

enum Wanted {
    Nothing,
    Settings(Vec<Setting>),
    Left(LeftOut),
}

impl Wanted {
    /// Omits a given value if this machine has no file for it, which no finding has checked.
    fn on_machine(
        self,
        knob: &'static Knob,
        named: Option<&RuleRequest>,
        now: &dyn Fn(&Key) -> Fact<String>,
    ) -> Wanted {
        let (Wanted::Settings(settings), Some(RuleRequest { value: Some(_), .. })) = (&self, named) else {
            return self;
        };
        let is_file = |key: &&Key| matches!(key, Key::Sysctl(_) | Key::Sysfs(_) | Key::Irq(_));
        let keys = settings.iter().map(|setting| &setting.key).filter(is_file);
        match keys.into_iter().find(|key| now(key) == Fact::Absent) {
            None => self,
            Some(key) => Wanted::Left(LeftOut {
                rule: knob.id.to_owned(),
                why: format!("there is no {}", key.path()),
                instead: String::new(),
            }),
        }
    }
}

fn of_rule(
    survey: &Survey,
    knob: &'static Knob,
    finding: &Finding,
    cpus: &CpuSet,
    named: Option<&RuleRequest>,
) -> Result<Wanted> {
    let left = |why: &str| {
        Wanted::Left(LeftOut { rule: knob.id.to_owned(), why: why.to_owned(), instead: finding.fix.clone() })
    };
    if let Some(value) = named.and_then(|named| named.value.as_deref()) {
        let settings = rules::setting::with_value(survey, knob, &finding.remedy, cpus, value);
        let refuse = |why| Failure::usage(format!("{}={}: {why}", knob.id, quoted_value(value)));
        return settings.map(Wanted::Settings).map_err(refuse);
    }
    match finding.verdict {
        AuditVerdict::Pass | AuditVerdict::NotApplicable if named.is_none() => return Ok(Wanted::Nothing),
        AuditVerdict::Pass => return Ok(left(&format!("it is already correct: {}", finding.value))),
        AuditVerdict::NotApplicable => return Ok(left(&format!("it does not apply: {}", finding.reason))),
        AuditVerdict::Unknown => return Ok(left(&format!("it is unknown: {}", finding.reason))),
        AuditVerdict::Fail => {}
    }
    if !knob.unsettable.is_empty() {
        return Ok(left(knob.unsettable));
    }
    match settings(survey, finding) {
        Ok(settings) => Ok(Wanted::Settings(settings)),
        Err(why) => Ok(left(&why)),
    }
}

/// Settings of a finding; a partition only of CPUs that can be isolated.
fn settings(survey: &Survey, finding: &Finding) -> std::result::Result<Vec<Setting>, String> {
    for change in rules::setting::changes(&finding.remedy)? {
        if let Change::Partition { cpus, .. } = change {
            require_separable(survey, cpus).map_err(|refusal| refusal.message)?;
        }
    }
    rules::setting::settings(survey, &finding.remedy)
}

/// Change for a setting; none if it has the value already, by another rule or the kernel.
fn planned(
    knob: &'static Knob,
    finding: &Finding,
    setting: Setting,
    now: &dyn Fn(&Key) -> Fact<String>,
) -> Option<PlannedChange> {
    let read = now(&setting.key).known().cloned();
    if read.as_deref().is_some_and(|read| setting.is_met_by(read)) {
        return None;
    }
    let mut change = PlannedChange::new(setting, knob.id, read.as_deref().unwrap_or_default().trim());
    match finding.verdict {
        AuditVerdict::Fail => change.why.clone_from(&finding.reason),
        // A given value needs no finding.
        _ => "it was requested".clone_into(&mut change.why),
    }
    knob.side_effects.clone_into(&mut change.cost);
    Some(change)
}

/// Removes repeated changes of several rules; the first rule keeps the change.
fn without_repeats(changes: Vec<PlannedChange>) -> Vec<PlannedChange> {
    let mut seen = std::collections::BTreeSet::new();
    changes
        .into_iter()
        .filter(|change| seen.insert((change.setting.key.clone(), change.setting.wanted.clone())))
        .collect()
}

/// Rules of a plan that disable or may disable a safeguard; keys of changes without a rule.
pub fn high_risk(plan: &PlanDocument) -> Vec<String> {
    let high = plan.changes.iter().filter(|change| change.setting.risk == Risk::High);
    let mut names: Vec<String> = high
        .map(|change| match change.rule.as_str() {
            "" => change.setting.key.to_string(),
            rule => rule.to_owned(),
        })
        .collect();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading;
    use host::MachineFiles;
    use rules::fixture::Machine;

    fn planned(edits: &str, request: &PlanRequest) -> Result<PlanDocument> {
        let mut machine = Machine::base();
        machine.edit(edits);
        let (survey, intent) = machine.survey();
        let audit = rules::audit::audit(&survey, &intent);
        let files = MachineFiles::in_memory(machine.answers);
        plan(&survey, &audit, request, "boot", &|key| reading::read(&files, key))
    }

    fn request(rules: &[&str], without: &[&str]) -> PlanRequest {
        PlanRequest {
            rules: rules.iter().map(|text| RuleRequest::parse(text).unwrap()).collect(),
            without: without.iter().map(ToString::to_string).collect(),
        }
    }

    const BAD: &str = "/proc/sys/vm/stat_interval: 1\n/proc/sys/vm/compaction_proactiveness: 20\n--cpus 1-2";

    #[test]
    fn a_well_set_machine_needs_nothing() {
        assert_eq!(planned("", &PlanRequest::default()).unwrap().changes, []);
    }

    #[test]
    fn a_failing_rule_becomes_its_changes_with_what_is_there_now() {
        let plan = planned(BAD, &request(&["vmstat-interval"], &[])).unwrap();
        let [change] = plan.changes.as_slice() else { panic!("{plan:?}") };
        let seen = (change.setting.key.to_string(), change.now.as_str(), change.setting.wanted.as_str());
        assert_eq!(seen, ("sysctl:vm.stat_interval".to_owned(), "1", "10"));
        assert_eq!(
            (change.path.as_str(), change.rule.as_str()),
            ("/proc/sys/vm/stat_interval", "vmstat-interval")
        );
        assert!(!change.why.is_empty() && !change.cost.is_empty());
    }

    #[test]
    fn rules_are_named_left_out_or_given_a_value() {
        let rules = |request| {
            let plan = planned(BAD, &request).unwrap();
            plan.changes.iter().map(|change| change.rule.clone()).collect::<Vec<_>>()
        };
        assert!(rules(PlanRequest::default()).contains(&"proactive-compaction".to_owned()));
        let without = rules(request(&[], &["proactive-compaction"]));
        assert!(!without.contains(&"proactive-compaction".to_owned()));
        assert!(without.contains(&"vmstat-interval".to_owned()));
        let other = planned(BAD, &request(&["vmstat-interval=120"], &[])).unwrap();
        assert_eq!(other.changes[0].setting.wanted, "120");
        let same = planned(BAD, &request(&["vmstat-interval=1"], &[])).unwrap();
        assert_eq!(same.changes, [], "it is so already");
    }

    #[test]
    fn two_rules_do_not_give_a_key_two_values() {
        let edits = "--cpus 2-3
             /sys/devices/system/cpu/isolated:
             /sys/kernel/debug/sched/fair_server/cpu2/runtime: 50000000
             /proc/sys/kernel/sched_rt_runtime_us: 950000";
        let both = request(&["rt-throttling=900000", "fair-server=25000000"], &[]);
        let refused = planned(edits, &both).unwrap_err();
        assert!(refused.message.contains("different values of sysctl:kernel.sched_rt_runtime_us: omit one"));
        let same = request(&["rt-throttling=-1", "fair-server=25000000"], &[]);
        let keys: Vec<String> = planned(edits, &same)
            .unwrap()
            .changes
            .iter()
            .map(|change| change.setting.key.to_string())
            .collect();
        let expected =
            ["sysctl:kernel.sched_rt_runtime_us", "sysfs:kernel/debug/sched/fair_server/cpu2/runtime"];
        assert_eq!(keys, expected);
    }

    #[test]
    fn a_rule_has_one_value() {
        let refused = planned(BAD, &request(&["vmstat-interval=9", "vmstat-interval=20"], &[])).unwrap_err();
        assert!(refused.message.contains("vmstat-interval=9 and vmstat-interval=20 are two values"));
        let twice = request(&["vmstat-interval=9", "swappiness=77", "vmstat-interval=9"], &[]);
        assert_eq!(planned(BAD, &twice).unwrap().changes.len(), 2);
    }

    #[test]
    fn a_value_for_what_the_machine_lacks_is_left_out() {
        let governor = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        let edits: Vec<String> = (0..4).map(|cpu| format!("{} absent", governor(cpu))).collect();
        let plan = planned(&edits.join("\n"), &request(&["cpufreq-governor=performance"], &[])).unwrap();
        assert_eq!(plan.changes, []);
        let why: Vec<&str> = plan.left_out.iter().map(|left| left.why.as_str()).collect();
        assert_eq!(why, [format!("there is no {}", governor(2))]);
    }

    #[test]
    fn a_value_that_was_given_has_no_finding_for_its_reason() {
        let plan = planned("", &request(&["swappiness=77"], &[])).unwrap();
        assert_eq!(plan.changes[0].why, "it was requested");
        assert_ne!(
            planned(BAD, &request(&["vmstat-interval=9"], &[])).unwrap().changes[0].why,
            "it was requested"
        );
    }

    /// Not isolated, on a kernel that supports isolation at run time.
    const OPEN: &str = "/sys/devices/system/cpu/isolated:
        cmdline - isolcpus=managed_irq,domain,2-3
        /sys/fs/cgroup/cgroup.controllers: cpuset cpu
        /sys/fs/cgroup/cgroup.subtree_control: cpu
        /sys/fs/cgroup/cpuset.cpus.isolated:
        --cpus 2-3";

    #[test]
    fn a_partition_is_made_of_its_groups() {
        let plan = planned(OPEN, &request(&["cpu-isolation"], &[])).unwrap();
        let last = plan.changes.last().unwrap();
        let seen = (last.setting.key.to_string(), last.setting.wanted.as_str(), last.rule.as_str());
        assert_eq!(seen, ("cgroup:onbeat/rt/cpuset.cpus.partition".to_owned(), "isolated", "cpu-isolation"));
        assert!(last.setting.moves_threads);
    }

    #[test]
    fn a_partition_that_is_not_to_be_made_says_why() {
        let left = |edits: &str| {
            let plan = planned(&format!("{OPEN}\n{edits}"), &request(&["cpu-isolation"], &[])).unwrap();
            assert_eq!(plan.changes, []);
            plan.left_out[0].why.clone()
        };
        let half = [1, 2].map(|cpu| {
            let dir = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
            format!("{dir}/core_cpus_list: 1-2\n{dir}/thread_siblings_list: 1-2")
        });
        assert!(left(&half.join("\n")).contains("name both or neither"));
        let holder = "/sys/fs/cgroup/rt.slice/cpuset.cpus.partition: isolated
            /sys/fs/cgroup/rt.slice/cpuset.cpus.effective: 3";
        assert!(left(holder).contains("in the partition /rt.slice already: CPU 3"));
    }

    #[test]
    fn what_no_rule_is_called_is_refused() {
        assert!(RuleRequest::parse("vm.stat_interval").is_err());
        let error =
            planned(BAD, &PlanRequest { rules: vec![], without: vec!["none".to_owned()] }).unwrap_err();
        assert!(error.message.contains("onbeat rules"), "{error}");
    }

    #[test]
    fn what_is_not_changed_says_why_and_what_to_do() {
        let plan = planned("/sys/kernel/mm/ksm/run refused\ncmdline - skew_tick=1", &PlanRequest::default())
            .unwrap();
        for left in &plan.left_out {
            assert!(!left.why.is_empty(), "{left:?}");
        }
        assert!(plan.left_out.iter().any(|left| left.instead.contains("command line")), "{plan:?}");
    }
}
