//! Signing requests with AWS credentials (Signature Version 4), in builds with the feature `bedrock`.

#[cfg(feature = "bedrock")]
mod credentials;
#[cfg(feature = "bedrock")]
mod signer;
#[cfg(not(feature = "bedrock"))]
#[path = "unsigned.rs"]
mod signer;

use reqwest::Url;

pub use signer::AwsSigner;

/// The variable with the region (R4-1.3).
pub const REGION: &str = "AWS_REGION";
/// The region if nothing names one (R4-1.3).
pub const DEFAULT_REGION: &str = "us-east-1";
/// The profile whose name means all of the usual sources of credentials.
pub const USUAL: &str = "default";

/// The start of the part of an address that names the service; the region follows.
const SERVICE: &str = "bedrock-runtime";

/// The region that an address of Bedrock names: `bedrock-runtime.REGION.amazonaws.com`, its variants for FIPS, and those
/// of private endpoints.
pub fn region(address: &Url) -> Option<&str> {
    let mut parts = address.host_str().filter(|host| host.contains("amazonaws."))?.split('.');
    parts.find(|part| part.starts_with(SERVICE))?;
    parts.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_region_is_that_of_the_address() {
        for (address, expected) in [
            ("https://bedrock-runtime.eu-west-1.amazonaws.com/", Some("eu-west-1")),
            ("https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com", Some("us-gov-west-1")),
            ("https://bedrock-runtime.cn-north-1.amazonaws.com.cn", Some("cn-north-1")),
            ("https://vpce-1-x.bedrock-runtime.us-east-2.vpce.amazonaws.com", Some("us-east-2")),
            ("http://127.0.0.1:8000", None),
            ("https://bedrock-runtime.example.com", None),
        ] {
            assert_eq!(region(&Url::parse(address).unwrap()), expected, "{address}");
        }
    }
}
