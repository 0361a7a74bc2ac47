//! Actions at a late wake-up: `--on-alarm` of a watch, `--on-spike` of a hunt.

use std::fmt;
use std::process::ExitStatus;
use std::str::FromStr;

use std::ffi::OsStr;

use host::find_program;
use host::reaction::{self, Signal, StartedPrograms};
use model::error::{Exit, Failure};
use model::text::{clean, several};
use model::units::Nanos;

/// Minimum time between two alarms; earlier ones are counted.
const PAUSE: Nanos = Nanos(60_000_000_000);

/// Maximum number of failures that are repeated at the end of a run.
const MAX_FAILURES: usize = 3;

/// Action at a late wake-up.
#[derive(Clone, Debug, PartialEq)]
pub enum AlarmAction {
    /// `exec:PROGRAM ARGS`: no shell, words as a shell would split them.
    Exec(Vec<String>),
    /// `signal:NAME:PID`.
    Signal(Signal, i32),
    /// `trace-off`: stops the machine's tracer, which keeps its content.
    TraceOff,
}

impl FromStr for AlarmAction {
    type Err = String;

    fn from_str(text: &str) -> Result<AlarmAction, String> {
        let expected =
            || format!("expected exec:PROGRAM ARGS, signal:NAME:PID or trace-off, not {}", clean(text));
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        match kind {
            "trace-off" if text == "trace-off" => Ok(AlarmAction::TraceOff),
            "exec" => {
                let words = shell_words::split(rest).map_err(|_| "exec: missing closing quote".to_owned())?;
                if words.is_empty() { Err(expected()) } else { Ok(AlarmAction::Exec(words)) }
            }
            "signal" => {
                let (name, pid) = rest.split_once(':').ok_or_else(expected)?;
                let signal =
                    reaction::signal_of(name).ok_or_else(|| format!("unknown signal {}", clean(name)))?;
                let pid = pid.parse().ok().filter(|pid| *pid > 0).ok_or_else(expected)?;
                Ok(AlarmAction::Signal(signal, pid))
            }
            _ => Err(expected()),
        }
    }
}

impl AlarmAction {
    /// Refuses an action that would fail now: a later failure might go unnoticed.
    pub fn check(&self, flag: &str) -> Result<(), Failure> {
        let failed = |what: String, error: &std::io::Error, remedy: &str| {
            Failure::of_call(format!("{flag}: {what}"), error, Exit::Usage, remedy)
        };
        match self {
            AlarmAction::Exec(words) => {
                let name = words.first().map_or("", String::as_str);
                let found = find_program(OsStr::new(name)).map(drop);
                let what = || format!("cannot run {}", clean(name));
                found.map_err(|error| failed(what(), &error, "give the path of an existing program"))
            }
            AlarmAction::Signal(_, pid) => reaction::may_signal(*pid).map_err(|error| {
                failed(format!("cannot signal process {pid}"), &error, "give a running process of this user")
            }),
            AlarmAction::TraceOff => Ok(()),
        }
    }
}

impl fmt::Display for AlarmAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AlarmAction::Exec(words) => write!(f, "exec:{}", shell_words::join(words)),
            AlarmAction::Signal(signal, pid) => write!(f, "signal:{}:{pid}", signal.as_raw()),
            AlarmAction::TraceOff => f.write_str("trace-off"),
        }
    }
}

/// Late wake-up, as described to an action; texts are `""` if unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlarmCause {
    pub latency: Nanos,
    pub cpu: u32,
    pub victim: String,
    pub victim_pid: i32,
    pub culprit: String,
}

impl AlarmCause {
    /// Environment variables for a program; `record` is the folder of the record.
    fn variables(&self, record: &str) -> [(&'static str, String); 6] {
        [
            ("ONBEAT_LATENCY_NS", self.latency.0.to_string()),
            ("ONBEAT_CPU", self.cpu.to_string()),
            ("ONBEAT_VICTIM", self.victim.clone()),
            ("ONBEAT_VICTIM_PID", self.victim_pid.to_string()),
            ("ONBEAT_CULPRIT", self.culprit.clone()),
            ("ONBEAT_RECORD", record.to_owned()),
        ]
        .map(|(name, value)| (name, value.replace('\0', "")))
    }

    /// One-line description for the user.
    fn sentence(&self) -> String {
        let victim = if self.victim.is_empty() { "a thread" } else { &self.victim };
        let culprit = if self.culprit.is_empty() { "an unknown culprit" } else { &self.culprit };
        let latency = self.latency.spaced();
        format!("{} on CPU {} was {latency} late, delayed by {}", clean(victim), self.cpu, clean(culprit))
    }
}

/// Actions of a run, and the counts of alarms.
#[derive(Debug, Default)]
pub struct Alarms {
    limit: Option<Nanos>,
    actions: Vec<AlarmAction>,
    programs: StartedPrograms,
    last: Option<Nanos>,
    /// Number of alarms raised.
    pub raised: u64,
    /// Number of alarms within the pause after another.
    pub held_back: u64,
    /// The first failures.
    failures: Vec<String>,
    record: String,
}

impl Alarms {
    /// Actions from this latency on, none without one. `record` is the folder of the run, for the
    /// programs.
    pub fn new(limit: Option<Nanos>, actions: Vec<AlarmAction>, record: String) -> Alarms {
        Alarms { limit, actions, record, ..Alarms::default() }
    }

    pub fn limit(&self) -> Option<Nanos> {
        self.limit
    }

    /// True if the latency reaches the limit.
    pub fn is_due(&self, latency: Nanos) -> bool {
        self.limit.is_some_and(|limit| latency >= limit)
    }

    /// Notes on the number of alarms and the failed actions, for the user; empty without any alarm.
    pub fn notes(&self) -> Vec<String> {
        if self.raised == 0 || self.actions.is_empty() {
            return Vec::new();
        }
        let more = match self.held_back {
            0 => String::new(),
            more => format!("; {more} more within a minute after another"),
        };
        let late = several(self.raised, "late wake-up", "late wake-ups");
        let first = format!("actions ran for {late}{more}");
        [first].into_iter().chain(self.failures.clone()).collect()
    }

    /// Ends programs that still run; returns lines about those that failed.
    pub fn end(&mut self) -> Vec<String> {
        self.programs.end();
        self.look()
    }

    /// Lines about programs that have failed since the last call.
    pub fn look(&mut self) -> Vec<String> {
        let failed = self.programs.take_failed().into_iter();
        let line = |(program, status): (String, Option<ExitStatus>)| {
            let end = status.map_or_else(
                || "was still running at the end and was killed".to_owned(),
                |status| format!("ended with {status}"),
            );
            format!("alarm: exec:{} {end}", clean(&program))
        };
        self.note_failures(failed.map(line).collect())
    }

    fn note_failures(&mut self, lines: Vec<String>) -> Vec<String> {
        self.failures.extend(lines.iter().cloned());
        self.failures.truncate(MAX_FAILURES);
        lines
    }

    /// Takes a late wake-up at this time; returns the lines to print, about it and about failed
    /// actions.
    pub fn take(&mut self, late: &AlarmCause, now: Nanos) -> Vec<String> {
        if !self.is_due(late.latency) {
            return Vec::new();
        }
        if self.last.is_some_and(|last| now.0.saturating_sub(last.0) < PAUSE.0) {
            self.held_back += 1;
            return Vec::new();
        }
        (self.last, self.raised) = (Some(now), self.raised + 1);
        let mut failed = Vec::new();
        for action in &self.actions {
            let done = match action {
                AlarmAction::Exec(words) => self.programs.start(words, &late.variables(&self.record)),
                AlarmAction::Signal(signal, pid) => reaction::send_signal(*signal, *pid),
                AlarmAction::TraceOff => reaction::stop_tracer(),
            };
            failed.extend(
                done.err().map(|error| format!("alarm: {} failed: {error}", clean(&action.to_string()))),
            );
        }
        let lines = [format!("alarm: {}", late.sentence())].into_iter();
        lines.chain(self.note_failures(failed)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_read_or_refused_in_a_line() {
        let read = |text: &str| text.parse::<AlarmAction>();
        assert_eq!(read("trace-off"), Ok(AlarmAction::TraceOff));
        assert_eq!(read("signal:USR1:12"), Ok(AlarmAction::Signal(Signal::USR1, 12)));
        let words = ["/bin/mail", "a b", "-s"].map(str::to_owned).to_vec();
        assert_eq!(read("exec:/bin/mail 'a b' -s"), Ok(AlarmAction::Exec(words)));
        for wrong in [
            "",
            "exec:",
            "exec:'a",
            "signal:USR1",
            "signal:USR1:0",
            "signal:USR1:-1",
            "signal:X:1",
            "trace-off:",
            "mail",
        ] {
            assert!(read(wrong).is_err_and(|why| !why.contains('\n')), "{wrong}");
        }
    }

    #[test]
    fn at_most_one_a_minute_is_raised_and_the_rest_is_counted() {
        let mut alarms = Alarms::new(Some(Nanos(1000)), Vec::new(), String::new());
        let late = |ns| AlarmCause { latency: Nanos(ns), ..AlarmCause::default() };
        let minute = |n: i64| Nanos(n * 60_000_000_000);
        assert!(alarms.take(&late(999), minute(1)).is_empty());
        assert_eq!(
            alarms.take(&late(1000), minute(2)),
            ["alarm: a thread on CPU 0 was 1 us late, delayed by an unknown culprit"]
        );
        assert!(alarms.take(&late(5000), Nanos(minute(3).0 - 1)).is_empty());
        assert_eq!(alarms.take(&late(5000), minute(3)).len(), 1);
        assert_eq!((alarms.raised, alarms.held_back), (2, 1));
        assert!(Alarms::default().take(&late(i64::MAX), minute(1)).is_empty());
    }

    #[test]
    fn what_cannot_be_done_is_told() {
        let actions = vec!["exec:/no/such/program".parse().unwrap()];
        let mut alarms = Alarms::new(Some(Nanos(1)), actions, String::new());
        let late = AlarmCause { latency: Nanos(2), ..AlarmCause::default() };
        let lines = alarms.take(&late, Nanos(0));
        assert!(lines.len() == 2 && lines[1].contains("/no/such/program failed"), "{lines:?}");
        assert!(alarms.end().is_empty());
        assert_eq!(alarms.notes(), ["actions ran for 1 late wake-up", &lines[1]]);
        let mut alarms = Alarms::new(Some(Nanos(1)), vec!["exec:false".parse().unwrap()], String::new());
        assert_eq!((alarms.take(&late, Nanos(0)).len(), alarms.take(&late, Nanos(1)).len()), (1, 0));
        assert_eq!(alarms.end(), ["alarm: exec:false ended with exit status: 1"]);
        assert_eq!(
            alarms.notes(),
            [
                "actions ran for 1 late wake-up; 1 more within a minute after another",
                "alarm: exec:false ended with exit status: 1"
            ]
        );
    }
}
