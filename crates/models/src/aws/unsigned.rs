//! The signer of a build without the feature `bedrock`: there is none, and it says how to get one.

use std::sync::Arc;

use reqwest::header::HeaderMap;
use reqwest::{Method, Url};

use crate::http::HttpClient;

/// Cannot be made.
#[derive(Debug)]
pub enum AwsSigner {}

impl AwsSigner {
    /// Fails.
    ///
    /// # Errors
    /// Always: what to do instead.
    pub fn new(_: Arc<HttpClient>, _: &str, _: &str) -> Result<Self, String> {
        Err("no key: set AWS_BEARER_TOKEN_BEDROCK to a Bedrock API key, or name one with `api_key_env` or \
             `api_key_file`. This build of Larder cannot sign requests with AWS credentials; one that can is built with \
             `cargo install --locked --profile dist --path crates/cli --features bedrock`"
            .to_owned())
    }

    /// Never called.
    #[allow(clippy::unused_async, reason = "the signer of the other build waits for credentials")]
    pub async fn sign(&self, _: &Method, _: &Url, _: &mut HeaderMap, _: &[u8]) -> Result<(), String> {
        match *self {}
    }
}
