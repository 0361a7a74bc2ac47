//! The consoles that kernel messages go to.
//!
//! Source: `/sys/class/tty/console/active` in Documentation/ABI/testing/sysfs-tty, and
//! `/proc/consoles` in Documentation/filesystems/proc.rst, `printk` in
//! Documentation/admin-guide/sysctl/kernel.rst; flags of the consoles in fs/proc/consoles.c, and
//! `printk_get_console_flush_type()` in kernel/printk/internal.h for the printing context.

use super::line::{excerpt, parse_line};

/// Limit of consoles, more than any machine has.
const CONSOLES_LIMIT: usize = 64;

/// Parses the names of the consoles: `tty0 ttyS0`, in the kernel's order.
pub fn parse_active(text: &str) -> Result<Vec<String>, String> {
    let line = parse_line(text)?;
    Ok(line.split_whitespace().take(CONSOLES_LIMIT).map(str::to_owned).collect())
}

/// A console of `/proc/consoles`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Console {
    pub name: String,
    /// True for a boot console, which `/sys/class/tty/console/active` does not list: flag B
    /// (earlycon, earlyprintk), or one of x86's that lacks the flag because it is to stay
    /// (`early_console_register()` of arch/x86/kernel/early_printk.c).
    pub is_boot: bool,
    /// Flag N: a separate thread prints. With a console of flag B none does.
    pub is_threaded: bool,
    /// Flag W: it is written to at all, unlike `ttynull`.
    pub is_written: bool,
}

/// Parses `/proc/consoles`.
pub fn parse_consoles(text: &str) -> Result<Vec<Console>, String> {
    let (mut found, mut has_boot) = (Vec::new(), false);
    for line in text.lines().take(CONSOLES_LIMIT).filter(|line| !line.trim().is_empty()) {
        // "ttyS0                -W- (EC Np a)    4:64"
        let wrong = || format!("expected NAME RWU (FLAGS), found '{}'", excerpt(line));
        let mut words = line.split_whitespace();
        let (name, access) = words.next().zip(words.next()).ok_or_else(wrong)?;
        let flags = line.split_once('(').and_then(|(_, rest)| rest.split_once(')')).ok_or_else(wrong)?.0;
        let [has_flag, is_threaded] = ['B', 'N'].map(|flag| flags.contains(flag));
        let is_written = access.contains('W') && !name.starts_with("ttynull");
        let is_boot = has_flag || is_written && name.starts_with("early");
        has_boot |= has_flag;
        found.push(Console { name: excerpt(name), is_boot, is_threaded, is_written });
    }
    found.iter_mut().for_each(|console| console.is_threaded &= !has_boot);
    Ok(found)
}

/// Parses the first number of `/proc/sys/kernel/printk`: messages of a lower level are printed.
pub fn parse_loglevel(text: &str) -> Result<i64, String> {
    // "4\t4\t1\t7"
    let numbers: Result<Vec<i64>, _> = text.split_whitespace().take(8).map(str::parse).collect();
    match numbers.as_deref() {
        Ok([level, _, _, _]) => Ok(*level),
        _ => Err(format!("expected four numbers, found '{}'", excerpt(text.trim()))),
    }
}

/// True for a console whose line is waited for: `ttyS0`, `ttyAMA0`, `ttymxc0`, and `hvc0`, where
/// the firmware or the host accepts each piece (`hvc_console_print()`); false for screens (`tty0`)
/// and `ttynull`.
pub fn is_serial(name: &str) -> bool {
    let is_hvc = name.strip_prefix("hvc").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    is_hvc
        || name.strip_prefix("tty").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
            && !name.starts_with("ttynull")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn serial_lines_are_distinguished_from_screens() {
        let serial: Vec<String> = parse_active("tty0 ttyS0 ttymxc1 hvc0 ttynull0 netcon0\n").unwrap();
        let serial: Vec<&String> = serial.iter().filter(|name| is_serial(name)).collect();
        assert_eq!(serial, ["ttyS0", "ttymxc1", "hvc0"]);
        assert_eq!(parse_active("\n"), Ok(vec![]));
    }

    #[test]
    fn consoles_with_a_thread_of_their_own() {
        let text = "ttyAMA0              -W- (EC Np a)  204:64\ntty0                 -WU (E  p  )    4:1\n";
        let words = |text: &str| -> Vec<String> {
            let mark = |is: bool, mark| if is { mark } else { "" };
            let word = |one: Console| {
                let is_silent = !one.is_written;
                one.name
                    + mark(one.is_boot, " boot")
                    + mark(one.is_threaded, " thread")
                    + mark(is_silent, " silent")
            };
            parse_consoles(text).unwrap().into_iter().map(word).collect()
        };
        assert_eq!(words(text), ["ttyAMA0 thread", "tty0"]);
        let boot = format!("{text}pl11                 -W- (EB  p a)\n");
        assert_eq!(words(&boot), ["ttyAMA0", "tty0", "pl11 boot"]);
        let early = format!("{text}earlyser0            -W- (E  p )\n");
        assert_eq!(words(&early), ["ttyAMA0 thread", "tty0", "earlyser0 boot"]);
        assert_eq!(words("ttynull0             --- (EC  p  )\n"), ["ttynull0 silent"]);
        assert_eq!(parse_consoles(""), Ok(vec![]));
        assert!(parse_consoles("garbage\n").is_err());
    }

    #[test]
    fn the_first_number_is_the_consoles() {
        assert_eq!(parse_loglevel("7\t4\t1\t7\n"), Ok(7));
        for bad in ["", "7", "7 4 1 x", "1 2 3 4 5"] {
            assert!(parse_loglevel(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn parsers_are_total(text in "[\\PC\n()N ]{0,80}") {
            let _ = (parse_active(&text), parse_consoles(&text), is_serial(&text), parse_loglevel(&text));
        }
    }
}
