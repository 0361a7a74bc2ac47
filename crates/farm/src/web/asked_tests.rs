//! What each address can be asked for: a name that it does not know is refused, and what the pages
//! lead to is not.

use std::collections::BTreeSet;

use crate::store::engines::on_page_engines;
use crate::web::login::access::RouteNeed;
use crate::web::login::access_tests::{Browser, OWN, ask, farm_of, logged_in};
use crate::web::routes::routes;

#[test]
fn a_name_that_an_address_does_not_know_is_refused_with_those_that_it_knows() {
    on_page_engines(async |store| {
        let app = farm_of(store, None).await;
        let cookie = logged_in(&app, "admin").await;
        for route in routes() {
            let what = format!("{} {}", route.method, route.path);
            let by_board = matches!(route.need, RouteNeed::Token | RouteNeed::Code);
            let takes_all = by_board || matches!(route.path, "/healthz" | "/metrics");
            assert_eq!(route.known.is_none(), takes_all, "{what}");
            let Some(known) = route.known else { continue };
            let address = route.path.replace("{board}", "west").replace("{t}", "1");
            let address = address.replace(['{', '}', '*'], "") + "?no_such=1";
            let by = Browser { cookie: &cookie, ..OWN };
            let answer = ask(&app, route.method, &address, by, "").await;
            assert_eq!(answer.status, 400, "{what}: {}", answer.text);
            let words = match known.join(", ") {
                none if none.is_empty() => "his address takes no parameters: remove no_such".to_owned(),
                names => format!("ccepted parameters are {names}: remove no_such"),
            };
            assert!(answer.text.contains(&words), "{what}: {}", answer.text);
        }
    });
}

/// Where a page leads to: its links, and its forms that only ask, with nothing in their fields.
fn addresses(page: &str) -> Vec<String> {
    fn values<'a>(text: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
        text.split(before).skip(1).filter_map(|rest| rest.split('"').next())
    }
    let links = values(page, "href=\"/").map(|link| format!("/{}", link.replace("&amp;", "&")));
    let forms = page.split("<form").skip(1).filter_map(|rest| rest.split("</form>").next());
    let asking = forms.filter(|form| form.contains("method=\"get\"")).map(|form| {
        let fields: Vec<String> = values(form, " name=\"").map(|name| format!("{name}=")).collect();
        format!("{}?{}", values(form, " action=\"").next().unwrap(), fields.join("&"))
    });
    let all = links.chain(asking);
    all.map(|address| address.split('#').next().unwrap_or_default().to_owned()).collect()
}

fn names(address: &str) -> BTreeSet<&str> {
    let query = address.split_once('?').map_or("", |(_, query)| query);
    query.split('&').filter_map(|pair| pair.split('=').next()).filter(|name| !name.is_empty()).collect()
}

/// An address without its times, numbers and values: of those that have one shape one is asked for.
fn shape(address: &str) -> String {
    let path = address.split('?').next().unwrap_or_default();
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = path.split('/').map(|part| if is_number(part) { "" } else { part });
    format!("{}?{:?}", parts.collect::<Vec<_>>().join("/"), names(address))
}

#[test]
fn what_the_pages_ask_for_is_known_where_they_lead_to() {
    on_page_engines(async |store| {
        let app = farm_of(store, None).await;
        let cookie = logged_in(&app, "admin").await;
        let (mut shapes, mut asked_for) = (BTreeSet::new(), BTreeSet::new());
        let mut next = vec!["/".to_owned(), "/admin".to_owned()];
        while let Some(address) = next.pop() {
            if !shapes.insert(shape(&address)) {
                continue;
            }
            asked_for.extend(names(&address).into_iter().map(str::to_owned));
            let answer = ask(&app, "GET", &address, Browser { cookie: &cookie, ..OWN }, "").await;
            assert_ne!(answer.status, 400, "{address}: {}", answer.text);
            if answer.status == 200 && !address.starts_with("/v1/") {
                next.extend(addresses(&answer.text));
            }
        }
        assert!(shapes.len() > 40, "{shapes:?}");
        for name in ["q", "state", "span", "worst", "tier", "from", "board", "label", "a", "a_board"] {
            assert!(asked_for.contains(name), "{name} is not among {asked_for:?}");
        }
    });
}
