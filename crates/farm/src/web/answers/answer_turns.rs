//! Limits the number of responses that are generated at once, because their memory is not known
//! before.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::web::edge::answer::Refusal;
use crate::web::edge::answer_budget::AnswerSource;
use crate::web::edge::connections::FarmConnection;
use crate::web::login::counted_as;
use crate::web::state::app::App;

/// Address of the client, in the form in which its attempts are counted.
#[derive(Clone)]
pub struct AskingClient(pub String);

/// Makes a request wait for its turn, which its response holds until the last layer has it. If the
/// client closes the connection during the wait, nothing is generated.
pub async fn in_turn(
    State((app, source)): State<(Arc<App>, AnswerSource)>,
    mut request: Request,
    next: Next,
) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    let known = request.extensions();
    let client = counted_as(&app, known.get(), request.headers());
    let connection = known.get::<Arc<FarmConnection>>().cloned();
    let turn = tokio::select! {
        biased;
        turn = app.budget.turn(source, &client) => turn,
        () = gone(connection) => Err(Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the connection was closed while the request waited: leave it open until the answer arrives",
        )),
    };
    let turn = match turn {
        Ok(turn) => turn,
        Err(refusal) => return refusal.into_response(),
    };
    request.extensions_mut().insert(AskingClient(client));
    let mut response = next.run(request).await;
    response.extensions_mut().insert(turn);
    response
}

async fn gone(connection: Option<Arc<FarmConnection>>) {
    match connection {
        Some(connection) => connection.gone().await,
        None => std::future::pending().await,
    }
}
