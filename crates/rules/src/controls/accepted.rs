//! Values that a control file accepts; a refusal of a user's value names them.

use crate::words::{cpu_list, cpu_mask, truncate};
use facts::line::parse_mask;
use facts::survey::Survey;
use model::units::CpuSet;

/// Values that a file accepts.
#[derive(Clone, Copy, Debug)]
pub enum Accepted {
    /// Integer in this range.
    Number(i64, i64),
    /// One of these words.
    Words(&'static [&'static str]),
    /// One of these words, or an integer in this range.
    WordsOrNumber(&'static [&'static str], i64, i64),
    /// A word that depends on the machine, such as a governor of its driver.
    Name,
    /// Names with blanks between them.
    Options,
    /// A clocksource that the machine offers: the kernel accepts any other without an error.
    Clocksource,
    /// A non-empty list of CPUs that the machine has.
    Cpus,
    /// A non-empty hexadecimal mask of CPUs that the machine has.
    Mask,
    /// Such a mask, or 0 for no CPU.
    MaskOrNone,
}

impl Accepted {
    /// Off (0) and on (1).
    pub const SWITCH: Accepted = Accepted::Number(0, 1);

    /// The value in the form in which it is written, or a refusal with the expected values.
    pub fn normalize(self, value: &str, survey: &Survey) -> Result<String, String> {
        let value = value.trim();
        let fits = match self {
            Accepted::Number(first, last) => number(value, first, last),
            Accepted::Words(words) => words.contains(&value),
            Accepted::WordsOrNumber(words, first, last) => {
                words.contains(&value) || number(value, first, last)
            }
            Accepted::Name => is_name(value),
            Accepted::Options => !value.is_empty() && value.split_ascii_whitespace().all(is_name),
            Accepted::Clocksource => {
                let offered = survey.facts.clocksources.known();
                is_name(value) && offered.is_none_or(|all| all.iter().any(|name| name == value))
            }
            Accepted::Cpus => return self.list(value, survey),
            Accepted::MaskOrNone if value == "0" => true,
            Accepted::Mask | Accepted::MaskOrNone => return self.mask(value, survey),
        };
        if fits { Ok(value.to_owned()) } else { Err(self.refusal(value, "")) }
    }

    /// Expected values in words.
    pub fn words(self) -> String {
        match self {
            Accepted::Number(first, last) => range(first, last),
            Accepted::Words(words) => words.join(" or "),
            Accepted::WordsOrNumber(words, first, last) => {
                format!("{} or {}", words.join(" or "), range(first, last))
            }
            Accepted::Name => "a name without blanks".to_owned(),
            Accepted::Options => "names with blanks between them".to_owned(),
            Accepted::Clocksource => "the name of a clocksource that the machine offers".to_owned(),
            Accepted::Cpus => "a list of CPUs such as 0-1".to_owned(),
            Accepted::Mask => "a mask of CPUs such as 3 for CPUs 0-1".to_owned(),
            Accepted::MaskOrNone => "a mask of CPUs such as 3 for CPUs 0-1, or 0 for none".to_owned(),
        }
    }

    fn refusal(self, value: &str, why: &str) -> String {
        let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
        format!("'{}' is not {}{why}", truncate(value), self.words())
    }

    fn list(self, value: &str, survey: &Survey) -> Result<String, String> {
        let cpus = CpuSet::parse(value).map_err(|why| self.refusal(value, &why))?;
        self.there(value, &cpus, survey).map(|()| cpus.to_string())
    }

    fn mask(self, value: &str, survey: &Survey) -> Result<String, String> {
        let digits = value.trim_start_matches("0x");
        let cpus = parse_mask(digits).map_err(|why| self.refusal(value, &why))?;
        self.there(value, &cpus, survey).map(|()| cpu_mask(&cpus))
    }

    /// Refuses CPUs that the machine does not have; accepts any if its CPUs are not known.
    fn there(self, value: &str, cpus: &CpuSet, survey: &Survey) -> Result<(), String> {
        if cpus.is_empty() {
            return Err(self.refusal(value, "it names no CPU"));
        }
        let all = survey.facts.present.known().or(survey.facts.online.known());
        let missing = all.map(|all| cpus.without(all)).unwrap_or_default();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(self.refusal(value, &format!("there is no {}", cpu_list(&missing))))
        }
    }
}

fn range(first: i64, last: i64) -> String {
    match last {
        i64::MAX => format!("a number from {first} on"),
        _ => format!("a number from {first} to {last}"),
    }
}

/// True for a number in the kernel's notation: decimal, without a plus sign.
fn number(value: &str, first: i64, last: i64) -> bool {
    !value.starts_with('+') && value.parse().is_ok_and(|number: i64| (first..=last).contains(&number))
}

fn is_name(value: &str) -> bool {
    !value.is_empty() && value.len() <= 64 && value.chars().all(|c| c.is_ascii_graphic())
}
