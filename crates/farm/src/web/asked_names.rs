//! What lists and rows cannot be asked for is refused before they are asked: an answer that leaves
//! a wish out would be taken for one with it.

use axum::extract::Query;
use axum::http::Uri;
use model::text::excerpt;

use super::answer::Refusal;
use crate::records::SLOT;

/// The names that lists take which have no other look at them, by their addresses.
const KNOWN: [(&[&str], &[&str]); 2] = [
    (&["/runs", "/v1/runs", "/v1/runs.csv"], &["board", "label", "before", "before_run", "limit"]),
    (&["/kernels", "/v1/kernels", "/v1/kernels.csv"], &[]),
];

/// Refuses a name that its address does not know, and steps that are no whole five minutes.
pub fn check(uri: &Uri) -> Result<(), Refusal> {
    let path = uri.path();
    // What cannot be read as names and values is refused by who reads them.
    let Ok(Query(asked)) = Query::<Vec<(String, String)>>::try_from_uri(uri) else { return Ok(()) };
    if let Some((_, known)) = KNOWN.iter().find(|(paths, _)| paths.contains(&path))
        && let Some((other, _)) = asked.iter().find(|(name, _)| !known.contains(&name.as_str()))
    {
        let known = match known.is_empty() {
            true => "nothing can be asked for here".to_owned(),
            false => format!("what can be asked for here is {}", known.join(", ")),
        };
        return Err(Refusal::bad(format!("{known}, and not {}: leave it out", excerpt(other))));
    }
    let is_slots =
        path.starts_with("/v1/boards/") && (path.ends_with("/slots") || path.ends_with("/slots.csv"));
    let steps = asked.iter().filter(|(name, _)| is_slots && name == "step");
    let is_step = |step: i64| step > 0 && step % SLOT == 0;
    // What is no number is refused where it is read as one.
    if steps.filter_map(|(_, value)| value.parse().ok()).any(|step| !is_step(step)) {
        return Err(Refusal::bad(
            "step is in seconds, in whole five minutes: 300, 600, 3600, or leave it out",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_heeds_is_refused() {
        for (address, is_known) in [
            ("/runs?board=a&label=x=1&label=y=2&before=5&before_run=r&limit=7", true),
            ("/runs?label=&board=", true),
            ("/v1/runs?kernel=6.12", false),
            ("/v1/runs.csv?Board=a", false),
            ("/kernels", true),
            ("/kernels?board=a", false),
            ("/v1/kernels.csv?from=1", false),
            ("/v1/boards?from=1", true),
            ("/v1/boards/a/slots?step=600&from=1", true),
            ("/v1/boards/a/slots?step=0", false),
            ("/v1/boards/a/slots?step=-300", false),
            ("/v1/boards/a/slots.csv?step=7", false),
            ("/v1/boards/a/slots.csv?step=x", true),
        ] {
            let outcome = check(&address.parse().unwrap());
            assert_eq!(outcome.is_ok(), is_known, "{address}");
            assert!(outcome.err().is_none_or(|refusal| !refusal.detail.contains('\n')));
        }
    }
}
