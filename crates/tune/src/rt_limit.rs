//! Limit of real-time tasks as settings of a machine, in the order that its kernel accepts.
//!
//! Up to 6.11 the scheduler throttles by `kernel.sched_rt_runtime_us`. Since 6.12 the fair server
//! of each CPU gives ordinary tasks the rest by the same numbers: its runtime is the remainder of
//! the period (`dl_server_apply_params()` in kernel/sched/deadline.c).

use facts::survey::Survey;
use facts::uname::series;
use model::fact::Fact;
use model::plan::PlannedChange;
use model::rt_limit::RtLimit;
use model::units::{Cpu, CpuSet, named_cpus};
use rules::controls;

const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const PERIOD: &str = "/proc/sys/kernel/sched_rt_period_us";
const SERVERS: &str = "/sys/kernel/debug/sched/fair_server";

/// Mechanism that stops a real-time task that never sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtStop {
    Throttling,
    FairServer,
}

impl RtStop {
    /// Name in messages.
    pub fn words(self) -> &'static str {
        match self {
            RtStop::Throttling => "throttling",
            RtStop::FairServer => "fair server",
        }
    }
}

/// Mechanism that stops real-time tasks on these CPUs, if it can be set.
///
/// # Errors
/// Reason for which the limit cannot be set here, with a remedy.
pub fn stopped_by(survey: &Survey, cpus: &CpuSet) -> Result<RtStop, String> {
    let facts = &survey.facts;
    let has_server = facts.release.known().and_then(|release| series(release)) >= Some((6, 12));
    match &facts.fair_servers {
        Fact::Known(servers) if !servers.is_empty() => {
            let seen: CpuSet = servers.iter().map(|server| server.cpu).collect();
            match cpus.without(&seen) {
                unseen if unseen.is_empty() => Ok(RtStop::FairServer),
                unseen => {
                    Err(format!("the fair server of {} in {SERVERS} cannot be read", named_cpus(unseen)))
                }
            }
        }
        _ if has_server => Err(format!(
            "from 6.12 on the fair server stops real-time tasks, and {SERVERS} cannot be read: run as root, \
             with debugfs mounted"
        )),
        _ if facts.rt_runtime_us.known().is_none() => {
            Err(format!("{RUNTIME} cannot be read: run as root, with /proc mounted"))
        }
        _ => Ok(RtStop::Throttling),
    }
}

/// Changes that set this limit of real-time tasks on these CPUs.
///
/// # Errors
/// Reason for which it cannot be set here, with a remedy.
pub fn changes(survey: &Survey, cpus: &CpuSet, limit: RtLimit) -> Result<Vec<PlannedChange>, String> {
    let facts = &survey.facts;
    let (runtime, period) = (facts.rt_runtime_us.known().copied(), facts.rt_period_us.known().copied());
    let (Some(runtime), Some(period)) = (runtime, period) else {
        return Err(format!("{RUNTIME} and {PERIOD} cannot be read: run as root, with /proc mounted"));
    };
    let mut writes = Vec::new();
    match stopped_by(survey, cpus)? {
        RtStop::Throttling => {
            let now = LimitValues { runtime, period };
            let wanted = LimitValues { runtime: limit.runtime_us(), period: limit.period_us() };
            writes.extend(in_order(RUNTIME.to_owned(), PERIOD.to_owned(), now, wanted));
        }
        RtStop::FairServer => {
            refuse_isolated(survey, cpus)?;
            // A server's runtime can be set only without the global limit, which throttles nothing
            // here.
            writes.push((RUNTIME.to_owned(), runtime, -1));
            let servers = facts.fair_servers.known().map_or(&[][..], Vec::as_slice);
            let wanted = LimitValues { runtime: limit.stop().0, period: limit.period().0 };
            for server in servers.iter().filter(|server| cpus.contains(server.cpu)) {
                let number = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
                let now =
                    LimitValues { runtime: number(server.runtime_ns), period: number(server.period_ns) };
                let file = |name: &str, Cpu(cpu): Cpu| format!("{SERVERS}/cpu{cpu}/{name}");
                let (runtime, period) = (file("runtime", server.cpu), file("period", server.cpu));
                writes.extend(in_order(runtime, period, now, wanted));
            }
        }
    }
    let changed = writes.into_iter().filter(|(_, now, wanted)| now != wanted);
    changed.map(|(path, now, wanted)| change(survey, &path, now, wanted)).collect()
}

/// Refuses isolated CPUs: 6.12 logs a warning whenever the server of one is written to (`WARN_ON`
/// of `task_non_contending()`, kernel/sched/deadline.c); for other CPUs at times.
fn refuse_isolated(survey: &Survey, cpus: &CpuSet) -> Result<(), String> {
    let at_boot = survey.facts.isolated.known().cloned().unwrap_or_default();
    let set_apart = survey.groups.known().and_then(|groups| groups.isolated.known().cloned());
    for isolated in [Some(at_boot), set_apart].into_iter().flatten() {
        let both = isolated.and(cpus);
        if !both.is_empty() {
            return Err(format!(
                "CPU {both} is isolated, and a kernel with fair servers may warn when they are set there: \
                 choose other CPUs with -a"
            ));
        }
    }
    Ok(())
}

/// Values of a limit, in the unit of its files.
#[derive(Clone, Copy)]
struct LimitValues {
    runtime: i64,
    period: i64,
}

/// Orders a runtime and a period so that the runtime never exceeds the period, which is EINVAL,
/// also in the reverse order. A runtime of -1 is below any period.
fn in_order(
    runtime_file: String,
    period_file: String,
    now: LimitValues,
    wanted: LimitValues,
) -> [(String, i64, i64); 2] {
    let runtime = (runtime_file, now.runtime, wanted.runtime);
    let period = (period_file, now.period, wanted.period);
    if wanted.period >= now.runtime { [period, runtime] } else { [runtime, period] }
}

fn change(survey: &Survey, path: &str, now: i64, wanted: i64) -> Result<PlannedChange, String> {
    let control = controls::find(path).ok_or_else(|| format!("{path} has no record"))?;
    let setting = control.setting(path, &wanted.to_string(), survey);
    let setting = setting.ok_or_else(|| format!("{path} has no key"))?;
    Ok(PlannedChange::new(setting, "", &now.to_string()))
}

#[cfg(test)]
mod tests {
    use host::settings::fake::{DEBIAN_6_1_RT, DEBIAN_6_12_RT, FakeKernel, FakeMachine, MemoryStore};
    use host::settings::{Applied, Entry, Kernel, Opened, read_entry, restore};
    use model::plan::ChangeState;
    use model::setting::Key;
    use rules::fixture::Machine;

    use super::*;

    const LIMITS: [&str; 7] = [
        "900000/1000000",
        "950000/1000000",
        "1000000/1000000",
        "-1/1000000",
        "900000/1100000",
        "95000/100000",
        "500000/1000000",
    ];

    fn planned(edits: &str, cpus: &str, limit: &str) -> Result<Vec<String>, String> {
        let mut machine = Machine::base();
        machine.edit(edits);
        let cpus = CpuSet::parse(cpus).unwrap();
        let changes = changes(&machine.read(), &cpus, RtLimit::parse(limit).unwrap())?;
        Ok(changes.iter().map(|c| format!("{}={}", c.setting.key, c.setting.wanted)).collect())
    }

    const OLD: &str = "/proc/sys/kernel/osrelease: 6.1.0-50-rt-amd64
        /sys/kernel/debug/sched/fair_server absent
        /proc/sys/kernel/sched_rt_period_us: 1000000
        /proc/sys/kernel/sched_rt_runtime_us: 950000";
    const NEW: &str = "/sys/kernel/debug/sched/fair_server/cpu1/runtime: 50000000
        /sys/kernel/debug/sched/fair_server/cpu1/period: 1000000000
        /proc/sys/kernel/sched_rt_period_us: 1000000
        /proc/sys/kernel/sched_rt_runtime_us: 950000";

    #[test]
    fn before_6_12_it_is_the_sysctls_in_the_order_that_is_taken() {
        let runtime = |us: &str| format!("sysctl:kernel.sched_rt_runtime_us={us}");
        let period = |us: &str| format!("sysctl:kernel.sched_rt_period_us={us}");
        assert_eq!(planned(OLD, "1-2", "900000/1000000"), Ok(vec![runtime("900000")]));
        assert_eq!(planned(OLD, "1-2", "95000/100000"), Ok(vec![runtime("95000"), period("100000")]));
        assert_eq!(planned(OLD, "1-2", "900000/1100000"), Ok(vec![period("1100000"), runtime("900000")]));
        assert_eq!(planned(OLD, "1-2", "950000/1000000"), Ok(vec![]));
        let closed = format!("{OLD}\n/proc/sys/kernel/sched_rt_runtime_us refused");
        assert!(planned(&closed, "1", "-1/1000000").is_err_and(|why| why.contains("run as root")));
    }

    #[test]
    fn from_6_12_on_it_is_the_fair_servers_of_these_cpus() {
        let server = |what: &str| format!("sysfs:kernel/debug/sched/fair_server/cpu1/{what}");
        let free = || "sysctl:kernel.sched_rt_runtime_us=-1".to_owned();
        assert_eq!(planned(NEW, "1", "-1/1000000"), Ok(vec![free(), server("runtime=0")]));
        assert_eq!(planned(NEW, "1", "900000/1000000"), Ok(vec![free(), server("runtime=100000000")]));
        let short = vec![free(), server("period=100000000"), server("runtime=5000000")];
        assert_eq!(planned(NEW, "1", "95000/100000"), Ok(short));
        let closed = format!("{NEW}\n/sys/kernel/debug/sched/fair_server refused");
        assert!(planned(&closed, "1", "-1/1000000").is_err_and(|why| why.contains("debugfs")));
        assert!(planned(NEW, "2-3", "900000/1000000").is_err_and(|why| why.contains("is isolated")));
    }

    fn now(kernel: &FakeKernel, key: &str) -> i64 {
        let read = kernel.read(&key.parse::<Key>().unwrap());
        read.known().and_then(|text| text.trim().parse().ok()).unwrap()
    }

    /// Survey of a fake kernel with the facts that matter here, on its CPU 0.
    fn survey_of(kernel: &FakeKernel, has_servers: bool) -> Survey {
        let mut machine = Machine::base();
        let runtime = now(kernel, "sysctl:kernel.sched_rt_runtime_us");
        machine.edit(&format!("/proc/sys/kernel/sched_rt_runtime_us: {runtime}"));
        if has_servers {
            let of = |name| now(kernel, &format!("sysfs:kernel/debug/sched/fair_server/cpu0/{name}"));
            let (runtime, period) = (of("runtime"), of("period"));
            machine.edit(&format!("{SERVERS}/cpu0/runtime: {runtime}\n{SERVERS}/cpu0/period: {period}"));
            machine.edit("/proc/sys/kernel/sched_rt_period_us: 1000000");
        } else {
            let period = now(kernel, "sysctl:kernel.sched_rt_period_us");
            machine.edit(&format!("{SERVERS} absent\n/proc/sys/kernel/osrelease: 6.1.0-50-rt-amd64"));
            machine.edit(&format!("/proc/sys/kernel/sched_rt_period_us: {period}"));
        }
        machine.read()
    }

    /// Applies and reverts each row of the table, on kernels that refuse another order.
    fn there_and_back(machine: &FakeMachine, has_servers: bool, found: i64) {
        let boot = "6c1f1f1e-0000-4000-8000-000000000001";
        let mut kernel = FakeKernel::boot(machine);
        let keys: Vec<String> = if has_servers {
            ["runtime", "period"]
                .map(|name| format!("sysfs:kernel/debug/sched/fair_server/cpu0/{name}"))
                .into()
        } else {
            vec!["sysctl:kernel.sched_rt_period_us".to_owned()]
        };
        let keys: Vec<String> =
            keys.into_iter().chain(["sysctl:kernel.sched_rt_runtime_us".to_owned()]).collect();
        kernel.write(&keys[keys.len() - 1].parse().unwrap(), Some(&found.to_string())).unwrap();
        let before: Vec<i64> = keys.iter().map(|key| now(&kernel, key)).collect();
        for limit in LIMITS {
            let mut store = MemoryStore::default();
            let survey = survey_of(&kernel, has_servers);
            let cpus: CpuSet = [Cpu(0)].into_iter().collect();
            let planned = changes(&survey, &cpus, RtLimit::parse(limit).unwrap()).unwrap();
            let opened = Opened {
                id: String::new(),
                boot: boot.to_owned(),
                pid: 7,
                start: 7,
                version: String::new(),
                real_ns: 0,
                command: String::new(),
                cpus: "0".to_owned(),
                undo_at_boot_ns: None,
                confirmable: false,
                with_process: true,
            };
            let mut entry = Entry::begin(&mut kernel, &mut store, opened).unwrap();
            let id = entry.id().to_owned();
            for change in &planned {
                let applied = entry.make(change).unwrap();
                assert_eq!(applied, Applied::Done(ChangeState::Applied), "{limit}: {}", change.setting.key);
            }
            entry.complete().unwrap();
            let entry = read_entry(&store, &id).unwrap().unwrap();
            let (restored, noted) = restore(&mut kernel, &mut store, &entry, false);
            noted.unwrap();
            assert!(restored.iter().all(|done| done.state == ChangeState::Undone), "{limit}: {restored:?}");
            let after: Vec<i64> = keys.iter().map(|key| now(&kernel, key)).collect();
            assert_eq!(after, before, "{limit}");
        }
    }

    #[test]
    fn every_row_is_taken_and_put_back_by_old_and_new_kernels() {
        there_and_back(&DEBIAN_6_1_RT, false, 940_000);
        there_and_back(&DEBIAN_6_1_RT, false, -1);
        there_and_back(&DEBIAN_6_12_RT, true, 940_000);
        there_and_back(&DEBIAN_6_12_RT, true, -1);
    }
}
