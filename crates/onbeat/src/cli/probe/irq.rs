//! `onbeat probe irq`.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::irq_outside;
use super::probe_flags::{PairFlags, ProbeFlags};
use super::{KeptRun, finish_unless, measured};
use crate::cli::Environment;
use crate::cli::outputs::Outputs;
use crate::cli::running::{PreparedRun, prepare_run};
use crate::hunt::source;
use crate::plan::{CpuChoice, MeasureIntent, ProbePlan};
use crate::probe::irq::{Responding, Stimulus, TIME_LIMIT, UNANSWERED};
use crate::probe::response_paths::ResponsePaths;
use facts::irqs::{Irq, Irqs, read_irqs};
use host::gpio::{CONSUMER, GpioInput, GpioOutput, has_chips};
use host::{DeviceReads, MachineFiles, rt};
use model::error::{Exit, Failure, Result, reason, run_with};
use model::run::Run;
use model::text::quoted_value;
use model::units::CpuSet;
use model::vocabulary::{Ended, IrqSource, Probe};
use trace::fixed_str::FixedStr;
use trace::interrupt_path::InterruptLine;

/// Measure from a hardware event through its interrupt to the thread
///
/// By default each thread waits for a timer of its CPU, which every machine has. --irq names an
/// interrupt of a device: with --read the thread causes it by reads of that device, without it the
/// events come from outside and are only observed. --gpio writes one line of a GPIO chip and waits
/// for another one that is wired to it, or pulls a line of a simulated chip (gpio-sim), which
/// interrupts the CPU of its writer only. The kernel's events divide each response: to the entry of
/// the interrupt's handler, in the handler, in its thread or a softirq, from the wake-up to the
/// switch, and from the switch to the thread. Takes tracefs.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
        onbeat probe irq -a 1                                a timer's interrupt on CPU 1\n  \
        onbeat probe irq --irq nvme0q1 --read /dev/nvme0n1   reads of a disk\n  \
        onbeat probe irq --irq eth0 -D 60s                   packets that arrive\n  \
        onbeat probe irq --gpio gpiochip0:17,27 -a 2         line 17 is wired to line 27\n  \
        onbeat probe irq --gpio gpiochip1:0 -a 2             line 0 of gpio-sim")]
pub struct Args {
    #[command(flatten)]
    flags: ProbeFlags,
    /// Duration; a bare number is in seconds
    #[arg(short = 'D', long, value_name = "SPAN", default_value = "10s", allow_hyphen_values = true)]
    duration: String,
    /// Time between the events that onbeat causes; a bare number is in us
    #[arg(short, long, value_name = "SPAN", default_value = "1000us", allow_hyphen_values = true)]
    interval: String,
    /// Interrupt of a device, by its number or the name of its handler
    #[arg(long, value_name = "NAME|NUMBER", conflicts_with = "gpio")]
    irq: Option<String>,
    /// Block or character device whose reads cause the interrupt
    #[arg(long, value_name = "DEVICE", requires = "irq")]
    read: Option<PathBuf>,
    /// GPIO chip with the line that is written and the one that is awaited; one line of a simulated
    /// chip
    #[arg(long, value_name = "CHIP:OUT,IN")]
    gpio: Option<String>,
    #[command(flatten)]
    pairs: PairFlags,
}

/// Lines of `--gpio`.
#[derive(Debug, PartialEq, Eq)]
struct GpioLines {
    chip: String,
    /// Line that is written; none for a simulated chip.
    output: Option<u32>,
    input: u32,
}

/// Source of the events, checked and ready.
enum Chosen {
    Timer,
    Read { irq: Irq, device: DeviceReads, path: PathBuf },
    Outside(Irq),
    Gpio { lines: GpioLines, output: GpioOutput, input: GpioInput },
}

impl Chosen {
    fn kind(&self) -> IrqSource {
        match self {
            Chosen::Timer => IrqSource::Timer,
            Chosen::Read { .. } => IrqSource::Read,
            Chosen::Outside(_) => IrqSource::Outside,
            Chosen::Gpio { lines, .. } if lines.output.is_none() => IrqSource::GpioSim,
            Chosen::Gpio { .. } => IrqSource::Gpio,
        }
    }

    /// Interrupts of the events.
    fn line(&self) -> InterruptLine {
        match self {
            Chosen::Timer => InterruptLine::Timer,
            Chosen::Read { irq, .. } | Chosen::Outside(irq) => InterruptLine::Number(irq.number as i32),
            Chosen::Gpio { .. } => InterruptLine::Handler(FixedStr::new(CONSUMER.as_bytes())),
        }
    }

    /// Number of the interrupt and name of its handlers.
    fn named(&self) -> (String, String) {
        match self {
            Chosen::Timer => ("timer".into(), String::new()),
            Chosen::Read { irq, .. } | Chosen::Outside(irq) => (irq.number.to_string(), irq.actions.join(",")),
            Chosen::Gpio { .. } => (String::new(), CONSUMER.into()),
        }
    }

    /// Wiring, and what it means for the accuracy.
    fn note(&self) -> String {
        match self {
            Chosen::Timer => "the time of an event is the one that the timer was set for; the interrupt is the \
                              CPU's own, without a device or an interrupt controller's wire"
                .into(),
            Chosen::Read { path, irq, .. } => format!(
                "reads of {} cause interrupt {}; the time of its event is not known: the device's own time is \
                 in the part before the interrupt",
                quoted_value(&path.display().to_string()),
                irq.number
            ),
            Chosen::Outside(irq) => format!(
                "the time of the events of interrupt {} is not known: responses begin with the entry of its \
                 handler, and a delay of the interrupt itself does not show",
                irq.number
            ),
            Chosen::Gpio { lines: GpioLines { chip, output: Some(output), input }, .. } => format!(
                "line {output} of {chip} is written and line {input} awaited, by the wire between them; the \
                 call that writes is in the part before the interrupt"
            ),
            Chosen::Gpio { lines, .. } => format!(
                "line {} of {} is simulated: its pull interrupts the CPU of its writer only, without hardware",
                lines.input, lines.chip
            ),
        }
    }
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let outputs = Outputs::of(&[&args.flags.run.json], environment)?;
    let intent = args.flags.pair_intent(&args.duration, &args.interval, &args.pairs)?;
    let chosen = choose(args)?;
    let intent = place(intent, args, &chosen)?;
    let wanted = args.flags.wanted(intent, "responses to interrupts")?;
    let mut events = None;
    let prepared = prepare_run(wanted, environment, |plan, machine, _| {
        if !matches!(chosen, Chosen::Timer) {
            plan.cpus.truncate(1);
        }
        plan.notes.push(chosen.note());
        plan.probe = Some(ProbePlan { kind: chosen.kind().name().to_owned(), ..ProbePlan::of(Probe::Irq) });
        events = Some(source::open(&machine.online)?.0);
        Ok(())
    })?;
    let Some(events) = events else { return Err(Failure::internal("no source of events: report this")) };
    let (line, named) = (chosen.line(), chosen.named());
    let stimuli = match chosen {
        Chosen::Outside(_) => {
            let (kept, failure) = irq_outside::measure(prepared, events, line, named)?;
            return finish_unless(&args.flags.run, kept, outputs, environment, failure);
        }
        Chosen::Timer => prepared.plan.cpus.iter().map(|_| Stimulus::Timer).collect(),
        Chosen::Read { device, .. } => vec![Stimulus::Read(device)],
        Chosen::Gpio { output, input, .. } => vec![Stimulus::Gpio { output, input }],
    };
    let (kept, failure) = respond(prepared, stimuli, events, line, named)?;
    finish_unless(&args.flags.run, kept, outputs, environment, failure)
}

/// Runs the threads that wait for the events.
fn respond(
    prepared: PreparedRun,
    stimuli: Vec<Stimulus>,
    events: Box<dyn source::EventSource + Send>,
    line: InterruptLine,
    named: (String, String),
) -> Result<(KeptRun, Option<Failure>)> {
    let body = Arc::new(Responding::new(stimuli));
    let results = body.clone();
    let mut paths = ResponsePaths::new(events, line, named, body.spans());
    let kept = measured(prepared, body, Some(&mut paths), |run| {
        if results.failed().is_some() || is_unanswered(run) {
            run.ended = Ended::Error.into();
        }
    })?;
    let failure = failure(&kept.run, results.failed());
    Ok((kept, failure))
}

fn is_unanswered(run: &Run) -> bool {
    run.cpus.iter().filter_map(|cpu| cpu.responses.as_ref()).any(|of| of.unanswered >= UNANSWERED)
}

/// Failure of the run.
fn failure(run: &Run, failed: Option<i32>) -> Option<Failure> {
    if let Some(number) = failed {
        let error = io::Error::from_raw_os_error(number);
        return Some(Failure::internal(format!(
            "cannot wait for events ({}): results up to then are stored; check the device",
            reason(&error)
        )));
    }
    let inconclusive = |message: String| Some(Failure { exit: Exit::Inconclusive, message });
    let none = run.samples().is_none_or(|samples| samples == 0);
    if is_unanswered(run) || (none && run.ended == Ended::Error) {
        return inconclusive(format!(
            "{UNANSWERED} requests in sequence had no event within {TIME_LIMIT}: the run was ended; check the \
             wire between the lines"
        ));
    }
    if none && run.ended != Ended::Signal { inconclusive("no event was measured: increase -D".into()) } else { None }
}

/// One thread, on the CPU that takes the interrupt, if the events are not those of timers.
fn place(intent: MeasureIntent, args: &Args, chosen: &Chosen) -> Result<MeasureIntent> {
    if let (false, CpuChoice::Only(cpus)) = (matches!(chosen, Chosen::Timer), &intent.cpus)
        && cpus.len() > 1
    {
        return Err(Failure::usage(format!(
            "invalid -a {cpus}: expected one CPU, because one thread waits for the events"
        )));
    }
    if args.flags.threads.cpus.is_some() {
        return Ok(intent);
    }
    let allowed = rt::affinity().unwrap_or_default();
    let of = |irq: &Irq| {
        let taken = irq.effective.known().or(irq.allowed.known()).cloned().unwrap_or_default();
        taken.iter().find(|cpu| allowed.0.contains(cpu)).map(|cpu| [cpu].into_iter().collect::<CpuSet>())
    };
    let own = match chosen {
        Chosen::Read { irq, .. } | Chosen::Outside(irq) => of(irq),
        _ => None,
    };
    Ok(MeasureIntent { cpus: own.map_or(intent.cpus.clone(), CpuChoice::Only), ..intent })
}

fn choose(args: &Args) -> Result<Chosen> {
    if let Some(text) = &args.gpio {
        let lines = gpio_lines(text)?;
        let (output, input) = open_gpio(&lines)?;
        return Ok(Chosen::Gpio { lines, output, input });
    }
    let Some(wanted) = &args.irq else { return Ok(Chosen::Timer) };
    let irqs = read_irqs(&MachineFiles::live());
    let Some(irqs) = irqs.known() else {
        return Err(Failure::not_supported(
            "the interrupts of this machine cannot be read (/proc/irq): mount /proc, or omit --irq",
        ));
    };
    let irq = find_irq(irqs, wanted)?.clone();
    let Some(path) = &args.read else { return Ok(Chosen::Outside(irq)) };
    match DeviceReads::open(path) {
        Ok(device) => Ok(Chosen::Read { irq, device, path: path.clone() }),
        Err(error) => Err(device_failure(path, &error)),
    }
}

fn device_failure(path: &std::path::Path, error: &io::Error) -> Failure {
    let named = quoted_value(&path.display().to_string());
    match error.kind() {
        io::ErrorKind::InvalidInput => {
            Failure::usage(format!("invalid --read {named}: expected a block or character device with data"))
        }
        io::ErrorKind::NotFound => {
            Failure::usage(format!("invalid --read {named}: expected a device that exists; `lsblk` lists disks"))
        }
        _ => Failure::of_call(
            format!("cannot open {named}"),
            error,
            Exit::NotSupported,
            &run_with("CAP_DAC_READ_SEARCH"),
        ),
    }
}

/// The interrupt of that number, or the only one with a handler of that name.
fn find_irq<'a>(irqs: &'a Irqs, wanted: &str) -> Result<&'a Irq> {
    let number = wanted.parse::<u32>().ok();
    let named = |irq: &&Irq| match number {
        Some(number) => irq.number == number,
        None => irq.actions.iter().any(|action| action == wanted),
    };
    let found: Vec<&Irq> = irqs.irqs.iter().filter(named).collect();
    match found.as_slice() {
        [only] => Ok(only),
        [] => Err(Failure::usage(format!(
            "invalid --irq {}: expected a number or a handler's name of this machine; `onbeat irqs` lists them",
            quoted_value(wanted)
        ))),
        several => {
            let numbers: Vec<String> = several.iter().map(|irq| irq.number.to_string()).collect();
            Err(Failure::usage(format!(
                "invalid --irq {}: expected one interrupt, several have this handler; use a number: {}",
                quoted_value(wanted),
                numbers.join(", ")
            )))
        }
    }
}

/// Parses `CHIP:OUT,IN`, or `CHIP:LINE` for a simulated chip.
fn gpio_lines(text: &str) -> Result<GpioLines> {
    let refused = || {
        Failure::usage(format!(
            "invalid --gpio {}: expected CHIP:OUT,IN, or CHIP:LINE of gpio-sim, such as gpiochip0:17,27",
            quoted_value(text)
        ))
    };
    let (chip, lines) = text.rsplit_once(':').ok_or_else(refused)?;
    let chip = chip.strip_prefix("/dev/").unwrap_or(chip);
    let is_chip = chip.strip_prefix("gpiochip").is_some_and(|number| number.parse::<u32>().is_ok());
    let line = |text: &str| text.parse::<u32>().map_err(|_| refused());
    let (output, input) = match lines.split_once(',') {
        Some((output, input)) => (Some(line(output)?), line(input)?),
        None => (None, line(lines)?),
    };
    if !is_chip || output == Some(input) {
        return Err(refused());
    }
    Ok(GpioLines { chip: chip.to_owned(), output, input })
}

fn open_gpio(lines: &GpioLines) -> Result<(GpioOutput, GpioInput)> {
    let chip = &lines.chip;
    if !has_chips() {
        return Err(Failure::not_supported(
            "this machine has no GPIO chip: connect one, or load gpio-sim (CONFIG_GPIO_SIM)",
        ));
    }
    let failed = |line: u32| {
        let chip = chip.clone();
        move |error: io::Error| match error.raw_os_error() {
            Some(libc::ENOENT) => Failure::usage(format!(
                "invalid --gpio {chip}: expected a chip of this machine; /sys/bus/gpio/devices lists them"
            )),
            Some(libc::EBUSY) => Failure::not_permitted(format!(
                "line {line} of {chip} is in use: release it, or use another line"
            )),
            Some(libc::EINVAL) => {
                Failure::usage(format!("invalid --gpio {chip}:{line}: expected a line of this chip"))
            }
            Some(libc::ENXIO) => Failure::not_supported(format!(
                "line {line} of {chip} has no interrupt: use another line"
            )),
            _ => Failure::of_call(
                format!("cannot use line {line} of {chip}"),
                &error,
                Exit::NotSupported,
                &run_with("CAP_DAC_OVERRIDE"),
            ),
        }
    };
    let output = match lines.output {
        Some(line) => GpioOutput::line(chip, line).map_err(failed(line))?,
        None => GpioOutput::pull(chip, lines.input).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOENT) => Failure::usage(format!(
                "invalid --gpio {chip}:{}: expected a line of gpio-sim, or two lines with a wire between them",
                lines.input
            )),
            _ => failed(lines.input)(error),
        })?,
    };
    Ok((output, GpioInput::line(chip, lines.input).map_err(failed(lines.input))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::fact::Fact;

    #[test]
    fn lines_of_a_chip_are_one_or_two() {
        let lines = |output, input| GpioLines { chip: "gpiochip0".into(), output, input };
        assert_eq!(gpio_lines("gpiochip0:17,27").ok(), Some(lines(Some(17), 27)));
        assert_eq!(gpio_lines("/dev/gpiochip0:3").ok(), Some(lines(None, 3)));
        let bad =
            ["", "gpiochip0", "gpiochip0:", "gpiochip0:a", "gpiochip0:1,", "gpiochip0:1,1", "chip:1,2", "../x:1"];
        for text in bad {
            assert_eq!(gpio_lines(text).map_err(|failure| failure.exit), Err(Exit::Usage), "{text}");
        }
    }

    #[test]
    fn an_interrupt_is_named_by_its_number_or_its_only_handler() {
        let irq = |number, actions: &[&str]| Irq {
            number,
            actions: actions.iter().map(ToString::to_string).collect(),
            chip: String::new(),
            allowed: Fact::Absent,
            effective: Fact::Absent,
            managed: None,
            per_cpu: None,
        };
        let irqs =
            Irqs { irqs: vec![irq(9, &["acpi"]), irq(24, &["a", "uart"]), irq(25, &["uart"])], missed: 0 };
        let number = |text: &str| find_irq(&irqs, text).map(|irq| irq.number).map_err(|failure| failure.exit);
        assert_eq!((number("9"), number("acpi"), number("a")), (Ok(9), Ok(9), Ok(24)));
        for text in ["8", "uart", "", "ac", "-1"] {
            assert_eq!(number(text), Err(Exit::Usage), "{text}");
        }
    }
}
