//! Lists of CPUs as the kernel's command line takes them: with names for the last CPU and for all of them.
//!
//! Source: "CPU lists" in the kernel's Documentation/admin-guide/kernel-parameters.rst: `N` is the last CPU that
//! the machine can have (so `16-N`), `all` stands for `0-N`, and `isolcpus=` has words before its list.

use super::line::excerpt;
use crate::units::{Cpu, CpuSet};

/// Longer lists fit on no command line.
const LIST_LIMIT: usize = 4096;

/// Parses the list of a parameter such as `nohz_full=`; `last` is the highest CPU in `possible`.
pub fn parse_boot_list(text: &str, last: Cpu) -> Result<CpuSet, String> {
    if text.len() > LIST_LIMIT {
        return Err(format!("expected a list of CPUs, found {} bytes", text.len()));
    }
    // Between the separators a list has nothing but numbers, so a name is a part of its own.
    let plain = text.replace("all", "0-N").split_inclusive([',', '-', ':', '/']).fold(
        String::new(),
        |mut plain, part| {
            match part.strip_prefix('N') {
                Some(rest @ ("" | "," | "-" | ":" | "/")) => plain += &format!("{last}{rest}"),
                _ => plain += part,
            }
            plain
        },
    );
    CpuSet::parse(&plain).map_err(|error| excerpt(&error))
}

/// Parses the value of `isolcpus=`: its words, and its list.
pub fn parse_isolcpus(text: &str, last: Cpu) -> Result<(Vec<&str>, CpuSet), String> {
    let mut flags = Vec::new();
    let mut rest = text;
    while rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
        let (flag, after) = rest.split_once(',').unwrap_or((rest, ""));
        flags.push(flag);
        rest = after;
    }
    Ok((flags, parse_boot_list(rest, last)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_cpu_has_a_name() {
        let check = |text: &str, expected: &str| {
            let list = parse_boot_list(text, Cpu(7)).map(|cpus| cpus.to_string());
            assert_eq!(list, Ok(expected.to_owned()), "{text}");
        };
        check("2-3", "2-3");
        check("2-N", "2-7");
        check("0,N", "0,7");
        check("all", "0-7");
        check("all:1/2", "0,2,4,6");
        check("", "");
        for bad in ["2N", "NN", "2-", "al", "N2"] {
            assert!(parse_boot_list(bad, Cpu(7)).is_err(), "{bad}");
        }
    }

    #[test]
    fn isolcpus_has_words_before_its_list() {
        let check = |text: &str, words: &str, cpus: &str| {
            let (flags, list) = parse_isolcpus(text, Cpu(7)).unwrap();
            assert_eq!((flags.join(" "), list.to_string()), (words.to_owned(), cpus.to_owned()), "{text}");
        };
        check("managed_irq,domain,2-N", "managed_irq domain", "2-7");
        check("3", "", "3");
        check("nohz", "nohz", "");
    }

    proptest! {
        #[test]
        fn parsers_are_total(text in "(all|[N0-9,:/-]|\\PC){0,12}", last in 0u32..9000) {
            let _ = (parse_boot_list(&text, Cpu(last)), parse_isolcpus(&text, Cpu(last)));
        }
    }
}
