//! Machines for testing rules: a well-set one in `base/`, and edits to it.

#![allow(clippy::unwrap_used)] // Only tests are compiled with it.

use crate::audit::{Finding, finding};
use crate::change::Persistence;
use crate::intent::{Intent, Profile, intent};
use crate::knob::Knob;
use crate::survey_request;
use facts::survey::{Survey, survey};
use host::MachineFiles;
use host::access::Access;
use model::keyword::Keyword;
use model::units::CpuSet;
use std::collections::BTreeMap;

/// The well-set machine, in parts.
const BASE: &[&str] = &[
    include_str!("base/kernel.txt"),
    include_str!("base/time.txt"),
    include_str!("base/power.txt"),
    include_str!("base/memory.txt"),
    include_str!("base/interrupts.txt"),
    include_str!("base/groups.txt"),
    include_str!("base/debugging.txt"),
];

/// A machine as recorded accesses, and the purpose that it is judged for.
#[derive(Clone)]
pub struct Machine {
    pub answers: BTreeMap<String, Access>,
    pub profile: Profile,
    pub cpus: Option<CpuSet>,
}

impl Machine {
    /// The well-set machine.
    pub fn base() -> Machine {
        let mut machine = Machine::of(BTreeMap::new());
        BASE.iter().for_each(|part| machine.edit(part));
        machine
    }

    /// A machine with these accesses.
    pub fn of(answers: BTreeMap<String, Access>) -> Machine {
        Machine { answers, profile: Profile::default(), cpus: None }
    }

    /// Applies edits as [`crate::knob::Examples`] describes them.
    pub fn edit(&mut self, edits: &str) {
        let mut last = String::new();
        for line in edits.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(more) = line.strip_prefix('|') {
                self.append(&last, more.strip_prefix(' ').unwrap_or(more));
            } else if let Some(option) = line.strip_prefix("CONFIG_") {
                self.configure(option);
            } else if let Some(flag) = line.strip_prefix("--") {
                self.flag(flag);
            } else if let Some(change) = line.strip_prefix("cmdline ") {
                self.change_cmdline(change);
            } else if let Some(name) = line.strip_prefix("program + ") {
                self.start(name);
            } else if let Some(guest) = line.strip_prefix("guest ") {
                last = self.guest(guest);
            } else if let Some(vcpu) = line.strip_prefix("vcpu ") {
                self.vcpu(&last, vcpu);
            } else if let Some(path) = line.strip_suffix(" refused") {
                self.remove(path);
                self.insert(path, Access::Refused(libc::EACCES));
            } else if let Some(path) = line.strip_suffix(" absent") {
                self.remove(path);
                self.answers.insert(path.to_owned(), Access::Absent);
            } else if let Some((path, target)) = line.split_once(" -> ") {
                self.insert(path, Access::Link(target.to_owned()));
            } else {
                let (path, text) = line.split_once(':').unwrap_or_else(|| panic!("no edit: {line}"));
                let text = text.strip_prefix(' ').unwrap_or(text);
                let end = if path.starts_with("/proc/device-tree/") { '\0' } else { '\n' };
                let text = Access::File(format!("{text}{end}").into_bytes());
                // Marks the online CPUs as present; later edits of that file persist.
                if path == "/sys/devices/system/cpu/online" {
                    self.insert("/sys/devices/system/cpu/present", text.clone());
                }
                self.insert(path, text);
                last = path.to_owned();
            }
        }
    }

    /// Adds an access; the existing lists above it receive its name.
    fn insert(&mut self, path: &str, seen: Access) {
        self.answers.insert(path.to_owned(), seen);
        let mut rest = path;
        while let Some((dir, name)) = rest.rsplit_once('/') {
            match self.answers.get_mut(dir) {
                Some(Access::List(names)) if !names.iter().any(|known| known == name) => {
                    names.push(name.to_owned());
                    names.sort();
                }
                Some(Access::Absent | Access::Refused(_)) => drop(self.answers.remove(dir)),
                _ => {}
            }
            rest = dir;
        }
    }

    fn append(&mut self, path: &str, line: &str) {
        let Some(Access::File(bytes)) = self.answers.get_mut(path) else {
            panic!("nothing to add to: {line}")
        };
        // A path alone contains an empty line, until others are added.
        bytes.drain(..usize::from(*bytes == b"\n"));
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }

    fn remove(&mut self, path: &str) {
        let below = format!("{path}/");
        self.answers.retain(|known, _| known != path && !known.starts_with(&below));
        if let Some((dir, name)) = path.rsplit_once('/') {
            if let Some(Access::List(names)) = self.answers.get_mut(dir) {
                names.retain(|known| known != name);
            }
        }
    }

    fn change(&mut self, path: &str, change: impl FnOnce(String) -> String) {
        let Some(Access::File(bytes)) = self.answers.get(path) else { panic!("{path} is not there") };
        let text = change(String::from_utf8_lossy(bytes).into_owned());
        self.answers.insert(path.to_owned(), Access::File(text.into_bytes()));
    }

    fn configure(&mut self, option: &str) {
        let (name, value) = option.split_once('=').unwrap_or_else(|| panic!("no option: {option}"));
        // From 7.x on Debian has it below the modules.
        let is_one = |path: &str| {
            path.starts_with("/boot/config-")
                || (path.starts_with("/lib/modules/") && path.ends_with("/config"))
        };
        let mut files = self.answers.iter().filter(|(_, access)| matches!(access, Access::File(_)));
        let path = files.find(|(path, _)| is_one(path)).map(|(path, _)| path.clone());
        let path = path.unwrap_or_else(|| panic!("there is no configuration"));
        self.change(&path, |text| {
            let is = |line: &&str| {
                line.starts_with(&format!("CONFIG_{name}=")) || *line == format!("# CONFIG_{name} is not set")
            };
            let mut text: String =
                text.lines().filter(|line| !is(line)).map(|line| format!("{line}\n")).collect();
            text += &match value {
                "n" => format!("# CONFIG_{name} is not set\n"),
                value => format!("CONFIG_{name}={value}\n"),
            };
            text
        });
    }

    fn flag(&mut self, flag: &str) {
        match flag.split_once(' ') {
            Some(("profile", name)) => self.profile = Profile::named(name).expect("a profile"),
            Some(("cpus", list)) => self.cpus = Some(CpuSet::parse(list).unwrap()),
            _ => panic!("no flag: {flag}"),
        }
    }

    fn change_cmdline(&mut self, change: &str) {
        let (sign, word) = change.split_once(' ').unwrap();
        self.change("/proc/cmdline", |text| {
            let words = text.split_whitespace().filter(|known| sign == "+" || *known != word);
            let added = (sign == "+").then_some(word);
            words.chain(added).collect::<Vec<_>>().join(" ") + "\n"
        });
    }

    /// Reads its survey.
    pub fn read(&self) -> Survey {
        survey(&MachineFiles::in_memory(self.answers.clone()), &survey_request())
    }

    /// Starts a program that runs a guest; returns its folder.
    fn guest(&mut self, words: &str) -> String {
        let [pid, name, cpus] = words.split(' ').collect::<Vec<_>>().try_into().expect("PID NAME CPUS");
        let dir = format!("/proc/{pid}");
        self.put_thread(&dir, name, 2, [0, 0], cpus);
        dir
    }

    /// Starts a vCPU of a guest.
    fn vcpu(&mut self, guest: &str, words: &str) {
        let words: Vec<&str> = words.split(' ').collect();
        let policy = match words[2..] {
            ["other"] => [0, 0],
            ["fifo", priority] => [priority.parse().expect("a priority"), 1],
            ["rr", priority] => [priority.parse().expect("a priority"), 2],
            _ => panic!("no policy: {words:?}"),
        };
        let of_guest = format!("{guest}/task/");
        let number = self.answers.keys().filter(|path| path.starts_with(&of_guest)).count() / 2;
        let dir = format!("{of_guest}{}", words[0]);
        self.put_thread(&dir, &format!("CPU {number}/KVM"), 1, policy, words[1]);
    }

    fn put_thread(&mut self, dir: &str, name: &str, threads: u32, policy: [u32; 2], cpus: &str) {
        let tid = dir.rsplit('/').next().unwrap_or_default();
        let [before, times, memory, after] = [6, 10, 17, 11].map(|count| " 0".repeat(count));
        let [priority, policy] = policy;
        let stat =
            format!("{tid} ({name}) S{before}{times} {threads} 0 0{memory} {priority} {policy}{after}\n");
        self.insert(&format!("{dir}/stat"), Access::File(stat.into_bytes()));
        let status = format!("Cpus_allowed_list:\t{cpus}\n");
        self.insert(&format!("{dir}/status"), Access::File(status.into_bytes()));
    }

    /// Starts a program, of which only the name matters.
    fn start(&mut self, name: &str) {
        const FIRST: usize = 90_000;
        let there = |pid: &usize| self.answers.contains_key(&format!("/proc/{pid}/stat"));
        let pid = (FIRST..).find(|pid| !there(pid)).unwrap_or(FIRST);
        let [before, times, memory, after] = [6, 10, 21, 11].map(|count| " 0".repeat(count));
        let stat = format!("{pid} ({name}) S{before}{times} 1{memory}{after}\n");
        self.insert(&format!("/proc/{pid}/stat"), Access::File(stat.into_bytes()));
    }

    pub fn stop(&mut self, name: &str) {
        let of_it = |path: &str, seen: &Access| match seen {
            Access::File(bytes) if path.starts_with("/proc/") && path.ends_with("/stat") => {
                String::from_utf8_lossy(bytes).contains(&format!(" ({name}) "))
            }
            _ => false,
        };
        let paths: Vec<String> = self
            .answers
            .iter()
            .filter(|(path, seen)| of_it(path, seen))
            .map(|(path, _)| path.clone())
            .collect();
        paths.iter().for_each(|path| self.remove(path.trim_end_matches("/stat")));
    }

    /// Survey and purpose, as the rules see them.
    pub fn survey(&self) -> (Survey, Intent) {
        let survey = self.read();
        let intent = intent(&survey, self.profile, self.cpus.as_ref()).unwrap();
        (survey, intent)
    }

    /// Finding of one rule.
    pub fn finding(&self, knob: &'static Knob) -> Finding {
        let (survey, intent) = self.survey();
        let found = finding(knob, &survey, &intent);
        assert!(agree(&found.fix, found.persistence), "{}: {:?}: {}", knob.id, found.persistence, found.fix);
        found
    }
}

/// Words of remedies, and the lifetime of the changes that they request.
const REMEDIES: &[(&str, Persistence)] = &[
    ("a kernel built", Persistence::Build),
    ("build the kernel", Persistence::Build),
    ("build with ", Persistence::Build),
    ("boot a kernel with", Persistence::Build),
    ("kernel's command line", Persistence::Boot),
    ("boot with", Persistence::Boot),
    ("boot loader", Persistence::Boot),
    ("systemctl disable", Persistence::Boot),
    ("systemctl set-property", Persistence::Boot),
    ("limits.conf", Persistence::Boot),
    ("/etc/", Persistence::Boot),
    ("isolated cpuset partition", Persistence::Runtime),
    ("write the ", Persistence::Runtime),
    ("run it in ", Persistence::Runtime),
    ("echo ", Persistence::Runtime),
    ("taskset ", Persistence::Runtime),
    ("chrt ", Persistence::Runtime),
    ("sysctl ", Persistence::Runtime),
    ("swapoff ", Persistence::Runtime),
    ("modprobe ", Persistence::Runtime),
];

/// True if the first remedy has the stated lifetime, or if its words do not reveal any.
pub fn agree(fix: &str, persistence: Persistence) -> bool {
    let found = REMEDIES.iter().filter_map(|(words, persistence)| Some((fix.find(words)?, *persistence)));
    let first = found.min_by_key(|(at, _)| *at).map(|(_, persistence)| persistence);
    // An echo into a file that is read at boot counts as one of these.
    let is_lasting_echo =
        fix.starts_with("echo ") && fix.split(" and ").next().is_some_and(|step| step.contains(">/etc/"));
    first.is_none_or(|first| persistence == if is_lasting_echo { Persistence::Boot } else { first })
}

/// Judges the well-set machine after some edits and compares with `VERDICT [SEVERITY, if it fails]
/// [WORDS]`: the words are those of the value, or of the reason if it is empty; without them, they
/// are not compared.
#[track_caller]
pub fn check(knob: &'static Knob, edits: &str, expected: &str) {
    let mut machine = Machine::base();
    machine.edit(edits);
    let found = machine.finding(knob);
    let verdict = found.verdict.name();
    let start =
        if verdict == "fail" { format!("fail {}", found.severity.name()) } else { verdict.to_owned() };
    let words = if found.value.is_empty() { &found.reason } else { &found.value };
    if expected != start {
        assert_eq!(format!("{start} {words}"), expected, "{found:#?}");
    }
}
