//! Bundles in a bucket of an object store, with a folder as a cache that may be lost at any time.
//!
//! `PREFIX/NAME/SHA256` is a piece of a bundle, `PREFIX/NAME/manifest.json` lists its parts and is
//! put last: without it there is no bundle. Bundles share no pieces, so that one can be removed
//! without a look at the others. Contents are untrusted, as those from a board: each piece is
//! compared with its SHA-256.

mod address;
mod bucket;
mod cache;
mod check;
mod fetch;
mod files;
mod http;
mod owner;
mod put;
mod sweep;
mod thin;

pub use address::{BucketAddress, ObjectKeys};
pub use bucket::{BucketFault, ObjectBucket};
pub use cache::{BundleCache, BundleLease};
pub use files::manifest_of;
pub use sweep::{is_state_of, remove_states, swept};
pub use thin::BucketBundle;

#[cfg(test)]
mod http_tests;
#[cfg(test)]
pub mod tests;
