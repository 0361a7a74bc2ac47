//! Responses in parts: each part is read from the store once the one before it was sent, so that a
//! slow reader of a year holds one part of it.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use futures_util::stream::unfold;
use model::error::Result;
use tokio::sync::mpsc;

use crate::web::answers::answer_turns::AskingClient;
use crate::web::answers::files::Streamed;
use crate::web::edge::answer::{Refusal, WebAnswer};
use crate::web::edge::answer_budget::PartsPlace;
use crate::web::state::app::App;

/// Number of finished parts that wait for the connection.
const AHEAD: usize = 1;
/// Bytes per write to a connection.
pub const HANDED_AT_ONCE: usize = 16 << 10;
/// Target size of a part in bytes, as values or as text.
const PART: usize = 96 << 10;
/// Rows of the store in the first part, since each may have a thousand CPUs, and in later ones.
const FEWEST_ROWS: i64 = 16;
const MOST_ROWS: i64 = 400;

/// Source of the parts of a response, in order.
pub trait AnswerParts: Send + 'static {
    /// Bytes that it holds until the last part is made.
    fn held(&self) -> usize {
        0
    }

    /// Makes the next part; none after the last.
    fn next(&mut self) -> impl Future<Output = Result<Option<String>>> + Send;
}

/// All parts of a source, in one text.
#[cfg(test)]
pub async fn parts_of(mut source: impl AnswerParts) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(part) = source.next().await.unwrap() {
        all.push(part);
    }
    all
}

/// Response in parts to a client, with the headers of an empty one. The last layer compresses it.
pub async fn in_parts(
    (app, client): (&Arc<App>, &AskingClient),
    empty: WebAnswer,
    mut source: impl AnswerParts,
) -> Result<Response, Refusal> {
    let place = Arc::new(app.budget.in_parts(&client.0, source.held()).await?);
    // A failure of the first part becomes a status with its reason.
    let first = source.next().await?;
    let (parts, taken) = mpsc::channel(AHEAD);
    let _ = parts.try_send(Ok(first.map(Bytes::from)));
    tokio::spawn(make(app.clone(), source, parts, place.clone()));
    let mut response = empty.into_response();
    let taken = unfold(Some((taken, Bytes::new(), place)), take);
    // What compresses it asks behind its end, too.
    *response.body_mut() = Body::from_stream(taken.fuse());
    response.extensions_mut().insert(Streamed::Text);
    Ok(response)
}

/// What an answer is made of, with none for its end: without that it has broken off.
type MadePart = io::Result<Option<Bytes>>;

/// Makes the parts by a task of its own: who asked may stop taking them at any time, and holds no
/// connection to the store then.
async fn make(
    app: Arc<App>,
    mut source: impl AnswerParts,
    parts: mpsc::Sender<MadePart>,
    _place: Arc<PartsPlace>,
) {
    // Who asked may have gone.
    while let Ok(room) = parts.reserve().await {
        match source.next().await {
            Ok(Some(text)) => room.send(Ok(Some(Bytes::from(text)))),
            Ok(None) => return room.send(Ok(None)),
            Err(failure) => {
                app.failures.fetch_add(1, Ordering::Relaxed);
                // The status has gone out already: only the log can say why.
                let _ = writeln!(io::stderr(), "onbeat-farm: an answer was cut off: {failure}");
                return room.send(Err(io::Error::other(failure.message)));
            }
        }
    }
}

/// Receiver of the parts, the rest of the present one, and their memory.
type TakenParts = (mpsc::Receiver<MadePart>, Bytes, Arc<PartsPlace>);

/// Next bytes for a connection.
async fn take(from: Option<TakenParts>) -> Option<(io::Result<Bytes>, Option<TakenParts>)> {
    let (mut taken, mut rest, place) = from?;
    while rest.is_empty() {
        // After a panic of the source, the bytes sent so far must not look complete.
        match taken.recv().await.unwrap_or_else(|| Err(io::ErrorKind::BrokenPipe.into())) {
            Ok(part) => rest = part?,
            Err(error) => return Some((Err(error), None)),
        }
    }
    let part = rest.split_to(rest.len().min(HANDED_AT_ONCE));
    Some((Ok(part), Some((taken, rest, place))))
}

/// Number of rows of the next part.
#[derive(Clone, Copy, Debug)]
pub struct RowsOfPart(i64);

impl Default for RowsOfPart {
    fn default() -> RowsOfPart {
        RowsOfPart(FEWEST_ROWS)
    }
}

impl RowsOfPart {
    pub fn most(self) -> i64 {
        self.0
    }

    /// After a part of so many rows, which took so many bytes as values or as text.
    pub fn fit(&mut self, rows: usize, bytes: usize) {
        let each = bytes.checked_div(rows).unwrap_or_default().max(1);
        self.0 = i64::try_from(PART / each).unwrap_or(MOST_ROWS).clamp(FEWEST_ROWS, MOST_ROWS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::FarmStore;
    use crate::web::FarmExposure;
    use axum::body::to_bytes;
    use model::error::Failure;
    use std::sync::atomic::AtomicUsize;

    /// Makes some parts, and then ends or fails; counts those that it was asked for.
    struct Counted {
        left: usize,
        fails: bool,
        panics: bool,
        made: Arc<AtomicUsize>,
    }

    impl AnswerParts for Counted {
        async fn next(&mut self) -> Result<Option<String>> {
            self.made.fetch_add(1, Ordering::Relaxed);
            if self.left == 0 {
                assert!(!self.panics, "as a parser might");
                return if self.fails { Err(Failure::internal("gone".to_owned())) } else { Ok(None) };
            }
            self.left -= 1;
            Ok(Some("x".repeat(20_000)))
        }
    }

    async fn app() -> Arc<App> {
        Arc::new(App::new(FarmStore::in_memory().await.unwrap(), FarmExposure::Loopback, None))
    }

    fn client() -> AskingClient {
        AskingClient("127.0.0.1".to_owned())
    }

    async fn asked(app: &Arc<App>, left: usize, fails: bool, panics: bool) -> (Body, Arc<AtomicUsize>) {
        let made = Arc::new(AtomicUsize::new(0));
        let source = Counted { left, fails, panics, made: made.clone() };
        let response = in_parts((app, &client()), WebAnswer::csv(String::new()), source).await.unwrap();
        (response.into_body(), made)
    }

    #[tokio::test]
    async fn an_answer_ends_where_its_last_part_does_and_else_breaks_off() {
        let app = app().await;
        let before = app.budget.free_kib();
        let (body, _) = asked(&app, 7, false, false).await;
        assert_eq!(to_bytes(body, 1 << 20).await.unwrap().len(), 140_000);
        let (body, _) = asked(&app, 2, true, false).await;
        assert!(to_bytes(body, 1 << 20).await.is_err());
        assert_eq!(app.failures.load(Ordering::Relaxed), 1);
        let made = Arc::new(AtomicUsize::new(0));
        let source = Counted { left: 0, fails: true, panics: false, made };
        assert!(in_parts((&app, &client()), WebAnswer::empty_json(), source).await.is_err());
        let (body, _) = asked(&app, 2, false, true).await;
        assert!(to_bytes(body, 1 << 20).await.is_err());
        given_back(&app, before).await;
    }

    #[tokio::test]
    async fn who_takes_nothing_has_a_part_made_and_its_place_goes_with_it() {
        let app = app().await;
        let before = app.budget.free_kib();
        let (body, made) = asked(&app, 1_000, false, false).await;
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        assert_eq!(made.load(Ordering::Relaxed), AHEAD);
        assert!(app.budget.free_kib() < before);
        drop(body);
        given_back(&app, before).await;
        assert_eq!(made.load(Ordering::Relaxed), AHEAD);
    }

    /// Waits until all places are free again.
    async fn given_back(app: &App, before: usize) {
        while app.budget.free_kib() != before {
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn parts_are_as_long_however_many_cpus_a_row_has() {
        let after = |rows: usize, bytes: usize| {
            let mut of = RowsOfPart::default();
            of.fit(rows, bytes);
            of.most()
        };
        assert_eq!(after(16, 16 * 200), MOST_ROWS);
        assert_eq!(after(16, 16 * 1_000), 98);
        assert_eq!(after(16, 16 * 100_000), FEWEST_ROWS);
        assert_eq!(after(0, 0), MOST_ROWS);
    }
}
