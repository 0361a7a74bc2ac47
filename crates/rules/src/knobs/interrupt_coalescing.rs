//! Network cards that delay the interrupts of packets.

use super::sources::{ETHTOOL, ETHTOOL_NETLINK};
use crate::change::{AdviceReason, Persistence};
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::network_cards::{ASKED, Card, DRIVER, STATE, in_use};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::{truncate_list, truncate_words};
use facts::ethtool::{Coalescing, parse_coalescing};
use model::slice::SliceKind;

const TEXT: &str = "/syscall/ethtool/*/coalesce";

pub static KNOB: Knob = Knob {
    id: "interrupt-coalescing",
    title: "interrupts delayed by a network card",
    description: "A network card waits after a packet, for some microseconds or for more packets (rx-usecs, \
                  rx-frames), before it interrupts; with adaptive-rx the driver chooses the delay. Most \
                  cards do so by default.",
    rationale: "a thread that waits for a packet is woken later by this delay, which with adaptive-rx \
                depends on other received packets",
    detection: "The delays of each card in use that has a driver, as ethtool -c shows them; no privilege is \
                needed. With e1000, e1000e, igb and igc, rx-usecs from 1 to 4 means the driver's choice, \
                with ixgbe 1 does. A driver that shows nothing has nothing to set. Interrupts of sent \
                packets delay no thread.",
    side_effects: "One interrupt for each packet: on cards with other traffic this costs more CPU time than \
                   it gains, so do not change those.",
    wanted: "rx-usecs 0 and adaptive-rx off, if a real-time thread waits for packets",
    fix: || {
        Remedy::advice(AdviceReason::Choice, "ethtool -C NAME rx-usecs 0, after adaptive-rx off if it is on")
    },
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    disputed: "it is not known which card a real-time thread waits for: `onbeat hunt` of that thread with \
               both settings shows whether it gains anything",
    persistence: Persistence::Runtime,
    unsettable: "it is set with ethtool, and the cards that serve real-time threads are not known",
    sources: &[
        Source { title: "kernel: netlink interface for ethtool, COALESCE_GET", url: ETHTOOL_NETLINK },
        Source { title: "ethtool(8), -c and -C", url: ETHTOOL },
    ],
    cures: &[SliceKind::Softirq, SliceKind::Irq],
    reads: &[DRIVER, STATE, ASKED, TEXT],
    judge,
    examples: Examples {
        fires: "/sys/class/net/eth0/operstate: up
                /sys/class/net/eth0/device/driver -> stmmac
                /syscall/ethtool/eth0/coalesce: Adaptive RX: off  TX: off
                | rx-usecs: 50",
        silent: "/sys/class/net/eth0/operstate: up
                 /sys/class/net/eth0/device/driver -> igb
                 /syscall/ethtool/eth0/coalesce: Adaptive RX: off  TX: off
                 | rx-usecs: 0",
        unknown: "/sys/class/net/eth0/operstate: up
                  /sys/class/net/eth0/device/driver -> igb
                  /syscall/ethtool/eth0/coalesce refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    if machine.has_profile(Profile::BusyPoll) {
        return Err(Judgement::not_applicable(
            "a program that polls its sockets does not wait for interrupts",
        ));
    }
    let cards = in_use(machine, TEXT, "-c", parse_coalescing)?;
    let delayed: Vec<(String, String)> =
        cards.iter().filter_map(|card| Some((command(card), delay(card)?))).collect();
    if delayed.is_empty() {
        return Ok(Judgement::pass(format!(
            "no delay by {}",
            truncate_list(cards.iter().map(|card| card.name))
        )));
    }
    let severity = if machine.has_profile(Profile::Audio) { Severity::Info } else { Severity::Low };
    let (commands, delays): (Vec<String>, Vec<String>) = delayed.into_iter().unzip();
    let words = format!(
        "{}, if a real-time thread waits for packets; at boot RxCoalesceSec= and UseAdaptiveRxCoalesce= of a \
         .link file",
        truncate_list(commands)
    );
    Ok(Judgement::fail(truncate_words(delays))
        .severity(severity)
        .fix(Remedy::advice(AdviceReason::Choice, words)))
}

/// Command that ends the delay. A word that the driver does not know has the kernel refuse all of
/// them (`ethnl_set_coalesce()` of net/ethtool/coalesce.c).
fn command(card: &Card<Coalescing>) -> String {
    let adaptive = if card.value.is_adaptive { "adaptive-rx off " } else { "" };
    format!("ethtool -C {} {adaptive}rx-usecs 0", card.name)
}

/// Delay of packets by a card; none without one.
fn delay(card: &Card<Coalescing>) -> Option<String> {
    let Coalescing { is_adaptive, rx_usecs, rx_frames } = card.value;
    // Values that select a mode (`e1000_get_coalesce()`, `igb_get_coalesce()` and similar).
    let chosen = match card.driver {
        "e1000" | "e1000e" | "igb" | "igc" => (1..=4).contains(&rx_usecs),
        "ixgbe" | "ixgbevf" => rx_usecs == 1,
        _ => false,
    };
    match (is_adaptive || chosen, rx_usecs, rx_frames) {
        (true, ..) => Some(format!("{} by the driver's choice", card.name)),
        // The first packet ends the delay.
        (_, 0, _) | (_, _, 1) => None,
        _ => Some(format!("{} up to {rx_usecs} us", card.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    fn card(name: &str, driver: &str, output: &str) -> String {
        let net = format!("/sys/class/net/{name}");
        format!(
            "{net}/operstate: up\n{net}/device/driver -> {driver}\n\
             /syscall/ethtool/{name}/coalesce: {}",
            output.replace(", ", "\n| ")
        )
    }

    #[test]
    fn the_delay_is_named_as_the_driver_means_it() {
        check(&KNOB, "", "not-applicable no network card is in use");
        check(&KNOB, &card("eth0", "stmmac", "rx-usecs: 50, rx-frames: 32"), "fail low eth0 up to 50 us");
        check(&KNOB, &card("eth0", "stmmac", "rx-usecs: 50, rx-frames: 1"), "pass no delay by eth0");
        check(&KNOB, &card("eth0", "igb", "rx-usecs: 3"), "fail low eth0 by the driver's choice");
        check(&KNOB, &card("eth0", "ixgbe", "rx-usecs: 3"), "fail low eth0 up to 3 us");
        let adaptive = card("eth0", "mlx5_core", "Adaptive RX: on  TX: off, rx-usecs: 8");
        check(&KNOB, &adaptive, "fail low eth0 by the driver's choice");
        check(&KNOB, &format!("{adaptive}\n--profile audio"), "fail info eth0 by the driver's choice");
        check(&KNOB, &format!("{adaptive}\n--profile busy-poll"), "not-applicable");
        for (card, command) in [
            (&adaptive, "ethtool -C eth0 adaptive-rx off rx-usecs 0"),
            (&card("eth0", "igc", "Adaptive RX: n/a  TX: n/a, rx-usecs: 3"), "ethtool -C eth0 rx-usecs 0"),
        ] {
            let mut machine = Machine::base();
            machine.edit(card);
            let fix = machine.finding(&KNOB).fix;
            assert!(fix.starts_with(command), "{fix}");
        }
        let both = format!(
            "{}\n{}",
            card("eth0", "igb", "rx-usecs: 0"),
            card("eth1", "r8169", "rx-usecs: 100, rx-frames: 4")
        );
        check(&KNOB, &both, "fail low eth1 up to 100 us");
    }

    #[test]
    fn only_cards_that_carry_packets_count() {
        let card = card("eth0", "stmmac", "rx-usecs: 50");
        check(&KNOB, &card.replace(": up", ": down"), "not-applicable no network card is in use");
        check(&KNOB, &card.replace(": up", ": unknown"), "fail low eth0 up to 50 us");
        let none = format!("{card}\n/syscall/ethtool/eth0/coalesce absent\n/syscall/ethtool/: lo");
        check(&KNOB, &none, "not-applicable the driver of eth0 has no such setting");
        // A copy of the files contains no results of system calls.
        let copy = format!("{card}\n/syscall absent");
        check(&KNOB, &copy, "unknown no file shows it: run `ethtool -c eth0`");
        check(&KNOB, &card.replace("rx-usecs: 50", "none"), "unknown");
    }
}
