//! Programs that may not use a real-time policy.

use super::rule::{CheckJudge, CheckRule};
use super::sources::{CGROUP_V2, GETRLIMIT2, RT_GROUP, SCHED7, USER_NAMESPACES7};
use super::view::ProgramView;
use crate::change::AdviceReason;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use crate::remedy::Remedy;
use facts::policy_refusal::{RefusalCause, WantedPolicy, causes_of_refusal};

pub static CHECK: CheckRule = CheckRule {
    id: "realtime-limit",
    title: "no permission for a real-time policy",
    description: "Without CAP_SYS_NICE a process may set real-time priorities up to RLIMIT_RTPRIO, which is \
                  0 by default: pthread_create or sched_setscheduler fails. A capability in a user namespace \
                  does not count. Even with the permission, a control group with a real-time budget of 0 \
                  (RT_GROUP_SCHED) or a seccomp filter may refuse the call.",
    rationale: "a program that ignores the result of the call runs its loop without a real-time policy, \
                behind all real-time threads",
    detection: "By `Max realtime priority` in /proc/PID/limits, CapEff and Seccomp in /proc/PID/status, \
                uid_map, and the budget of its control group, if no thread of the process has a real-time \
                policy. A process that dropped the permission after using it passes. Which calls a filter \
                allows is not visible, and neither is the admission test of SCHED_DEADLINE.",
    wanted: "a limit of at least the program's highest priority, or CAP_SYS_NICE; a real-time budget for its \
             control group",
    fix: "raise the limit (LimitRTPRIO= of systemd units, rtprio in limits.conf), and exit if the priority \
          cannot be set",
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    sources: &[
        Source { title: "sched(7), privileges and resource limits", url: SCHED7 },
        Source { title: "getrlimit(2), RLIMIT_RTPRIO", url: GETRLIMIT2 },
        Source { title: "user_namespaces(7), capabilities", url: USER_NAMESPACES7 },
        Source { title: "kernel: real-time group scheduling, the interface", url: RT_GROUP },
        Source { title: "kernel: control groups, CPU", url: CGROUP_V2 },
    ],
    reads: &[
        "/proc/PID/limits",
        "/proc/PID/status",
        "/proc/PID/uid_map",
        "/proc/PID/cgroup",
        "/proc/PID/task/TID/stat",
        "/sys/fs/cgroup/GROUP/cpu.rt_runtime_us",
        "/sys/fs/cgroup/GROUP/cpu.weight",
        "/proc/sys/kernel/sched_rt_runtime_us",
    ],
    judge: CheckJudge::Process(judge),
    examples: Examples {
        fires: "thread 101 policy=other\nprocess capabilities=0 rtprio=0",
        silent: "thread 101 policy=other\nprocess capabilities=0 rtprio=90",
        unknown: "thread 101 policy=other\nlimits refused\nprocess capabilities=0",
    },
};

fn judge(program: &ProgramView) -> Judged {
    if program.process.real_time().next().is_some() {
        return Ok(Judgement::pass("it has real-time threads"));
    }
    let rights = &program.process.rights;
    // The priority that it wants is not visible: assume the lowest.
    let refusal = causes_of_refusal(rights, &program.machine.budgets, WantedPolicy::Priority(1));
    if !refusal.causes.is_empty() {
        let all = |of: fn(&RefusalCause) -> String| {
            refusal.causes.iter().map(of).collect::<Vec<_>>().join("; and ")
        };
        let value = format!("{}; none of its threads has a real-time policy", all(RefusalCause::reason));
        let remedy = format!("{}, and exit if the call is refused", all(RefusalCause::remedy));
        return Ok(Judgement::fail(value).fix(Remedy::advice(AdviceReason::Program, remedy)));
    }
    if !refusal.unread.is_empty() || refusal.perhaps_filter {
        let words = refusal.words();
        return Err(Judgement::unknown(format!("none of its threads has a real-time policy: {words}")));
    }
    Ok(match (rights.capabilities.known().is_some_and(|set| set.sys_nice()), rights.limit.known()) {
        (true, _) => Judgement::pass("it has CAP_SYS_NICE, but no real-time thread"),
        (false, Some(limit)) if limit.soft.is_some() => {
            Judgement::pass(format!("up to priority {}", limit.soft.unwrap_or_default()))
        }
        (false, _) => Judgement::pass("there is no limit"),
    })
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::audit::Finding;
    use crate::checks::fixture::ExampleProgram;
    use crate::judgement::AuditVerdict::{Fail, Pass, Unknown};

    const ROOT: &str = "thread 101 policy=other\nprocess capabilities=800000";

    fn finding(edits: &str) -> Finding {
        ExampleProgram::of(&format!("{ROOT}\n{edits}")).findings(&CHECK).remove(0).finding
    }

    #[test]
    fn a_capability_is_not_all() {
        assert_eq!(finding("").verdict, Pass);
        let budget = finding("group budget=0");
        assert_eq!(budget.verdict, Fail);
        assert!(budget.value.contains("/cpu.rt_runtime_us)") && !budget.fix.contains("CAP_SYS_NICE"));
        assert!(budget.fix.contains("docker's --cpu-rt-runtime"), "{}", budget.fix);
        assert_eq!(finding("group budget=950000").verdict, Pass);
        assert_eq!(finding("group budget=0\nmachine runtime=-1").verdict, Pass);
        assert_eq!(finding("process users=other rtprio=0").verdict, Fail);
        assert_eq!(finding("process users=other rtprio=80").verdict, Pass);
        let both = finding("process users=other rtprio=0\ngroup budget=0");
        assert!(both.value.contains("user namespace") && both.value.contains("; and the real-time budget"));
    }

    #[test]
    fn what_a_filter_lets_through_is_not_known() {
        let filter = finding("process seccomp=2");
        assert_eq!(filter.verdict, Unknown);
        assert!(filter.reason.contains("RestrictRealtime="), "{}", filter.reason);
    }
}
