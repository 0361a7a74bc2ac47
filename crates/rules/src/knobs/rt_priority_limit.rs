//! The limit on real-time priorities: whether users other than root may use one.

use super::sources::SCHED7;
use super::unsettable;
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::competing_tuners;
use crate::intent::Profile;
use crate::judgement::{AuditVerdict, Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::login_limits::{CONTAINER, granted, join, judge_privileged, may_be_raised, of_container};
use crate::remedy::Remedy;
use crate::view::MachineView;
use facts::Fact;
use facts::limits_conf::Item;
use facts::policy_refusal::{RefusalCause, WantedPolicy, causes_of_refusal};
use facts::policy_rights::BudgetSettings;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "rt-priority-limit",
    title: "limit on real-time priorities",
    description: "RLIMIT_RTPRIO, the highest real-time priority that a program may set without CAP_SYS_NICE; \
                  0 (none) unless login or systemd raises it.",
    rationale: "without a real-time priority a program shares its CPU with all others, and up to 50 it waits \
                for interrupt threads",
    detection: "The limits and capabilities of onbeat's process, and whether /etc/security/limits.conf and \
                limits.d give more at login; users are not named. As root, it reports the limits of users, \
                not the needs of a program: one that runs as root needs no limit. Limits in service units \
                and of other sessions are not read. A capability in a user namespace, as in a rootless \
                container, does not count; the rules of a seccomp filter are not visible. The budget of the \
                control group is judged by rt-group-sched. SCHED_DEADLINE needs the capability regardless of \
                the limit, and bandwidth that is free on its CPUs (EBUSY).",
    side_effects: "A user with real-time priorities can block a CPU forever: grant them to a group, not to \
                   all users.",
    wanted: "above 50, or a program with CAP_SYS_NICE",
    fix: || {
        Remedy::advice(
            AdviceReason::Program,
            "a line such as '@realtime - rtprio 99' in /etc/security/limits.d/realtime.conf, with \
             the users in that group, and a new login; for a service, LimitRTPRIO=99 in its unit",
        )
    },
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Boot,
    unsettable: unsettable::LOGIN,
    sources: &[
        Source { title: "sched(7), privileges and resource limits", url: SCHED7 },
        Source {
            title: "user_namespaces(7), capabilities",
            url: "https://man7.org/linux/man-pages/man7/user_namespaces.7.html",
        },
        Source {
            title: "limits.conf(5), rtprio",
            url: "https://man7.org/linux/man-pages/man5/limits.conf.5.html",
        },
        Source {
            title: "RealtimeKit: real-time policy for users' threads, on request",
            url: "https://github.com/heftig/rtkit",
        },
    ],
    cures: &[SliceKind::Thread, SliceKind::PriorityInversion],
    reads: &CONTAINER,
    facts: &[
        "/proc/self/limits",
        "/proc/self/status",
        "/proc/self/uid_map",
        "/etc/security/limits.conf",
        "/proc/PID/stat",
    ],
    programs: PROGRAMS,
    judge,
    examples: Examples {
        fires: "/proc/self/status:
                | CapEff: 0000000000000000
                /proc/self/limits:
                | Max locked memory 8388608 8388608 bytes
                | Max realtime priority 0 0",
        silent: "/proc/self/status:
                 | CapEff: 0000000000000000
                 /proc/self/limits:
                 | Max locked memory unlimited unlimited bytes
                 | Max realtime priority 99 99",
        unknown: "/proc/self/limits refused",
    },
    ..Knob::DEFAULT
};

const PROGRAMS: &[&str] = &["rtkit-daemon"];

/// Default priority of interrupt threads.
const INTERRUPTS: u64 = 50;

fn judge(machine: &MachineView) -> Judged {
    let judged = judge_right(machine)?;
    let filtered = machine.survey.rights.filter.known().is_some_and(|mode| *mode > 0);
    if judged.verdict != AuditVerdict::Pass || !filtered {
        return Ok(judged);
    }
    let words = "a seccomp filter is active, and its rules are not visible: try `onbeat measure -p 1 -D 1s`";
    Err(Judgement::unknown(format!("{}; {words}", judged.value)))
}

fn judge_right(machine: &MachineView) -> Judged {
    let capabilities = machine.known(&machine.facts().capabilities, "/proc/self/status")?;
    let limit = machine.known(&machine.facts().limits, "/proc/self/limits")?.rt_priority;
    let settings = BudgetSettings::of(machine.facts());
    let refusal = causes_of_refusal(&machine.survey.rights, &settings, WantedPolicy::Priority(1));
    let other = refusal.causes.iter().find(|cause| matches!(cause, RefusalCause::Namespace { .. }));
    if let Some(cause) = other {
        return Ok(Judgement::fail(cause.reason()).fix(Remedy::advice(AdviceReason::Program, cause.remedy())));
    }
    // Captures from before it was read have no uid_map: there the capability counts.
    if capabilities.sys_nice() && machine.survey.rights.initial_users != Fact::Known(false) {
        let users = granted(machine, Item::RtPriority, |priority| priority > 0);
        let nobody = if helper_runs(machine) {
            Judgement::fail("no user has a higher limit; rtkit-daemon grants priorities")
                .severity(Severity::Low)
        } else {
            Judgement::fail("no user has a higher limit")
        };
        return judge_privileged(machine, "CAP_SYS_NICE", users, nobody);
    }
    let raised = may_be_raised(limit.soft, limit.hard, |priority| priority.to_string());
    match limit.soft {
        None => Ok(Judgement::pass("unlimited")),
        Some(priority) if priority > INTERRUPTS => Ok(Judgement::pass(priority.to_string())),
        Some(0) if machine.has_profile(Profile::Audio) && helper_runs(machine) => {
            Ok(advised(machine, "0; rtkit-daemon grants priorities".to_owned()).severity(Severity::Low))
        }
        Some(0) => Ok(advised(machine, format!("0{raised}"))),
        Some(priority) => Ok(advised(machine, format!("{priority}{raised}")).severity(Severity::Low)),
    }
}

fn helper_runs(machine: &MachineView) -> bool {
    !competing_tuners::running_programs(machine.survey, PROGRAMS).found.is_empty()
}

/// Names the groups that limits.conf grants it to, if there are any.
fn advised(machine: &MachineView, value: String) -> Judgement {
    let failed = Judgement::fail(value);
    if let Some(remedy) = of_container(machine, "--ulimit rtprio=99 --cap-add=SYS_NICE") {
        return failed.fix(remedy);
    }
    match granted(machine, Item::RtPriority, |priority| priority > INTERRUPTS) {
        Ok(Some(users)) => failed.fix(join(&users, "LimitRTPRIO=99")),
        _ => failed,
    }
}

#[cfg(test)]
mod tests {
    use super::{CONTAINER, KNOB};
    use crate::fixture::{Machine, check};

    const ROOT: &str = "/proc/self/status:\n| CapEff: 000001ffffffffff";
    const NOBODY: &str = "/etc/security absent";

    fn limit(soft: &str, hard: &str) -> String {
        format!(
            "/proc/self/limits:\n| Max locked memory 0 0 bytes\n| Max realtime priority {soft} \
             {hard}"
        )
    }

    #[test]
    fn a_user_needs_a_limit() {
        check(&KNOB, "", "pass 99");
        check(&KNOB, &limit("unlimited", "unlimited"), "pass unlimited");
        check(&KNOB, &limit("0", "0"), "fail high 0");
        check(&KNOB, &limit("0", "95"), "fail high 0, may be raised to 95");
        check(&KNOB, &limit("50", "50"), "fail low 50");
        check(&KNOB, &limit("51", "51"), "pass 51");
        let audio = format!("{}\n--profile audio", limit("0", "0"));
        check(&KNOB, &audio, "fail high 0");
        check(
            &KNOB,
            &format!("{audio}\nprogram + rtkit-daemon"),
            "fail low 0; rtkit-daemon grants priorities",
        );
        check(&KNOB, "/proc/self/status refused", "unknown");
        check(&KNOB, "/proc/self/limits: none", "unknown");
        for mark in CONTAINER {
            let mut machine = Machine::base();
            machine.edit(&format!("{mark}:\n{}", limit("0", "0")));
            let fix = machine.finding(&KNOB).fix;
            assert!(fix.starts_with("start the container with --ulimit rtprio=99 "), "{fix}");
        }
    }

    #[test]
    fn root_needs_none() {
        check(&KNOB, &format!("{ROOT}\n{}", limit("0", "0")), "pass CAP_SYS_NICE; users: @realtime");
        check(&KNOB, &format!("{ROOT}\n{NOBODY}"), "pass CAP_SYS_NICE; no user has a higher limit");
        check(&KNOB, &format!("{ROOT}\n/etc/security/limits.conf refused"), "pass CAP_SYS_NICE");
        let audio = format!("{ROOT}\n--profile audio");
        check(&KNOB, &audio, "pass CAP_SYS_NICE; users: @realtime");
        check(&KNOB, &format!("{audio}\n{NOBODY}"), "fail high no user has a higher limit");
        check(&KNOB, &format!("{audio}\n{NOBODY}\nprogram + rtkit-daemon"), "fail low");
        check(&KNOB, &format!("{audio}\n/etc/security/limits.conf refused"), "unknown");
        let soft = "/etc/security/limits.conf: @audio soft rtprio 95\n| root - rtprio 99\n| alice \
                    - rtprio 0";
        check(&KNOB, &format!("{audio}\n{soft}"), "fail high no user has a higher limit");
    }

    /// Root of a rootless container has all capabilities, but none of them counts.
    #[test]
    fn a_capability_of_a_user_namespace_is_none() {
        let rootless = format!("{ROOT}\n/proc/self/uid_map: 0 1000 1\n{}", limit("0", "0"));
        check(&KNOB, &rootless, "fail high");
        let given = format!("{ROOT}\n/proc/self/uid_map: 0 1000 1\n{}", limit("95", "95"));
        check(&KNOB, &given, "pass 95");
        check(
            &KNOB,
            &format!("{ROOT}\n/proc/self/uid_map: 0 0 4294967295"),
            "pass CAP_SYS_NICE; users: @realtime",
        );
    }

    #[test]
    fn what_a_filter_lets_through_is_not_known() {
        check(&KNOB, &format!("{ROOT}\n| Seccomp: 2"), "unknown");
        check(&KNOB, &format!("{ROOT}\n| Seccomp: 0"), "pass CAP_SYS_NICE; users: @realtime");
        let user = format!("/proc/self/status:\n| CapEff: 0\n| Seccomp: 2\n{}", limit("0", "0"));
        check(&KNOB, &user, "fail high 0");
    }

    #[test]
    fn users_are_not_named() {
        let mut machine = Machine::base();
        machine.edit(&limit("0", "0"));
        machine.edit(
            "/etc/security/limits.conf: alice - rtprio 99\n| * hard rtprio 98\n| @a - rtprio 97\n\
             | @b - rtprio 96",
        );
        let fix = machine.finding(&KNOB).fix;
        assert!(fix.starts_with("limits.conf gives it to a user, *, @a, @b: join"), "{fix}");
    }
}
