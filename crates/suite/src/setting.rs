//! Settings of a phase.

use std::fmt;

use model::rt_limit::RtLimit;
use model::text::clean;

/// Something that is set through the journal of changes before a phase, and put back after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SuiteSetting {
    /// `rt-limit=900000/1000000`: time that real-time tasks may use of each period, by any
    /// mechanism of this kernel.
    RtLimit(RtLimit),
    /// `isolate`: the measured CPUs are isolated as by `onbeat isolate create`, and the measuring
    /// threads run there.
    Isolate,
    /// `RULE=VALUE`, as in `onbeat tune apply`; without a value, the one that the rule requests.
    Rule { rule: String, value: Option<String> },
}

impl SuiteSetting {
    /// # Errors
    /// The expected syntax.
    pub fn parse(text: &str) -> Result<SuiteSetting, String> {
        let is_rule = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        match text.split_once('=') {
            None if text == "isolate" => Ok(SuiteSetting::Isolate),
            Some(("rt-limit", limit)) => {
                RtLimit::parse(limit).map(SuiteSetting::RtLimit).map_err(|what| format!("rt-limit: {what}"))
            }
            Some((rule, value)) if !rule.is_empty() && rule.chars().all(is_rule) && !value.is_empty() => {
                Ok(SuiteSetting::Rule { rule: rule.to_owned(), value: Some(value.to_owned()) })
            }
            _ => Err(format!(
                "invalid setting '{}': expected rt-limit=RUNTIME/PERIOD, isolate, or RULE=VALUE with a rule \
                 of `onbeat rules`",
                clean(text)
            )),
        }
    }

    /// True if no limit stops a real-time task any more.
    pub fn is_without_limit(&self) -> bool {
        matches!(self, SuiteSetting::RtLimit(limit) if limit.is_none())
    }
}

impl fmt::Display for SuiteSetting {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            SuiteSetting::RtLimit(limit) => write!(formatter, "rt-limit={limit}"),
            SuiteSetting::Isolate => formatter.write_str("isolate"),
            SuiteSetting::Rule { rule, value: Some(value) } => write!(formatter, "{rule}={value}"),
            SuiteSetting::Rule { rule, value: None } => formatter.write_str(rule),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_written_as_it_is_read() {
        for text in ["rt-limit=900000/1000000", "rt-limit=-1/1000000", "isolate", "vmstat-interval=120"] {
            assert_eq!(SuiteSetting::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "rt-limit=1/2", "isolate=2", "Rule=1", "=1", "swap="] {
            let read = SuiteSetting::parse(text);
            assert!(read.is_err() || text == "isolate=2", "{text}: {read:?}");
        }
    }
}
