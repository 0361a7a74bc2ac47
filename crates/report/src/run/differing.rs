//! Conditions that differ between several runs: those that a comparison lists, and the time of each
//! run.

use std::fmt::Write;

use super::conditions;
use crate::condition_words;
use crate::input::Input;
use crate::words::{clean, several, wrapped};
use facts::differences::{Settings, among};

/// Limit of conditions on a terminal; the page has them all.
const MOST_SHOWN: usize = 24;
/// Limit of runs with the same value that are named; more are counted.
const MOST_NAMED: usize = 3;

/// Condition with its value in each run, in words.
pub struct DifferingCondition {
    pub name: String,
    pub values: Vec<String>,
}

/// Differing conditions, in a fixed order.
pub fn conditions_that_differ(inputs: &[Input]) -> Vec<DifferingCondition> {
    let all: Vec<_> = inputs.iter().map(|input| conditions::conditions(input.run)).collect();
    let value =
        |of: &[(&str, String)], name| of.iter().find(|(own, _)| *own == name).map(|(_, value)| value.clone());
    let times = ["started", "length"].map(|name| {
        let values: Vec<Option<String>> = all.iter().map(|of| value(of, name)).collect();
        (name.to_owned(), values)
    });
    let times = times.into_iter().filter(|(_, values)| values.windows(2).any(|two| two[0] != two[1]));
    let of_run = |input: &Input| input.settings.cloned().unwrap_or_else(|| Settings::of(input.run, &[]));
    let settings: Vec<Settings> = inputs.iter().map(of_run).collect();
    let in_words = |(what, values): (String, Vec<Option<String>>)| DifferingCondition {
        name: condition_words::name(&what),
        values: values
            .iter()
            .map(|value| {
                value
                    .as_ref()
                    .map_or_else(|| "not known".to_owned(), |value| condition_words::value(&what, value))
            })
            .collect(),
    };
    times.chain(among(&settings)).map(in_words).collect()
}

/// Differing conditions as lines below the tables of the runs; empty for a single run.
pub fn text(inputs: &[Input], width: usize) -> String {
    if inputs.len() < 2 {
        return String::new();
    }
    let mut page = "\nWhat differs in the conditions\n".to_owned();
    let differing = conditions_that_differ(inputs);
    if differing.is_empty() {
        page.push_str("  No recorded condition.\n");
    }
    for condition in differing.iter().take(MOST_SHOWN) {
        wrapped(&mut page, &format!("  {}: {}", condition.name, by_value(inputs, &condition.values)), width);
    }
    if differing.len() > MOST_SHOWN {
        let _ = writeln!(page, "  and {} more: -o FILE.html has all", differing.len() - MOST_SHOWN);
    }
    page
}

/// `500 us in a; 1 ms in b and c`, each value once.
fn by_value(inputs: &[Input], values: &[String]) -> String {
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    for (input, value) in inputs.iter().zip(values) {
        match groups.iter_mut().find(|(other, _)| *other == value) {
            Some((_, runs)) => runs.push(clean(input.title)),
            None => groups.push((value, vec![clean(input.title)])),
        }
    }
    let named = |(value, runs): (&str, Vec<String>)| match runs.len() {
        many if many > MOST_NAMED => format!("{value} in {}", several(many as u64, "run", "runs")),
        _ => format!("{value} in {}", runs.join(", ")),
    };
    groups.into_iter().map(named).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use model::load::LoadRun;
    use model::units::Nanos;

    #[test]
    fn several_runs_on_a_terminal_state_what_differs_once_per_value() {
        let (a, mut b) = (fixture::quiet(), fixture::quiet());
        b.run.loads = vec![LoadRun { spec: "cpu".into(), cpus: "1".into(), ..LoadRun::default() }];
        b.run.plan.interval_ns = Some(Nanos(250_000));
        let titles = ["first", "second", "third"];
        let inputs = [&a, &a, &b].map(|sample| sample.input());
        let inputs: Vec<Input> =
            inputs.into_iter().zip(titles).map(|(input, title)| Input { title, ..input }).collect();
        let page = text(&inputs, 200);
        assert!(page.starts_with("\nWhat differs in the conditions\n"), "{page}");
        let interval = a.run.plan.interval_ns.expect("onbeat's own run has one").to_string();
        assert!(
            page.contains(&format!("  interval: {interval} in first, second; 250 us in third\n")),
            "{page}"
        );
        assert!(page.contains("  load: (none) in first, second; cpu in third\n"), "{page}");
        assert!(page.contains("  CPUs of the load: (none) in first, second; 1 in third\n"), "{page}");
        assert_eq!(text(&inputs[..1], 80), "");
        assert!(text(&inputs[..2], 80).contains("No recorded condition"), "{}", text(&inputs[..2], 80));
    }
}
