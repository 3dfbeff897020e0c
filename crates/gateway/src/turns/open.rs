//! The tools that turns call, opened from the settings: checked when settings are read, connected when the first turn
//! needs them. Knows no tool.

use std::sync::Arc;

use larder_engine::config::Config;
use larder_engine::settings::ToolSettings;
use larder_tools::ToolBox;
use tokio::sync::Mutex;

/// The tools of turns, as configured.
pub struct TurnTools {
    settings: ToolSettings,
    connected: Mutex<Option<Arc<ToolBox>>>,
}

impl TurnTools {
    /// Checks the settings of tools.
    ///
    /// # Errors
    /// What is wrong with them, in words.
    pub fn new(config: &Config) -> Result<Self, String> {
        let settings = config.tools();
        ToolBox::new(&settings).map_err(|error| error.to_string())?;
        Ok(Self { settings, connected: Mutex::default() })
    }

    /// The tools, including those of every reachable server. The first call connects to the servers.
    ///
    /// # Errors
    /// What cannot be opened, in words.
    pub async fn get(&self) -> Result<Arc<ToolBox>, String> {
        let mut connected = self.connected.lock().await;
        if let Some(tools) = connected.as_ref() {
            return Ok(Arc::clone(tools));
        }
        let mut tools = ToolBox::new(&self.settings).map_err(|error| error.to_string())?;
        for problem in tools.connect().await {
            tracing::warn!("{problem}");
        }
        Ok(Arc::clone(connected.insert(Arc::new(tools))))
    }
}
