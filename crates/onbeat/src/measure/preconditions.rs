//! Checks before and after a run, never during it: competitors, clocksource, throttling.

use super::integrity::entry;
use super::watch::steal::USER_TICK;
use facts::clocksource::{self, Quality};
use facts::tasks::{self, RtPolicy, RtTask};
use facts::{Facts, cgroup, kmsg};
use host::{KernelLog, MachineFiles, clock};
use model::error::run_with;
use model::run::{Integrity, Run};
use model::sort::CompactSort;
use model::text::several;
use model::units::{CpuSet, Nanos};
use model::vocabulary::IntegrityKind;

/// Maximum number of competitors that are named; further ones are counted.
const MAX_NAMED: usize = 8;

/// State of the machine before the run.
pub struct Preconditions {
    host: MachineFiles,
    log: Option<KernelLog>,
    clocksource: String,
    throttled: Option<cgroup::CpuStat>,
    tasks: Vec<RtTask>,
    tasks_known: bool,
}

impl Preconditions {
    /// Reads the running machine.
    pub fn check(facts: &Facts) -> Preconditions {
        let host = MachineFiles::live();
        let found = tasks::rt_tasks(&host);
        Preconditions {
            tasks_known: found.known().is_some(),
            tasks: found.known().map(|found| found.tasks.clone()).unwrap_or_default(),
            log: KernelLog::from_now_on().ok(),
            clocksource: facts.clocksource.known().cloned().unwrap_or_default(),
            throttled: facts.cpu_stat.known().cloned(),
            host,
        }
    }

    /// Entries for conditions that are known before the first sample.
    pub fn entries(&self) -> Vec<Integrity> {
        let mut entries = self.unwatched();
        if let Some(tick) = clock::timer_resolution().filter(|resolution| resolution.0 > 1) {
            let detail = format!(
                "timers expire only at the tick, every {tick} (high-resolution timers are off): latencies \
                 are rounded up to it"
            );
            entries.push(entry(IntegrityKind::Clocksource, None, true, detail));
        }
        let name = &self.clocksource;
        let words =
            |what: &str| format!("the clocksource {name:?} {what}: see /sys/devices/system/clocksource");
        entries.extend(match clocksource::quality(name) {
            Quality::Fast => Vec::new(),
            Quality::Slow => {
                vec![entry(
                    IntegrityKind::Clocksource,
                    None,
                    false,
                    words("is slow to read, about 1 us in each sample"),
                )]
            }
            Quality::Coarse => vec![entry(
                IntegrityKind::Clocksource,
                None,
                true,
                words("advances with the tick, so that shorter latencies are invisible"),
            )],
            Quality::Unknown => {
                vec![entry(
                    IntegrityKind::Clocksource,
                    None,
                    false,
                    words("is not known to be fit for measuring"),
                )]
            }
        });
        entries
    }

    /// Entries for sources that cannot be read: the absence of later findings means nothing then.
    fn unwatched(&self) -> Vec<Integrity> {
        let mut entries = Vec::new();
        if self.log.is_none() {
            let detail = format!(
                "the kernel's log cannot be read, so real-time throttling would go unnoticed: {}",
                run_with("CAP_SYSLOG")
            );
            entries.push(entry(IntegrityKind::Unwatched, None, false, detail));
        }
        if !self.tasks_known {
            let detail = "cannot look for other real-time tasks: is /proc mounted?";
            entries.push(entry(IntegrityKind::Unwatched, None, false, detail));
        }
        entries
    }

    /// Entries for changes during the run, and for tasks that ran at the same time.
    pub fn changes(mut self, run: &Run) -> Vec<Integrity> {
        let mut entries = Vec::new();
        let now = self.host.read_text("/sys/devices/system/clocksource/clocksource0/current_clocksource");
        if let Some(now) = now.known().map(|text| text.trim()).filter(|now| *now != self.clocksource) {
            let detail =
                format!("the clocksource changed from {:?} to {now:?} during the run", self.clocksource);
            entries.push(entry(IntegrityKind::Clocksource, None, true, detail));
        }
        entries.extend(self.throttling());
        let after = tasks::rt_tasks(&self.host).known().map(|found| found.tasks.clone()).unwrap_or_default();
        let measured: CpuSet = run.plan.cpus.iter().copied().collect();
        // The effective priority: every real-time task preempts SCHED_OTHER.
        entries.extend(competitors(&self.tasks, &after, &measured, run.plan.priority.unwrap_or(0)));
        entries
    }

    fn throttling(&mut self) -> Vec<Integrity> {
        let mut entries = Vec::new();
        if let Some(before) = &self.throttled {
            let after = self.host.read_text(&before.path).parse(|text| cgroup::parse_cpu_stat(&text));
            let more = |after: Option<u64>, before: Option<u64>| {
                after.unwrap_or(0).saturating_sub(before.unwrap_or(0))
            };
            if let Some(after) = after.known() {
                let periods = more(after.throttled_periods, before.throttled_periods);
                let time = Nanos(more(after.throttled_ns, before.throttled_ns) as i64);
                if periods > 0 {
                    let periods = several(periods, "period", "periods");
                    let detail = format!(
                        "the control group's quota ran out in {periods}, {time} in all: run onbeat in a \
                        group without a quota"
                    );
                    entries.push(entry(IntegrityKind::Throttled, None, true, detail));
                }
            }
        }
        let mut said = None;
        if let Some(log) = &mut self.log {
            log.each_record(|record| said = said.or(kmsg::throttling(record)));
        }
        if said.is_some() {
            let detail = "the kernel throttled real-time tasks, perhaps the measuring threads (it logs this \
                          once per boot, without names): see sched_rt_runtime_us";
            entries.push(entry(IntegrityKind::Throttled, None, true, detail));
        }
        entries
    }
}

/// Entries for user-space tasks that preempt the measuring threads on a measured CPU. Pure.
fn competitors(before: &[RtTask], after: &[RtTask], measured: &CpuSet, priority: u32) -> Vec<Integrity> {
    let reaches = |task: &RtTask| task.allowed.as_ref().is_none_or(|cpus| !cpus.and(measured).is_empty());
    let preempts = |task: &RtTask| task.policy == RtPolicy::Deadline || task.stat.priority >= priority;
    let same = |a: &RtTask, b: &RtTask| a.tid == b.tid && a.stat.start_ticks == b.stat.start_ticks;
    let mut found: Vec<(u64, &RtTask)> = after
        .iter()
        .filter(|task| !task.stat.kernel && reaches(task) && preempts(task))
        .map(|task| {
            let earlier =
                before.iter().find(|known| same(known, task)).map_or(0, |known| known.stat.cpu_ticks);
            (task.stat.cpu_ticks.saturating_sub(earlier), task)
        })
        .collect();
    found.compact_sort_by_key(|(ticks, task)| (std::cmp::Reverse(*ticks), task.tid));
    let mut entries: Vec<Integrity> =
        found.iter().take(MAX_NAMED).map(|(ticks, task)| competitor_entry(*ticks, task)).collect();
    if found.len() > MAX_NAMED {
        let detail = match found.len() - MAX_NAMED {
            1 => "1 more real-time task preempts the measuring threads".to_owned(),
            more => format!("{more} more real-time tasks preempt the measuring threads"),
        };
        entries.push(entry(IntegrityKind::RtCompetitor, None, false, detail));
    }
    entries
}

fn competitor_entry(ticks: u64, task: &RtTask) -> Integrity {
    let policy = match task.policy {
        RtPolicy::Fifo => format!("SCHED_FIFO {}", task.stat.priority),
        RtPolicy::RoundRobin => format!("SCHED_RR {}", task.stat.priority),
        RtPolicy::Deadline => "SCHED_DEADLINE".into(),
    };
    let used =
        if ticks == 0 { "less than 10 ms".into() } else { Nanos(ticks as i64 * USER_TICK.0).to_string() };
    let detail = format!(
        "{} (pid {}, {policy}) preempts the measuring threads and may run on their CPUs: it ran {used} \
         during the run, last on CPU {}",
        task.stat.comm, task.tid, task.stat.last_cpu
    );
    let only = task.allowed.as_ref().filter(|cpus| cpus.len() == 1).and_then(|cpus| cpus.iter().next());
    entry(IntegrityKind::RtCompetitor, only, false, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use facts::tasks::TaskStat;
    use model::units::Cpu;

    fn task(tid: u32, priority: u32, cpus: &str, cpu_ticks: u64) -> RtTask {
        let stat = TaskStat {
            comm: format!("task-{tid}"),
            policy: Some(RtPolicy::Fifo),
            priority,
            cpu_ticks,
            start_ticks: 7,
            last_cpu: Cpu(1),
            kernel: false,
            immovable: false,
            threads: 1,
        };
        RtTask { pid: tid, tid, policy: RtPolicy::Fifo, stat, allowed: CpuSet::parse(cpus).ok() }
    }

    #[test]
    fn rivals_are_those_that_go_first_on_a_measured_cpu() {
        let measured = CpuSet::parse("1-2").expect("a list");
        let before = [task(1, 90, "0-3", 100)];
        let kernel =
            RtTask { stat: TaskStat { kernel: true, ..task(5, 99, "1", 50).stat }, ..task(5, 99, "1", 50) };
        let after =
            [task(1, 90, "0-3", 112), task(2, 79, "1", 9), task(3, 95, "3", 9), task(4, 80, "2", 0), kernel];
        let details: Vec<String> =
            competitors(&before, &after, &measured, 80).into_iter().map(|e| e.detail).collect();
        assert_eq!(details.len(), 2, "{details:?}");
        assert!(details[0].starts_with("task-1 (pid 1, SCHED_FIFO 90)") && details[0].contains("ran 120 ms"));
        assert!(details[1].starts_with("task-4") && details[1].contains("less than 10 ms"));
    }

    #[test]
    fn many_rivals_are_counted() {
        let after: Vec<RtTask> = (0..20).map(|tid| task(tid, 99, "0", 1)).collect();
        let entries = competitors(&[], &after, &CpuSet::parse("0").expect("a list"), 80);
        assert_eq!(entries.len(), MAX_NAMED + 1);
        assert!(entries[MAX_NAMED].detail.starts_with("12 more real-time tasks"));
    }
}
