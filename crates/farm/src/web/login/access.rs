//! Access control: each route names its required permission, which is checked before its handler
//! runs.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::pages::parts::escaped;
use crate::users::{Role, SCRIPT_TOKEN, digest_token};
use crate::wall_clock::now;
use crate::web::edge::answer::Refusal;
use crate::web::edge::asked_names::{self, KnownNames};
use crate::web::edge::paced_body::answered;
use crate::web::edge::visitor::{FarmView, Visitor};
use crate::web::login::counted_as;
use crate::web::login::sender::{admit_board, note_refusal};
use crate::web::login::session::named_session;
use crate::web::state::app::{App, FarmExposure};

/// Permission that a route requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteNeed {
    /// None: the login page and the health check.
    Nothing,
    /// An enrolment code in the body, which the handler consumes.
    Code,
    /// The token of a board; a cookie does not count.
    Token,
    /// A reader, or the public if it may read, which sees no names.
    Reading,
    /// A reader with permission to see names.
    Names,
    /// A reader, or everyone if metrics are open.
    Metrics,
    /// A user with this role.
    Role(Role),
}

impl RouteNeed {
    /// Limit of the body, in bytes.
    pub fn largest_body(self) -> usize {
        match self {
            // An incompressible piece.
            RouteNeed::Token => 5 << 20,
            // A code and a name of an unknown board.
            RouteNeed::Code => 4 << 10,
            _ => 16 << 10,
        }
    }

    fn is_met(self, app: &App, visitor: &Visitor) -> bool {
        match self {
            RouteNeed::Nothing | RouteNeed::Code | RouteNeed::Token => true,
            RouteNeed::Reading => visitor.view > FarmView::Nothing,
            RouteNeed::Names => visitor.view == FarmView::All,
            RouteNeed::Metrics => app.policy.metrics_open || visitor.view == FarmView::All,
            RouteNeed::Role(role) => visitor.role() >= Some(role),
        }
    }
}

/// Passes a request with its visitor to the handler, or refuses it.
pub async fn admit(
    State((app, need, known)): State<(Arc<App>, RouteNeed, KnownNames)>,
    request: Request,
    next: Next,
) -> Response {
    let response = match need {
        RouteNeed::Token => as_board(&app, request, next).await,
        _ => as_visitor(&app, need, known, request, next).await,
    };
    if matches!(need, RouteNeed::Token | RouteNeed::Code) {
        app.counters.refused_requests.note(need == RouteNeed::Code, response.status());
    }
    response
}

async fn as_visitor(
    app: &Arc<App>,
    need: RouteNeed,
    known: KnownNames,
    mut request: Request,
    next: Next,
) -> Response {
    let visitor = match visitor_of(app, request.headers()).await {
        Ok(visitor) => visitor,
        Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => {
            return not_too_often(app, &request, refusal).into_response();
        }
        Err(refusal) => return refusal.into_response(),
    };
    let sends = !matches!(*request.method(), Method::GET | Method::HEAD);
    if visitor.role() == Some(Role::Script) && (sends || !is_for_scripts(request.uri().path())) {
        let detail = "the token of a script can only read /v1 and /metrics: log in for other addresses";
        return Refusal::new(StatusCode::FORBIDDEN, detail).into_response();
    }
    if sends && need != RouteNeed::Code && !is_same_origin(request.headers(), app.is_secure()) {
        let detail =
            "the request was not sent from a page of this farm: open the page and send it from there";
        return Refusal::new(StatusCode::FORBIDDEN, detail).into_response();
    }
    if !need.is_met(app, &visitor) {
        return refused(need, &visitor, &request);
    }
    if let Err(refusal) = asked_names::check(request.uri(), known) {
        return refusal.into_response();
    }
    request.extensions_mut().insert(visitor);
    if sends { answered(request, need.largest_body(), next).await } else { next.run(request).await }
}

async fn as_board(app: &Arc<App>, mut request: Request, next: Next) -> Response {
    let owner = match admit_board(app, request.headers()).await {
        Ok(owner) => owner,
        Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => {
            return not_too_often(app, &request, refusal).into_response();
        }
        Err(refusal) => return refusal.into_response(),
    };
    let what = format!("{} {}", request.method(), request.uri().path());
    request.extensions_mut().insert(owner.clone());
    let response = answered(request, RouteNeed::Token.largest_body(), next).await;
    note_refusal(app, &owner, what, &response);
    response
}

/// Refusal of an unknown token, or of its address for some time. Only refused requests are counted,
/// so that other boards of the same address are not blocked.
fn not_too_often(app: &App, request: &Request, refusal: Refusal) -> Refusal {
    let from = counted_as(app, request.extensions().get(), request.headers());
    match app.unknown_tokens.take(&[from], host::clock::monotonic()) {
        Ok(()) => refusal,
        Err(wait_s) => {
            let detail = format!("too many requests: {}, and wait for {wait_s} s", refusal.detail);
            Refusal { wait_s: Some(wait_s), ..Refusal::new(StatusCode::TOO_MANY_REQUESTS, detail) }
        }
    }
}

/// True for an address that the token of a script may read.
pub fn is_for_scripts(path: &str) -> bool {
    path == "/v1" || path.starts_with("/v1/") || path == "/metrics"
}

/// The token of a script: as a bearer's, or as the password of Basic (RFC 7617), which is all that
/// readers of feeds can be given.
fn script_token(headers: &HeaderMap) -> Option<String> {
    let (scheme, rest) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let rest = rest.trim_start_matches(' ');
    let token = if scheme.eq_ignore_ascii_case("bearer") {
        rest.to_owned()
    } else if scheme.eq_ignore_ascii_case("basic") {
        String::from_utf8(STANDARD.decode(rest).ok()?).ok()?.split_once(':')?.1.to_owned()
    } else {
        return None;
    };
    token.starts_with(SCRIPT_TOKEN).then_some(token)
}

/// The visitor, by the token or the session that the request names.
pub async fn visitor_of(app: &App, headers: &HeaderMap) -> Result<Visitor, Refusal> {
    if let Some(token) = script_token(headers) {
        let script = app.store.script(&digest_token(&token)).await?.ok_or_else(|| {
            let detail = "the token is not known to this farm: ask an administrator for another";
            Refusal::new(StatusCode::UNAUTHORIZED, detail)
        })?;
        return Ok(Visitor { user: Some(script), view: FarmView::All });
    }
    if let Some(session) = named_session(headers, app.is_secure())
        && let Some(user) = app.store.session(&session, now()).await?
    {
        return Ok(Visitor { user: Some(user), view: FarmView::All });
    }
    let is_loopback = app.exposure == FarmExposure::Loopback;
    let has_users = app.store.has_users().await?;
    Ok(Visitor { user: None, view: app.policy.unknown_sees(is_loopback, has_users) })
}

/// Refusal: a page redirects to the login, data refuse with a hint.
fn refused(need: RouteNeed, visitor: &Visitor, request: &Request) -> Response {
    if let (Some(user), RouteNeed::Role(role)) = (&visitor.user, need) {
        let detail = format!(
            "this needs {}, but {} is {}: ask an administrator for that role",
            role.word(),
            user.name,
            user.role.word()
        );
        return Refusal::new(StatusCode::FORBIDDEN, detail).into_response();
    }
    let uri = request.uri();
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let is_page = reads && !uri.path().starts_with("/v1/");
    if is_page && uri.path() != "/metrics" {
        let here = uri.path_and_query().map_or("/", |known| known.as_str());
        let location = format!("/login?next={}", escaped(here));
        return (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response();
    }
    Refusal::new(StatusCode::UNAUTHORIZED, "authentication required: log in at /login").into_response()
}

/// True if a page of this farm sent the request: browsers say so (Fetch Metadata), older ones name
/// the page's origin. A request with neither is refused.
fn is_same_origin(headers: &HeaderMap, secure: bool) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if let Some(site) = text("sec-fetch-site") {
        return site == "same-origin";
    }
    let (Some(origin), Some(host)) = (text("origin"), text("host")) else { return false };
    match origin.split_once("://") {
        Some(("https", named)) => named.eq_ignore_ascii_case(host),
        Some(("http", named)) => !secure && named.eq_ignore_ascii_case(host),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::edge::connections::ConnectionLimits;

    #[test]
    fn the_proxies_of_the_documentation_pass_on_what_the_farm_takes() {
        let nginx = include_str!("../../../../../docs/farm/nginx.conf");
        let caddy = include_str!("../../../../../docs/farm/Caddyfile");
        let number = |text: &str, name: &str, unit: &str| -> u64 {
            let mut lines = text.lines().filter_map(|line| line.trim().strip_prefix(name));
            let value = lines.next().unwrap_or_else(|| panic!("no {name}")).trim();
            value.strip_suffix(unit).unwrap().parse().unwrap()
        };
        let most = RouteNeed::Token.largest_body() as u64;
        assert_eq!(number(nginx, "client_max_body_size ", "m;") << 20, most);
        assert_eq!(number(caddy, "max_size ", "MiB") << 20, most);
        let idle = ConnectionLimits::of_files(1_024).head.as_secs();
        assert!(number(nginx, "keepalive_timeout ", "s;") < idle && number(caddy, "keepalive ", "s") < idle);
        for line in ["Host $http_host;", "X-Forwarded-For $proxy_add_x_forwarded_for;", "Connection \"\";"] {
            assert!(nginx.contains(&format!("proxy_set_header {line}")), "{line}");
        }
        assert!(number(caddy, "request_buffers ", "MiB") << 20 >= most);
        assert!(nginx.contains("proxy_request_buffering on;") && nginx.contains("proxy_buffering on;"));
    }

    #[test]
    fn only_pages_of_the_farm_may_send() {
        let headers = |pairs: &[(&'static str, &str)]| -> HeaderMap {
            let pair = |(name, value): &(&'static str, &str)| {
                (header::HeaderName::from_static(name), value.parse().unwrap())
            };
            pairs.iter().map(pair).collect()
        };
        let host = ("host", "farm.test");
        for (pairs, secure, wanted) in [
            (vec![host], false, false),
            (vec![host, ("sec-fetch-site", "same-origin")], true, true),
            (vec![host, ("sec-fetch-site", "same-site")], true, false),
            (vec![host, ("sec-fetch-site", "cross-site")], true, false),
            (vec![host, ("sec-fetch-site", "none")], true, false),
            // What the browser says counts, whatever else is there.
            (vec![host, ("sec-fetch-site", "cross-site"), ("origin", "https://farm.test")], true, false),
            (vec![host, ("origin", "https://farm.test")], true, true),
            (vec![host, ("origin", "http://farm.test")], true, false),
            (vec![host, ("origin", "http://farm.test")], false, true),
            (vec![host, ("origin", "https://farm.test.evil.test")], true, false),
            (vec![host, ("origin", "https://farm.test:8443")], true, false),
            (vec![host, ("origin", "null")], false, false),
            (vec![("origin", "https://farm.test")], true, false),
        ] {
            assert_eq!(is_same_origin(&headers(&pairs), secure), wanted, "{pairs:?} {secure}");
        }
    }
}
