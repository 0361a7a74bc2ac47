//! Lists of CPUs on the kernel's command line, with two keywords that other lists lack: `all` and
//! `N`.
//!
//! Source: "CPU lists" in Documentation/admin-guide/kernel-parameters.rst, `isolcpus=` in
//! kernel-parameters.txt, and `bitmap_parselist()` in lib/bitmap-str.c.

use super::line::excerpt;
use model::text::several;
use model::units::{Cpu, CpuSet};

/// Limit of a list in bytes: longer ones fit on no command line.
const LIST_LIMIT: usize = 4096;

/// Value of `isolcpus=`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Isolcpus {
    /// Out of load balancing: also the default without flags.
    pub domain: bool,
    /// Managed interrupts are kept away if possible.
    pub managed_irq: bool,
    /// No tick, as with `nohz_full=`.
    pub nohz: bool,
    /// First flag that the kernel does not know.
    pub skipped: Option<String>,
    pub cpus: CpuSet,
}

/// Parses a list of CPUs; `last` is the machine's last possible CPU, the value of `N`.
pub fn parse_kernel_list(text: &str, last: Cpu) -> Result<CpuSet, String> {
    if text.len() > LIST_LIMIT {
        return Err(format!(
            "expected a list of CPUs, found {}",
            several(text.len() as u64, "byte", "bytes")
        ));
    }
    let parts = text.split([',', ' ']).filter(|part| !part.is_empty()).map(|part| {
        let (range, rest) =
            part.split_once(':').map_or((part, ""), |(range, _)| (range, &part[range.len()..]));
        let range = match range.to_ascii_lowercase().as_str() {
            "all" => format!("0-{last}"),
            _ => {
                let ends: Vec<String> = range
                    .split('-')
                    .map(|end| if end == "N" { last.to_string() } else { end.to_owned() })
                    .collect();
                ends.join("-")
            }
        };
        format!("{range}{rest}")
    });
    CpuSet::parse(&parts.collect::<Vec<_>>().join(",")).map_err(|error| excerpt(&error))
}

/// Parses the value of `isolcpus=`: flags, and the list, which cannot begin with a word there.
pub fn parse_isolcpus(text: &str, last: Cpu) -> Result<Isolcpus, String> {
    let mut found =
        Isolcpus { domain: false, managed_irq: false, nohz: false, skipped: None, cpus: CpuSet::default() };
    let mut rest = text;
    while rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
        let (flag, after) = rest.split_once(',').map_or((rest, None), |(flag, after)| (flag, Some(after)));
        match flag {
            "domain" if after.is_some() => found.domain = true,
            "managed_irq" if after.is_some() => found.managed_irq = true,
            "nohz" if after.is_some() => found.nohz = true,
            // A word that could be a flag of another kernel is skipped.
            other if other.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_') => {
                found.skipped.get_or_insert_with(|| other.to_owned());
            }
            other => return Err(format!("expected a flag or a list, found '{}'", excerpt(other))),
        }
        rest = after.unwrap_or_default();
    }
    found.domain |= !found.managed_irq && !found.nohz;
    found.cpus = parse_kernel_list(rest, last)?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expected: &str) {
        let summary = parse_isolcpus(text, Cpu(7)).map_or_else(
            |_| "error".to_owned(),
            |found| {
                let flag = |set: bool, letter: &'static str| if set { letter } else { "" };
                let (domain, managed, nohz) =
                    (flag(found.domain, "d"), flag(found.managed_irq, "m"), flag(found.nohz, "n"));
                format!("{domain}{managed}{nohz} {}", found.cpus)
            },
        );
        assert_eq!(summary, expected, "{text}");
    }

    #[test]
    fn flags_and_keywords_of_lists() {
        check("2-3", "d 2-3");
        check("domain,managed_irq,2-3", "dm 2-3");
        check("managed_irq,2-3", "m 2-3");
        check("nohz,domain,1,4-5", "dn 1,4-5");
        check("later,2", "d 2");
        check("4-N", "d 4-7");
        check("N", "d ");
        check("N-3", "error");
        check("domain,all:1/2", "error");
        check("0-N:1/4", "d 0,4");
        check("", "d ");
        check("2-3n", "error");
        check("domain", "d ");
        check("3-2", "error");
        let list = |text| parse_kernel_list(text, Cpu(7)).map(|cpus| cpus.to_string()).unwrap_or_default();
        assert_eq!([list("all"), list("All:1/2"), list("N"), list("x")], ["0-7", "0,2,4,6", "7", ""]);
        assert_eq!([list("2-N"), list("0,N"), list("2N"), list("al")], ["2-7", "0,7", "", ""]);
        assert!(parse_kernel_list(&"0,".repeat(LIST_LIMIT), Cpu(7)).is_err());
    }

    proptest! {
        #[test]
        fn parsers_are_total(text in "((domain|nohz|all|N|[0-9]{1,4}|\\PC),?[-:/]?){0,6}") {
            let _ = (parse_isolcpus(&text, Cpu(63)), parse_kernel_list(&text, Cpu(0)));
        }
    }
}
