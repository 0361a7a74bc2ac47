//! Login and logout.

pub mod access;
pub mod sender;
pub mod session;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Extension;
use axum::extract::{ConnectInfo, Form, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use crate::ingest::environment::hex;
use crate::pages::login::{LoginView, login};
use crate::wall_clock::now;
use crate::web::edge::answer::{Refusal, WebAnswer};
use crate::web::edge::visitor::Visitor;
use crate::web::login::sender::{digest_of, random};
use crate::web::login::session::{GOOD_FOR_S, cookie, named_session};
use crate::web::state::app::{App, FarmExposure};
use crate::web::state::attempts::counted;

/// Page to open after the login.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct LoginQuery {
    next: String,
}

#[derive(Deserialize)]
pub struct LoginForm {
    name: String,
    password: String,
    #[serde(default)]
    next: String,
}

pub async fn page(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Query(query): Query<LoginQuery>,
) -> Result<WebAnswer, Refusal> {
    let view = LoginView {
        user: visitor.user.as_ref(),
        has_users: app.store.has_users().await?,
        keeps: app.intake.is_some(),
        next: own_address(&query.next),
        refused: None,
    };
    Ok(WebAnswer::page(login(&view)))
}

/// An unknown name gets the same answer after the same work as a wrong password.
pub async fn enter(
    State(app): State<Arc<App>>,
    address: Option<Extension<ConnectInfo<SocketAddr>>>,
    headers: HeaderMap,
    Form(form): Form<LoginForm>,
) -> Result<Response, Refusal> {
    let from = counted_as(&app, address.as_deref(), &headers);
    let name: String = form.name.trim().chars().take(128).collect();
    let keys = [format!("from {from}"), format!("as {name}")];
    let taken = app.attempts.take(&keys, host::clock::monotonic());
    taken.map_err(|wait_s| Refusal::too_often("too many wrong attempts to log in", wait_s))?;
    let known = app.store.password_of(&name).await?;
    let next = own_address(&form.next);
    if app.is_password(form.password, known.clone()).await? {
        let token = hex(&random()?);
        let (begun, digest) = (now(), digest_of(&token));
        let password = known.unwrap_or_default();
        if app.store.begin_session(&name, &password, &digest, begun, begun + GOOD_FOR_S).await? {
            app.attempts.give_back(&keys);
            if let Some(before) = named_session(&headers, app.is_secure()) {
                app.store.end_session(&before).await?;
            }
            app.note(&name, "logged in").await?;
            return Ok(moved(next, Some(cookie(Some(&token), app.is_secure()))));
        }
    }
    let refused = Some("Wrong name or password.");
    let view = LoginView { user: None, has_users: true, keeps: true, next, refused };
    Ok((StatusCode::UNAUTHORIZED, WebAnswer::page(login(&view))).into_response())
}

pub async fn leave(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Refusal> {
    if let Some(session) = named_session(&headers, app.is_secure()) {
        app.store.end_session(&session).await?;
    }
    let mut response = moved("/login", Some(cookie(None, app.is_secure())));
    // The browser's own copies of pages are a step back away (Clear Site Data, "cache").
    let (name, what) = (HeaderName::from_static("clear-site-data"), HeaderValue::from_static("\"cache\""));
    response.headers_mut().insert(name, what);
    Ok(response)
}

/// Redirect to another page of the farm.
pub fn moved(to: &str, cookie: Option<String>) -> Response {
    let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, to.to_owned())]).into_response();
    if let Some(cookie) = cookie.and_then(|cookie| cookie.parse().ok()) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// An address within the farm, or the first page: `//host`, and `/\host` as browsers read it, lead
/// elsewhere (WHATWG URL, "special authority slashes").
fn own_address(next: &str) -> &str {
    let plain = next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    match plain && next.starts_with('/') && !next.starts_with("//") && next.len() <= 1_000 {
        true => next,
        false => "/",
    }
}

/// Text that identifies the client in counts of attempts.
pub fn counted_as(app: &App, peer: Option<&ConnectInfo<SocketAddr>>, headers: &HeaderMap) -> String {
    client(headers, peer.map(|ConnectInfo(peer)| peer.ip()), app.exposure)
        .map_or_else(|| "unknown".to_owned(), counted)
}

/// Address for which attempts are counted: behind a proxy the last one that it adds, because the
/// client can set all others.
fn client(headers: &HeaderMap, peer: Option<IpAddr>, exposure: FarmExposure) -> Option<IpAddr> {
    let last = headers.get_all("x-forwarded-for").iter().next_back().and_then(|line| line.to_str().ok());
    let named = last.and_then(|line| line.rsplit(',').next()?.trim().parse().ok());
    named.filter(|_| exposure == FarmExposure::BehindProxy).or(peer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leads_elsewhere() {
        for own in ["/", "/b/a?span=all", "/changes?board=x&only=all"] {
            assert_eq!(own_address(own), own);
        }
        for foreign in [
            "",
            "//evil.test",
            "/\\evil.test",
            "https://evil.test/",
            "evil.test",
            "/\t/evil.test",
            "/\n",
            "/ä",
            "javascript:alert(1)",
            "\\\\evil.test",
            "/b\\..\\x",
        ] {
            assert_eq!(own_address(foreign), "/", "{foreign}");
        }
        assert_eq!(own_address(&format!("/{}", "x".repeat(2_000))), "/");
    }

    #[test]
    fn a_proxy_is_believed_about_the_last_address_alone() {
        let peer: IpAddr = "127.0.0.1".parse().unwrap();
        let headers = |line: &str| {
            let name = header::HeaderName::from_static("x-forwarded-for");
            HeaderMap::from_iter([(name, line.parse().unwrap())])
        };
        let of = |line: &str, exposure| client(&headers(line), Some(peer), exposure).unwrap().to_string();
        assert_eq!(of("6.6.6.6, 10.0.0.1", FarmExposure::BehindProxy), "10.0.0.1");
        assert_eq!(of("what, ever", FarmExposure::BehindProxy), "127.0.0.1");
        assert_eq!(of("6.6.6.6", FarmExposure::Loopback), "127.0.0.1");
    }
}

#[cfg(test)]
pub mod access_tests;
