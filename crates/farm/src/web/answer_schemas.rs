//! Schemas of answers in JSON, made from the types of these answers.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema, json_schema};
use serde_json::{Map, Value};

use crate::board_settings::BudgetsDocument;
use crate::changes::{FarmChange, JudgedEnvironments, JudgedSeries, RateReach};
use crate::pages::audit::BoardAudit;
use crate::pages::fleet::FleetAnswer;
use crate::records::{BoardRefusal, CulpritDay, FarmBoard, FarmCulprit, FarmRun, FarmSlot, SeriesOfBoard};
use crate::refused::RefusedBundle;
use crate::store::{AuditEntry, BoardLabel};
use crate::users::FarmUser;
use crate::web::answers::data::HistogramsDocument;
use crate::web::kernels::KernelAnswer;

type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

/// Form of an answer.
enum AnswerShape {
    Whole(MakeSchema),
    /// An object of these members, and `schema`.
    Members(&'static [(&'static str, MakeSchema)]),
}

/// Generator of the schemas of one document.
pub struct AnswerSchemas {
    generator: SchemaGenerator,
}

impl AnswerSchemas {
    pub fn new() -> AnswerSchemas {
        let settings = SchemaSettings::draft2020_12().for_serialize().with(|of| {
            of.definitions_path = "/components/schemas".into();
            of.meta_schema = None;
        });
        AnswerSchemas { generator: settings.into_generator() }
    }

    /// Schema of a route's answer; `None` for one that no type of the farm describes, such as the
    /// contents of a bundle.
    pub fn of_route(&mut self, path: &str) -> Option<Value> {
        let schema = match shape_of(path)? {
            AnswerShape::Whole(make) => make(&mut self.generator),
            AnswerShape::Members(members) => {
                let mut properties = Map::new();
                properties.insert("schema".to_owned(), whole::<String>(&mut self.generator).to_value());
                for (name, make) in members {
                    properties.insert((*name).to_owned(), make(&mut self.generator).to_value());
                }
                let required: Vec<&String> = properties.keys().collect();
                json_schema!({ "type": "object", "required": required, "properties": properties })
            }
        };
        Some(schema.to_value())
    }

    /// The types that these schemas refer to.
    pub fn definitions(mut self) -> Map<String, Value> {
        self.generator.take_definitions(true)
    }
}

fn whole<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn shape_of(path: &str) -> Option<AnswerShape> {
    use AnswerShape::{Members, Whole};
    Some(match path {
        "/v1/audit" => Members(&[("entries", whole::<Vec<AuditEntry>>)]),
        "/v1/boards" => Whole(whole::<FleetAnswer>),
        "/v1/boards/{board}" => Members(&[
            ("board", whole::<FarmBoard>),
            ("series", whole::<Vec<SeriesOfBoard>>),
            ("runs", whole::<Vec<FarmRun>>),
            ("culprits", whole::<Vec<FarmCulprit>>),
            ("changes", whole::<Vec<FarmChange>>),
            ("audit", whole::<Option<BoardAudit>>),
        ]),
        "/v1/boards/{board}/histograms" => Whole(whole::<HistogramsDocument<'static>>),
        "/v1/boards/{board}/labels" => {
            Members(&[("board", whole::<String>), ("labels", whole::<Vec<BoardLabel>>)])
        }
        "/v1/boards/{board}/slots" => Whole(whole::<Vec<FarmSlot>>),
        "/v1/budgets" => Whole(whole::<BudgetsDocument>),
        "/v1/changes" => Members(&[
            ("days", whole::<i64>),
            ("changes", whole::<Vec<FarmChange>>),
            ("series", whole::<JudgedSeries>),
            ("environments", whole::<JudgedEnvironments>),
            ("rates", whole::<Option<Vec<RateReach>>>),
        ]),
        "/v1/culprits" => Members(&[("culprits", whole::<Vec<FarmCulprit>>)]),
        "/v1/culprits/{fingerprint}" => Members(&[
            ("culprit", whole::<FarmCulprit>),
            ("runs", whole::<Vec<FarmRun>>),
            ("days", whole::<Vec<CulpritDay>>),
            ("runs_left_out", whole::<u64>),
            ("days_left_out", whole::<u64>),
        ]),
        "/v1/kernels" => Members(&[("kernels", whole::<Vec<KernelAnswer<'static>>>)]),
        "/v1/refused" => Members(&[
            ("refused", whole::<Vec<RefusedBundle>>),
            ("left_out", whole::<u64>),
            ("boards", whole::<Vec<BoardRefusal>>),
        ]),
        "/v1/runs" => Members(&[("runs", whole::<Vec<FarmRun>>), ("more", whole::<bool>)]),
        "/v1/runs/{id}" => Whole(whole::<FarmRun>),
        "/v1/storage" => Members(&[
            ("keeps", whole::<bool>),
            ("database_bytes", whole::<Option<u64>>),
            ("sent_bytes", whole::<u64>),
            ("bucket_trouble", whole::<String>),
            ("open_codes", whole::<Option<u64>>),
        ]),
        "/v1/users" => Members(&[("users", whole::<Vec<FarmUser>>)]),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixture::block_on;
    use crate::store::FarmStore;
    use crate::users::Role;
    use crate::web::edge::answer::AnswerForm;
    use crate::web::made_app::{app_of, get};
    use crate::web::routes::routes;

    /// Routes whose answers no type of the farm describes: contents of bundles, verdicts of other
    /// crates, answers to `onbeat-push`, and the description itself.
    const WITHOUT: [&str; 14] = [
        "/v1",
        "/v1/openapi.json",
        "/v1/boards/{board}/at/{t}",
        "/v1/boards/{board}/environments",
        "/v1/boards/{board}/sent",
        "/v1/compare",
        "/v1/me",
        "/v1/me/removed",
        "/v1/runs/{id}/again",
        "/v1/runs/{id}/audit",
        "/v1/runs/{id}/perfetto.json",
        "/v1/runs/{id}/report.json",
        "/v1/runs/{id}/spikes",
        "/v1/runs/{id}/spikes/{number}",
    ];

    /// The first difference between a value and its schema; an undescribed member is one.
    fn differs(schema: &Value, value: &Value, all: &Value) -> Option<String> {
        if let Some(name) = schema["$ref"].as_str() {
            let name = name.trim_start_matches("#/components/schemas/");
            return differs(&all[name], value, all);
        }
        for any in ["anyOf", "oneOf"] {
            if let Some(choices) = schema[any].as_array() {
                let fits = choices.iter().any(|one| differs(one, value, all).is_none());
                return (!fits).then(|| format!("invalid value {value}: expected one of {choices:?}"));
            }
        }
        let is = |kind: &Value| match kind.as_str().unwrap_or_default() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "null" => value.is_null(),
            other => panic!("type {other}"),
        };
        let fits = match &schema["type"] {
            Value::Null => true,
            Value::Array(kinds) => kinds.iter().any(is),
            kind => is(kind),
        };
        let listed = |all: &Value| all.as_array().is_none_or(|all| all.contains(value));
        if !fits || !listed(&schema["enum"]) || schema.get("const").is_some_and(|one| one != value) {
            return Some(format!("{value} does not fit {schema}"));
        }
        if let Some(required) = schema["required"].as_array() {
            let lacking = required.iter().find(|name| value.get(name.as_str().unwrap()).is_none());
            if let (Some(name), true) = (lacking, value.is_object()) {
                return Some(format!("{name} is missing"));
            }
        }
        let members = value.as_object().into_iter().flatten().find_map(|(name, inner)| {
            match (schema["properties"].get(name), schema.get("additionalProperties")) {
                (Some(of), _) | (None, Some(of)) => differs(of, inner, all),
                (None, None) if schema.get("properties").is_some() => Some(format!("{name} is undescribed")),
                (None, None) => None,
            }
            .map(|what| format!("{name}: {what}"))
        });
        let items = schema.get("items").filter(|of| of.is_object());
        let of_items = |of| value.as_array().into_iter().flatten().find_map(|one| differs(of, one, all));
        members.or_else(|| items.and_then(of_items))
    }

    #[test]
    fn every_answer_in_json_has_a_schema_or_a_reason_for_none() {
        let mut schemas = AnswerSchemas::new();
        let all = routes();
        let data = all.iter().map(|route| (route.method, route.path)).filter(|(method, path)| {
            let is_json = AnswerForm::of_route(path) == AnswerForm::Json && !path.contains('*');
            *method == "GET" && path.starts_with("/v1") && is_json
        });
        let without: Vec<&str> =
            data.map(|(_, path)| path).filter(|path| schemas.of_route(path).is_none()).collect();
        for path in &without {
            assert!(WITHOUT.contains(path), "{path} has no schema");
        }
        assert!(WITHOUT.iter().all(|path| schemas.of_route(path).is_none()));
    }

    #[test]
    fn answers_are_as_their_schemas_say() {
        block_on(async {
            let app = app_of(FarmStore::in_memory().await.unwrap(), 2, 40).await;
            let document_at = async |address: &str| -> Value {
                let (status, text) = get(&app, address).await;
                assert!(status.is_success(), "{address}: {text}");
                serde_json::from_str(&text).unwrap()
            };
            let document = document_at("/v1/openapi.json").await;
            let all = &document["components"]["schemas"];
            let board = document_at("/v1/boards").await["boards"][0]["board"].as_str().unwrap().to_owned();
            let of_board = document_at(&format!("/v1/boards/{board}")).await;
            let run = of_board["runs"][0]["id"].as_str().unwrap();
            let culprit = of_board["culprits"][0]["fingerprint"].as_str().unwrap();
            let of = |name: &str| of_board["series"][0][name].as_str().unwrap().to_owned();
            let key = format!("series={}&plan={}&from=0", of("series"), of("plan"));
            for (path, address) in [
                ("/v1/boards", "/v1/boards".to_owned()),
                ("/v1/boards/{board}", format!("/v1/boards/{board}")),
                ("/v1/boards/{board}/histograms", format!("/v1/boards/{board}/histograms?{key}")),
                ("/v1/boards/{board}/labels", format!("/v1/boards/{board}/labels")),
                ("/v1/boards/{board}/slots", format!("/v1/boards/{board}/slots?{key}")),
                ("/v1/changes", format!("/v1/changes?board={board}")),
                ("/v1/culprits", "/v1/culprits".to_owned()),
                ("/v1/culprits/{fingerprint}", format!("/v1/culprits/{culprit}")),
                ("/v1/kernels", "/v1/kernels".to_owned()),
                ("/v1/refused", "/v1/refused".to_owned()),
                ("/v1/runs", "/v1/runs".to_owned()),
                ("/v1/runs/{id}", format!("/v1/runs/{run}")),
            ] {
                let content = &document["paths"][path]["get"]["responses"]["200"]["content"];
                let schema = &content["application/json"]["schema"];
                assert!(schema.is_object(), "{path}: {content}");
                let answer = document_at(&address).await;
                assert_eq!(differs(schema, &answer, all), None, "{address}");
            }
            // Those for users with a role, without their handlers.
            let budgets = serde_json::to_value(app.store.all_budgets().await.unwrap()).unwrap();
            let user = FarmUser { name: "ann".into(), role: Role::Viewer, created: 1 };
            let entry = AuditEntry { t_ns: 1, who: "ann".into(), what: "a budget was set".into() };
            for (path, value) in [
                ("/v1/budgets", budgets),
                ("/v1/users", json!({ "schema": "", "users": [user] })),
                ("/v1/audit", json!({ "schema": "", "entries": [entry] })),
            ] {
                let content = &document["paths"][path]["get"]["responses"]["200"]["content"];
                assert_eq!(differs(&content["application/json"]["schema"], &value, all), None, "{path}");
            }
            // The comparison can fail.
            let schema = &all["FarmRun"];
            for (name, value) in [("max_ns", json!("x")), ("other", json!(1)), ("labels", json!({ "a": 1 }))]
            {
                let mut run = of_board["runs"][0].clone();
                run[name] = value;
                assert!(differs(schema, &run, all).is_some(), "{name}");
            }
        });
    }
}
