//! All routes, each with its required permission and its query parameters; no handler is reachable
//! otherwise.

use std::sync::Arc;

use axum::Extension;
use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, get, post, put};

use crate::users::Role;
use crate::web::admin::lists;
use crate::web::admin::users;
use crate::web::answers::answer_turns::in_turn;
use crate::web::answers::files;
use crate::web::board::api;
use crate::web::board::board_list;
use crate::web::board::board_page;
use crate::web::board::environment_parts;
use crate::web::board::five_minutes;
use crate::web::changes::acknowledge;
use crate::web::edge::answer::{AnswerForm, Refusal, WebAnswer};
use crate::web::edge::answer_budget::AnswerSource;
use crate::web::edge::asked_names::{
    KnownNames, OF_BOARD, OF_BOARDS, OF_CHANGES, OF_COMPARE, OF_CULPRIT, OF_HISTOGRAMS, OF_MOMENT, OF_RUNS,
    OF_SLOTS, OF_SLOTS_CSV,
};
use crate::web::login::access::{RouteNeed, admit};
use crate::web::openapi::ApiRequest;
use crate::web::receive::enrol;
use crate::web::receive::me;
use crate::web::receive::rows;
use crate::web::run::audits;
use crate::web::run::pins;
use crate::web::run::run_data;
use crate::web::run::run_page;
use crate::web::run::runs;
use crate::web::state::app::App;
use crate::web::{admin, changes, compare, culprits, kernels, login, metrics, openapi, receive};

const OPERATOR: RouteNeed = RouteNeed::Role(Role::Operator);
const ADMIN: RouteNeed = RouteNeed::Role(Role::Admin);

/// A method of an address.
pub struct FarmRoute {
    pub method: &'static str,
    pub path: &'static str,
    pub need: RouteNeed,
    /// Accepted query parameters; others are refused.
    pub known: KnownNames,
    handler: MethodRouter<Arc<App>>,
}

impl FarmRoute {
    /// The same, where these can be asked for.
    fn takes(self, names: &'static [&'static str]) -> FarmRoute {
        FarmRoute { known: Some(names), ..self }
    }

    /// The same, without a check of its query parameters.
    fn takes_anything(self) -> FarmRoute {
        FarmRoute { known: None, ..self }
    }

    /// The row without its handler.
    pub fn request(&self) -> ApiRequest {
        ApiRequest { method: self.method, path: self.path, need: self.need, known: self.known }
    }

    /// The handler, protected by its permission.
    pub fn guarded(self, app: &Arc<App>) -> (&'static str, MethodRouter<Arc<App>>) {
        let source = AnswerSource::of_route(self.path);
        let handler = self.handler.layer(Extension(AnswerForm::of_route(self.path)));
        let handler = match self.need {
            RouteNeed::Reading | RouteNeed::Names | RouteNeed::Metrics | RouteNeed::Role(_) => {
                handler.layer(from_fn_with_state((app.clone(), source), in_turn))
            }
            _ => handler,
        };
        let admitted = handler.layer(DefaultBodyLimit::max(self.need.largest_body()));
        (self.path, admitted.layer(from_fn_with_state((app.clone(), self.need, self.known), admit)))
    }
}

/// Default of accepted parameters: none. Those of boards are not checked, because boards may have
/// another version.
fn known_to(need: RouteNeed) -> KnownNames {
    match need {
        RouteNeed::Token | RouteNeed::Code => None,
        _ => Some(&[]),
    }
}

fn read<H: Handler<T, Arc<App>>, T: 'static>(path: &'static str, need: RouteNeed, handler: H) -> FarmRoute {
    FarmRoute { method: "GET", path, need, known: known_to(need), handler: get(handler) }
}

fn send<H: Handler<T, Arc<App>>, T: 'static>(path: &'static str, need: RouteNeed, handler: H) -> FarmRoute {
    FarmRoute { method: "POST", path, need, known: known_to(need), handler: post(handler) }
}

fn store<H: Handler<T, Arc<App>>, T: 'static>(path: &'static str, handler: H) -> FarmRoute {
    FarmRoute { method: "PUT", path, need: RouteNeed::Token, known: None, handler: put(handler) }
}

pub async fn styles() -> WebAnswer {
    WebAnswer::text("text/css; charset=utf-8", crate::pages::style_sheet())
}

pub async fn nowhere() -> Refusal {
    Refusal::not_found("this page does not exist: start from the list of boards")
}

/// All routes.
pub fn routes() -> Vec<FarmRoute> {
    [shown_pages(), administration(), data_of_boards(), data_of_runs(), data(), of_boards()]
        .into_iter()
        .flatten()
        .collect()
}

fn shown_pages() -> Vec<FarmRoute> {
    vec![
        read("/", RouteNeed::Reading, board_list::boards).takes(OF_BOARDS),
        read("/b/{board}", RouteNeed::Reading, board_page::board).takes(OF_BOARD),
        read("/b/{board}/env", RouteNeed::Names, board_page::environments),
        read("/b/{board}/at/{t}", RouteNeed::Reading, five_minutes::five_minutes).takes(OF_MOMENT),
        read("/changes", RouteNeed::Reading, changes::changes).takes(OF_CHANGES),
        send("/changes/acknowledge", OPERATOR, acknowledge::acknowledge),
        read("/kernels", RouteNeed::Names, kernels::kernels),
        read("/runs", RouteNeed::Names, runs::runs).takes(OF_RUNS),
        read("/runs/{id}", RouteNeed::Names, run_page::run),
        send("/runs/{id}/pin", OPERATOR, pins::pin),
        send("/runs/{id}/remove", ADMIN, pins::remove),
        read("/runs/{id}/spike/{number}", RouteNeed::Names, run_page::spike),
        read("/runs/{id}/audit", RouteNeed::Names, audits::audit).takes(&["before"]),
        read("/culprits", RouteNeed::Names, culprits::culprits).takes(&["board"]),
        read("/culprits/{fingerprint}", RouteNeed::Names, culprits::culprit).takes(OF_CULPRIT),
        read("/compare", RouteNeed::Names, compare::compare).takes(OF_COMPARE),
        read("/assets/farm.css", RouteNeed::Nothing, styles),
        read("/login", RouteNeed::Nothing, login::page).takes(&["next"]),
        send("/login", RouteNeed::Nothing, login::enter),
        send("/logout", RouteNeed::Nothing, login::leave),
    ]
}

fn administration() -> Vec<FarmRoute> {
    vec![
        read("/admin", OPERATOR, admin::page).takes(&["q"]),
        read("/admin/boards/{board}", OPERATOR, admin::board),
        send("/admin/boards/{board}", OPERATOR, admin::set_board),
        send("/admin/boards/{board}/revoke", ADMIN, users::revoke),
        send("/admin/budgets", OPERATOR, admin::set_budget),
        send("/admin/codes", ADMIN, users::make_codes),
        send("/admin/users", ADMIN, users::add),
        send("/admin/users/{name}", ADMIN, users::change),
        read("/v1/audit", OPERATOR, lists::audit).takes(&["limit"]),
        read("/v1/budgets", OPERATOR, lists::budgets),
        read("/v1/storage", OPERATOR, lists::storage),
        read("/v1/boards/{board}/sent", OPERATOR, admin::board),
        read("/v1/users", ADMIN, lists::users),
    ]
}

fn data_of_boards() -> Vec<FarmRoute> {
    vec![
        read("/v1/boards", RouteNeed::Reading, board_list::boards).takes(OF_BOARDS),
        read("/v1/boards.csv", RouteNeed::Reading, board_list::boards).takes(OF_BOARDS),
        read("/v1/boards/{board}", RouteNeed::Reading, api::board),
        read("/v1/boards/{board}/environments", RouteNeed::Names, environment_parts::environments),
        read("/v1/boards/{board}/environments.csv", RouteNeed::Names, environment_parts::environments),
        read("/v1/boards/{board}/at/{t}", RouteNeed::Reading, five_minutes::five_minutes).takes(OF_MOMENT),
        read("/v1/boards/{board}/at/{t}/spikes.csv", RouteNeed::Names, five_minutes::five_minutes)
            .takes(OF_MOMENT),
        read("/v1/boards/{board}/slots", RouteNeed::Reading, api::slots).takes(OF_SLOTS),
        read("/v1/boards/{board}/slots.csv", RouteNeed::Reading, api::slots).takes(OF_SLOTS_CSV),
        read("/v1/boards/{board}/histograms", RouteNeed::Reading, api::histograms).takes(OF_HISTOGRAMS),
        read("/v1/boards/{board}/histograms.csv", RouteNeed::Reading, api::histograms).takes(OF_HISTOGRAMS),
        read("/v1/boards/{board}/labels", RouteNeed::Names, lists::labels),
        read("/v1/labels.csv", RouteNeed::Names, lists::labels_csv).takes(&["board"]),
    ]
}

fn data_of_runs() -> Vec<FarmRoute> {
    vec![
        read("/v1/runs", RouteNeed::Names, runs::runs).takes(OF_RUNS),
        read("/v1/runs.csv", RouteNeed::Names, runs::runs).takes(OF_RUNS),
        read("/v1/runs/{id}", RouteNeed::Reading, api::run),
        read("/v1/runs/{id}/audit", RouteNeed::Names, audits::audit).takes(&["before"]),
        read("/v1/runs/{id}/files/{*path}", RouteNeed::Names, files::file),
        read("/v1/runs/{id}/perfetto.json", RouteNeed::Names, files::trace),
        read("/v1/runs/{id}/report.json", RouteNeed::Names, run_data::report),
        read("/v1/runs/{id}/report.csv", RouteNeed::Names, run_data::report),
        read("/v1/runs/{id}/again", RouteNeed::Names, run_data::again),
        read("/v1/runs/{id}/spikes", RouteNeed::Names, run_data::spikes),
        read("/v1/runs/{id}/spikes.csv", RouteNeed::Names, run_data::spikes),
        read("/v1/runs/{id}/spikes/{number}", RouteNeed::Names, run_data::spike),
    ]
}

fn data() -> Vec<FarmRoute> {
    vec![
        read("/healthz", RouteNeed::Nothing, metrics::health).takes_anything(),
        read("/metrics", RouteNeed::Metrics, metrics::metrics).takes_anything(),
        read("/v1", RouteNeed::Nothing, openapi::index),
        read("/v1/openapi.json", RouteNeed::Nothing, openapi::document),
        read("/v1/culprits", RouteNeed::Names, culprits::culprits).takes(&["board"]),
        read("/v1/culprits.csv", RouteNeed::Names, culprits::culprits).takes(&["board"]),
        read("/v1/culprits/{fingerprint}", RouteNeed::Names, culprits::culprit).takes(OF_CULPRIT),
        read("/v1/kernels", RouteNeed::Names, kernels::kernels),
        read("/v1/kernels.csv", RouteNeed::Names, kernels::kernels),
        read("/v1/changes", RouteNeed::Reading, changes::changes).takes(OF_CHANGES),
        read("/v1/changes.csv", RouteNeed::Reading, changes::changes).takes(OF_CHANGES),
        read("/v1/changes.atom", RouteNeed::Reading, changes::changes).takes(OF_CHANGES),
        read("/v1/compare", RouteNeed::Names, compare::compare).takes(OF_COMPARE),
        read("/v1/compare.csv", RouteNeed::Names, compare::compare).takes(OF_COMPARE),
        read("/v1/refused", RouteNeed::Names, lists::refused),
        read("/v1/refused.csv", RouteNeed::Names, lists::refused),
    ]
}

/// Requests of boards.
fn of_boards() -> Vec<FarmRoute> {
    vec![
        read("/v1/me", RouteNeed::Token, me::me),
        read("/v1/me/removed", RouteNeed::Token, me::removed),
        send("/v1/enrol", RouteNeed::Code, enrol::enrol),
        store("/v1/runs/{id}", receive::put_run),
        store("/v1/rows/{boot}/{recording}/{series}/{seq}", rows::put_rows),
        store("/v1/pieces/{piece}", receive::put_piece),
        store("/v1/environments/{digest}", receive::put_environment),
    ]
}
