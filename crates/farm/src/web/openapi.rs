//! `/v1` and `/v1/openapi.json`: what can be asked for, made from the table of routes.

use std::sync::Arc;

use axum::Extension;
use serde_json::{Map, Value, json};

use crate::web::answer_schemas::AnswerSchemas;
use crate::web::edge::answer::{AnswerForm, WebAnswer, WebOutcome};
use crate::web::edge::asked_names::KnownNames;
use crate::web::login::access::{RouteNeed, is_for_scripts};

/// Parameters that are numbers, in a path or behind the question mark.
const NUMBERS: [&str; 7] = ["t", "number", "seq", "from", "to", "step", "cpu"];

/// A row of the table of routes.
#[derive(Clone, Copy)]
pub struct ApiRequest {
    pub method: &'static str,
    pub path: &'static str,
    pub need: RouteNeed,
    pub known: KnownNames,
}

/// All rows of the table.
pub type ApiRequests = Arc<[ApiRequest]>;

/// The requests below this address, and the address of their description.
pub async fn index(Extension(all): Extension<ApiRequests>) -> WebOutcome {
    let data = all.iter().filter(|route| route.path.starts_with("/v1/"));
    let requests: Vec<Value> = data
        .map(|route| {
            let (path, query) = (path_of(route), route.known.unwrap_or_default());
            json!({ "method": route.method, "path": path, "query": query, "needs": words(route.need) })
        })
        .collect();
    WebAnswer::json(&json!({
        "schema": "onbeat.farm-index/1", "openapi": "/v1/openapi.json", "requests": requests,
    }))
}

/// The description of all requests (OpenAPI 3.1).
pub async fn document(Extension(all): Extension<ApiRequests>) -> WebOutcome {
    let (mut paths, mut schemas) = (Map::new(), AnswerSchemas::new());
    for route in all.iter() {
        let of_path = paths.entry(path_of(route)).or_insert_with(|| json!({}));
        of_path[route.method.to_ascii_lowercase()] = operation(route, &mut schemas);
    }
    let mut components = schemas.definitions();
    let problem = json!({
        "type": "object",
        "properties": {
            "type": { "type": "string" }, "title": { "type": "string" },
            "status": { "type": "integer" }, "detail": { "type": "string" },
        },
    });
    components.insert("problem".to_owned(), problem);
    WebAnswer::json(&json!({
        "openapi": "3.1.0",
        "info": { "title": "onbeat-farm", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "session": { "type": "apiKey", "in": "cookie", "name": "onbeat" },
                "script": { "type": "http", "scheme": "bearer" },
                "board": { "type": "http", "scheme": "bearer" },
            },
        },
    }))
}

fn operation(route: &ApiRequest, schemas: &mut AnswerSchemas) -> Value {
    let in_path = names_in(route.path).map(|name| parameter(name, "path"));
    let asked = route.known.unwrap_or_default().iter().map(|name| parameter(name, "query"));
    let is_data = is_for_scripts(route.path);
    let security = match route.need {
        RouteNeed::Nothing | RouteNeed::Code => json!([]),
        RouteNeed::Token => json!([{ "board": [] }]),
        // Reading may be public, and a farm on a loopback address has no login.
        RouteNeed::Reading | RouteNeed::Metrics if is_data => {
            json!([{ "session": [] }, { "script": [] }, {}])
        }
        RouteNeed::Reading | RouteNeed::Metrics => json!([{ "session": [] }, {}]),
        RouteNeed::Names if is_data => json!([{ "session": [] }, { "script": [] }]),
        RouteNeed::Names | RouteNeed::Role(_) => json!([{ "session": [] }]),
    };
    let content = |kind: &str, of: Value| Value::Object(Map::from_iter([(kind.to_owned(), of)]));
    let schema = schemas.of_route(route.path).filter(|_| route.method == "GET");
    let answer = schema.map_or_else(|| json!({}), |schema| json!({ "schema": schema }));
    let problem = json!({ "schema": { "$ref": "#/components/schemas/problem" } });
    let (status, done) = match (route.method, route.need) {
        ("POST", RouteNeed::Code) => ("201", json!({ "description": "done" })),
        ("POST", _) => ("303", json!({ "description": "done; redirect to a page that shows it" })),
        (_, RouteNeed::Token) => ("2XX", json!({ "description": "stored, or already stored" })),
        _ => ("200", json!({ "description": "the answer", "content": content(kind_of(route.path), answer) })),
    };
    let mut all = json!({
        "operationId": operation_id(route),
        "summary": words(route.need),
        "parameters": in_path.chain(asked).collect::<Vec<Value>>(),
        "security": security,
        "responses": {
            status: done,
            "default": { "description": "refused", "content": { "application/problem+json": problem } },
        },
    });
    if route.method != "GET" {
        let kind = match route.need {
            RouteNeed::Code => "application/json",
            RouteNeed::Token => "application/octet-stream",
            _ => "application/x-www-form-urlencoded",
        };
        all["requestBody"] = json!({ "content": content(kind, json!({})) });
    }
    all
}

fn parameter(name: &str, place: &str) -> Value {
    let kind = if NUMBERS.contains(&name) { "integer" } else { "string" };
    json!({ "name": name, "in": place, "required": place == "path", "schema": { "type": kind } })
}

/// Names of a path's parameters.
fn names_in(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|rest| rest.split('}').next()).map(|name| name.trim_start_matches('*'))
}

fn path_of(route: &ApiRequest) -> String {
    route.path.replace("{*", "{")
}

/// The method and the words of the path: unique, as no two routes differ in punctuation alone.
fn operation_id(route: &ApiRequest) -> String {
    let words = route.path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    std::iter::once(route.method).chain(words).collect::<Vec<_>>().join("_").to_ascii_lowercase()
}

fn kind_of(path: &str) -> &'static str {
    match path {
        "/metrics" => "application/openmetrics-text",
        "/healthz" => "text/plain",
        _ if path.ends_with(".css") => "text/css",
        _ if path.ends_with("{*path}") => "application/octet-stream",
        _ => match AnswerForm::of_route(path) {
            AnswerForm::Page => "text/html",
            AnswerForm::Json => "application/json",
            AnswerForm::Csv => "text/csv",
            AnswerForm::Atom => "application/atom+xml",
        },
    }
}

fn words(need: RouteNeed) -> String {
    match need {
        RouteNeed::Nothing => "no login".to_owned(),
        RouteNeed::Code => "for a board with a code".to_owned(),
        RouteNeed::Token => "for a board with its token".to_owned(),
        RouteNeed::Reading => "for readers, and for the public if it may read".to_owned(),
        RouteNeed::Names => "for readers".to_owned(),
        RouteNeed::Metrics => "for readers, and for the public if metrics are open".to_owned(),
        RouteNeed::Role(role) => format!("for the role {} and above", role.word()),
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::block_on;
    use std::collections::BTreeSet;

    use super::*;
    use crate::store::FarmStore;
    use crate::web::made_app::get;
    use crate::web::routes::{FarmRoute, routes};
    use crate::web::{App, FarmExposure};

    #[test]
    fn every_route_is_described_with_what_it_takes() {
        block_on(async {
            let store = FarmStore::in_memory().await.unwrap();
            let app = Arc::new(App::new(store, FarmExposure::Loopback, None));
            let json = async |address| serde_json::from_str::<Value>(&get(&app, address).await.1).unwrap();
            let (index, described) = (json("/v1").await, json("/v1/openapi.json").await);
            assert_eq!(
                (&described["openapi"], &index["openapi"]),
                (&"3.1.0".into(), &"/v1/openapi.json".into())
            );
            let (mut ids, mut data) = (BTreeSet::new(), 0);
            for route in routes().iter().map(FarmRoute::request) {
                let what = format!("{} {}", route.method, route.path);
                let operation = &described["paths"][path_of(&route)][route.method.to_ascii_lowercase()];
                let listed =
                    operation["parameters"].as_array().unwrap_or_else(|| panic!("{what} is not there"));
                let listed: Vec<&str> = listed.iter().filter_map(|one| one["name"].as_str()).collect();
                let wanted = names_in(route.path).chain(route.known.unwrap_or_default().iter().copied());
                assert_eq!(listed, wanted.collect::<Vec<_>>(), "{what}");
                assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()), "{what}");
                data += usize::from(route.path.starts_with("/v1/"));
            }
            assert_eq!(index["requests"].as_array().unwrap().len(), data);
            // Nothing is described that is not there.
            let methods = described["paths"].as_object().unwrap().values();
            assert_eq!(methods.map(|of| of.as_object().unwrap().len()).sum::<usize>(), ids.len());
        });
    }
}
