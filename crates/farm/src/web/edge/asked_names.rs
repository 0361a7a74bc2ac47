//! Refusal of unknown query parameters: an answer that ignores one would be mistaken for one that
//! respects it.

use axum::extract::Query;
use axum::http::Uri;
use model::text::excerpt;

use crate::records::SLOT;
use crate::web::edge::answer::Refusal;

/// Query parameters of an address; `None` if they are not checked, for boards and monitoring
/// systems.
pub type KnownNames = Option<&'static [&'static str]>;

pub const OF_BOARDS: &[&str] = &["q", "sort", "state"];
pub const OF_BOARD: &[&str] = &["series", "plan", "span", "to"];
pub const OF_MOMENT: &[&str] = &["series", "plan", "worst"];
pub const OF_CHANGES: &[&str] = &["board", "only"];
pub const OF_RUNS: &[&str] = &["board", "label", "before", "before_run", "limit"];
pub const OF_CULPRIT: &[&str] = &["before", "before_board"];
pub const OF_SLOTS: &[&str] = &["series", "plan", "from", "to", "step", "label"];
/// As JSON slots have their CPUs.
pub const OF_SLOTS_CSV: &[&str] = &["series", "plan", "from", "to", "step", "label", "by"];
pub const OF_HISTOGRAMS: &[&str] = &["series", "plan", "from", "to", "tier", "cpu"];
/// Runs of both sides, or each field of [`crate::sides::FarmSide::FIELDS`] of both.
pub const OF_COMPARE: &[&str] = &[
    "a",
    "b",
    "limit",
    "series",
    "plan",
    "a_board",
    "a_machine",
    "a_kernel",
    "a_setting",
    "a_environment",
    "a_from",
    "a_before",
    "b_board",
    "b_machine",
    "b_kernel",
    "b_setting",
    "b_environment",
    "b_from",
    "b_before",
];

/// Refuses unknown parameters, and steps other than multiples of five minutes.
pub fn check(uri: &Uri, known: KnownNames) -> Result<(), Refusal> {
    let Some(known) = known else { return Ok(()) };
    // What cannot be read as names and values is refused by who reads them.
    let Ok(Query(asked)) = Query::<Vec<(String, String)>>::try_from_uri(uri) else { return Ok(()) };
    if let Some((other, _)) = asked.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        let known = match known.is_empty() {
            true => "this address takes no parameters".to_owned(),
            false => format!("accepted parameters are {}", known.join(", ")),
        };
        return Err(Refusal::bad(format!("{known}: remove {}", excerpt(other))));
    }
    let steps = asked.iter().filter(|(name, _)| name == "step");
    let is_step = |step: i64| step > 0 && step % SLOT == 0;
    // Invalid numbers are refused where they are parsed.
    if steps.filter_map(|(_, value)| value.parse().ok()).any(|step| !is_step(step)) {
        return Err(Refusal::bad("invalid `step`: expected seconds in multiples of 300, like 600 or 3600"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sides::FarmSide;

    const NOTHING: KnownNames = Some(&[]);

    #[test]
    fn what_an_address_does_not_take_is_refused() {
        for (address, known, is_known) in [
            ("/runs?board=a&label=x=1&label=y=2&before=5&before_run=r&limit=7", Some(OF_RUNS), true),
            ("/runs?label=&board=", Some(OF_RUNS), true),
            ("/v1/runs?kernel=6.12", Some(OF_RUNS), false),
            ("/v1/runs.csv?Board=a", Some(OF_RUNS), false),
            ("/kernels", NOTHING, true),
            ("/kernels?", NOTHING, true),
            ("/kernels?board=a", NOTHING, false),
            ("/kernels?x%0Ay", NOTHING, false),
            ("/v1/me?kernel=6.12&step=7", None, true),
            ("/v1/boards/a/slots?step=600&from=1", Some(OF_SLOTS), true),
            ("/v1/boards/a/slots?by=cpu", Some(OF_SLOTS), false),
            ("/v1/boards/a/slots?step=0", Some(OF_SLOTS), false),
            ("/v1/boards/a/slots?step=-300", Some(OF_SLOTS), false),
            ("/v1/boards/a/slots.csv?by=cpu&step=7", Some(OF_SLOTS_CSV), false),
            ("/v1/boards/a/slots.csv?by=cpu&step=x", Some(OF_SLOTS_CSV), true),
            ("/v1/boards/a/histograms?step=600", Some(OF_HISTOGRAMS), false),
        ] {
            let outcome = check(&address.parse().unwrap(), known);
            assert_eq!(outcome.is_ok(), is_known, "{address}");
            assert!(outcome.err().is_none_or(|refusal| !refusal.detail.contains('\n')));
        }
    }

    #[test]
    fn a_comparison_takes_each_field_of_both_sides() {
        let fields =
            ["a", "b"].iter().flat_map(|side| FarmSide::FIELDS.map(|field| format!("{side}_{field}")));
        assert!(fields.eq(OF_COMPARE[5..].iter().map(|name| (*name).to_owned())));
    }
}
