//! Query for a side, and the days of a board that match it.

use std::collections::BTreeSet;
use std::ops::Range;

use model::units::Nanos;
use model::wall_time::nanos_of;

use super::told::is_set_to;
use crate::environments::settings_of;
use crate::history::BoardEnvironment;
use crate::history::environment_on;
use crate::records::EnvironmentRecord;
use crate::words::escaped;

/// Digits of a digest that people are shown.
const SHORT_DIGEST: usize = 10;

/// Query for a side; an empty field matches anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FarmSide {
    /// Keys of boards, separated by commas or spaces.
    pub board: String,
    /// A machine's model.
    pub machine: String,
    /// Beginning of a kernel's release, in whole parts: `6.1` is not a beginning of `6.12`.
    pub kernel: String,
    /// A setting of the environment and its value, `NAME=VALUE`; without a value it is not set.
    pub setting: String,
    /// An environment's digest.
    pub environment: String,
    /// Other digests known to mean the same; not part of an address.
    pub same: BTreeSet<String>,
    /// The first day, `YYYY-MM-DD`.
    pub from: String,
    /// The first day after.
    pub before: String,
}

impl FarmSide {
    /// The names of its fields in an address.
    pub const FIELDS: [&str; 7] = ["board", "machine", "kernel", "setting", "environment", "from", "before"];

    /// A field by its name.
    pub fn field(&mut self, name: &str) -> Option<&mut String> {
        match name {
            "board" => Some(&mut self.board),
            "machine" => Some(&mut self.machine),
            "kernel" => Some(&mut self.kernel),
            "setting" => Some(&mut self.setting),
            "environment" => Some(&mut self.environment),
            "from" => Some(&mut self.from),
            "before" => Some(&mut self.before),
            _ => None,
        }
    }

    /// All fields in the order of [`FarmSide::FIELDS`].
    pub fn values(&self) -> [&str; 7] {
        let FarmSide { board, machine, kernel, setting, environment, from, before, .. } = self;
        [board, machine, kernel, setting, environment, from, before]
    }

    /// True if all fields are empty.
    pub fn is_empty(&self) -> bool {
        self.values().iter().all(|value| value.is_empty())
    }

    /// The boards that are named.
    pub fn boards(&self) -> BTreeSet<String> {
        self.board.split([',', ' ']).filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    /// True if the environment of the boards matters.
    pub fn asks_what_it_was(&self) -> bool {
        [&self.machine, &self.kernel, &self.setting, &self.environment].iter().any(|text| !text.is_empty())
    }

    /// Its time in seconds since 1970. Fails if a text is not a date, or the range is empty.
    pub fn stretch(&self) -> Result<Range<i64>, String> {
        let day = |text: &str, without: i64| match text {
            "" => Ok(without),
            text => nanos_of(&format!("{text}T00:00:00Z"))
                .map(|at| at.0.div_euclid(Nanos::SECOND.0))
                .ok_or_else(|| {
                    let text = model::text::excerpt(text);
                    format!("invalid date {text:?}: expected one from 1970 to 2262, like 2026-11-02")
                }),
        };
        let stretch = day(&self.from, 0)?..day(&self.before, i64::MAX)?;
        if stretch.is_empty() {
            Err("a side ends before it begins: give the later date second".to_owned())
        } else {
            Ok(stretch)
        }
    }

    /// True if a board in an environment matches. Of equivalent digests only the one by which the
    /// environment is known counts: another may belong to a second one, too.
    pub fn has(&self, of: &BoardEnvironment) -> bool {
        self.says_of(of) == Some(true)
    }

    /// The same; `None` if the setting is unknown.
    fn says_of(&self, of: &BoardEnvironment) -> Option<bool> {
        let is_named = self.environment.is_empty()
            || of.digests.contains(&self.environment)
            || self.same.contains(&of.record.digest);
        if is_named { self.says_of_record(&of.record) } else { Some(false) }
    }

    /// True if a record of this machine, kernel and setting matches, whatever its digest; `None` if
    /// the setting is unknown.
    pub fn says_of_record(&self, of: &EnvironmentRecord) -> Option<bool> {
        let is_machine = self.machine.is_empty() || self.machine == of.model;
        if !is_machine || !is_of_kernel(&self.kernel, &of.release) {
            return Some(false);
        }
        if self.setting.is_empty() {
            return Some(true);
        }
        let (name, value) = self.setting.split_once('=').unwrap_or((&self.setting, ""));
        is_set_to(&settings_of(&of.settings), name.trim(), value.trim())
    }

    /// Description; the beginning of an environment's digest distinguishes it from others.
    pub fn words(&self) -> String {
        let names = ["", "machine ", "kernel ", "", "environment ", "from ", "before "];
        let (setting, value) = self.setting.split_once('=').unwrap_or((&self.setting, ""));
        let unset = format!("{} not set", setting.trim());
        let mut values = self.values();
        if !setting.is_empty() && value.trim().is_empty() {
            values[3] = &unset;
        }
        values[4] = self.environment.get(..SHORT_DIGEST).unwrap_or(&self.environment);
        let parts = names.iter().zip(values).filter(|(_, value)| !value.is_empty());
        parts.map(|(name, value)| format!("{name}{value}")).collect::<Vec<_>>().join(", ")
    }

    /// Part of an address; `side` is `a` or `b`.
    pub fn query(&self, side: &str) -> String {
        let parts = FarmSide::FIELDS.iter().zip(self.values()).filter(|(_, value)| !value.is_empty());
        let part = |(name, value): (&&str, &str)| format!("{side}_{name}={}", escaped(value));
        parts.map(|(name, value)| part((name, value))).collect::<Vec<_>>().join("&")
    }
}

/// True if a release begins with the requested text, and a part of it ends there.
fn is_of_kernel(asked: &str, release: &str) -> bool {
    let goes_on = |c: char| c.is_ascii_alphanumeric();
    release.strip_prefix(asked).is_some_and(|rest| !(asked.ends_with(goes_on) && rest.starts_with(goes_on)))
}

/// Days of a board that match a side. A day on which the environment changed matches no side that
/// asks for one; before its first run the environment is unknown.
pub fn days_of(side: &FarmSide, days: &[i64], history: &[BoardEnvironment]) -> Vec<i64> {
    let of_side = |day: &&i64| {
        !side.asks_what_it_was() || environment_on(history, **day).is_some_and(|one| side.has(one))
    };
    days.iter().filter(of_side).copied().collect()
}

/// Days that would match a side with its setting, which is unknown for them.
pub fn unknown_days_of(side: &FarmSide, days: &[i64], history: &[BoardEnvironment]) -> Vec<i64> {
    let is_unknown = |day: &&i64| {
        !side.setting.is_empty()
            && environment_on(history, **day).is_some_and(|one| side.says_of(one).is_none())
    };
    days.iter().filter(is_unknown).copied().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const DAY: i64 = 86_400;

    /// Environment of a board from a time on, under two digests.
    fn since(first: i64, release: &str) -> BoardEnvironment {
        let record = Arc::new(EnvironmentRecord {
            digest: format!("d{release}"),
            model: "board x".into(),
            release: release.into(),
            settings: r#"{"cmdline isolcpus":"2-3","rt":"-1"}"#.into(),
            ..EnvironmentRecord::default()
        });
        let digests = Arc::new([record.digest.clone(), format!("e{release}")].into());
        BoardEnvironment { record, digests, first, ..BoardEnvironment::default() }
    }

    fn side(name: &str, value: &str) -> FarmSide {
        let mut side = FarmSide::default();
        *side.field(name).unwrap() = value.to_owned();
        side
    }

    #[test]
    fn a_side_is_what_its_fields_say() {
        let of = since(0, "6.12.9-rt");
        for (name, value, wanted) in [
            ("machine", "board x", true),
            ("machine", "board", false),
            ("kernel", "6.12", true),
            ("kernel", "6.12.9-rt", true),
            ("kernel", "6.12.", true),
            ("kernel", "6.12.9-", true),
            ("kernel", "6.12.9-r", false),
            ("kernel", "6.1", false),
            ("kernel", "6.1.", false),
            ("kernel", "12", false),
            ("setting", "cmdline isolcpus=2-3", true),
            ("setting", "cmdline isolcpus=", false),
            ("setting", "cmdline nohz_full", true),
            ("setting", "nohz_full", false),
            ("setting", "rt = -1", true),
            ("environment", "d6.12.9-rt", true),
            ("environment", "e6.12.9-rt", true),
            ("environment", "d", false),
        ] {
            let side = side(name, value);
            assert_eq!(side.has(&of), wanted, "{name} {value}");
            assert!(side.asks_what_it_was() && !side.is_empty());
            assert_eq!(side.query("a"), format!("a_{name}={}", escaped(value)));
        }
        for (same, wanted) in [("d6.12.9-rt", true), ("e6.12.9-rt", false)] {
            let same = BTreeSet::from([same.to_owned()]);
            assert_eq!(FarmSide { same, ..side("environment", "of another board") }.has(&of), wanted);
        }
        assert!(FarmSide::FIELDS.iter().all(|name| FarmSide::default().field(name).is_some()));
        assert_eq!(side("board", "a, b  c").boards().into_iter().collect::<String>(), "abc");
        assert_eq!(
            FarmSide { from: "2026-01-02".into(), ..side("board", "a") }.words(),
            "a, from 2026-01-02"
        );
    }

    #[test]
    fn people_are_shown_the_beginning_of_a_digest() {
        assert_eq!(side("environment", "0123456789abcdef").words(), "environment 0123456789");
        assert_eq!(side("environment", "0").words(), "environment 0");
    }

    #[test]
    fn a_setting_that_is_not_set_is_said_to_be_so() {
        for absent in ["cmdline isolcpus=", "cmdline isolcpus"] {
            assert_eq!(side("setting", absent).words(), "cmdline isolcpus not set");
        }
        assert_eq!(side("setting", "cmdline isolcpus=2-3").words(), "cmdline isolcpus=2-3");
    }

    #[test]
    fn dates_are_days_in_utc() {
        let of = |from: &str, before: &str| FarmSide {
            from: from.into(),
            before: before.into(),
            ..FarmSide::default()
        };
        assert_eq!(of("1970-01-02", "1970-01-04").stretch().unwrap(), DAY..3 * DAY);
        assert_eq!(of("", "").stretch().unwrap(), 0..i64::MAX);
        assert!(of("yesterday", "").stretch().unwrap_err().contains("2026-11-02"));
        assert!(of("1970-01-04", "1970-01-04").stretch().is_err());
    }

    #[test]
    fn a_day_on_which_the_environment_changed_is_of_neither_side() {
        let history = [since(DAY / 2, "6.1"), since(3 * DAY + 9, "6.12"), since(6 * DAY, "6.1")];
        let days: Vec<i64> = (-1..8).map(|at| at * DAY).collect();
        let found = |name: &str, value: &str| days_of(&side(name, value), &days, &history);
        assert_eq!(found("kernel", "6.1."), [] as [i64; 0]);
        assert_eq!(found("kernel", "6.12"), [4 * DAY, 5 * DAY]);
        // All the times that it was so.
        for digest in ["d6.1", "e6.1"] {
            assert_eq!(found("environment", digest), [0, 1, 2, 6, 7].map(|day| day * DAY));
        }
        assert_eq!(found("board", "a"), days);
        let unknown = |name: &str, value: &str| unknown_days_of(&side(name, value), &days, &history);
        assert!(unknown("board", "a").is_empty() && unknown("setting", "rt=").is_empty());
        assert_eq!(unknown("setting", "/proc/x="), [0, 1, 2, 4, 5, 6, 7].map(|day| day * DAY));
        assert!(found("setting", "/proc/x=").is_empty());
        let of_kernel = FarmSide { kernel: "6.12".into(), ..side("setting", "/proc/x=1") };
        assert_eq!(unknown_days_of(&of_kernel, &days, &history), [4 * DAY, 5 * DAY]);
    }
}
