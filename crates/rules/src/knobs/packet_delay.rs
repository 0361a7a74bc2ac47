//! Delayed packets: a network interface whose interrupts the kernel defers.

use super::sources::{NAPI, NET_DEV_C};
use crate::change::Change;
use crate::change::Persistence;
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::view::MachineView;
use crate::words::{truncate_list, truncate_words};
use facts::line::parse_u64;
use facts::texts::Text;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "packet-delay",
    title: "packets that wait for a timer",
    description: "With gro_flush_timeout an interface may hold packets that it merges, and with \
                  napi_defer_hard_irqs its interrupts stay masked after a poll: instead of an interrupt for \
                  the next packet, a timer polls again after this number of nanoseconds.",
    rationale: "a thread that waits for a packet is woken by the timer, up to the timeout later, and the \
                timer adds an interrupt",
    detection: "gro_flush_timeout and napi_defer_hard_irqs of each interface. From 6.13 on a queue can have \
                separate values through netlink, which are not read; delays in the interface itself (ethtool \
                -c) are not read either.",
    side_effects: "More interrupts under load, and less throughput.",
    wanted: "gro_flush_timeout 0",
    fix: || Change::each(Vec::new(), CALLED, "", 0).into(),
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    sets: TIMEOUT,
    sources: &[
        Source { title: "kernel: NAPI, software IRQ coalescing", url: NAPI },
        Source { title: "kernel source: net/core/dev.c, napi_complete_done()", url: NET_DEV_C },
    ],
    cures: &[SliceKind::Softirq, SliceKind::TimerIrq],
    reads: &[TIMEOUT, DEFER],
    judge,
    examples: Examples {
        fires: "/sys/class/net/eth0/gro_flush_timeout: 20000
                /sys/class/net/eth0/napi_defer_hard_irqs: 2",
        silent: "/sys/class/net/eth0/gro_flush_timeout: 0
                 /sys/class/net/eth0/napi_defer_hard_irqs: 0",
        unknown: "/sys/class/net/eth0/gro_flush_timeout refused",
    },
    ..Knob::DEFAULT
};

const TIMEOUT: &str = "/sys/class/net/*/gro_flush_timeout";
const CALLED: &str = "/sys/class/net/NAME/gro_flush_timeout";
const DEFER: &str = "/sys/class/net/*/napi_defer_hard_irqs";

fn judge(machine: &MachineView) -> Judged {
    if machine.has_profile(Profile::BusyPoll) {
        return Err(Judgement::not_applicable(
            "a program that polls its sockets uses it to avoid interrupts (SO_PREFER_BUSY_POLL)",
        ));
    }
    let texts = machine.texts(TIMEOUT)?;
    if texts.is_empty() {
        return Err(Judgement::not_applicable("no network interface delays packets"));
    }
    let deferred = |name: &str| {
        let same = |text: &&Text| text.names.first().is_some_and(|known| known == name);
        let text = machine.texts(DEFER).ok()?.iter().find(same)?;
        text.content.clone().parse(|content| parse_u64(&content)).known().copied()
    };
    let (mut names, mut delays) = (Vec::new(), Vec::new());
    for text in texts {
        let Some(&nanoseconds) = text.content.clone().parse(|content| parse_u64(&content)).known() else {
            continue;
        };
        let name = text.names.first().map_or("", String::as_str);
        if nanoseconds > 0 {
            let masked =
                if deferred(name).is_some_and(|count| count > 0) { ", interrupts masked" } else { "" };
            delays.push(format!("{name} up to {}{masked}", span(nanoseconds)));
            names.push(name);
        }
    }
    if names.is_empty() {
        machine.each(TIMEOUT, parse_u64)?;
        return Ok(Judgement::pass("none"));
    }
    let severity = if machine.has_profile(Profile::Audio) { Severity::Info } else { Severity::Low };
    let paths = names.iter().map(|name| TIMEOUT.replacen('*', name, 1)).collect();
    Ok(Judgement::fail(truncate_words(delays)).severity(severity).fix(Change::each(
        paths,
        CALLED,
        &truncate_list(names),
        0,
    )))
}

fn span(nanoseconds: u64) -> String {
    match nanoseconds {
        ..1_000 => format!("{nanoseconds} ns"),
        _ => format!("{} us", nanoseconds / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const NET: &str = "/sys/class/net";

    #[test]
    fn the_timeout_decides_and_the_count_is_reported() {
        check(&KNOB, "", "pass none");
        let held = format!("{NET}/eth0/gro_flush_timeout: 20000");
        check(&KNOB, &held, "fail low eth0 up to 20 us");
        let masked = format!("{held}\n{NET}/eth0/napi_defer_hard_irqs: 2\n{NET}/eth1/gro_flush_timeout: 900");
        check(&KNOB, &masked, "fail low eth0 up to 20 us, interrupts masked, eth1 up to 900 ns");
        check(&KNOB, &format!("{NET}/eth0/napi_defer_hard_irqs: 100"), "pass none");
        check(&KNOB, &format!("{held}\n--profile busy-poll"), "not-applicable");
        check(&KNOB, &format!("{held}\n--profile audio"), "fail info");
    }

    #[test]
    fn without_interfaces_nothing_waits() {
        check(&KNOB, &format!("{NET} absent"), "not-applicable no network interface delays packets");
        check(&KNOB, &format!("{NET} refused"), "unknown");
        check(&KNOB, &format!("{NET}/eth0/gro_flush_timeout: ns"), "unknown");
        let both = format!("{NET}/eth0/gro_flush_timeout refused\n{NET}/eth1/gro_flush_timeout: 50000");
        check(&KNOB, &both, "fail low eth1 up to 50 us");
    }
}
