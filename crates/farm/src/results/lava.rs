//! Runs as results of a LAVA test: lines for the shell of a test definition.
//!
//! `lava-test-case NAME --result pass|fail|skip|unknown --measurement N --units U`, as LAVA's
//! documentation has it ("Writing a LAVA test shell definition", "Job results"). A name has no
//! blanks; every word of a line is plain to a shell.

use model::units::Nanos;

use super::RunResult;
use crate::records::FarmRun;

/// A line for a run.
pub fn line(run: &FarmRun, limit: Option<Nanos>) -> String {
    let result = match RunResult::of(run, limit) {
        RunResult::Within => "pass",
        RunResult::Over => "fail",
        // Neither passed nor failed: the reader has to judge a measurement without a limit.
        RunResult::Measured | RunResult::Void => "unknown",
    };
    let name = [&run.key.series, &run.board, &run.id].map(|part| word(part)).join(".");
    let measured = run.max_ns.map_or_else(String::new, |max| {
        let (whole, rest) = (max.0.div_euclid(1_000), max.0.rem_euclid(1_000));
        format!(" --measurement {whole}.{rest:03} --units us")
    });
    format!("lava-test-case onbeat.{name} --result {result}{measured}")
}

fn word(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::SeriesKey;

    #[test]
    fn a_run_is_a_line_that_any_shell_takes() {
        let run = FarmRun {
            id: "r1".into(),
            board: "press-3".into(),
            key: SeriesKey { series: "a $(b)".into(), plan: String::new() },
            complete: true,
            max_ns: Some(Nanos(42_007)),
            ..FarmRun::default()
        };
        let of = |limit: i64| line(&run, Some(Nanos(limit)));
        let wanted = "lava-test-case onbeat.a___b_.press-3.r1 --result pass --measurement 42.007 --units us";
        assert_eq!(of(50_000), wanted);
        assert!(of(42_006).contains("--result fail") && line(&run, None).contains("--result unknown"));
        let none = FarmRun { max_ns: None, ..run.clone() };
        assert!(line(&none, None).ends_with("--result unknown"));
    }
}
