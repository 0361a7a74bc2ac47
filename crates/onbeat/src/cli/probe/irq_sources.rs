//! Sources of the events of `onbeat probe irq`.

use std::io;
use std::path::{Path, PathBuf};

use crate::probe::irq::{InterruptNames, TIME_LIMIT};
use facts::irqs::{Irq, Irqs, read_irqs};
use host::gpio::{CONSUMER, GpioInput, GpioOutput, has_chips};
use host::{DeviceReads, MachineFiles};
use model::error::{Exit, Failure, Result, run_with};
use model::text::quoted_value;
use model::vocabulary::IrqSource;
use trace::fixed_str::FixedStr;
use trace::interrupt_path::WatchedInterrupt;

/// Lines of `--gpio`.
#[derive(Debug, PartialEq, Eq)]
pub struct GpioLines {
    chip: String,
    /// Line that is written; none for a simulated chip.
    output: Option<u32>,
    input: u32,
}

/// Source of the events, checked and ready.
pub enum ChosenInterrupt {
    Timer,
    Read { irq: Irq, device: DeviceReads, path: PathBuf },
    Outside(Irq),
    Gpio { lines: GpioLines, output: GpioOutput, input: GpioInput },
}

impl ChosenInterrupt {
    pub fn kind(&self) -> IrqSource {
        match self {
            ChosenInterrupt::Timer => IrqSource::Timer,
            ChosenInterrupt::Read { .. } => IrqSource::Read,
            ChosenInterrupt::Outside(_) => IrqSource::Outside,
            ChosenInterrupt::Gpio { lines, .. } if lines.output.is_none() => IrqSource::GpioSim,
            ChosenInterrupt::Gpio { .. } => IrqSource::Gpio,
        }
    }

    /// Interrupts of the events.
    pub fn line(&self) -> WatchedInterrupt {
        match self {
            ChosenInterrupt::Timer => WatchedInterrupt::Timer,
            ChosenInterrupt::Read { irq, .. } | ChosenInterrupt::Outside(irq) => {
                WatchedInterrupt::Number(irq.number as i32)
            }
            ChosenInterrupt::Gpio { .. } => WatchedInterrupt::Handler(FixedStr::new(CONSUMER.as_bytes())),
        }
    }

    /// Number of the interrupt and name of its handlers.
    pub fn names(&self) -> InterruptNames {
        let (irq, handler) = match self {
            ChosenInterrupt::Timer => ("timer".into(), String::new()),
            ChosenInterrupt::Read { irq, .. } | ChosenInterrupt::Outside(irq) => {
                (irq.number.to_string(), irq.actions.join(","))
            }
            ChosenInterrupt::Gpio { .. } => (String::new(), CONSUMER.into()),
        };
        InterruptNames { irq, handler }
    }

    /// Wiring, and what it means for the accuracy.
    pub fn note(&self) -> String {
        match self {
            ChosenInterrupt::Timer => {
                "the time of an event is the one that the timer was set for; the interrupt is the \
                              CPU's own, without a device or an interrupt controller's wire"
                    .into()
            }
            ChosenInterrupt::Read { path, irq, .. } => format!(
                "reads of {} cause interrupt {}; the time of its event is not known: the device's own time \
                 is in the part before the interrupt",
                quoted_value(&path.display().to_string()),
                irq.number
            ),
            ChosenInterrupt::Outside(irq) => format!(
                "the time of the events of interrupt {} is not known: responses begin with the entry of its \
                 handler, and a delay of the interrupt itself does not show",
                irq.number
            ),
            ChosenInterrupt::Gpio { lines: GpioLines { chip, output: Some(output), input }, .. } => format!(
                "line {output} of {chip} is written and line {input} awaited, by the wire between them; the \
                 call that writes is in the part before the interrupt"
            ),
            ChosenInterrupt::Gpio { lines, .. } => format!(
                "line {} of {} is simulated: its pull interrupts the CPU of its writer only",
                lines.input, lines.chip
            ),
        }
    }
}

/// Opens the source that the flags name: a GPIO chip, an interrupt with a device, or a timer.
pub fn choose(gpio: Option<&str>, irq: Option<&str>, read: Option<&Path>) -> Result<ChosenInterrupt> {
    if let Some(text) = gpio {
        let lines = gpio_lines(text)?;
        let (output, input) = open_gpio(&lines)?;
        return Ok(ChosenInterrupt::Gpio { lines, output, input });
    }
    let Some(wanted) = irq else { return Ok(ChosenInterrupt::Timer) };
    let irqs = read_irqs(&MachineFiles::live());
    let Some(irqs) = irqs.known() else {
        return Err(Failure::not_supported(
            "the interrupts of this machine cannot be read (/proc/irq): mount /proc, or omit --irq",
        ));
    };
    let irq = find_irq(irqs, wanted)?.clone();
    let Some(path) = read else { return Ok(ChosenInterrupt::Outside(irq)) };
    let opened = DeviceReads::open(path).and_then(|mut device| device.read().map(|()| device));
    match opened {
        Ok(device) => Ok(ChosenInterrupt::Read { irq, device, path: path.to_owned() }),
        Err(error) => Err(device_failure(path, &error)),
    }
}

fn device_failure(path: &Path, error: &io::Error) -> Failure {
    let named = quoted_value(&path.display().to_string());
    match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
            Failure::usage(format!("invalid --read {named}: expected a block or character device with data"))
        }
        io::ErrorKind::NotFound => Failure::usage(format!(
            "invalid --read {named}: expected a device that exists; `lsblk` lists disks"
        )),
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
            "invalid --irq {}: expected a number or a handler's name; `onbeat irqs` lists them",
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
            Some(libc::ENXIO) => {
                Failure::not_supported(format!("line {line} of {chip} has no interrupt: use another line"))
            }
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
                "invalid --gpio {chip}:{}: expected a line of gpio-sim, or two lines with a wire",
                lines.input
            )),
            _ => failed(lines.input)(error),
        })?,
    };
    let mut input = GpioInput::line(chip, lines.input).map_err(failed(lines.input))?;
    let edge = output.set(true).and_then(|()| input.wait(TIME_LIMIT));
    let edge = edge.and_then(|edge| output.set(false).map(|()| edge)).map_err(failed(lines.input))?;
    if edge.is_none() {
        return Err(Failure::not_supported(format!(
            "line {} of {chip} saw no edge within {TIME_LIMIT}: check the wire between the lines",
            lines.input
        )));
    }
    Ok((output, input))
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
        let bad = [
            "",
            "gpiochip0",
            "gpiochip0:",
            "gpiochip0:a",
            "gpiochip0:1,",
            "gpiochip0:1,1",
            "chip:1,2",
            "../x:1",
        ];
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
