//! Signs requests to Bedrock. Knows credentials only as something that [`super::credentials`] finds.

use std::sync::Arc;
use std::time::SystemTime;

use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};

use super::credentials::AwsCredentials;
use crate::http::{HttpClient, chain};

/// The service in the scope of a signature.
const SERVICE: &str = "bedrock";
/// What a signature consists of, in requests that others have signed.
const SIGNATURE: [HeaderName; 4] = [
    AUTHORIZATION,
    HeaderName::from_static("x-amz-date"),
    HeaderName::from_static("x-amz-security-token"),
    HeaderName::from_static("x-amz-content-sha256"),
];

/// Signs requests for one region.
#[derive(Debug)]
pub struct AwsSigner {
    credentials: AwsCredentials,
    region: String,
}

impl AwsSigner {
    /// A signer with the credentials of a profile; asks nothing yet.
    ///
    /// # Errors
    /// None in this build.
    pub fn new(http: Arc<HttpClient>, profile: &str, region: &str) -> Result<Self, String> {
        Ok(Self { credentials: AwsCredentials::new(http, profile, region), region: region.to_owned() })
    }

    /// Replaces what a request has of a signature by one of its own.
    ///
    /// # Errors
    /// In words, if there are no credentials, or the request cannot be signed.
    pub async fn sign(
        &self,
        method: &Method,
        url: &Url,
        headers: &mut HeaderMap,
        body: &[u8],
    ) -> Result<(), String> {
        let identity = self.credentials.get().await?.into();
        let wrong = |error: &dyn std::error::Error| format!("the request cannot be signed: {}", chain(error));
        for name in &SIGNATURE {
            headers.remove(name);
        }
        // What a proxy on the way may change is left out.
        let is_signed =
            |name: &HeaderName| *name == CONTENT_TYPE || name.as_str().starts_with("x-amzn-bedrock-");
        let signed = headers.iter().filter(|(name, _)| is_signed(name));
        let signed = signed.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let request = SignableRequest::new(method.as_str(), url.as_str(), signed, SignableBody::Bytes(body));
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(SERVICE)
            .time(SystemTime::now())
            .settings(SigningSettings::default())
            .build()
            .map_err(|error| wrong(&error))?
            .into();
        let output = sign(request.map_err(|error| wrong(&error))?, &params).map_err(|error| wrong(&error))?;
        for (name, value) in output.output().headers() {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| wrong(&error))?;
            let mut value = HeaderValue::from_str(value).map_err(|error| wrong(&error))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(())
    }
}
