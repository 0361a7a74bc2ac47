//! Counts of refused requests of boards since the server was started, by reason and without names.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axum::http::StatusCode;

/// Reasons, as in the metrics.
const REASONS: [&str; 9] =
    ["token", "code", "machine", "content", "conflict", "size", "rate", "unavailable", "other"];

/// A count for each reason.
#[derive(Debug, Default)]
pub struct RefusedRequests {
    counts: [AtomicU64; REASONS.len()],
}

impl RefusedRequests {
    /// Counts a refused request of a board, or of one that enrols.
    pub fn note(&self, enrols: bool, status: StatusCode) {
        let Some(reason) = reason(enrols, status) else { return };
        if let Some(at) = REASONS.iter().position(|known| *known == reason) {
            self.counts[at].fetch_add(1, Relaxed);
        }
    }

    /// Each reason with its count, also if that is 0.
    pub fn counted(&self) -> [(&'static str, u64); REASONS.len()] {
        std::array::from_fn(|at| (REASONS[at], self.counts[at].load(Relaxed)))
    }
}

fn reason(enrols: bool, status: StatusCode) -> Option<&'static str> {
    if !status.is_client_error() && !status.is_server_error() {
        return None;
    }
    Some(match status {
        StatusCode::UNAUTHORIZED => "token",
        StatusCode::FORBIDDEN if enrols => "code",
        // Two machines with one token.
        StatusCode::FORBIDDEN => "machine",
        StatusCode::BAD_REQUEST | StatusCode::UNSUPPORTED_MEDIA_TYPE | StatusCode::UNPROCESSABLE_ENTITY => {
            "content"
        }
        StatusCode::CONFLICT => "conflict",
        StatusCode::PAYLOAD_TOO_LARGE => "size",
        StatusCode::TOO_MANY_REQUESTS => "rate",
        StatusCode::SERVICE_UNAVAILABLE => "unavailable",
        _ => "other",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_by_itself_and_no_answer_that_went_well() {
        let refused = RefusedRequests::default();
        for status in [200, 202, 401, 403, 409, 413, 422, 429, 503, 501] {
            refused.note(false, StatusCode::from_u16(status).unwrap());
        }
        refused.note(true, StatusCode::FORBIDDEN);
        assert!(refused.counted().iter().all(|(_, count)| *count == 1), "{:?}", refused.counted());
        refused.note(false, StatusCode::BAD_REQUEST);
        refused.note(false, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        assert_eq!(refused.counted()[3], ("content", 3));
    }
}
