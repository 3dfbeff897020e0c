//! Requests that call no model: traces sent to a collector, and status queries to a running gateway. Knows no wire
//! format.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};

use crate::chat::ModelError;
use crate::http::{HttpEndpoint, within};
use crate::secret::Secret;

/// Maximum bytes of a reply.
const MAX_REPLY_BYTES: usize = 16 * 1024 * 1024;

/// A server that serves no model.
#[derive(Debug)]
pub struct PlainClient {
    endpoint: HttpEndpoint,
    limit: Duration,
}

impl PlainClient {
    /// A server called `name` in errors, with an optional bearer key and a timeout of `limit` per reply.
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`] when the address or the key cannot be used.
    pub fn new(name: &str, base_url: &str, key: Option<Secret>, limit: Duration) -> Result<Self, ModelError> {
        let key = key.map(|key| ("authorization", key));
        Ok(Self { endpoint: HttpEndpoint::new(Arc::default(), name, base_url, key, &[])?, limit })
    }

    /// Sends bytes to `path` (without a leading slash) under the server's address; returns status and body of any
    /// reply. Never retries.
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`] if the path cannot be sent as it is; [`ModelError::Unreachable`] if
    /// nothing was sent; [`ModelError::Protocol`] if the connection broke or the reply is larger than 16 MiB;
    /// [`ModelError::Timeout`] if the limit passes.
    pub fn send<'a>(
        &'a self,
        method: Method,
        path: &'a str,
        headers: HeaderMap,
        body: Bytes,
    ) -> BoxFuture<'a, Result<(StatusCode, Bytes), ModelError>> {
        async move {
            let call = async {
                let mut response = self.endpoint.forward(method, path, headers, body).await?;
                let mut reply = Vec::new();
                while let Some(bytes) =
                    response.chunk().await.map_err(|error| self.endpoint.broken(&error))?
                {
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
        .boxed()
    }

    /// As [`PlainClient::send`], with a path only.
    ///
    /// # Errors
    /// As [`PlainClient::send`].
    pub fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<(StatusCode, Bytes), ModelError>> {
        self.send(Method::GET, path, HeaderMap::new(), Bytes::new())
    }

    /// Posts bytes.
    ///
    /// # Errors
    /// As [`PlainClient::send`].
    pub fn post_bytes<'a>(
        &'a self,
        path: &'a str,
        headers: HeaderMap,
        body: Bytes,
    ) -> BoxFuture<'a, Result<(StatusCode, Bytes), ModelError>> {
        self.send(Method::POST, path, headers, body)
    }
}
