//! Answer of `onbeat compare` as the last lines on the terminal: the verdict, the difference, the
//! resolution of this number of runs, the next commands.

use super::evidence::{counted, factor, grouped, units_of_each};
use super::text::{alike, sentence};
use crate::condition_words;
use crate::hunt::next_step::full_stop;
use crate::last_lines::LastLines;
use crate::palette::{BOLD, GREEN, Palette, RED};
use crate::words::{several, signed, span, uncapitalised};
use facts::differences::Difference;
use model::units::Nanos;
use stats::compare::{ALPHA, Compared, Counted};
use stats::pair::unit::ComparedUnit;
use stats::pair::verdict::{Design, Verdict};

/// Limit of conditions that the last lines name.
const NAMED_CONDITIONS: usize = 3;

/// Answer as text of up to this number of columns.
pub fn render(compared: &Compared, differing: Option<&[Difference]>, width: usize, color: bool) -> String {
    let style = match compared.verdict {
        Verdict::Better => GREEN,
        Verdict::Worse => RED,
        _ => BOLD,
    };
    let mut answer = LastLines::default();
    answer.styled("answer", sentence(compared), style);
    answer.row("by", by_how_much(compared)).row("shows", can_show(compared));
    answer.row("fair", fair(differing)).row("next", next(compared));
    answer.render(width, Palette(color))
}

/// Sentences for the page: the difference, and the resolution of this number of runs.
pub fn sentences(compared: &Compared) -> Vec<String> {
    let rows = [by_how_much(compared), can_show(compared)];
    rows.iter().filter(|row| !row.is_empty()).map(|row| full_stop(row)).collect()
}

/// Difference with its interval; empty if it is not known.
fn by_how_much(compared: &Compared) -> String {
    let of_one = compared.a.len() + compared.b.len() == 2;
    let excludes = |at: f64| compared.ci.is_some_and(|[low, high]| high < at || low > at);
    let none = if compared.difference_ns.is_some() { 0.0 } else { 1.0 };
    let open = !matches!(compared.verdict, Verdict::Better | Verdict::Worse) && excludes(none);
    let many = compared.unit.many();
    let whole_runs = compared.counted == Counted::WakeUps;
    let sure = match (of_one, open) {
        (true, _) if whole_runs => "95 % if late wake-ups are independent, which is not known".to_owned(),
        (true, _) => "95 % from the events of these two only".to_owned(),
        (_, true) => format!("95 % if {many} do not vary by themselves, which is not proven"),
        _ => "95 %".to_owned(),
    };
    // The verdict's interval, if it has one: the other may reach beyond the margin.
    let (interval, sure) = match compared.equivalence_ci.filter(|_| compared.verdict == Verdict::Equivalent) {
        Some(ends) => (Some(ends), "90 %, which is 95 % at either end".to_owned()),
        None => (compared.ci, sure),
    };
    if let Some(difference) = compared.difference_ns {
        let ci = interval.map_or_else(String::new, |[low, high]| {
            format!(" (between {} and {} with {sure})", signed(low), signed(high))
        });
        let metric = if compared.metric == "max" { "maximum" } else { &compared.metric };
        return format!("{metric}, B against A: {}{ci}", signed(difference));
    }
    // Without a limit no block is late: the verdict gives the reason.
    let Some(limit) = compared.limit_ns.map(span) else { return String::new() };
    let events = |units: &[stats::compare::Unit]| {
        units.iter().try_fold(0u64, |sum, unit| Some(sum.saturating_add(unit.exceedances?)))
    };
    let (Some(in_a), Some(in_b)) = (events(&compared.a), events(&compared.b)) else { return String::new() };
    let end = |value: f64| if value.is_finite() { factor(value) } else { "no bound".into() };
    let ratio = compared.rate_ratio.map_or_else(String::new, |ratio| {
        let ci = interval.map_or_else(String::new, |[low, high]| {
            format!(" (between {} and {} with {sure})", end(low), end(high))
        });
        format!(": {} times as often{ci}", factor(ratio))
    });
    let [more, one] = counted(compared);
    let late = if in_b == 1 { one } else { more };
    let [in_a, in_b] = [in_a, in_b].map(|count| if whole_runs { grouped(count) } else { count.to_string() });
    format!("{limit} was reached in {in_b} {late} of B and {in_a} of A{ratio}")
}

/// Smallest difference that this number of units shows, and the number needed for the margin.
fn can_show(compared: &Compared) -> String {
    let (units, many) = (units_of_each(compared), compared.unit.many());
    let needed = compared.units_needed.map(|n| format!("{n} {units}"));
    let size = |size: f64| match compared.difference_ns {
        Some(_) => span(Nanos(size as i64)),
        None => format!("a factor of {}", factor(size)),
    };
    let Some(detectable) = compared.smallest_detectable.map(size) else {
        let how = match (compared.unit, compared.design) {
            (ComparedUnit::Run, Design::Paired) => ", because alternating runs are compared in pairs",
            (ComparedUnit::Run, Design::Unpaired) => ", or six alternating pairs",
            (_, Design::Paired) => ", because each is compared with itself",
            (_, Design::Unpaired) => "",
        };
        let lacking = match compared.verdict {
            Verdict::Inconclusive => "too few for any verdict:",
            // One new run against a baseline has a verdict, and no interval.
            _ => "the verdict only; to bound the difference,",
        };
        return needed.map_or_else(String::new, |n| format!("{lacking} {n} are needed{how}"));
    };
    let margin = size(compared.margin);
    let more = needed.map_or_else(String::new, |n| format!("; for {margin}, {n} are needed"));
    format!("with so few {many}, {detectable} is detected only four times in five{more}")
}

/// Sentence on the conditions of A and B: the same, or the first that differ.
fn fair(differing: Option<&[Difference]>) -> String {
    match alike(differing) {
        Some(sentence) => uncapitalised(sentence.trim_end_matches('.')),
        None => {
            let all = differing.unwrap_or_default();
            let mixed = all.iter().filter(|one| one.is_mixed()).count() as u64;
            let between = all.len() as u64 - mixed;
            let differ = several(between, "condition differs", "conditions differ");
            let within = several(mixed, "is mixed", "are mixed");
            let counts = match (between, mixed) {
                (_, 0) => format!("{differ} between A and B"),
                (0, _) => format!("no condition differs between A and B, but {within} within both"),
                _ => format!("{differ} between A and B, and {within} within both"),
            };
            format!("{counts}: {}", first_names(all))
        }
    }
}

/// Names of the first conditions: a brief answer does not list all.
fn first_names(all: &[Difference]) -> String {
    let names: Vec<String> =
        all.iter().take(NAMED_CONDITIONS).map(|one| condition_words::name(&one.what)).collect();
    match all.len() - names.len() {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

fn next(compared: &Compared) -> String {
    match compared.verdict {
        Verdict::Better | Verdict::Equivalent => {
            "repeat it on another boot; -o FILE.html draws it, -v explains the calculation".into()
        }
        Verdict::Worse => "onbeat hunt -D 60s with B (culprits); -o FILE.html draws it".into(),
        Verdict::Inconclusive if !compared.remedy.is_empty() => compared.remedy.clone(),
        Verdict::Inconclusive => {
            let how = "fix the number before you start; -v explains the calculation";
            format!("{}; {how}", more_of_them(compared))
        }
    }
}

/// Number of units needed: without any verdict the least that allow one, else the number that shows
/// a difference as large as the margin.
fn more_of_them(compared: &Compared) -> String {
    let turns = match (compared.unit, compared.design) {
        (ComparedUnit::Run, Design::Paired) => ", alternating (A B B A ...)",
        _ => "",
    };
    let are = match compared.design {
        Design::Paired => compared.units,
        Design::Unpaired => compared.a.len().min(compared.b.len()),
    };
    let many = compared.unit.many();
    let few = compared.smallest_p > ALPHA;
    match (compared.units_needed, compared.smallest_detectable) {
        (_, detectable) if compared.unit == ComparedUnit::Run && (few || detectable.is_none()) => {
            match compared.design {
                Design::Paired => "more runs: at least six pairs, alternating (A B B A ...)".to_owned(),
                Design::Unpaired => {
                    "more runs: at least four of each, or six alternating pairs (A B B A ...)".to_owned()
                }
            }
        }
        (Some(needed), Some(_)) if needed > are => {
            format!("more {many}: {needed} {} are needed{turns}", units_of_each(compared))
        }
        // Enough on average, but not with these.
        (_, Some(_)) => format!("more {many} than these{turns}"),
        (Some(needed), None) => format!("more {many}: at least {needed} {}", units_of_each(compared)),
        (None, None) => format!("more {many}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::compare::{CompareQuestion, Metric, compare};
    use stats::series::{BLOCK, Series};

    fn undecided(design: Design, needed: Option<usize>, detectable: Option<f64>) -> String {
        let alike = Series::of_list(&[Some(Nanos(20_000)); 60], BLOCK, Nanos(1));
        let question = CompareQuestion { metric: Metric::Rate, limit: None, design, margin: None };
        let mut compared = compare(&[&alike; 6], &[&alike; 6], &question);
        compared.verdict = Verdict::Inconclusive;
        (compared.units_needed, compared.smallest_detectable) = (needed, detectable);
        next(&compared)
    }

    /// Seconds of a run, of which this number are late.
    fn of_late(late: usize) -> Series {
        let at = |i: usize| Some(Nanos(if i % 7 == 3 && i / 7 < late { 80_000 } else { 20_000 }));
        Series::of_list(&(0..600).map(at).collect::<Vec<_>>(), BLOCK, Nanos(1))
    }

    #[test]
    fn what_is_called_equivalent_is_shown_by_the_interval_that_lies_within_the_margin() {
        let limit = Some(Nanos(50_000));
        let question =
            CompareQuestion { metric: Metric::Rate, limit, design: Design::Unpaired, margin: None };
        let side = |late: &[usize]| late.iter().map(|late| of_late(*late)).collect::<Vec<_>>();
        let (a, b) = (side(&[30, 34, 28, 32]), side(&[31, 29, 33, 30]));
        let mut compared = compare(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>(), &question);
        assert_eq!(compared.verdict, Verdict::Equivalent);
        let [low, high] = compared.equivalence_ci.expect("an interval");
        assert!(low >= 0.5 && high <= 2.0 && low < high, "{low} {high}");
        // With more spread the 95 % interval still reaches beyond the margin.
        compared.ci = Some([0.49, 2.04]);
        let text = by_how_much(&compared);
        let between = format!("(between {} and {} with 90 %, ", factor(low), factor(high));
        assert!(text.contains(&between) && !text.contains("2.04"), "{text}");
        compared.verdict = Verdict::Inconclusive;
        assert!(by_how_much(&compared).contains("(between 0.49 and 2.04 with 95 %)"));
    }

    #[test]
    fn a_verdict_without_an_interval_is_not_called_too_few() {
        let question =
            CompareQuestion { metric: Metric::Rate, limit: None, design: Design::Unpaired, margin: None };
        let (past, new) = (of_late(1), of_late(60));
        let mut compared = compare(&[&past; 8], &[&new], &question);
        (compared.verdict, compared.smallest_detectable) = (Verdict::Worse, None);
        assert!(can_show(&compared).starts_with("the verdict only; "), "{}", can_show(&compared));
        compared.verdict = Verdict::Inconclusive;
        assert!(can_show(&compared).starts_with("too few for any verdict: "), "{}", can_show(&compared));
    }

    #[test]
    fn what_is_mixed_within_both_sides_is_no_difference_between_them() {
        let of = |a: &str, b: &str| Difference { what: "load".into(), a: a.into(), b: b.into() };
        let (mixed, differs) = (of("cpu | mem", "cpu | mem"), of("cpu", "mem"));
        assert_eq!(fair(Some(std::slice::from_ref(&differs))), "1 condition differs between A and B: load");
        assert_eq!(
            fair(Some(std::slice::from_ref(&mixed))),
            "no condition differs between A and B, but 1 is mixed within both: load"
        );
        assert_eq!(
            fair(Some(&[differs.clone(), mixed.clone(), mixed])),
            "1 condition differs between A and B, and 2 are mixed within both: load, load, load"
        );
        assert!(fair(Some(&vec![differs; 5])).ends_with(": load, load, load and 2 more"));
        assert!(fair(Some(&[])).starts_with("no recorded condition"));
    }

    #[test]
    fn after_six_pairs_the_number_is_told_that_it_takes() {
        let pairs = undecided(Design::Paired, Some(30), Some(5.0));
        assert!(
            pairs.starts_with("more runs: 30 pairs are needed, alternating (A B B A ...); fix"),
            "{pairs}"
        );
        let runs = undecided(Design::Unpaired, Some(30), Some(5.0));
        assert!(runs.starts_with("more runs: 30 runs of each are needed; fix"), "{runs}");
        // As many as there are, and more than is practical.
        for needed in [Some(6), None] {
            let text = undecided(Design::Unpaired, needed, Some(5.0));
            assert!(text.starts_with("more runs than these; fix"), "{text}");
        }
        assert!(undecided(Design::Unpaired, Some(4), None).starts_with("more runs: at least four of each, "));
        // The pairs that were requested are too few.
        assert!(
            undecided(Design::Paired, Some(6), None)
                .starts_with("more runs: at least six pairs, alternating")
        );
    }
}
