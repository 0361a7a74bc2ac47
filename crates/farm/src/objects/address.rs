//! Address of a bucket, and the keys for it.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use host::is_this_machine;
use model::error::{Failure, Result};
use model::text::quoted_value;
use object_store::aws::AmazonS3Builder;
use object_store::{BackoffConfig, RetryConfig};
use ureq::http::Uri;

use super::bucket::ObjectBucket;
use super::http::UreqConnector;

const SCHEME: &str = "s3://";
/// Default region, as in other tools for S3.
const REGION: &str = "us-east-1";
/// Maximum length of a bucket's name, and of a part of a prefix.
const LONGEST_PART: usize = 100;
/// Number of retries after the first attempt, within this time.
const RETRIES: usize = 2;
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

/// Environment variables for object stores: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
/// `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT_URL`. Flags would be visible in the list of
/// processes.
#[derive(Clone, Default)]
pub struct ObjectKeys {
    pub id: Option<OsString>,
    pub secret: Option<OsString>,
    pub session: Option<OsString>,
    pub region: Option<OsString>,
    pub endpoint: Option<OsString>,
}

impl fmt::Debug for ObjectKeys {
    /// Omits the keys, as others may see the output.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("ObjectKeys").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// A bucket, and the prefix of the bundles in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketAddress {
    bucket: String,
    prefix: String,
}

impl BucketAddress {
    /// The bucket given by `--objects`; `None` for a folder. A word with a colon is not a folder: a
    /// missing slash must not create one.
    pub fn of(objects: &Path) -> Result<Option<BucketAddress>> {
        let text = objects.to_string_lossy();
        let Some(scheme) = scheme_of(&text) else { return Ok(None) };
        let wrong = || {
            Failure::usage(format!(
                "invalid --objects {}: expected s3://BUCKET/PREFIX or a folder, with ./ before its name",
                // Text that looks like an address may contain a password.
                quoted_value(scheme)
            ))
        };
        let rest = text.strip_prefix(SCHEME).ok_or_else(wrong)?.trim_end_matches('/');
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let check = |what: &str, part: &str| match fault_of(part) {
            None => Ok(()),
            Some(fault) => Err(Failure::usage(format!(
                "--objects: {what} {fault}: expected s3://BUCKET/PREFIX, with parts of 1 to {LONGEST_PART} \
                 characters A-Z, a-z, 0-9, '.', '_' and '-' that do not begin with '.'"
            ))),
        };
        check("the name of the bucket", bucket)?;
        if !prefix.is_empty() {
            prefix.split('/').try_for_each(|part| check("a part of the prefix", part))?;
        }
        Ok(Some(BucketAddress { bucket: bucket.to_owned(), prefix: prefix.to_owned() }))
    }

    /// The bucket, with the keys of the environment. No request is made yet.
    pub fn open(&self, keys: &ObjectKeys) -> Result<Arc<ObjectBucket>> {
        let id = text_of(&keys.id, "AWS_ACCESS_KEY_ID")?;
        let secret = text_of(&keys.secret, "AWS_SECRET_ACCESS_KEY")?;
        let (Some(id), Some(secret)) = (id, secret) else {
            return Err(Failure::usage(format!(
                "--objects: {self} requires credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in \
                 the environment"
            )));
        };
        let region = text_of(&keys.region, "AWS_REGION")?.unwrap_or(REGION);
        let endpoint = text_of(&keys.endpoint, "AWS_ENDPOINT_URL")?;
        let is_encrypted = endpoint.map_or(Ok(true), is_encrypted)?;
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&self.bucket)
            .with_region(region)
            .with_access_key_id(id)
            .with_secret_access_key(secret)
            .with_allow_http(!is_encrypted)
            // Not every server has the request that removes many at once.
            .with_disable_bulk_delete(true)
            .with_retry(RetryConfig {
                max_retries: RETRIES,
                retry_timeout: RETRY_TIMEOUT,
                backoff: BackoffConfig {
                    init_backoff: Duration::from_millis(100),
                    ..BackoffConfig::default()
                },
            })
            .with_http_connector(UreqConnector::new(is_encrypted));
        if let Some(token) = text_of(&keys.session, "AWS_SESSION_TOKEN")? {
            builder = builder.with_token(token);
        }
        builder = match endpoint {
            Some(endpoint) => builder.with_endpoint(endpoint.trim_end_matches('/')),
            // A dot in its name is not in the certificate of Amazon's names of buckets.
            None => builder.with_virtual_hosted_style_request(!self.bucket.contains('.')),
        };
        let store = builder.build().map_err(|error| {
            Failure::usage(format!(
                "--objects: {self} cannot be used: {}",
                model::text::excerpt(&error.to_string())
            ))
        })?;
        Ok(Arc::new(ObjectBucket::new(Arc::new(store), self.to_string(), &self.prefix)))
    }
}

impl fmt::Display for BucketAddress {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{SCHEME}{}", self.bucket)?;
        if self.prefix.is_empty() { Ok(()) } else { write!(to, "/{}", self.prefix) }
    }
}

/// Part before a colon if it is valid as the scheme of an address (RFC 3986).
fn scheme_of(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once(':')?;
    let is_plain = scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    (is_plain && scheme.starts_with(|c: char| c.is_ascii_alphabetic())).then_some(scheme)
}

/// Fault of a bucket's name, or of a part of a prefix. The part itself is not shown: it may be a
/// password.
fn fault_of(part: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    match part.chars().find(|c| !is_plain(*c)) {
        Some(' ') => Some("contains a blank".to_owned()),
        Some(other) => Some(format!("contains {}", quoted_value(&other.to_string()))),
        None if part.is_empty() => Some("is empty".to_owned()),
        None if part.len() > LONGEST_PART => Some(format!("is {} characters long", part.len())),
        None if part.starts_with('.') => Some("begins with '.'".to_owned()),
        None => None,
    }
}

fn text_of<'a>(value: &'a Option<OsString>, name: &str) -> Result<Option<&'a str>> {
    let Some(value) = value.as_ref().filter(|value| !value.is_empty()) else { return Ok(None) };
    let text = value.to_str().filter(|text| !text.chars().any(char::is_control));
    text.map(Some).ok_or_else(|| {
        Failure::usage(format!("{name} is not UTF-8: set it as given by the operator of the object store"))
    })
}

/// True if requests use TLS. Without it the keys are not sent, but the contents are visible.
fn is_encrypted(endpoint: &str) -> Result<bool> {
    let wrong = |why: &str| Failure::usage(format!("AWS_ENDPOINT_URL: {} {why}", quoted_value(endpoint)));
    let no_address = "is not an address: write https and the name of the machine";
    if endpoint.contains('@') {
        return Err(Failure::usage("AWS_ENDPOINT_URL must not contain a user: the keys identify the client"));
    }
    let uri: Uri = endpoint.parse().map_err(|_| wrong(no_address))?;
    let host = uri.host().ok_or_else(|| wrong(no_address))?;
    match uri.scheme_str() {
        Some("https") => Ok(true),
        Some("http") if is_this_machine(host) => Ok(false),
        _ => Err(wrong("would send bundles unencrypted: write https")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::error::Exit;

    fn keys(endpoint: &str) -> ObjectKeys {
        let of = |text: &str| Some(OsString::from(text));
        ObjectKeys { id: of("key"), secret: of("hidden"), endpoint: of(endpoint), ..ObjectKeys::default() }
    }

    #[test]
    fn a_bucket_is_named_and_a_folder_is_none() {
        let of = |text: &str| BucketAddress::of(Path::new(text));
        assert_eq!(of("s3://runs").unwrap().unwrap().to_string(), "s3://runs");
        assert_eq!(of("s3://runs/a/b/").unwrap().unwrap().to_string(), "s3://runs/a/b");
        for text in ["/srv/objects", "objects", "./s3:/runs", "../s3:", "/srv/s3://x", "a/b:c", "4:x", "ü:x"]
        {
            assert_eq!(of(text).unwrap(), None, "{text}");
        }
        for text in ["s3://", "s3:///x", "s3://b//x", "s3://b/../x", "s3://u:hidden@b", "gs://b", "http://x"]
        {
            let refused = of(text).unwrap_err().message;
            assert!(refused.contains("s3://BUCKET") && !refused.contains("hidden"), "{refused}");
        }
        for text in ["s3:/runs/lab", "s3:runs", "s3:", "S3://runs", "S3:runs", "gs:b", "u:hidden@b", "C:/x"] {
            let refused = of(text).unwrap_err();
            assert_eq!(refused.exit, Exit::Usage, "{text}");
            let told = refused.message;
            assert!(told.contains("expected s3://BUCKET/PREFIX") && !told.contains("hidden"), "{told}");
            assert!(!told.contains('\n'), "{told}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_prefix_is_said_with_what_is_allowed() {
        let long = format!("s3://runs/lab/{}", "x".repeat(LONGEST_PART + 1));
        for (text, words) in [
            ("s3://runs/prüfstand", "a part of the prefix contains 'ü'"),
            ("s3://runs/test lab", "a part of the prefix contains a blank"),
            (long.as_str(), "a part of the prefix is 101 characters long"),
            ("s3://runs/a//b", "a part of the prefix is empty"),
            ("s3://runs/a/.b", "a part of the prefix begins with '.'"),
            ("s3://lab:runs/a", "the name of the bucket contains :"),
            ("s3:///a", "the name of the bucket is empty"),
        ] {
            let refused = BucketAddress::of(Path::new(text)).unwrap_err();
            assert_eq!(refused.exit, Exit::Usage, "{text}");
            let told = refused.message;
            assert!(told.contains(words) && told.contains("1 to 100 characters A-Z, a-z, 0-9"), "{told}");
        }
        let longest = format!("s3://runs/{}", "x".repeat(LONGEST_PART));
        assert_eq!(BucketAddress::of(Path::new(&longest)).unwrap().unwrap().to_string(), longest);
    }

    #[test]
    fn what_the_environment_lacks_or_would_show_is_refused() {
        let address = BucketAddress::of(Path::new("s3://runs")).unwrap().unwrap();
        let refused = |keys: &ObjectKeys| address.open(keys).err().unwrap().message;
        assert!(refused(&ObjectKeys::default()).contains("AWS_SECRET_ACCESS_KEY"));
        for endpoint in
            ["http://store.example", "http://10.0.0.1:9000", "ftp://x", "nothing", "https://u:hidden@x"]
        {
            let refused = refused(&keys(endpoint));
            assert!(refused.contains("AWS_ENDPOINT_URL") && !refused.contains('\n'), "{refused}");
            assert!(!refused.contains("hidden"), "{refused}");
        }
        for endpoint in ["", "https://store.example", "http://127.0.0.1:9000", "http://[::1]:9000/"] {
            assert!(address.open(&keys(endpoint)).is_ok(), "{endpoint}");
        }
        assert!(!format!("{:?}", keys("")).contains("hidden"));
    }
}
