//! A line of ftrace's text up to its event: the thread, the CPU, the context, the time.
//!
//! Source: Documentation/trace/ftrace.rst; `trace_print_lat_fmt` and `trace_print_context` in
//! kernel/trace/trace_output.c.

use model::units::{CPU_LIMIT, Cpu, Nanos};
use trace::event::Context;

/// Head of an event's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineHead<'a> {
    pub pid: i32,
    pub cpu: Cpu,
    pub context: Context,
    pub preempt: u8,
    pub time: Nanos,
    pub event: &'a str,
    /// Text of the event.
    pub text: &'a str,
}

impl<'a> LineHead<'a> {
    /// Reads `comm-pid [cpu] flags time: event: text`; the flags and `(tgid)` may be missing.
    pub fn parse(line: &'a str) -> Option<LineHead<'a>> {
        LineHead::parse_by(line, seconds)
    }

    /// True for a line whose time is a whole number: a clock's count, in an unknown unit.
    pub fn is_counted(line: &'a str) -> bool {
        LineHead::parse_by(line, |time| time.parse::<u64>().is_ok().then_some(Nanos(0))).is_some()
    }

    fn parse_by(line: &'a str, time_of: fn(&str) -> Option<Nanos>) -> Option<LineHead<'a>> {
        let (pid, cpu, rest) = thread_and_cpu(line)?;
        let rest = rest.trim_start();
        let (flags, rest) = match rest.split_once(' ') {
            Some((first, rest)) if !first.ends_with(':') => (first, rest.trim_start()),
            _ => ("", rest),
        };
        let (time, rest) = rest.split_once(": ")?;
        let rest = rest.trim_start();
        // A mark may be empty.
        let (event, text) = rest.split_once(':').unwrap_or((rest, ""));
        let (context, preempt) = context(flags);
        Some(LineHead { pid, cpu, context, preempt, time: time_of(time)?, event, text: text.trim() })
    }
}

/// Finds the CPU as the first number in brackets after a thread's number; a name may contain both.
fn thread_and_cpu(line: &str) -> Option<(i32, Cpu, &str)> {
    let mut from = 0;
    while let Some(open) = line[from..].find('[').map(|at| from + at) {
        from = open + 1;
        let Some((cpu, rest)) = line[from..].split_once(']') else { continue };
        let Some(cpu) = cpu.trim().parse().ok().filter(|&cpu: &u32| cpu < CPU_LIMIT) else { continue };
        let mut before = line[..open].trim_end();
        if before.ends_with(')') {
            before = before.rsplit_once('(')?.0.trim_end();
        }
        let pid = before.rsplit_once('-').and_then(|(_, pid)| pid.parse().ok());
        if let Some(pid) = pid.filter(|&pid: &i32| pid >= 0) {
            return Some((pid, Cpu(cpu), rest));
        }
    }
    None
}

/// Parses seconds with a fraction.
pub fn seconds(text: &str) -> Option<Nanos> {
    let (whole, fraction) = text.split_once('.')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(fraction) || fraction.is_empty() || fraction.len() > 9 || !digits(whole) {
        return None;
    }
    let fraction = fraction.parse::<i64>().ok()? * 10i64.pow(9 - fraction.len() as u32);
    let ns = whole.parse::<i64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)?;
    Some(Nanos(ns))
}

/// Parses the columns of the context, with the depth of disabled preemption.
fn context(flags: &str) -> (Context, u8) {
    let mut columns = flags.chars();
    let mut next = || columns.next().unwrap_or('.');
    let irqs = match next() {
        'd' => 0x01,
        'D' => 0x81,
        'b' => 0x80,
        _ => 0,
    };
    let resched = match next() {
        'N' | 'B' | 'G' => 0x24,
        'n' | 'H' | 'g' => 0x04,
        'p' | 'P' | 'b' => 0x20,
        _ => 0,
    };
    // Kernels with lazy preemption as a patch have columns for that.
    if flags.len() > 5 {
        next();
    }
    let interrupt = match next() {
        'Z' => 0x48,
        'z' => 0x40,
        'H' => 0x18,
        'h' => 0x08,
        's' => 0x10,
        _ => 0,
    };
    let preempt = next().to_digit(16).unwrap_or(0) as u8;
    (Context(irqs | resched | interrupt), preempt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_all_layouts_are_read() {
        let line = "            bash-24064   [001] dNh2.   645.894910: sched_wakeup: comm=a pid=1";
        let head = LineHead::parse(line).expect("an event");
        assert_eq!((head.pid, head.cpu, head.time), (24064, Cpu(1), Nanos(645_894_910_000)));
        assert_eq!((head.context, head.preempt, head.event), (Context(0x2d), 2, "sched_wakeup"));
        assert_eq!(head.text, "comm=a pid=1");
        for line in [
            "<idle>-0 [003] 12.000001: irq_handler_exit: irq=1 ret=handled",
            "<idle>-0 (-------) [003] d.s.. 12.000001: irq_handler_exit: irq=1 ret=handled",
            "<idle>-0 [003] d..s..1 12.000001: irq_handler_exit: irq=1 ret=handled",
            "a [1] b-7-0 [003] d..1 12.000001: irq_handler_exit: irq=1 ret=handled",
            "<idle>-0     (      0) [003] ....    12.000001: irq_handler_exit:     irq=1 ret=handled",
        ] {
            let head = LineHead::parse(line).expect(line);
            assert_eq!((head.pid, head.cpu, head.time.0), (0, Cpu(3), 12_000_001_000), "{line}");
            assert_eq!((head.event, head.text), ("irq_handler_exit", "irq=1 ret=handled"), "{line}");
        }
    }

    #[test]
    fn what_is_no_event_is_none() {
        for line in [
            "",
            "# tracer: nop",
            " => schedule",
            "CPU:1 [LOST 4 EVENTS]",
            "x-1 [9999] .... 1.0: a: b",
            "x-1 [001] .... 17: a: b",
        ] {
            assert_eq!(LineHead::parse(line), None, "{line}");
        }
        assert!(
            LineHead::is_counted("x-1 [001] .... 17: a: b") && !LineHead::is_counted("x-1 [001] 1.0: a: b")
        );
    }
}
