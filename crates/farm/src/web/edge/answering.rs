//! Server loop: accepts connections and answers their requests until the server is asked to stop.
//!
//! A client may close its sending half after its request and still wait for the response, as
//! `nc -N` does, which TCP cannot distinguish from a client that has gone. While such a request
//! waits for its turn it counts as abandoned; otherwise a client counts as gone once it takes no
//! bytes, since nothing is read until a response is sent.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use crate::web::edge::connections::{ConnectionStanding, FarmConnection, OpenConnections, SharedStream};
use crate::web::edge::counters::{FarmCounters, add};
use crate::web::edge::tls::{ServerCertificate, shake_hands};

/// Limit, in bytes, of a connection's buffers of each direction and of a request's head. With
/// hyper's default of 400 kB, each slow reader would hold as much.
const BUFFERED: usize = 64 << 10;
/// Pause after a failed accept, as of a kernel without free descriptors.
const PAUSE: Duration = Duration::from_secs(1);

/// Certificate, and counters of connections that fail before their first request.
pub type ServerTls = (Arc<ServerCertificate>, Arc<FarmCounters>);

/// Serves the connections of a listener until `over` completes, then finishes the responses under
/// way. Requests carry the address of their client.
pub async fn answer_requests(
    listener: TcpListener,
    router: Router,
    tls: Option<ServerTls>,
    open: Arc<OpenConnections>,
    over: impl Future<Output = ()>,
) {
    let mut over = pin!(over);
    let graceful = GracefulShutdown::new();
    let router = TowerToHyperService::new(router);
    loop {
        let (socket, from) = tokio::select! {
            taken = next(&listener, &open) => taken,
            () = &mut over => break,
        };
        let connection = FarmConnection::new(socket, open.limits.stuck);
        let (one, tls, limits) = (connection.clone(), tls.clone(), open.limits);
        let (router, end) = (router.clone(), graceful.watcher());
        open.serve(connection, async move {
            let stream = SharedStream(one.clone());
            let Some((certificate, counters)) = tls else {
                return answer(stream, from, one, router, limits.head, end).await;
            };
            match timeout(limits.handshake, shake_hands(stream, certificate.config())).await {
                Ok(Some(stream)) => answer(stream, from, one, router, limits.head, end).await,
                _ => add(&counters.tls_failures, 1),
            }
        });
    }
    drop(listener);
    graceful.shutdown().await;
}

/// Accepts the next connection, and waits for a place for it.
async fn next(listener: &TcpListener, open: &OpenConnections) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => {
                open.make_room().await;
                return accepted;
            }
            // A client that hung up, or no free descriptor: without a pause the latter spins.
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// Answers the requests of a connection.
async fn answer<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    from: SocketAddr,
    connection: Arc<FarmConnection>,
    router: TowerToHyperService<Router>,
    head: Duration,
    end: Watcher,
) {
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(from));
        request.extensions_mut().insert(connection.clone());
        connection.set_standing(ConnectionStanding::Answering);
        let (answered, connection) = (router.call(request), connection.clone());
        async move {
            let response = answered.await;
            connection.set_standing(ConnectionStanding::Idle);
            response
        }
    });
    let served = Builder::new()
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .max_buf_size(BUFFERED)
        // A read may let the buffer grow beyond that.
        .max_header_size(BUFFERED)
        .serve_connection(TokioIo::new(stream), service);
    // A broken connection is the client's affair.
    let _ = end.watch(served).await;
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make folders of their own.
mod tests {
    use super::*;
    use crate::fixture::block_on;
    use crate::store::FarmStore;
    use crate::web::edge::answer_budget::AnswerSource;
    use crate::web::edge::connections::ConnectionLimits;
    use crate::web::{App, FarmExposure, router};
    use axum::body::Body;
    use axum::routing::get;
    use futures_util::StreamExt;
    use futures_util::stream::FuturesUnordered;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use tempfile::TempDir;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::crypto::ring::default_provider;
    use tokio_rustls::rustls::{ClientConfig, RootCertStore};

    const SHORT: Duration = Duration::from_millis(500);
    const LONG: Duration = Duration::from_secs(20);
    /// More than a connection takes before its client reads.
    const MUCH: usize = 32 << 20;

    fn limits(most: usize) -> ConnectionLimits {
        ConnectionLimits { most, handshake: SHORT, head: SHORT, stuck: 2 * SHORT }
    }

    /// Nothing ends by its time.
    fn patient() -> ConnectionLimits {
        ConnectionLimits { handshake: LONG, head: LONG, stuck: LONG, ..limits(100) }
    }

    /// An answer without an end, which says when it is no longer sent.
    struct Endless(UnboundedSender<()>);

    impl futures_util::Stream for Endless {
        type Item = Result<Vec<u8>, Infallible>;

        fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            Poll::Ready(Some(Ok(vec![0; 1 << 16])))
        }
    }

    impl Drop for Endless {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }

    fn routes(ended: UnboundedSender<()>) -> Router {
        let late = || async {
            sleep(4 * SHORT).await;
            "late"
        };
        let endless = move || async move { Body::from_stream(Endless(ended)) };
        Router::new()
            .route("/", get(|| async { "at once" }))
            .route("/late", get(late))
            .route("/much", get(|| async { vec![b'x'; MUCH] }))
            .route("/endless", get(endless))
    }

    fn start(listener: TcpListener, router: Router, tls: Option<ServerTls>, limits: ConnectionLimits) {
        let open = OpenConnections::new(limits);
        tokio::spawn(answer_requests(listener, router, tls, open, std::future::pending()));
    }

    /// The address of the farm's own pages, over an empty store, and its folder. A store in memory
    /// ends with its connection, which may break when a request under way is given up.
    async fn served_farm(limits: ConnectionLimits) -> (SocketAddr, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let store = FarmStore::file(&folder.path().join("store.db")).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let app = App::new(store, FarmExposure::Loopback, None);
        start(listener, router(Arc::new(app)), None, limits);
        (at, folder)
    }

    #[test]
    fn a_request_names_one_host_and_an_old_one_need_not() {
        block_on(async {
            let (at, _folder) = served_farm(patient()).await;
            for (version, hosts, status) in [
                ("1.1", "", "400"),
                ("1.1", "Host: localhost\r\n", "200"),
                ("1.1", "Host: localhost\r\nHost: localhost\r\n", "400"),
                ("1.0", "", "200"),
                ("1.0", "Host: localhost\r\nHost: localhost\r\n", "400"),
            ] {
                let head = format!("GET /healthz HTTP/{version}\r\n{hosts}Connection: close\r\n\r\n");
                let answer = told(at, &[&head]).await;
                assert_eq!(answer.split(' ').nth(1), Some(status), "{head}: {answer}");
            }
        });
    }

    #[test]
    fn a_head_is_no_longer_than_what_a_connection_holds() {
        block_on(async {
            let (at, _) = served(patient()).await;
            for (long, status) in [(60 << 10, "200"), (80 << 10, "431"), (120 << 10, "431")] {
                let long = "x".repeat(long);
                let head = format!("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX: {long}\r\n\r\n");
                let mut stream = TcpStream::connect(at).await.unwrap();
                // The rest of one that is too long is not read.
                let _ = stream.write_all(head.as_bytes()).await;
                let mut all = Vec::new();
                let _ = timeout(LONG, stream.read_to_end(&mut all)).await;
                let answer = String::from_utf8_lossy(&all);
                assert_eq!(answer.split(' ').nth(1), Some(status), "{} bytes: {answer}", head.len());
            }
        });
    }

    /// The address of a server, and what says that an endless answer has ended.
    async fn served(limits: ConnectionLimits) -> (SocketAddr, UnboundedReceiver<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (ended, ends) = unbounded_channel();
        start(listener, routes(ended), None, limits);
        (at, ends)
    }

    /// What a connection gets that sends each part and then waits until it is closed.
    async fn told(at: SocketAddr, parts: &[&str]) -> String {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let mut all = Vec::new();
        for part in parts {
            stream.write_all(part.as_bytes()).await.unwrap();
            sleep(SHORT / 20).await;
        }
        let ended = timeout(LONG, stream.read_to_end(&mut all)).await;
        assert!(ended.is_ok(), "{parts:?} is still open");
        String::from_utf8_lossy(&all).into_owned()
    }

    #[test]
    fn what_does_not_get_on_is_closed_and_what_takes_long_is_answered() {
        block_on(async {
            let (at, _) = served(limits(100)).await;
            assert_eq!(told(at, &[]).await, "");
            assert!(!told(at, &["GET / HTTP/1.1\r\nHost: x\r\nX: "]).await.contains("200"));
            // A head in parts, and a second request on the same connection.
            let whole = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
            let answer = told(at, &["GET / HT", "TP/1.1\r\nHost: x\r\n", "\r\n", whole]).await;
            assert_eq!(answer.matches("at once").count(), 2, "{answer}");
            let answer = told(at, &[whole, "GET / HTTP/1.1\r\nX: "]).await;
            assert_eq!(answer.matches("200 OK").count(), 1, "{answer}");
            let answer = told(at, &["GET /late HTTP/1.1\r\nHost: x\r\n\r\n"]).await;
            assert!(answer.ends_with("late"), "{answer}");
        });
    }

    #[test]
    fn idle_connections_keep_no_request_out() {
        block_on(async {
            let patient = ConnectionLimits { head: LONG, ..limits(8) };
            let (at, _) = served(patient).await;
            let mut idle = Vec::new();
            for _ in 0..40 {
                let mut stream = TcpStream::connect(at).await.unwrap();
                stream.write_all(b"GET / HTTP/1.1\r\nX: ").await.unwrap();
                idle.push(stream);
            }
            let answer = told(at, &["GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"]).await;
            assert!(answer.ends_with("at once"), "{answer}");
            // The oldest of them was closed.
            let mut rest = Vec::new();
            let ended = timeout(LONG / 4, idle[0].read_to_end(&mut rest)).await;
            assert!(ended.is_ok());
        });
    }

    #[test]
    fn half_bodies_keep_no_request_out() {
        block_on(async {
            let (at, _folder) = served_farm(ConnectionLimits { most: 8, ..patient() }).await;
            let mut halves = Vec::new();
            for _ in 0..40 {
                let mut stream = TcpStream::connect(at).await.unwrap();
                let head = "POST /login HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n\
                            Content-Length: 99\r\n\r\nname=";
                stream.write_all(head.as_bytes()).await.unwrap();
                halves.push(stream);
            }
            let head = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
            let answer = timeout(LONG / 4, told(at, &[head])).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            // Of 40, 33 have given up their places: the oldest, as far as their heads were read.
            let mut open = FuturesUnordered::from_iter(halves.iter_mut().map(async |half| {
                let _ = half.read_to_end(&mut Vec::new()).await;
            }));
            for _ in 0..33 {
                assert_eq!(timeout(LONG / 4, open.next()).await, Ok(Some(())));
            }
        });
    }

    /// What a client gets that asks, closes its half of the connection, and then reads.
    async fn half_closed(mut stream: impl AsyncRead + AsyncWrite + Unpin, path: &str) -> String {
        let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut all = Vec::new();
        let ended = timeout(LONG, stream.read_to_end(&mut all)).await;
        assert!(ended.is_ok(), "{path} is still open");
        String::from_utf8_lossy(&all).into_owned()
    }

    #[test]
    fn who_says_that_nothing_more_comes_is_answered() {
        block_on(async {
            let (at, _) = served(patient()).await;
            let connect = async || TcpStream::connect(at).await.unwrap();
            assert!(half_closed(connect().await, "/").await.ends_with("at once"));
            assert!(half_closed(connect().await, "/late").await.ends_with("late"));
            assert!(half_closed(connect().await, "/much").await.len() > MUCH);
        });
    }

    #[test]
    fn who_has_gone_while_others_are_answered_waits_for_no_turn() {
        block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let at = listener.local_addr().unwrap();
            let store = FarmStore::in_memory().await.unwrap();
            let app = Arc::new(App::new(store, FarmExposure::Loopback, None));
            start(listener, router(app.clone()), None, patient());
            let mut turns = Vec::new();
            for at in 0..12 {
                turns.push(app.budget.turn(AnswerSource::Store, &format!("{at}")).await.unwrap());
            }
            let ask = async || {
                let mut stream = TcpStream::connect(at).await.unwrap();
                stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
                stream
            };
            let mut waits = ask().await;
            let mut gone = ask().await;
            gone.shutdown().await.unwrap();
            let mut answer = String::new();
            timeout(LONG, gone.read_to_string(&mut answer)).await.unwrap().unwrap();
            assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("leave it open"), "{answer}");
            turns.pop();
            let mut begin = [0; 12];
            timeout(LONG, waits.read_exact(&mut begin)).await.unwrap().unwrap();
            assert_eq!(&begin, b"HTTP/1.1 200");
        });
    }

    #[test]
    fn who_says_so_over_tls_is_answered() {
        block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let (cert, key) = (folder.path().join("cert"), folder.path().join("key"));
            let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
            std::fs::write(&cert, made.cert.pem()).unwrap();
            std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let at = listener.local_addr().unwrap();
            let certificate = Arc::new(ServerCertificate::open(&cert, &key).unwrap());
            let (ended, _ends) = unbounded_channel();
            start(listener, routes(ended), Some((certificate, Arc::default())), patient());
            let mut roots = RootCertStore::empty();
            roots.add(made.cert.der().clone()).unwrap();
            let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(roots)
                .with_no_client_auth();
            let connector = TlsConnector::from(Arc::new(config));
            for (path, end) in [("/", "at once"), ("/late", "late")] {
                let stream = TcpStream::connect(at).await.unwrap();
                let stream = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
                assert!(half_closed(stream, path).await.ends_with(end), "{path}");
            }
        });
    }

    /// A connection that asked for an answer without end, and takes its begin alone.
    async fn stuck(at: SocketAddr) -> TcpStream {
        let mut stream = TcpStream::connect(at).await.unwrap();
        stream.write_all(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        stream.shutdown().await.unwrap();
        stream.read_exact(&mut [0; 64]).await.unwrap();
        stream
    }

    #[test]
    fn who_takes_no_answer_is_closed() {
        block_on(async {
            let (at, mut ends) = served(ConnectionLimits { stuck: SHORT, ..patient() }).await;
            let _stuck = stuck(at).await;
            assert_eq!(timeout(LONG, ends.recv()).await, Ok(Some(())));
            // Before its time is over where another one needs its place.
            let (at, mut ends) = served(ConnectionLimits { most: 8, stuck: 100 * LONG, ..patient() }).await;
            let mut all = Vec::new();
            for _ in 0..8 {
                all.push(stuck(at).await);
            }
            let answer = told(at, &["GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"]).await;
            assert!(answer.ends_with("at once"), "{answer}");
            assert_eq!(timeout(LONG, ends.recv()).await, Ok(Some(())));
        });
    }
}
