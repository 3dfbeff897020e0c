//! Options of `larder revisions`.

use clap::{Args, Subcommand};

pub const EXAMPLES: &str = "Examples:\n  larder revisions\n  larder revisions --before 200\n  larder revisions show 3\n  larder revisions diff 0 3\n  \
                            larder revisions revert 2";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct RevisionsArgs {
    #[command(subcommand)]
    pub command: Option<RevisionsCommand>,
    /// List the newest 100 revisions before revision N, instead of the newest of all
    #[arg(long, value_name = "N", value_parser = super::number::<u64>)]
    pub before: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub enum RevisionsCommand {
    /// Show a revision: why it was written, what it changed, everything learned in it and whether that is used
    #[command(after_help = "Examples:\n  larder revisions show 3\n  larder revisions show 3 --format json")]
    Show {
        /// Number of the revision; in revision 0 nothing is learned
        number: u64,
    },
    /// Compare what is learned in two revisions
    #[command(
        after_help = "Examples:\n  larder revisions diff 0 3\n  larder revisions diff 2 3 --format json"
    )]
    Diff {
        /// Number of the first revision
        from: u64,
        /// Number of the second revision
        to: u64,
    },
    /// Write a new revision in which exactly what was learned in revision N is learned again
    #[command(after_help = "Examples:\n  larder revisions revert 2\n  larder revisions revert 0")]
    Revert {
        /// Number of the revision to go back to; 0 forgets everything learned
        #[arg(value_name = "N")]
        number: u64,
    },
}
