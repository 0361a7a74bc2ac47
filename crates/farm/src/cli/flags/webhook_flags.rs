//! `--webhook`: address that is notified of changes.

use std::path::PathBuf;

use model::error::{Exit, Failure, Result};
use model::text::quoted;

use crate::web::Webhook;

const LIMIT: u64 = 4 << 10;

#[derive(clap::Args, Default)]
pub struct WebhookFlags {
    /// Report each change to this address, which is https or on this machine: a signed POST of a
    /// JSON document, repeated until it is accepted
    #[arg(long, value_name = "URL", requires = "webhook_secret")]
    webhook: Option<String>,
    /// A file with the secret for the signature: whsec_ followed by base64
    #[arg(long, value_name = "FILE", requires = "webhook")]
    webhook_secret: Option<PathBuf>,
}

impl WebhookFlags {
    /// The address with its secret, if one is given.
    pub fn open(&self) -> Result<Option<Webhook>> {
        let (Some(url), Some(file)) = (&self.webhook, &self.webhook_secret) else { return Ok(None) };
        let secret = host::read_user_file(file, LIMIT).map_err(|error| {
            let what = format!("--webhook-secret: cannot read {}", quoted(file));
            Failure::of_call(what, &error, Exit::Usage, "name a file that you may read")
        })?;
        Webhook::new(url, &String::from_utf8_lossy(&secret)).map(Some)
    }
}
