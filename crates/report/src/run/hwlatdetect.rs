//! Gaps of `probe hw` in the form of hwlatdetect's output.
//!
//! A run has the longest gap of each window: it is in `outer`, and `count` is 1.

use std::fmt::Write;

use model::run::Run;
use model::units::{CpuSet, Nanos};

/// Lines of hwlatdetect 2.10; `wall_offset` is the wall time at CLOCK_MONOTONIC 0.
pub fn render(run: &Run, wall_offset: Nanos) -> String {
    let us = |span: Option<Nanos>| span.map_or(0, |span| span.0 / Nanos::MICRO.0);
    let cpus: CpuSet = run.primary().filter_map(|cpu| cpu.cpu).collect();
    let gaps = run.gaps.as_deref().unwrap_or_default();
    let (window, width) = (us(run.plan.window_ns), us(run.plan.width_ns));
    let mut text = format!(
        "hwlatdetect:  test duration {} seconds\n   detector: tracer\n   parameters:\n        CPU list:          \
         {cpus}\n        Latency threshold: {}us\n        Sample window:      {window}us\n        Sample width:      \
         {width}us\n     Non-sampling period:  {}us\n        Output File:       None\n\nStarting test\ntest finished\n",
        run.elapsed_ns.unwrap_or_default().0 / Nanos::SECOND.0,
        us(run.plan.over_ns),
        window - width,
    );
    let longest = gaps.iter().map(|gap| gap.ns).max().map(|ns| us(Some(ns)));
    let max = longest.map_or("Below threshold".to_owned(), |us| format!("{us}us"));
    let _ = writeln!(
        text,
        "Max Latency: {max}\nSamples recorded: {0}\nSamples exceeding threshold: {0}",
        gaps.len()
    );
    for gap in gaps {
        let ends = gap.mono_ns + gap.ns + wall_offset;
        let _ = writeln!(
            text,
            "ts: {}.{:09}, inner:0, outer:{}, cpu:{}, count:1",
            ends.0 / Nanos::SECOND.0,
            ends.0 % Nanos::SECOND.0,
            us(Some(gap.ns)),
            gap.cpu
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::SpinGap;
    use model::units::Cpu;

    #[test]
    fn a_gap_is_a_sample_with_the_wall_time_of_its_end() {
        let gap = SpinGap { cpu: Cpu(1), mono_ns: Nanos(1_000), ns: Nanos(34_000_900), ..SpinGap::default() };
        let mut run = Run { gaps: Some(vec![gap]), elapsed_ns: Some(Nanos(4_100_000_000)), ..Run::default() };
        run.plan.over_ns = Some(Nanos(10_000));
        run.plan.window_ns = Some(Nanos(1_000_000_000));
        run.plan.width_ns = Some(Nanos(500_000_000));
        let text = render(&run, Nanos(100_000_000_000));
        assert!(text.starts_with("hwlatdetect:  test duration 4 seconds\n"), "{text}");
        assert!(text.contains("     Non-sampling period:  500000us\n"), "{text}");
        let end = "Max Latency: 34000us\nSamples recorded: 1\nSamples exceeding threshold: 1\n\
                   ts: 100.034001900, inner:0, outer:34000, cpu:1, count:1\n";
        assert!(text.ends_with(end), "{text}");
        run.gaps = None;
        assert!(render(&run, Nanos(0)).contains("Max Latency: Below threshold\nSamples recorded: 0\n"));
    }
}
