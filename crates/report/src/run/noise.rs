//! Lines of a run by the kernel's osnoise tracer: the time that each source took.

use crate::words::{percent, span};
use model::run::{CpuNoise, NoisePart, Run};
use model::units::Nanos;
use model::vocabulary::{GapSource, Probe};

/// True if the gaps are those of the osnoise tracer.
pub fn is_by_osnoise(run: &Run) -> bool {
    matches!(run.probe(), Some(Probe::Spin | Probe::Hw)) && run.plan.kind == GapSource::Osnoise.name()
}

/// Threads of the tracer, and what their policy means for the gaps.
pub fn seen_by(run: &Run, cpus: &str, others: &str) -> String {
    let most = run.cpus.iter().filter_map(|cpu| Some((cpu.noise?.available()?, cpu)));
    let threads = format!("The kernel's threads osnoise/N ran under SCHED_OTHER{cpus}");
    match most.min_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((share, cpu)) => {
            format!("{threads}: {others} took {} of {}.", percent(1.0 - share), cpu.name())
        }
        None => format!("{threads}: gaps include the time of other programs."),
    }
}

/// Lines below the table, and what the tracer cannot tell apart.
pub fn lines(run: &Run) -> Vec<String> {
    let of = |cpu: &model::run::CpuRun| Some(line(&cpu.name(), &cpu.noise?));
    let mut lines: Vec<String> = run.cpus.iter().filter_map(of).collect();
    if !lines.is_empty() {
        lines.push(CANNOT.to_owned());
    }
    lines
}

const CANNOT: &str = "hardware: gaps without an NMI, interrupt, softirq or thread; osnoise cannot tell \
                      firmware, a hypervisor and kernel code without an event apart, and in a gap with an \
                      interruption it counts none of them";

fn line(name: &str, noise: &CpuNoise) -> String {
    let Some(available) = noise.available() else {
        return format!("{name}: no complete period of the tracer, so that nothing is known by source");
    };
    let sources = [
        ("hardware", noise.hardware),
        ("NMIs", noise.nmi),
        ("interrupts", noise.irq),
        ("softirqs", noise.softirq),
        ("threads", noise.thread),
    ];
    let named: Vec<String> = sources.iter().map(|(source, of)| part(source, of)).collect();
    let known: i64 = sources.iter().map(|(_, of)| of.total_ns.0).sum();
    let rest = noise.noise_ns.0.saturating_sub(known);
    let rest = if rest > 0 {
        format!("; entry and exit of the kernel, or in a gap with an interruption, {}", span(Nanos(rest)))
    } else {
        String::new()
    };
    format!(
        "{name}: {:.4} % available of {}; {}{rest}; longest gap {}",
        available * 100.0,
        span(noise.runtime_ns),
        named.join(", "),
        span(noise.longest_ns)
    )
}

fn part(source: &str, of: &NoisePart) -> String {
    if of.count == 0 {
        return format!("{source} 0");
    }
    format!("{source} {} ({}, at most {})", of.count, span(of.total_ns), span(of.longest_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::CpuRun;
    use model::units::Cpu;

    fn run(noise: CpuNoise) -> Run {
        let cpu = CpuRun { cpu: Some(Cpu(1)), noise: Some(noise), ..CpuRun::default() };
        let mut run = Run { command: "probe".into(), cpus: vec![cpu], ..Run::default() };
        run.plan.probe = Probe::Spin.into();
        run.plan.kind = "osnoise".into();
        run
    }

    #[test]
    fn each_source_has_its_time_and_the_rest_is_named() {
        let of =
            |count, total, longest| NoisePart { count, total_ns: Nanos(total), longest_ns: Nanos(longest) };
        let run = run(CpuNoise {
            runtime_ns: Nanos(3_000_000_000),
            noise_ns: Nanos(30_000_000),
            longest_ns: Nanos(2_000_000),
            hardware: of(3, 12_000, 5_000),
            irq: of(750, 9_000_000, 40_000),
            thread: of(4, 20_000_000, 2_000_000),
            ..CpuNoise::default()
        });
        let lines = lines(&run);
        assert_eq!(
            lines[0],
            "CPU 1: 99.0000 % available of 3 s; hardware 3 (12 us, at most 5 us), NMIs 0, interrupts 750 \
             (9 ms, at most 40 us), softirqs 0, threads 4 (20 ms, at most 2 ms); entry and exit of the \
             kernel, or in a gap with an interruption, 988 us; longest gap 2 ms"
        );
        assert!(lines.len() == 2 && lines[1].contains("cannot tell firmware"), "{lines:?}");
        let seen = seen_by(&run, "", "others");
        assert_eq!(seen, "The kernel's threads osnoise/N ran under SCHED_OTHER: others took 1.0 % of CPU 1.");
    }

    #[test]
    fn without_a_complete_period_nothing_is_claimed() {
        let run = run(CpuNoise::default());
        assert!(lines(&run)[0].starts_with("CPU 1: no complete period"), "{:?}", lines(&run));
        assert!(is_by_osnoise(&run) && !is_by_osnoise(&Run::default()));
        assert!(lines(&Run::default()).is_empty());
    }
}
