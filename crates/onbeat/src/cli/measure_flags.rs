//! The flags of every command that runs the measuring loop: cyclictest's letters, with their
//! meaning.

use std::ffi::OsString;

use super::flags::{keyword, span};
use super::outputs::remark;
use super::run_flags::{RunFlags, ThreadFlags};
use crate::plan::intent::MeasureIntent;
use model::error::{Failure, Result};
use model::units::Bare;
use model::vocabulary::{IdleStates, SchedulePhase, WakeMechanism};

/// What is measured, how, and for how long.
#[derive(clap::Args)]
pub struct MeasureFlags {
    #[command(flatten)]
    threading: ThreadFlags,
    /// Interval; a bare number is in us
    #[arg(short, long, value_name = "SPAN", default_value = "1000us", allow_hyphen_values = true)]
    #[arg(help_heading = "What is measured")]
    interval: String,
    /// Added to the interval once per further CPU; a bare number is in us
    #[arg(short, long, value_name = "SPAN", default_value = "0", allow_hyphen_values = true)]
    #[arg(help_heading = "What is measured")]
    distance: String,
    /// How long; a bare number is in seconds; without -D and -l until Ctrl-C
    #[arg(short = 'D', long, value_name = "SPAN", allow_hyphen_values = true)]
    #[arg(help_heading = "How long")]
    duration: Option<String>,
    /// How many wake-ups per CPU; 0 is without end, as in cyclictest
    #[arg(short, long, value_name = "N", allow_negative_numbers = true)]
    #[arg(help_heading = "How long")]
    loops: Option<u64>,
    /// How a thread sleeps: what your task uses is what to measure
    #[arg(long, value_name = "HOW", default_value = "nanosleep", value_parser = keyword::<WakeMechanism>())]
    #[arg(help_heading = "How it sleeps")]
    wake: WakeMechanism,
    /// How the CPUs' schedules lie beside each other
    #[arg(long, value_name = "HOW", default_value = "staggered", value_parser = keyword::<SchedulePhase>())]
    #[arg(help_heading = "How it sleeps")]
    phase: SchedulePhase,
    /// Idle states during the run [default: held]
    #[arg(long, value_name = "HOW", conflicts_with = "default_system", value_parser = keyword::<IdleStates>())]
    #[arg(help_heading = "How it sleeps")]
    idle: Option<IdleStates>,
    /// The same as --idle as-is
    #[arg(long)]
    #[arg(help_heading = "How it sleeps")]
    default_system: bool,
    #[command(flatten)]
    pub run: RunFlags,
    /// cyclictest's --mlockall: onbeat always locks what it uses
    #[arg(short, long, hide = true)]
    mlockall: bool,
    /// cyclictest's old -n: onbeat always uses an absolute sleep
    #[arg(short, long, hide = true)]
    nanosleep: bool,
    /// cyclictest's --smp: onbeat always measures one thread per CPU with one interval
    #[arg(short = 'S', long, hide = true)]
    smp: bool,
    /// cyclictest's --threads: one thread per CPU is all there is; -a says on which
    #[arg(short, long, hide = true, num_args = 0..=1, value_name = "N")]
    threads: Option<Option<u32>>,
    /// cyclictest's --nsecs: onbeat always counts in ns
    #[arg(short = 'N', long, hide = true)]
    nsecs: bool,
}

/// Refuses `-h400`, which is cyclictest's histogram and would be parsed as the help flag here, in
/// all its spellings.
pub fn refuse_lookalikes(args: &[OsString]) -> Result<()> {
    // What is behind `--` are another program's.
    let own = args.iter().skip(1).take_while(|arg| *arg != "--");
    let args: Vec<_> = own.map(|arg| arg.to_string_lossy()).collect();
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let histogram = |(at, arg): (usize, &std::borrow::Cow<str>)| {
        let long = ["--histogram", "--histofall", "--histfile"].iter().any(|name| arg.starts_with(name));
        // A group of letters that ends in h or H, and a number in it or after it.
        let group = arg.strip_prefix('-').unwrap_or_default();
        let letters = group.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('=');
        let ends = letters.ends_with(['h', 'H']) && letters.bytes().all(|b| b.is_ascii_alphabetic());
        let here = number(group[letters.len()..].trim_start_matches('='));
        let next = letters.len() == group.len() && args.get(at + 1).is_some_and(|next| number(next));
        long || (ends && (here || next))
    };
    match args.iter().enumerate().find(|&(at, arg)| histogram((at, arg))) {
        None => Ok(()),
        Some((_, arg)) => Err(Failure::usage(format!(
            "{arg} is cyclictest's histogram, which onbeat always keeps: `onbeat measure --hist FILE` and `onbeat report RUN --hist FILE` write it, -h alone is help"
        ))),
    }
}

impl MeasureFlags {
    /// The flags as intent; what cannot be read is refused with its flag.
    pub fn intent(&self) -> Result<MeasureIntent> {
        Ok(MeasureIntent {
            cpus: self.threading.cpu_choice()?,
            interval: span("-i", &self.interval, Bare::Micros)?,
            distance: span("-d", &self.distance, Bare::Micros)?,
            policy: self.threading.policy,
            priority: self.threading.priority,
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

    /// One line for all flags of cyclictest's whose effect is always there.
    pub fn mention_needless_flags(&self) {
        let known = [
            (self.mlockall, "-m (memory is locked)"),
            (self.nanosleep, "-n (the sleep is absolute)"),
            (self.smp, "-S (one thread per CPU, one interval)"),
            (self.threads.is_some(), "-t (one thread per CPU of -a)"),
            (self.nsecs, "-N (everything is counted in ns)"),
        ];
        let given: Vec<&str> = known.iter().filter(|(given, _)| *given).map(|(_, words)| *words).collect();
        if !given.is_empty() {
            remark(&format!("onbeat: always so and not needed: {}", given.join(", ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::intent::CpuChoice;
    use clap::Parser;
    use model::units::{Cpu, Nanos};

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
    fn cyclictest_s_histogram_is_named_and_help_stays_help() {
        let check = |flag: &str| refuse_lookalikes(&["onbeat".into(), "measure".into(), flag.into()]);
        assert!(check("-h400").expect_err("refused").message.contains("--hist"));
        for flag in ["--histofall=400", "-h=400", "-qh400", "-H400"] {
            assert!(check(flag).is_err(), "{flag}");
        }
        let words = ["onbeat", "measure", "-mSqh", "400"].map(OsString::from);
        assert!(refuse_lookalikes(&words).is_err());
        assert!(check("-p80").is_ok() && check("-a0").is_ok());
        assert!(check("-h").is_ok() && check("--hist").is_ok() && check("--help").is_ok());
    }
}
