//! `onbeat probe hw`.

use std::path::PathBuf;
use std::sync::Arc;

use super::probe_flags::ProbeFlags;
use super::spin::{leave_a_cpu, refuse_without_end};
use super::{KeptRun, finish, measured, traced};
use crate::cli::Environment;
use crate::cli::flags::{keyword, positive_span};
use crate::cli::outputs::Outputs;
use crate::cli::running::{PreparedRun, prepare_run};
use crate::cli::tracer_files::{self, OsnoiseWish};
use crate::measure::task::ThreadBody;
use crate::plan::{MeasureIntent, MeasurePlan, ProbePlan, SamplingWindow};
use crate::probe::gap_list::GapList;
use crate::probe::hwlat::{FOLDER, HwlatTracer};
use crate::probe::origins::GapOrigins;
use crate::probe::osnoise::OsnoiseTracer;
use crate::probe::spin::Spin;
use facts::Facts;
use host::clock;
use host::tracefs::Tracing;
use model::error::{Exit, Failure, Result};
use model::units::{Bare, CpuSet, Nanos};
use model::vocabulary::{GapSource, Policy, Probe, SchedulePhase};

/// Shortest gap that counts, as hwlatdetect's threshold.
const OVER: &str = "10us";

/// Window and width of hwlatdetect and of the kernel.
const WINDOW: Nanos = Nanos(1_000_000_000);
const WIDTH: Nanos = Nanos(500_000_000);

/// Maximum width: the kernel's watchdog reports a CPU without interrupts after 10 s.
const WIDEST: Nanos = Nanos(5_000_000_000);

/// Find what firmware, hardware and a hypervisor take from a CPU
///
/// The kernel's hwlat tracer turns interrupts off for --width of each --window and reads the clock
/// without a pause: nothing of the kernel can run there, so that a gap is of the firmware (SMIs),
/// the hardware or a hypervisor. It samples all CPUs of -a at the same time, before Linux 5.15 one
/// after the other. Of each window the longest gap is a sample. With osnoise in its place (--source
/// osnoise) each gap is one. Without both a thread reads the clock, and interrupts and other
/// threads make gaps, too (--source spin). Each gap has an
/// origin: SMIs that the processor counted around it (Intel, with the module msr), the hypervisor,
/// or unknown. The tracer's settings are restored at the end, also after a kill.
///
/// It delays everything else on a CPU by --width: not on a machine in production.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
        onbeat probe hw -D 60s                       all CPUs, gaps of at least 10 us\n  \
        onbeat probe hw -a 2-3 --width 100ms         interrupts off for 100 ms of each second\n  \
        onbeat probe hw --threshold 15us -b 100us    exit code 3 at a gap of 100 us\n  \
        onbeat probe hw --hwlatdetect -              the report of hwlatdetect")]
pub struct Args {
    #[command(flatten)]
    flags: ProbeFlags,
    /// Duration; a bare number is in seconds
    #[arg(short = 'D', long, value_name = "SPAN", default_value = "10s", allow_hyphen_values = true)]
    duration: String,
    /// Source of the gaps [default: the first that this kernel has]
    #[arg(long, value_name = "SOURCE", value_parser = keyword::<GapSource>())]
    source: Option<GapSource>,
    /// Shortest gap that counts; a bare number is in us
    #[arg(long, visible_alias = "over", value_name = "SPAN", default_value = OVER, allow_hyphen_values = true)]
    threshold: String,
    /// Part of each window in which interrupts are off, at most 5s; a bare number is in us
    /// [default: 500ms]
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    width: Option<String>,
    /// Time from one sampling to the next; a bare number is in us [default: 1s]
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    window: Option<String>,
    /// Also write the gaps in the form of hwlatdetect to this file; `-` is standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    hwlatdetect: Option<PathBuf>,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let mut outputs = Outputs::of(&[&args.flags.run.json, &args.hwlatdetect], environment)?;
    let over = positive_span("--threshold", &args.threshold, Bare::Micros)?;
    let window = window(args)?;
    let (source, note) = choose(args)?;
    let title = format!("gaps of {over} and more");
    let wanted = args.flags.wanted(intent(args, &source)?, &title)?;
    let (no_cpus, mut armed, mut settings) = (CpuSet::default(), None, None);
    let set = |files| tracer_files::set(environment, &no_cpus, "probe hw", files, "use --source spin");
    let mut origins = None;
    let prepared = prepare_run(wanted, environment, |plan, machine, facts| {
        plan.notes.extend(note);
        plan.probe = Some(probe_plan(&source, over, window));
        let virtual_machine = is_virtual(facts);
        let cpus: CpuSet = plan.cpus.iter().map(|own| own.cpu).collect();
        match source {
            ChosenSource::Hwlat(tracing) => {
                plan.notes.push(sampling(window, has_mode(&tracing), &cpus));
                settings = Some(set(tracer_files::of_hwlat(&tracing, window))?);
                let tracer = HwlatTracer::arm(tracing, &cpus, over)?;
                plan.notes.extend(tracer.unkept.clone());
                origins = Some(GapOrigins::of(cpus.iter(), virtual_machine));
                armed = Some(ArmedTracer::Hwlat(tracer));
            }
            ChosenSource::Osnoise(tracing) => {
                plan.notes.push(sampling(window, true, &cpus));
                settings = Some(set(tracer_files::of_osnoise(&tracing, &wish(&cpus, over, window))?)?);
                let tracer = OsnoiseTracer::arm(tracing, &cpus, false)?;
                plan.notes.extend(tracer.unkept.clone());
                origins = Some(GapOrigins::of(cpus.iter(), virtual_machine));
                armed = Some(ArmedTracer::Osnoise(tracer));
            }
            ChosenSource::Spin => {
                leave_a_cpu(plan, machine, args.flags.threads.cpus.is_none())?;
                refuse_without_end(plan, &facts::describe(facts))?;
                plan.notes.push(SPINS.to_owned());
                origins = Some(GapOrigins::of(plan.cpus.iter().map(|own| own.cpu), false));
            }
        }
        note_uncounted(plan, origins.as_ref());
        Ok(())
    })?;
    let mut gaps = GapList::new(over);
    if let Some(origins) = origins {
        gaps = gaps.with_origins(origins);
    }
    let kept = sample(prepared, armed, over, &mut gaps);
    let restored = settings.map_or(Ok(()), |mut settings| settings.put_back());
    let kept = kept?;
    outputs
        .write(&args.hwlatdetect, || Ok(report::run::hwlatdetect::render(&kept.run, clock::wall_offset())));
    outputs.keep(restored);
    finish(&args.flags.run, kept, outputs, environment)
}

/// Note on a spinning thread, which sees more than hardware.
const SPINS: &str = "interrupts and other threads make gaps, too: a spinning thread cannot tell them from \
                     firmware and hardware";

/// Source that exists, ready to be armed.
enum ChosenSource {
    Hwlat(Tracing),
    Osnoise(Tracing),
    Spin,
}

impl ChosenSource {
    fn kind(&self) -> GapSource {
        match self {
            ChosenSource::Hwlat(_) => GapSource::Hwlat,
            ChosenSource::Osnoise(_) => GapSource::Osnoise,
            ChosenSource::Spin => GapSource::Spin,
        }
    }
}

enum ArmedTracer {
    Hwlat(HwlatTracer),
    Osnoise(OsnoiseTracer),
}

/// The requested source, or the first that exists with the reason.
fn choose(args: &Args) -> Result<(ChosenSource, Option<String>)> {
    match args.source {
        Some(GapSource::Spin) => Ok((ChosenSource::Spin, None)),
        Some(GapSource::Hwlat) => Ok((ChosenSource::Hwlat(HwlatTracer::find()?), None)),
        Some(GapSource::Osnoise) => Ok((ChosenSource::Osnoise(OsnoiseTracer::find()?), None)),
        None => Ok(match HwlatTracer::find() {
            Ok(tracing) => (ChosenSource::Hwlat(tracing), None),
            Err(failure) => {
                let why = failure.message.split(':').next().unwrap_or_default().to_owned();
                match OsnoiseTracer::find() {
                    Ok(tracing) if tracer_files::has_irqs_off(&tracing) => {
                        (ChosenSource::Osnoise(tracing), Some(why))
                    }
                    _ => (ChosenSource::Spin, Some(why)),
                }
            }
        }),
    }
}

/// Settings of osnoise with interrupts off.
fn wish(cpus: &CpuSet, over: Nanos, window: SamplingWindow) -> OsnoiseWish<'_> {
    let (over, window) = (Some(over), Some(window));
    OsnoiseWish { cpus, over, window, irqs_off: true, interval: None, workload: true }
}

/// Runs the chosen body, and ends the tracer.
fn sample(
    prepared: PreparedRun,
    armed: Option<ArmedTracer>,
    over: Nanos,
    gaps: &mut GapList,
) -> Result<KeptRun> {
    match armed {
        None => measured(prepared, Arc::new(Spin { over }) as Arc<dyn ThreadBody>, Some(gaps), |_| ()),
        Some(ArmedTracer::Hwlat(tracer)) => traced(prepared, tracer.reader(), over, gaps, |_| ()),
        Some(ArmedTracer::Osnoise(tracer)) => {
            let counts = tracer.reader();
            traced(prepared, tracer.reader(), over, gaps, move |run| counts.fill(run))
        }
    }
}

/// Intent of a run: with a tracer no thread of onbeat has a priority.
fn intent(args: &Args, source: &ChosenSource) -> Result<MeasureIntent> {
    let intent = args.flags.intent(&args.duration, Nanos::MILLI)?;
    let chosen = intent.policy.is_some() || intent.priority.is_some();
    if chosen && source.kind() != GapSource::Spin {
        return Err(Failure::usage(
            "invalid -p or --policy: the tracer has a thread of the kernel; remove it, or use --source spin",
        ));
    }
    let policy = if chosen { intent.policy } else { Some(Policy::Other) };
    Ok(MeasureIntent { policy, phase: SchedulePhase::Aligned, ..intent })
}

fn window(args: &Args) -> Result<SamplingWindow> {
    let given = args.width.is_some() || args.window.is_some();
    if given && args.source == Some(GapSource::Spin) {
        return Err(Failure::usage(
            "invalid --width or --window with --source spin: it samples all the time; remove them",
        ));
    }
    let span = |flag, text: &Option<String>| {
        text.as_deref().map(|text| positive_span(flag, text, Bare::Micros)).transpose()
    };
    let length = span("--window", &args.window)?;
    let width = span("--width", &args.width)?;
    // One of them alone keeps the share of the defaults.
    let (width, length) = match (width, length) {
        (Some(width), Some(length)) => (width, length),
        (Some(width), None) => (width, Nanos(width.0.saturating_mul(2)).max(WINDOW)),
        (None, Some(length)) => (Nanos(length.0 / 2).min(WIDTH), length),
        (None, None) => (WIDTH, WINDOW),
    };
    let refused = |what: &str| Err(Failure::usage(format!("invalid --width {width}: expected {what}")));
    match width {
        width if width.0 < Nanos::MICRO.0 => refused("1us or more"),
        width if width > WIDEST => refused("at most 5s, because interrupts are off for that time"),
        width if width >= length => refused(&format!("less than the window of {length}")),
        width => Ok(SamplingWindow { width, length }),
    }
}

fn probe_plan(source: &ChosenSource, over: Nanos, window: SamplingWindow) -> ProbePlan {
    let kind = source.kind();
    let window = (kind != GapSource::Spin).then_some(window);
    ProbePlan { kind: kind.name().to_owned(), over: Some(over), window, ..ProbePlan::of(Probe::Hw) }
}

fn is_virtual(facts: &Facts) -> bool {
    !matches!(facts::describe(facts).virtualization.as_str(), "" | "none")
}

/// True if the tracer can have a thread per CPU (Linux 5.15). The thread that goes from CPU to CPU
/// stays where it is on kernels from 6.14 on.
fn has_mode(tracing: &Tracing) -> bool {
    tracing.exists(&format!("{FOLDER}/mode"))
}

/// Note on the sampled part of the time.
fn sampling(window: SamplingWindow, per_cpu: bool, cpus: &CpuSet) -> String {
    let SamplingWindow { width, length } = window;
    let place = match (per_cpu, cpus.len()) {
        (_, 1) => String::new(),
        (true, _) => format!(", on CPUs {cpus} at the same time"),
        (false, _) => format!(", on one CPU of {cpus} after the other"),
    };
    format!("interrupts are off and gaps are found for {width} of each {length}{place}; at other times not")
}

/// Says that SMIs are not counted, without which no gap is known to be of the firmware.
fn note_uncounted(plan: &mut MeasurePlan, origins: Option<&GapOrigins>) {
    if !origins.is_some_and(GapOrigins::counts_smis) {
        plan.notes.push(
            "SMIs are not counted: that takes an Intel processor, the module msr, and CAP_SYS_RAWIO"
                .to_owned(),
        );
    }
}
