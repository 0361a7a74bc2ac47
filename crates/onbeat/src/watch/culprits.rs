//! Names for the worst wake-ups as the recorder delivers them: stacks, system calls, culprits.

use std::collections::BTreeMap;

use model::run::{Host, Who};
use model::units::{Cpu, Nanos};
use model::watch::{Holder, SeriesRows, WatchSeries, WatchTask, WorstWakeup};
use recorder::{LatePulse, WorstFound};
use rules::culprits::watched::CulpritNames;
use trace::timeline::without_events::{LockRelease, Witness, spike, stopped};

use super::names::{StackNames, system_call};

/// Further evidence of the interval: other late timers, pulses, and steal by CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct IntervalEvidence<'a> {
    pub series: &'a [SeriesRows],
    pub pulses: &'a [LatePulse],
    pub stolen: Option<&'a BTreeMap<Cpu, Nanos>>,
}

/// Names stacks, system calls and culprits of an interval's worst wake-ups.
pub fn named(
    worst: Vec<WorstFound>,
    beside: IntervalEvidence<'_>,
    host: &Host,
    stacks: &mut StackNames,
    culprits: &mut CulpritNames,
) -> Vec<WorstWakeup> {
    let all = |worst: &WorstFound| {
        let release = worst.release.as_ref().map_or(&[][..], |release| &release.stack);
        [&worst.expiry, &worst.switch, &worst.sleeps, release].concat()
    };
    stacks.learn(worst.iter().flat_map(all));
    let late = late_timers(beside.series);
    let mut wakeups = Vec::with_capacity(worst.len());
    let mut spikes = Vec::with_capacity(worst.len());
    for found in worst {
        let (expiry, enables) = stacks.stack(found.expiry);
        let (switch, _) = stacks.stack(found.switch);
        let (sleeps, _) = stacks.stack(found.sleeps);
        let release = found.release.map(|release| {
            let (stack, _) = stacks.stack(release.stack.clone());
            (who(&release.task), stack, release)
        });
        let mut wakeup = found.wakeup;
        let at_once = is_at_once(&wakeup, beside.pulses);
        let witness = Witness {
            cpu: wakeup.cpu.unwrap_or_default(),
            at: wakeup.mono_ns,
            victim: &who(&wakeup.victim),
            contested: at_once || is_contested(&wakeup, &late),
            at_once,
            stolen: wakeup.cpu.and_then(|cpu| beside.stolen?.get(&cpu).copied()),
            timer: wakeup.timer_ns.unwrap_or_default(),
            wakeup: wakeup.wakeup_ns.unwrap_or_default(),
            held: wakeup.held_ns,
            lower: wakeup.holder == Holder::Lower,
            previous: &who(&wakeup.previous),
            interrupted: &who(&wakeup.interrupted),
            expiry: &expiry,
            enables,
            switch: &switch,
            release: release.as_ref().map(|(holder, stack, release)| LockRelease {
                at: release.mono_ns,
                before: release.before_ns,
                holder,
                stack,
            }),
        };
        spikes.push((spike(&witness, host), stopped(&witness, host)));
        wakeup.sleeps_in = system_call(&sleeps).unwrap_or_default().to_owned();
        // The stack of the larger part.
        let of_timer = wakeup.timer_ns >= wakeup.wakeup_ns && !expiry.is_empty();
        wakeup.stack = if of_timer { expiry } else { switch };
        wakeups.push(wakeup);
    }
    for (wakeup, culprit) in wakeups.iter_mut().zip(culprits.name(host, spikes)) {
        wakeup.culprit = culprit;
    }
    wakeups
}

fn who(task: &WatchTask) -> Who {
    Who {
        comm: task.comm.clone(),
        pid: task.tid.or(task.pid).unwrap_or(0),
        prio: task.prio.unwrap_or(0),
        ..Who::default()
    }
}

/// Latest timer of each CPU: the times when it was due and when it expired.
fn late_timers(series: &[SeriesRows]) -> Vec<(Cpu, Nanos, Nanos)> {
    let timers = series.iter().filter(|series| series.series == WatchSeries::Timer);
    let rows = timers.flat_map(|series| &series.cpus);
    rows.filter_map(|row| Some((row.cpu?, row.max_mono_ns? - row.max_ns?, row.max_mono_ns?))).collect()
}

/// True if another CPU's timer was late during at least half of this wake-up's latency: all CPUs
/// may have been stopped from outside.
fn is_contested(wakeup: &WorstWakeup, late: &[(Cpu, Nanos, Nanos)]) -> bool {
    late.iter().any(|&(cpu, begun, came)| shares_half(wakeup, cpu, begun, came))
}

/// True if a pulse of another CPU was late as long, and expired when this CPU continued: a stop of
/// one CPU alone does not end together with it. One of the two was idle or in a program: a section
/// with interrupts off may be one on all CPUs, or wait for another CPU's.
fn is_at_once(wakeup: &WorstWakeup, pulses: &[LatePulse]) -> bool {
    let late = wakeup.timer_ns >= wakeup.wakeup_ns;
    let after = if late { wakeup.wakeup_ns.unwrap_or_default() } else { Nanos(0) };
    let went_on = wakeup.mono_ns - after;
    let idle = late && wakeup.interrupted.tid == Some(0);
    let apart = wakeup.until_switch().0.unsigned_abs() / 4;
    pulses.iter().any(|pulse| {
        let together = pulse.came.0.abs_diff(went_on.0) <= apart;
        (idle || !pulse.in_kernel) && together && shares_half(wakeup, pulse.cpu, pulse.due, pulse.came)
    })
}

fn shares_half(wakeup: &WorstWakeup, cpu: Cpu, begun: Nanos, came: Nanos) -> bool {
    let to = wakeup.mono_ns;
    let waited = wakeup.until_switch();
    let from = to - waited;
    let shared = to.min(came).0.saturating_sub(from.max(begun).0);
    Some(cpu) != wakeup.cpu && shared > 0 && shared.saturating_mul(2) >= waited.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::watch::{WatchCulprit, WatchRow};

    fn late(cpu: u32, begun: i64, came: i64) -> SeriesRows {
        let row = WatchRow {
            cpu: Some(Cpu(cpu)),
            max_ns: Some(Nanos(came - begun)),
            max_mono_ns: Some(Nanos(came)),
            ..WatchRow::default()
        };
        SeriesRows { series: WatchSeries::Timer, cpus: vec![row, WatchRow::default()], threads: Vec::new() }
    }

    #[test]
    fn without_stacks_a_thread_is_named_only_where_it_may_keep_the_cpu() {
        let task = |comm: &str, tid, prio| WatchTask {
            comm: comm.into(),
            tid: Some(tid),
            prio: Some(prio),
            ..WatchTask::default()
        };
        let culprit = |holder: Holder, prio, late| {
            let wakeup = WorstWakeup {
                holder: holder.into(),
                timer_ns: Some(Nanos(late)),
                wakeup_ns: Some(Nanos(900_000)),
                held_ns: Some(Nanos(900_000)),
                mono_ns: Nanos(5_000_000_000),
                cpu: Some(Cpu(1)),
                victim: task("control", 50, 19),
                previous: task("hog", 71, prio),
                interrupted: task("hog", 71, prio),
                ..WorstWakeup::default()
            };
            let found = vec![WorstFound { wakeup, ..WorstFound::default() }];
            let (mut stacks, mut names) = (StackNames::none(), CulpritNames::default());
            named(found, IntervalEvidence::default(), &Host::default(), &mut stacks, &mut names)[0]
                .culprit
                .name
                .clone()
        };
        assert_eq!(culprit(Holder::Higher, 9, 0), "hog");
        assert_eq!(culprit(Holder::Equal, 19, 0), "hog");
        assert_eq!(culprit(Holder::Lower, 120, 0), "", "why it kept the CPU is not known");
        assert_eq!(culprit(Holder::Higher, 9, 2_000_000), "", "the timer was late");
    }

    #[test]
    fn another_cpu_that_was_late_at_the_same_time_contests() {
        let wakeup = WorstWakeup {
            timer_ns: Some(Nanos(90)),
            wakeup_ns: Some(Nanos(10)),
            // After the time of the switch.
            switch_ns: Some(Nanos(400)),
            mono_ns: Nanos(1000),
            cpu: Some(Cpu(1)),
            ..WorstWakeup::default()
        };
        let is = |cpu, begun, came| is_contested(&wakeup, &late_timers(&[late(cpu, begun, came)]));
        assert!(is(0, 905, 990));
        assert!(!is(1, 905, 990), "its own");
        assert!(!is(0, 905, 930), "for a moment");
        assert!(!is(0, 100, 190), "at another time");
    }

    #[test]
    fn a_stop_of_the_machine_is_named_by_the_pulse_that_was_late_at_once() {
        const MS: i64 = 1_000_000;
        let named_by = |timer: i64, wakeup: i64, pulse: LatePulse, interrupted: i32| {
            let wakeup = WorstWakeup {
                interrupted: WatchTask { tid: Some(interrupted), ..WatchTask::default() },
                timer_ns: Some(Nanos(timer * MS)),
                wakeup_ns: Some(Nanos(wakeup * MS)),
                mono_ns: Nanos(1000 * MS),
                cpu: Some(Cpu(1)),
                ..WorstWakeup::default()
            };
            let found = vec![WorstFound { wakeup, ..WorstFound::default() }];
            let beside = IntervalEvidence { pulses: &[pulse], ..IntervalEvidence::default() };
            let host = Host { virtualization: "qemu".into(), ..Host::default() };
            let (mut stacks, mut names) = (StackNames::none(), CulpritNames::default());
            let culprit = named(found, beside, &host, &mut stacks, &mut names).remove(0).culprit;
            (culprit.name, culprit.estimated)
        };
        let pulse = |due: i64, came: i64, cpu: u32| {
            let (due, came) = (Nanos(due * MS), Nanos(came * MS));
            LatePulse { cpu: Cpu(cpu), due, came, in_kernel: false }
        };
        let culprit = |timer, wakeup, due, came, cpu| named_by(timer, wakeup, pulse(due, came, cpu), 70);
        let stop = ("stopped from outside".to_owned(), true);
        assert_eq!(culprit(39, 1, 965, 999, 0), stop);
        assert_eq!(culprit(1, 39, 965, 1001, 0), stop, "between timer and switch");
        let nothing = WatchCulprit::default();
        let none = (nothing.name, nothing.estimated);
        assert_eq!(culprit(39, 1, 985, 999, 0), none, "for a part");
        assert_eq!(culprit(39, 1, 962, 985, 0), none, "it went on before");
        assert_eq!(culprit(39, 1, 965, 1015, 0), none, "it went on later");
        assert_eq!(culprit(39, 1, 965, 999, 1), none, "its own");
        let in_kernel = LatePulse { in_kernel: true, ..pulse(965, 999, 0) };
        assert_eq!(named_by(39, 1, in_kernel, 0), stop, "the other one was idle");
        assert_eq!(named_by(39, 1, in_kernel, 70), none, "both may have had interrupts off");
        assert_eq!(named_by(1, 39, in_kernel, 0), none, "what ran then is not known");
    }
}
