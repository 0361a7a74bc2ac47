//! A change of environment, and its effect: the days before against the days after.
//!
//! The unit is the day, of the maxima of its five minutes; days of one boot resemble each other, so
//! the verdict shows that an effect coincides with the change, not that it is caused by it.

use model::units::Nanos;
use report::words::{capitalised, several, span};
use stats::compare::{CompareQuestion, Metric, compare};
use stats::pair::verdict::{Design, Verdict};
use stats::series::Series;

use super::lead::times;
use super::{ChangeKind, EnvironmentSince, FALSE_SHARE, FarmChange, OF_ENVIRONMENT};
use crate::history::BoardEnvironment;
use crate::records::{SLOT, Tier};
use crate::setting_changes::{SettingChange, changed};
use crate::words::{date, escaped};

/// Days of each side.
pub const EFFECT_DAYS: i64 = 7;
/// Minimum number of days for a verdict.
const LEAST_DAYS: usize = 4;
/// Settings that a sentence names.
const NAMED: usize = 3;
/// Words for the days after a change, compared with those before it.
const HIGHER: &str = "higher";
const LOWER: &str = "lower";

/// A board that has another environment from some time on.
#[derive(Clone, Debug)]
pub struct EnvironmentStep<'a> {
    pub board: &'a str,
    pub before: &'a BoardEnvironment,
    pub after: &'a BoardEnvironment,
    /// The last second before the next change.
    pub until: i64,
    /// Series around it, with the days on which the board was in one of the environments only.
    pub series: &'a [SeriesAround],
}

/// A series of a board in the days around another environment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesAround {
    /// Name in sentences.
    pub name: String,
    /// The first second of each five minutes and their largest latency, oldest first.
    pub maxima: Vec<(i64, Nanos)>,
}

/// Effect seen in one series.
struct SeriesEffect<'a> {
    name: &'a str,
    kind: ChangeKind,
    p: Option<f64>,
    claim: String,
    evidence: Vec<String>,
}

/// The days of a series on both sides.
type Sides = (Vec<Series>, Vec<Series>);

/// The change, and its effect in the series.
pub fn effect(of: &EnvironmentStep) -> FarmChange {
    let t = of.after.first;
    let settings = changed(of.before, of.after);
    let mut found = FarmChange {
        board: of.board.to_owned(),
        kind: ChangeKind::Environment,
        t,
        from: t,
        says: says(&settings),
        claim: String::new(),
        evidence: Vec::new(),
        p: None,
        settings,
        address: format!("/b/{}/env", escaped(of.board)),
        subject: format!("{OF_ENVIRONMENT}{}", of.after.named),
        since: Some(EnvironmentSince {
            digests: of.after.digests.clone(),
            before: of.before.digests.clone(),
            until: of.until,
        }),
        acknowledged: None,
        conditions: Vec::new(),
    };
    let sides: Vec<(&str, Sides)> =
        of.series.iter().map(|one| (one.name.as_str(), sides(&one.maxima, t))).collect();
    let is_enough = |(a, b): &Sides| a.len() >= LEAST_DAYS && b.len() >= LEAST_DAYS;
    let judged: Vec<SeriesEffect> = sides
        .iter()
        .filter(|(_, sides)| is_enough(sides))
        .map(|(name, sides)| effect_in(name, &sides.0, &sides.1, t))
        .collect();
    if let Some((most, p)) = verdict(&judged) {
        (found.kind, found.p) = (most.kind, p);
        found.claim.clone_from(&most.claim);
    }
    found.evidence = evidence(&sides, judged);
    found
}

/// Verdict of the series that shows it most, with the probability that any of them would by chance
/// (Bonferroni). Improvement in one series does not hide a regression in another.
fn verdict<'a>(judged: &'a [SeriesEffect<'a>]) -> Option<(&'a SeriesEffect<'a>, Option<f64>)> {
    let of_any = |one: &SeriesEffect| one.p.map(|p| (p * judged.len() as f64).min(1.0));
    let order = |a: &&SeriesEffect, b: &&SeriesEffect| {
        let key = |one: &SeriesEffect| (one.kind == ChangeKind::Environment, of_any(one).unwrap_or(1.0));
        let (a, b) = (key(a), key(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    };
    let worse =
        |one: &&SeriesEffect| one.kind == ChangeKind::Worse && of_any(one).is_some_and(|p| p <= FALSE_SHARE);
    let most = judged.iter().filter(worse).min_by(order).or_else(|| judged.iter().min_by(order))?;
    Some((most, of_any(most)))
}

fn evidence(sides: &[(&str, Sides)], judged: Vec<SeriesEffect>) -> Vec<String> {
    let without = sides.len() - judged.len();
    if let ([(_, (a, b))], 1) = (sides, without) {
        return vec![format!(
            "Its effect is unknown: {} days before and {} days after it have samples of one environment \
             only; {LEAST_DAYS} of each are needed.",
            a.len(),
            b.len()
        )];
    }
    if judged.is_empty() {
        return vec![format!(
            "Its effect is unknown: no series of the board has samples of {LEAST_DAYS} days before and \
             {LEAST_DAYS} days after it with one environment only."
        )];
    }
    let is_alone = sides.len() == 1;
    let mut all: Vec<String> = judged
        .into_iter()
        .flat_map(|one| {
            if is_alone {
                one.evidence
            } else {
                vec![format!("{}: {}", capitalised(one.name), one.evidence.join(" "))]
            }
        })
        .collect();
    if without > 0 {
        all.push(format!(
            "Its effect on {} is unknown: fewer than {LEAST_DAYS} days before or after it have samples.",
            several(without as u64, "other series", "other series")
        ));
    }
    all
}

/// The days before and after a time; the day that it is in is of both.
fn sides(maxima: &[(i64, Nanos)], t: i64) -> Sides {
    let (begin, day) = (Tier::Day.begin(t), Tier::Day.seconds());
    (
        days(maxima, begin - EFFECT_DAYS * day, begin),
        days(maxima, begin + day, begin + (EFFECT_DAYS + 1) * day),
    )
}

fn effect_in<'a>(name: &'a str, a: &[Series], b: &[Series], t: i64) -> SeriesEffect<'a> {
    let limit = rare(a, b);
    let question = CompareQuestion { metric: Metric::Rate, limit, design: Design::Unpaired, margin: None };
    let compared = compare(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>(), &question);
    let kind = match compared.verdict {
        Verdict::Worse => ChangeKind::Worse,
        Verdict::Better => ChangeKind::Better,
        Verdict::Equivalent | Verdict::Inconclusive => ChangeKind::Environment,
    };
    let max = |side: &[Series]| side.iter().filter_map(Series::worst).map(|block| block.max).max();
    let mut evidence = vec![format!(
        "{} days before against {} days after {}: {}.",
        a.len(),
        b.len(),
        date(t),
        seen(compared.verdict)
    )];
    let mut claim = format!("{} latencies", if kind == ChangeKind::Better { LOWER } else { HIGHER });
    if let (Some(ratio), Some(limit)) = (compared.rate_ratio, compared.limit_ns) {
        if let Some(times) = times(ratio) {
            claim = format!("latencies of {} or more {times}", span(limit));
        }
        evidence.push(format!(
            "Intervals of five minutes with a latency of {} or more are {ratio:.2} times as frequent.",
            span(limit)
        ));
    }
    if let (Some(before), Some(after)) = (max(a), max(b)) {
        evidence.push(format!(
            "The largest latency was {} before and is {} after.",
            span(before),
            span(after)
        ));
    }
    SeriesEffect { name, kind, p: compared.p_value, claim, evidence }
}

/// Result of the days alone; the verdict needs the changes of the whole fleet.
fn seen(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Worse => HIGHER,
        Verdict::Better => LOWER,
        other => other.name(),
    }
}

/// Evidence for a verdict that the number of changes does not support, by the share of chance.
pub(super) fn no_more_than_chance(kind: ChangeKind, changes: usize, p: f64) -> String {
    let seen = if kind == ChangeKind::Better { LOWER } else { HIGHER };
    let of = several(changes as u64, "change", "changes");
    format!("It is {seen}, but chance explains this in {of} compared (p {p:.3}).")
}

fn says(settings: &[SettingChange]) -> String {
    let named: Vec<String> = settings
        .iter()
        .take(NAMED)
        .map(|one| {
            let value =
                |text: &str| if text.is_empty() { "none".to_owned() } else { model::text::excerpt(text) };
            format!("{} from {} to {}", model::text::clean(&one.what), value(&one.before), value(&one.after))
        })
        .collect();
    match settings.len() {
        0 => "A new environment with the same settings.".to_owned(),
        count if count > NAMED => format!("{}, and {} more.", named.join(", "), count - NAMED),
        _ => named.join(", ") + ".",
    }
}

/// Level that one in fifty of all five minutes reaches: of both sides together, so that an exchange
/// of days does not alter it.
fn rare(a: &[Series], b: &[Series]) -> Option<Nanos> {
    let mut all: Vec<Nanos> =
        a.iter().chain(b).flat_map(|day| day.blocks.iter().map(|one| one.max)).collect();
    all.sort_unstable();
    all.get(all.len() - all.len() / 50 - 1).copied()
}

/// Converts to one series per day.
fn days(maxima: &[(i64, Nanos)], from: i64, to: i64) -> Vec<Series> {
    let mut all = Vec::new();
    let mut day = from;
    while day < to {
        let of_day: Vec<Option<Nanos>> = maxima
            .iter()
            .filter(|(t, _)| (day..day + Tier::Day.seconds()).contains(t))
            .map(|&(_, max)| Some(max))
            .collect();
        if !of_day.is_empty() {
            all.push(Series::of_list(&of_day, Nanos(SLOT * Nanos::SECOND.0), Nanos(1)));
        }
        day += Tier::Day.seconds();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::EnvironmentRecord;
    use stats::rng::{Rng, SEED};
    use std::sync::Arc;

    fn environment(release: &str, first: i64) -> BoardEnvironment {
        let record = EnvironmentRecord {
            release: release.into(),
            settings: format!("{{\"host.release\":\"{release}\"}}"),
            ..EnvironmentRecord::default()
        };
        BoardEnvironment {
            record: Arc::new(record),
            first,
            last: first,
            runs: 1,
            example: "r".into(),
            ..BoardEnvironment::default()
        }
    }

    /// A series with that many late wake-ups in a thousand five minutes before and after day 10.
    fn series(name: &str, before: usize, after: usize) -> SeriesAround {
        let mut rng = Rng::new(SEED);
        let one = |at: i64| {
            let late = rng.below(1_000) < if at < 10 * 288 { before } else { after };
            (at * SLOT, Nanos(if late { 90_000 } else { 20_000 } + rng.below(9_000) as i64))
        };
        SeriesAround { name: name.into(), maxima: (0..20 * 288).map(one).collect() }
    }

    fn step(series: &[SeriesAround]) -> FarmChange {
        let (old, new) = (environment("6.1", 0), environment("6.12", 10 * 86_400 + 9));
        effect(&EnvironmentStep { board: "a", before: &old, after: &new, until: i64::MAX, series })
    }

    #[test]
    fn what_an_environment_did_is_told_and_what_it_did_not_is_not() {
        let of = |before, after| step(&[series("measure", before, after)]);
        let worse = of(20, 90);
        assert_eq!(worse.kind, ChangeKind::Worse, "{worse:?}");
        assert!(worse.says.contains("from 6.1 to 6.12") && worse.evidence.len() == 3);
        assert_eq!(of(90, 20).kind, ChangeKind::Better);
        assert_eq!(of(50, 50).kind, ChangeKind::Environment);
        assert!(step(&[]).evidence[0].contains("unknown"));
        assert!(step(&[SeriesAround::default()]).evidence[0].contains("0 days before and 0 days after"));
    }

    #[test]
    fn each_series_is_judged_and_the_worst_of_them_is_told() {
        let few = SeriesAround { name: "switch".into(), maxima: series("", 1, 1).maxima[..9 * 288].to_vec() };
        let alone = step(&[series("wakeup", 20, 90)]);
        let steady = ["timer", "timer+wakeup", "hunt"].map(|name| series(name, 50, 50));
        let many = step(&[&steady[..], &[series("wakeup", 20, 90), few]].concat());
        assert_eq!(many.kind, ChangeKind::Worse, "{many:?}");
        // Four series were tested: the one that shows it has to be four times as certain.
        let (p, of_four) = (alone.p.unwrap(), many.p.unwrap());
        assert!((of_four - (4.0 * p).min(1.0)).abs() < 1e-12, "{p} {of_four}");
        assert_eq!(many.evidence.len(), 5, "{many:?}");
        assert!(
            many.evidence[3].starts_with("Wakeup: 7 days before against 7 days after 1970-01-11: higher.")
        );
        assert!(many.evidence[4].starts_with("Its effect on 1 other series is unknown"));
        // An improvement in one series does not offset a regression in another.
        let both = step(&[series("timer", 150, 5), series("wakeup", 20, 90)]);
        assert_eq!(both.kind, ChangeKind::Worse, "{both:?}");
    }
}
