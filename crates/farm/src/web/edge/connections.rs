//! Open connections and their states. If there is no place for a new one, the oldest without a
//! request under way is closed. No layer does that, and a concurrency limit alone would let idle
//! connections keep all others out.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};

/// Descriptors reserved for the store, files and anything else that is not a connection.
const RESERVED: usize = 128;
/// Limit of open connections. Boards send every few minutes, so no farm needs more.
const MOST: usize = 16_384;
/// Time for the first request of a connection. Until then it is closed last; otherwise the next
/// connection would close it before unfinished bodies.
const FIRST_REQUEST_GRACE: Duration = Duration::from_secs(1);
/// Interval between two checks of states that send no notification.
const NEXT_LOOK: Duration = Duration::from_millis(200);

/// Limit of open connections, and timeouts of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    pub most: usize,
    /// Timeout of the TLS handshake.
    pub handshake: Duration,
    /// Timeout of a request's head, counted from the end of the response before it.
    pub head: Duration,
    /// Timeout of a client that acknowledges no bytes of a response.
    pub stuck: Duration,
}

impl ConnectionLimits {
    /// Limits of a process that may open that many files.
    pub fn of_files(files: u64) -> ConnectionLimits {
        let files = usize::try_from(files).unwrap_or(usize::MAX);
        ConnectionLimits {
            most: files.saturating_sub(RESERVED).max(files / 4).clamp(8, MOST),
            handshake: Duration::from_secs(8),
            head: Duration::from_secs(12),
            stuck: Duration::from_secs(75),
        }
    }
}

/// State of a connection, in the order in which connections are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionStanding {
    /// No request was received yet.
    New,
    /// All of its requests were answered.
    Idle,
    /// The body of a request is being received.
    Receiving,
    /// A response is being made: the connection is not closed.
    Answering,
}

/// Socket and state of a connection.
#[derive(Debug)]
pub struct FarmConnection {
    socket: TcpStream,
    accepted: Instant,
    standing: AtomicU8,
}

impl FarmConnection {
    /// A connection whose socket fails if its client acknowledges nothing for `stuck`.
    pub fn new(socket: TcpStream, stuck: Duration) -> Arc<FarmConnection> {
        // If this fails, the kernel's longer timeout applies.
        let _ = SockRef::from(&socket).set_tcp_user_timeout(Some(stuck));
        let standing = AtomicU8::new(ConnectionStanding::New as u8);
        Arc::new(FarmConnection { socket, accepted: Instant::now(), standing })
    }

    /// Reads the first bytes without consuming them.
    pub async fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.peek(buffer).await
    }

    /// Returns once its client has closed its sending half. Unread bytes of a further request hide
    /// that.
    pub async fn gone(&self) {
        while let Ok(state) = self.socket.ready(Interest::READABLE).await {
            if state.is_read_closed() {
                return;
            }
            sleep(NEXT_LOOK).await;
        }
    }

    /// Rank in the order in which connections are closed; none while a response is being made.
    fn closing_rank(&self, now: Instant) -> Option<u8> {
        match self.standing.load(Ordering::Relaxed) {
            state if state == ConnectionStanding::Answering as u8 => None,
            state if state == ConnectionStanding::New as u8 && now < self.accepted + FIRST_REQUEST_GRACE => {
                Some(u8::MAX)
            }
            state => Some(state),
        }
    }

    /// Sets the state.
    pub fn set_standing(&self, standing: ConnectionStanding) {
        self.standing.store(standing as u8, Ordering::Relaxed);
    }
}

/// Stream of a connection for the task that serves it; [`FarmConnection::gone`] watches the same
/// socket.
pub struct SharedStream(pub Arc<FarmConnection>);

impl AsyncRead for SharedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.socket.poll_read_ready(context))?;
            match self.0.socket.try_read(buffer.initialize_unfilled()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read.map(|count| buffer.advance(count))),
            }
        }
    }
}

impl AsyncWrite for SharedStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.socket.poll_write_ready(context))?;
            match self.0.socket.try_write_vectored(parts) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(SockRef::from(&self.0.socket).shutdown(Shutdown::Write))
    }
}

/// All open connections, each served by its own task.
#[derive(Debug)]
pub struct OpenConnections {
    pub limits: ConnectionLimits,
    /// Connections by number, in the order of their arrival.
    all: Mutex<BTreeMap<u64, (Arc<FarmConnection>, AbortHandle)>>,
    next: AtomicU64,
    freed: Notify,
}

impl OpenConnections {
    pub fn new(limits: ConnectionLimits) -> Arc<OpenConnections> {
        Arc::new(OpenConnections {
            limits,
            all: Mutex::default(),
            next: AtomicU64::new(0),
            freed: Notify::new(),
        })
    }

    /// Waits for a place for one more connection, and closes another one for it if it can.
    pub async fn make_room(&self) {
        while self.all().len() >= self.limits.most && !self.close_one() {
            // A connection that becomes idle sends no notification.
            let _ = timeout(NEXT_LOOK, self.freed.notified()).await;
        }
    }

    /// Closes the connection first in order of rank and arrival; true if there was one.
    fn close_one(&self) -> bool {
        let mut all = self.all();
        let now = Instant::now();
        let least = all.iter().filter_map(|(number, (one, _))| Some((one.closing_rank(now)?, *number))).min();
        let closed = least.and_then(|(_, number)| all.remove(&number));
        closed.as_ref().inspect(|(_, task)| task.abort()).is_some()
    }

    /// Starts the task of a connection, which ends with it or is aborted for another one.
    pub fn serve(
        self: &Arc<Self>,
        connection: Arc<FarmConnection>,
        served: impl Future<Output = ()> + Send + 'static,
    ) {
        let mut all = self.all();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let place = ConnectionPlace { all: self.clone(), number };
        let task = tokio::spawn(async move {
            let _place = place;
            served.await;
        });
        all.insert(number, (connection, task.abort_handle()));
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, (Arc<FarmConnection>, AbortHandle)>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Place of a connection, until the value is dropped.
struct ConnectionPlace {
    all: Arc<OpenConnections>,
    number: u64,
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.all.all().remove(&self.number);
        self.all.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn a_connection_has_time_for_its_first_request_before_unfinished_ones_are_kept() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let accepted = async || {
            let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            (FarmConnection::new(listener.accept().await.unwrap().0, FIRST_REQUEST_GRACE), client)
        };
        let [(body, _b), (idle, _i), (new, _n)] = [accepted().await, accepted().await, accepted().await];
        let now = new.accepted;
        body.set_standing(ConnectionStanding::Receiving);
        idle.set_standing(ConnectionStanding::Idle);
        assert!(
            idle.closing_rank(now) < body.closing_rank(now) && body.closing_rank(now) < new.closing_rank(now)
        );
        let later = now + FIRST_REQUEST_GRACE;
        assert!(new.closing_rank(later) < idle.closing_rank(later));
        body.set_standing(ConnectionStanding::Answering);
        assert_eq!(body.closing_rank(now), None);
    }

    #[test]
    fn there_are_fewer_connections_than_descriptors() {
        for files in [0, 16, 64, 300, 1_024, 65_536, u64::MAX] {
            let limits = ConnectionLimits::of_files(files);
            assert!((8..=MOST).contains(&limits.most), "{files}: {}", limits.most);
            assert!(files < 16 || (limits.most as u64) < files, "{files}: {}", limits.most);
        }
    }
}
