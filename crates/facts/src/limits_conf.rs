//! Real-time priorities and locked memory that logins receive, by pam_limits(8).
//!
//! Source: limits.conf(5). The files are `/etc/security/limits.conf` and those of `limits.d`. Users
//! are not distinguished: the record only shows that some user received a limit.

use super::line::excerpt;
use host::MachineFiles;
use host::access::Access;
use model::fact::Fact;

/// Limit of files that are read; further ones are counted.
const FILES_LIMIT: usize = 256;

/// Limit of a file in bytes, more than any has.
const FILE_LIMIT: u64 = 256 << 10;

/// Limits in the files of pam_limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitsConf {
    /// Lines about real-time priorities and locked memory, in the order in which they are applied.
    pub grants: Vec<Grant>,
    /// Malformed lines about either limit; pam_limits skips such lines.
    pub skipped: u64,
    /// Files and directories that could not be read, and files over the limit.
    pub unread: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Users that it applies to.
    pub domain: Domain,
    /// Soft limit, hard limit or both.
    pub kind: Kind,
    pub item: Item,
    /// Priority, or KiB of memory; none is unlimited.
    pub value: Option<u64>,
}

/// Users that a line applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Domain {
    /// `*`: all users without a line for themselves, except root.
    Everybody,
    /// `@GROUP`: its members, except root.
    Group(String),
    /// Root, which needs a line by name.
    Root,
    /// One user, or a range of users.
    User,
}

impl std::fmt::Display for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Domain::Everybody => f.pad("*"),
            Domain::Group(name) => f.pad(&format!("@{name}")),
            Domain::Root => f.pad("root"),
            Domain::User => f.pad("a user"),
        }
    }
}

/// Limit that a line sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The limit in force.
    Soft,
    /// Highest value to which the user may raise it.
    Hard,
    Both,
}

/// Resource that a line limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// `rtprio`
    RtPriority,
    /// `memlock`
    LockedMemory,
}

/// Reads the limits of logins; absent if pam_limits has no files.
pub fn read_limits_conf(host: &MachineFiles) -> Fact<LimitsConf> {
    const DIR: &str = "/etc/security/limits.d";
    let quiet = host.unrecorded();
    let listed = quiet
        .list(DIR)
        .map(|names| names.into_iter().filter(|name| name.ends_with(".conf")).collect::<Vec<_>>());
    keep(host, DIR, &listed, |names| Access::List(names.clone()));
    let mut found = LimitsConf::default();
    let there = read_file(host, &quiet, "/etc/security/limits.conf", &mut found);
    let names = match &listed {
        Fact::Known(names) => names.as_slice(),
        Fact::Absent if !there => return Fact::Absent,
        Fact::Absent => &[],
        Fact::NotRunning => return Fact::NotRunning,
        _ => {
            found.unread += 1;
            &[]
        }
    };
    for name in names.iter().take(FILES_LIMIT) {
        read_file(host, &quiet, &format!("{DIR}/{name}"), &mut found);
    }
    found.unread += names.len().saturating_sub(FILES_LIMIT) as u64;
    Fact::Known(found)
}

/// Adds a file's lines; true if the file exists.
fn read_file(host: &MachineFiles, quiet: &MachineFiles, path: &str, found: &mut LimitsConf) -> bool {
    let file =
        quiet.read_at_most(path, FILE_LIMIT).map(|bytes| parse_limits_conf(&String::from_utf8_lossy(&bytes)));
    keep(host, path, &file, |file| Access::File(reduced(file).into_bytes()));
    match file {
        Fact::Known(file) => {
            found.grants.extend(file.grants);
            found.skipped += file.skipped;
        }
        Fact::Absent => return false,
        _ => found.unread += 1,
    }
    true
}

fn keep<T>(host: &MachineFiles, path: &str, fact: &Fact<T>, known: impl FnOnce(&T) -> Access) {
    host.record_as(path, Access::of(fact, known));
}

/// The parsed lines without the names of users, and a mark for each skipped line.
fn reduced(file: &LimitsConf) -> String {
    let mut text = String::new();
    for grant in &file.grants {
        let domain = match &grant.domain {
            Domain::User => "user".to_owned(),
            domain => domain.to_string(),
        };
        let kind = KINDS.iter().find(|kind| kind.1 == grant.kind).map_or("-", |kind| kind.0);
        let item = ITEMS.iter().find(|item| item.1 == grant.item).map_or("?", |item| item.0);
        let value = grant.value.map_or("unlimited".to_owned(), |value| value.to_string());
        text += &format!("{domain} {kind} {item} {value}\n");
    }
    text + &"user - rtprio ?\n".repeat(file.skipped as usize)
}

const KINDS: [(&str, Kind); 3] = [("soft", Kind::Soft), ("hard", Kind::Hard), ("-", Kind::Both)];

const ITEMS: [(&str, Item); 2] = [("rtprio", Item::RtPriority), ("memlock", Item::LockedMemory)];

/// Parses the lines of a pam_limits file about real-time priorities and locked memory.
pub fn parse_limits_conf(text: &str) -> LimitsConf {
    let mut file = LimitsConf::default();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().take(4).collect();
        let Some(item) =
            words.get(2).and_then(|word| ITEMS.iter().find(|item| word.eq_ignore_ascii_case(item.0)))
        else {
            continue;
        };
        match parse_grant(&words, item.1) {
            Some(grant) => file.grants.push(grant),
            None => file.skipped += 1,
        }
    }
    file
}

fn parse_grant(words: &[&str], item: Item) -> Option<Grant> {
    let &[domain, kind, _, value] = words else { return None };
    let kind = KINDS.iter().find(|known| kind.eq_ignore_ascii_case(known.0))?.1;
    let value = match value.to_ascii_lowercase().as_str() {
        "unlimited" | "infinity" | "-1" | "-" => None,
        number => Some(number.parse().ok()?),
    };
    let domain = match domain {
        "*" => Domain::Everybody,
        "root" => Domain::Root,
        _ if domain.starts_with('@') => Domain::Group(excerpt(&domain[1..])),
        // Limits the number of logins only.
        _ if domain.starts_with('%') => return None,
        _ => Domain::User,
    };
    Some(Grant { domain, kind, item, value })
}

#[cfg(test)]
mod tests {
    use super::super::tests::tree;
    use super::*;
    use proptest::prelude::*;

    /// Facts of a machine, and its capture as text; the capture has to give the same.
    fn read_tree(text: &str) -> (Fact<LimitsConf>, String) {
        let (host, _dir) = tree(text);
        let host = host.recording();
        let live = read_limits_conf(&host);
        let accesses = host.recorded().unwrap().accesses();
        let files = accesses.iter().map(|(path, seen)| match seen {
            Access::File(bytes) => format!("{path}: {}", String::from_utf8_lossy(bytes)),
            other => format!("{path}: {other:?}\n"),
        });
        let files = files.collect();
        assert_eq!(read_limits_conf(&MachineFiles::in_memory(accesses)), live);
        (live, files)
    }

    #[test]
    fn who_is_given_what_in_which_order() {
        let (found, recording) = read_tree(
            "/etc/security/limits.d/95-audio.conf: @audio - rtprio 95
             | @audio\t-\tmemlock\tUNLIMITED # for jackd
             | alice soft rtprio 99
             | bob - rtprio lots
             | carol hard
             /etc/security/limits.d/old.conf~: dave - rtprio 1
             /etc/security/limits.conf: # @nobody - rtprio 1
             | * hard memlock 8192
             | * hard core 0
             | root - memlock -1
             | %audio - rtprio 1",
        );
        let found = found.known().cloned().unwrap();
        let grants = found
            .grants
            .iter()
            .map(|grant| format!("{} {:?} {:?} {:?}", grant.domain, grant.kind, grant.item, grant.value));
        assert_eq!(
            grants.collect::<Vec<_>>(),
            [
                "* Hard LockedMemory Some(8192)",
                "root Both LockedMemory None",
                "@audio Both RtPriority Some(95)",
                "@audio Both LockedMemory None",
                "a user Soft RtPriority Some(99)",
            ]
        );
        assert_eq!((found.skipped, found.unread), (2, 0));
        for word in ["alice", "bob", "carol", "dave", "core", "jackd", "old.conf"] {
            assert!(!recording.contains(word), "{word}: {recording}");
        }
    }

    #[test]
    fn files_that_are_missing_or_refused() {
        assert_eq!(read_tree("/etc/x: 1").0, Fact::Absent);
        assert_eq!(read_tree("/etc/security/limits.conf:").0, Fact::Known(LimitsConf::default()));
        for text in [
            "/etc/security/limits.conf -> limits.conf",
            "/etc/security/limits.conf:\n/etc/security/limits.d -> limits.d",
            "/etc/security/limits.d/a.conf -> a.conf",
        ] {
            assert_eq!(read_tree(text).0.known().map(|found| found.unread), Some(1), "{text}");
        }
        let many: String =
            (0..FILES_LIMIT + 3).map(|n| format!("/etc/security/limits.d/{n}.conf:\n")).collect();
        assert_eq!(read_tree(&many).0.known().map(|found| found.unread), Some(3));
    }

    proptest! {
        #[test]
        fn parser_is_total(text in "(([@%*]|\\PC{0,5}) (soft|hard|-|\\PC{0,3}) (rtprio|memlock|\\PC{0,3}) (-?[0-9]{0,22}|\\PC{0,3})\n?){0,6}") {
            let file = parse_limits_conf(&text);
            prop_assert_eq!(parse_limits_conf(&reduced(&file)), file);
        }
    }
}
