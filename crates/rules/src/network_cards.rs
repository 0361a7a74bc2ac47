//! Network cards in use, and the settings of each.

use super::judgement::Judgement;
use super::view::MachineView;
use facts::line::parse_word;
use facts::texts::Text;

/// Driver of a network interface: interfaces without one are not cards.
pub const DRIVER: &str = "/sys/class/net/*/device/driver@";
/// State of its link.
pub const STATE: &str = "/sys/class/net/*/operstate";
/// Interfaces whose settings were read from the kernel.
pub const ASKED: &str = "/syscall/ethtool/";

/// A network card in use.
pub struct Card<'a, T> {
    pub name: &'a str,
    pub driver: &'a str,
    pub value: T,
}

/// Settings of each card in use; returns early if there is none, or none was read.
pub fn in_use<'a, T>(
    machine: &MachineView<'a>,
    pattern: &str,
    command: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Vec<Card<'a, T>>, Judgement> {
    let drivers = machine.texts(DRIVER)?;
    // The state of an interface whose driver does not report it is unknown.
    let states = machine.each(STATE, parse_word)?;
    let carries = |name: &str| {
        states.iter().any(|(names, state)| names[0] == name && matches!(state.as_str(), "up" | "unknown"))
    };
    let name_of = |text: &'a Text| text.names.first().map_or("", String::as_str);
    let used: Vec<&Text> = drivers.iter().filter(|text| carries(name_of(text))).collect();
    if used.is_empty() {
        return Err(Judgement::not_applicable("no network card is in use"));
    }
    let first = name_of(used[0]);
    if machine.parsed(ASKED, |_| Ok(()))?.is_none() {
        return Err(Judgement::unknown(format!("no file shows it: run `ethtool {command} {first}`")));
    }
    let expected = || format!("expected the output of ethtool {command}");
    let settings = machine.each(pattern, |text| parse(text).ok_or_else(expected))?;
    let card = |(names, value): (&[String], T)| {
        let text = used.iter().find(|text| name_of(text) == names[0])?;
        let driver = text.content.known().map_or("", String::as_str);
        Some(Card { name: name_of(text), driver, value })
    };
    let cards: Vec<Card<T>> = settings.into_iter().filter_map(card).collect();
    if cards.is_empty() {
        return Err(Judgement::not_applicable(format!("the driver of {first} has no such setting")));
    }
    Ok(cards)
}
