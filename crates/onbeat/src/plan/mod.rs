//! Makes a printable plan from intent and machine, or an error that names the remedy. Pure.

use self::intent::MAX_SPAN;
pub use self::intent::{CpuChoice, MeasureIntent};
pub use self::probe::{ProbePlan, SamplingWindow};
use model::error::{Failure, Result};
use model::reservation::Reservation;
use model::run;
use model::units::{Cpu, CpuSet, Nanos};
use model::vocabulary::Policy;
use model::vocabulary::{Expiry, IdleStates, Preempt, Probe, Quantity, SchedulePhase, WakeMechanism};

pub mod intent;
mod probe;
mod threads;

/// CPUs of the machine, as the plan needs them.
#[derive(Clone, Debug, Default)]
pub struct MachineCpus {
    /// CPUs that are online.
    pub online: CpuSet,
    /// CPUs that this process was started on: `taskset` and boot-time isolation restrict them.
    pub inherited: CpuSet,
    /// CPUs that the cpuset permits: a thread can be pinned to each of them.
    pub permitted: CpuSet,
    /// CPUs of an isolation by onbeat: only its group permits them.
    pub set_apart: CpuSet,
    /// CPUs isolated at boot, on which only pinned threads run.
    pub isolated: CpuSet,
    /// Preemption model, as in `run.json`.
    pub preempt: Preempt,
}

/// Part of the plan for one measured CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuPlan {
    /// The CPU; for a thread that is not bound to it, the one that its CPU time is charged to.
    pub cpu: Cpu,
    /// Number of a thread that may run on all planned CPUs, from 1; 0 for one bound to its CPU.
    pub thread: u32,
    pub interval: Nanos,
    /// Delay of its schedule's start after that of the first CPU.
    pub offset: Nanos,
}

/// Plan of a measurement.
#[derive(Clone, Debug)]
pub struct MeasurePlan {
    /// Measured CPUs, ascending.
    pub cpus: Vec<CpuPlan>,
    /// Period of the first CPU.
    pub interval: Nanos,
    /// Added to the period once per further CPU.
    pub distance: Nanos,
    /// Policy of the measuring threads.
    pub policy: Policy,
    /// Their priority, 0 for SCHED_OTHER.
    pub priority: u32,
    /// True if the user gave it; otherwise a refusal falls back to SCHED_OTHER.
    pub policy_explicit: bool,
    pub wake: WakeMechanism,
    /// Phase of the CPUs' schedules relative to each other.
    pub phase: SchedulePhase,
    pub idle: IdleStates,
    /// True if the user gave it; otherwise a refusal falls back to `as-is`.
    pub idle_explicit: bool,
    pub duration: Option<Nanos>,
    pub loops: Option<u64>,
    /// Latency at which the run stops.
    pub limit: Option<Nanos>,
    /// Parameters of SCHED_DEADLINE; none for other policies.
    pub reservation: Option<Reservation>,
    /// CPUs of the housekeeping thread.
    pub housekeeping: CpuSet,
    /// Seed of a dithered schedule.
    pub seed: u64,
    /// Notes on choices that the user did not make.
    pub notes: Vec<String>,
    /// Probe that it belongs to; none for `measure` and `hunt`.
    pub probe: Option<ProbePlan>,
}

/// Default priority of the measuring threads: above interrupt threads (50), below the kernel's at
/// 99 (watchdog, migration).
pub const DEFAULT_PRIORITY: u32 = 80;

pub fn plan(intent: &MeasureIntent, machine: &MachineCpus, seed: u64) -> Result<MeasurePlan> {
    intent.check()?;
    let mut notes = Vec::new();
    let measured = measured_cpus(&intent.cpus, machine, &mut notes)?;
    check_intervals(intent, measured.len())?;
    check_threads(intent, &measured)?;
    let policy =
        intent.policy.unwrap_or(if intent.priority == Some(0) { Policy::Other } else { Policy::Fifo });
    let priority = if matches!(policy, Policy::Other | Policy::Deadline) {
        0
    } else {
        intent.priority.unwrap_or(DEFAULT_PRIORITY)
    };
    let housekeeping = housekeeping_cpus(intent.housekeeping.as_ref(), &measured, machine, &mut notes)?;
    Ok(MeasurePlan {
        cpus: spread(&measured, intent),
        interval: intent.interval,
        distance: intent.distance,
        policy,
        priority,
        policy_explicit: intent.policy.is_some() || intent.priority.is_some(),
        wake: intent.wake,
        phase: intent.phase,
        idle: intent.idle.unwrap_or(IdleStates::Held),
        idle_explicit: intent.idle.is_some(),
        duration: intent.duration,
        loops: intent.loops,
        limit: intent.limit,
        reservation: intent.reservation,
        housekeeping,
        seed,
        notes,
        probe: None,
    })
}

/// Refuses a distance that makes the last CPU's interval, the longest one, too long for the run.
fn check_intervals(intent: &MeasureIntent, cpus: usize) -> Result<()> {
    let longest = i128::from(intent.interval.0) + i128::from(intent.distance.0) * (cpus as i128 - 1);
    let longest = Nanos(i64::try_from(longest).unwrap_or(i64::MAX));
    if longest > MAX_SPAN || intent.duration.is_some_and(|duration| longest > duration) {
        return Err(Failure::usage(format!(
            "with a distance of {} the interval of the last CPU is {longest}, longer than the run: reduce -d \
             or increase -D",
            intent.distance
        )));
    }
    Ok(())
}

/// Accepts cyclictest's `-t N` only for one thread per planned CPU.
fn check_threads(intent: &MeasureIntent, measured: &CpuSet) -> Result<()> {
    match intent.threads {
        Some(wanted) if wanted as usize != measured.len() => Err(Failure::usage(format!(
            "invalid -t {wanted}: onbeat runs one thread on each of the CPUs {measured}; choose CPUs with \
             -a, and omit -t"
        ))),
        _ => Ok(()),
    }
}

fn measured_cpus(choice: &CpuChoice, machine: &MachineCpus, notes: &mut Vec<String>) -> Result<CpuSet> {
    let usable = machine.online.and(&machine.permitted);
    let wanted = match choice {
        CpuChoice::All => return Ok(default_cpus(machine, &usable, notes)),
        CpuChoice::Only(wanted) => wanted.clone(),
        CpuChoice::AllBut(left_out) => usable.without(left_out),
    };
    if wanted.is_empty() {
        return Err(Failure::usage(format!(
            "the list of CPUs is empty: choose from {} with -a, or omit -a to measure all",
            machine.online
        )));
    }
    let offline = wanted.without(&machine.online);
    if !offline.is_empty() {
        let (s, are) = if offline.len() == 1 { ("", "is") } else { ("s", "are") };
        let rtla = match (choice, offline.len()) {
            (CpuChoice::Only(wanted), 1) if *wanted == offline => {
                format!("; for rtla's -a {offline} (stops at a latency) use -b {offline}us")
            }
            _ => String::new(),
        };
        return Err(Failure::usage(format!(
            "CPU{s} {offline} {are} not online: choose from {} with -a{rtla}",
            machine.online
        )));
    }
    let barred = wanted.without(&machine.permitted);
    if barred.is_empty() {
        Ok(wanted)
    } else {
        Err(Failure::not_permitted(why_barred(&wanted, &barred, machine)))
    }
}

/// Text of the refusal of CPUs that the cpuset does not permit; for an isolation by onbeat, it
/// names the command that runs there.
fn why_barred(wanted: &CpuSet, barred: &CpuSet, machine: &MachineCpus) -> String {
    let apart = &machine.set_apart;
    if barred.without(apart).is_empty() {
        let others = if wanted == barred { String::new() } else { format!(", with only -a {barred}") };
        return format!(
            "CPUs {barred} are isolated and can only be measured from inside the partition: put `onbeat isolate run -c {barred} --` before `onbeat`{others}"
        );
    }
    let usable = machine.online.and(&machine.permitted);
    if !apart.is_empty() && machine.permitted.without(apart).is_empty() {
        return format!(
            "this process is on isolated CPUs, and {barred} are outside: choose from {usable}, or put `onbeat isolate run --outside --` before `onbeat`"
        );
    }
    format!(
        "the cpuset of this process does not permit CPUs {barred}: choose from {usable}, or start onbeat in \
         another cgroup"
    )
}

/// All CPUs, including isolated ones, unless the choice was restricted on purpose (`taskset -c 2
/// onbeat ...`).
fn default_cpus(machine: &MachineCpus, usable: &CpuSet, notes: &mut Vec<String>) -> CpuSet {
    let balanced = usable.without(&machine.isolated);
    let inherited = machine.inherited.and(usable);
    if inherited.is_empty() || balanced.without(&inherited).is_empty() {
        return usable.clone();
    }
    notes.push(format!("measuring CPUs {inherited}, the affinity of this process; -a chooses others"));
    inherited
}

fn housekeeping_cpus(
    wanted: Option<&CpuSet>,
    measured: &CpuSet,
    machine: &MachineCpus,
    notes: &mut Vec<String>,
) -> Result<CpuSet> {
    let usable = machine.online.and(&machine.permitted);
    if let Some(wanted) = wanted {
        let missing = wanted.without(&usable);
        if wanted.is_empty() || !missing.is_empty() {
            return Err(Failure::usage(format!("invalid --housekeeping {wanted}: choose from {usable}")));
        }
        return Ok(wanted.clone());
    }
    let free = usable.without(measured);
    let quiet = free.without(&machine.isolated);
    if !quiet.is_empty() {
        return Ok(quiet);
    }
    if !free.is_empty() {
        return Ok(free);
    }
    notes.push(
        "all CPUs are measured, so onbeat's own thread runs on measured CPUs (once a second, SCHED_OTHER)"
            .into(),
    );
    let balanced = usable.without(&machine.isolated);
    Ok(if balanced.is_empty() { usable } else { balanced })
}

fn spread(measured: &CpuSet, intent: &MeasureIntent) -> Vec<CpuPlan> {
    let count = measured.len() as i64;
    let place = |(index, cpu): (usize, Cpu)| {
        let index = index as i64;
        let offset = match intent.phase {
            SchedulePhase::Aligned => Nanos(0),
            SchedulePhase::Staggered | SchedulePhase::Dither => {
                Nanos((i128::from(intent.interval.0) * i128::from(index) / i128::from(count)) as i64)
            }
        };
        CpuPlan { cpu, thread: 0, interval: Nanos(intent.interval.0 + intent.distance.0 * index), offset }
    };
    measured.iter().enumerate().map(place).collect()
}

/// Context in which the kernel runs the expiry of a thread's timer.
///
/// On PREEMPT_RT a timer expires in a softirq thread (`ktimers/N`, SCHED_FIFO 1) unless it is set
/// up for hard expiry, as the sleeps of real-time tasks are and timerfds and POSIX timers are not
/// ("hrtimer" in the kernel's Documentation/timers, kernel/time/hrtimer.c: __hrtimer_init_sleeper).
pub fn expiry(preempt: Preempt, wake: WakeMechanism, policy: Policy) -> Expiry {
    use WakeMechanism::{Futex, Nanosleep};
    match (preempt, wake, policy) {
        (Preempt::Unknown, _, _) => Expiry::Unknown,
        (Preempt::Rt, Nanosleep | Futex, Policy::Fifo | Policy::Rr | Policy::Deadline) => Expiry::HardIrq,
        (Preempt::Rt, _, _) => Expiry::SoftirqThread,
        (Preempt::Full | Preempt::Lazy | Preempt::Voluntary | Preempt::None, _, _) => Expiry::HardIrq,
    }
}

impl MeasurePlan {
    /// Period of a CPU's samples; 0 for a probe that cannot miss samples.
    pub fn schedule_of(&self, own: &CpuPlan) -> Nanos {
        let periodic = self.probe.as_ref().is_none_or(|probe| probe.probe == Probe::Deadline);
        if periodic { own.interval } else { Nanos(0) }
    }

    /// Plan for `run.json`, before anything was refused.
    pub fn document(&self, preempt: Preempt) -> run::Plan {
        let measured = run::Plan {
            cpus: self.measured().iter().collect(),
            interval_ns: Some(self.interval),
            distance_ns: Some(self.distance),
            policy: self.policy.into(),
            priority: Some(self.priority),
            wake: self.wake.into(),
            expiry: expiry(preempt, self.wake, self.policy).into(),
            phase: self.phase.into(),
            idle: self.idle.into(),
            duration_ns: self.duration,
            loops: self.loops,
            limit_ns: self.limit,
            runtime_ns: self.reservation.map(|of| of.runtime),
            deadline_ns: self.reservation.map(|of| of.deadline),
            seed: (self.phase == SchedulePhase::Dither).then_some(self.seed),
            housekeeping: self.housekeeping.iter().collect(),
            notes: self.notes.clone(),
            ..run::Plan::default()
        };
        match &self.probe {
            None => measured,
            Some(probe) => probe.document(measured),
        }
    }

    /// Entry of a CPU in `run.json` before anything is counted.
    pub fn blank_cpu(&self, index: usize) -> run::CpuRun {
        let probe = self.probe.as_ref();
        let measures = match probe.map(|probe| probe.probe) {
            None => Quantity::Wakeup,
            Some(Probe::Spin | Probe::Hw) => Quantity::Gap,
            Some(Probe::Ipc) => Quantity::Ipc,
            Some(Probe::Switch) => Quantity::Switch,
            Some(Probe::Pi) => Quantity::Inversion,
            Some(Probe::Migrate) => Quantity::Migration,
            Some(Probe::Deadline) => Quantity::Deadline,
            Some(Probe::Net) => Quantity::Packet,
            Some(Probe::Irq) => Quantity::Response,
        };
        run::CpuRun {
            measures: measures.into(),
            kind: probe.map_or_else(String::new, |probe| probe.kind.clone()),
            from_cpu: probe.and_then(|probe| probe.from.get(index).copied()),
            ..run::CpuRun::default()
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use model::error::Exit;

    fn set(text: &str) -> CpuSet {
        CpuSet::parse(text).expect("a list")
    }

    fn machine(online: &str, inherited: &str, isolated: &str) -> MachineCpus {
        MachineCpus {
            online: set(online),
            inherited: set(inherited),
            permitted: set(online),
            set_apart: CpuSet::default(),
            isolated: set(isolated),
            preempt: Preempt::Rt,
        }
    }

    fn intent() -> MeasureIntent {
        MeasureIntent {
            cpus: CpuChoice::All,
            interval: Nanos::MILLI,
            distance: Nanos(0),
            policy: None,
            priority: None,
            reservation: None,
            wake: WakeMechanism::Nanosleep,
            phase: SchedulePhase::Staggered,
            idle: None,
            duration: None,
            loops: None,
            limit: None,
            housekeeping: None,
            threads: None,
        }
    }

    /// A plan of four CPUs, for tests that need any.
    pub(crate) fn any_plan() -> MeasurePlan {
        plan(&intent(), &machine("0-3", "0-3", ""), 1).expect("a plan")
    }

    #[test]
    fn threads_that_are_not_bound_have_numbers_and_share_the_cpus() {
        let mut plan = any_plan();
        plan.unbind(5);
        let keys: Vec<u32> = plan.cpus.iter().map(|own| own.key().0).collect();
        assert_eq!((keys, plan.measured().to_string()), (vec![1, 2, 3, 4, 5], "0-3".to_owned()));
        assert_eq!((plan.priority_of(&plan.cpus[0]), plan.priority_of(&plan.cpus[4])), (80, 76));
    }

    fn check(intent: MeasureIntent, machine: &MachineCpus) -> Result<(String, String), Exit> {
        let plan = plan(&intent, machine, 1).map_err(|failure| failure.exit)?;
        let cpus: CpuSet = plan.cpus.iter().map(|own| own.cpu).collect();
        Ok((cpus.to_string(), plan.housekeeping.to_string()))
    }

    fn ok(cpus: &str, housekeeping: &str) -> Result<(String, String), Exit> {
        Ok((cpus.into(), housekeeping.into()))
    }

    #[test]
    fn all_cpus_means_isolated_ones_too_unless_narrowed_on_purpose() {
        assert_eq!(check(intent(), &machine("0-3", "0-3", "")), ok("0-3", "0-3"));
        assert_eq!(check(intent(), &machine("0-3", "0-1", "2-3")), ok("0-3", "0-1"));
        assert_eq!(check(intent(), &machine("0-3", "2", "")), ok("2", "0-1,3"));
    }

    #[test]
    fn housekeeping_stays_off_measured_cpus_and_isolated_ones() {
        let only = |list| MeasureIntent { cpus: CpuChoice::Only(set(list)), ..intent() };
        assert_eq!(check(only("2"), &machine("0-3", "0-3", "3")), ok("2", "0-1"));
        assert_eq!(check(only("0-2"), &machine("0-3", "0-2", "3")), ok("0-2", "3"));
        let said = MeasureIntent { housekeeping: Some(set("0")), ..intent() };
        assert_eq!(check(said, &machine("0-3", "0-3", "")), ok("0-3", "0"));
    }

    #[test]
    fn refusals_have_their_exit_codes() {
        let here = machine("0-3", "0-3", "");
        let refuse = |intent, exit| assert_eq!(check(intent, &here), Err(exit));
        refuse(MeasureIntent { cpus: CpuChoice::Only(set("7")), ..intent() }, Exit::Usage);
        refuse(MeasureIntent { cpus: CpuChoice::Only(set("")), ..intent() }, Exit::Usage);
        refuse(MeasureIntent { cpus: CpuChoice::AllBut(set("0-3")), ..intent() }, Exit::Usage);
        refuse(MeasureIntent { interval: Nanos(0), ..intent() }, Exit::Usage);
        refuse(
            MeasureIntent { interval: Nanos::SECOND, duration: Some(Nanos::MILLI), ..intent() },
            Exit::Usage,
        );
        let far = MeasureIntent { distance: Nanos::SECOND, duration: Some(Nanos::SECOND), ..intent() };
        refuse(far, Exit::Usage);
        refuse(MeasureIntent { priority: Some(100), ..intent() }, Exit::Usage);
        refuse(MeasureIntent { priority: Some(5), policy: Some(Policy::Other), ..intent() }, Exit::Usage);
        refuse(MeasureIntent { priority: Some(0), policy: Some(Policy::Fifo), ..intent() }, Exit::Usage);
        refuse(MeasureIntent { housekeeping: Some(set("9")), ..intent() }, Exit::Usage);
        for (threads, fine) in [(4, true), (1, false), (0, false), (5, false)] {
            let asked = check(MeasureIntent { threads: Some(threads), ..intent() }, &here);
            assert_eq!(asked.err(), (!fine).then_some(Exit::Usage), "-t {threads}");
        }
        let barred = MachineCpus { permitted: set("0-1"), ..here.clone() };
        assert_eq!(
            check(MeasureIntent { cpus: CpuChoice::Only(set("3")), ..intent() }, &barred),
            Err(Exit::NotPermitted)
        );
    }

    #[test]
    fn the_way_to_isolated_cpus_is_named() {
        let refused = |wanted: &str, permitted: &str, set_apart: &str| {
            let machine = MachineCpus {
                permitted: set(permitted),
                set_apart: set(set_apart),
                ..machine("0-3", "0-3", "")
            };
            let intent = MeasureIntent { cpus: CpuChoice::Only(set(wanted)), ..intent() };
            let failure = plan(&intent, &machine, 1).expect_err("not permitted");
            assert_eq!(failure.exit, Exit::NotPermitted);
            failure.message
        };
        let inside = refused("2-3", "0-1", "2-3");
        assert!(inside.ends_with("put `onbeat isolate run -c 2-3 --` before `onbeat`"), "{inside}");
        let both = refused("1-3", "0-1", "2-3");
        assert!(both.contains("-c 2-3 --") && both.ends_with("with only -a 2-3"), "{both}");
        let outside = refused("0-3", "2-3", "2-3");
        assert!(
            outside.contains("CPUs, and 0-1 are outside") && outside.contains("run --outside --"),
            "{outside}"
        );
        for set_apart in ["", "3"] {
            assert!(refused("2-3", "0-1", set_apart).contains("start onbeat in another cgroup"));
        }
    }

    #[test]
    fn phases_and_distances_place_the_schedules() {
        let offsets = |phase, distance| {
            let intent = MeasureIntent { phase, distance: Nanos(distance), ..intent() };
            let plan = plan(&intent, &machine("0-3", "0-3", ""), 1).expect("possible");
            plan.cpus.iter().map(|own| (own.offset.0, own.interval.0)).collect::<Vec<_>>()
        };
        assert_eq!(offsets(SchedulePhase::Aligned, 0), [(0, 1_000_000); 4]);
        let staggered = [(0, 1_000_000), (250_000, 1_000_500), (500_000, 1_001_000), (750_000, 1_001_500)];
        assert_eq!(offsets(SchedulePhase::Staggered, 500), staggered);
    }

    #[test]
    fn expiry_follows_the_kernel() {
        assert_eq!(expiry(Preempt::Rt, WakeMechanism::Nanosleep, Policy::Fifo), Expiry::HardIrq);
        assert_eq!(expiry(Preempt::Rt, WakeMechanism::Nanosleep, Policy::Other), Expiry::SoftirqThread);
        assert_eq!(expiry(Preempt::Rt, WakeMechanism::Timerfd, Policy::Fifo), Expiry::SoftirqThread);
        assert_eq!(expiry(Preempt::Full, WakeMechanism::Signal, Policy::Fifo), Expiry::HardIrq);
        assert_eq!(expiry(Preempt::Unknown, WakeMechanism::Futex, Policy::Rr), Expiry::Unknown);
    }
}
