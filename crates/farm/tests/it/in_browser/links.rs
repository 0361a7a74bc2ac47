//! Follows the links of pages, to each kind of page once.

use std::collections::{BTreeSet, VecDeque};

use super::browser::Browser;

/// Parts of an address that are followed by a name.
const BEFORE_NAMES: [&str; 4] = ["b", "boards", "culprits", "runs"];
/// Parts of a query that select a different page, rather than the same one of another item.
const CHOICES: [&str; 3] = ["only", "span", "worst"];
/// Links within the farm, without the places on their pages.
const LINKS: &str = "return [...document.querySelectorAll('a[href^=\"/\"]')].map((one) =>
    one.getAttribute('href').split('#')[0])";

/// The address with `*` in the place of names, times and values.
fn kind(address: &str) -> String {
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let (mut parts, mut before) = (Vec::new(), "");
    for part in path.split('/') {
        let is_name = BEFORE_NAMES.contains(&before) || part.parse::<i64>().is_ok();
        parts.push(if is_name { "*" } else { part });
        before = part;
    }
    let is_choice = |pair: &str| CHOICES.iter().any(|name| pair.starts_with(&format!("{name}=")));
    let named = |pair: &str| {
        if is_choice(pair) { pair.to_owned() } else { pair.split('=').next().unwrap_or_default().to_owned() }
    };
    let asked: BTreeSet<String> = query.split('&').map(named).collect();
    format!("{}?{}", parts.join("/"), asked.into_iter().collect::<Vec<_>>().join("&"))
}

/// Visits some pages, then one of each other kind that is linked from the first page on; returns
/// their number. Data and archives are not pages.
pub async fn on_each_kind(browser: &Browser, some: &[&str], look: impl AsyncFn(&str)) -> usize {
    let mut waiting: VecDeque<String> = some.iter().chain(&["/"]).map(|page| (*page).to_owned()).collect();
    let mut seen = BTreeSet::new();
    while let Some(address) = waiting.pop_front() {
        if !seen.insert(kind(&address)) {
            continue;
        }
        browser.go(&address).await;
        look(&address).await;
        let links: Vec<String> = browser.told(LINKS, Vec::new()).await;
        waiting.extend(links.into_iter().filter(|link| !link.starts_with("/v1/")));
    }
    seen.len()
}

#[test]
fn pages_of_one_kind_differ_by_names_and_times() {
    for (address, wanted) in [
        ("/", "/?"),
        ("/b/press-1/at/1795305600?worst=day&plan=a&series=x", "/b/*/at/*?plan&series&worst=day"),
        ("/runs/r.1/spike/2", "/runs/*/spike/*?"),
        ("/admin/boards/a%20b", "/admin/boards/*?"),
    ] {
        assert_eq!(kind(address), wanted);
    }
}
