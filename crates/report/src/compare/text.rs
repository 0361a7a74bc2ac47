//! Result of `onbeat compare` as text: differing conditions, runs, evidence; `last_words` has the
//! answer.

use std::fmt::Write;

use super::evidence::{counted, counts, design, factor, separation, units_of_each};
use crate::condition_words;
use crate::words::{UNKNOWN, clean, duration, or_dash, signed, span, us_or_dash, wrapped};
use facts::differences::Difference;
use model::units::Nanos;
use stats::bounds::numbers::p_value;
use stats::compare::{Compared, Counted, UNDECIDED, Unit};
use stats::pair::unit::ComparedUnit;
use stats::pair::verdict::Verdict;

/// Limit of differing conditions in the text; the JSON has them all.
pub const MOST_SHOWN: usize = 24;

/// Result for this number of columns; `verbose` adds the calculation of the numbers.
pub fn text(
    compared: &Compared,
    differing: Option<&[Difference]>,
    remarks: &[String],
    width: usize,
    verbose: bool,
) -> String {
    let mut page = String::new();
    // If nothing differs, the last lines say so.
    if alike(differing).is_none() {
        page += &differences(differing, "; all are in --json", width);
        page.push('\n');
    }
    units(&mut page, compared, width);
    if verbose {
        page.push('\n');
        for line in numbers(compared) {
            wrapped(&mut page, &line, width);
        }
    }
    quantiles(&mut page, compared, width);
    cpus(&mut page, compared, width);
    if !remarks.is_empty() {
        page.push('\n');
    }
    remarks.iter().for_each(|remark| wrapped(&mut page, &format!("- {}", clean(remark)), width));
    page
}

/// Table of the runs only.
pub fn brief(compared: &Compared, width: usize) -> String {
    let mut page = String::new();
    units(&mut page, compared, width);
    page
}

/// Sentence on conditions that do not differ, or that are not recorded.
pub fn alike(differing: Option<&[Difference]>) -> Option<&'static str> {
    match differing {
        None => Some(
            "The conditions of A or B are not recorded, so it is not known whether they differ, for example \
             by a load.",
        ),
        Some([]) => Some("No recorded condition of A and B differs."),
        Some(_) => None,
    }
}

/// Lines on differing conditions, or a sentence if none differ or they are not recorded. `more`
/// ends the line that counts those that are not shown.
pub fn differences(differing: Option<&[Difference]>, more: &str, width: usize) -> String {
    if let Some(sentence) = alike(differing) {
        let mut line = String::new();
        wrapped(&mut line, sentence, width);
        return line;
    }
    let differing = differing.unwrap_or_default();
    let mut page = "What differs in the conditions (A -> B)\n".to_owned();
    for one in differing.iter().take(MOST_SHOWN) {
        wrapped(&mut page, &format!("  {}", condition_words::line(one)), width);
    }
    if differing.len() > MOST_SHOWN {
        let _ = writeln!(page, "  and {} more{more}", differing.len() - MOST_SHOWN);
    }
    page
}

/// Columns of the table of runs that are dropped on a narrow terminal, in this order.
const LEFT_OUT: [usize; 5] = [3, 5, 6, 4, 2];

fn units(page: &mut String, compared: &Compared, width: usize) {
    let head = head(compared);
    let mut rows = vec![head.to_vec()];
    for (side, units) in [("A", &compared.a), ("B", &compared.b)] {
        rows.extend(units.iter().map(|unit| row(side, unit)));
    }
    let widths: Vec<usize> = (0..head.len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut columns: Vec<usize> = (0..head.len()).collect();
    let needed =
        |columns: &[usize]| columns.iter().map(|&at| widths[at] + 2).sum::<usize>().saturating_sub(2);
    for column in LEFT_OUT {
        if needed(&columns) > width {
            columns.retain(|&at| at != column);
        }
    }
    for row in &rows {
        let cell = |&column: &usize| {
            let (text, width) = (&row[column], widths[column]);
            if column < 2 { format!("{text:<width$}") } else { format!("{text:>width$}") }
        };
        let line: Vec<String> = columns.iter().map(cell).collect();
        let _ = writeln!(page, "{}", line.join("  ").trim_end());
    }
    let note = "latencies in us; a larger maximum alone means little: it may be chance";
    wrapped(page, note, width);
}

/// Heads of the table of units.
pub fn head(compared: &Compared) -> [String; 9] {
    let limit = compared.limit_ns.map_or_else(|| "limit".into(), |limit| format!(">={}", span(limit)));
    ["", compared.unit.one(), "observed", "p50", "p99", "p99.9", "p99.99", "max", &limit].map(str::to_owned)
}

/// Row of a unit in that table.
pub fn row(side: &str, unit: &Unit) -> Vec<String> {
    let quantiles = unit.quantiles_ns.unwrap_or_default().map(us_or_dash);
    let mut cells = vec![side.to_owned(), clean(&unit.title), length(unit.observed_ns)];
    cells.extend(quantiles);
    cells.extend([us_or_dash(unit.max_ns), or_dash(unit.exceedances)]);
    cells
}

fn number(compared: &Compared, value: f64) -> String {
    if compared.difference_ns.is_some() { signed(value) } else { factor(value) }
}

/// Length of a unit's observation, if it is known.
fn length(observed: Nanos) -> String {
    if observed.0 > 0 { duration(observed) } else { UNKNOWN.to_owned() }
}

/// True if a unit has no block records, so that its rate is not known, or lacks the number that
/// decides.
fn is_unknown(compared: &Compared) -> bool {
    match compared.counted {
        Counted::Blocks => compared.a.iter().chain(&compared.b).any(|unit| unit.exceedances.is_none()),
        Counted::WakeUps => {
            compared.smallest_detectable.or(compared.difference_ns).is_none()
                && compared.units_needed.is_none()
        }
    }
}

/// Reason that there is no ratio.
fn without_ratio(compared: &Compared) -> &'static str {
    if compared.limit_ns.is_none() {
        return "none, all blocks are alike";
    }
    match compared.b.iter().filter_map(|unit| unit.exceedances).sum::<u64>() {
        0 => "none, nothing reached it",
        _ => "without bound, only B reached it",
    }
}

/// Reason that there are no numbers.
fn not_known(compared: &Compared) -> String {
    let lacking = match compared.counted {
        Counted::Blocks => "has no block records",
        Counted::WakeUps => "does not have it",
    };
    format!("{}, B over A: not known, a {} {lacking}.", compared.metric, compared.unit.one())
}

/// Basis of the verdict, in sentences.
pub fn numbers(compared: &Compared) -> Vec<String> {
    let mut lines = Vec::new();
    if is_unknown(compared) {
        return vec![not_known(compared)];
    }
    let (design, many) = (design(compared), compared.unit.many());
    let end = |value: f64| if value.is_finite() { number(compared, value) } else { "no bound".into() };
    let ci = compared.ci.map_or_else(String::new, |ci| format!(" [{}, {}]", end(ci[0]), end(ci[1])));
    let p = match (compared.p_value, compared.event_p_value) {
        (Some(p), _) => format!(", p {}", p_value(p)),
        (None, Some(p)) => format!(", p {} from the events only, which allows no verdict", p_value(p)),
        _ => String::new(),
    };
    if let Some(difference) = compared.difference_ns {
        lines.push(format!("{}: B - A = {}{ci}{p} ({design}).", compared.metric, signed(difference)));
    } else {
        let largest = compared.a.iter().chain(&compared.b).filter_map(|unit| unit.max_ns).max();
        let how = if compared.limit_given {
            "fixed beforehand".to_owned()
        } else if largest == compared.limit_ns {
            format!("chosen from the {many}: the largest latency of all")
        } else {
            format!(
                "chosen from the {many}: the latency that one block in 200 reaches, or 20 blocks in total"
            )
        };
        let limit =
            compared.limit_ns.map_or_else(String::new, |limit| format!(" at {} ({how})", span(limit)));
        let ratio = compared.rate_ratio.map_or_else(|| without_ratio(compared).into(), factor);
        let late = counted(compared)[0];
        lines.push(format!("Late {late}{limit}, B over A: {ratio}{ci}{p} ({design})."));
    }
    if let Some(ends) = compared.equivalence_ci.filter(|_| compared.verdict == Verdict::Equivalent) {
        let [low, high] = ends.map(end);
        lines.push(format!(
            "The verdict is based on the 90 % interval [{low}, {high}]: two one-sided tests at 5 %."
        ));
    }
    let margin = margin(compared);
    let detectable = compared.smallest_detectable.map_or_else(
        || format!("unknown, too few {many}"),
        |size| {
            if compared.difference_ns.is_some() {
                span(Nanos(size as i64))
            } else {
                format!("a factor of {}", factor(size))
            }
        },
    );
    let needed = compared.units_needed.map_or_else(
        || {
            let there_are =
                if compared.unit == ComparedUnit::Run { "are practical" } else { "there will be" };
            format!("; to show one as large as the margin would need more {many} than {there_are}")
        },
        |n| {
            let units = units_of_each(compared);
            let make = if compared.unit == ComparedUnit::Run { "make" } else { "it needs" };
            let what = if compared.smallest_detectable.is_some() {
                "to show one as large as the margin"
            } else if compared.verdict == Verdict::Inconclusive {
                "for any verdict"
            } else {
                "to determine it"
            };
            format!("; {what}, {make} {n} {units}")
        },
    );
    lines.push(format!("Equivalent: {margin}. Smallest difference that this number of {many} shows four times in five: {detectable}{needed}."));
    lines.extend(counts(compared));
    lines
}

fn quantiles(page: &mut String, compared: &Compared, width: usize) {
    if compared.quantiles.is_empty() {
        return;
    }
    page.push('\n');
    wrapped(
        page,
        if compared.quantiles.iter().any(|one| one.ci.is_some()) {
            "Quantiles of the block maxima, which do not decide (p allows for all of them, the \
             intervals do not)"
        } else {
            "Quantiles of the block maxima, which do not decide"
        },
        width,
    );
    for one in &compared.quantiles {
        let ci = one.ci.map_or_else(String::new, |ci| format!(" [{}, {}]", signed(ci[0]), signed(ci[1])));
        let p = if one.ci.is_some() { format!("  p {}", p_value(one.p_holm)) } else { String::new() };
        let at = |ns: f64| span(Nanos(ns as i64));
        let q = stats::bounds::numbers::digits(one.q * 100.0);
        let (a, b) = (at(one.a_ns), at(one.b_ns));
        let line = format!("  p{q:<5} {a:>10} -> {b:>10}  {}{ci}{p}", signed(one.difference_ns));
        if line.chars().count() <= width {
            page.push_str(&(line + "\n"));
        } else {
            wrapped(page, &line, width);
        }
    }
}

fn cpus(page: &mut String, compared: &Compared, width: usize) {
    if compared.cpus.iter().all(|cpu| cpu.a + cpu.b == 0) {
        return;
    }
    page.push('\n');
    wrapped(page, "Late blocks by CPU, which do not decide (p allows for their number)", width);
    for cpu in &compared.cpus {
        let p = if compared.p_value.is_some() {
            format!("  p {}", p_value(cpu.p_adjusted))
        } else {
            String::new()
        };
        let _ = writeln!(page, "  CPU {:<4} A {:>6}  B {:>6}{p}", cpu.cpu, cpu.a, cpu.b);
    }
}

/// Margin within which a difference does not count.
fn margin(compared: &Compared) -> String {
    match compared.difference_ns {
        Some(_) => format!("\u{b1} {}", span(Nanos(compared.margin as i64))),
        None => format!("{} to {}", factor(1.0 / compared.margin), factor(compared.margin)),
    }
}

/// Compared quantity, in words.
fn metric(compared: &Compared) -> String {
    match (compared.difference_ns, compared.limit_ns) {
        (None, Some(limit)) => format!("the {} that reach {}", counted(compared)[0], span(limit)),
        (Some(_), _) if compared.metric == "max" => "the maximum of a run".into(),
        (Some(_), _) if compared.counted == Counted::WakeUps => format!("the {} of a run", compared.metric),
        (None, None) => "the late blocks".into(),
        _ => compared.metric.clone(),
    }
}

/// Verdict, with the reason if it is inconclusive.
pub fn sentence(compared: &Compared) -> String {
    let whole_runs = compared.counted == Counted::WakeUps;
    let verdict = match compared.verdict {
        Verdict::Better if whole_runs => return format!("B is better than A: {}.", separation(compared)),
        Verdict::Worse if whole_runs => return format!("B is worse than A: {}.", separation(compared)),
        Verdict::Better => "B is better than A.",
        Verdict::Worse => "B is worse than A.",
        Verdict::Equivalent => {
            let (what, margin) = (metric(compared), margin(compared));
            return format!("A and B are equivalent in {what}: within {margin}, with 95 %.");
        }
        _ if compared.reason == UNDECIDED => {
            let what = metric(compared);
            return format!("Inconclusive: {what} show neither a difference nor equivalence.");
        }
        _ => "Inconclusive",
    };
    if compared.reason.is_empty() {
        verdict.into()
    } else {
        format!("{}: {}.", verdict.trim_end_matches('.'), compared.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::compare::{CompareQuestion, Metric, compare};
    use stats::pair::verdict::Design;
    use stats::rng::Rng;
    use stats::series::{BLOCK, Series};

    /// Runs of ten minutes; the i-th has `late[i]` late blocks.
    fn runs(late: &[usize], seed: u64) -> Vec<Series> {
        let mut rng = Rng::new(seed);
        let mut run = |late: &usize| {
            let max = |i: usize| {
                if i % 7 == 3 && i / 7 < *late { 80_000 } else { 20_000 + rng.below(5_000) as i64 }
            };
            let list: Vec<Option<Nanos>> = (0..600).map(max).map(|ns| Some(Nanos(ns))).collect();
            Series::of_list(&list, BLOCK, Nanos(1))
        };
        late.iter().map(&mut run).collect()
    }

    fn page_text(a: &[usize], b: &[usize]) -> String {
        let (a, b) = (runs(a, 1), runs(b, 2));
        let limit = Some(Nanos(50_000));
        let question =
            CompareQuestion { metric: Metric::Rate, limit, design: Design::Unpaired, margin: None };
        let compared = compare(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>(), &question);
        text(&compared, None, &[], 10_000, true)
            + &super::super::last_words::render(&compared, None, 10_000, false)
    }

    #[test]
    fn one_sentence_states_whether_the_e_value_is_valid() {
        let even = page_text(&[30, 31, 29, 30], &[2, 1, 2, 1]);
        assert!(
            even.contains("20 is reached, you may stop") && !even.contains("no reason to stop"),
            "{even}"
        );
        let spread = page_text(&[80, 2, 60, 1], &[2, 1, 2, 1]);
        assert!(spread.contains("no reason to stop") && !spread.contains("you may stop"), "{spread}");
        assert_eq!([&even, &spread].map(|text| text.matches("e-value").count()), [1, 1]);
    }

    #[test]
    fn the_larger_of_two_p_is_not_called_exact() {
        let rates = page_text(&[30, 31, 29, 30], &[2, 1, 2, 1]);
        let how = "4 and 4 runs; p is the larger of that by all permutations and that of the events only";
        assert!(rates.contains(how) && !rates.contains("exact"), "{rates}");
    }

    #[test]
    fn of_blocks_that_are_alike_no_limit_is_told() {
        let alike = Series::of_list(&[Some(Nanos(20_800_000)); 60], BLOCK, Nanos(1));
        let question =
            CompareQuestion { metric: Metric::Rate, limit: None, design: Design::Unpaired, margin: None };
        let compared = compare(&[&alike; 6], &[&alike; 6], &question);
        let words = text(&compared, None, &[], 10_000, true)
            + &super::super::last_words::render(&compared, None, 10_000, false);
        assert!(words.contains("the largest latency of every block is the same"), "{words}");
        assert!(!words.contains("was reached in") && !words.contains("nothing reached it"), "{words}");
    }

    #[test]
    fn conditions_that_are_not_recorded_are_not_called_equal() {
        assert!(
            alike(None).is_some_and(|line| line.starts_with("The conditions of A or B are not recorded"))
        );
        // In the last lines, and only there.
        assert_eq!(page_text(&[3; 4], &[2; 4]).matches("are not recorded").count(), 1);
        let mixed = Difference { what: "load".into(), a: "cpu | mem".into(), b: "cpu | mem".into() };
        assert!(differences(Some(&[mixed]), "", 80).ends_with("\n  load: mixed on both sides, cpu | mem\n"));
        assert_eq!(differences(Some(&[]), "", 80), "No recorded condition of A and B differs.\n");
    }
}
