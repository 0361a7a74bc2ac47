//! The requests of the object store's library over ureq, which the farm has already: each on a
//! thread that may wait.

use std::time::Duration;

use async_trait::async_trait;
use axum::body::{Body, to_bytes};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use ureq::Agent;
use ureq::http::{Request, Response};

/// No piece, manifest or list of a thousand objects is larger.
const BODY_LIMIT: usize = 16 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit without a byte, and before the first of a response: users wait for the page.
const SILENCE: Duration = Duration::from_secs(15);
/// Time limit for a piece on a slow line.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Makes clients for the library.
#[derive(Debug)]
pub struct UreqConnector {
    agent: Agent,
}

impl UreqConnector {
    pub fn new(is_encrypted: bool) -> UreqConnector {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // The signature is not valid for another server.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .https_only(is_encrypted)
            .user_agent(concat!("onbeat-farm/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_per_read(Some(SILENCE))
            .timeout_per_write(Some(SILENCE))
            .timeout_recv_response(Some(SILENCE))
            .timeout_global(Some(TIMEOUT));
        let config = if is_encrypted { config } else { config.proxy(None) };
        UreqConnector { agent: Agent::new_with_config(config.build()) }
    }
}

impl HttpConnector for UreqConnector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(UreqService { agent: self.agent.clone() }))
    }
}

#[derive(Debug)]
struct UreqService {
    agent: Agent,
}

#[async_trait]
impl HttpService for UreqService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (head, body) = request.into_parts();
        let body = to_bytes(Body::new(body), BODY_LIMIT).await;
        let body = body.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        let agent = self.agent.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let answer = match body.is_empty() {
                true => agent.run(Request::from_parts(head, ())),
                false => agent.run(Request::from_parts(head, &body[..])),
            };
            let (head, mut body) = answer.map_err(fault_of)?.into_parts();
            let bytes = body.with_config().limit(BODY_LIMIT as u64).read_to_vec().map_err(fault_of)?;
            Ok(Response::from_parts(head, bytes.into()))
        });
        asked.await.unwrap_or_else(|error| Err(HttpError::new(HttpErrorKind::Unknown, error)))
    }
}

fn fault_of(error: ureq::Error) -> HttpError {
    let kind = match &error {
        ureq::Error::Timeout(_) => HttpErrorKind::Timeout,
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => HttpErrorKind::Connect,
        ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            HttpErrorKind::Connect
        }
        ureq::Error::Io(_) => HttpErrorKind::Interrupted,
        _ => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, error)
}
