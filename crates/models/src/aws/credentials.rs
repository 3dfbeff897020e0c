//! AWS credentials from the sources that Amazon's own tools know, over the one HTTP client of this crate: the
//! environment, the shared files with their profiles (keys, roles, SSO, programs), web identity, and the roles of
//! containers and machines.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use aws_config::profile::ProfileFileCredentialsProvider;
use aws_config::provider_config::ProviderConfig;
use aws_config::{BehaviorVersion, Region};
use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_smithy_runtime_api::client::http::{
    HttpClient as SmithyClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use reqwest::Url;
use reqwest::header::HeaderMap;
use tokio::sync::Mutex;

use super::USUAL;
use crate::http::{HttpClient, chain};

/// How long before they expire credentials are renewed.
const EARLY: Duration = Duration::from_secs(300);
/// How long after a failure the sources are asked again.
const AGAIN: Duration = Duration::from_secs(5);

/// The credentials of a profile, fetched on first use and kept until shortly before they expire.
#[derive(Debug)]
pub struct AwsCredentials {
    connector: Connector,
    profile: String,
    region: String,
    state: Mutex<CredentialState>,
}

#[derive(Debug, Default)]
struct CredentialState {
    source: Option<SharedCredentialsProvider>,
    current: Option<Credentials>,
    /// When the sources had none, so that requests that wait do not ask them one after another.
    failed: Option<Instant>,
}

impl AwsCredentials {
    /// The credentials of `profile`; [`USUAL`] means all sources in their usual order. Roles are assumed in `region`.
    pub fn new(http: Arc<HttpClient>, profile: &str, region: &str) -> Self {
        let (profile, region) = (profile.to_owned(), region.to_owned());
        Self { connector: Connector(http), profile, region, state: Mutex::default() }
    }

    /// Credentials that are valid now.
    ///
    /// # Errors
    /// In words, if no source has any.
    pub async fn get(&self) -> Result<Credentials, String> {
        // Concurrent requests wait for the same answer.
        let mut state = self.state.lock().await;
        if let Some(current) = state.current.as_ref().filter(|current| is_valid(current, EARLY)) {
            return Ok(current.clone());
        }
        if state.failed.is_some_and(|failed| failed.elapsed() < AGAIN) {
            return Err(self.none());
        }
        let source = match &state.source {
            Some(source) => source.clone(),
            None => state.source.insert(self.source().await?).clone(),
        };
        match source.provide_credentials().await {
            Ok(credentials) => Ok(state.current.insert(credentials).clone()),
            Err(error) => match state.current.as_ref().filter(|current| is_valid(current, Duration::ZERO)) {
                Some(current) => Ok(current.clone()),
                None => {
                    // It may name files and roles, and quote programs: nothing for those who call a gateway.
                    tracing::warn!(profile = self.profile, "no AWS credentials: {}", chain(&error));
                    state.failed = Some(Instant::now());
                    Err(self.none())
                }
            },
        }
    }

    fn none(&self) -> String {
        format!(
            "no AWS credentials (profile `{}`); the log says why. Set AWS_BEARER_TOKEN_BEDROCK to a Bedrock API key, or \
             give credentials in one of the usual ways (docs/guide/bedrock.md)",
            self.profile
        )
    }

    async fn source(&self) -> Result<SharedCredentialsProvider, String> {
        let region = Region::new(self.region.clone());
        if self.profile == USUAL {
            let config = aws_config::defaults(BehaviorVersion::latest())
                .region(region)
                .http_client(self.connector.clone())
                .load()
                .await;
            return config.credentials_provider().ok_or_else(|| "no source of AWS credentials".to_owned());
        }
        let config =
            ProviderConfig::default().with_region(Some(region)).with_http_client(self.connector.clone());
        let file = ProfileFileCredentialsProvider::builder().configure(&config).profile_name(&self.profile);
        Ok(SharedCredentialsProvider::new(file.build()))
    }
}

fn is_valid(credentials: &Credentials, left: Duration) -> bool {
    credentials.expiry().is_none_or(|expiry| expiry > SystemTime::now() + left)
}

/// This crate's HTTP client as the sources of credentials call it.
#[derive(Debug, Clone)]
struct Connector(Arc<HttpClient>);

impl SmithyClient for Connector {
    fn http_connector(&self, settings: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        let limits = [settings.connect_timeout(), settings.read_timeout()];
        let limit = limits.into_iter().flatten().reduce(|all, limit| all + limit);
        SharedHttpConnector::new(LimitedConnector { http: Arc::clone(&self.0), limit })
    }
}

#[derive(Debug, Clone)]
struct LimitedConnector {
    http: Arc<HttpClient>,
    /// The longest time for one exchange; a machine without a role does not answer at all.
    limit: Option<Duration>,
}

impl HttpConnector for LimitedConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let LimitedConnector { http, limit } = self.clone();
        HttpConnectorFuture::new(async move {
            let sent = exchange(&http, request);
            match limit {
                Some(limit) => tokio::time::timeout(limit, sent)
                    .await
                    .unwrap_or_else(|error| Err(ConnectorError::timeout(error.into()))),
                None => sent.await,
            }
        })
    }
}

async fn exchange(http: &HttpClient, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
    let user = |error: Box<dyn std::error::Error + Send + Sync>| ConnectorError::user(error);
    let url = Url::parse(request.uri()).map_err(|error| user(error.into()))?;
    let request = request.try_into_http1x().map_err(|error| user(error.into()))?;
    let (parts, body) = request.into_parts();
    let body = body.bytes().map(<[u8]>::to_vec).unwrap_or_default();
    let client = http.client(&url).map_err(|error| user(error.into()))?;
    let sent = client.request(parts.method, url).headers(parts.headers).body(body).send().await;
    let response = sent.map_err(failed)?;
    let (status, headers) = (response.status(), response.headers().clone());
    let body = response.bytes().await.map_err(failed)?;
    let mut answer = HttpResponse::new(status.into(), SdkBody::from(body));
    copy(&headers, &mut answer);
    Ok(answer)
}

fn copy(headers: &HeaderMap, answer: &mut HttpResponse) {
    for (name, value) in headers {
        if let Ok(value) = value.to_str() {
            answer.headers_mut().append(name.as_str().to_owned(), value.to_owned());
        }
    }
}

fn failed(error: reqwest::Error) -> ConnectorError {
    if error.is_timeout() { ConnectorError::timeout(error.into()) } else { ConnectorError::io(error.into()) }
}
