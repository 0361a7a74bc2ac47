//! Monitor of starvation: stalld, which boosts threads that real-time threads starve.

use super::fair_server::{RUNTIME, unthrottled};
use super::unsettable;
use crate::change::Change;
use crate::change::Persistence;
use crate::competing_tuners;
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_from;
use crate::view::MachineView;
use facts::Fact;
use model::slice::SliceKind;
use model::units::CpuSet;

pub static KNOB: Knob = Knob {
    id: "starvation-monitor",
    title: "starvation monitor",
    description: "stalld checks the run queues of all CPUs every few seconds, and lets a thread that has \
                  waited too long run ahead of real-time threads with the deadline policy: 20 us in each \
                  second by default.",
    rationale: "the helped thread runs ahead of the real-time one for this time, and the checks cost time on \
                other CPUs",
    detection: "Whether stalld runs, and from 6.12 on the runtimes of the kernel's fair servers, \
                which do the same. Its options are not read: it may only log.",
    side_effects: "Without it, and without fair servers, kernel threads of a CPU can starve forever because \
                   of a real-time task that never sleeps, and so can the tasks that wait for them.",
    wanted: "not running, unless real-time tasks never sleep and nothing else helps starving threads",
    fix: || disabled().into(),
    severity: Severity::Info,
    evidence: EvidenceKind::Documented,
    disputed: "tasks that never sleep need one of them, and the interruptions by stalld are shorter than \
               those of a fair server: `onbeat compare` of two long runs, one with each, shows their costs",
    persistence: Persistence::Boot,
    unsettable: unsettable::PROGRAM,
    sources: &[Source {
        title: "stalld: what it does, and its options",
        url: "https://gitlab.com/rt-linux-tools/stalld",
    }],
    cures: &[SliceKind::Thread],
    facts: &["/proc/PID/stat", DIR],
    programs: PROGRAMS,
    judge,
    examples: Examples { fires: "program + stalld", silent: "", unknown: "/proc refused" },
    ..Knob::DEFAULT
};

const PROGRAMS: &[&str] = &["stalld"];
const DIR: &str = "/sys/kernel/debug/sched/fair_server";

fn disabled() -> Change {
    Change::Disable { unit: "stalld".to_owned(), program: "stalld".to_owned() }
}

fn judge(machine: &MachineView) -> Judged {
    let running = competing_tuners::running_programs(machine.survey, PROGRAMS);
    if running.found.is_empty() {
        running.and_no_more()?;
        return Ok(Judgement::pass("stalld does not run"));
    }
    let alone = Judgement::fail("stalld runs");
    if !machine.has_profile(Profile::BusyPoll) {
        return Ok(alone);
    }
    match &machine.facts().fair_servers {
        Fact::Known(servers) => {
            let ours = servers.iter().filter(|server| machine.cpus().contains(server.cpu));
            let on: CpuSet = ours.filter(|server| server.runtime_ns > 0).map(|server| server.cpu).collect();
            if on.is_empty() {
                return Ok(Judgement::pass("stalld runs, fair servers do not"));
            }
            Ok(Judgement::fail("stalld and fair servers run").fix(
                Remedy::from(disabled()).or(unthrottled(machine).and(Change::each_cpu(RUNTIME, &on, 0))),
            ))
        }
        Fact::Absent if machine.series()? < (6, 12) => {
            Ok(Judgement::pass("stalld runs, there are no fair servers"))
        }
        other => Err(unknown_from(DIR, other)),
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const POLLS: &str = "program + stalld\n--profile busy-poll";

    #[test]
    fn tasks_that_never_sleep_may_need_it() {
        check(&KNOB, "", "pass stalld does not run");
        check(&KNOB, "program + stalld", "fail info stalld runs");
        check(&KNOB, POLLS, "pass stalld runs, fair servers do not");
        let both = format!("{POLLS}\n/sys/kernel/debug/sched/fair_server/cpu2/runtime: 50000000");
        check(&KNOB, &both, "fail info stalld and fair servers run");
        check(&KNOB, &format!("{POLLS}\n/sys/kernel/debug/sched/fair_server refused"), "unknown");
        check(
            &KNOB,
            &format!(
                "{POLLS}\n/sys/kernel/debug/sched/fair_server absent\n/proc/sys/kernel/osrelease: \
                 6.1.0-50-rt"
            ),
            "pass stalld runs, there are no fair servers",
        );
        check(&KNOB, &format!("{POLLS}\n/sys/kernel/debug/sched/fair_server absent"), "unknown");
        check(&KNOB, "/proc absent", "unknown");
    }
}
