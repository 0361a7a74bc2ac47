//! Responses: documents with their content type, and refusals as a page or a problem document (RFC
//! 9457).

use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::error::{Exit, Failure};
use serde::Serialize;

use crate::ingest::staging::StagingFault;
use crate::objects::BucketFault;

/// Content type of a problem document.
pub const PROBLEM: &str = "application/problem+json";

/// Form of an answer, by the address of its route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerForm {
    Page,
    Json,
    Csv,
    Atom,
}

impl AnswerForm {
    pub fn of_route(path: &str) -> AnswerForm {
        match path {
            _ if path.ends_with(".csv") => AnswerForm::Csv,
            _ if path.ends_with(".atom") => AnswerForm::Atom,
            _ if path == "/v1" || path.starts_with("/v1/") => AnswerForm::Json,
            _ => AnswerForm::Page,
        }
    }
}

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

    /// Download, which no browser shows as a page.
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

    /// Empty document for parts that follow.
    pub fn empty_json() -> WebAnswer {
        WebAnswer::text("application/json", String::new())
    }

    /// Sets a separate content security policy.
    pub fn under(mut self, policy: String) -> WebAnswer {
        self.policy = Some(policy);
        self
    }
}

/// Result of a handler.
pub type WebOutcome = Result<WebAnswer, Refusal>;

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

/// Refusal: a line with the reason and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    pub detail: String,
    /// Seconds until the next attempt, if known.
    pub wait_s: Option<i64>,
    /// True for a run that was removed here: its board asks later if it may send it again.
    pub is_removed: bool,
}

impl Refusal {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Refusal {
        Refusal { status, detail: detail.into(), wait_s: None, is_removed: false }
    }

    /// Refusal of a run that was removed here.
    pub fn removed(detail: String) -> Refusal {
        Refusal { is_removed: true, ..Refusal::new(StatusCode::CONFLICT, detail) }
    }

    /// Refusal of too frequent requests, for some seconds.
    pub fn too_often(what: &str, wait_s: i64) -> Refusal {
        let detail = format!("{what}: wait for {wait_s} s");
        Refusal { wait_s: Some(wait_s), ..Refusal::new(StatusCode::TOO_MANY_REQUESTS, detail) }
    }

    pub fn not_found(detail: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, detail)
    }

    /// Refusal of a board that does not exist or that the visitor may not see.
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

    /// The same with additional fields.
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
            // A failure of the store: the client may send again.
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
            // The client keeps its data until the farm has its keys or its bucket again.
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
    /// An empty response: the last layer fills it, in the form that the client accepts.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
