//! Command that repeats a run under the same conditions.

use model::keyword::Word;
use model::run::{Plan, Run};
use model::text::quoted_value;
use model::units::{CpuSet, Nanos};
use model::vocabulary::{Command, IdleStates, Policy, SchedulePhase, WakeMechanism};

/// Command in one line; none if the record is not sufficient: for imports, for probes, and for
/// programs that a hunt started.
pub fn repeat(run: &Run) -> Option<String> {
    let command = run.command.known().filter(|one| matches!(one, Command::Measure | Command::Hunt))?;
    let plan = &run.plan;
    let mut words = vec!["onbeat".to_owned(), command.name().to_owned()];
    let cpus: CpuSet = plan.cpus.iter().copied().collect();
    // All online CPUs are the default.
    if !plan.cpus.is_empty() && run.host.online != cpus.to_string() {
        words.push(format!("-a {cpus}"));
    }
    words.push(format!("-i {}", exact(plan.interval_ns?)));
    if let Some(distance) = plan.distance_ns.filter(|distance| distance.0 != 0) {
        words.push(format!("-d {}", exact(distance)));
    }
    words.push(threads(plan)?);
    words.extend(sleep(plan)?);
    words.extend(plan.duration_ns.map(|length| format!("-D {}", exact(length))));
    words.extend(plan.loops.map(|loops| format!("-l {loops}")));
    words.extend(plan.limit_ns.map(|limit| format!("-b {}", exact(limit))));
    if let Some(recorder) = run.recorder.as_ref().filter(|_| command == Command::Hunt) {
        words.extend(recorder.over_ns.map(|over| format!("--over {}", exact(over))));
        words.extend(recorder.stacks.is_empty().then(|| "--no-stacks".to_owned()));
    }
    let housekeeping: CpuSet = plan.housekeeping.iter().copied().collect();
    // If each of them is measured as well, none was given: there is no other.
    let is_apart = plan.housekeeping.iter().any(|cpu| !plan.cpus.contains(cpu));
    words.extend(is_apart.then(|| format!("--housekeeping {housekeeping}")));
    words.extend(run.loads.iter().map(|load| format!("--load {}", quoted_value(&load.spec))));
    let beside = run.loads.first().map(|load| &load.cpus).filter(|cpus| !cpus.is_empty());
    words.extend(beside.map(|cpus| format!("--load-cpus {}", quoted_value(cpus))));
    let label = |(name, value): (&str, &str)| format!("--label {}", quoted_value(&format!("{name}={value}")));
    words.extend(run.labels.iter().map(label));
    Some(words.join(" "))
}

/// Flags of priority and policy.
fn threads(plan: &Plan) -> Option<String> {
    match plan.policy.known()? {
        Policy::Fifo => Some(format!("-p {}", plan.priority?)),
        Policy::Rr => Some(format!("--policy rr -p {}", plan.priority?)),
        Policy::Other => Some("-p 0".to_owned()),
        // The period of the threads is not in the record: `interval_ns` is that of the wake-ups.
        Policy::Deadline => None,
    }
}

/// Flags of the sleep that differ from the defaults.
fn sleep(plan: &Plan) -> Option<Vec<String>> {
    let flag = |name: &str, word: &str, usual: &str| (word != usual).then(|| format!("--{name} {word}"));
    let is_known = is_keyword(&plan.wake) && is_keyword(&plan.phase) && is_keyword(&plan.idle);
    is_known.then(|| {
        let flags = [
            flag("wake", plan.wake.as_str(), WakeMechanism::Nanosleep.name()),
            flag("phase", plan.phase.as_str(), SchedulePhase::Staggered.name()),
            flag("idle", plan.idle.as_str(), IdleStates::Held.name()),
        ];
        flags.into_iter().flatten().collect()
    })
}

/// True if it is a word that the flags accept.
fn is_keyword<K: model::keyword::Keyword>(word: &Word<K>) -> bool {
    word.known().is_some()
}

/// Span in the format of flags, without rounding.
fn exact(span: Nanos) -> String {
    let units = [(Nanos::SECOND.0, "s"), (Nanos::MILLI.0, "ms"), (Nanos::MICRO.0, "us")];
    let unit = units.into_iter().find(|(size, _)| span.0 % size == 0);
    unit.map_or_else(|| format!("{}ns", span.0), |(size, name)| format!("{}{name}", span.0 / size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::labels::Labels;
    use model::load::LoadRun;

    const HUNT: &str = include_str!("../../../../tests/fixtures/runs/hunt/run.json");
    const MEASURED: &str = include_str!("../../../../tests/fixtures/runs/measured/run.json");

    fn of(document: &str) -> Run {
        serde_json::from_str(document).expect("a run")
    }

    #[test]
    fn the_recorded_runs_have_the_commands_that_made_them() {
        let measured = "onbeat measure -a 1 -i 1ms -p 80 -D 120s --housekeeping 0";
        assert_eq!(repeat(&of(MEASURED)).as_deref(), Some(measured));
        let hunt = "onbeat hunt -a 1 -i 1ms -p 80 -D 120s --over 10ms --housekeeping 0";
        assert_eq!(repeat(&of(HUNT)).as_deref(), Some(hunt));
    }

    #[test]
    fn what_is_not_as_by_default_is_in_it_without_rounding_and_quoted() {
        let mut run = of(HUNT);
        run.host.online = "1".into();
        run.plan = Plan {
            interval_ns: Some(Nanos(1_234_567)),
            distance_ns: Some(Nanos(500_000)),
            policy: Policy::Rr.into(),
            wake: WakeMechanism::Timerfd.into(),
            phase: SchedulePhase::Aligned.into(),
            idle: IdleStates::AsIs.into(),
            duration_ns: None,
            loops: Some(7),
            limit_ns: Some(Nanos(150_000)),
            housekeeping: Vec::new(),
            ..run.plan
        };
        if let Some(recorder) = &mut run.recorder {
            recorder.stacks.clear();
        }
        let spec = "cmd:stress -c 2".to_owned();
        run.loads = vec![LoadRun { spec, cpus: "0,2-3".into(), ..LoadRun::default() }];
        run.labels = Labels::parse(&["job=a;b".to_owned()]).expect("a label");
        let expected = "onbeat hunt -i 1234567ns -d 500us --policy rr -p 80 --wake timerfd --phase aligned \
                        --idle as-is -l 7 -b 150us --over 10ms --no-stacks --load 'cmd:stress -c 2' \
                        --load-cpus 0,2-3 --label 'job=a;b'";
        assert_eq!(repeat(&run).as_deref(), Some(expected));
        run.plan.policy = Policy::Other.into();
        assert!(repeat(&run).is_some_and(|words| words.contains(" -p 0 ")));
    }

    #[test]
    fn nothing_is_said_where_the_record_does_not_tell_it() {
        let mut run = of(HUNT);
        run.plan.wake = "of another version".into();
        assert_eq!(repeat(&run), None);
        let mut follows = of(HUNT);
        follows.plan.interval_ns = None;
        assert_eq!(repeat(&follows), None);
        for command in [Command::Import, Command::Probe] {
            assert_eq!(repeat(&Run { command: command.into(), ..of(MEASURED) }), None);
        }
    }
}
