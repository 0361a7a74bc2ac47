//! Minimum pace of request bodies: an unfinished body holds a connection for seconds only. A limit
//! between two parts alone would accept one byte per part for days.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use tokio::time::{Instant, timeout_at};

use crate::web::edge::answer::Refusal;
use crate::web::edge::connections::{ConnectionStanding, FarmConnection};

/// Limits of a slow body.
struct BodyPace {
    /// Timeout between two parts.
    idle: Duration,
    /// Timeout of the whole body.
    whole: Duration,
    /// Received bytes that extend it by a second.
    bytes_per_s: usize,
}

/// 5 MiB over a link of 32 kbit/s are in time.
const PACE: BodyPace =
    BodyPace { idle: Duration::from_secs(15), whole: Duration::from_secs(30), bytes_per_s: 4_000 };

/// Response to a request whose body has at most `most` bytes. The handler runs once the body is
/// complete; until then another connection may take its place.
pub async fn answered(request: Request, most: usize, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let connection = request.extensions().get::<Arc<FarmConnection>>().cloned();
    let is_at = |standing| connection.iter().for_each(|connection| connection.set_standing(standing));
    is_at(ConnectionStanding::Receiving);
    let (parts, body) = request.into_parts();
    let received = received(body, most, PACE).await;
    is_at(ConnectionStanding::Answering);
    match received {
        Ok(body) => next.run(Request::from_parts(parts, Body::from(body))).await,
        Err(refusal) => refusal.into_response(),
    }
}

async fn received(body: Body, most: usize, pace: BodyPace) -> Result<Vec<u8>, Refusal> {
    let too_long = || {
        let detail = "the body is too large: send less at once, and pieces of at most 4 MiB";
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    };
    if body.size_hint().lower() > most as u64 {
        return Err(too_long());
    }
    let (begun, mut all, mut parts) = (Instant::now(), Vec::new(), body.into_data_stream());
    loop {
        let whole = begun + pace.whole + Duration::from_secs((all.len() / pace.bytes_per_s) as u64);
        match timeout_at(whole.min(Instant::now() + pace.idle), parts.next()).await {
            Ok(None) => return Ok(all),
            Ok(Some(Ok(part))) if part.len() > most - all.len() => return Err(too_long()),
            Ok(Some(Ok(part))) => all.extend_from_slice(&part),
            Ok(Some(Err(_))) => return Err(Refusal::bad("the body was cut off: send it again")),
            Err(_) => {
                let detail = "the body arrives too slowly: send it again, fewer bytes at once";
                return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, detail));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::block_on;
    use futures_util::stream::unfold;
    use std::convert::Infallible;
    use tokio::time::sleep;

    /// The length that is read of parts that come each so often, none where they are too slow.
    async fn read(parts: usize, bytes: usize, every: Duration, ends: bool, pace: BodyPace) -> Option<usize> {
        let body = Body::from_stream(unfold(parts, move |left| async move {
            sleep(if left > 0 || ends { every } else { Duration::from_secs(60) }).await;
            (left > 0).then(|| (Ok::<_, Infallible>(vec![7; bytes]), left - 1))
        }));
        let refusal = |refusal: Refusal| assert_eq!(refusal.status, StatusCode::REQUEST_TIMEOUT);
        received(body, 1 << 20, pace).await.map_err(refusal).ok().map(|all| all.len())
    }

    #[test]
    fn a_slow_body_is_read_and_one_that_stops_or_trickles_is_not() {
        let ms = Duration::from_millis;
        let pace = || BodyPace { idle: ms(1_000), whole: ms(1_500), bytes_per_s: 1_000 };
        block_on(async {
            assert_eq!(read(3, 10, ms(20), true, pace()).await, Some(30));
            assert_eq!(read(1, 10, ms(0), false, pace()).await, None);
            assert_eq!(read(0, 0, ms(0), false, pace()).await, None);
            // It takes two seconds, and has a second more for each thousand bytes.
            assert_eq!(read(20, 1_000, ms(100), true, pace()).await, Some(20_000));
            assert_eq!(read(40, 1, ms(100), true, pace()).await, None);
        });
    }
}
