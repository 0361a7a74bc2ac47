//! The limit on locked memory: whether users other than root may lock enough.

use super::unsettable;
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::login_limits::{CONTAINER, granted, join, judge_privileged, may_be_raised, of_container};
use crate::remedy::Remedy;
use crate::view::MachineView;
use facts::Fact;
use facts::limits_conf::Item;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "locked-memory-limit",
    title: "limit on locked memory",
    description: "RLIMIT_MEMLOCK, the amount of memory that a program may lock with mlock or mlockall \
                  without CAP_IPC_LOCK: 8 MiB by default from 5.16 on, 64 KiB before.",
    rationale: "mlockall locks all memory of a program, including the stacks of its threads, and fails above \
                the limit: then the program takes page faults when its memory is reclaimed or used for the \
                first time",
    detection: "The limits and capabilities of onbeat's process, and whether /etc/security/limits.conf and \
                limits.d give more at login; users are not named. The needs of a program are not known: 1 \
                GiB counts as enough. Limits in service units and of other sessions are not read.",
    side_effects: "Locked memory is not available to other programs: a user who may lock all of it can make \
                   the machine unusable.",
    wanted: "unlimited, or 1 GiB and more, or a program with CAP_IPC_LOCK",
    fix: || {
        Remedy::advice(
            AdviceReason::Program,
            "a line such as '@realtime - memlock unlimited' in \
             /etc/security/limits.d/realtime.conf, with the users in that group, and a new login; \
             for a service, LimitMEMLOCK=infinity in its unit",
        )
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Boot,
    unsettable: unsettable::LOGIN,
    sources: &[
        Source {
            title: "mlock(2), limits and permissions",
            url: "https://man7.org/linux/man-pages/man2/mlock.2.html",
        },
        Source {
            title: "limits.conf(5), memlock",
            url: "https://man7.org/linux/man-pages/man5/limits.conf.5.html",
        },
        Source {
            title: "Linux: increase default MLOCK_LIMIT to 8 MiB",
            url: "https://github.com/torvalds/linux/commit/9dcc38e2813e0cd3b195940c98b181ce6ede8f20",
        },
    ],
    cures: &[SliceKind::PageFault],
    reads: &CONTAINER,
    facts: &["/proc/self/limits", "/proc/self/status", "/proc/self/uid_map", "/etc/security/limits.conf"],
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

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Limit in bytes, more than most real-time programs use.
const ENOUGH: u64 = 1 << 30;

fn judge(machine: &MachineView) -> Judged {
    let capabilities = machine.known(&machine.facts().capabilities, "/proc/self/status")?;
    let limit = machine.known(&machine.facts().limits, "/proc/self/limits")?.locked_memory;
    let users = || granted(machine, Item::LockedMemory, |kib| kib >= ENOUGH / KIB);
    // As in mm/mlock.c, `capable()`: that of a user namespace does not count. Captures from before
    // uid_map was read lack it: there the capability counts.
    if capabilities.ipc_lock() && machine.survey.rights.initial_users != Fact::Known(false) {
        return judge_privileged(
            machine,
            "CAP_IPC_LOCK",
            users(),
            Judgement::fail("no user has a higher limit"),
        );
    }
    let Some(bytes) = limit.soft else { return Ok(Judgement::pass("unlimited")) };
    if bytes >= ENOUGH {
        return Ok(Judgement::pass(size(bytes)));
    }
    let failed = Judgement::fail(size(bytes) + &may_be_raised(limit.soft, limit.hard, size));
    Ok(match (of_container(machine, "--ulimit memlock=-1"), users()) {
        (Some(remedy), _) => failed.fix(remedy),
        (_, Ok(Some(users))) => failed.fix(join(&users, "LimitMEMLOCK=infinity")),
        _ => failed,
    })
}

fn size(bytes: u64) -> String {
    if bytes < MIB { format!("{} KiB", bytes / KIB) } else { format!("{} MiB", bytes / MIB) }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    const ROOT: &str = "/proc/self/status:\n| CapEff: 0000000000004000";

    fn limit(soft: &str, hard: &str) -> String {
        format!(
            "/proc/self/limits:\n| Max locked memory {soft} {hard} bytes\n| Max realtime priority \
             0 0"
        )
    }

    #[test]
    fn a_user_needs_a_limit() {
        check(&KNOB, "", "pass unlimited");
        check(&KNOB, &limit("65536", "65536"), "fail medium 64 KiB");
        check(&KNOB, &limit("8388608", "unlimited"), "fail medium 8 MiB, may be raised");
        check(&KNOB, &limit("8388608", "16777216"), "fail medium 8 MiB, may be raised to 16 MiB");
        check(&KNOB, &limit("1073741824", "1073741824"), "pass 1024 MiB");
        check(&KNOB, &limit("some", "more"), "unknown");
        let mut machine = Machine::base();
        machine.edit(&format!("/.dockerenv:\n{}", limit("8388608", "8388608")));
        let fix = machine.finding(&KNOB).fix;
        assert!(fix.starts_with("start the container with --ulimit memlock=-1 "), "{fix}");
        check(&KNOB, "/proc/self/status refused", "unknown");
    }

    #[test]
    fn a_capability_of_a_user_namespace_is_none() {
        let rootless = format!("{ROOT}\n/proc/self/uid_map: 0 100000 65536\n");
        check(&KNOB, &(rootless + &limit("65536", "65536")), "fail medium 64 KiB");
        let first = format!("{ROOT}\n/proc/self/uid_map: 0 0 4294967295\n");
        check(&KNOB, &(first + &limit("65536", "65536")), "pass CAP_IPC_LOCK; users: @realtime");
    }

    #[test]
    fn root_needs_none() {
        check(&KNOB, &format!("{ROOT}\n{}", limit("0", "0")), "pass CAP_IPC_LOCK; users: @realtime");
        let small = "/etc/security/limits.conf: @audio - memlock 512000";
        check(&KNOB, &format!("{ROOT}\n{small}"), "pass CAP_IPC_LOCK; no user has a higher limit");
        check(&KNOB, &format!("{ROOT}\n{small}\n--profile audio"), "fail medium no user has a higher limit");
        check(&KNOB, &format!("{ROOT}\n--profile audio\n/etc/security/limits.conf refused"), "unknown");
        check(&KNOB, &format!("{ROOT}\n/etc/security/limits.conf refused"), "pass CAP_IPC_LOCK");
    }
}
