//! Flags of every command that runs the measuring loop: the letters of cyclictest, with their
//! meaning.

use super::flags::{keyword, span};
use super::outputs::remark;
use super::run_flags::{RunFlags, ThreadFlags};
use crate::plan::intent::MeasureIntent;
use model::error::{Failure, Result};
use model::units::{Bare, Nanos};
use model::vocabulary::{IdleStates, SchedulePhase, WakeMechanism};

/// Maximum distance in intervals: a distance is meant for threads that beat against each other.
const LONGEST_DISTANCE: i128 = 100;

/// Subject, method and length of a measurement.
#[derive(clap::Args)]
pub struct MeasureFlags {
    #[command(flatten)]
    threading: ThreadFlags,
    /// Interval between wake-ups; a bare number is in us
    #[arg(short, long, value_name = "SPAN", default_value = "1000us", allow_hyphen_values = true)]
    #[arg(help_heading = "Measurement")]
    interval: String,
    /// Amount added to the interval for each further CPU; a bare number is in us
    #[arg(short, long, value_name = "SPAN", default_value = "0", allow_hyphen_values = true)]
    #[arg(help_heading = "Measurement")]
    distance: String,
    /// Duration; a bare number is in seconds; without -D and -l until Ctrl-C
    #[arg(short = 'D', long, value_name = "SPAN", allow_hyphen_values = true)]
    #[arg(help_heading = "Duration")]
    duration: Option<String>,
    /// Wake-ups per CPU; 0 means no limit, as in cyclictest
    #[arg(short, long, value_name = "N", allow_negative_numbers = true)]
    #[arg(help_heading = "Duration")]
    loops: Option<u64>,
    /// Sleep mechanism of the threads; choose the one that your application uses
    #[arg(long, value_name = "HOW", default_value = "nanosleep", value_parser = keyword::<WakeMechanism>())]
    #[arg(help_heading = "Sleep mechanism")]
    wake: WakeMechanism,
    /// Offset of the CPUs' schedules to each other
    #[arg(long, value_name = "HOW", default_value = "staggered", value_parser = keyword::<SchedulePhase>())]
    #[arg(help_heading = "Sleep mechanism")]
    phase: SchedulePhase,
    /// Idle states during the run [default: held]
    #[arg(long, value_name = "HOW", conflicts_with = "default_system", value_parser = keyword::<IdleStates>())]
    #[arg(help_heading = "Sleep mechanism")]
    idle: Option<IdleStates>,
    /// The same as --idle as-is
    #[arg(long)]
    #[arg(help_heading = "Sleep mechanism")]
    default_system: bool,
    #[command(flatten)]
    pub run: RunFlags,
    /// cyclictest's --mlockall: onbeat always locks its memory
    #[arg(short, long, hide = true)]
    mlockall: bool,
    /// cyclictest's old -n, and rtla's: onbeat always uses an absolute sleep, and counts in ns
    #[arg(short, long, hide = true)]
    nanosleep: bool,
    /// cyclictest's --smp: onbeat always measures one thread per CPU with one interval
    #[arg(short = 'S', long, hide = true)]
    smp: bool,
    /// cyclictest's --threads: onbeat always runs one thread per CPU; -a selects the CPUs
    #[arg(short, long, hide = true, num_args = 0..=1, value_name = "N")]
    threads: Option<Option<u32>>,
    /// cyclictest's --nsecs, rtla's --nano: onbeat always counts in ns
    #[arg(short = 'N', long, alias = "nano", hide = true)]
    nsecs: bool,
}

impl MeasureFlags {
    /// The intent of the flags; an error names the flag.
    pub fn intent(&self) -> Result<MeasureIntent> {
        Ok(MeasureIntent {
            cpus: self.threading.cpu_choice()?,
            interval: span("-i", &self.interval, Bare::Micros)?,
            distance: self.distance()?,
            policy: self.threading.policy()?,
            priority: self.threading.priority(),
            reservation: self.threading.reservation(),
            wake: self.wake,
            phase: self.phase,
            idle: if self.default_system { Some(IdleStates::AsIs) } else { self.idle },
            duration: self.duration.as_deref().map(|text| span("-D", text, Bare::Seconds)).transpose()?,
            loops: self.loops.filter(|&loops| loops > 0),
            limit: self.run.limit()?,
            housekeeping: self.run.housekeeping()?,
            threads: self.threads.flatten(),
        })
    }

    /// The distance; a value that can only be rtla's duration is refused.
    fn distance(&self) -> Result<Nanos> {
        let interval = span("-i", &self.interval, Bare::Micros)?;
        let distance = span("-d", &self.distance, Bare::Micros)?;
        if i128::from(distance.0) <= LONGEST_DISTANCE * i128::from(interval.0) {
            return Ok(distance);
        }
        Err(Failure::usage(format!(
            "invalid -d: {distance} is more than {LONGEST_DISTANCE} intervals. -d is the distance between \
             the threads' intervals; for the duration use -D {}",
            self.distance
        )))
    }

    /// Refuses a distance without a unit in a run without an end: rtla's -d 60 is a minute.
    pub fn check_end(&self) -> Result<()> {
        let is_bare = self.distance.bytes().all(|byte| byte.is_ascii_digit());
        if self.duration.is_some() || self.loops.is_some() || !is_bare || self.distance()? == Nanos(0) {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "-d is the distance between the threads' intervals, not the duration: use -D {0}, or give -D \
             with -d {0}us",
            self.distance
        )))
    }

    /// Prints one line for all flags of other tools whose effect is always there, and one for those
    /// that are written differently here.
    pub fn mention_needless_flags(&self) {
        let known = [
            (self.mlockall, "-m (memory is locked)"),
            (self.nanosleep, "-n (the sleep is absolute, and everything counted in ns)"),
            (self.smp, "-S (one thread per CPU, the same interval)"),
            (self.threads.is_some(), "-t (one thread per CPU of -a)"),
            (self.nsecs, "-N (everything is counted in ns)"),
        ];
        let given: Vec<&str> = known.iter().filter(|(given, _)| *given).map(|(_, words)| *words).collect();
        if !given.is_empty() {
            remark(&format!("onbeat: always in effect, not needed: {}", given.join(", ")));
        }
        self.threading.mention_policy();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::intent::CpuChoice;
    use clap::Parser;
    use model::units::Cpu;
    use model::vocabulary::Policy;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        flags: MeasureFlags,
    }

    fn intent(flags: &str) -> Result<MeasureIntent> {
        Only::try_parse_from(std::iter::once("onbeat").chain(flags.split_whitespace()))
            .map_err(|error| Failure::usage(error.to_string()))?
            .flags
            .intent()
    }

    #[test]
    fn flags_mean_what_cyclictest_s_do() {
        let intent = intent("-Smn -a0-1 -p98 -i200 -D1h -b150 -d500 -q").expect("cyclictest's flags");
        assert_eq!(intent.cpus, CpuChoice::Only([Cpu(0), Cpu(1)].into_iter().collect()));
        assert_eq!((intent.interval, intent.distance), (Nanos(200_000), Nanos(500_000)));
        assert_eq!((intent.priority, intent.duration), (Some(98), Some(Nanos(3_600_000_000_000))));
        assert_eq!(intent.limit, Some(Nanos(150_000)));
    }

    #[test]
    fn threads_may_be_counted_in_all_spellings() {
        for (flags, threads) in [
            ("-t", None),
            ("-t -n", None),
            ("--threads", None),
            ("-t2", Some(2)),
            ("-t 2 -n", Some(2)),
            ("--threads=2", Some(2)),
            ("--threads 2", Some(2)),
            ("-Smt2", Some(2)),
        ] {
            assert_eq!(intent(flags).expect(flags).threads, threads, "{flags}");
        }
        assert!(intent("-t two").is_err() && intent("-t-1").is_err());
    }

    #[test]
    fn all_and_all_but() {
        assert_eq!(intent("-a -t -n -p 80").expect("all").cpus, CpuChoice::All);
        assert_eq!(intent("").expect("all").cpus, CpuChoice::All);
        assert_eq!(intent("-a !0").expect("others").cpus, CpuChoice::AllBut([Cpu(0)].into_iter().collect()));
        assert!(intent("-a 3-1").is_err() && intent("-a 0,,2").is_err());
    }
    #[test]
    fn a_duration_of_rtla_s_is_no_distance() {
        let only =
            |flags: &str| Only::try_parse_from(["onbeat"].into_iter().chain(flags.split(' '))).unwrap().flags;
        for (flags, word) in
            [("-d 10s", "use -D 10s"), ("-d 1m -D 5m", "use -D 1m"), ("-d 100001", "use -D 100001")]
        {
            let said = intent(flags).expect_err(flags).message;
            assert!(said.contains(word), "{flags}: {said}");
        }
        assert_eq!(intent("-d 100ms").expect("100 intervals").distance, Nanos(100_000_000));
        assert!(only("-d 60").check_end().expect_err("no end").message.contains("use -D 60"));
        for flags in ["-d 0", "-d 60us", "-d 60 -D 1", "-d 60 -l 5", "-q"] {
            assert!(only(flags).check_end().is_ok(), "{flags}");
        }
    }

    #[test]
    fn a_priority_may_have_its_policy_as_rtla_s_has() {
        for (flags, policy, priority) in [
            ("-P f:95", Some(Policy::Fifo), 95),
            ("-Pf:95 --policy fifo", Some(Policy::Fifo), 95),
            ("--priority r:1", Some(Policy::Rr), 1),
            ("-P o:0", Some(Policy::Other), 0),
            ("-p 80", None, 80),
        ] {
            let intent = intent(flags).expect(flags);
            assert_eq!((intent.policy, intent.priority), (policy, Some(priority)), "{flags}");
        }
        let deadline = intent("-P d:500us:1ms").expect("a reservation");
        assert_eq!((deadline.policy, deadline.interval), (Some(Policy::Deadline), Nanos::MILLI));
        for (flags, word) in [
            ("-P d:500us", "d:RUNTIME"),
            ("-P d:2ms:1ms", "runtime <= deadline"),
            ("-P o:5", "o:0"),
            ("-P f:", "whole number"),
            ("-P x:5", "f:N"),
            ("-p f:1 --policy rr", "contradicts"),
        ] {
            let said = intent(flags).expect_err(flags).message;
            assert!(said.contains(word), "{flags}: {said}");
        }
    }
}
