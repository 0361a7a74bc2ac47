//! Requests to a bucket, and their faults as one line.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use futures_util::Stream;
use model::error::{Exit, Failure};
use model::text::excerpt;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Requests at the same time; each may hold a piece of 4 MiB, twice.
const AT_ONCE: usize = 4;
/// No bundle has more objects, not even in the middle of being put once more.
const MOST_OBJECTS: usize = 100_000;

/// A fault, as a line with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BucketFault {
    /// The bucket does not answer: to be tried again.
    Unreachable(String),
    /// The bucket refuses the keys.
    Refused(String),
    /// The bucket does not exist.
    NoBucket(String),
    /// The contents belong to another store.
    OtherStore(String),
    /// The bundle, or a part of it, is missing.
    Missing(String),
    /// Its bytes differ from its manifest.
    Damaged(String),
    /// The folder on this machine cannot be read or written.
    Here(String),
}

impl BucketFault {
    pub fn words(&self) -> &str {
        match self {
            BucketFault::Unreachable(words)
            | BucketFault::Refused(words)
            | BucketFault::NoBucket(words)
            | BucketFault::OtherStore(words)
            | BucketFault::Missing(words)
            | BucketFault::Damaged(words)
            | BucketFault::Here(words) => words,
        }
    }

    /// True for a fault of the bucket rather than of a bundle: further requests fail as well.
    pub fn is_of_bucket(&self) -> bool {
        use BucketFault::{NoBucket, OtherStore, Refused, Unreachable};
        matches!(self, Unreachable(_) | Refused(_) | NoBucket(_) | OtherStore(_))
    }
}

impl From<BucketFault> for Failure {
    fn from(fault: BucketFault) -> Failure {
        let exit = match &fault {
            BucketFault::Refused(_) => Exit::NotPermitted,
            BucketFault::NoBucket(_)
            | BucketFault::OtherStore(_)
            | BucketFault::Missing(_)
            | BucketFault::Damaged(_) => Exit::Usage,
            BucketFault::Unreachable(_) | BucketFault::Here(_) => Exit::Internal,
        };
        Failure { exit, message: fault.words().to_owned() }
    }
}

/// An object as the bucket lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedObject {
    /// Name within its bundle.
    pub name: String,
    pub bytes: u64,
    /// Time when it was put, in seconds since 1970.
    pub put: i64,
}

/// A bucket, or a part of one.
pub struct ObjectBucket {
    store: Arc<dyn ObjectStore>,
    name: String,
    prefix: ObjectPath,
    trouble: watch::Sender<Option<String>>,
    /// Reason for which the contents belong to another store, by the last look at the owner.
    taken: Mutex<Option<String>>,
    #[cfg(test)]
    pub planned: super::tests::PlannedFaults,
}

impl ObjectBucket {
    /// The part of a store below a prefix; the name is for people.
    pub fn new(store: Arc<dyn ObjectStore>, name: String, prefix: &str) -> ObjectBucket {
        ObjectBucket {
            store,
            name,
            prefix: ObjectPath::from(prefix),
            trouble: watch::Sender::new(None),
            taken: Mutex::default(),
            #[cfg(test)]
            planned: super::tests::PlannedFaults::default(),
        }
    }

    /// Name in the syntax of `--objects`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Fault of the last request, or the reason for which the bucket belongs to another store;
    /// `None` while it is in order.
    pub fn trouble(&self) -> watch::Receiver<Option<String>> {
        self.trouble.subscribe()
    }

    /// Requests an absent object, to find out if the bucket answers. It uses GET: the response to a
    /// HEAD has no text, and a missing bucket would look the same.
    pub async fn probe(&self) -> Result<(), BucketFault> {
        self.get_object("probe", "none", 0).await.map(|_| ())
    }

    /// Fails while the bucket does not answer, or belongs to another store; makes a request only
    /// after a fault.
    pub async fn answers(&self) -> Result<(), BucketFault> {
        if let Some(words) = self.taken() {
            return Err(BucketFault::OtherStore(words));
        }
        let is_fine = self.trouble.borrow().is_none();
        if is_fine { Ok(()) } else { self.probe().await }
    }

    fn path(&self, bundle: &str, object: &str) -> ObjectPath {
        self.prefix.clone().join(bundle).join(object)
    }

    pub(super) async fn put_object(
        &self,
        bundle: &str,
        object: &str,
        bytes: Bytes,
    ) -> Result<(), BucketFault> {
        self.put_to(&self.path(bundle, object), bytes).await
    }

    /// Puts an object next to the bundles.
    pub(super) async fn put_at_top(&self, object: &str, bytes: Bytes) -> Result<(), BucketFault> {
        self.put_to(&self.prefix.clone().join(object), bytes).await
    }

    async fn put_to(&self, path: &ObjectPath, bytes: Bytes) -> Result<(), BucketFault> {
        self.asked(async { self.store.put(path, PutPayload::from_bytes(bytes)).await.map(|_| ()) }).await?;
        Ok(())
    }

    /// Bytes of an object; `None` if it does not exist, a fault if it is larger than `most`.
    pub(super) async fn get_object(
        &self,
        bundle: &str,
        object: &str,
        most: u64,
    ) -> Result<Option<Bytes>, BucketFault> {
        match self.get_from(&self.path(bundle, object), most).await? {
            Some(None) => Err(self.damaged(bundle, &format!("{object} has more than {most} bytes"))),
            found => Ok(found.flatten()),
        }
    }

    /// Bytes of an object next to the bundles; empty if it is too large.
    pub(super) async fn get_at_top(&self, object: &str, most: u64) -> Result<Option<Bytes>, BucketFault> {
        let found = self.get_from(&self.prefix.clone().join(object), most).await?;
        Ok(found.map(Option::unwrap_or_default))
    }

    /// Bytes of an object, if it exists, and if it is not too large.
    async fn get_from(&self, path: &ObjectPath, most: u64) -> Result<Option<Option<Bytes>>, BucketFault> {
        let bytes = self.asked(async {
            let found = self.store.get(path).await?;
            match found.meta.size > most {
                true => Ok(None),
                false => found.bytes().await.map(Some),
            }
        });
        bytes.await
    }

    /// Time when an object was put, in seconds since 1970.
    pub(super) async fn put_at(&self, bundle: &str, object: &str) -> Result<Option<i64>, BucketFault> {
        let path = self.path(bundle, object);
        let found = self.asked(async { self.store.head(&path).await }).await?;
        Ok(found.map(|found| found.last_modified.timestamp()))
    }

    pub(super) async fn remove_object(&self, bundle: &str, object: &str) -> Result<(), BucketFault> {
        let path = self.path(bundle, object);
        self.asked(async { self.store.delete(&path).await }).await?;
        Ok(())
    }

    /// Objects of a bundle, including its manifest.
    pub(super) async fn objects(&self, bundle: &str) -> Result<Vec<ListedObject>, BucketFault> {
        let path = self.prefix.clone().join(bundle);
        let listed = self.asked(async {
            let (mut all, mut found) = (Vec::new(), self.store.list(Some(&path)));
            while let Some(one) =
                std::future::poll_fn(|context| Pin::new(&mut found).poll_next(context)).await
            {
                let one = one?;
                let name = one.location.filename().unwrap_or_default().to_owned();
                all.push(ListedObject { name, bytes: one.size, put: one.last_modified.timestamp() });
                if all.len() > MOST_OBJECTS {
                    break;
                }
            }
            Ok(all)
        });
        let listed = listed.await?.unwrap_or_default();
        match listed.len() > MOST_OBJECTS {
            true => Err(self.damaged(bundle, "it is not a bundle: too many objects")),
            false => Ok(listed),
        }
    }

    /// The names of all bundles of which there is something.
    pub(super) async fn bundles(&self) -> Result<Vec<String>, BucketFault> {
        let prefix = (!self.prefix.as_ref().is_empty()).then_some(&self.prefix);
        let listed = self.asked(async { self.store.list_with_delimiter(prefix).await }).await?;
        let names = listed.into_iter().flat_map(|listed| listed.common_prefixes);
        Ok(names.filter_map(|path| path.filename().map(str::to_owned)).collect())
    }

    pub(super) fn damaged(&self, bundle: &str, what: &str) -> BucketFault {
        BucketFault::Damaged(format!(
            "{bundle} is damaged in {} ({}): put it back from a backup of the bucket, or remove it there and \
             import the run again",
            self.name,
            excerpt(what)
        ))
    }

    pub(super) fn missing(&self, bundle: &str, what: &str) -> BucketFault {
        BucketFault::Missing(format!(
            "the bucket {} has {what} of {bundle}: put it back from a backup of the bucket, or import the \
             run again",
            self.name
        ))
    }

    /// Makes a request; `None` if the object is absent. Records if the bucket answers.
    async fn asked<T>(
        &self,
        request: impl Future<Output = object_store::Result<T>>,
    ) -> Result<Option<T>, BucketFault> {
        #[cfg(test)]
        let outcome = self.planned.or_fail(request).await;
        #[cfg(not(test))]
        let outcome = request.await;
        let fault = match outcome {
            Ok(found) => {
                self.note(None);
                return Ok(Some(found));
            }
            // A bucket that is not there answers so, too; a request that puts must not pass then.
            Err(object_store::Error::NotFound { source, .. }) if !is_no_bucket(&*source) => {
                self.note(None);
                return Ok(None);
            }
            Err(error) => self.fault_of(&error),
        };
        self.note(Some(fault.words().to_owned()));
        Err(fault)
    }

    fn fault_of(&self, error: &object_store::Error) -> BucketFault {
        let name = &self.name;
        if is_no_bucket(error) {
            return BucketFault::NoBucket(format!("no bucket {name}: create it, or name another"));
        }
        if is_refusal(error) {
            return BucketFault::Refused(format!(
                "the bucket {name} refuses the keys of the environment: set AWS_ACCESS_KEY_ID and \
                 AWS_SECRET_ACCESS_KEY to keys with permission to read, write, list and delete"
            ));
        }
        BucketFault::Unreachable(format!(
            "cannot reach the bucket {name} ({}): check that its server runs, and AWS_ENDPOINT_URL and \
             AWS_REGION",
            excerpt(&root_of(error).to_string())
        ))
    }

    fn taken(&self) -> Option<String> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records the reason for which the contents belong to another store, or its absence.
    pub(super) fn note_owner(&self, taken: Option<String>) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = taken;
        self.note(None);
    }

    fn note(&self, trouble: Option<String>) {
        let taken = self.taken().filter(|_| trouble.is_none());
        let is_taken = taken.is_some();
        let trouble = trouble.or(taken);
        self.trouble.send_if_modified(|known| {
            let is_other = known.is_some() != trouble.is_some() || (is_taken && *known != trouble);
            // A different fault is displayed, and not reported again, unless waiting does not help.
            *known = trouble;
            is_other
        });
    }
}

/// Innermost cause of an error: the outer ones name requests that users did not make.
fn root_of<'a>(error: &'a (dyn std::error::Error + 'static)) -> &'a (dyn std::error::Error + 'static) {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    root
}

fn is_no_bucket(error: &(dyn std::error::Error + 'static)) -> bool {
    // The server's response; the outer errors contain the bucket's name, which is arbitrary.
    root_of(error).to_string().contains("NoSuchBucket")
}

fn is_refusal(error: &object_store::Error) -> bool {
    match error {
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => true,
        // The library gives the status of a list as text only.
        error => {
            let words = root_of(error).to_string();
            ["403", "401"].iter().any(|status| words.contains(&format!("status code: {status} ")))
        }
    }
}

/// Does work for each of many, some at a time; the first fault ends it.
pub(super) async fn some_at_a_time<T, F>(
    all: impl IntoIterator<Item = T>,
    mut work: impl FnMut(T) -> F,
) -> Result<(), BucketFault>
where
    F: Future<Output = Result<(), BucketFault>> + Send + 'static,
{
    let failed = |_| BucketFault::Here("a thread failed: report this, with the bundle".to_owned());
    let (mut running, mut outcome) = (JoinSet::new(), Ok(()));
    for one in all {
        if running.len() >= AT_ONCE
            && let Some(ended) = running.join_next().await
        {
            outcome = ended.map_err(failed).and_then(|ended| ended);
        }
        if outcome.is_err() {
            break;
        }
        running.spawn(work(one));
    }
    // Running requests are awaited even after a fault: none of them takes effect later.
    while let Some(ended) = running.join_next().await {
        outcome = outcome.and(ended.map_err(failed).and_then(|ended| ended));
    }
    outcome
}

/// Work that waits for files.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BucketFault> + Send + 'static,
) -> Result<T, BucketFault> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.unwrap_or_else(|_| {
        Err(BucketFault::Here("a parser failed: report this, with the bundle".to_owned()))
    })
}
