//! What is sent has to come at some pace: who begins a body and does not go on holds a connection,
//! and a turn, for seconds.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use futures_core::Stream;
use model::units::Nanos;
use tokio::time::{Sleep, sleep};

use super::connections::FarmConnection;

/// How slow a body may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyPace {
    /// Between two parts.
    pub idle: Duration,
    /// For the whole of it,
    pub whole: Duration,
    /// and a second more for each so many bytes that came.
    pub bytes_per_s: u64,
}

/// 5 MiB over a link of 32 kbit/s are in time.
pub const PACE: BodyPace =
    BodyPace { idle: Duration::from_secs(15), whole: Duration::from_secs(30), bytes_per_s: 4_000 };

/// A body that ends with an error where it is too slow.
pub struct PacedBody {
    parts: BodyDataStream,
    pace: BodyPace,
    timer: Pin<Box<Sleep>>,
    begun: Nanos,
    bytes: u64,
    /// Set where it was too slow.
    is_late: Arc<AtomicBool>,
    connection: Option<Arc<FarmConnection>>,
}

impl PacedBody {
    /// `is_late` is set where it was too slow; the connection is told when more is awaited.
    pub fn of(
        body: Body,
        pace: BodyPace,
        is_late: Arc<AtomicBool>,
        connection: Option<Arc<FarmConnection>>,
    ) -> Body {
        let (parts, timer) = (body.into_data_stream(), Box::pin(sleep(pace.idle)));
        let begun = host::clock::monotonic();
        Body::from_stream(PacedBody { parts, pace, timer, begun, bytes: 0, is_late, connection })
    }

    /// How long the next part may take.
    fn patience(&self) -> Duration {
        let all = self.pace.whole + Duration::from_secs(self.bytes / self.pace.bytes_per_s.max(1));
        let since = (host::clock::monotonic() - self.begun).0;
        let left = all.saturating_sub(Duration::from_nanos(u64::try_from(since).unwrap_or(0)));
        left.min(self.pace.idle)
    }

    fn is_awaited(&self, awaited: bool) {
        if let Some(connection) = &self.connection {
            connection.receives(awaited);
        }
    }
}

impl Stream for PacedBody {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if let Poll::Ready(part) = Pin::new(&mut self.parts).poll_next(context) {
            self.is_awaited(false);
            let length = part.as_ref().and_then(|part| part.as_ref().ok()).map_or(0, Bytes::len);
            self.bytes = self.bytes.saturating_add(length as u64);
            let patience = self.patience();
            self.timer.set(sleep(patience));
            return Poll::Ready(part.map(|part| part.map_err(io::Error::other)));
        }
        self.is_awaited(true);
        ready!(self.timer.as_mut().poll(context));
        self.is_awaited(false);
        self.is_late.store(true, Ordering::Relaxed);
        Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::to_bytes;
    use tokio::sync::mpsc;

    struct Sent(mpsc::Receiver<Bytes>);

    impl Stream for Sent {
        type Item = io::Result<Bytes>;

        fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
            self.0.poll_recv(context).map(|part| part.map(Ok))
        }
    }

    /// What is read of parts that come each so often, and whether that was too slow; the sender
    /// stays where the body does not end.
    async fn read(parts: usize, bytes: usize, every: Duration, ends: bool, pace: BodyPace) -> (usize, bool) {
        let (sender, receiver) = mpsc::channel(1);
        let is_late = Arc::new(AtomicBool::new(false));
        let body = PacedBody::of(Body::from_stream(Sent(receiver)), pace, is_late.clone(), None);
        let sending = tokio::spawn(async move {
            for _ in 0..parts {
                sleep(every).await;
                let _ = sender.send(Bytes::from(vec![7; bytes])).await;
            }
            if !ends {
                sender.closed().await;
            }
        });
        let whole = to_bytes(body, 1 << 20).await.map_or(0, |bytes| bytes.len());
        sending.await.unwrap();
        (whole, is_late.load(Ordering::Relaxed))
    }

    #[test]
    fn a_slow_body_is_read_and_one_that_stops_or_trickles_is_not() {
        let ms = Duration::from_millis;
        let pace = BodyPace { idle: ms(1_000), whole: ms(1_500), bytes_per_s: 1_000 };
        tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
            assert_eq!(read(3, 10, ms(20), true, pace).await, (30, false));
            assert_eq!(read(1, 10, ms(0), false, pace).await, (0, true));
            assert_eq!(read(0, 0, ms(0), false, pace).await, (0, true));
            // It takes two seconds, and has a second more for each thousand bytes.
            assert_eq!(read(20, 1_000, ms(100), true, pace).await, (20_000, false));
            assert_eq!(read(40, 1, ms(100), true, pace).await, (0, true));
        });
    }
}
