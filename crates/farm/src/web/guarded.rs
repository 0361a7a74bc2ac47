//! Connections that get on or are closed: who only connects, or begins a head and does not end it,
//! holds no descriptor for long.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::extract::connect_info::{Connected, IntoMakeServiceWithConnectInfo};
use axum::extract::{ConnectInfo, Request};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Sleep, sleep};

use super::connections::{ConnectionPlace, ConnectionStanding, FarmConnection, OpenConnections};

/// Between two tries where the kernel has no descriptor left.
const PAUSE: Duration = Duration::from_secs(1);

/// Takes connections, each with a place among the open ones.
pub struct GuardedListener {
    listener: TcpListener,
    open: Arc<OpenConnections>,
}

impl GuardedListener {
    pub fn new(listener: TcpListener, open: Arc<OpenConnections>) -> GuardedListener {
        GuardedListener { listener, open }
    }

    /// The next connection.
    pub async fn take(&self) -> (GuardedStream, SocketAddr) {
        loop {
            let (stream, from) = match self.listener.accept().await {
                Ok(accepted) => accepted,
                // Who hung up meanwhile is no trouble; without descriptors the next try is one,
                // too.
                Err(_) => {
                    sleep(PAUSE).await;
                    continue;
                }
            };
            if let Some(place) = self.open.take(from.ip()).await {
                return (GuardedStream::new(stream, place), from);
            }
        }
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Listener for GuardedListener {
    type Io = GuardedStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (GuardedStream, SocketAddr) {
        self.take().await
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that fails where it does not get on.
pub struct GuardedStream {
    stream: TcpStream,
    place: ConnectionPlace,
    timer: Pin<Box<Sleep>>,
    /// Requests that had begun when the timer was set.
    timed: u64,
    /// Bytes of a further request are there.
    is_begun: bool,
}

impl GuardedStream {
    fn new(stream: TcpStream, place: ConnectionPlace) -> GuardedStream {
        let timer = Box::pin(sleep(place.limits().first));
        GuardedStream { stream, place, timer, timed: 0, is_begun: false }
    }

    /// The first bytes, which stay to be read.
    pub async fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.peek(buffer).await
    }

    fn set(&mut self, after: Duration, requests: u64) {
        self.timer.set(sleep(after));
        self.timed = requests;
    }

    /// Nothing is there to be read: for how long that may be depends on how far it is.
    fn wait(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some((standing, requests)) = self.place.connection.standing(Some(context.waker())) else {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        };
        if standing > ConnectionStanding::Idle {
            return Poll::Pending;
        }
        // The timer was set before the request that is answered now.
        if standing == ConnectionStanding::Idle && self.timed != requests {
            self.is_begun = false;
            self.set(self.place.limits().idle, requests);
        }
        ready!(self.timer.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Something was read: the rest of a head has to follow.
    fn came(&mut self) {
        if let Some((ConnectionStanding::Idle, requests)) = self.place.connection.standing(None)
            && !self.is_begun
        {
            self.is_begun = true;
            self.set(self.place.limits().head, requests);
        }
    }

    /// A part of an answer was taken. The task looks at its timer where it reads, and is woken for
    /// that: it may wait for bytes alone.
    fn went(&mut self, context: &Context<'_>) {
        if let Some((standing, requests)) = self.place.connection.standing(None)
            && standing > ConnectionStanding::New
        {
            self.is_begun = false;
            self.set(self.place.limits().idle, requests);
            context.waker().wake_by_ref();
        }
    }
}

impl AsyncRead for GuardedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Pending => self.wait(context),
            Poll::Ready(read) => {
                if buffer.filled().len() > before {
                    self.came();
                }
                Poll::Ready(read)
            }
        }
    }
}

impl AsyncWrite for GuardedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes));
        self.went(context);
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, parts));
        self.went(context);
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Who is at the other end of a connection, and how far that is.
#[derive(Clone, Debug)]
pub struct PeerConnection {
    from: SocketAddr,
    pub connection: Arc<FarmConnection>,
}

impl PeerConnection {
    pub fn of(stream: &GuardedStream, from: SocketAddr) -> PeerConnection {
        PeerConnection { from, connection: stream.place.connection.clone() }
    }
}

impl Connected<IncomingStream<'_, GuardedListener>> for PeerConnection {
    fn connect_info(stream: IncomingStream<'_, GuardedListener>) -> PeerConnection {
        PeerConnection::of(stream.io(), *stream.remote_addr())
    }
}

/// A router for either listener: requests carry the address that they are from.
pub fn attended(router: Router) -> IntoMakeServiceWithConnectInfo<Router, PeerConnection> {
    router.layer(from_fn(attend)).into_make_service_with_connect_info::<PeerConnection>()
}

async fn attend(mut request: Request, next: Next) -> Response {
    let Some(ConnectInfo(peer)) = request.extensions().get::<ConnectInfo<PeerConnection>>().cloned() else {
        return next.run(request).await;
    };
    request.extensions_mut().insert(ConnectInfo(peer.from));
    let _under_way = peer.connection.answering();
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::connections::ConnectionLimits;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const SHORT: Duration = Duration::from_millis(500);
    const LONG: Duration = Duration::from_secs(20);

    fn limits(most: usize) -> ConnectionLimits {
        ConnectionLimits { most, most_of_one: None, first: SHORT, head: SHORT, idle: 2 * SHORT }
    }

    async fn served(limits: ConnectionLimits) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let late = || async {
            sleep(4 * SHORT).await;
            "late"
        };
        let router = Router::new().route("/", get(|| async { "at once" })).route("/late", get(late));
        let listener = GuardedListener::new(listener, OpenConnections::new(limits));
        tokio::spawn(async move { axum::serve(listener, attended(router)).await });
        at
    }

    /// What a connection gets that sends each part and then waits until it is closed.
    async fn told(at: SocketAddr, parts: &[&str]) -> String {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let mut all = Vec::new();
        for part in parts {
            stream.write_all(part.as_bytes()).await.unwrap();
            sleep(SHORT / 20).await;
        }
        let ended = tokio::time::timeout(LONG, stream.read_to_end(&mut all)).await;
        assert!(ended.is_ok(), "{parts:?} is still open");
        String::from_utf8_lossy(&all).into_owned()
    }

    #[test]
    fn what_does_not_get_on_is_closed_and_what_takes_long_is_answered() {
        tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
            let at = served(limits(100)).await;
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
        tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
            let patient = ConnectionLimits { first: LONG, ..limits(8) };
            let at = served(patient).await;
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
            let ended = tokio::time::timeout(LONG / 4, idle[0].read_to_end(&mut rest)).await;
            assert!(ended.is_ok());
        });
    }
}
