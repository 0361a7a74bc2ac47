//! `onbeat top`.

use super::Environment;
use super::flags::{cpu_list, positive_span};
use super::outputs::print;
use super::run_flags::ThreadFlags;
use super::top_own::PreparedOwn;
use super::top_recorder::RecorderSource;
use super::top_view::{TopSource, TopView};
use super::watch::watch_run;
use super::watch_way::{RecordWay, about, give_up_rights, keep_after, reading, remove_leftovers};
use crate::plan::intent::MeasureIntent;
use crate::top::state::TopState;
use crate::watch::chosen::ChosenThreads;
use crate::watch::machine::MachineReader;
use crate::watch::names::StackNames;
use host::{ScreenConsole, clock, rt};
use model::error::{Exit, Failure, Result};
use model::labels::Labels;
use model::units::{Bare, Nanos};
use model::vocabulary::{SchedulePhase, WakeMechanism};
use recorder::layout::THREADS_LIMIT;
use recorder::{About, Options, Reading, WakeupRecorder};
use trace::timeline::is_virtual;

/// Show CPUs and real-time threads live, with their latencies and culprits
///
/// Draws once a second what `onbeat watch` counts: for each CPU and real-time thread the largest
/// latency of the last second, minimum, mean, p99, maximum with its parts T (timer) and W (wait for
/// the CPU), wake-ups a second, the last minute, and the culprit of the maximum. With --own it
/// shows threads of onbeat as `onbeat measure` runs them, one per CPU, with missed slots. Press ?
/// for the keys. Nothing is stored unless S is pressed.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
        onbeat top                        every real-time thread of this machine\n  \
        onbeat top --threads control      histograms for the threads of this program\n  \
        onbeat top --own -a 2-3 -i 250    threads of onbeat on two CPUs")]
pub struct Args {
    /// Measure with onbeat's own threads, as `onbeat measure`
    #[arg(long)]
    own: bool,
    #[command(flatten)]
    threading: ThreadFlags,
    /// Interval between wake-ups with --own [default: 1000us]; a bare number is in us
    #[arg(short, long, value_name = "SPAN", allow_hyphen_values = true)]
    #[arg(help_heading = "Measurement")]
    interval: Option<String>,
    /// CPUs for onbeat's own thread; by default unmeasured CPUs, if there are any
    #[arg(long, value_name = "CPUS")]
    #[arg(help_heading = "Measurement")]
    housekeeping: Option<String>,
    /// Duration; a bare number is in seconds; until q by default
    #[arg(short = 'D', long, value_name = "SPAN", allow_hyphen_values = true)]
    duration: Option<String>,
    /// Threads with histograms, by number or name, at most 64; by default the first 64
    #[arg(long, value_name = "THREADS", value_delimiter = ',', conflicts_with = "own")]
    threads: Vec<String>,
    /// Recording method [default: the first of these that works]
    #[arg(long, value_enum, value_name = "WAY", conflicts_with = "own")]
    by: Option<RecordWay>,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    args.check()?;
    let duration =
        args.duration.as_deref().map(|text| positive_span("-D", text, Bare::Seconds)).transpose()?;
    if environment.dumb || !ScreenConsole::is_there() {
        return Err(Failure::usage(
            "onbeat top needs a terminal with cursor control: without one, record with onbeat watch, or \
             measure with onbeat measure",
        ));
    }
    if args.own { args.show_own(duration, environment) } else { args.show_recorder(duration, environment) }
}

impl Args {
    fn check(&self) -> Result<()> {
        let threading = &self.threading;
        let of_own = threading.cpus.is_some()
            || threading.priority().is_some()
            || threading.policy()?.is_some()
            || self.interval.is_some()
            || self.housekeeping.is_some();
        if of_own && !self.own {
            return Err(Failure::usage(
                "-a, -p, --policy, -i and --housekeeping are for onbeat's own threads: add --own",
            ));
        }
        Ok(())
    }

    fn intent(&self) -> Result<MeasureIntent> {
        let interval = self.interval.as_deref().unwrap_or("1000us");
        let housekeeping = self.housekeeping.as_deref().map(|text| cpu_list("--housekeeping", text));
        Ok(MeasureIntent {
            cpus: self.threading.cpu_choice()?,
            interval: positive_span("-i", interval, Bare::Micros)?,
            distance: Nanos(0),
            policy: self.threading.policy()?,
            priority: self.threading.priority(),
            reservation: self.threading.no_reservation("top")?,
            wake: WakeMechanism::Nanosleep,
            phase: SchedulePhase::Staggered,
            idle: None,
            duration: None,
            loops: None,
            limit: None,
            housekeeping: housekeeping.transpose()?,
            threads: None,
        })
    }

    fn show_own(&self, duration: Option<Nanos>, environment: &Environment) -> Result<Exit> {
        let prepared = PreparedOwn::of(self.intent()?, environment)?;
        let console = open_console()?;
        let mut source = prepared.start()?;
        let mut state = TopState::new("own threads".into());
        let shown = view(&console, &mut source, &mut state, duration, environment);
        // Also after a failure: the threads end before the terminal comes back.
        let ended = source.end();
        drop(console);
        print_saved(&state)?;
        match (shown?, ended?) {
            (Exit::Ok, ended) => Ok(ended),
            (shown, _) => Ok(shown),
        }
    }

    fn show_recorder(&self, duration: Option<Nanos>, environment: &Environment) -> Result<Exit> {
        let mut remarks: Vec<String> = remove_leftovers().into_iter().collect();
        let host = MachineReader::new().host();
        // First of all: a thread that starts before the signals are blocked would receive them.
        let console = open_console()?;
        // Stops of a virtual machine are not always counted as steal.
        let housekeeping = rt::affinity().ok().and_then(|cpus| cpus.iter().next());
        let pulse = housekeeping.filter(|_| is_virtual(&host));
        let options = Options {
            reading: reading(self.by),
            chosen_limit: THREADS_LIMIT,
            pulse,
            each: true,
            ..Options::default()
        };
        let mut recorder = WakeupRecorder::arm(&options)?;
        remarks.extend(keep_after(recorder.about()));
        remarks.extend(ChosenThreads::choose(&mut recorder, &self.threads)?.1);
        remarks.extend(about(recorder.about()));
        let by_ring = recorder.about().reading == Reading::Ring;
        // Events of a ring have no stacks.
        let (stacks, _) = if by_ring { (StackNames::none(), Vec::new()) } else { StackNames::open() };
        remarks.extend(give_up_rights(&[]));
        let mut state = TopState::new(title(recorder.about()).into());
        state.cost.kernel_bytes = recorder.about().kernel_memory;
        // One that fits the last line; `watch` prints all of them.
        state.message = remarks.into_iter().next().unwrap_or_default();
        let run = watch_run(&host.release, by_ring, Nanos::SECOND, Labels::default());
        let folder = environment.runs().with_file_name("top");
        let chooses = self.threads.is_empty();
        let mut source = RecorderSource::new(recorder, stacks, host, run, folder, chooses);
        rt::release_code_pages(); // what armed the recorder
        let shown = view(&console, &mut source, &mut state, duration, environment);
        drop(console);
        print_saved(&state)?;
        shown
    }
}

fn print_saved(state: &TopState) -> Result<()> {
    let lines: String = state.saved.iter().map(|line| format!("{line}\n")).collect();
    print(lines.as_bytes())
}

fn view(
    console: &ScreenConsole,
    source: &mut dyn TopSource,
    state: &mut TopState,
    duration: Option<Nanos>,
    environment: &Environment,
) -> Result<Exit> {
    let until = duration.map(|duration| clock::monotonic() + duration);
    TopView { console, source, state, color: !environment.no_color, until }.run()
}

fn open_console() -> Result<ScreenConsole> {
    let opened = ScreenConsole::open();
    opened.map_err(|error| {
        Failure::of_call("cannot set up the terminal", &error, Exit::Internal, "open another terminal")
    })
}

fn title(about: &About) -> &'static str {
    match about.reading {
        Reading::Ring => "all wake-ups, by a trace ring",
        Reading::Format => "all wake-ups, by BPF and formats",
        Reading::Best | Reading::Types => "all wake-ups, by BPF",
    }
}
