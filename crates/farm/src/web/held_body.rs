//! Bodies of answers as connections take them: in small parts, for what a connection was given is
//! held by it, and counted no more; and packed while they go out.

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::{Body as HyperBody, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

/// What a connection is given at once.
pub const HANDED_AT_ONCE: usize = 16 << 10;
/// What is packed is handed on when it is so long.
const PACKED_AT_ONCE: usize = 16 << 10;

/// A body that is there, with its place among those that are held.
pub struct HeldBody {
    bytes: Bytes,
    _place: OwnedSemaphorePermit,
}

impl HeldBody {
    pub fn of(bytes: Bytes, place: OwnedSemaphorePermit) -> Body {
        Body::new(HeldBody { bytes, _place: place })
    }
}

impl HyperBody for HeldBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.bytes.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.bytes.len().min(HANDED_AT_ONCE);
        // A copy: a part of the whole would keep all of it after the place was given back.
        let part = Bytes::copy_from_slice(&self.bytes.split_to(length));
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}

/// A body that is packed while it goes out. Where it breaks off, what is packed does, too.
pub struct PackedBody {
    body: Body,
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl PackedBody {
    pub fn of(body: Body) -> Body {
        let encoder = Some(GzEncoder::new(Vec::new(), Compression::new(5)));
        Body::new(PackedBody { body, encoder })
    }
}

impl HyperBody for PackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        loop {
            let Some(encoder) = &mut this.encoder else { return Poll::Ready(None) };
            let frame = match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => {
                    this.encoder = None;
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    let rest = this.encoder.take().map_or_else(|| Ok(Vec::new()), GzEncoder::finish);
                    let frame = rest.map(|rest| Frame::data(Bytes::from(rest)));
                    return Poll::Ready(Some(frame.map_err(axum::Error::new)));
                }
            };
            let Ok(data) = frame.into_data() else { continue };
            if let Err(error) = encoder.write_all(&data) {
                this.encoder = None;
                return Poll::Ready(Some(Err(axum::Error::new(error))));
            }
            if encoder.get_ref().len() >= PACKED_AT_ONCE {
                let packed = std::mem::take(encoder.get_mut());
                return Poll::Ready(Some(Ok(Frame::data(Bytes::from(packed)))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.encoder.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::answer_budget::AnswerBudget;
    use axum::body::to_bytes;
    use std::io::Read;
    use std::time::Duration;

    async fn next(body: &mut Body) -> Option<Result<Bytes, axum::Error>> {
        let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await?;
        Some(frame.map(|frame| frame.into_data().unwrap()))
    }

    #[tokio::test]
    async fn a_held_body_gives_its_place_back_when_it_is_taken_or_left() {
        let budget = AnswerBudget::of([1_024; 3], Duration::from_millis(20));
        let free = budget.free_kib();
        let whole: Vec<u8> = (0..100_000u32).map(|n| (n % 251) as u8).collect();
        let held = async || HeldBody::of(whole.clone().into(), budget.whole(whole.len()).await.unwrap());
        let mut body = held().await;
        assert_eq!(body.size_hint().exact(), Some(100_000));
        assert_eq!(next(&mut body).await.unwrap().unwrap().len(), HANDED_AT_ONCE);
        assert_eq!(budget.free_kib(), free - 98);
        drop(body);
        assert_eq!(budget.free_kib(), free);
        let body = held().await;
        assert!(to_bytes(body, 1 << 20).await.unwrap() == whole);
        assert_eq!(budget.free_kib(), free);
    }

    #[tokio::test]
    async fn what_is_packed_on_its_way_is_the_same_and_breaks_off_where_it_does() {
        let parts = |last: io::Result<Bytes>| {
            let text = || Ok(Bytes::from((0..9_000).map(|n| format!("{},", n * n)).collect::<String>()));
            let (sender, taken) = tokio::sync::mpsc::channel(9);
            for part in [text(), text(), last] {
                sender.try_send(part).unwrap();
            }
            let whole = text().map(|text| String::from_utf8(text.to_vec()).unwrap().repeat(2)).unwrap();
            (Body::from_stream(Sent(taken)), whole)
        };
        let (body, whole) = parts(Ok(Bytes::from_static(b"]")));
        let packed = to_bytes(PackedBody::of(body), 1 << 20).await.unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
        assert!(text == whole + "]" && packed.len() < text.len());
        let (body, _) = parts(Err(io::ErrorKind::BrokenPipe.into()));
        assert!(to_bytes(PackedBody::of(body), 1 << 20).await.is_err());
    }

    struct Sent(tokio::sync::mpsc::Receiver<io::Result<Bytes>>);

    impl futures_core::Stream for Sent {
        type Item = io::Result<Bytes>;

        fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            self.0.poll_recv(context)
        }
    }
}
