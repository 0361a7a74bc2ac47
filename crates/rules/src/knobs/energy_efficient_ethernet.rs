//! Links of network cards that sleep between packets (Energy-Efficient Ethernet).

use super::sources::{ETHTOOL, ETHTOOL_NETLINK};
use crate::change::{AdviceReason, Persistence};
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::network_cards::{ASKED, DRIVER, STATE, in_use};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::truncate_list;
use facts::ethtool::{Eee, parse_eee};
use model::slice::SliceKind;

const TEXT: &str = "/syscall/ethtool/*/eee";

pub static KNOB: Knob = Knob {
    id: "energy-efficient-ethernet",
    title: "power saving of Ethernet",
    description: "With IEEE 802.3az both ends of a link sleep while no packet is sent, if both support it. \
                  It is on by default if the card and its driver support it.",
    rationale: "the packet that ends a pause waits until the link is awake, 17 us at 1 Gbit/s and 30 us at \
                100 Mbit/s by the standard; the driver may delay the sleep by a timer",
    detection: "The state of each card in use, as ethtool --show-eee shows it, without privileges: \
                whether it is enabled, and whether the other end agreed. Links behind a switch are \
                not seen.",
    side_effects: "Less than a watt for each link. Changing it interrupts the link for some seconds.",
    wanted: "disabled, on the links of real-time packets",
    fix: || Remedy::advice(AdviceReason::Choice, "ethtool --set-eee NAME eee off"),
    severity: Severity::Low,
    evidence: EvidenceKind::Practice,
    disputed: "the cost depends on the card and the switch: compare fieldbus round trips after a pause, with \
               it and without it",
    persistence: Persistence::Runtime,
    unsettable: "it is set with ethtool and interrupts the link for seconds, and the links of real-time \
                 traffic are not known",
    sources: &[
        Source { title: "kernel: netlink interface for ethtool, EEE_GET", url: ETHTOOL_NETLINK },
        Source { title: "ethtool(8), --show-eee and --set-eee", url: ETHTOOL },
    ],
    cures: &[SliceKind::Unexplained],
    reads: &[DRIVER, STATE, ASKED, TEXT],
    judge,
    examples: Examples {
        fires: "/sys/class/net/eth0/operstate: up
                /sys/class/net/eth0/device/driver -> stmmac
                /syscall/ethtool/eth0/eee: EEE status: enabled - active",
        silent: "/sys/class/net/eth0/operstate: up
                 /sys/class/net/eth0/device/driver -> stmmac
                 /syscall/ethtool/eth0/eee: EEE status: disabled",
        unknown: "/sys/class/net/eth0/operstate: up
                  /sys/class/net/eth0/device/driver -> stmmac
                  /syscall/ethtool/eth0/eee refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    let mut cards = in_use(machine, TEXT, "--show-eee", parse_eee)?;
    cards.retain(|card| card.value != Eee::NotSupported);
    if cards.is_empty() {
        return Err(Judgement::not_applicable("no card in use supports it"));
    }
    let of = |state: Eee| cards.iter().filter(move |card| card.value == state).map(|card| card.name);
    let active: Vec<&str> = of(Eee::Active).collect();
    if active.is_empty() {
        let refused = truncate_list(of(Eee::Inactive));
        return Ok(Judgement::pass(if refused.is_empty() {
            "disabled".to_owned()
        } else {
            format!("enabled for {refused}, but not by the other end")
        }));
    }
    let severity = if machine.has_profile(Profile::Audio) { Severity::Info } else { Severity::Low };
    let each = active.iter().map(|name| format!("ethtool --set-eee {name} eee off"));
    let words = format!("{}, and the same at each boot (a udev rule)", truncate_list(each));
    Ok(Judgement::fail(format!("active on {}", truncate_list(&active)))
        .severity(severity)
        .fix(Remedy::advice(AdviceReason::Choice, words)))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn both_ends_have_to_agree() {
        let card = |status: &str| {
            let net = "/sys/class/net/eth0";
            format!(
                "{net}/operstate: up\n{net}/device/driver -> igc\n\
                 /syscall/ethtool/eth0/eee: EEE status: {status}"
            )
        };
        check(&KNOB, "", "not-applicable no network card is in use");
        check(&KNOB, &card("enabled - active"), "fail low active on eth0");
        check(&KNOB, &format!("{}\n--profile audio", card("enabled - active")), "fail info active on eth0");
        check(&KNOB, &card("enabled - inactive"), "pass enabled for eth0, but not by the other end");
        check(&KNOB, &card("disabled"), "pass disabled");
        check(&KNOB, &card("not supported"), "not-applicable no card in use supports it");
        check(&KNOB, &card("maybe"), "unknown");
    }
}
