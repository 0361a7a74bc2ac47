//! Settings of a machine as values: the key ([`Key`]), the value with its check and its risk
//! ([`Setting`]), and the comparison of a value that was read with one that was written.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use crate::key::{CGROUP_MOUNT, Key, PRESENT, TaskSetting};
use crate::keyword::Keyword;
use crate::keywords;
use crate::units::CpuSet;

keywords! {
    /// Comparison of the value that is read back with the one that was written.
    pub enum Comparison, default Exact {
        /// The same text, without white space at its ends
        Exact = "exact",
        /// The same numbers, in whatever form
        Number = "number",
        /// The same CPUs or nodes as a list
        List = "list",
        /// The same bits as a hexadecimal mask in groups of 32
        Mask = "mask",
        /// The word that is marked among those offered, in square or round brackets
        Choice = "choice",
        /// A list as above, which an interrupt follows with its next occurrence
        Pending = "pending",
        /// The words written with `+` are listed, those with `-` are not
        Listed = "listed",
        /// It is not read back, because reading it has an effect
        Unread = "unread",
    }
}

keywords! {
    /// Cost of a change beyond its purpose.
    pub enum Risk, default Low {
        /// Nothing that others depend on
        Low = "low",
        /// Others get slower, or lose CPUs
        Medium = "medium",
        /// A safeguard is lost, or CPUs: asked for with --yes
        High = "high",
    }
}

/// Words of a document that are acted on: those of another version are refused.
macro_rules! exact_words {
    ($($Name:ident)+) => { $(
        impl Serialize for $Name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> Deserialize<'de> for $Name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$Name, D::Error> {
                let word = String::deserialize(deserializer)?;
                let other = || serde::de::Error::custom(format!("{} is unknown \
                    here", crate::text::quoted(&word)));
                $Name::named(&word).ok_or_else(other)
            }
        }
    )+ };
}
exact_words!(Comparison Risk);

/// A value for one key, with the data to set, check and restore it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    pub key: Key,
    /// Text to write, without a newline.
    pub wanted: String,
    #[serde(default)]
    pub readback: Comparison,
    #[serde(default)]
    pub risk: Risk,
    /// Keys that the kernel changes when this one is written; if the old value of this one cannot
    /// be written, writing theirs restores it (`vm.dirty_bytes` and `vm.dirty_ratio`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partners: Vec<Key>,
    /// Keys that are written before this one when it is restored, without being read then
    /// (`kernel.soft_watchdog` before `kernel.watchdog`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restored_first: Vec<Key>,
    /// True if it may change the affinity of every thread.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub moves_threads: bool,
    /// True if a refusal by the kernel is not a failure: what the kernel does not let move stays,
    /// and is named.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

impl Setting {
    /// A value for the file of this key, of low risk, read back as it was written.
    pub fn new(key: Key, wanted: impl Into<String>) -> Setting {
        Setting {
            key,
            wanted: wanted.into(),
            readback: Comparison::Exact,
            risk: Risk::Low,
            partners: Vec::new(),
            restored_first: Vec::new(),
            moves_threads: false,
            optional: false,
        }
    }

    /// True if a value that was read is the wanted one.
    pub fn is_met_by(&self, read: &str) -> bool {
        same(self.readback, read, &self.wanted)
    }

    /// Text to write so that `now` becomes `old` again, both as they were read.
    pub fn restoring(&self, old: &str, now: &str) -> String {
        match self.readback {
            Comparison::Choice => marked(old).to_owned(),
            Comparison::Listed => {
                let (old, now) = (words(old), words(now));
                // Words that another program has added or removed since stay.
                let concerned = |word: &&str| self.signed().is_none_or(|signed| signed.contains(word));
                let gone = now.iter().filter(|word| !old.contains(word) && concerned(word));
                let back = old.iter().filter(|word| !now.contains(word) && concerned(word));
                let back = back.map(|word| format!("+{word}"));
                gone.map(|word| format!("-{word}")).chain(back).collect::<Vec<_>>().join(" ")
            }
            _ => old.trim().to_owned(),
        }
    }

    /// True if a restore has nothing left to do: `now` equals `old`, both as they were read.
    pub fn is_restored(&self, now: &str, old: &str) -> bool {
        if let (Comparison::Listed, Some(signed)) = (self.readback, self.signed()) {
            return signed.iter().all(|word| words(old).contains(word) == words(now).contains(word));
        }
        // A value that is neither a list nor a number may be the original one: `n/a`.
        same(self.readback, now, old) || same(Comparison::Exact, now, old)
    }

    /// Words that are added to a list or removed; `None` if the whole list is wanted.
    fn signed(&self) -> Option<Vec<&str>> {
        let signed = words(&self.wanted).into_iter().map(|word| word.strip_prefix(['+', '-']));
        signed.collect::<Option<Vec<&str>>>().filter(|signed| !signed.is_empty())
    }
}

/// True if two values are equal in this comparison; the second may be one to be written.
pub fn same(how: Comparison, read: &str, other: &str) -> bool {
    let (read, other) = (read.trim(), other.trim());
    match how {
        Comparison::Exact | Comparison::Unread => read.split_whitespace().eq(other.split_whitespace()),
        Comparison::Number => numbers(read).is_some_and(|numbers_read| Some(numbers_read) == numbers(other)),
        Comparison::List | Comparison::Pending => {
            matches!((list(read), list(other)), (Some(a), Some(b)) if a == b)
        }
        Comparison::Mask => matches!((bits(read), bits(other)), (Some(a), Some(b)) if a == b),
        Comparison::Choice => marked(read) == marked(other),
        Comparison::Listed => {
            let listed = words(read);
            words(other).iter().all(|word| match (word.strip_prefix('+'), word.strip_prefix('-')) {
                (Some(added), _) => listed.contains(&added),
                (_, Some(removed)) => !listed.contains(&removed),
                _ => listed.contains(word),
            }) && (other.contains(['+', '-']) || words(other).len() == listed.len())
        }
    }
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// Parses decimal numbers, or hexadecimal ones after `0x`.
fn numbers(text: &str) -> Option<Vec<i128>> {
    let number = |word: &str| match word.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    };
    let all: Option<Vec<i128>> = text.split_whitespace().map(number).collect();
    all.filter(|all| !all.is_empty())
}

/// Parses a list; an empty text is the empty list, as the kernel prints it.
fn list(text: &str) -> Option<CpuSet> {
    if text.is_empty() { Some(CpuSet::default()) } else { CpuSet::parse(text).ok() }
}

/// Digits of a mask without leading zeros.
fn bits(text: &str) -> Option<String> {
    let mut digits = String::new();
    for (at, group) in text.split(',').enumerate() {
        let group = group.trim_start_matches("0x");
        let fits = group.len() <= 8 || !text.contains(',');
        if group.is_empty() || !fits || !group.chars().all(|c| c.is_ascii_hexdigit()) {
            return None;
        }
        // Behind the first, a group is 32 bits even where its zeros are not written.
        let width = if at == 0 { group.len() } else { 8 };
        digits.push_str(&format!("{group:0>width$}").to_ascii_lowercase());
    }
    (!digits.is_empty()).then(|| digits.trim_start_matches('0').to_owned())
}

/// The word in brackets; the whole text if none is marked.
pub fn marked(text: &str) -> &str {
    let between = |open, close| text.split_once(open).and_then(|(_, rest)| rest.split_once(close));
    between('[', ']').or_else(|| between('(', ')')).map_or(text.trim(), |(word, _)| word.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_compared_as_the_kernel_writes_them() {
        use Comparison::{Choice, Exact, List, Listed, Mask, Number};
        for (how, read, wanted, is_same) in [
            (Exact, "performance\n", "performance", true),
            (Exact, "isolated invalid (x)", "isolated", false),
            (Number, "0x10\n", "16", true),
            (Number, "4096\t87380\n", "4096 87380", true),
            (Number, "", "", false),
            (List, "0-1\n", "0,1", true),
            (List, "\n", "", true),
            (List, "0-3", "0-1", false),
            (List, "x", "x", false),
            (Mask, "00000000,00000003\n", "3", true),
            (Mask, "1,00000000", "100000000", true),
            (Mask, "f", "3", false),
            (Mask, "0", "0", true),
            (Mask, "", "", false),
            (Choice, "always [madvise] never", "madvise", true),
            (Choice, "none voluntary (full) lazy", "full", true),
            (Choice, "always [madvise] never", "never", false),
            (Listed, "cpu io cpuset", "+cpuset", true),
            (Listed, "cpu io", "+cpuset", false),
            (Listed, "cpu io", "-cpuset", true),
            (Listed, "cpu io", "io cpu", true),
            (Listed, "cpu io", "io", false),
        ] {
            assert_eq!(same(how, read, wanted), is_same, "{how:?} {read:?} {wanted:?}");
        }
    }

    #[test]
    fn what_restores_a_value_is_what_the_kernel_takes() {
        let setting = |readback| Setting { readback, ..Setting::new(Key::Irq(1), "") };
        assert_eq!(setting(Comparison::Choice).restoring("a [b] c\n", "[a] b c"), "b");
        assert_eq!(setting(Comparison::Listed).restoring("cpu io", "cpu io cpuset"), "-cpuset");
        assert_eq!(setting(Comparison::Listed).restoring("cpu io", "io"), "+cpu");
        assert_eq!(setting(Comparison::List).restoring("0-3\n", "0-1"), "0-3");
    }

    #[test]
    fn words_that_another_added_stay() {
        let listed = Setting { readback: Comparison::Listed, ..Setting::new(Key::Irq(1), "+cpuset -io") };
        assert_eq!(listed.restoring("cpu io", "cpu cpuset hugetlb"), "-cpuset +io");
        assert!(!listed.is_restored("cpu cpuset hugetlb", "cpu io"));
        assert!(listed.is_restored("cpu io hugetlb", "cpu io"));
        assert_eq!(listed.restoring("cpu io", "cpu io hugetlb"), "");
    }

    proptest! {
        #[test]
        fn comparing_takes_any_text(a in ".{0,30}", b in ".{0,30}") {
            for how in Comparison::ALL {
                same(*how, &a, &b);
            }
        }
    }
}
