//! Options of `larder share`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum ShareCommand {
    /// List what may be published, and what is published and by whom
    #[command(after_help = "Example:\n  larder share list --format json")]
    List,
    /// Show the text that all users will see, ask, and publish it
    #[command(
        after_help = "Examples:\n  larder share publish fact-001\n  larder share publish research_759_abc123 --yes"
    )]
    Publish {
        /// Id that `larder share list` shows
        id: String,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
    /// Revoke something that you published
    #[command(after_help = "Example:\n  larder share revoke 3")]
    Revoke {
        /// Number that `larder share list` shows
        #[arg(value_parser = super::number::<u64>)]
        id: u64,
    },
}
