//! Events of the machine during a watch: CPU hotplug, suspends, clock steps, and other runs of
//! onbeat.

use std::collections::BTreeMap;

use model::text::clean;
use model::units::{CpuSet, Nanos};
use model::watch::{WatchMark, WatchMarkKind};

/// Least difference that counts as a step: smaller ones come from two reads in sequence and from
/// the clock's adjustment (adjtimex(2) slews by at most 500 ppm: 30 ms a minute).
const STEP: Nanos = Nanos(100_000_000);

/// Least difference that counts as a suspend: awake, the clocks diverge by less.
const SUSPENDED: Nanos = Nanos(1_000_000);

/// State of the machine at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineLook {
    /// CLOCK_MONOTONIC.
    pub at: Nanos,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC.
    pub wall_offset: Nanos,
    /// CLOCK_BOOTTIME minus CLOCK_MONOTONIC, which stops during a suspend.
    pub boot_offset: Nanos,
    pub online: CpuSet,
    pub runs: Vec<OwnRunBeside>,
}

/// Process of onbeat that measures or loads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnRunBeside {
    pub pid: u32,
    /// Start in ticks of `/proc`; with the PID, it identifies the process.
    pub start: u64,
    /// Start on CLOCK_MONOTONIC.
    pub begun: Nanos,
    pub is_load: bool,
    /// Arguments of the process.
    pub line: String,
}

impl OwnRunBeside {
    /// A run by its command line: `None` for other programs and other commands, and for what a load
    /// or a suite starts, which is part of it.
    pub fn of(pid: u32, start: u64, words: &[&str], begun: Nanos) -> Option<OwnRunBeside> {
        let (program, arguments) = words.split_first()?;
        // The names of static binaries end with the architecture.
        let name = program.rsplit('/').next()?;
        let is_own = name == "onbeat" || name.starts_with("onbeat-");
        if !is_own || arguments.iter().any(|word| word.starts_with("--starter") || *word == "--keep") {
            return None;
        }
        let is_load = match arguments.first() {
            Some(&"load") => true,
            Some(&("measure" | "hunt" | "probe" | "suite")) => false,
            _ => return None,
        };
        Some(OwnRunBeside { pid, start, begun, is_load, line: clean(&arguments.join(" ")) })
    }
}

/// Finds events by comparing successive states.
#[derive(Clone, Debug, Default)]
pub struct MarkFinder {
    last: Option<MachineLook>,
    /// Runs that have not ended.
    running: BTreeMap<(u32, u64), OwnRunBeside>,
    found: Vec<WatchMark>,
}

impl MarkFinder {
    /// Compares the state with the last one; true if the machine was suspended in between.
    pub fn look(&mut self, state: MachineLook) -> bool {
        let mut suspended = false;
        if let Some(last) = self.last.take() {
            suspended = self.clocks(&last, &state);
            let (at, before) = (state.at, last.at);
            for (kind, cpus) in [
                (WatchMarkKind::CpuOnline, state.online.without(&last.online)),
                (WatchMarkKind::CpuOffline, last.online.without(&state.online)),
            ] {
                for cpu in cpus.iter() {
                    self.found.push(WatchMark { cpu: Some(cpu), ..mark(kind, before, at) });
                }
            }
        }
        self.runs(&state);
        self.last = Some(state);
        suspended
    }

    fn clocks(&mut self, last: &MachineLook, state: &MachineLook) -> bool {
        let asleep = Nanos(state.boot_offset.0.saturating_sub(last.boot_offset.0));
        let wall = Nanos(state.wall_offset.0.saturating_sub(last.wall_offset.0));
        let suspended = asleep > SUSPENDED;
        if suspended {
            let detail = format!("for {}", asleep.spoken());
            self.found.push(WatchMark { detail, ..mark(WatchMarkKind::Suspend, last.at, state.at) });
        }
        // The wall clock continues during a suspend: that is not a step.
        let step = Nanos(wall.0.saturating_sub(if suspended { asleep.0 } else { 0 }));
        if step.0.unsigned_abs() > STEP.0.unsigned_abs() {
            let way = if step.0 < 0 { "back" } else { "forward" };
            let detail = format!("{way} by {}", Nanos(step.0.saturating_abs()).spoken());
            self.found.push(WatchMark { detail, ..mark(WatchMarkKind::ClockStep, last.at, state.at) });
        }
        suspended
    }

    fn runs(&mut self, state: &MachineLook) {
        // The start of a run is computed from two clocks, read one after the other: the value of
        // the first look is kept.
        let known = |run: &OwnRunBeside| {
            let key = (run.pid, run.start);
            (key, self.running.get(&key).unwrap_or(run).clone())
        };
        let now: BTreeMap<(u32, u64), OwnRunBeside> = state.runs.iter().map(known).collect();
        for (key, ended) in std::mem::take(&mut self.running) {
            if !now.contains_key(&key) {
                self.found.push(of_run(&ended, state.at));
            }
        }
        self.running = now;
    }

    /// Takes the events found since the last call; a continuing run is marked up to now, in each
    /// interval.
    pub fn take(&mut self) -> Vec<WatchMark> {
        let at = self.last.as_ref().map_or(Nanos(0), |last| last.at);
        let mut found = std::mem::take(&mut self.found);
        found.extend(self.running.values().map(|run| of_run(run, at)));
        found
    }
}

/// Adds a suspend that the kernel reported and no clock shows: if CPUs cannot stop their clocks, as
/// under most hypervisors, CLOCK_MONOTONIC continues while all threads are frozen.
pub fn note_suspend(marks: &mut Vec<WatchMark>, from: Nanos, to: Nanos) {
    if !marks.iter().any(|mark| mark.kind == WatchMarkKind::Suspend) {
        let detail = "the clocks did not stop during the suspend".into();
        marks.push(WatchMark { detail, ..mark(WatchMarkKind::Suspend, from, to) });
    }
}

fn mark(kind: WatchMarkKind, from: Nanos, to: Nanos) -> WatchMark {
    WatchMark { kind: kind.into(), from_mono_ns: from, to_mono_ns: to, ..WatchMark::default() }
}

fn of_run(run: &OwnRunBeside, until: Nanos) -> WatchMark {
    let kind = if run.is_load { WatchMarkKind::Load } else { WatchMarkKind::Measure };
    WatchMark { detail: run.line.clone(), ..mark(kind, run.begun, until) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn state(at: i64) -> MachineLook {
        MachineLook {
            at: Nanos(at * SECOND),
            online: CpuSet::parse("0-3").unwrap(),
            ..MachineLook::default()
        }
    }

    fn marks(before: MachineLook, after: MachineLook) -> Vec<(String, String)> {
        let mut marks = MarkFinder::default();
        marks.look(before);
        marks.look(after);
        marks.take().into_iter().map(|mark| (mark.kind.to_string(), mark.detail)).collect()
    }

    #[test]
    fn a_quiet_minute_has_no_marks() {
        let slewed = MachineLook { wall_offset: Nanos(30_000_000), ..state(60) };
        assert_eq!(marks(state(0), slewed), []);
    }

    #[test]
    fn a_suspend_that_no_clock_shows_is_marked_once() {
        let mut found = Vec::new();
        note_suspend(&mut found, Nanos(1), Nanos(2));
        note_suspend(&mut found, Nanos(1), Nanos(2));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].kind, WatchMarkKind::Suspend);
    }

    #[test]
    fn a_suspend_is_no_step_and_a_step_no_suspend() {
        let hour = Nanos(3600 * SECOND);
        let slept = MachineLook { wall_offset: hour, boot_offset: hour, ..state(60) };
        assert_eq!(marks(state(0), slept), [("suspend".into(), "for 1 h".into())]);
        let stepped = MachineLook { wall_offset: Nanos(-2 * SECOND), ..state(60) };
        assert_eq!(marks(state(0), stepped), [("clock-step".into(), "back by 2.0 s".into())]);
    }

    #[test]
    fn cpus_that_come_and_go_are_named() {
        let one_less = MachineLook { online: CpuSet::parse("0-1,3").unwrap(), ..state(60) };
        assert_eq!(marks(state(0), one_less.clone()), [("cpu-offline".into(), String::new())]);
        assert_eq!(marks(one_less, state(60)), [("cpu-online".into(), String::new())]);
    }

    #[test]
    fn a_run_is_marked_in_each_interval_until_it_ends() {
        let words = ["/usr/bin/onbeat", "measure", "-a", "1"];
        let run = OwnRunBeside::of(7, 500, &words, Nanos(5 * SECOND)).unwrap();
        let mut marks = MarkFinder::default();
        let again = OwnRunBeside { begun: Nanos(5 * SECOND + 70), ..run.clone() };
        marks.look(MachineLook { runs: vec![run], ..state(30) });
        marks.look(MachineLook { runs: vec![again], ..state(60) });
        let first = marks.take();
        assert_eq!(first.len(), 1);
        assert_eq!((first[0].from_mono_ns, first[0].to_mono_ns), (Nanos(5 * SECOND), Nanos(60 * SECOND)));
        assert_eq!((first[0].kind.to_string(), first[0].detail.as_str()), ("measure".into(), "measure -a 1"));
        marks.look(state(90));
        assert_eq!(marks.take()[0].to_mono_ns, Nanos(90 * SECOND));
        marks.look(state(120));
        assert_eq!(marks.take(), []);
    }

    #[test]
    fn only_runs_of_its_own_are_runs() {
        let of = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            OwnRunBeside::of(1, 0, &words, Nanos(0)).map(|run| run.is_load)
        };
        assert_eq!(of("./onbeat load cpu"), Some(true));
        assert_eq!(of("onbeat suite quick"), Some(false));
        assert_eq!(of("/opt/onbeat-x86_64 measure -a 1"), Some(false));
        for other in [
            "onbeat report x",
            "onbeat --starter=7 measure",
            "onbeat load --work 1 --starter=7 cpu",
            "cyclictest -m",
            "",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
