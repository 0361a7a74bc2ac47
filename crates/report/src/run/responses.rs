//! Definition and verdict of `probe irq`.

use crate::words::{clean, or_dash, several, span};
use model::run::{CpuRun, PartTime, Responses, Run};
use model::units::Nanos;
use model::vocabulary::{IrqSource, Probe, ResponsePart};

/// Definition of the measured quantity.
pub fn definition(run: &Run) -> String {
    let kind = run.plan.kind.as_str();
    let of = |source: IrqSource| kind == source.name();
    let span = if of(IrqSource::Timer) {
        "from the time for which a timer of the CPU is set to the first instruction of the thread that waits \
         for it"
    } else if of(IrqSource::Read) {
        "from before the call that reads a device to after it: the device's own time is in the part before \
         its interrupt"
    } else if of(IrqSource::Outside) {
        "from the entry of the interrupt's handler, because the time of the event itself is not known, to \
         the switch to the thread that it wakes"
    } else if of(IrqSource::Gpio) {
        "from before the call that writes one GPIO line to the first instruction of the thread that waits \
         for the other, over the wire"
    } else if of(IrqSource::GpioSim) {
        "from before the call that pulls a simulated GPIO line to the first instruction of the thread that \
         waits for it; the simulation interrupts the CPU of its writer only"
    } else {
        return format!("irq: response to a hardware event, source {}", clean(kind));
    };
    format!("irq: {span}")
}

/// The verdict on undivided responses; none for other runs.
pub fn verdict(run: &Run) -> Option<String> {
    if run.probe() != Some(Probe::Irq) {
        return None;
    }
    let mut known = run.cpus.iter().filter_map(|cpu| cpu.responses.as_ref()).peekable();
    if known.peek().is_none() {
        return Some("not known: the counts are written at the end".into());
    }
    let sum = |of: fn(&Responses) -> u64| {
        run.cpus.iter().filter_map(|cpu| cpu.responses.as_ref()).map(of).fold(0, u64::saturating_add)
    };
    let (events, split) = (sum(|of| of.events), sum(|of| of.split));
    if events == 0 {
        return Some("not known: no event was measured".into());
    }
    let rest = [
        (sum(|of| of.not_slept), "came before the thread slept"),
        (sum(|of| of.no_thread), "woke no thread"),
        (sum(|of| of.not_split), "not divided: events of the kernel are missing"),
    ];
    let mut words = format!("{split} of {} divided to the nanosecond", several(events, "event", "events"));
    for (count, what) in rest.iter().filter(|(count, _)| *count > 0) {
        words += &format!(", {count} {what}");
    }
    let unanswered = sum(|of| of.unanswered);
    if unanswered > 0 {
        words += &format!("; {} had no event in time", several(unanswered, "request", "requests"));
    }
    let lost = sum(|of| of.events_lost);
    Some(match lost {
        0 => format!("{words}; no event of the kernel was lost"),
        _ => format!("{words}; {} lost by the kernel's buffers", several(lost, "event was", "events were")),
    })
}

/// Name of a part.
fn part_name(part: &PartTime) -> String {
    match part.part.known() {
        Some(ResponsePart::Entry) => "to the interrupt".into(),
        Some(ResponsePart::Handler) => "handler".into(),
        Some(ResponsePart::Deferred) => "threaded handler or softirq".into(),
        Some(ResponsePart::Wakeup) => "wake-up to switch".into(),
        Some(ResponsePart::Switch) => "switch to thread".into(),
        None => clean(part.part.as_str()),
    }
}

/// Lines below the table: the parts of the responses, and the longest response.
pub fn lines(run: &Run) -> Vec<String> {
    run.cpus.iter().flat_map(of_cpu).collect()
}

fn of_cpu(cpu: &CpuRun) -> Vec<String> {
    let Some(of) = cpu.responses.as_ref().filter(|of| of.split > 0) else { return Vec::new() };
    let mean = |sum: Nanos| span(Nanos(sum.0 / of.split.max(1) as i64));
    let parts: Vec<String> = of
        .parts
        .iter()
        .map(|part| format!("{} {}, at most {}", part_name(part), mean(part.sum_ns), span(part.max_ns)))
        .collect();
    let interrupt = match (of.irq.as_str(), of.handler.as_str()) {
        ("", handler) => clean(handler),
        (irq, "") => clean(irq),
        (irq, handler) => format!("{} {}", clean(irq), clean(handler)),
    };
    let mut lines = vec![format!("{}, interrupt {interrupt}: {} (means)", cpu.name(), parts.join("; "))];
    if let Some(longest) = of.longest.first() {
        let values = of.parts.iter().map(|part| {
            let value = match part.part.known() {
                Some(ResponsePart::Entry) => Some(longest.entry_ns),
                Some(ResponsePart::Handler) => Some(longest.handler_ns),
                Some(ResponsePart::Deferred) => Some(longest.deferred_ns),
                Some(ResponsePart::Wakeup) => Some(longest.wakeup_ns),
                Some(ResponsePart::Switch) => Some(longest.switch_ns),
                None => None,
            };
            format!("{} {}", part_name(part), or_dash(value.map(span)))
        });
        let values: Vec<String> = values.collect();
        lines.push(format!(
            "longest divided response of {}: {} = {}",
            cpu.name(),
            span(longest.response_ns),
            values.join(" + ")
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::SplitResponse;
    use model::units::Cpu;

    #[test]
    fn what_is_not_divided_is_in_the_verdict() {
        assert_eq!(verdict(&Run::default()), None);
        let mut run = Run { command: "probe".into(), ..Run::default() };
        run.plan.probe = Probe::Irq.into();
        assert!(verdict(&run).is_some_and(|words| words.starts_with("not known")));
        let of = Responses { irq: "24".into(), events: 10, split: 10, ..Responses::default() };
        run.cpus = vec![CpuRun { cpu: Some(Cpu(1)), responses: Some(of), ..CpuRun::default() }];
        assert_eq!(
            verdict(&run).as_deref(),
            Some("10 of 10 events divided to the nanosecond; no event of the kernel was lost")
        );
        if let Some(of) = &mut run.cpus[0].responses {
            (of.split, of.not_slept, of.not_split, of.events_lost, of.unanswered) = (7, 1, 2, 1, 3);
        }
        assert_eq!(
            verdict(&run).as_deref(),
            Some(
                "7 of 10 events divided to the nanosecond, 1 came before the thread slept, 2 not divided: \
                 events of the kernel are missing; 3 requests had no event in time; 1 event was lost by the \
                 kernel's buffers"
            )
        );
    }

    #[test]
    fn parts_have_means_and_the_longest_response_its_sum() {
        let part = |part: ResponsePart, sum, max| PartTime {
            part: part.into(),
            sum_ns: Nanos(sum),
            max_ns: Nanos(max),
        };
        let of = Responses {
            irq: "24".into(),
            handler: "eth0".into(),
            events: 2,
            split: 2,
            parts: vec![part(ResponsePart::Entry, 4_000, 3_000), part(ResponsePart::Switch, 2_000, 1_500)],
            longest: vec![SplitResponse {
                response_ns: Nanos(4_500),
                entry_ns: Nanos(3_000),
                switch_ns: Nanos(1_500),
                ..SplitResponse::default()
            }],
            ..Responses::default()
        };
        let cpus = vec![CpuRun { cpu: Some(Cpu(1)), responses: Some(of), ..CpuRun::default() }];
        assert_eq!(
            lines(&Run { cpus, ..Run::default() }),
            [
                "CPU 1, interrupt 24 eth0: to the interrupt 2 us, at most 3 us; switch to thread 1 us, at \
                 most 1.50 us (means)",
                "longest divided response of CPU 1: 4.50 us = to the interrupt 3 us + switch to thread 1.50 us"
            ]
        );
    }
}
