//! Whose places an answer takes: those of the address that asks, which behind a proxy is the one
//! that it adds.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;

use super::app::App;
use super::login::counted_as;

/// The address that asks, as attempts of it are counted.
pub struct AskingClient(pub String);

impl FromRequestParts<Arc<App>> for AskingClient {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<AskingClient, Infallible> {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().copied();
        Ok(AskingClient(counted_as(app, peer.map(Extension), &parts.headers)))
    }
}
