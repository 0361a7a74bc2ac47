//! Auto-analysis of rtla: the text that it prints when a wake-up exceeded the threshold. rtla
//! explained the wake-up; time that no line covers stays unexplained.
//!
//! Source: Documentation/tools/rtla/common_timerlat_aa.rst, tools/tracing/rtla/src/timerlat_aa.c.

use super::facts::TraceFacts;
use super::input::TraceInput;
use super::lines::TextLines;
use super::{ForeignTrace, StepSink, TraceError, TracePart};
use model::run::{Slice, Spike, Who};
use model::slice::SliceKind;
use model::units::{CPU_LIMIT, Cpu, Nanos};
use trace::irq_enable_site;
use trace::names::Names;

/// Begin of the line that opens a CPU's part.
const BEGIN: &str = "## CPU ";
/// End of that line.
const BEGIN_END: &str = " hit stop tracing, analyzing it ##";

/// Priority of timerlat's threads in the kernel's numbers, unless rtla is given another:
/// `DEFAULT_TIMERLAT_PRIO` in kernel/trace/trace_osnoise.c.
pub const TIMERLAT_PRIO: i32 = 99 - 95;

/// Maximum number of CPUs from one text.
const MAX_SPIKES: usize = 2_000;
/// Maximum number of lines of one CPU.
const MAX_PARTS: usize = 256;
/// Maximum number of frames of a stack.
const MAX_FRAMES: usize = 64;

/// A text with an analysis of rtla.
pub struct AutoAnalysis {
    spikes: Vec<Spike>,
}

/// True if there is an analysis in the head of a text.
pub fn recognise(head: &str) -> bool {
    head.lines().any(|line| begin(line).is_some())
}

fn begin(line: &str) -> Option<Cpu> {
    let (_, rest) = line.split_once(BEGIN)?;
    rest.split_once(BEGIN_END)?.0.parse().ok().filter(|&cpu| cpu < CPU_LIMIT).map(Cpu)
}

/// Section of a line with a name and a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    None,
    Blocking,
    Irq,
    Softirq,
    Thread,
}

/// Part of one CPU while it is read.
struct Analysed {
    cpu: Cpu,
    parts: Vec<(SliceKind, Who, i64, &'static str)>,
    stack: Vec<String>,
    section: Section,
    total: Option<i64>,
    notes: Vec<String>,
}

/// Parses `  27.49 us`, the last number before its unit.
fn micros(text: &str) -> Option<i64> {
    let (before, _) = text.rsplit_once(" us")?;
    let number = before.rsplit(char::is_whitespace).next()?;
    let value: f64 = number.parse().ok()?;
    (value.is_finite() && (0.0..1e12).contains(&value)).then_some((value * 1_000.0).round() as i64)
}

impl Analysed {
    fn new(cpu: Cpu) -> Analysed {
        Analysed {
            cpu,
            parts: Vec::new(),
            stack: Vec::new(),
            section: Section::None,
            total: None,
            notes: Vec::new(),
        }
    }

    fn add(&mut self, kind: SliceKind, who: Who, ns: Option<i64>, evidence: &'static str) {
        if let Some(ns) = ns.filter(|&ns| ns > 0 && self.parts.len() < MAX_PARTS) {
            self.parts.push((kind, who, ns, evidence));
        }
    }

    /// Adds a line; true for the last one.
    fn line(&mut self, line: &str) -> bool {
        let line = line.trim();
        if let Some(frame) = line.strip_prefix("-> ") {
            if self.stack.len() < MAX_FRAMES {
                self.stack.push(frame.to_owned());
            }
            return false;
        }
        let is = |title: &str| line.starts_with(title);
        let ends = line.contains("(100%)");
        if (is("Thread latency:") || is("IRQ latency:")) && ends {
            self.total = micros(line);
            return true;
        }
        let section = match line {
            _ if is("IRQ handler delay:") && line.contains("(exit from idle)") => {
                let evidence = "rtla: the timer's interrupt was late after an idle state";
                self.add(SliceKind::IdleExit, Who::default(), micros(line), evidence);
                Section::None
            }
            _ if is("IRQ handler delay:") => {
                let late =
                    micros(line).map_or("late".to_owned(), |ns| format!("{} late", Nanos(ns).spoken()));
                self.notes.push(format!("rtla: the timer's interrupt was {late}, without a reason"));
                Section::None
            }
            _ if is("Timerlat IRQ duration:") => {
                let who = Who { irq: "local_timer".to_owned(), ..Who::default() };
                self.add(SliceKind::TimerIrq, who, micros(line), "rtla: the interrupt of timerlat's timer");
                Section::None
            }
            _ if is("NMI interference") => {
                self.add(SliceKind::Nmi, Who::default(), micros(line), "rtla: non-maskable interrupts");
                Section::None
            }
            _ if is("Blocking thread stack") => self.section,
            _ if is("Blocking thread") => Section::Blocking,
            _ if is("IRQ interference") => Section::Irq,
            _ if is("Softirq interference") => Section::Softirq,
            _ if is("Thread interference") => Section::Thread,
            _ => {
                self.item(line);
                self.section
            }
        };
        self.section = section;
        false
    }

    /// Adds a line `name:number   1.23 us`.
    fn item(&mut self, line: &str) {
        let Some(ns) = micros(line) else { return };
        let Some((name, number)) = line.split("  ").next().and_then(|named| named.trim().rsplit_once(':'))
        else {
            return;
        };
        let thread = || Who {
            comm: name.to_owned(),
            pid: number.parse().unwrap_or(0),
            prio: Who::PRIO_UNKNOWN,
            ..Who::default()
        };
        let irq = || Who { irq: name.to_owned(), ..Who::default() };
        let idle = name.starts_with("swapper/") && number == "0";
        let (kind, who, evidence) = match self.section {
            Section::Blocking if idle => {
                (SliceKind::IdleExit, Who::default(), "rtla: the idle thread was not switched away")
            }
            Section::Blocking => {
                let who = Who { function: self.function(), ..thread() };
                (SliceKind::Thread, who, "rtla: it had the CPU when the timer's interrupt came, and kept it")
            }
            Section::Thread => (SliceKind::Thread, thread(), "rtla: it ran before the thread"),
            Section::Irq => (SliceKind::Irq, irq(), "rtla: an interrupt during this time"),
            Section::Softirq => (SliceKind::Softirq, irq(), "rtla: a softirq during this time"),
            Section::None => return,
        };
        self.add(kind, who, Some(ns), evidence);
    }

    /// Function in which the timer's interrupt found the thread.
    fn function(&self) -> String {
        let frames: Vec<&str> = self.stack.iter().map(String::as_str).collect();
        irq_enable_site::interrupted(&frames).map_or(String::new(), |at| self.stack[at].clone())
    }

    /// Builds the spike; `None` without its lateness.
    fn spike(mut self) -> Option<Spike> {
        let total = self.total?;
        let (mut at, mut slices) = (0, Vec::new());
        let function = self.function();
        for (kind, mut who, ns, evidence) in std::mem::take(&mut self.parts) {
            // The stack is printed after its thread.
            let blocking = evidence.contains("and kept it");
            if blocking {
                who.function.clone_from(&function);
            }
            let ns = ns.min(total - at);
            if ns > 0 {
                let stack = if blocking { self.stack.clone() } else { Vec::new() };
                let (evidence, kind) = (evidence.to_owned(), kind.into());
                slices.push(Slice {
                    kind,
                    start_ns: Nanos(at),
                    ns: Nanos(ns),
                    who,
                    evidence,
                    stack,
                    ..Slice::default()
                });
            }
            at += ns;
        }
        if !function.is_empty() {
            self.notes.push(format!("the timer's interrupt found the CPU in {function}"));
        }
        let victim = Who { comm: format!("timerlat/{}", self.cpu), prio: TIMERLAT_PRIO, ..Who::default() };
        Some(Spike {
            cpu: self.cpu,
            actual_ns: Nanos(total),
            latency_ns: Nanos(total),
            slices,
            unexplained_ns: Nanos(total - at),
            victim,
            notes: self.notes,
            ..Spike::default()
        })
    }
}

impl AutoAnalysis {
    /// Opens a text whose head was recognised.
    pub fn open(input: &TraceInput) -> Result<AutoAnalysis, TraceError> {
        let mut lines = TextLines::from(input, 0);
        let (mut spikes, mut open): (Vec<Spike>, Option<Analysed>) = (Vec::new(), None);
        while let Some(line) = lines.next_line()? {
            if let Some(cpu) = begin(&line) {
                open = Some(Analysed::new(cpu));
            } else if open.as_mut().is_some_and(|analysed| analysed.line(&line)) && spikes.len() < MAX_SPIKES
            {
                spikes.extend(open.take().and_then(Analysed::spike));
            }
        }
        if spikes.is_empty() {
            Err(TraceError::new(
                "invalid auto-analysis: expected rtla's text up to the line of the latency, found a part; \
                 give all that it printed",
            ))
        } else {
            Ok(AutoAnalysis { spikes })
        }
    }
}

impl ForeignTrace for AutoAnalysis {
    fn facts(&self) -> TraceFacts {
        let notes = vec!["slices are in rtla's order: its text does not have their times".to_owned()];
        TraceFacts { source: "rtla's auto-analysis".to_owned(), notes, ..TraceFacts::default() }
    }

    fn names(&mut self) -> Names {
        Names::of_table(Vec::new())
    }

    fn each(&mut self, _: TracePart, _: &mut StepSink) -> Result<(), TraceError> {
        Ok(())
    }

    fn explained(&mut self) -> Vec<Spike> {
        std::mem::take(&mut self.spikes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "  rtla timerlat hit stop tracing
  ## CPU 23 hit stop tracing, analyzing it ##
  IRQ handler delay:                                        27.49 us (65.52 %)
  IRQ latency:                                              28.13 us
  Timerlat IRQ duration:                                     9.59 us (22.85 %)
  Blocking thread:                                           3.79 us (9.03 %)
                         objtool:49256                       3.79 us
    Blocking thread stack trace
                -> timerlat_irq
                -> hrtimer_interrupt
                -> asm_sysvec_apic_timer_interrupt
                -> _raw_spin_unlock_irqrestore
                -> cgroup_rstat_flush_locked
  IRQ interference                                           0.30 us (0.70 %)
               local_timer:236                               0.30 us
------------------------------------------------------------------------
  Thread latency:                                           41.96 us (100%)
";

    #[test]
    fn an_analysis_is_a_spike_that_adds_up() {
        let mut analysed = None;
        for line in TEXT.lines() {
            match begin(line) {
                Some(cpu) => analysed = Some(Analysed::new(cpu)),
                None => drop(analysed.as_mut().map(|analysed: &mut Analysed| analysed.line(line))),
            }
        }
        let spike = analysed.and_then(Analysed::spike).expect("a spike");
        assert_eq!(
            (spike.cpu, spike.latency_ns, spike.unexplained_ns),
            (Cpu(23), Nanos(41_960), Nanos(28_280))
        );
        let slices: Vec<_> = spike
            .slices
            .iter()
            .map(|slice| (slice.kind.as_str(), slice.ns.0, slice.who.function.as_str()))
            .collect();
        let expected =
            [("timer-irq", 9_590, ""), ("thread", 3_790, "_raw_spin_unlock_irqrestore"), ("irq", 300, "")];
        assert_eq!(slices, expected);
        assert!(spike.notes[0].contains("without a reason"));
    }

    #[test]
    fn what_is_no_analysis_is_none() {
        assert!(recognise(TEXT) && !recognise("## CPU x hit stop tracing, analyzing it ##\n# tracer: nop"));
        let mut cut = Analysed::new(Cpu(0));
        assert!(!cut.line("IRQ latency:  1e400 us") && cut.spike().is_none());
    }
}
