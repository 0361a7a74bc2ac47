//! Causes for which a real-time policy is refused to a process, and their remedies.
//!
//! The error number identifies none of them: EPERM stands for four.

use crate::policy_rights::{BudgetGroup, BudgetSettings, PolicyRights};
use model::error::run_with;
use model::fact::Fact;

/// Requested policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedPolicy {
    /// SCHED_FIFO or SCHED_RR, with its priority.
    Priority(u32),
    /// SCHED_DEADLINE, which no limit gives.
    Deadline,
}

/// Cause of a refused real-time policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusalCause {
    /// Neither CAP_SYS_NICE nor a sufficient limit.
    Limit { soft: u64, may_raise: bool },
    /// CAP_SYS_NICE that is valid only in a user namespace, and no sufficient limit.
    Namespace { soft: u64 },
    /// SCHED_DEADLINE without CAP_SYS_NICE.
    NoCapability,
    /// A control group whose budget is 0.
    Budget(BudgetGroup),
    /// A filter of system calls.
    Filter,
    /// The admission test of SCHED_DEADLINE.
    Admission,
    /// A security module, such as SELinux.
    SecurityModule,
}

/// Known causes for which a process cannot take a real-time policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyRefusal {
    /// Causes, each of which refuses by itself.
    pub causes: Vec<RefusalCause>,
    /// True if there is a filter of unknown content.
    pub perhaps_filter: bool,
    /// Texts that could not be read.
    pub unread: Vec<&'static str>,
}

/// Finds the causes from the facts alone.
pub fn causes_of_refusal(
    rights: &PolicyRights,
    settings: &BudgetSettings,
    wanted: WantedPolicy,
) -> PolicyRefusal {
    let mut found = PolicyRefusal::default();
    match right(rights, wanted) {
        Ok(cause) => found.causes.extend(cause),
        Err(unread) => found.unread.push(unread),
    }
    match budget(rights, settings, wanted) {
        Ok(cause) => found.causes.extend(cause),
        Err(unread) => found.unread.push(unread),
    }
    match rights.filter.known() {
        Some(mode) => found.perhaps_filter = *mode > 0,
        None => found.unread.push("its seccomp filter (Seccomp in status)"),
    }
    found
}

/// Finds the causes of a refusal that happened, with this error number.
pub fn causes_of_errno(
    rights: &PolicyRights,
    settings: &BudgetSettings,
    wanted: WantedPolicy,
    errno: Option<i32>,
) -> PolicyRefusal {
    let found = causes_of_refusal(rights, settings, wanted);
    let only = |cause| PolicyRefusal { causes: vec![cause], ..PolicyRefusal::default() };
    match errno {
        Some(libc::EBUSY) if wanted == WantedPolicy::Deadline => only(RefusalCause::Admission),
        Some(libc::EACCES) if !found.perhaps_filter => only(RefusalCause::SecurityModule),
        // The kernel's checks return no other error for a policy that it knows.
        Some(errno) if errno != libc::EPERM && found.perhaps_filter => only(RefusalCause::Filter),
        Some(libc::EPERM) if found.causes.is_empty() && found.unread.is_empty() && found.perhaps_filter => {
            PolicyRefusal { causes: vec![RefusalCause::Filter], perhaps_filter: false, ..found }
        }
        _ => found,
    }
}

/// Checks the right to request it: a capability or a limit.
fn right(rights: &PolicyRights, wanted: WantedPolicy) -> Result<Option<RefusalCause>, &'static str> {
    const USERS: &str = "its user namespace (uid_map)";
    let has = rights.capabilities.known().ok_or("its capabilities (CapEff of status)")?.sys_nice();
    let initial = rights.initial_users.known().copied();
    if has && initial == Some(true) {
        return Ok(None);
    }
    let WantedPolicy::Priority(priority) = wanted else {
        return match (has, initial) {
            (true, None) => Err(USERS),
            _ => Ok(Some(RefusalCause::NoCapability)),
        };
    };
    let limit = rights.limit.known().ok_or("its limits")?;
    let Some(soft) = limit.soft.filter(|soft| *soft < u64::from(priority)) else { return Ok(None) };
    match (has, initial) {
        (true, None) => Err(USERS),
        (true, _) => Ok(Some(RefusalCause::Namespace { soft })),
        (false, _) => {
            let may_raise = limit.hard.is_none_or(|hard| hard >= u64::from(priority));
            Ok(Some(RefusalCause::Limit { soft, may_raise }))
        }
    }
}

/// Checks the budget of its control group, which SCHED_DEADLINE does not use.
fn budget(
    rights: &PolicyRights,
    settings: &BudgetSettings,
    wanted: WantedPolicy,
) -> Result<Option<RefusalCause>, &'static str> {
    let lifted = settings.rt_runtime_us.known().is_some_and(|us| *us < 0);
    if wanted == WantedPolicy::Deadline || lifted {
        return Ok(None);
    }
    let group = match (&rights.group, settings.has_budgets.known()) {
        (Fact::Absent, _) => return Ok(None),
        // A file for the budget exists only if groups have one.
        (Fact::Known(group @ BudgetGroup { runtime_us: Some(us), .. }), _) => {
            Some(group).filter(|_| *us == 0)
        }
        (_, Some(false)) => None,
        (Fact::Known(group), Some(true)) => Some(group),
        (Fact::Known(_), None) => return Err("the kernel's configuration (RT_GROUP_SCHED)"),
        _ => return Err("its control group"),
    };
    let Some(group) = group else { return Ok(None) };
    settings.rt_runtime_us.known().ok_or("/proc/sys/kernel/sched_rt_runtime_us")?;
    Ok(Some(RefusalCause::Budget(group.clone())))
}

impl RefusalCause {
    /// The cause, as a clause about "it", the process.
    pub fn reason(&self) -> String {
        match self {
            RefusalCause::Limit { soft, .. } => {
                format!("it has no CAP_SYS_NICE, and its limit on real-time priorities is {soft}")
            }
            RefusalCause::Namespace { soft } => format!(
                "its CAP_SYS_NICE is valid only in a user namespace, and its limit on real-time priorities \
                 is {soft}"
            ),
            RefusalCause::NoCapability => {
                "SCHED_DEADLINE needs CAP_SYS_NICE outside of any user namespace, regardless of the limit"
                    .to_owned()
            }
            RefusalCause::Budget(BudgetGroup { dir, runtime_us: Some(_) }) => {
                format!("the real-time budget of its control group is 0 ({dir}/cpu.rt_runtime_us)")
            }
            RefusalCause::Budget(BudgetGroup { dir, runtime_us: None }) => format!(
                "its control group has no real-time budget ({dir}): the kernel has RT_GROUP_SCHED, and \
                 cgroup v2 has no file to set one"
            ),
            RefusalCause::Filter => "a seccomp filter refuses it".to_owned(),
            RefusalCause::Admission => {
                "SCHED_DEADLINE does not have so much free bandwidth on its CPUs (sched_rt_runtime_us of \
                 each sched_rt_period_us)"
                    .to_owned()
            }
            RefusalCause::SecurityModule => "a security module (SELinux, Smack) refuses it".to_owned(),
        }
    }

    /// The remedy against it.
    pub fn remedy(&self) -> String {
        const LIFTED: &str = "write -1 to /proc/sys/kernel/sched_rt_runtime_us";
        match self {
            RefusalCause::Limit { may_raise: true, .. } => {
                format!("raise the limit (ulimit -r 99), or {}", run_with("CAP_SYS_NICE"))
            }
            RefusalCause::Limit { may_raise: false, .. } => format!(
                "{}, or raise the rtprio limit (limits.conf, LimitRTPRIO= of its unit, the container's \
                --ulimit rtprio=99)",
                run_with("CAP_SYS_NICE")
            ),
            RefusalCause::Namespace { .. } => "raise the rtprio limit outside of the namespace before the \
                                               container starts, or run it outside (not in a rootless \
                                               container)"
                .to_owned(),
            RefusalCause::NoCapability => run_with("CAP_SYS_NICE"),
            RefusalCause::Budget(BudgetGroup { dir, runtime_us: Some(_) }) => format!(
                "give a budget to the parent groups and then to this one (echo 950000 > \
                 {dir}/cpu.rt_runtime_us; docker's --cpu-rt-runtime), or {LIFTED}"
            ),
            RefusalCause::Budget(BudgetGroup { runtime_us: None, .. }) => {
                format!("{BY_PARAMETER}run it in the root group (/sys/fs/cgroup/cgroup.procs), or {LIFTED}")
            }
            RefusalCause::Filter => "run it without this filter (RestrictRealtime= and SystemCallFilter= of \
                                     its unit, the container's seccomp profile)"
                .to_owned(),
            RefusalCause::Admission => "request less runtime in each period, let it run on all CPUs of its \
                                        cpuset, or raise sched_rt_runtime_us"
                .to_owned(),
            RefusalCause::SecurityModule => {
                "see its log (ausearch -m avc, dmesg), and allow it setsched".to_owned()
            }
        }
    }
}

/// Beginning of the remedy that only some releases have.
pub const BY_PARAMETER: &str = "boot with rt_group_sched=0 (Linux 6.16 on), ";

impl PolicyRefusal {
    /// Causes and remedies in one clause, as after a refusal that happened.
    pub fn words(&self) -> String {
        let mut words: Vec<String> =
            self.causes.iter().map(|cause| format!("{}: {}", cause.reason(), cause.remedy())).collect();
        let unread = self.unread.join(", ");
        if self.causes.is_empty() {
            words.push(match (self.perhaps_filter, unread.is_empty()) {
                (false, true) => "for no visible reason: see the kernel's log and that of its security \
                                  module (dmesg)"
                    .to_owned(),
                (true, true) => format!("perhaps {}", filter_words()),
                (false, false) => format!("the cause is not known, because {unread} cannot be read"),
                (true, false) => format!("{}, or something that cannot be read: {unread}", filter_words()),
            });
        } else if self.perhaps_filter {
            words.push(format!("besides, perhaps {}", filter_words()));
        }
        words.join("; and ")
    }
}

fn filter_words() -> String {
    format!("a seccomp filter, whose rules are not visible: {}", RefusalCause::Filter.remedy())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{Capabilities, Limit};

    const NICE: u64 = 1 << 23;

    fn rights(capabilities: u64, soft: u64) -> PolicyRights {
        PolicyRights {
            limit: Fact::Known(Limit { soft: Some(soft), hard: Some(soft) }),
            capabilities: Fact::Known(Capabilities(capabilities)),
            filter: Fact::Known(0),
            initial_users: Fact::Known(true),
            group: Fact::Absent,
        }
    }

    fn settings(rt_runtime_us: i64, has_budgets: bool) -> BudgetSettings {
        BudgetSettings { rt_runtime_us: Fact::Known(rt_runtime_us), has_budgets: Fact::Known(has_budgets) }
    }

    fn group(runtime_us: Option<i64>) -> Fact<BudgetGroup> {
        Fact::Known(BudgetGroup { dir: "/sys/fs/cgroup/cpu/a".to_owned(), runtime_us })
    }

    /// In a group of version 1 with a budget of 0, as docker makes it.
    fn in_group(capabilities: u64, soft: u64) -> PolicyRights {
        PolicyRights { group: group(Some(0)), ..rights(capabilities, soft) }
    }

    /// The causes by name, with `filter?` for a possible one, `?` for what is not known.
    fn check(found: &PolicyRefusal, expected: &str) {
        let name = |cause: &RefusalCause| match cause {
            RefusalCause::Limit { soft, .. } => format!("limit {soft}"),
            RefusalCause::Namespace { .. } => "namespace".to_owned(),
            RefusalCause::Budget(_) => "budget".to_owned(),
            other => format!("{other:?}").to_lowercase(),
        };
        let mut words: Vec<String> = found.causes.iter().map(name).collect();
        words.extend(found.perhaps_filter.then(|| "filter?".to_owned()));
        words.extend((!found.unread.is_empty()).then(|| "?".to_owned()));
        assert_eq!(words.join(" "), expected, "{found:?}");
    }

    const FIFO: WantedPolicy = WantedPolicy::Priority(80);

    #[test]
    fn the_right_is_a_capability_or_a_limit() {
        let of = |rights: PolicyRights| causes_of_refusal(&rights, &settings(950_000, false), FIFO);
        check(&of(rights(NICE, 0)), "");
        check(&of(rights(0, 0)), "limit 0");
        check(&of(rights(0, 79)), "limit 79");
        check(&of(rights(0, 80)), "");
        check(&of(PolicyRights { initial_users: Fact::Known(false), ..rights(NICE, 0) }), "namespace");
        check(&of(PolicyRights { initial_users: Fact::Known(false), ..rights(NICE, 99) }), "");
        check(&of(PolicyRights { initial_users: Fact::NotCaptured, ..rights(NICE, 0) }), "?");
        // Without the capability the namespace does not matter.
        check(&of(PolicyRights { initial_users: Fact::NotCaptured, ..rights(0, 0) }), "limit 0");
        check(&of(PolicyRights { limit: Fact::Refused(13), ..rights(0, 0) }), "?");
        check(&of(PolicyRights { capabilities: Fact::Absent, ..rights(0, 0) }), "?");
    }

    #[test]
    fn a_budget_of_0_refuses_root_as_well() {
        let of = |rights: &PolicyRights, settings: BudgetSettings| causes_of_refusal(rights, &settings, FIFO);
        let on = || settings(950_000, true);
        let unknown = || BudgetSettings { has_budgets: Fact::Absent, ..on() };
        check(&of(&in_group(NICE, 0), on()), "budget");
        check(&of(&in_group(0, 0), on()), "limit 0 budget");
        check(&of(&in_group(NICE, 0), unknown()), "budget");
        check(&of(&PolicyRights { group: group(Some(950_000)), ..rights(NICE, 0) }, on()), "");
        check(&of(&in_group(NICE, 0), settings(-1, true)), "");
        check(&of(&in_group(NICE, 0), BudgetSettings { rt_runtime_us: Fact::Refused(13), ..on() }), "?");
        let second = PolicyRights { group: group(None), ..rights(NICE, 0) };
        check(&of(&second, on()), "budget");
        check(&of(&second, settings(950_000, false)), "");
        check(&of(&second, unknown()), "?");
        let unseen = PolicyRights { group: Fact::Malformed("not accessible".into()), ..rights(NICE, 0) };
        check(&of(&unseen, settings(950_000, false)), "");
        check(&of(&unseen, on()), "?");
    }

    #[test]
    fn an_error_number_decides_between_what_is_left() {
        let on = settings(950_000, true);
        let of = |rights: &PolicyRights, errno| causes_of_errno(rights, &on, FIFO, Some(errno));
        let filtered = PolicyRights { filter: Fact::Known(2), ..rights(NICE, 0) };
        check(&of(&rights(NICE, 0), libc::EPERM), "");
        check(&of(&filtered, libc::EPERM), "filter");
        check(&of(&filtered, libc::ENOSYS), "filter");
        check(&of(&rights(NICE, 0), libc::EACCES), "securitymodule");
        // A budget of 0 is enough; the filter may refuse as well.
        let both = PolicyRights { filter: Fact::Known(2), ..in_group(NICE, 0) };
        check(&of(&both, libc::EPERM), "budget filter?");
        check(&causes_of_refusal(&filtered, &on, FIFO), "filter?");
        let unread = PolicyRights { initial_users: Fact::NotCaptured, ..filtered };
        check(&of(&unread, libc::EPERM), "filter? ?");
    }

    #[test]
    fn deadline_takes_the_capability_and_a_share() {
        let on = settings(950_000, true);
        let of = |rights: &PolicyRights| causes_of_refusal(rights, &on, WantedPolicy::Deadline);
        check(&of(&rights(0, 99)), "nocapability");
        check(&of(&in_group(NICE, 0)), "");
        let busy = causes_of_errno(&rights(NICE, 0), &on, WantedPolicy::Deadline, Some(libc::EBUSY));
        check(&busy, "admission");
    }

    #[test]
    fn words_name_causes_with_their_remedies() {
        let on = settings(950_000, true);
        let words = |rights: &PolicyRights| causes_of_errno(rights, &on, FIFO, Some(libc::EPERM)).words();
        let budget = words(&in_group(NICE, 0));
        assert!(budget.contains("is 0 (/sys/fs/cgroup/cpu/a/cpu.rt_runtime_us)"), "{budget}");
        assert!(budget.contains("--cpu-rt-runtime") && !budget.contains("CAP_SYS_NICE"), "{budget}");
        let both = words(&PolicyRights { filter: Fact::Known(2), ..in_group(0, 0) });
        assert!(both.contains("; and the real-time budget") && both.contains("besides, perhaps"), "{both}");
        let nothing = words(&rights(NICE, 0));
        assert!(nothing.starts_with("for no visible reason"), "{nothing}");
        let unread = words(&PolicyRights { limit: Fact::Refused(13), ..rights(0, 0) });
        assert_eq!(unread, "the cause is not known, because its limits cannot be read");
        let raise = PolicyRights { limit: Fact::Known(Limit { soft: Some(0), hard: None }), ..rights(0, 0) };
        assert!(words(&raise).contains("ulimit -r 99"));
    }
}
