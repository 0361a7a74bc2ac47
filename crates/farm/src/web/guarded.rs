//! Connections that get on or are closed: who only connects, or begins a head and does not end it,
//! or does not take an answer, holds no descriptor for long.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
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
    read: Arc<OwnedReadHalf>,
    write: OwnedWriteHalf,
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
        let (read, write) = stream.into_split();
        let read = Arc::new(read);
        place.connection.is_of(&read);
        GuardedStream { read, write, place, timer, timed: 0, is_begun: false }
    }

    /// The first bytes, which stay to be read.
    pub async fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read.as_ref().as_ref().peek(buffer).await
    }

    fn set(&mut self, after: Duration, requests: u64) {
        self.timer.set(sleep(after));
        self.timed = requests;
    }

    /// Nothing is there to be read, or nothing more is taken: for how long that may be depends on
    /// how far it is.
    fn wait<T>(&mut self, context: &mut Context<'_>) -> Poll<io::Result<T>> {
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

    /// A part of an answer was taken. The task looks at its timer where it waits, and is woken for
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

/// As [`TcpStream`] reads for who has it to itself.
fn read(stream: &TcpStream, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
    loop {
        ready!(stream.poll_read_ready(context))?;
        match stream.try_read(buffer.initialize_unfilled()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Poll::Ready(Err(error)),
            Ok(count) => {
                buffer.advance(count);
                return Poll::Ready(Ok(()));
            }
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
        match read(self.read.as_ref().as_ref(), context, buffer) {
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
        // Until an answer is sent nothing is read, and who takes none of it is found out here.
        let Poll::Ready(written) = Pin::new(&mut self.write).poll_write(context, bytes) else {
            return self.wait(context);
        };
        self.went(context);
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Poll::Ready(written) = Pin::new(&mut self.write).poll_write_vectored(context, parts) else {
            return self.wait(context);
        };
        self.went(context);
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.write.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Also where the rest of an answer is awaited, which neither reads nor writes.
        if self.place.connection.standing(Some(context.waker())).is_none() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.write).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.write).poll_shutdown(context)
    }
}

/// What a listener gives: a guarded connection, or what is spoken over one.
pub trait Guarded {
    fn guarded(&self) -> &GuardedStream;
}

impl Guarded for GuardedStream {
    fn guarded(&self) -> &GuardedStream {
        self
    }
}

/// Who is at the other end of a connection, and how far that is.
#[derive(Clone, Debug)]
pub struct PeerConnection {
    pub from: SocketAddr,
    pub connection: Arc<FarmConnection>,
}

impl PeerConnection {
    pub fn of(stream: &impl Guarded, from: SocketAddr) -> PeerConnection {
        PeerConnection { from, connection: stream.guarded().place.connection.clone() }
    }
}
