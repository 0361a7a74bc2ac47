//! The environment settings of irqbalance: CPUs that it must not use.
//!
//! Source: "ENVIRONMENT VARIABLES" in irqbalance(1), setup_banned_cpus in its source, and
//! EnvironmentFile= in systemd.exec(5) for the form of the file.

use super::line::{excerpt, parse_mask};
use model::units::CpuSet;

/// The CPUs in an environment file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Banned {
    /// `IRQBALANCE_BANNED_CPULIST`; empty if it names no CPU, none if it is not set.
    pub list: Option<CpuSet>,
    /// Whether the list is set to nothing at all, which versions take differently.
    pub blank: bool,
    /// `IRQBALANCE_BANNED_CPUS`, a mask that newer versions warn of or leave unread; none if it is
    /// not set or blank.
    pub mask: Option<CpuSet>,
}

impl Banned {
    /// This, and for what it leaves unsaid an earlier file.
    pub fn over(self, earlier: Banned) -> Banned {
        let blank = if self.list.is_some() { self.blank } else { earlier.blank };
        Banned { list: self.list.or(earlier.list), blank, mask: self.mask.or(earlier.mask) }
    }
}

/// Parses an environment file; the last setting of a variable counts.
pub fn parse_banned(text: &str) -> Result<Banned, String> {
    let mut banned = Banned::default();
    for line in text.lines().map(str::trim) {
        let Some((name, value)) = line.split_once('=') else { continue };
        let value = unquoted(value.trim());
        match name.trim() {
            "IRQBALANCE_BANNED_CPULIST" => {
                banned.blank = value.is_empty();
                banned.list = Some(parse_list(value)?);
            }
            "IRQBALANCE_BANNED_CPUS" if value.is_empty() => banned.mask = None,
            "IRQBALANCE_BANNED_CPUS" => banned.mask = Some(parse_mask(value)?),
            _ => {}
        }
    }
    Ok(banned)
}

/// A dash is used where no CPU is to be banned. A list with anything but digits, commas and hyphens
/// (a comment, a stride of the kernel's) is refused whole, and then no CPU is banned
/// (`__bitmap_parselist` and `setup_banned_cpus`).
fn parse_list(value: &str) -> Result<CpuSet, String> {
    let is_refused = value.starts_with(|c: char| c.is_ascii_digit())
        && value.contains(|c: char| !c.is_ascii_digit() && c != ',' && c != '-');
    if matches!(value, "" | "-") || is_refused {
        return Ok(CpuSet::default());
    }
    CpuSet::parse(value).map_err(|error| format!("IRQBALANCE_BANNED_CPULIST: {}", excerpt(&error)))
}

fn unquoted(value: &str) -> &str {
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(value).trim()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expected: &str) {
        let shown = parse_banned(text).map(|banned| {
            let cpus = |set: &Option<CpuSet>| set.as_ref().map(ToString::to_string).unwrap_or("unset".into());
            format!("{} {} {}", cpus(&banned.list), cpus(&banned.mask), banned.blank)
        });
        assert_eq!(shown.unwrap_or("error".into()), expected, "{text}");
    }

    #[test]
    fn lists_and_masks() {
        check("", "unset unset false");
        check("# IRQBALANCE_BANNED_CPULIST=2-3\nIRQBALANCE_ARGS=--banirq=9\n", "unset unset false");
        check("IRQBALANCE_BANNED_CPULIST=2-3\n", "2-3 unset false");
        check("IRQBALANCE_BANNED_CPULIST=\"1,3\"\nIRQBALANCE_BANNED_CPUS=c", "1,3 2-3 false");
        check("IRQBALANCE_BANNED_CPULIST=1\nIRQBALANCE_BANNED_CPULIST=\n", " unset true");
        check("IRQBALANCE_BANNED_CPULIST=-", " unset false");
        check("IRQBALANCE_BANNED_CPUS=\"00000001,0000000c\"", "unset 2-3,32 false");
        check("IRQBALANCE_BANNED_CPUS=\n", "unset unset false");
        check("IRQBALANCE_BANNED_CPULIST=2-3 # rt cores", " unset false");
        check("IRQBALANCE_BANNED_CPULIST=0-3:2/2", " unset false");
        check("IRQBALANCE_BANNED_CPULIST=all", "error");
        check("IRQBALANCE_BANNED_CPUS=0-3", "error");
    }

    proptest! {
        #[test]
        fn parser_is_total(text in "((IRQBALANCE_BANNED_CPU(LIST|S)|\\PC{0,4})=?[\"']?(\\PC{0,6}|[0-9a-f,-]{0,9})\n?){0,5}") {
            let _ = parse_banned(&text);
        }
    }
}
