//! Files of the fake kernel: a value each, and the effects of writing it.

use std::collections::BTreeMap;

use model::fact::Fact;
use model::setting::{Comparison, Key};
use model::units::CpuSet;

use super::{Choice, Written, open_setting};

/// Effect of a value written to a file of the fake kernel, or of reading it.
#[derive(Clone, Copy, Debug)]
pub enum Reaction {
    /// Anything but a number in this range fails with EINVAL; a number reads in its shortest form.
    Range(i64, i64),
    /// A number outside the range becomes its nearest end.
    Clamped(i64, i64),
    /// One value becomes another.
    Becomes(&'static str, &'static str),
    /// One of these words, which reads among all of them in brackets; others fail with EINVAL.
    OneOf(&'static [&'static str]),
    /// These words have an effect; others are accepted without one.
    Silent(&'static [&'static str]),
    /// A list of CPUs, which reads in its shortest form; an empty one fails with EINVAL.
    List,
    /// A mask, which reads in this many groups of 32 bits; 0 fails with EINVAL.
    Mask(usize),
    /// Every write fails with this error number.
    Fails(i32),
    /// Every read fails with this error number.
    Unreadable(i32),
    /// A change fails with EBUSY unless the other file has this value.
    BusyUnless(&'static str, &'static str),
    /// A number above the other file's fails with EINVAL.
    AtMost(&'static str),
    /// A number below the other file's fails with EINVAL.
    AtLeast(&'static str),
    /// Each write sets the other file to 0.
    Zeroes(&'static str),
    /// The other files get the value written to this one.
    SetsAll(&'static [&'static str]),
    /// A switch of these parts, which read as 0 while it is 0; it reads as 0 while all of them are.
    /// Reading stores the value that it shows.
    Switches(&'static [&'static str]),
    /// A part of that switch.
    PartOf(&'static str),
}

/// File of a fake machine, and values to try.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub key: &'static str,
    /// Value after the boot.
    pub value: &'static str,
    pub readback: Comparison,
    pub reactions: &'static [Reaction],
    /// Values to try, some of which the kernel refuses.
    pub tries: &'static [&'static str],
}

#[derive(Clone, Debug)]
struct FakeFile {
    /// Value that the kernel stores; a read may show another.
    value: String,
    readback: Comparison,
    reactions: &'static [Reaction],
    tries: &'static [&'static str],
}

#[derive(Clone, Debug, Default)]
pub(super) struct Files(BTreeMap<Key, FakeFile>);

/// Key of a table; panics on an invalid one.
pub(super) fn key(text: &str) -> Key {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn number(text: &str) -> Result<i64, i32> {
    text.parse().map_err(|_| libc::EINVAL)
}

impl Files {
    pub fn new(rows: &'static [Row]) -> Files {
        let file = |row: &'static Row| FakeFile {
            value: row.value.to_owned(),
            readback: row.readback,
            reactions: row.reactions,
            tries: row.tries,
        };
        Files(rows.iter().map(|row| (key(row.key), file(row))).collect())
    }

    pub fn add(&mut self, files: impl IntoIterator<Item = (Key, String)>) {
        let file = |value| FakeFile { value, readback: Comparison::Exact, reactions: &[], tries: &[] };
        self.0.extend(files.into_iter().map(|(key, value)| (key, file(value))));
    }

    pub fn snapshot(&self) -> BTreeMap<String, String> {
        self.0.iter().map(|(key, file)| (key.to_string(), file.value.clone())).collect()
    }

    pub fn choices(&self) -> Vec<Choice> {
        let choice = |(own, file): (&Key, &FakeFile)| {
            let mut setting = open_setting(own.clone(), file.readback);
            for reaction in file.reactions {
                match reaction {
                    Reaction::Zeroes(other) => setting.partners.push(key(other)),
                    Reaction::SetsAll(others) => {
                        setting.partners.extend(others.iter().map(|other| key(other)));
                    }
                    Reaction::Switches(parts) => {
                        setting.restored_first.extend(parts.iter().map(|part| key(part)));
                    }
                    _ => {}
                }
            }
            Choice { setting, values: file.tries.iter().map(ToString::to_string).collect() }
        };
        self.0.iter().filter(|(_, file)| !file.tries.is_empty()).map(choice).collect()
    }

    fn value(&self, text: &str) -> &str {
        self.0.get(&key(text)).map_or("", |file| &file.value)
    }

    pub fn read(&mut self, own: &Key) -> Fact<String> {
        let Some(file) = self.0.get(own) else { return Fact::Absent };
        let mut shown = file.value.clone();
        for reaction in file.reactions {
            match reaction {
                Reaction::Unreadable(errno) => return Fact::Refused(*errno),
                Reaction::OneOf(words) => {
                    let marked = |word: &&str| {
                        if **word == file.value { format!("[{word}]") } else { (*word).to_owned() }
                    };
                    shown = words.iter().map(marked).collect::<Vec<_>>().join(" ");
                }
                Reaction::Switches(parts) if parts.iter().all(|part| self.value(part) == "0") => {
                    shown = "0".to_owned();
                }
                Reaction::PartOf(switch) if self.value(switch) == "0" => shown = "0".to_owned(),
                _ => {}
            }
        }
        let is_kept =
            file.reactions.iter().any(|one| matches!(one, Reaction::Switches(_) | Reaction::PartOf(_)));
        if let (true, Some(file)) = (is_kept, self.0.get_mut(own)) {
            file.value.clone_from(&shown);
        }
        Fact::Known(shown)
    }

    pub fn look(&mut self) {
        for key in self.0.keys().cloned().collect::<Vec<Key>>() {
            self.read(&key);
        }
    }

    /// Writes a value, and then the values of other files that follow from it.
    pub fn write(&mut self, own: &Key, value: &str) -> Written {
        let file = self.0.get(own).ok_or(libc::ENOENT)?;
        let mut value = value.trim().to_owned();
        let mut also = Vec::new();
        for reaction in file.reactions {
            match reaction {
                Reaction::Fails(errno) => return Err(*errno),
                Reaction::Range(low, high) => {
                    let number = number(&value)?;
                    if !(*low..=*high).contains(&number) {
                        return Err(libc::EINVAL);
                    }
                    value = number.to_string();
                }
                Reaction::Clamped(low, high) => value = number(&value)?.clamp(*low, *high).to_string(),
                Reaction::Becomes(one, other) if value == *one => value = (*other).to_owned(),
                Reaction::OneOf(words) if !words.contains(&&*value) => return Err(libc::EINVAL),
                Reaction::Silent(words) if !words.contains(&&*value) => return Ok(()),
                Reaction::List => {
                    let cpus = CpuSet::parse(&value).map_err(|_| libc::EINVAL)?;
                    if cpus.is_empty() {
                        return Err(libc::EINVAL);
                    }
                    value = cpus.to_string();
                }
                Reaction::Mask(groups) => value = mask(&value, *groups)?,
                Reaction::BusyUnless(other, that) if self.value(other) != *that => return Err(libc::EBUSY),
                Reaction::AtMost(other) if number(&value)? > number(self.value(other))? => {
                    return Err(libc::EINVAL);
                }
                Reaction::AtLeast(other) if number(&value)? < number(self.value(other))? => {
                    return Err(libc::EINVAL);
                }
                Reaction::Zeroes(other) => also.push((key(other), "0".to_owned())),
                Reaction::SetsAll(others) => {
                    also.extend(others.iter().map(|other| (key(other), value.clone())));
                }
                _ => {}
            }
        }
        for (key, value) in also.into_iter().chain([(own.clone(), value)]) {
            if let Some(file) = self.0.get_mut(&key) {
                file.value = value;
            }
        }
        Ok(())
    }

    /// Sets the mask in this file to all CPUs that are not isolated.
    pub fn follow_isolated(&mut self, file: &str, all: CpuSet, isolated: &CpuSet) {
        let bits: u64 = all.without(isolated).iter().map(|cpu| 1 << cpu.0).sum();
        if let Some(file) = self.0.get_mut(&key(file)) {
            file.value = shown_mask(bits, 1);
        }
    }
}

fn mask(text: &str, groups: usize) -> Result<String, i32> {
    let digits: String = text.chars().filter(|c| *c != ',').collect();
    match u64::from_str_radix(&digits, 16) {
        Ok(0) | Err(_) => Err(libc::EINVAL),
        Ok(bits) => Ok(shown_mask(bits, groups)),
    }
}

fn shown_mask(bits: u64, groups: usize) -> String {
    match groups {
        1 => format!("{bits:x}"),
        _ => format!("{:08x},{:08x}", bits >> 32, bits & 0xffff_ffff),
    }
}
