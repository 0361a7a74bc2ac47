//! Recorder of accesses: everything that was read of a machine, refusals included, so that it can
//! be read again elsewhere.
//!
//! A capture lists what the code really read, not what it is assumed to read.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use model::fact::Fact;

/// The outcome of one access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    File(Vec<u8>),
    List(Vec<String>),
    /// The last component of a link's target.
    Link(String),
    /// The path does not exist.
    Absent,
    /// The error number of the refusal.
    Refused(i32),
    /// The value exists only on a running kernel, and the machine is not one.
    NotRunning,
}

impl Access {
    /// Converts a fact to the outcome that is recorded; `known` converts its value.
    ///
    /// Two error numbers stand for outcomes other than refusals: EILSEQ for malformed content,
    /// which is not recorded, and ENODATA for what a capture did not hold.
    pub fn of<T>(fact: &Fact<T>, known: impl FnOnce(&T) -> Access) -> Access {
        match fact {
            Fact::Known(value) => known(value),
            Fact::Absent => Access::Absent,
            Fact::Refused(errno) => Access::Refused(*errno),
            Fact::Malformed(_) => Access::Refused(libc::EILSEQ),
            Fact::NotCaptured => Access::Refused(libc::ENODATA),
            Fact::NotRunning => Access::NotRunning,
        }
    }
}

/// Fact for a path that did not answer with a file.
pub(super) fn no_file<T>(seen: &Access) -> Fact<T> {
    match seen {
        Access::File(_) | Access::Absent => Fact::Absent,
        Access::Refused(libc::ENODATA) => Fact::NotCaptured,
        Access::Refused(errno) => Fact::Refused(*errno),
        Access::List(_) => Fact::Refused(libc::EISDIR),
        Access::Link(_) => Fact::Refused(libc::ELOOP),
        Access::NotRunning => Fact::NotRunning,
    }
}

/// Accesses by path; a path that is read twice keeps its first answer.
#[derive(Default)]
pub struct AccessRecorder {
    seen: RefCell<BTreeMap<String, Access>>,
}

impl AccessRecorder {
    pub(super) fn record(&self, path: &str, seen: Access) {
        self.seen.borrow_mut().entry(path.to_owned()).or_insert(seen);
    }

    pub(super) fn record_as(&self, path: &str, seen: Access) {
        self.seen.borrow_mut().insert(path.to_owned(), seen);
    }

    /// Paths accessed so far.
    pub fn paths(&self) -> BTreeSet<String> {
        self.seen.borrow().keys().cloned().collect()
    }

    /// Accesses so far, by path.
    pub fn accesses(&self) -> BTreeMap<String, Access> {
        self.seen.borrow().clone()
    }
}

/// Removes private data from a file's content: serial numbers, MAC addresses, arguments of other
/// programs.
///
/// Bundles are shared, and some files contain more than the machine's setup: Arm boards print their
/// serial number in `/proc/cpuinfo`, firmware puts it and the MAC address on the command line, and
/// interrupts are named after interfaces, whose names may contain their addresses.
pub fn redact(path: &str, bytes: Vec<u8>) -> Vec<u8> {
    match path {
        "/proc/cpuinfo" => redact_cpuinfo(&bytes),
        "/proc/cmdline" => redact_cmdline(&bytes),
        _ if path.contains("irqbalance") => redact_environment(&bytes),
        _ if path.starts_with("/boot/config-") || path.starts_with("/lib/modules/") => {
            redact_configuration(&bytes)
        }
        _ if bytes.len() <= SHORT && has_address(&bytes) => mask_name(&bytes, 0),
        _ => bytes,
    }
}

/// Longest text, in bytes, searched for addresses: lists of interfaces are shorter.
const SHORT: usize = 64 << 10;

/// Prefixes of interface names made from a MAC address (systemd.net-naming-scheme(7)).
const BY_ADDRESS: [&[u8]; 4] = [b"enx", b"wlx", b"wwx", b"usx"];

/// Bytes to keep and bytes of the address that follows them, if a name with an address begins at
/// `at`: the prefix of three for an interface, none for a kernel address.
fn address_at(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let digits = |from: usize, to: usize| {
        bytes.get(from..to).is_some_and(|text| text.iter().all(u8::is_ascii_hexdigit))
    };
    if BY_ADDRESS.contains(&bytes.get(at..at + 3).unwrap_or_default()) && digits(at + 3, at + 15) {
        return Some((3, 12));
    }
    (bytes.get(at..at + 4).is_some_and(|start| start.eq_ignore_ascii_case(b"ffff")) && digits(at, at + 16))
        .then_some((0, 16))
}

fn has_address(bytes: &[u8]) -> bool {
    (0..bytes.len())
        .any(|at| matches!(bytes[at], b'e' | b'w' | b'u' | b'f' | b'F') && address_at(bytes, at).is_some())
}

/// Replaces each address in a name by a word, followed by the number unless that is 0.
fn mask_name(bytes: &[u8], number: usize) -> Vec<u8> {
    let mut masked = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let Some((kept, address)) = address_at(bytes, at) else {
            masked.push(bytes[at]);
            at += 1;
            continue;
        };
        masked.extend_from_slice(&bytes[at..at + kept]);
        masked.extend_from_slice(if kept > 0 { b"-address" } else { b"address" });
        if number > 0 {
            masked.extend_from_slice(format!("-{number}").as_bytes());
        }
        at += kept + address;
    }
    masked
}

/// Replaces the addresses in names by numbers, so that each name stays unique.
pub(super) fn mask_names(names: &[String]) -> Vec<String> {
    let mut number = 0;
    let masked = names.iter().map(|name| {
        if has_address(name.as_bytes()) {
            number += 1;
            String::from_utf8_lossy(&mask_name(name.as_bytes(), number)).into_owned()
        } else {
            name.clone()
        }
    });
    masked.collect()
}

fn redact_cpuinfo(bytes: &[u8]) -> Vec<u8> {
    let lines = bytes.split_inclusive(|&b| b == b'\n');
    let kept = lines.filter(|line| !line.trim_ascii_start().to_ascii_lowercase().starts_with(b"serial"));
    kept.collect::<Vec<_>>().concat()
}

/// The lines of a text of systemd's: a backslash at the end of one continues it in the next that is
/// no comment (systemd.syntax(7)).
pub fn unit_lines(text: &str) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for part in text.lines().map(str::trim) {
        let is_comment = part.starts_with(['#', ';']);
        if is_comment && !line.is_empty() {
            continue;
        }
        let backslashes = part.len() - part.trim_end_matches('\\').len();
        if backslashes % 2 == 1 && !is_comment {
            line += &part[..part.len() - 1];
            line.push(' ');
        } else {
            lines.push(std::mem::take(&mut line) + part);
        }
    }
    lines.extend(Some(line).filter(|line| !line.is_empty()));
    lines
}

/// The words of a value of systemd's, with blanks between them, of which quotes and backslashes
/// protect some.
pub fn unit_words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut chars) = (Vec::new(), None::<String>, None, text.chars());
    while let Some(c) = chars.next() {
        match c {
            c if quote == Some(c) => quote = None,
            '"' | '\'' if quote.is_none() => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            c if quote.is_none() && c.is_whitespace() => words.extend(word.take()),
            '\\' => word.get_or_insert_default().extend(chars.next()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The variables of a service's environment that a rule reads.
const READ: &str = "IRQBALANCE_BANNED";

/// Of a service's environment only the assignments that a rule reads: the rest can hold arguments
/// and secrets.
fn redact_environment(bytes: &[u8]) -> Vec<u8> {
    let mut kept = String::new();
    for line in unit_lines(&String::from_utf8_lossy(bytes)) {
        let (key, value) = line.split_once('=').unwrap_or((&line, ""));
        let assigned = unit_words(value);
        let mut assigned = assigned.iter().filter(|word| word.starts_with(READ)).peekable();
        // An empty assignment takes the earlier ones back.
        if line.starts_with('[') || key.starts_with("EnvironmentFile") {
            kept += &line;
        } else if key.trim_end() == "Environment" && (value.trim().is_empty() || assigned.peek().is_some()) {
            let words: Vec<String> = assigned.map(|word| public_word(word)).collect();
            kept += &format!("Environment={}", words.join(" "));
        } else if let Some(at) = line.find(READ).filter(|_| key.trim_end() != "Environment") {
            kept += match line.as_bytes()[0] {
                b'#' | b';' => "#",
                _ if key.starts_with("export") => "export ",
                _ => "",
            };
            kept += &public_setting(&line[at..]);
        } else {
            continue;
        }
        kept.push('\n');
    }
    kept.into_bytes()
}

/// An assignment of a unit up to the first blank in its value; what follows is a part of the value,
/// whose place a `#` takes.
fn public_word(word: &str) -> String {
    let plain = |c: char| !c.is_whitespace() && !matches!(c, '"' | '\'' | '\\');
    match word.find(|c| !plain(c)) {
        Some(end) => format!("\"{} #\"", &word[..end]),
        None => word.to_owned(),
    }
}

/// An assignment of a file; its value ends at its quote, or at a blank.
fn public_setting(setting: &str) -> String {
    let (name, value) = setting.split_once('=').map_or((setting, None), |(name, value)| (name, Some(value)));
    let Some(value) = value else { return name.to_owned() };
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
    let value = value.strip_prefix(['"', '\'']).unwrap_or(value);
    let end = value.find(|c: char| quote.map_or(c.is_whitespace(), |quote| c == quote));
    let (value, rest) = value.split_at(end.unwrap_or(value.len()));
    let plain = value.replace(['"', '\''], "");
    let more = if quote.is_none() && !rest.trim().is_empty() { " #" } else { "" };
    format!("{name}={plain}{more}")
}

/// Options of a kernel's configuration that identify a machine; a compressed one is not redacted.
const PRIVATE_OPTIONS: [&[u8]; 4] =
    [b"CONFIG_DEFAULT_HOSTNAME=", b"CONFIG_CMDLINE=", b"CONFIG_INITRAMFS_SOURCE=", b"CONFIG_BUILD_SALT="];

fn redact_configuration(bytes: &[u8]) -> Vec<u8> {
    let lines = bytes.split_inclusive(|&b| b == b'\n');
    lines
        .filter(|line| !PRIVATE_OPTIONS.iter().any(|option| line.starts_with(option)))
        .collect::<Vec<_>>()
        .concat()
}

/// Parts of parameter names whose values identify the machine, its disks, its network or its users.
const PRIVATE: &[&str] = &[
    "hostname",
    "machine_id",
    "domainname",
    "username",
    "passw",
    "secret",
    "token",
    "credential",
    "apikey",
    ".key",
    "uuid",
    "luks",
    "crypt",
    "lvm",
    "iscsi",
    "nfs",
    "url",
    "serial",
    "ssid",
];
/// Names of parameters whose values do so.
const PRIVATE_NAMES: &[&str] = &[
    "root",
    "rootflags",
    "resume",
    "init",
    "ip",
    "vlan",
    "netconsole",
    "ds",
    "ks",
    "inst.ks",
    "user",
    "key",
    "systemd.setenv",
];

fn is_private(name: &[u8]) -> bool {
    let name = String::from_utf8_lossy(name).trim_matches('"').to_ascii_lowercase();
    PRIVATE_NAMES.contains(&name.as_str()) || PRIVATE.iter().any(|part| name.contains(part))
}

/// Masks private values and addresses, and drops init's part; blanks in double quotes end no word.
fn redact_cmdline(bytes: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut quoted = false;
    let words = bytes.split_inclusive(|&b| {
        quoted ^= b == b'"';
        !quoted && b.is_ascii_whitespace()
    });
    for word in words {
        if word.trim_ascii() == b"--" {
            // Without its newline the line would look truncated.
            kept.extend(bytes.last().filter(|&&b| b == b'\n'));
            break;
        }
        let equals = word.iter().position(|&b| b == b'=').unwrap_or(word.len());
        let (name, value) = word.split_at(equals);
        if !value.is_empty() && is_private(name) {
            kept.extend_from_slice(name);
            // Same length as before: rules read the length of the line.
            let blank = |(at, &b): (usize, &u8)| if at == 0 || b.is_ascii_whitespace() { b } else { b'x' };
            kept.extend(value.iter().enumerate().map(blank));
        } else {
            kept.extend(mask_macs(word));
        }
    }
    kept
}

/// Replaces the digits of six or more hexadecimal pairs joined by `:` or `-` by x.
fn mask_macs(word: &[u8]) -> Vec<u8> {
    let mut masked = word.to_vec();
    let pair = |at: usize| word.get(at..at + 2).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
    let mut at = 0;
    while at < word.len() {
        let fresh = at == 0 || !word[at - 1].is_ascii_alphanumeric();
        let mut pairs = usize::from(fresh && pair(at));
        while pairs > 0 && matches!(word.get(at + 3 * pairs - 1), Some(b':' | b'-')) && pair(at + 3 * pairs) {
            pairs += 1;
        }
        if pairs >= 6 {
            for n in 0..pairs {
                masked[at + 3 * n..at + 3 * n + 2].fill(b'x');
            }
        }
        at += (3 * pairs).max(1);
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(path: &str, text: &str, expected: &str) {
        assert_eq!(String::from_utf8(redact(path, text.as_bytes().to_vec())).unwrap(), expected);
    }

    #[test]
    fn serial_numbers_of_boards_are_dropped() {
        check(
            "/proc/cpuinfo",
            "Revision\t: c03\nSerial\t\t: 1000abc\nModel\t: Pi\n",
            "Revision\t: c03\nModel\t: Pi\n",
        );
        check("/proc/meminfo", "Serial: 1\n", "Serial: 1\n");
        check("/sys/kernel/irq/9/actions", "enx0123456789ab-rx-0\n", "enx-address-rx-0\n");
    }

    #[test]
    fn of_an_environment_only_what_is_read_is_kept() {
        check(
            "/etc/default/irqbalance",
            "# by bob\nEnvironment=TOKEN=x IRQBALANCE_BANNED_CPUS=c HOME=/bob\nIRQBALANCE_ARGS=\"--secret\"\n#IRQBALANCE_BANNED_CPULIST=0\nIRQBALANCE_BANNED_CPULIST=2-3\n",
            "Environment=IRQBALANCE_BANNED_CPUS=c\n#IRQBALANCE_BANNED_CPULIST=0\nIRQBALANCE_BANNED_CPULIST=2-3\n",
        );
        check(
            "/etc/default/irqbalance",
            "IRQBALANCE_BANNED_CPULIST=2-3 # by bob\nexport IRQBALANCE_BANNED_CPUS='c'\nEnvironment=\nEnvironment = \"IRQBALANCE_BANNED_CPUS=c\" B=1\n",
            "IRQBALANCE_BANNED_CPULIST=2-3 #\nexport IRQBALANCE_BANNED_CPUS=c\nEnvironment=\nEnvironment=IRQBALANCE_BANNED_CPUS=c\n",
        );
        let unit = "/etc/systemd/system/irqbalance.service";
        let both = "Environment=IRQBALANCE_BANNED_CPUS=c IRQBALANCE_BANNED_CPULIST=2-3\n";
        check(unit, &format!("[Service]\n{both}"), &format!("[Service]\n{both}"));
        check(
            unit,
            "Environment=TOKEN=x \\\n# by bob\n  \"IRQBALANCE_BANNED_CPUS=c\" \\\n IRQBALANCE_BANNED_CPULIST=2-3\n",
            both,
        );
        check(
            unit,
            "# note \\\nEnvironment='IRQBALANCE_BANNED_CPUS=c of bob' A=1\nEnvironment=B=1\n",
            "Environment=\"IRQBALANCE_BANNED_CPUS=c #\"\n",
        );
    }

    #[test]
    fn addresses_of_the_kernel_are_no_names() {
        check(
            "/sys/kernel/tracing/kprobe_events",
            "p:kprobes/p_ffffffffc0123456 f\n",
            "p:kprobes/p_address f\n",
        );
        assert_eq!(mask_names(&["p_ffffffffc0123456".into()]), ["p_address-1"]);
    }

    #[test]
    fn command_lines_keep_what_sets_the_machine_up() {
        let path = "/proc/cmdline";
        check(path, "isolcpus=2-3 console=serial0,115200\n", "isolcpus=2-3 console=serial0,115200\n");
        check(
            path,
            "bcm2708.serial=0x12ab macaddr=B8:27:EB:0:1 q\n",
            "bcm2708.serial=xxxxxx macaddr=B8:27:EB:0:1 q\n",
        );
        check(
            path,
            "root=/dev/mapper/box--vg-root ip=10.0.0.1::10.0.0.254:255.0.0.0:box:eth0:off systemd.hostname=box quiet",
            "root=xxxxxxxxxxxxxxxxxxxxxxxx ip=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx systemd.hostname=xxx quiet",
        );
        check(path, "ifname=eth0:aa:bb:cc:dd:ee:ff a=1", "ifname=eth0:xx:xx:xx:xx:xx:xx a=1");
        check(path, "BOOTIF=01-aa-bb-cc-dd-ee-ff", "BOOTIF=xx-xx-xx-xx-xx-xx-xx");
        check(path, "a=\"b -- c\" quiet -- --secret=1\n", "a=\"b -- c\" quiet \n");
    }

    proptest! {
        #[test]
        fn redaction_is_total(bytes in proptest::collection::vec(proptest::sample::select(b"0aF:-=\" x\n\\#".to_vec()), 0..60)) {
            redact("/proc/cmdline", bytes.clone());
            redact("/proc/cpuinfo", bytes.clone());
            redact("/etc/irqbalance.service", bytes.clone());
            redact("/sys/x", bytes);
        }
    }
}
