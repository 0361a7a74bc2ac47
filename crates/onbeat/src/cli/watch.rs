//! `onbeat watch`.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use super::Environment;
use super::flags::{labels, positive_span, process_id};
use super::outputs::{OutputFlags, Outputs, print, remark};
use super::running::block_signals;
use super::watch_way::{RecordWay, about, give_up_rights, keep_after, reading, remove_leftovers};
use crate::alarm::{AlarmAction, Alarms};
use crate::watch::chosen::{ChosenThreads, THREADS};
use crate::watch::machine::MachineReader;
use crate::watch::names::StackNames;
use crate::watch::unit::{FOLDER, WatchUnit};
use crate::watch::{Watch, WatchEvent, WatchPlan, worst_of};
use bundle::environment::digest;
use bundle::record::write::{LEAST_SIZE, RecordWriter};
use host::tracefs::remove_after;
use host::{MachineFiles, ProcessId, clock, rt};
use model::error::{Exit, Failure, Result, json};
use model::labels::Labels;
use model::size;
use model::text::{clean, quoted, several};
use model::units::{Bare, Nanos};
use model::wall_time::wall_time;
use model::watch::{WatchInterval, WatchRun, WorstWakeup};
use recorder::{Options, Reading, WakeupRecorder};
use report::last_lines::RunPlace;
use report::watch::last_words;
use report::words::MachineClock;
use study::recorded::record;
use trace::timeline::is_virtual;

/// Minimum interval: a shorter one would wake the machine more often than it shows.
const SHORTEST: Nanos = Nanos(1_000_000_000);

/// Monitor the wake-ups of all real-time threads for months
///
/// Measures a running application on an unmodified kernel: how late each timer fired (T), how long
/// the thread then waited for its CPU (W), and both together. Small programs, generated at run time
/// and loaded into the kernel (BPF), count them in histograms per CPU; for each interval the worst
/// wake-ups are stored with victim, culprit and stack. If the kernel cannot load such programs,
/// events go to a private trace ring, which is read and counted here. Nothing is patched, compiled
/// or left behind: everything is removed when this process ends, however it ends.
///
/// The record is a folder of at most --size, written to disk once per interval. When it is full,
/// old intervals are merged to hours and days, and the oldest histograms are deleted first; worst
/// cases stay. `onbeat report DIR` shows it, also while it is being written.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
        onbeat watch                                        until Ctrl-C, an interval each 5 minutes\n  \
        onbeat watch -D 1h --interval 1m -o hour\n  \
        onbeat watch --threads control,1234                 with separate histograms for these threads\n  \
        onbeat watch --alarm 200us --on-alarm 'exec:/usr/local/bin/tell-me'\n  \
        onbeat watch --unit >/etc/systemd/system/onbeat-watch.service")]
pub struct Args {
    /// Folder of the record; by default ~/.local/state/onbeat/watch
    #[arg(short = 'o', long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Interval between writes to the disk; a bare number is in seconds
    #[arg(long, value_name = "SPAN", default_value = "5m", allow_hyphen_values = true)]
    interval: String,
    /// Duration; a bare number is in seconds; until a signal by default
    #[arg(short = 'D', long, value_name = "SPAN", allow_hyphen_values = true)]
    duration: Option<String>,
    /// Threads with separate histograms, by number or name; at most 64
    #[arg(long, value_name = "THREADS", value_delimiter = ',')]
    threads: Vec<String>,
    /// Also record S, the time of the switch to the thread (Linux from about 6.15 with BTF); this
    /// adds cost to every context switch
    #[arg(long)]
    switch: bool,
    /// Largest size of the record, in bytes or with KiB, MiB or GiB
    #[arg(long, value_name = "BYTES", default_value = "64MiB")]
    size: String,
    /// Label of the rows, as build=123; may be given several times, at most 16
    #[arg(long, value_name = "LABEL")]
    label: Vec<String>,
    /// Latency that triggers --on-alarm, for user-space threads only; a bare number is in us
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    alarm: Option<String>,
    /// Action at an alarm, at most once a minute: exec:PROGRAM ARGS, signal:NAME:PID, trace-off;
    /// may be given several times; a program still running when the watch ends is ended, with all
    /// processes that it started, daemons included
    #[arg(long, value_name = "ACTION", requires = "alarm")]
    on_alarm: Vec<String>,
    /// Recording method [default: the first of these that works]
    #[arg(long, value_enum, value_name = "WAY")]
    by: Option<RecordWay>,
    /// Print a systemd unit for this command, and exit
    #[arg(long, conflicts_with = "json")]
    unit: bool,
    #[command(flatten)]
    flags: OutputFlags,
    /// Remove the trace ring when this process has ended
    #[arg(long, hide = true, value_name = "PID/START", value_parser = process_id)]
    keep: Option<ProcessId>,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    if let Some(owner) = args.keep {
        return remove_after(owner).map(|()| Exit::Ok).map_err(|error| {
            let what = "cannot remove the trace ring of an earlier watch";
            Failure::of_call(what, &error, Exit::Internal, "start onbeat watch again to remove it")
        });
    }
    let mut outputs = Outputs::of(&[&args.flags.json], environment)?;
    let asked = Asked::of(args)?;
    if args.unit {
        print_unit(&asked, args)?;
        return outputs.end(Exit::Ok);
    }
    asked.actions.iter().try_for_each(|action| action.check("--on-alarm"))?;
    let folder = args.output.clone().unwrap_or_else(|| environment.runs().with_file_name("watch"));
    block_signals()?;
    // Refused before anything is created on the disk.
    let mut remarks: Vec<String> = remove_leftovers().into_iter().collect();
    let chosen_limit = asked.chosen();
    let switch = args.switch;
    let beside = MachineReader::new();
    let host = beside.host();
    // Stops of a virtual machine are not always counted as steal.
    let housekeeping = rt::affinity().ok().and_then(|cpus| cpus.iter().next());
    let pulse = housekeeping.filter(|_| is_virtual(&host));
    let options = Options { reading: reading(args.by), chosen_limit, switch, pulse, ..Options::default() };
    let mut recorder = WakeupRecorder::arm(&options)?;
    remarks.extend(keep_after(recorder.about()));
    let (chosen, unknown) = ChosenThreads::choose(&mut recorder, &args.threads)?;
    remarks.extend(unknown);
    let (writer, repaired) = RecordWriter::open_folder(&folder, asked.size)?;
    let by_ring = recorder.about().reading == Reading::Ring;
    // Events of a ring have no stacks.
    let (stacks, missing) = if by_ring { (StackNames::none(), Vec::new()) } else { StackNames::open() };
    remarks.extend(repaired.into_iter().chain(missing));
    remarks.extend(about(recorder.about()));
    let plan = WatchPlan {
        interval: asked.interval,
        duration: asked.duration,
        run: watch_run(&host.release, by_ring, asked.interval, asked.labels.clone()),
    };
    let alarms = Alarms::new(asked.alarm, asked.actions.clone(), folder.display().to_string());
    let watch = Watch { plan, recorder, writer, stacks, beside, alarms, alarmed: Nanos(0), host, chosen };
    remarks.extend(give_up_rights(&asked.actions));
    let shows = !args.flags.quiet;
    remarks.iter().filter(|_| shows).for_each(|line| remark(&format!("onbeat: {line}")));
    let follows = shows && io::stderr().is_terminal() && !environment.dumb;
    if shows {
        remark(&format!(
            "onbeat: recording to {}; Ctrl-C ends the recording and keeps the data",
            quoted(&folder)
        ));
    }
    let result = watch.run(|event| match event {
        WatchEvent::Interval(interval) if follows => remark(&line_of(interval)),
        WatchEvent::Interval(_) => {}
        // Also with -q: an alarm was requested, and a loss is always reported.
        WatchEvent::Remark(line) => remark(&format!("onbeat: {line}")),
    })?;
    let (path, screen) = (quoted(&folder), outputs.screen_now(environment));
    let program = environment.program(&folder);
    let place = RunPlace { path: &path, newest: false, fresh: true, program };
    outputs.print(&last_words::render(&result.found, place, screen.columns, screen.color));
    outputs.write(&args.flags.json, || Ok(json(&record(&folder)?)? + "\n"));
    match () {
        () if result.unwritten > 0 => outputs.end(Exit::Ok).and(Err(unwritten(result.unwritten, &folder))),
        () if result.stopped => outputs.end(Exit::Interrupted),
        () => outputs.end(Exit::Ok),
    }
}

fn unwritten(intervals: u64, folder: &Path) -> Failure {
    let intervals = several(intervals, "interval", "intervals");
    let message =
        format!("{intervals} could not be written: free space in {}, or lower --size", quoted(folder));
    Failure { exit: Exit::Internal, message }
}

/// Prints the unit, and remarks on it to standard error.
fn print_unit(asked: &Asked, args: &Args) -> Result<()> {
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/usr/bin/onbeat"));
    let (text, remarks) = asked.unit(args, program)?;
    print(text.as_bytes())?;
    let lines = remarks.iter().filter(|_| !args.flags.quiet);
    lines.for_each(|line| remark(&format!("onbeat: {line}")));
    Ok(())
}

/// Unit that `onbeat watch --unit` of a program elsewhere prints, for packages.
pub fn default_unit(program: &str) -> Result<String> {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }
    let line = <Line as clap::Parser>::try_parse_from(["watch"]);
    let args = line.map_err(|error| Failure::internal(error.to_string()))?.args;
    Asked::of(&args)?.unit(&args, PathBuf::from(program)).map(|(text, _)| text)
}

/// Values of the flags.
struct Asked {
    interval: Nanos,
    duration: Option<Nanos>,
    size: u64,
    labels: Labels,
    alarm: Option<Nanos>,
    actions: Vec<AlarmAction>,
    threads: usize,
}

impl Asked {
    fn of(args: &Args) -> Result<Asked> {
        let interval = positive_span("--interval", &args.interval, Bare::Seconds)?;
        if interval < SHORTEST {
            return Err(Failure::usage(format!("invalid --interval {interval}: expected at least 1 s")));
        }
        let span = |name: &str, text: &Option<String>, bare| {
            text.as_deref().map(|text| positive_span(name, text, bare)).transpose()
        };
        let action = |text: &String| {
            text.parse::<AlarmAction>().map_err(|why| Failure::usage(format!("--on-alarm: {why}")))
        };
        if args.threads.iter().any(|name| name.trim().is_empty()) {
            return Err(Failure::usage("invalid --threads: expected numbers or names"));
        }
        if args.threads.len() > THREADS {
            let message =
                format!("invalid --threads: expected at most {THREADS}, not {}", args.threads.len());
            return Err(Failure::usage(message));
        }
        Ok(Asked {
            interval,
            duration: span("-D", &args.duration, Bare::Seconds)?,
            size: size_of(&args.size)?,
            labels: labels(&args.label)?,
            alarm: span("--alarm", &args.alarm, Bare::Micros)?,
            actions: args.on_alarm.iter().map(action).collect::<Result<_>>()?,
            threads: args.threads.len(),
        })
    }

    /// Number of threads to reserve histograms for: 0 if none is chosen, as it is kernel memory.
    fn chosen(&self) -> usize {
        if self.threads == 0 { 0 } else { THREADS }
    }

    /// The unit, and remarks on it.
    fn unit(&self, args: &Args, program: PathBuf) -> Result<(String, Vec<String>)> {
        let given = args.output.clone().unwrap_or_else(|| PathBuf::from(FOLDER));
        // Services start in another folder.
        let folder = std::path::absolute(&given).map_err(|error| {
            let what = format!("cannot find the path of {}", quoted(&given));
            Failure::of_call(what, &error, Exit::Usage, "give an absolute path with -o")
        })?;
        let text = |path: PathBuf| {
            path.into_os_string().into_string().map_err(|path: OsString| {
                let path = quoted(Path::new(&path));
                Failure::usage(format!("{path} is not UTF-8: a unit cannot contain it"))
            })
        };
        let (program, folder) = (text(program)?, text(folder)?);
        let mut line = vec!["watch".to_owned(), "-o".into(), folder.clone()];
        let mut flag = |name: &str, value: &str| line.extend([name.to_owned(), value.to_owned()]);
        flag("--interval", &args.interval);
        flag("--size", &args.size);
        args.label.iter().for_each(|label| flag("--label", label));
        if let Some(duration) = &args.duration {
            flag("-D", duration);
        }
        if !args.threads.is_empty() {
            flag("--threads", &args.threads.join(","));
        }
        if let Some(way) = args.by {
            flag("--by", way.name());
        }
        if let Some(alarm) = &args.alarm {
            flag("--alarm", alarm);
        }
        args.on_alarm.iter().for_each(|action| flag("--on-alarm", action));
        line.extend(args.switch.then(|| "--switch".to_owned()));
        let keeps_rights = !self.actions.is_empty();
        let unit = WatchUnit { program: &program, arguments: &line, folder: &folder, keeps_rights };
        Ok((unit.text(), unit.remarks()))
    }
}

/// Description of the record; only histograms with the same one are added up.
pub(super) fn watch_run(release: &str, by_ring: bool, interval: Nanos, labels: Labels) -> WatchRun {
    let plan = format!("watch {release}{}", if by_ring { " by ring" } else { "" });
    let boot = MachineFiles::live().read_text("/proc/sys/kernel/random/boot_id");
    WatchRun {
        boot: boot.known().map(|boot| boot.trim().to_owned()).unwrap_or_default(),
        plan: format!("{:016x}", digest(plan.as_bytes())),
        interval_ns: interval,
        utc_offset_s: offset_now(),
        labels,
        ..WatchRun::default()
    }
}

fn size_of(text: &str) -> Result<u64> {
    let bytes = size::parse(text).map_err(|why| Failure::usage(format!("--size: {why}")))?;
    if bytes < LEAST_SIZE {
        let least = size::text(LEAST_SIZE);
        return Err(Failure::usage(format!(
            "invalid --size: expected at least {least}, not {}",
            size::text(bytes)
        )));
    }
    Ok(bytes)
}

/// Present offset of this machine's clock from UTC.
fn offset_now() -> Option<i32> {
    let now = clock::monotonic() + clock::wall_offset();
    clock::utc_offset_s(now.0 / Nanos::SECOND.0)
}

/// An interval in one line.
fn line_of(interval: &WatchInterval) -> String {
    let clock = MachineClock::new("", offset_now());
    let at = format!("{} {}", clock.second(&wall_time(interval.wall_ns + interval.span_ns)), clock.zone());
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

#[cfg(test)]
mod tests {
    use super::*;
    use bundle::record::write::DEFAULT_SIZE;

    #[test]
    fn the_default_size_is_that_of_the_record() {
        assert_eq!(size::parse("64MiB").unwrap(), DEFAULT_SIZE);
    }
}
