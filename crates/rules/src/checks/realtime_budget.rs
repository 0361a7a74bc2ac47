//! Work that approaches the kernel's limit on real-time threads.

use super::rule::{CheckJudge, CheckRule};
use super::sources::{RT_GROUP, SCHED7};
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use crate::knobs::rt_throttling::is_replaced;
use crate::unknown::unknown_from;
use facts::Fact;
use facts::process::ProgramThread;
use facts::uname::series;

pub static CHECK: CheckRule = CheckRule {
    id: "realtime-budget",
    title: "work close to the limit for real-time threads",
    description: "The kernel limits all real-time threads of a CPU together to a share of each period, by \
                  default 0.95 s of each second, and stops them for the rest. From 6.12 on, kernels without \
                  RT_GROUP_SCHED do so only if ordinary threads starve: the fair server then takes 50 ms of \
                  each second.",
    rationale: "a loop that needs slightly more time than usual is stopped until the period ends: 50 ms by \
                default",
    detection: "By the time for which the thread ran in the window, compared with \
                /proc/sys/kernel/sched_rt_runtime_us and sched_rt_period_us where they apply, and with the \
                fair servers of its CPUs; other threads on the CPU add to it.",
    wanted: "well below the limit",
    fix: "do less in a cycle, or spread the work over several CPUs; with throttling and fair server both \
          off, nothing recovers a machine whose loop never ends",
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    sources: &[
        Source { title: "kernel: real-time group scheduling", url: RT_GROUP },
        Source { title: "sched(7), limiting the CPU usage of real-time processes", url: SCHED7 },
    ],
    reads: &[RUNTIME, PERIOD, SERVERS, "/proc/PID/task/TID/schedstat"],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "thread 101 run=0.88",
        silent: "thread 101 run=0.88\nmachine runtime=-1",
        unknown: "thread 101 run=unknown",
    },
};

const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const PERIOD: &str = "/proc/sys/kernel/sched_rt_period_us";
const SERVERS: &str = "/sys/kernel/debug/sched/fair_server";

/// Part of the limit from which on a longer cycle may reach it.
const NEAR: f64 = 0.9;

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    let share = program.share(thread)?;
    let ran = format!("it ran {:.0} % of {}", share * 100.0, thread.window.spoken());
    let (throttle, server) = (throttle(program)?, server(program, thread)?);
    let limits = [(throttle, "the limit of real-time threads"), (server, "what the fair server leaves")];
    let known = limits.into_iter().filter_map(|(limit, whose)| limit.map(|limit| (limit, whose)));
    Ok(match known.min_by(|one, other| one.0.total_cmp(&other.0)) {
        None => Judgement::pass("there is no limit"),
        Some((limit, whose)) => {
            let value = format!("{ran}, {whose} is {:.0} %", limit * 100.0);
            Judgement::fail_if(share >= NEAR * limit, value)
        }
    })
}

/// Share of time after which the kernel stops all real-time threads of a CPU; none if it does not.
fn throttle(program: &ProgramView) -> Result<Option<f64>, Judgement> {
    let machine = program.machine;
    let runtime =
        machine.rt_runtime_us.known().ok_or_else(|| unknown_from(RUNTIME, &machine.rt_runtime_us))?;
    let period = machine.rt_period_us.known().ok_or_else(|| unknown_from(PERIOD, &machine.rt_period_us))?;
    if *runtime < 0 || runtime >= period {
        return Ok(None);
    }
    let groups = || {
        let known = machine.group_scheduling.known().copied();
        known.ok_or_else(|| unknown_from("the kernel's configuration", &machine.group_scheduling))
    };
    let replaced = is_replaced(&machine.fair_servers, || series_of(program), groups)?;
    Ok((!replaced).then(|| *runtime as f64 / (*period).max(1) as f64))
}

/// Share of time that the fair servers of a thread's CPUs leave to it while ordinary threads
/// starve; none if they are off, or if the kernel has none.
fn server(program: &ProgramView, thread: &ProgramThread) -> Result<Option<f64>, Judgement> {
    let servers = match &program.machine.fair_servers {
        Fact::Known(servers) => servers,
        _ if series_of(program)? < (6, 12) => return Ok(None),
        Fact::Absent => {
            let mount = "mount -t debugfs none /sys/kernel/debug";
            return Err(Judgement::unknown(format!("{SERVERS} is not there: {mount}")));
        }
        other => return Err(unknown_from(SERVERS, other)),
    };
    let allowed = program.allowed(thread)?;
    let own = servers.iter().filter(|server| allowed.contains(server.cpu) && server.runtime_ns > 0);
    let left = own.map(|server| 1.0 - server.runtime_ns as f64 / server.period_ns.max(1) as f64);
    Ok(left.min_by(f64::total_cmp))
}

fn series_of(program: &ProgramView) -> Result<(u32, u32), Judgement> {
    let release = &program.machine.release;
    let text = release.known().ok_or_else(|| unknown_from("/proc/sys/kernel/osrelease", release))?;
    series(text)
        .ok_or_else(|| Judgement::unknown(format!("the kernel release {text} does not name a series")))
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::checks::fixture::ExampleProgram;
    use crate::judgement::AuditVerdict::{self, Fail, Pass, Unknown};

    fn verdict(edits: &str) -> AuditVerdict {
        ExampleProgram::of(&format!("thread 101 run=0.88\n{edits}")).findings(&CHECK)[0].finding.verdict
    }

    /// With a fair server the sysctl only limits admission, unless the kernel has RT_GROUP_SCHED.
    #[test]
    fn the_limit_is_that_of_the_kernel_in_use() {
        assert_eq!(verdict(""), Fail);
        assert_eq!(verdict("machine server=50"), Fail, "what the server takes is a limit, too");
        assert_eq!(verdict("machine server=0"), Pass);
        assert_eq!(verdict("machine server=0 groups=yes"), Fail);
        assert_eq!(verdict("machine server=10 runtime=-1"), Pass, "0.88 is well below 0.99");
        assert_eq!(verdict("machine server=50 runtime=-1"), Fail);
        // From 6.12 on the servers exist, but debugfs is closed.
        assert_eq!(verdict("machine release=6.12.9"), Unknown);
        let edits = "thread 101 run=0.88\nmachine release=6.12.9";
        let finding = ExampleProgram::of(edits).findings(&CHECK).remove(0).finding;
        assert!(finding.reason.ends_with("mount -t debugfs none /sys/kernel/debug"), "{}", finding.reason);
        assert_eq!(verdict("machine release=6.12.9 runtime=-1"), Unknown);
    }
}
