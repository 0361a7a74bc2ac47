//! Group scheduling of real-time tasks: a budget for each control group.

use super::sources::{CGROUP_V2, PARAMETERS, RT_GROUP};
use super::unsettable;
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{AuditVerdict, Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use facts::Fact;
use facts::policy_refusal::{BY_PARAMETER, RefusalCause, WantedPolicy, causes_of_refusal};
use facts::policy_rights::{BudgetGroup, BudgetSettings, has_group_budgets};
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "rt-group-sched",
    title: "real-time group scheduling",
    description: "With RT_GROUP_SCHED each control group has a real-time budget, which is 0 for a new group. \
                  Newer kernels can have it built in but disabled (RT_GROUP_SCHED_DEFAULT_DISABLED, \
                  rt_group_sched=0).",
    rationale: "a task in a group without a budget is refused a real-time policy, a task that has used up \
                its group's budget is stopped for the rest of the period, and real-time throttling stays \
                active although the kernel has a fair server",
    detection: "The kernel's configuration and rt_group_sched= on its command line; if the configuration \
                cannot be read, the budget of onbeat's control group, which only such kernels have. A budget \
                of 0 is reported; v2 has no file for it, and groups with the cpu controller have no budget.",
    side_effects: "Without it real-time execution is not limited by group: containers are limited only by \
                   RLIMIT_RTPRIO and their capabilities.",
    wanted: "not built in, or disabled",
    fix: || Change::kconfig("RT_GROUP_SCHED", "n").into(),
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Build,
    unsettable: unsettable::BUILT,
    sources: &[
        Source { title: "kernel: real-time group scheduling, the interface", url: RT_GROUP },
        Source { title: "kernel: cgroup v2, the cpu controller's warning", url: CGROUP_V2 },
        Source { title: "kernel: command line, rt_group_sched=", url: PARAMETERS },
    ],
    cures: &[SliceKind::Throttled],
    facts: &[
        "/boot/config-RELEASE",
        "/proc/cmdline",
        "/proc/self/cgroup",
        "/sys/fs/cgroup/cpu/GROUP/cpu.rt_runtime_us",
        "/sys/fs/cgroup/GROUP/cpu.weight",
        "/proc/sys/kernel/sched_rt_runtime_us",
    ],
    judge,
    examples: Examples { fires: "CONFIG_RT_GROUP_SCHED=y", silent: "", unknown: "/boot refused" },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    let judged = judge_kernel(machine)?;
    let settings = BudgetSettings::of(machine.facts());
    let refusal = causes_of_refusal(&machine.survey.rights, &settings, WantedPolicy::Priority(1));
    let mut causes = refusal.causes.iter().filter(|_| judged.verdict == AuditVerdict::Fail);
    let budget = causes.find_map(|cause| match cause {
        RefusalCause::Budget(group) => Some((cause, group)),
        _ => None,
    });
    let Some((budget, group)) = budget else { return Ok(judged) };
    let value =
        format!("{}; no program of onbeat's group can be real-time: {}", judged.value, budget.reason());
    let for_good = judged.remedy.or_usual(KNOB.fix);
    let words = budget.remedy();
    let is_old = machine.series().is_ok_and(|series| series < (6, 16));
    // Without the parameter, the first remedy is for the running kernel.
    let lasts = if is_old || group.runtime_us.is_some() { Persistence::Runtime } else { Persistence::Boot };
    let words = words.strip_prefix(BY_PARAMETER).filter(|_| is_old).unwrap_or(&words);
    let now = Remedy::advice(AdviceReason::Choice, words).with_persistence(lasts);
    Ok(Judgement::fail(value).fix(now.or(for_good)))
}

/// Judges the kernel, regardless of the group that onbeat runs in.
fn judge_kernel(machine: &MachineView) -> Judged {
    let config = match (machine.kconfig(), &machine.survey.rights.group) {
        (Ok(config), _) => config,
        (Err(_), Fact::Known(BudgetGroup { runtime_us: Some(budget), .. })) => {
            let judged = Judgement::fail(format!("on: {budget} us for this group"));
            // The parameter came with 6.16.
            let by_word = machine.series().is_ok_and(|series| series >= (6, 16));
            return Ok(if by_word { judged.fix(Change::cmdline_add("rt_group_sched=0")) } else { judged });
        }
        (Err(unknown), _) => return Err(unknown),
    };
    if has_group_budgets(config, None) == Some(false) {
        return Ok(Judgement::pass("not built in"));
    }
    if has_group_budgets(config, None) == Some(true) {
        return Ok(Judgement::fail("built in"));
    }
    if has_group_budgets(config, Some(machine.cmdline_or_built_in()?)) == Some(true) {
        return Ok(Judgement::fail("enabled").fix(Change::cmdline_add("rt_group_sched=0")));
    }
    Ok(Judgement::pass("disabled").persistence(Persistence::Boot))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    const NEW: &str = "CONFIG_RT_GROUP_SCHED=y\nCONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=";

    #[test]
    fn newer_kernels_can_have_it_and_leave_it_off() {
        check(&KNOB, "", "pass not built in");
        check(&KNOB, "CONFIG_RT_GROUP_SCHED=y\ncmdline + rt_group_sched=0", "fail high built in");
        check(&KNOB, &format!("{NEW}y"), "pass disabled");
        check(&KNOB, &format!("{NEW}y\ncmdline + rt_group_sched=1"), "fail high enabled");
        check(&KNOB, &format!("{NEW}n\ncmdline + rt_group_sched=0"), "pass disabled");
        check(&KNOB, &format!("{NEW}n\ncmdline + rt_group_sched=no"), "fail high enabled");
        let both = "cmdline + rt_group_sched=1\ncmdline + rt_group_sched=";
        check(&KNOB, &format!("{NEW}n\n{both}0x0"), "pass disabled");
        check(&KNOB, &format!("{NEW}y\n{both}off"), "fail high enabled");
        check(&KNOB, &format!("{NEW}y\n/proc/cmdline refused"), "unknown");
    }

    const LIMITED: &str = "/proc/sys/kernel/sched_rt_runtime_us: 950000";

    /// Value of the finding that fails.
    fn value(edits: &str) -> String {
        let mut machine = Machine::base();
        machine.edit(edits);
        machine.finding(&KNOB).value
    }

    #[test]
    fn a_budget_shows_it_without_a_configuration() {
        let group = "/boot refused\n/proc/self/cgroup: 4:cpu,cpuacct:/a\n\
                     /sys/fs/cgroup/cpu,cpuacct/a/cpu.rt_runtime_us: 0";
        // -1 for all together disables the budgets of groups.
        check(&KNOB, group, "fail high on: 0 us for this group");
        let value = value(&format!("{group}\n{LIMITED}"));
        assert!(value.ends_with("group is 0 (/sys/fs/cgroup/cpu,cpuacct/a/cpu.rt_runtime_us)"), "{value}");
    }

    #[test]
    fn a_budget_of_0_is_named_with_what_helps_today() {
        let group = |us: &str| {
            format!(
                "CONFIG_RT_GROUP_SCHED=y\n/proc/self/cgroup: 4:cpu:/docker/a\n{LIMITED}\n\
                 /sys/fs/cgroup/cpu/docker/a/cpu.rt_runtime_us: {us}"
            )
        };
        check(&KNOB, &group("950000"), "fail high built in");
        let mut machine = Machine::base();
        machine.edit(&group("0"));
        let found = machine.finding(&KNOB);
        assert!(found.value.starts_with("built in; no program of onbeat's group"), "{}", found.value);
        let fix = found.fix;
        assert!(fix.contains("--cpu-rt-runtime") && fix.contains("without CONFIG_RT_GROUP_SCHED"), "{fix}");
    }

    #[test]
    fn groups_of_version_2_have_no_file_for_a_budget() {
        let group = format!(
            "{NEW}n\n/proc/self/cgroup: 0::/system.slice\n{LIMITED}\n\
             /sys/fs/cgroup/system.slice/cpu.weight: 100"
        );
        let value = value(&group);
        assert!(value.contains("its control group has no real-time budget"), "{value}");
        check(&KNOB, &format!("{group}\ncmdline + rt_group_sched=0"), "pass disabled");
        // The parameter came with 6.16.
        let fix = |release: &str| {
            let mut machine = Machine::base();
            machine.edit(&group.replace(&format!("{NEW}n\n"), "CONFIG_RT_GROUP_SCHED=y\n"));
            machine.edit(&format!(
                "/proc/sys/kernel/osrelease: {release}\n/boot/config-{release}:\n\
                 | # Automatically generated file; DO NOT EDIT.\n\
                 | # Linux/x86 {release} Kernel Configuration\n| CONFIG_RT_GROUP_SCHED=y\n\
                 | # Kernel hacking"
            ));
            machine.finding(&KNOB).fix
        };
        assert!(fix("7.0.1").starts_with("boot with rt_group_sched=0"), "{}", fix("7.0.1"));
        assert!(fix("6.12.9").starts_with("run it in the root group"), "{}", fix("6.12.9"));
        let uppermost = group.replace("0::/system.slice", "0::/");
        check(&KNOB, &uppermost, "fail high enabled");
    }
}
