//! What is sent back: documents with their kind, and refusals, as a page or as a problem document
//! (RFC 9457).

use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::error::{Exit, Failure};
use serde::Serialize;

use crate::ingest::staging::StagingFault;
use crate::objects::BucketFault;

/// What a problem document is sent as.
pub const PROBLEM: &str = "application/problem+json";

/// A document.
pub struct WebAnswer {
    kind: &'static str,
    body: String,
    policy: Option<String>,
    attachment: bool,
}

impl WebAnswer {
    pub fn page(body: String) -> WebAnswer {
        WebAnswer { kind: "text/html; charset=utf-8", body, policy: None, attachment: false }
    }

    /// What is handed out as a file, so that no browser shows it as a page.
    pub fn csv(body: String) -> WebAnswer {
        WebAnswer { kind: "text/csv; charset=utf-8; header=present", body, policy: None, attachment: true }
    }

    pub fn text(kind: &'static str, body: String) -> WebAnswer {
        WebAnswer { kind, body, policy: None, attachment: false }
    }

    pub fn json(value: &impl Serialize) -> Result<WebAnswer, Refusal> {
        Ok(WebAnswer::text("application/json", model::error::json(value)? + "\n"))
    }

    /// A problem document.
    pub fn problem(body: String) -> WebAnswer {
        WebAnswer::text(PROBLEM, body)
    }

    /// What is to be filled with parts of a document.
    pub fn empty_json() -> WebAnswer {
        WebAnswer::text("application/json", String::new())
    }

    /// With a content security policy of its own.
    pub fn under(mut self, policy: String) -> WebAnswer {
        self.policy = Some(policy);
        self
    }
}

impl IntoResponse for WebAnswer {
    fn into_response(self) -> Response {
        let mut response = ([(header::CONTENT_TYPE, self.kind)], self.body).into_response();
        let headers = response.headers_mut();
        let mut set = |name: HeaderName, value: &str| {
            if let Ok(value) = value.parse() {
                headers.insert(name, value);
            }
        };
        if let Some(policy) = &self.policy {
            set(header::CONTENT_SECURITY_POLICY, policy);
        }
        if self.attachment {
            set(header::CONTENT_DISPOSITION, "attachment");
        }
        response
    }
}

/// Why there is no answer, in a line with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    pub detail: String,
    /// The seconds after which it may be asked again, where that is known.
    pub wait_s: Option<i64>,
    /// Of a run that was removed here: its board asks later whether it may come again.
    pub is_removed: bool,
}

impl Refusal {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Refusal {
        Refusal { status, detail: detail.into(), wait_s: None, is_removed: false }
    }

    /// A run that was removed here.
    pub fn removed(detail: String) -> Refusal {
        Refusal { is_removed: true, ..Refusal::new(StatusCode::CONFLICT, detail) }
    }

    /// What was asked too often, and may be asked again after some seconds.
    pub fn too_often(what: &str, wait_s: i64) -> Refusal {
        let detail = format!("{what}: wait for {wait_s} s");
        Refusal { wait_s: Some(wait_s), ..Refusal::new(StatusCode::TOO_MANY_REQUESTS, detail) }
    }

    pub fn not_found(detail: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, detail)
    }

    /// There is no such board, or none that who asks may see.
    pub fn no_board(name: &str) -> Refusal {
        let name = model::text::excerpt(name);
        Refusal::not_found(format!("unknown board {name}: choose one of the list of boards"))
    }

    pub fn bad(detail: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, detail)
    }

    /// As a problem document.
    pub fn problem(&self) -> String {
        self.problem_with(&serde_json::Value::Null)
    }

    /// The same with what else there is to say, as fields of their own.
    pub fn problem_with(&self, more: &serde_json::Value) -> String {
        let title = self.status.canonical_reason().unwrap_or_default();
        let mut problem =
            serde_json::json!({ "title": title, "status": self.status.as_u16(), "detail": self.detail });
        if self.is_removed {
            problem["removed"] = true.into();
        }
        for (name, value) in more.as_object().into_iter().flatten() {
            problem[name] = value.clone();
        }
        format!("{problem}\n")
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Refusal {
        let status = match failure.exit {
            Exit::Usage => StatusCode::UNPROCESSABLE_ENTITY,
            // It is the store: who sent something may send it again.
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Refusal::new(status, failure.message)
    }
}

impl From<BucketFault> for Refusal {
    fn from(fault: BucketFault) -> Refusal {
        let status = match &fault {
            BucketFault::Missing(_) => StatusCode::NOT_FOUND,
            BucketFault::Damaged(_) => StatusCode::UNPROCESSABLE_ENTITY,
            // Who sent something keeps it until the farm has its keys or its bucket again.
            BucketFault::Unreachable(_)
            | BucketFault::Refused(_)
            | BucketFault::NoBucket(_)
            | BucketFault::OtherStore(_)
            | BucketFault::Here(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Refusal::new(status, fault.words())
    }
}

impl From<StagingFault> for Refusal {
    fn from(fault: StagingFault) -> Refusal {
        match fault {
            StagingFault::Refused(detail) => Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, detail),
            StagingFault::Failed(detail) => Refusal::new(StatusCode::SERVICE_UNAVAILABLE, detail),
        }
    }
}

impl IntoResponse for Refusal {
    /// Empty: which form it takes depends on who asked, and is made by the last layer.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
