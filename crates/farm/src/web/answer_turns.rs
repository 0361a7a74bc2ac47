//! Answers that only read are made a few at a time: what each holds until it is whole is not known
//! before.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::answer_budget::AnswerSource;
use super::app::App;

/// Has a request wait for its turn, which its answer keeps until the last layer has it.
pub async fn in_turn(
    State((app, source)): State<(Arc<App>, AnswerSource)>,
    request: Request,
    next: Next,
) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    let turn = match app.budget.turn(source).await {
        Ok(turn) => turn,
        Err(refusal) => return refusal.into_response(),
    };
    let mut response = next.run(request).await;
    response.extensions_mut().insert(turn);
    response
}
