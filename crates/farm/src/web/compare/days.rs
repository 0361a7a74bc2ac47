//! Comparison of days of boards: reads both sides from the store; `stats::compare` has the verdict.

use std::collections::BTreeSet;
use std::sync::Arc;

use maud::html;
use model::histogram::Bucket;
use model::rows::{RowSums, row_edges};
use model::text::excerpt;
use model::units::Nanos;
use report::compare::last_words;
use report::compare::page::{Versus, VersusTexts, parts};
use report::compare::text::{numbers, sentence};
use report::html::PageParts;
use stats::compare::{CompareQuestion, Metric, compare_units};
use stats::pair::verdict::{Design, Verdict};
use stats::series::Series;
use study::compare::ComparisonAnswer;

use crate::pages::compare::ComparisonForm;
use crate::records::{EnvironmentRecord, SLOT, SeriesKey, SeriesOfBoard};
use crate::sides::{ComparedBoards, FarmUnit, LeftOutDays, OtherSeries, UnitDays, choose, differences};
use crate::store::FarmStore;
use crate::web::compare::chosen_boards::{beside_each_other, quarters};
use crate::web::compare::sides::FoundSide;
use crate::web::edge::answer::Refusal;
use crate::web::state::app::App;

/// Remark if the sides have different models.
pub const OTHER_MACHINES: &str = "The sides are different machines: the hardware may cause the difference.";

/// Meaning of `observed` for a day or a board, whose maxima have no measured time.
pub const OBSERVED: &str =
    "The time observed counts whole intervals of five minutes: each with any measurement, however short.";

/// Parts of the answer besides the verdict.
#[derive(Default)]
pub struct BesideVerdict {
    /// Other series that both sides have.
    pub others: Vec<OtherSeries>,
    /// Numbers of excluded days of A and B.
    pub left_out: [LeftOutDays; 2],
    /// Compared boards of A and B.
    pub boards: [ComparedBoards; 2],
}

/// Answer as parts of a page and as JSON, with its other parts.
pub type DaysAnswer = (PageParts, String, BesideVerdict);

pub async fn answered(app: &App, form: &ComparisonForm, limit: Option<Nanos>) -> Result<DaysAnswer, Refusal> {
    let [a, b] = FoundSide::both(&app.store, &form.sides).await?;
    let shared = a.shared_with(&b);
    let is_asked = |key: &SeriesKey| {
        (form.series.is_empty() || key.series == form.series)
            && (form.plan.is_empty() || key.plan == form.plan)
    };
    let Some(series) = shared.iter().find(|one| is_asked(&one.key)) else {
        return Err(Refusal::bad(match &shared[..] {
            [] => a.nothing_shared(&b),
            _ => a.emptied_beside(&b, is_asked).unwrap_or_else(|| {
                let all: Vec<String> = shared.iter().map(words_of).collect();
                format!("one side has no maxima of five minutes of that series: both have {}", all.join("; "))
            }),
        }));
    };
    let (days_a, days_b) = (a.days_of(&series.key), b.days_of(&series.key));
    let chosen = choose(&days_a, &days_b).map_err(Refusal::bad)?;
    let all: Vec<&UnitDays> = chosen.a.iter().chain(&chosen.b).collect();
    let parts = quarters(&all).map(|some| units(&app.store, &series.key, some));
    let mut read_a = beside_each_other(parts).await?;
    let read_b = read_a.split_off(chosen.a.len());
    let mut remarks = vec![format!("Series: {}.", words_of(series))];
    let boards = [a.compared_boards(&series.key, &chosen.a), b.compared_boards(&series.key, &chosen.b)];
    remarks.extend(ComparedBoards::remarks(&boards));
    remarks.extend(chosen.remarks(&days_a, &days_b));
    remarks.extend([&a, &b].into_iter().flat_map(|side| side.remarks(&series.key)));
    let alone = ComparedBoards::alone(&boards);
    let of_alone = alone.as_ref().map_or_else(String::new, |alone| format!(", of {alone}"));
    let [words_a, words_b] = form.sides.each_ref().map(|side| excerpt(&side.words()));
    let asked = AskedOfDays {
        limit,
        unit: chosen.unit,
        remarks,
        environments: [a.environments_of(&chosen.a), b.environments_of(&chosen.b)],
        heading: format!("{words_b} against {words_a}{of_alone}"),
        alone,
    };
    let (parts, json) = app.heavy(move || judged(read_a, read_b, asked)).await?;
    let other = |one: &SeriesOfBoard| OtherSeries {
        boards: [&a, &b].map(|side| side.days_of(&one.key).into_keys().collect()),
        of: one.clone(),
    };
    let others = shared.iter().filter(|one| one.key != series.key).map(other).collect();
    let left_out = [&a, &b].map(|side| side.left_out(&series.key));
    Ok((parts, json, BesideVerdict { others, left_out, boards }))
}

fn words_of(of: &SeriesOfBoard) -> String {
    match of.words.as_str() {
        "" => of.key.series.clone(),
        words => format!("{}, {words}", of.key.series),
    }
}

/// Data of a unit.
struct ReadUnit {
    title: String,
    /// Address of its page.
    address: String,
    /// Maxima of five minutes.
    series: Series,
    /// Histogram of all its wake-ups.
    buckets: Vec<Bucket>,
    max_ns: Option<Nanos>,
}

async fn units(store: &FarmStore, key: &SeriesKey, all: &[&UnitDays]) -> Result<Vec<ReadUnit>, Refusal> {
    let mut read = Vec::new();
    for unit in all {
        let maxima = store.maxima_of_days(&unit.board, key, &unit.days).await?;
        let (mut sums, mut max_ns) = (RowSums::default(), None);
        for day in store.histograms_of_days(&unit.board, key, &unit.days).await? {
            day.cpus.iter().for_each(|cpu| sums.add_all(&cpu.rows));
            max_ns = max_ns.max(day.max_ns);
        }
        let bucket = |(row, count)| {
            let (lower, upper) = row_edges(row);
            Bucket { lower, upper, count }
        };
        let maxima = maxima.into_iter().map(Some);
        let series = Series::of_maxima(maxima, Nanos(SLOT * Nanos::SECOND.0), Nanos(1));
        let buckets = sums.iter().map(bucket).collect();
        let (title, address) = (unit.title.clone(), unit.address(key));
        read.push(ReadUnit { title, address, series, buckets, max_ns });
    }
    Ok(read)
}

/// Question besides the units.
struct AskedOfDays {
    limit: Option<Nanos>,
    unit: FarmUnit,
    remarks: Vec<String>,
    /// Environments of A and B.
    environments: [Vec<Arc<EnvironmentRecord>>; 2],
    heading: String,
    /// Names of the compared boards, unless these are all.
    alone: Option<String>,
}

fn judged(
    mut a: Vec<ReadUnit>,
    mut b: Vec<ReadUnit>,
    asked: AskedOfDays,
) -> Result<(PageParts, String), Refusal> {
    let is_there = |unit: &ReadUnit| !unit.series.blocks.is_empty();
    if asked.unit == FarmUnit::Pair {
        let pairs = a.into_iter().zip(b).filter(|(a, b)| is_there(a) && is_there(b));
        (a, b) = pairs.unzip();
    } else {
        a.retain(is_there);
        b.retain(is_there);
    }
    if a.is_empty() || b.is_empty() {
        return Err(Refusal::bad(
            "the maxima of five minutes of one side were deleted: choose another span, or name runs",
        ));
    }
    let design = if asked.unit == FarmUnit::Pair { Design::Paired } else { Design::Unpaired };
    let question = CompareQuestion { metric: Metric::Rate, limit: asked.limit, design, margin: None };
    let (series_a, series_b) = (series_of(&a), series_of(&b));
    let mut compared = compare_units(&series_a, &series_b, &question, asked.unit.compared());
    for (unit, read) in compared.a.iter_mut().zip(&a).chain(compared.b.iter_mut().zip(&b)) {
        (unit.title, unit.address) = (read.title.clone(), read.address.clone());
        unit.describe(Some((read.buckets.as_slice(), 0)), read.max_ns);
    }
    let mut remarks = asked.remarks;
    remarks.push(OBSERVED.to_owned());
    let models = asked.environments.each_ref().map(|side| models_of(side));
    if models[0] != models[1] && models.iter().all(|side| !side.is_empty()) {
        remarks.insert(0, OTHER_MACHINES.to_owned());
    }
    let found = ComparisonAnswer {
        compared,
        environment_diff: differences(&asked.environments[0], &asked.environments[1]),
        environment_recorded: asked.environments.iter().all(|side| !side.is_empty()),
        remarks,
    };
    let json = model::error::json(&found)?;
    let of_alone = asked.alone.map_or_else(String::new, |alone| format!(" This applies to {alone}."));
    let verdict = sentence(&found.compared) + &of_alone;
    let lines = last_words::sentences(&found.compared);
    let page = Versus {
        compared: &found.compared,
        texts: Some(VersusTexts {
            heading: &asked.heading,
            verdict: &verdict,
            numbers: &lines,
            next: Some(next(found.compared.verdict)),
        }),
        differing: found.differing(),
        remarks: &found.remarks,
        a: series_a,
        b: series_b,
    };
    let PageParts { heading, body, script } = parts(&page, &json);
    let body = html! {
        (body)
        details {
            summary { "Calculation" }
            ul { @for line in numbers(&found.compared) { li { (line) } } }
        }
    };
    Ok((PageParts { heading, body, script }, json))
}

fn models_of(side: &[Arc<EnvironmentRecord>]) -> BTreeSet<&str> {
    side.iter().map(|one| one.model.as_str()).collect()
}

/// Next step after a verdict: days show a coincidence; only runs made in turns show a cause.
fn next(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => {
            "See the differences below: `onbeat prove --change RULE=VALUE` on a board shows whether a \
             setting is the cause."
        }
        Verdict::Worse => {
            "See the differences below; `onbeat hunt` on a board names the culprit, `onbeat prove --change \
             RULE=VALUE` shows whether a setting is the cause."
        }
        Verdict::Equivalent => {
            "The rate of exceedances differs by less than the margin, despite the differences below; the \
             largest latency may still differ."
        }
        Verdict::Inconclusive => {
            "More days or boards of each side may decide it. If the sides differ by a setting, `onbeat prove \
             --change RULE=VALUE` on a board measures pairs of runs until they decide it."
        }
    }
}

fn series_of(side: &[ReadUnit]) -> Vec<&Series> {
    side.iter().map(|unit| &unit.series).collect()
}
