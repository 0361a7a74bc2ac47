//! Which connections are open, and how far each is: where there is no place for another one, the
//! oldest that has nothing under way is closed.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::tcp::OwnedReadHalf;
use tokio::sync::Notify;
use tokio::time::sleep;

/// Descriptors that are left for the store, for files and for what else is not a connection.
const RESERVED: usize = 128;
/// No farm needs more connections at the same time: boards send every few minutes.
const MOST: usize = 16_384;

/// How many connections there may be, and how long each may keep the server waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    pub most: usize,
    /// From one address; none where all come from a proxy or from this machine.
    pub most_of_one: Option<usize>,
    /// From its start to the end of the first request's head, with the handshake of TLS.
    pub first: Duration,
    /// From the first byte of a later head to its last,
    pub head: Duration,
    /// and between two requests, or two parts of an answer that are taken.
    pub idle: Duration,
}

impl ConnectionLimits {
    /// For a process that may have so many files open; half of the places are for one address.
    pub fn of_files(files: u64, each_address: bool) -> ConnectionLimits {
        let files = usize::try_from(files).unwrap_or(usize::MAX);
        let most = files.saturating_sub(RESERVED).max(files / 4).clamp(8, MOST);
        ConnectionLimits {
            most,
            most_of_one: each_address.then_some(most / 2),
            first: Duration::from_secs(20),
            head: Duration::from_secs(15),
            // A proxy that keeps connections for a minute closes them first.
            idle: Duration::from_secs(75),
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

#[derive(Debug)]
struct Kept {
    standing: ConnectionStanding,
    requests: u64,
    is_closed: bool,
    /// Of the task that reads from it.
    reader: Option<Waker>,
}

/// A connection, as those see it who serve it.
#[derive(Debug)]
pub struct FarmConnection {
    from: IpAddr,
    kept: Mutex<Kept>,
    stream: OnceLock<Weak<OwnedReadHalf>>,
}

impl FarmConnection {
    fn new(from: IpAddr) -> Arc<FarmConnection> {
        let standing = ConnectionStanding::New;
        let kept = Kept { standing, requests: 0, is_closed: false, reader: None };
        Arc::new(FarmConnection { from, kept: Mutex::new(kept), stream: OnceLock::new() })
    }

    /// Notes what it is over.
    pub fn is_of(&self, stream: &Arc<OwnedReadHalf>) {
        let _ = self.stream.set(Arc::downgrade(stream));
    }

    /// Ends where its client sends nothing more. While a further request is there that is not
    /// known.
    pub async fn gone(&self) {
        const NEXT_LOOK: Duration = Duration::from_millis(200);
        while let Some(stream) = self.stream.get().and_then(Weak::upgrade) {
            match stream.ready(Interest::READABLE).await {
                Ok(state) if !state.is_read_closed() => sleep(NEXT_LOOK).await,
                _ => return,
            }
        }
        std::future::pending().await
    }

    /// Notes that a request is there, until the value is dropped.
    pub fn answering(self: &Arc<Self>) -> AnswerUnderWay {
        let mut kept = self.kept();
        kept.standing = ConnectionStanding::Answering;
        kept.requests = kept.requests.saturating_add(1);
        AnswerUnderWay(self.clone())
    }

    /// Notes whether the rest of a request is awaited.
    pub fn receives(&self, receives: bool) {
        let standing = if receives { ConnectionStanding::Receiving } else { ConnectionStanding::Answering };
        self.kept().standing = standing;
    }

    /// How far it is, and how many requests there were; none where it is to be closed. The reader
    /// is woken when that comes later.
    pub fn standing(&self, reader: Option<&Waker>) -> Option<(ConnectionStanding, u64)> {
        let mut kept = self.kept();
        if let Some(reader) = reader
            && !kept.reader.as_ref().is_some_and(|known| known.will_wake(reader))
        {
            kept.reader = Some(reader.clone());
        }
        (!kept.is_closed).then_some((kept.standing, kept.requests))
    }

    fn close(&self) {
        let reader = {
            let mut kept = self.kept();
            kept.is_closed = true;
            kept.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// That a request is being answered.
pub struct AnswerUnderWay(Arc<FarmConnection>);

impl Drop for AnswerUnderWay {
    fn drop(&mut self) {
        self.0.kept().standing = ConnectionStanding::Idle;
    }
}

/// All connections.
#[derive(Debug)]
pub struct OpenConnections {
    pub limits: ConnectionLimits,
    places: Mutex<Places>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Places {
    /// In the order in which they came.
    all: BTreeMap<u64, Arc<FarmConnection>>,
    of_address: BTreeMap<IpAddr, usize>,
    next: u64,
}

/// What becomes of a connection that comes.
enum Admission {
    Taken(u64),
    /// All others are being answered.
    Wait,
    /// All others of its address are.
    Refused,
}

impl OpenConnections {
    pub fn new(limits: ConnectionLimits) -> Arc<OpenConnections> {
        Arc::new(OpenConnections { limits, places: Mutex::default(), freed: Notify::new() })
    }

    /// A place for a connection, as soon as there is one; none where its address has too many.
    pub async fn take(self: &Arc<Self>, from: IpAddr) -> Option<ConnectionPlace> {
        let connection = FarmConnection::new(from.to_canonical());
        loop {
            let admission = self.places().admit(&connection, &self.limits);
            match admission {
                Admission::Taken(number) => {
                    return Some(ConnectionPlace { all: self.clone(), connection, number });
                }
                Admission::Refused => return None,
                Admission::Wait => self.freed.notified().await,
            }
        }
    }

    fn places(&self) -> std::sync::MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    fn admit(&mut self, connection: &Arc<FarmConnection>, limits: &ConnectionLimits) -> Admission {
        let own = self.of_address.get(&connection.from).copied().unwrap_or(0);
        if limits.most_of_one.is_some_and(|most| own >= most) && !self.close_one(Some(connection.from)) {
            return Admission::Refused;
        }
        if self.all.len() >= limits.most && !self.close_one(None) {
            return Admission::Wait;
        }
        let number = self.next;
        self.next += 1;
        self.all.insert(number, connection.clone());
        *self.of_address.entry(connection.from).or_default() += 1;
        Admission::Taken(number)
    }

    /// Closes the one that is missed least, of an address or of all; whether there was one.
    fn close_one(&mut self, of: Option<IpAddr>) -> bool {
        let standing = |(number, one): (&u64, &Arc<FarmConnection>)| {
            let (standing, _) = one.standing(None)?;
            (standing < ConnectionStanding::Answering).then_some((standing, *number))
        };
        let of_it = self.all.iter().filter(|(_, one)| of.is_none_or(|of| one.from == of));
        let Some((_, number)) = of_it.filter_map(standing).min() else { return false };
        if let Some(connection) = self.remove(number) {
            connection.close();
        }
        true
    }

    fn remove(&mut self, number: u64) -> Option<Arc<FarmConnection>> {
        let connection = self.all.remove(&number)?;
        if let Some(count) = self.of_address.get_mut(&connection.from) {
            *count -= 1;
            if *count == 0 {
                self.of_address.remove(&connection.from);
            }
        }
        Some(connection)
    }
}

/// The place of a connection, until the value is dropped.
#[derive(Debug)]
pub struct ConnectionPlace {
    all: Arc<OpenConnections>,
    pub connection: Arc<FarmConnection>,
    number: u64,
}

impl ConnectionPlace {
    pub fn limits(&self) -> &ConnectionLimits {
        &self.all.limits
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.all.places().remove(self.number);
        self.all.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(most: usize, most_of_one: Option<usize>) -> Arc<OpenConnections> {
        OpenConnections::new(ConnectionLimits {
            most,
            most_of_one,
            ..ConnectionLimits::of_files(1_024, false)
        })
    }

    fn is_closed(place: &ConnectionPlace) -> bool {
        place.connection.standing(None).is_none()
    }

    #[test]
    fn the_oldest_that_has_nothing_under_way_makes_place() {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let from: IpAddr = "10.0.0.1".parse().unwrap();
            let all = open(3, None);
            let mut three = Vec::new();
            for _ in 0..3 {
                three.push(all.take(from).await.unwrap());
            }
            let first = three[0].connection.answering();
            let fourth = all.take(from).await.unwrap();
            assert_eq!(three.iter().map(is_closed).collect::<Vec<_>>(), [false, true, false]);
            // One that was answered goes after one that never asked, one that still sends after it.
            drop(first);
            let _asks = fourth.connection.answering();
            fourth.connection.receives(true);
            let fifth = all.take(from).await.unwrap();
            assert!(is_closed(&three[2]) && !is_closed(&three[0]));
            let _busy = fifth.connection.answering();
            let sixth = all.take(from).await.unwrap();
            assert!(is_closed(&three[0]) && !is_closed(&fourth));
            let _sixth = sixth.connection.answering();
            let seventh = all.take(from).await.unwrap();
            assert!(is_closed(&fourth) && !is_closed(&fifth) && !is_closed(&sixth));
            // Where all are being answered the next waits until one has gone.
            let _seventh = seventh.connection.answering();
            let waited = tokio::time::timeout(Duration::from_millis(50), all.take(from)).await;
            assert!(waited.is_err());
            drop(fifth);
            assert!(all.take(from).await.is_some());
        });
    }

    #[test]
    fn an_address_has_its_part_and_no_more() {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let (one, other): (IpAddr, IpAddr) =
                ("::ffff:10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
            let all = open(9, Some(2));
            let elsewhere = all.take(other).await.unwrap();
            let first = all.take(one).await.unwrap();
            let second = all.take("10.0.0.1".parse().unwrap()).await.unwrap();
            let third = all.take(one).await.unwrap();
            assert!(is_closed(&first) && !is_closed(&second) && !is_closed(&elsewhere));
            let _busy = (second.connection.answering(), third.connection.answering());
            assert!(all.take(one).await.is_none() && all.take(other).await.is_some());
            // What was closed is not counted twice when it goes.
            drop((first, second));
            assert!(all.take(one).await.is_some());
            assert_eq!(all.places().of_address.len(), 2);
        });
    }

    #[test]
    fn there_are_fewer_connections_than_descriptors() {
        for files in [0, 16, 64, 300, 1_024, 65_536, u64::MAX] {
            let limits = ConnectionLimits::of_files(files, true);
            assert!((8..=MOST).contains(&limits.most), "{files}: {}", limits.most);
            assert!(files < 16 || (limits.most as u64) < files, "{files}: {}", limits.most);
        }
        assert_eq!(ConnectionLimits::of_files(300, true).most_of_one, Some(86));
    }
}
