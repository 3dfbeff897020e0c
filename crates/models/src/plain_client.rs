//! Requests that ask no model: traces on their way to a collector, and what a running gateway says of itself. Knows
//! no wire format.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};

use crate::chat::ModelError;
use crate::http::{HttpEndpoint, within};
use crate::secret::Secret;

/// Bytes of a reply that are taken.
const MAX_REPLY_BYTES: usize = 16 * 1024 * 1024;

/// A server that serves no model.
#[derive(Debug)]
pub struct PlainClient {
    endpoint: HttpEndpoint,
    limit: Duration,
}

impl PlainClient {
    /// A server called `name` in errors, with a bearer key where it wants one, given `limit` for each reply.
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`] when the address or the key cannot be used.
    pub fn new(name: &str, base_url: &str, key: Option<Secret>, limit: Duration) -> Result<Self, ModelError> {
        let key = key.map(|key| ("authorization", key));
        Ok(Self { endpoint: HttpEndpoint::new(Arc::default(), name, base_url, key, &[])?, limit })
    }

    /// Sends bytes to `path` (without a leading slash) under the server's address; gives status and bytes of the
    /// reply with any status. Nothing is sent again.
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`] when the path leads out of the base address; [`ModelError::Unreachable`] when nothing
    /// was sent; [`ModelError::Protocol`] when the connection broke or the reply is larger than 16 MiB;
    /// [`ModelError::Timeout`] when the limit passes.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), ModelError> {
        let call = async {
            let mut response = self.endpoint.forward(method, path, headers, body).await?;
            let mut reply = Vec::new();
            while let Some(bytes) = response.chunk().await.map_err(|error| self.endpoint.broken(&error))? {
                reply.extend_from_slice(&bytes);
                if reply.len() > MAX_REPLY_BYTES {
                    let words = format!("the reply has more than {MAX_REPLY_BYTES} bytes");
                    return Err(self.endpoint.protocol(words));
                }
            }
            Ok((response.status(), reply.into()))
        };
        within(self.endpoint.name(), self.limit, call).await
    }

    /// As [`PlainClient::send`], with nothing but a path.
    ///
    /// # Errors
    /// As [`PlainClient::send`].
    pub async fn get(&self, path: &str) -> Result<(StatusCode, Bytes), ModelError> {
        self.send(Method::GET, path, HeaderMap::new(), Bytes::new()).await
    }

    /// Posts bytes.
    ///
    /// # Errors
    /// As [`PlainClient::send`].
    pub async fn post_bytes(
        &self,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), ModelError> {
        self.send(Method::POST, path, headers, body).await
    }
}
