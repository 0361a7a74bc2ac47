//! `onbeat watch`.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use super::Environment;
use super::flags::positive_span;
use super::outputs::{Outputs, print, remark};
use super::running::block_signals;
use crate::alarm::{AlarmAction, Alarms};
use crate::watch::machine::{MachineReader, digest, threads_named};
use crate::watch::names::StackNames;
use crate::watch::unit::unit;
use crate::watch::{Watch, WatchEvent, WatchPlan, WatchResult, worst_of};
use ::load::size;
use bundle::record::write::{LEAST_SIZE, RecordWriter};
use host::{MachineFiles, capabilities};
use model::error::{Exit, Failure, Result};
use model::text::{clean, quoted, several};
use model::units::{Bare, Nanos};
use model::wall_time::wall_time;
use model::watch::{WatchInterval, WatchRun, WorstWakeup};
use recorder::{KernelRecorder, Options};

/// Fewer seconds would wake the machine more often than they show.
const SHORTEST: Nanos = Nanos(1_000_000_000);

/// Threads with histograms of their own.
const THREADS: usize = 64;

/// Record every wake-up of every real-time thread, for months
///
/// Beside the application as it runs, on a kernel as it is: how late each timer came (T),
/// how long the thread then waited for its CPU (W), and both together. Programs of a few hundred
/// instructions, made at run time and loaded into the kernel, count them in histograms per CPU; of
/// every interval the worst wake-ups are kept with victim, culprit and stack. Nothing is patched,
/// compiled or left behind: the programs are gone when this process is, whatever ends it.
///
/// The record is a folder of at most --size, one flush to the disk per interval. When it is full
/// old intervals are merged to hours and days, and the oldest histograms go first; worst cases
/// stay. `onbeat report DIR` shows it, also while it is being written.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
        onbeat watch                                        until Ctrl-C, an interval each 5 minutes\n  \
        onbeat watch -D 1h --interval 1m -o hour\n  \
        onbeat watch --threads control,1234                 with histograms of these threads, too\n  \
        onbeat watch --alarm 200us --on-alarm 'exec:/usr/local/bin/tell-me'\n  \
        onbeat watch --unit >/etc/systemd/system/onbeat-watch.service")]
pub struct Args {
    /// The folder of the record [default: watch in the folder of the state]
    #[arg(short = 'o', long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// How often what was counted goes to the disk; a bare number is in seconds
    #[arg(long, value_name = "SPAN", default_value = "5m", allow_hyphen_values = true)]
    interval: String,
    /// How long; a bare number is in seconds; until a signal by default
    #[arg(short = 'D', long, value_name = "SPAN", allow_hyphen_values = true)]
    duration: Option<String>,
    /// Threads with histograms of their own, by number or name; at most 64
    #[arg(long, value_name = "THREADS", value_delimiter = ',')]
    threads: Vec<String>,
    /// The most that the record may take, in bytes or with KiB, MiB or GiB
    #[arg(long, value_name = "BYTES", default_value = "64MiB")]
    size: String,
    /// The latency from which on --on-alarm is done; a bare number is in us
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    alarm: Option<String>,
    /// What is done then, at most once a minute: exec:PROGRAM ARGS, signal:NAME:PID, trace-off;
    /// may be given several times
    #[arg(long, value_name = "ACTION", requires = "alarm")]
    on_alarm: Vec<String>,
    /// Print a systemd unit that runs this, and do nothing
    #[arg(long)]
    unit: bool,
    /// Only the result, no remarks
    #[arg(short, long)]
    quiet: bool,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let mut outputs = Outputs::of(&[], environment)?;
    let asked = Asked::of(args)?;
    if args.unit {
        print(asked.unit(args)?.as_bytes())?;
        return outputs.end(Exit::Ok);
    }
    let folder = args.output.clone().unwrap_or_else(|| environment.runs().with_file_name("watch"));
    block_signals()?;
    // Refused before anything is made on the disk.
    let recorder = KernelRecorder::arm(&Options { chosen_limit: asked.chosen(), ..Options::default() })?;
    let (writer, repaired) = RecordWriter::open_folder(&folder, asked.size)?;
    let (stacks, missing) = StackNames::open();
    let mut remarks = repaired;
    remarks.extend(missing);
    remarks.extend(about(&recorder));
    let beside = MachineReader::new();
    let host = beside.host();
    let plan =
        WatchPlan { interval: asked.interval, duration: asked.duration, run: asked.run(&host.release) };
    let alarms = Alarms::new(asked.alarm, asked.actions.clone(), folder.display().to_string());
    let mut watch = Watch { plan, recorder, writer, stacks, beside, alarms, alarmed: Nanos(0), host };
    remarks.extend(choose(&mut watch.recorder, &args.threads)?);
    remarks.extend(give_up_rights(&asked.actions));
    let shows = !args.quiet;
    remarks.iter().filter(|_| shows).for_each(|line| remark(&format!("onbeat: {line}")));
    let follows = shows && io::stderr().is_terminal() && !environment.dumb;
    if shows {
        remark(&format!("onbeat: recording to {}; Ctrl-C ends it, and keeps all", quoted(&folder)));
    }
    let result = watch.run(|event| match event {
        WatchEvent::Interval(interval) if follows => remark(&line_of(interval)),
        WatchEvent::Interval(_) => {}
        // Also with -q: an alarm is what it is for, and a loss is never silent.
        WatchEvent::Remark(line) => remark(&format!("onbeat: {line}")),
    })?;
    outputs.print(&summary(&result, &quoted(&folder)));
    match () {
        () if result.unwritten > 0 => outputs.end(Exit::Ok).and(Err(Failure {
            exit: Exit::Internal,
            message: format!(
                "{} could not be written: make room in {}, or lower --size",
                several(result.unwritten, "interval", "intervals"),
                quoted(&folder)
            ),
        })),
        () if result.stopped => outputs.end(Exit::Interrupted),
        () => outputs.end(Exit::Ok),
    }
}

/// The flags as values.
struct Asked {
    interval: Nanos,
    duration: Option<Nanos>,
    size: u64,
    alarm: Option<Nanos>,
    actions: Vec<AlarmAction>,
    threads: usize,
}

impl Asked {
    fn of(args: &Args) -> Result<Asked> {
        let interval = positive_span("--interval", &args.interval, Bare::Seconds)?;
        if interval < SHORTEST {
            return Err(Failure::usage(format!("--interval: at least 1 s, not {interval}")));
        }
        let span = |name: &str, text: &Option<String>, bare| {
            text.as_deref().map(|text| positive_span(name, text, bare)).transpose()
        };
        let action = |text: &String| {
            text.parse::<AlarmAction>().map_err(|why| Failure::usage(format!("--on-alarm: {why}")))
        };
        if args.threads.len() > THREADS {
            let message = format!("--threads: at most {THREADS}, not {}", args.threads.len());
            return Err(Failure::usage(message));
        }
        Ok(Asked {
            interval,
            duration: span("-D", &args.duration, Bare::Seconds)?,
            size: size_of(&args.size)?,
            alarm: span("--alarm", &args.alarm, Bare::Micros)?,
            actions: args.on_alarm.iter().map(action).collect::<Result<_>>()?,
            threads: args.threads.len(),
        })
    }

    /// Room for histograms of threads: none where none is chosen, which is kernel memory.
    fn chosen(&self) -> usize {
        if self.threads == 0 { 0 } else { THREADS }
    }

    /// What histograms may be added up with.
    fn run(&self, release: &str) -> WatchRun {
        let plan = format!("watch {release}");
        let boot = MachineFiles::live().read_text("/proc/sys/kernel/random/boot_id");
        WatchRun {
            boot: boot.known().map(|boot| boot.trim().to_owned()).unwrap_or_default(),
            plan: format!("{:016x}", digest(plan.as_bytes())),
            interval_ns: self.interval,
            ..WatchRun::default()
        }
    }

    fn unit(&self, args: &Args) -> Result<String> {
        let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/usr/bin/onbeat"));
        let folder = args.output.clone().unwrap_or_else(|| PathBuf::from("/var/lib/onbeat/watch"));
        let text = |path: PathBuf| {
            path.into_os_string().into_string().map_err(|path: OsString| {
                Failure::usage(format!(
                    "{} is not UTF-8: a unit cannot name it",
                    quoted(std::path::Path::new(&path))
                ))
            })
        };
        let mut line = vec!["watch".to_owned(), "-o".into(), text(folder)?];
        let mut flag = |name: &str, value: &str| line.extend([name.to_owned(), value.to_owned()]);
        flag("--interval", &args.interval);
        flag("--size", &args.size);
        if let Some(duration) = &args.duration {
            flag("-D", duration);
        }
        if !args.threads.is_empty() {
            flag("--threads", &args.threads.join(","));
        }
        if let Some(alarm) = &args.alarm {
            flag("--alarm", alarm);
        }
        args.on_alarm.iter().for_each(|action| flag("--on-alarm", action));
        Ok(unit(&text(program)?, &line, !self.actions.is_empty()))
    }
}

fn size_of(text: &str) -> Result<u64> {
    let bytes = size::parse(text).map_err(|why| Failure::usage(format!("--size: {why}")))?;
    if bytes < LEAST_SIZE {
        let least = size::text(LEAST_SIZE);
        return Err(Failure::usage(format!(
            "--size: a record takes at least {least}, not {}",
            size::text(bytes)
        )));
    }
    Ok(bytes)
}

/// What of the recorder is not as it could be.
fn about(recorder: &KernelRecorder) -> Vec<String> {
    let about = recorder.about();
    let mut lines = Vec::new();
    if let Some(why) = &about.why_not_types {
        lines.push(format!(
            "events are read by their formats, which loses wake-ups while programs of others run: {why}"
        ));
    }
    if !about.unlearned.is_empty() {
        lines
            .push(format!("no T for what sleeps by {}: its timer was not found", about.unlearned.join(", ")));
    }
    if !about.sees_suspends {
        lines.push("a latency may hold a suspend: this kernel does not tell of them".into());
    }
    if !about.compiled {
        let cost = "the kernel interprets the programs, at about six times the cost";
        lines.push(format!("{cost}: sysctl net.core.bpf_jit_enable=1"));
    }
    if about.other_numbers {
        lines.push("in a PID namespace threads have other numbers: coverage is unknown".into());
    }
    lines
}

/// Chooses threads by number and by name; what was not found is said.
fn choose(recorder: &mut KernelRecorder, wanted: &[String]) -> Result<Vec<String>> {
    let mut remarks = Vec::new();
    let mut left = THREADS;
    for word in wanted {
        let found = match word.parse::<u32>() {
            Ok(tid) => vec![tid],
            Err(_) => threads_named(&MachineFiles::live(), word),
        };
        if found.is_empty() {
            remarks.push(format!("no thread is called {}", clean(word)));
        }
        for tid in found {
            if left == 0 {
                remarks.push(format!(
                    "more than {THREADS} threads are called so: the rest is in its CPU's histogram"
                ));
                return Ok(remarks);
            }
            recorder.choose(tid)?;
            left -= 1;
        }
    }
    Ok(remarks)
}

/// Gives up what is not needed any more; what an alarm does may take any of it.
fn give_up_rights(actions: &[AlarmAction]) -> Option<String> {
    if !actions.is_empty() {
        return None;
    }
    capabilities::keep_only(&[]).err().map(|error| format!("keeps all capabilities: {error}"))
}

/// An interval in a line.
fn line_of(interval: &WatchInterval) -> String {
    let at = wall_time(interval.wall_ns + interval.span_ns);
    match worst_of(interval) {
        None => format!("{at}: no wake-up of a real-time thread"),
        Some(worst) => format!("{at}: {}", sentence(worst)),
    }
}

fn sentence(worst: &WorstWakeup) -> String {
    let culprit = match worst.culprit.name.as_str() {
        "" => "culprit unknown".to_owned(),
        name => format!("by {}", clean(name)),
    };
    let cpu = worst.cpu.map_or_else(|| "a CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    format!("worst {} ({} on {cpu}, {culprit})", worst.total(), clean(&worst.victim.comm))
}

fn summary(result: &WatchResult, folder: &str) -> String {
    let intervals = several(result.intervals, "interval", "intervals");
    let worst = result.worst.as_ref().map_or_else(
        || "no real-time thread woke up".to_owned(),
        |worst| format!("{}, {}", several(result.recorded, "wake-up", "wake-ups"), sentence(worst)),
    );
    format!("{worst}; {intervals} kept in {folder}\nonbeat report {folder}    shows them\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bundle::record::write::DEFAULT_SIZE;

    #[test]
    fn the_default_size_is_that_of_the_record() {
        assert_eq!(size::parse("64MiB").unwrap(), DEFAULT_SIZE);
    }

    #[test]
    fn the_result_is_a_sentence() {
        let result = WatchResult { intervals: 2, ..WatchResult::default() };
        assert_eq!(
            summary(&result, "w"),
            "no real-time thread woke up; 2 intervals kept in w\nonbeat report w    shows them\n"
        );
        let worst = WorstWakeup {
            wakeup_ns: Some(Nanos(1_200_000)),
            cpu: Some(model::units::Cpu(1)),
            victim: model::watch::WatchTask { comm: "control".into(), ..Default::default() },
            ..WorstWakeup::default()
        };
        let result = WatchResult { recorded: 5, worst: Some(worst), ..result };
        assert!(
            summary(&result, "w")
                .starts_with("5 wake-ups, worst 1.20 ms (control on CPU 1, culprit unknown); "),
            "{}",
            summary(&result, "w")
        );
    }
}
