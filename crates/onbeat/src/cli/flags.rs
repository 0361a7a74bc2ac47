//! Values of flags that several commands share: spans, CPUs, and limits that may be rates.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use host::ProcessId;
use model::error::{Failure, Result};
use model::keyword::Keyword;
use model::labels::Labels;
use model::units::{Bare, CpuSet, Nanos, parse_span};
use stats::bounds::Computing;

/// Parser for a closed list of words, each with its line in the help.
pub fn keyword<T: Keyword>() -> impl TypedValueParser<Value = T> {
    let words = T::ALL.iter().map(|word| PossibleValue::new(word.name()).help(word.help()));
    PossibleValuesParser::new(words).try_map(|name| T::named(&name).ok_or("not one of these"))
}

/// Parses a span; an error names the flag.
pub fn span(flag: &str, text: &str, bare: Bare) -> Result<Nanos> {
    parse_span(text, bare).map_err(|what| Failure::usage(format!("{flag}: {what}")))
}

/// Parses a span of more than 0.
pub fn positive_span(flag: &str, text: &str, bare: Bare) -> Result<Nanos> {
    match span(flag, text, bare)? {
        span if span.0 > 0 => Ok(span),
        _ => Err(Failure::usage(format!("invalid {flag}: expected more than 0"))),
    }
}

/// Parses CPUs, as a list or as a mask after `0x`.
pub fn cpu_list(flag: &str, text: &str) -> Result<CpuSet> {
    match CpuSet::parse_list_or_mask(text) {
        Ok(cpus) if cpus.is_empty() => {
            Err(Failure::usage(format!("invalid {flag}: expected a list of CPUs like 0-3,8")))
        }
        other => other.map_err(|what| Failure::usage(format!("{flag}: {what}"))),
    }
}

/// Parses a limit: a latency, or a rate whose period it is.
pub fn limit(text: &str) -> Result<Nanos> {
    let lower = text.trim().to_ascii_lowercase();
    let Some(number) = lower.strip_suffix("hz") else { return positive_span("--limit", text, Bare::Micros) };
    let (number, scale) = match (number.strip_suffix('k'), number.strip_suffix('m')) {
        (Some(number), _) => (number, 1e3),
        (_, Some(number)) => (number, 1e6),
        _ => (number, 1.0),
    };
    let plain = number.trim().bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let rate = number.trim().parse::<f64>().ok().filter(|rate| plain && *rate > 0.0);
    let period = rate.map(|rate| 1e9 / (rate * scale)).filter(|ns| (1.0..9e18).contains(ns));
    period.map(|ns| Nanos(ns as i64)).ok_or_else(|| {
        Failure::usage(format!(
            "invalid --limit '{text}': expected a rate like 8kHz, with a period of at least 1 ns"
        ))
    })
}

/// Parses the computing time of a cycle: a span, or a share of its period.
pub fn computing(text: &str) -> Result<Computing> {
    let Some(percent) = text.trim().strip_suffix('%') else {
        return span("--period", text, Bare::Micros).and_then(|time| match time {
            time if time.0 >= 0 => Ok(Computing::Time(time)),
            _ => Err(Failure::usage("invalid --period: expected a computing time of 0 or more")),
        });
    };
    let plain = percent.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let share = percent.parse::<f64>().ok().filter(|percent| plain && *percent < 100.0);
    share.map(|percent| Computing::Share(percent / 100.0)).ok_or_else(|| {
        Failure::usage(format!("invalid --period '{text}': expected a share below 100%, like 30%"))
    })
}

/// Parses labels, one per text.
pub fn labels(texts: &[String]) -> Result<Labels> {
    Labels::parse(texts).map_err(|why| Failure::usage(format!("--label: {why}")))
}

/// Parses the ID of a process that another process of onbeat supervises.
pub fn process_id(text: &str) -> std::result::Result<ProcessId, String> {
    let read = || {
        let (pid, start) = text.split_once('/')?;
        Some(ProcessId { pid: pid.parse().ok()?, start: start.parse().ok()? })
    };
    read().ok_or_else(|| "expected PID/START".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::error::Exit;

    #[test]
    fn a_list_of_cpus_names_one() {
        assert_eq!(cpu_list("-a", "0xc").expect("two"), cpu_list("-a", "2-3").expect("two"));
        for text in ["", " ", "0x0"] {
            let said = cpu_list("--housekeeping", text).expect_err("none").message;
            assert!(said.contains("--housekeeping: ") && said.contains("expected "), "{said}");
        }
    }

    #[test]
    fn computing_is_a_time_or_a_share_of_the_period() {
        for (text, expected) in [
            ("50%", Computing::Share(0.5)),
            ("0%", Computing::Share(0.0)),
            ("12.5%", Computing::Share(0.125)),
            ("200us", Computing::Time(Nanos(200_000))),
            ("0", Computing::Time(Nanos(0))),
        ] {
            assert_eq!(computing(text).expect(text), expected, "{text}");
        }
        for text in ["", "%", "100%", "-1%", "1e1%", "nan%", "-1us", "us", "30 %"] {
            assert_eq!(computing(text).expect_err(text).exit, Exit::Usage, "{text}");
        }
    }

    #[test]
    fn a_limit_is_a_latency_or_the_period_of_a_rate() {
        for (text, ns) in [
            ("50us", 50_000),
            ("50", 50_000),
            ("8kHz", 125_000),
            ("8 khz", 125_000),
            ("62.5Hz", 16_000_000),
            ("1MHz", 1_000),
        ] {
            assert_eq!(limit(text).expect(text), Nanos(ns), "{text}");
        }
        for text in
            ["0", "0Hz", "-8kHz", "kHz", "1e3Hz", "2GHz", "5THz", "infHz", "nanhz", "", "us", "9000MHz"]
        {
            assert_eq!(limit(text).expect_err(text).exit, Exit::Usage, "{text}");
        }
    }
}
