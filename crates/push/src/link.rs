//! HTTP to the farm; separates failures to be retried from refusals.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzEncoder;
use model::error::{Exit, Failure, Result};
use model::text::excerpt;
use serde_json::Value;
use sha2::{Digest, Sha256};
use ureq::http::{HeaderMap, Request, Response, header};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body, SendBody};

use super::address::FarmAddress;

/// Limit of an answer, in bytes: the names of all pieces of a bundle fit.
const ANSWER_LIMIT: u64 = 4 << 20;
/// Timeout for the head of an answer, and again for its body.
const ANSWER_TIME: Duration = Duration::from_secs(300);
const CERTIFICATES_LIMIT: u64 = 1 << 20;
/// Message for an answer that is not a farm's.
const NO_FARM: &str =
    "the answer is not onbeat-farm's: check the address, and any proxy between this board and the farm";

/// Answer of the farm.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FarmAnswer {
    pub status: u16,
    pub body: Value,
}

impl FarmAnswer {
    /// Reason that the farm gives for a refusal, or a hint if it gives none.
    pub fn detail(&self) -> String {
        match excerpt(self.body["detail"].as_str().unwrap_or_default()) {
            // As of a proxy that enforces its limits.
            said if said.is_empty() => {
                "no reason is given: check what is between this board and the farm".to_owned()
            }
            said => said,
        }
    }

    /// True if a refusal is the farm's, with a reason and its status. A request that a proxy
    /// refuses may succeed later.
    pub fn is_own_refusal(&self) -> bool {
        self.body["status"] == self.status
            && self.body["detail"].as_str().is_some_and(|said| !said.trim().is_empty())
    }
}

/// Failure to get a usable answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkFault {
    /// To be sent again, after this many seconds if the farm asks for a delay.
    Later { detail: String, after_s: Option<u64> },
    /// The farm does not know the token.
    Token(String),
    /// The data to be sent could not be read.
    Source(String),
}

impl LinkFault {
    /// Fault for an answer that is not a farm's, such as that of a gateway under maintenance.
    pub fn no_farm() -> LinkFault {
        LinkFault::Later { detail: NO_FARM.to_owned(), after_s: None }
    }
}

/// Transport of requests to a farm.
pub trait FarmLink {
    /// Sets the totals of runs and rows dropped unsent, which each later request reports.
    fn say_dropped(&mut self, runs: u64, rows: u64);
    /// Sets the number of refused runs on the board, which each later request reports.
    fn say_left_out(&mut self, runs: u64);
    fn get(&mut self, path: &str) -> std::result::Result<FarmAnswer, LinkFault>;
    /// Sends bytes in memory, compressed and with their digest.
    fn put(&mut self, path: &str, bytes: &[u8]) -> std::result::Result<FarmAnswer, LinkFault>;
    /// Sends a body, compressed while it is read.
    fn stream(&mut self, path: &str, body: &mut dyn Read) -> std::result::Result<FarmAnswer, LinkFault>;
}

/// Link over the network.
pub struct HttpLink {
    agent: Agent,
    base: String,
    /// Value of `Authorization:`; empty before the board is enrolled.
    bearer: String,
    boot: String,
    /// Value of `Onbeat-Dropped:`; empty if nothing was dropped.
    dropped: String,
    /// Value of `Onbeat-Left-Out:`, which is not sent if 0.
    left_out: u64,
}

impl HttpLink {
    /// Creates a link that trusts the usual authorities, or only those in a file.
    pub fn new(address: &FarmAddress, token: &str, authorities: Option<&Path>) -> Result<HttpLink> {
        HttpLink::patient(address, token, authorities, ANSWER_TIME)
    }

    /// Like `new`, with a timeout for the head of an answer and again for its body.
    fn patient(
        address: &FarmAddress,
        token: &str,
        authorities: Option<&Path>,
        patience: Duration,
    ) -> Result<HttpLink> {
        let tls = match authorities {
            Some(file) => TlsConfig::builder().root_certs(read_certificates(file)?).build(),
            None => TlsConfig::builder().build(),
        };
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // The token must not follow a redirect.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .https_only(address.is_encrypted)
            .user_agent(concat!("onbeat-push/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(Duration::from_secs(20)))
            .timeout_per_read(Some(Duration::from_secs(120)))
            .timeout_per_write(Some(Duration::from_secs(120)))
            .timeout_recv_response(Some(patience))
            // A server that sends a byte now and then must not hold the board.
            .timeout_recv_body(Some(patience))
            .tls_config(tls);
        // A proxy is used for encrypted connections only: it must not see the token.
        let config = if address.is_encrypted { config } else { config.proxy(None) };
        let boot = host::MachineFiles::live().read_text("/proc/sys/kernel/random/boot_id");
        Ok(HttpLink {
            agent: Agent::new_with_config(config.build()),
            base: address.base.clone(),
            bearer: if token.is_empty() { String::new() } else { format!("Bearer {token}") },
            dropped: String::new(),
            left_out: 0,
            boot: boot.known().map(|text| text.trim().to_owned()).unwrap_or_default(),
        })
    }

    /// Requests a token with a code and a secret of this board.
    pub fn enrol(&self, code: &str, name: &str, secret: &str) -> std::result::Result<FarmAnswer, LinkFault> {
        let body = serde_json::json!({ "code": code, "name": name, "secret": secret }).to_string();
        self.send("POST", "/v1/enrol", &[], SendBody::from_reader(&mut body.as_bytes()))
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: SendBody,
    ) -> std::result::Result<FarmAnswer, LinkFault> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        if !self.bearer.is_empty() {
            request = request.header(header::AUTHORIZATION, &self.bearer);
        }
        let mono = host::clock::monotonic();
        let wall = mono + host::clock::wall_offset();
        let asleep = host::clock::boot_offset();
        let clock = format!("boot={};mono={};wall={};asleep={}", self.boot, mono.0, wall.0, asleep.0);
        request = request.header("onbeat-clock", clock);
        if !self.dropped.is_empty() {
            request = request.header("onbeat-dropped", &self.dropped);
        }
        if self.left_out > 0 {
            request = request.header("onbeat-left-out", self.left_out);
        }
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let later = |detail: String| LinkFault::Later { detail: excerpt(&detail), after_s: None };
        let request = request.body(body).map_err(|error| later(format!("invalid request ({error})")))?;
        let response = self.agent.run(request).map_err(|error| LinkFault::Later {
            detail: not_reached(&excerpt(&error.to_string())),
            after_s: None,
        })?;
        answer_of(response)
    }
}

impl FarmLink for HttpLink {
    fn say_dropped(&mut self, runs: u64, rows: u64) {
        self.dropped = if runs + rows > 0 { format!("runs={runs};rows={rows}") } else { String::new() };
    }

    fn say_left_out(&mut self, runs: u64) {
        self.left_out = runs;
    }

    fn get(&mut self, path: &str) -> std::result::Result<FarmAnswer, LinkFault> {
        self.send("GET", path, &[], SendBody::none())
    }

    fn put(&mut self, path: &str, bytes: &[u8]) -> std::result::Result<FarmAnswer, LinkFault> {
        let mut packed = Vec::new();
        GzEncoder::new(bytes, Compression::default())
            .read_to_end(&mut packed)
            .map_err(|error| LinkFault::Source(error.to_string()))?;
        let digest = format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(&packed)));
        let headers = [
            ("content-encoding", "gzip".to_owned()),
            ("content-digest", digest),
            ("content-length", packed.len().to_string()),
        ];
        self.send("PUT", path, &headers, SendBody::from_reader(&mut packed.as_slice()))
    }

    fn stream(&mut self, path: &str, body: &mut dyn Read) -> std::result::Result<FarmAnswer, LinkFault> {
        let mut packed = GzEncoder::new(body, Compression::fast());
        let headers = [("content-encoding", "gzip".to_owned())];
        self.send("PUT", path, &headers, SendBody::from_reader(&mut packed))
    }
}

/// Error message with a remedy, by its text: the library has no error kinds for TLS failures.
fn not_reached(error: &str) -> String {
    let remedy = if error.contains("UnknownIssuer") {
        "no authority that this board trusts has signed its certificate: enrol with --ca FILE, the \
         certificate of its authority"
    } else if error.contains("CaUsedAsEndEntity") {
        "its certificate is marked as an authority, which is not allowed for a server: create an authority \
         and let it sign a certificate for the farm, see docs/farm-setup.md"
    } else if error.contains("certificate") {
        "its certificate is not valid for this address now: check its names and dates, and this board's clock"
    } else {
        "check that it runs, its address, and this board's network"
    };
    format!("cannot reach the farm ({error}): {remedy}")
}

fn answer_of(mut response: Response<Body>) -> std::result::Result<FarmAnswer, LinkFault> {
    let status = response.status().as_u16();
    let after_s = retry_after(response.headers());
    let bytes = response.body_mut().with_config().limit(ANSWER_LIMIT).read_to_vec();
    let bytes = bytes.map_err(|error| LinkFault::Later {
        detail: excerpt(&format!("the answer was cut off ({error})")),
        after_s: None,
    })?;
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    judged(status, body, after_s)
}

/// Classifies an answer by its status.
pub fn judged(status: u16, body: Value, after_s: Option<u64>) -> std::result::Result<FarmAnswer, LinkFault> {
    let said = excerpt(body["detail"].as_str().unwrap_or_default());
    let detail = |what: &str| if said.is_empty() { what.to_owned() } else { said.clone() };
    match status {
        401 => Err(LinkFault::Token(detail("the farm does not know this board's token"))),
        300..=399 => Err(LinkFault::Later {
            detail: "the farm's address is redirected: enrol with the address of its target".to_owned(),
            after_s,
        }),
        // Not the farm: a proxy without it, or a page that asks for a login.
        200..=299 if !body.is_object() => Err(LinkFault::Later { detail: NO_FARM.to_owned(), after_s }),
        408 | 425 | 429 | 500..=599 => {
            Err(LinkFault::Later { detail: detail("the farm cannot accept it now"), after_s })
        }
        _ => Ok(FarmAnswer { status, body }),
    }
}

/// Reads `Retry-After` in seconds; a date is ignored.
fn retry_after(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
}

fn read_certificates(file: &Path) -> Result<RootCerts> {
    let shown = model::text::quoted(file);
    let bytes = host::read_user_file(file, CERTIFICATES_LIMIT).map_err(|error| {
        let what = format!("--ca: cannot read {shown}");
        Failure::of_call(what, &error, Exit::Usage, "name a file of certificates in PEM")
    })?;
    let items = parse_pem(&bytes).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    });
    let certificates: Vec<_> = items.collect();
    if certificates.is_empty() {
        Err(Failure::usage(format!("--ca: {shown} holds no certificate: name a PEM file")))
    } else {
        Ok(RootCerts::new_with_certs(&certificates))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::io::Write;

    #[test]
    #[allow(clippy::disallowed_methods)] // Another end, which is slow.
    fn an_answer_that_comes_a_byte_at_a_time_is_given_up() {
        let farm = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = FarmAddress::parse(&format!("http{}{}", "://", farm.local_addr().unwrap())).unwrap();
        let dripping = std::thread::spawn(move || {
            let (mut board, _) = farm.accept().unwrap();
            board.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n").unwrap();
            // Until the other end closes.
            while board.write_all(b" ").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let mut link = HttpLink::patient(&address, "", None, Duration::from_millis(300)).unwrap();
        let Err(LinkFault::Later { detail, .. }) = link.get("/v1/me") else { panic!("it was taken") };
        assert!(detail.contains("the answer was cut"), "{detail}");
        drop(link);
        dripping.join().unwrap();
    }

    #[test]
    fn what_can_be_sent_again_is_told_from_what_cannot() {
        let of = |status| judged(status, json!({ "detail": "why" }), Some(30));
        for status in [200, 201, 202, 400, 403, 404, 409, 413, 422] {
            assert_eq!(of(status).unwrap().status, status);
        }
        for status in [301, 302, 307, 308, 408, 429, 500, 502, 503, 504] {
            let Err(LinkFault::Later { after_s, detail }) = of(status) else { panic!("{status}") };
            assert!(after_s == Some(30) && !detail.is_empty());
        }
        assert_eq!(of(401), Err(LinkFault::Token("why".into())));
        let told = not_reached("io: invalid peer certificate: UnknownIssuer");
        assert!(told.contains("--ca") && !not_reached("io: Connection refused").contains("--ca"));
        let told = not_reached("io: invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))");
        assert!(told.contains("create an authority") && !told.contains("clock"), "{told}");
        assert!(not_reached("io: invalid peer certificate: Expired").contains("clock"));
        assert_eq!(of(413).unwrap().detail(), "why");
        for (body, is_own) in [
            (json!({ "title": "Conflict", "status": 409, "detail": "why" }), true),
            (json!({ "line": 3, "detail": "no row" }), false),
            (json!({ "title": "Conflict", "status": 409, "detail": "no row", "line": 3 }), true),
            (json!({ "status": 409, "detail": " " }), false),
            (json!({ "status": 502, "detail": "why" }), false),
            (json!({ "detail": "why" }), false),
            (json!({ "error": "blocked", "status": 409 }), false),
            (json!("blocked"), false),
            (Value::Null, false),
        ] {
            assert_eq!(judged(409, body.clone(), None).unwrap().is_own_refusal(), is_own, "{body}");
        }
        assert!(judged(413, Value::Null, None).unwrap().detail().contains("between this board and the farm"));
        // A page of a proxy does not acknowledge anything.
        assert!(matches!(judged(200, Value::Null, None), Err(LinkFault::Later { .. })));
    }
}
