//! Timerlat tracer of the kernel in ftrace's text: the latency of each wake-up, and the causes of
//! lost CPU time in it by the osnoise events.
//!
//! Source: Documentation/trace/timerlat-tracer.rst, osnoise-tracer.rst.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use super::auto_analysis::TIMERLAT_PRIO;
use super::ftrace_text::line::{LineHead, seconds};
use model::run::{Slice, Spike, Who};
use model::slice::SliceKind;
use model::sort::CompactSort;
use model::units::{Cpu, Nanos};

/// Maximum number of interruptions of a CPU that are held.
const MAX_NOISE: usize = 1 << 13;
/// Maximum number of wake-ups that are explained.
const MAX_KEPT: usize = 256;

/// An interruption.
#[derive(Clone, Debug)]
struct Noise {
    start: i64,
    end: i64,
    kind: SliceKind,
    who: Who,
}

/// A sample whose thread has not run yet.
#[derive(Clone, Copy, Debug)]
struct Expired {
    time: Nanos,
    latency: i64,
}

#[derive(Default)]
struct CpuSamples {
    noise: VecDeque<Noise>,
    expired: Option<Expired>,
}

/// Samples of a text.
#[derive(Default)]
pub struct TimerlatSamples {
    cpus: BTreeMap<Cpu, CpuSamples>,
    worst: Vec<Spike>,
}

impl TimerlatSamples {
    /// Adds a line; false if it is not of timerlat or osnoise.
    pub fn line(&mut self, head: &LineHead) -> bool {
        let cpu = self.cpus.entry(head.cpu).or_default();
        if let Some(noise) = noise(head) {
            if cpu.noise.len() == MAX_NOISE {
                cpu.noise.pop_front();
            }
            cpu.noise.push_back(noise);
            return true;
        }
        let Some((thread, latency)) = sample(head.event) else { return head.event == "timerlat_sample" };
        let sample = Expired { time: head.time, latency };
        if !thread {
            cpu.expired = Some(sample);
            return true;
        }
        let expired = cpu.expired.take();
        self.keep(head.cpu, sample, expired);
        true
    }

    fn keep(&mut self, cpu: Cpu, sample: Expired, expired: Option<Expired>) {
        let full = self.worst.len() >= MAX_KEPT;
        if full && self.worst.last().is_some_and(|least| least.latency_ns.0 >= sample.latency) {
            return;
        }
        let noise = self.cpus.get(&cpu).map(|cpu| &cpu.noise);
        let spike = taken_apart(cpu, sample, expired, noise.into_iter().flatten());
        self.worst.push(spike);
        self.worst.compact_sort_by_key(|spike| Reverse(spike.latency_ns));
        self.worst.truncate(MAX_KEPT);
    }

    /// The largest spikes, including those whose thread did not run before the end.
    pub fn spikes(mut self) -> Vec<Spike> {
        let open: Vec<(Cpu, Expired)> =
            self.cpus.iter().filter_map(|(cpu, samples)| Some((*cpu, samples.expired?))).collect();
        for (cpu, expired) in open {
            self.keep(cpu, expired, Some(expired));
        }
        self.worst
    }
}

/// Parses `#2697  context thread timer_latency  21570534 ns`; true for the thread's sample.
fn sample(event: &str) -> Option<(bool, i64)> {
    let mut words = event.strip_prefix('#')?.split_ascii_whitespace().skip(1);
    if words.next()? != "context" {
        return None;
    }
    let thread = match words.next()? {
        "irq" => false,
        "thread" => true,
        // The return to user space ends the sample of the thread.
        _ => return None,
    };
    let latency = if words.next()? == "timer_latency" { words.next()?.parse().ok()? } else { return None };
    (words.next()? == "ns" && (0..1 << 50).contains(&latency)).then_some((thread, latency))
}

/// Parses `local_timer:236 start 235.750253436 duration 29394 ns`.
fn noise(head: &LineHead) -> Option<Noise> {
    let kind = match head.event {
        "nmi_noise" => SliceKind::Nmi,
        "irq_noise" => SliceKind::Irq,
        "softirq_noise" => SliceKind::Softirq,
        "thread_noise" => SliceKind::Thread,
        _ => return None,
    };
    let (named, rest) = head.text.split_once("start ")?;
    let (start, rest) = rest.split_once(" duration ")?;
    let (start, duration) = (seconds(start)?.0, rest.strip_suffix(" ns")?.trim().parse::<i64>().ok()?);
    let (name, number) = named.trim().rsplit_once(':').unwrap_or((named.trim(), ""));
    let who = match kind {
        SliceKind::Thread => Who {
            comm: name.to_owned(),
            pid: number.parse().ok()?,
            prio: Who::PRIO_UNKNOWN,
            ..Who::default()
        },
        _ => Who { irq: name.to_owned(), ..Who::default() },
    };
    // The time of a thread excludes its interruptions.
    let end = if kind == SliceKind::Thread { head.time.0 } else { start.checked_add(duration.max(0))? };
    (end > start).then_some(Noise { start, end, kind, who })
}

/// Rank of a kind: of two at the same time, the higher one has the CPU.
fn rank(kind: SliceKind) -> u8 {
    match kind {
        SliceKind::Nmi => 3,
        SliceKind::Irq | SliceKind::TimerIrq => 2,
        SliceKind::Softirq => 1,
        _ => 0,
    }
}

fn taken_apart<'a>(
    cpu: Cpu,
    sample: Expired,
    expired: Option<Expired>,
    noise: impl Iterator<Item = &'a Noise>,
) -> Spike {
    let (from, to) = (sample.time.0 - sample.latency, sample.time.0);
    let own: Vec<&Noise> = noise.filter(|noise| noise.start < to && noise.end > from).collect();
    let mut edges: Vec<i64> = own.iter().flat_map(|noise| [noise.start, noise.end]).collect();
    edges.extend([from, to]);
    edges.retain(|edge| (from..=to).contains(edge));
    edges.sort_unstable();
    edges.dedup();
    let mut slices: Vec<Slice> = Vec::new();
    for pair in edges.windows(2) {
        let on = own.iter().filter(|noise| noise.start <= pair[0] && noise.end >= pair[1]);
        let Some(top) = on.max_by_key(|noise| (rank(noise.kind), noise.start)) else { continue };
        if let Some(slice) = slice(top, pair[0], pair[1], expired) {
            match slices.last_mut() {
                Some(last)
                    if last.who == slice.who
                        && last.start_ns.0 + last.ns.0 == pair[0]
                        && last.kind == slice.kind =>
                {
                    last.ns = Nanos(last.ns.0 + slice.ns.0);
                }
                _ => slices.push(slice),
            }
        }
    }
    let explained: i64 = slices.iter().map(|slice| slice.ns.0).sum();
    let mut notes = Vec::new();
    if let Some(expired) = expired {
        let late = Nanos(expired.latency).spoken();
        notes.push(format!("timerlat: the timer's interrupt came {late} late"));
    }
    let victim = Who { comm: format!("timerlat/{cpu}"), prio: TIMERLAT_PRIO, ..Who::default() };
    Spike {
        cpu,
        expected_ns: Nanos(from),
        actual_ns: Nanos(to),
        latency_ns: Nanos(sample.latency),
        slices,
        unexplained_ns: Nanos(sample.latency - explained),
        victim,
        notes,
        ..Spike::default()
    }
}

/// Part of an interruption; `None` if the idle thread had the CPU before the interrupt.
fn slice(noise: &Noise, start: i64, end: i64, expired: Option<Expired>) -> Option<Slice> {
    let at = expired.map_or(i64::MAX, |expired| expired.time.0);
    let within = noise.start <= at && at <= noise.end;
    let idle = noise.kind == SliceKind::Thread && noise.who.pid == 0;
    let (kind, evidence) = match noise.kind {
        SliceKind::Irq if within => (SliceKind::TimerIrq, "osnoise: the interrupt of timerlat's timer"),
        SliceKind::Thread if idle && start < at => return None,
        SliceKind::Thread if idle => (SliceKind::IdleExit, "osnoise: the idle thread was not switched away"),
        SliceKind::Thread => (SliceKind::Thread, "osnoise: it ran before the thread"),
        kind => (kind, "osnoise: it interrupted the CPU"),
    };
    let who = if idle { Who::default() } else { noise.who.clone() };
    let (kind, evidence) = (kind.into(), evidence.to_owned());
    Some(Slice { kind, start_ns: Nanos(start), ns: Nanos(end - start), who, evidence, ..Slice::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
    objtool-9       [001] d..1.   1.000100: thread_noise: objtool:9 start 1.000001000 duration 79000 ns
     <idle>-0       [001] dNh1.   1.000090: irq_noise: local_timer:236 start 1.000070000 duration 10000 ns
     <idle>-0       [001] dNh1.   1.000075: #3      context    irq timer_latency     75000 ns
     timerlat/1-357 [001] ....1   1.000100: #3      context thread timer_latency    100000 ns
     <idle>-0       [001] dNh1.   1.000900: #4      context    irq timer_latency     40000 ns";

    #[test]
    fn samples_are_taken_apart_by_what_interrupted_them() {
        let mut samples = TimerlatSamples::default();
        for line in TEXT.lines() {
            assert!(samples.line(&LineHead::parse(line).expect(line)), "{line}");
        }
        let spikes = samples.spikes();
        let slices = |spike: &Spike| {
            spike.slices.iter().map(|slice| (slice.kind.as_str().to_owned(), slice.ns.0)).collect::<Vec<_>>()
        };
        let expected = [("thread", 69_000), ("timer-irq", 10_000), ("thread", 20_000)];
        assert_eq!(slices(&spikes[0]), expected.map(|(kind, ns)| (kind.to_owned(), ns)));
        assert_eq!((spikes[0].latency_ns, spikes[0].unexplained_ns), (Nanos(100_000), Nanos(1_000)));
        assert_eq!((spikes[1].latency_ns, spikes[1].unexplained_ns), (Nanos(40_000), Nanos(40_000)));
    }
}
