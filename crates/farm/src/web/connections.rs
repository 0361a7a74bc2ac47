//! Which connections are open, and how far each is: where there is no place for another one, the
//! oldest that has nothing under way is closed. No layer does that, and a concurrency limit alone
//! would let idle connections keep all others out.

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
use tokio::time::{sleep, timeout};

/// Descriptors that are left for the store, for files and for what else is not a connection.
const RESERVED: usize = 128;
/// No farm needs more connections at the same time: boards send every few minutes.
const MOST: usize = 16_384;
/// Between two looks at what nothing tells of.
const NEXT_LOOK: Duration = Duration::from_millis(200);

/// How many connections there may be, and how long each may keep the server waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    pub most: usize,
    /// For the handshake of TLS,
    pub handshake: Duration,
    /// for a request's head, from the end of the answer before it,
    pub head: Duration,
    /// and for a client that takes nothing of an answer.
    pub stuck: Duration,
}

impl ConnectionLimits {
    /// For a process that may have so many files open.
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

/// How far a connection is; those before are closed before those after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConnectionStanding {
    /// It has not sent a request yet.
    New,
    /// Its requests are answered.
    Idle,
    /// The rest of a request is awaited.
    Receiving,
    /// The farm works on an answer: it is not closed.
    Answering,
}

/// A connection, as those see it who serve it.
#[derive(Debug)]
pub struct FarmConnection {
    socket: TcpStream,
    standing: AtomicU8,
}

impl FarmConnection {
    /// Over a socket that fails where its client takes nothing for too long.
    pub fn new(socket: TcpStream, stuck: Duration) -> Arc<FarmConnection> {
        // Without it only the kernel's own patience is longer.
        let _ = SockRef::from(&socket).set_tcp_user_timeout(Some(stuck));
        Arc::new(FarmConnection { socket, standing: AtomicU8::new(ConnectionStanding::New as u8) })
    }

    /// The first bytes, which stay to be read.
    pub async fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.peek(buffer).await
    }

    /// Ends where its client sends nothing more. While a further request is there that is not
    /// known.
    pub async fn gone(&self) {
        while let Ok(state) = self.socket.ready(Interest::READABLE).await {
            if state.is_read_closed() {
                return;
            }
            sleep(NEXT_LOOK).await;
        }
    }

    /// Notes how far it is.
    pub fn set_standing(&self, standing: ConnectionStanding) {
        self.standing.store(standing as u8, Ordering::Relaxed);
    }
}

/// The stream of a connection. Who serves it has it to himself, and whether its client has gone is
/// seen beside it.
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

/// All connections, each served by a task.
#[derive(Debug)]
pub struct OpenConnections {
    pub limits: ConnectionLimits,
    /// By the order in which they came.
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

    /// Waits until there is a place for one more, which it makes where it can.
    pub async fn make_room(&self) {
        while self.all().len() >= self.limits.most && !self.close_one() {
            // One may become idle, too.
            let _ = timeout(NEXT_LOOK, self.freed.notified()).await;
        }
    }

    /// Closes the one that is missed least; true if there was one.
    fn close_one(&self) -> bool {
        let mut all = self.all();
        let standings = all.iter().map(|(number, (one, _))| (one.standing.load(Ordering::Relaxed), *number));
        let least = standings.filter(|(standing, _)| *standing < ConnectionStanding::Answering as u8).min();
        let closed = least.and_then(|(_, number)| all.remove(&number));
        closed.as_ref().inspect(|(_, task)| task.abort()).is_some()
    }

    /// Has a connection served until it is over, or is closed for another one.
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

/// The place of a connection, until the value is dropped.
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

    #[test]
    fn there_are_fewer_connections_than_descriptors() {
        for files in [0, 16, 64, 300, 1_024, 65_536, u64::MAX] {
            let limits = ConnectionLimits::of_files(files);
            assert!((8..=MOST).contains(&limits.most), "{files}: {}", limits.most);
            assert!(files < 16 || (limits.most as u64) < files, "{files}: {}", limits.most);
        }
    }
}
