//! Next steps after a suite: a hunt under its worst load, and the bounds of its samples.

use super::is_spun;
use crate::words::span;
use model::suite::{SuitePhase, SuiteRun};
use model::text::quoted_value;

/// Command, with its purpose.
pub struct NextCommand {
    pub line: String,
    /// Purpose after the command, on the page: `names who took the time`.
    pub does: &'static str,
    /// Purpose in brackets, on a terminal.
    pub brief: &'static str,
}

/// Phase with the largest latency, among those that may be compared.
pub fn worst(suite: &SuiteRun) -> Option<&SuitePhase> {
    let woken = suite.phases.iter().filter(|phase| phase.valid && !is_spun(phase));
    woken.filter(|phase| phase.max_ns.is_some()).max_by_key(|phase| phase.max_ns)
}

/// Next commands; none if no phase may be compared.
pub fn next_commands(suite: &SuiteRun, folder: &str) -> Vec<NextCommand> {
    let Some(worst) = worst(suite) else {
        let spun = suite.phases.iter().any(|phase| phase.valid);
        let rules = NextCommand {
            line: "onbeat rules rt-throttling".into(),
            does: "explains these limits.",
            brief: "these limits",
        };
        return spun.then_some(rules).into_iter().collect();
    };
    let hunt = NextCommand {
        line: hunt(suite, worst),
        does: "names the culprits under the worst load.",
        brief: "culprits under the worst load",
    };
    let limit = suite.limit_ns.map_or_else(|| "100us".to_owned(), |limit| span(limit).replace(' ', ""));
    // The folder is quoted for a shell; the names below it are plain.
    let plain = worst.bundle.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-._".contains(&b));
    let bounds = (plain && !worst.bundle.is_empty()).then(|| NextCommand {
        line: format!("onbeat bounds {folder}/{} --limit {limit}", worst.bundle),
        does: "tells whether these samples support a limit: the maximum of few samples means little.",
        brief: "the limit that its samples support",
    });
    [Some(hunt), bounds].into_iter().flatten().collect()
}

/// Sentences with the commands in back-ticks.
pub fn sentences(commands: &[NextCommand]) -> Vec<String> {
    if commands.is_empty() {
        return vec!["Fix the cause of the invalid phases, then run the suite again.".to_owned()];
    }
    commands.iter().map(|next| format!("{} {}", code(&next.line), next.does)).collect()
}

/// Hunt under the same conditions.
fn hunt(suite: &SuiteRun, phase: &SuitePhase) -> String {
    let mut command = "onbeat hunt -D 60s".to_owned();
    let interval = suite.recipe.get("interval").map(|text| text.replace(' ', ""));
    for (flag, value) in [
        ("-a", suite.cpus.as_str()),
        ("-i", interval.as_deref().filter(|text| *text != "1ms").unwrap_or_default()),
        ("--load", &phase.load),
        ("--load-cpus", if phase.load.is_empty() { "" } else { &suite.load_cpus }),
    ] {
        if !value.is_empty() {
            command += &format!(" {flag} {}", quoted_value(value));
        }
    }
    command
}

/// Command as code; a name may hold a back-tick, which would end it.
fn code(line: &str) -> String {
    if line.contains('`') { line.to_owned() } else { format!("`{line}`") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::Nanos;

    #[test]
    fn the_hunt_is_under_the_conditions_of_the_worst_phase() {
        let phase = |load: &str, max| SuitePhase {
            load: load.into(),
            valid: true,
            max_ns: Some(Nanos(max)),
            bundle: format!("phases/{max}"),
            ..SuitePhase::default()
        };
        let mut suite = SuiteRun {
            cpus: "2-3".into(),
            load_cpus: "0-1".into(),
            recipe: [("interval".to_owned(), "200 us".to_owned())].into(),
            phases: vec![phase("", 4), phase("mem:x4M hdd", 9), phase("cpu", 7)],
            ..SuiteRun::default()
        };
        let steps = |suite: &SuiteRun, folder| sentences(&next_commands(suite, folder));
        let text = steps(&suite, "/s").join(" ");
        let hunt = "`onbeat hunt -D 60s -a 2-3 -i 200us --load 'mem:x4M hdd' --load-cpus 0-1`";
        assert!(text.contains(hunt) && text.contains("`onbeat bounds /s/phases/9 --limit 100us`"), "{text}");
        suite.phases[1].load = "a`b".into();
        let ticks = steps(&suite, "'a b'");
        assert!(ticks[0].starts_with("onbeat hunt") && ticks[1].starts_with("`onbeat bounds 'a b'/phases/9"));
        suite.phases.iter_mut().for_each(|phase| phase.measure = "spin".into());
        assert!(steps(&suite, "/s")[0].starts_with("`onbeat rules rt-throttling`"));
        suite.phases.iter_mut().for_each(|phase| phase.valid = false);
        assert!(steps(&suite, "/s")[0].starts_with("Fix"));
    }
}
