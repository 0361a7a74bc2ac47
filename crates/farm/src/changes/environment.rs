//! Another environment, and what it did: the days before against the days after.
//!
//! The day is the unit, of the maxima of its five minutes; days of one boot resemble each other, so
//! that the verdict says what came with the change and not that it is the cause.

use model::units::Nanos;
use report::words::span;
use stats::compare::{CompareQuestion, Metric, compare};
use stats::pair::verdict::{Design, Verdict};
use stats::series::Series;

use super::{ChangeKind, FarmChange};
use crate::pages::environments::{SettingChange, changes};
use crate::pages::parts::{date, escaped};
use crate::records::{BoardEnvironment, FarmSlot, SLOT, Tier};

/// Days of each side.
pub const DAYS: i64 = 7;
/// Fewer say nothing.
const LEAST_DAYS: usize = 4;
/// Settings that a sentence names.
const NAMED: usize = 3;

/// A board that has another environment from some time on.
#[derive(Clone, Debug)]
pub struct EnvironmentStep<'a> {
    pub board: &'a str,
    pub before: &'a BoardEnvironment,
    pub after: &'a BoardEnvironment,
    /// The maxima of five minutes of the days around it, oldest first.
    pub slots: &'a [FarmSlot],
}

/// The change, and what is seen of its effect.
pub fn effect(of: &EnvironmentStep) -> FarmChange {
    let t = of.after.first;
    let settings = changes(&of.before.record.settings, &of.after.record.settings);
    let begin = Tier::Day.begin(t);
    // The day of the change is of both.
    let side = |from: i64, to: i64| days(of.slots, from, to);
    let (a, b) = (
        side(begin - DAYS * Tier::Day.seconds(), begin),
        side(begin + Tier::Day.seconds(), begin + (DAYS + 1) * Tier::Day.seconds()),
    );
    let mut found = FarmChange {
        board: of.board.to_owned(),
        kind: ChangeKind::Environment,
        t,
        from: t,
        says: says(&settings),
        evidence: Vec::new(),
        p: None,
        settings,
        address: format!("/b/{}/env", escaped(of.board)),
        subject: format!("environment {}", of.after.record.digest),
        acknowledged: None,
    };
    if a.len() < LEAST_DAYS || b.len() < LEAST_DAYS {
        found.evidence.push(format!(
            "Its effect is not known: {} days before and {} days after it have samples, and {LEAST_DAYS} of \
             each are needed.",
            a.len(),
            b.len()
        ));
        return found;
    }
    let limit = rare(&a, &b);
    let question = CompareQuestion { metric: Metric::Rate, limit, design: Design::Unpaired, margin: None };
    let compared = compare(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>(), &question);
    found.kind = match compared.verdict {
        Verdict::Worse => ChangeKind::Worse,
        Verdict::Better => ChangeKind::Better,
        Verdict::Equivalent | Verdict::Inconclusive => ChangeKind::Environment,
    };
    found.p = compared.p_value;
    let max = |side: &[Series]| side.iter().filter_map(Series::worst).map(|block| block.max).max();
    found.evidence.push(format!(
        "{} days before against {} days after {}: {}.",
        a.len(),
        b.len(),
        date(t),
        compared.verdict.name()
    ));
    if let (Some(ratio), Some(limit)) = (compared.rate_ratio, compared.limit_ns) {
        found.evidence.push(format!(
            "Five minutes whose largest latency is {} or more come {ratio:.2} times as often.",
            span(limit)
        ));
    }
    if let (Some(before), Some(after)) = (max(&a), max(&b)) {
        found.evidence.push(format!(
            "The largest latency was {} before and is {} after.",
            span(before),
            span(after)
        ));
    }
    found
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
        0 => "Another environment, with the same settings.".to_owned(),
        count if count > NAMED => format!("{}, and {} more.", named.join(", "), count - NAMED),
        _ => named.join(", ") + ".",
    }
}

/// What one in fifty of all five minutes reach: of both sides together, so that no exchange of days
/// changes it.
fn rare(a: &[Series], b: &[Series]) -> Option<Nanos> {
    let mut all: Vec<Nanos> =
        a.iter().chain(b).flat_map(|day| day.blocks.iter().map(|one| one.max)).collect();
    all.sort_unstable();
    all.get(all.len() - all.len() / 50 - 1).copied()
}

/// One series per day.
fn days(slots: &[FarmSlot], from: i64, to: i64) -> Vec<Series> {
    let mut all = Vec::new();
    let mut day = from;
    while day < to {
        let of_day: Vec<Option<Nanos>> = slots
            .iter()
            .filter(|slot| (day..day + Tier::Day.seconds()).contains(&slot.t) && slot.max_ns.is_some())
            .map(|slot| slot.max_ns)
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

    fn environment(release: &str, first: i64) -> BoardEnvironment {
        let record = EnvironmentRecord {
            release: release.into(),
            settings: format!("{{\"host.release\":\"{release}\"}}"),
            ..EnvironmentRecord::default()
        };
        BoardEnvironment { record, first, last: first, runs: 1, example: "r".into() }
    }

    /// How many slots of a thousand have a late wake-up, before and after day 10.
    fn slots(before: usize, after: usize) -> Vec<FarmSlot> {
        let mut rng = Rng::new(SEED);
        let one = |at: i64| {
            let late = rng.below(1_000) < if at < 10 * 288 { before } else { after };
            let max_ns = Some(Nanos(if late { 90_000 } else { 20_000 } + rng.below(9_000) as i64));
            FarmSlot { t: at * SLOT, n: 1, max_ns, ..FarmSlot::default() }
        };
        (0..20 * 288).map(one).collect()
    }

    #[test]
    fn what_an_environment_did_is_told_and_what_it_did_not_is_not() {
        let (old, new) = (environment("6.1", 0), environment("6.12", 10 * 86_400 + 9));
        let step =
            |slots: &[FarmSlot]| effect(&EnvironmentStep { board: "a", before: &old, after: &new, slots });
        let worse = step(&slots(20, 90));
        assert_eq!(worse.kind, ChangeKind::Worse, "{worse:?}");
        assert!(worse.says.contains("from 6.1 to 6.12") && worse.evidence.len() == 3);
        assert_eq!(step(&slots(90, 20)).kind, ChangeKind::Better);
        assert_eq!(step(&slots(50, 50)).kind, ChangeKind::Environment);
        assert!(step(&[]).evidence[0].contains("not known"));
    }
}
