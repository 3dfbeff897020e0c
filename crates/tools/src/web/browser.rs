//! Screenshots of pages by a local Chromium, where one is installed and the settings allow it.
//!
//! The browser runs the page's scripts, so it is confined: the page's own host is pinned to the address that was checked,
//! no other name or address resolves, no proxy is used, and its profile is a temporary folder. Its sandbox stays on.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use url::Url;

use crate::process::{self, Program};
use crate::spec::ToolError;
use larder_engine::settings::ToolSettings;

/// Time for one screenshot.
pub(super) const TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes of one screenshot.
const LARGEST: u64 = 10_000_000;
/// Names of Chromium's executable.
const NAMES: [&str; 5] =
    ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "headless-shell"];
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

pub(super) struct Browser {
    path: PathBuf,
}

impl Browser {
    /// The configured or detected browser; `None` if screenshots are off or none is installed.
    ///
    /// # Errors
    /// [`ToolError::Settings`] when the settings name one that does not exist.
    pub(super) fn of(settings: &ToolSettings) -> Result<Option<Self>, ToolError> {
        if !settings.screenshots {
            return Ok(None);
        }
        match &settings.browser {
            Some(path) if path.is_file() => Ok(Some(Self { path: path.clone() })),
            Some(path) => Err(ToolError::Settings(format!(
                "tools.browser is {}, which is not a file; set it to the path of a Chromium, or remove it",
                path.display()
            ))),
            None => Ok(NAMES.into_iter().find_map(process::find).map(|path| Self { path })),
        }
    }

    /// A screenshot of the page, as PNG.
    ///
    /// # Errors
    /// Why there is none, as text.
    pub(super) async fn picture(&self, url: &str, peer: IpAddr) -> Result<Vec<u8>, String> {
        let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
        let host = host.ok_or("the page names no host")?;
        let folder = tempfile::tempdir().map_err(|error| format!("no folder for the browser: {error}"))?;
        let shot = folder.path().join("screenshot.png");
        let args = arguments(url, &host, peer, folder.path(), &shot);
        let program = Program {
            path: &self.path,
            args: &args,
            folder: folder.path(),
            env: &[],
            limit: 4_096,
            sandbox: None,
        };
        let ran = process::run(&program, TIMEOUT).await.map_err(|error| error.to_string())?;
        let size = std::fs::metadata(&shot).map(|data| data.len()).unwrap_or(0);
        let said = String::from_utf8_lossy(&ran.stderr.bytes);
        let said: String = said.lines().last().unwrap_or_default().chars().take(200).collect();
        if size == 0 {
            return Err(format!("the browser took none: {said}"));
        }
        let bytes = if size > LARGEST { Vec::new() } else { std::fs::read(&shot).unwrap_or_default() };
        if bytes.starts_with(PNG) {
            Ok(bytes)
        } else {
            Err("the browser made no PNG of a sane size".to_owned())
        }
    }
}

fn arguments(url: &str, host: &str, peer: IpAddr, profile: &Path, shot: &Path) -> Vec<String> {
    let address = match peer {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    };
    let mut args: Vec<String> = [
        "--headless=new",
        "--disable-gpu",
        "--hide-scrollbars",
        "--window-size=1280,1600",
        "--virtual-time-budget=5000",
        "--incognito",
        "--no-first-run",
        "--no-pings",
        "--no-proxy-server",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-extensions",
        "--disable-quic",
        "--disable-sync",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    ]
    .map(str::to_owned)
    .to_vec();
    args.push(format!("--host-resolver-rules=MAP {host} {address},MAP * ~NOTFOUND"));
    args.push(format!("--user-data-dir={}", profile.display()));
    args.push(format!("--screenshot={}", shot.display()));
    // The address was parsed as one of http or https, so it cannot be taken for an option.
    args.push(url.to_owned());
    args
}
