//! One table from errors to exit codes: 0 fine, 1 fixable by the user, 2 usage, 3 upstream or storage, 70 our bug.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use larder_agent::turn::{HostError, TurnError};
use larder_condense::CondenseError;
use larder_conversation::{ConversationError, which_participant};
use larder_engine::MissingRecipe;
use larder_engine::config::ConfigError;
use larder_engine::embedding::EmbeddingError;
use larder_engine::executor::{RunError, class, class_of_model};
use larder_engine::project::ProjectError;
use larder_gateway::app::StartError;
use larder_gateway::auth::AuthError;
use larder_models::chat::ModelError;
use larder_models::weights::WeightsError;
use larder_retrieval::RetrievalError;
use larder_store::{SelectError, StoreError};
use larder_text::tokens::TokenError;

use crate::args::Format;
use crate::turns::STOPPED;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error("cannot start: {0}")]
    Runtime(io::Error),
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{} is not UTF-8 text: byte {offset} is invalid; convert the file first, for example with iconv", path.display())]
    NotUtf8 { path: PathBuf, offset: usize },
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Fixable(String),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Turn(#[from] TurnError),
    #[error(transparent)]
    MissingRecipe(#[from] MissingRecipe),
    #[error(transparent)]
    Auth(AuthError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Select(#[from] SelectError),
    #[error(transparent)]
    Condense(#[from] CondenseError),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Pull(#[from] WeightsError),
    #[error(transparent)]
    Serve(#[from] StartError),
    #[error("stopped; a request under way may have been charged")]
    Stopped,
    #[error("cannot print: {0}")]
    Print(io::Error),
    #[error("a bug in larder: {0}; please report it")]
    Bug(String),
}

/// Fixable by the user.
const FIXABLE: u8 = 1;
/// The command line is wrong.
const USAGE: u8 = 2;
/// A provider or the store failed.
const UPSTREAM: u8 = 3;
/// Our bug.
const BUG: u8 = 70;

impl From<AuthError> for CliError {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::Store(error) => Self::Store(error),
            error => Self::Auth(error),
        }
    }
}

impl From<EmbeddingError> for CliError {
    fn from(error: EmbeddingError) -> Self {
        match error {
            EmbeddingError::Model(error) => Self::Model(error),
            EmbeddingError::Store(error) => Self::Store(error),
        }
    }
}

impl From<ConversationError> for CliError {
    fn from(error: ConversationError) -> Self {
        match error {
            ConversationError::Store(error) => Self::Store(error),
            ConversationError::Run(error) => Self::Run(error),
            ConversationError::WhichParticipant { names } => {
                Self::Fixable(which_participant(&names, "with `--as NAME`"))
            }
            error => Self::Fixable(error.to_string()),
        }
    }
}

impl From<HostError> for CliError {
    fn from(error: HostError) -> Self {
        match error {
            HostError::Store(error) => Self::Store(error),
            error @ HostError::Tools(_) => Self::Fixable(error.to_string()),
        }
    }
}

impl CliError {
    /// Prints the error for people and returns the exit code.
    pub fn report(&self) -> ExitCode {
        self.report_as(Format::Plain)
    }

    /// Prints the error in a format and returns the exit code.
    pub fn report_as(&self, format: Format) -> ExitCode {
        if let Self::Print(error) = self
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            return ExitCode::SUCCESS;
        }
        let (code, exit, message) = (self.class(), self.code(), self.to_string());
        match format {
            Format::Json => crate::output::error_json(
                &serde_json::json!({"error": {"code": code, "exit_code": exit, "message": message}}),
            ),
            Format::Plain => crate::output::error(&message),
        }
        ExitCode::from(exit)
    }

    /// What kind of error it is, for programs.
    fn class(&self) -> &'static str {
        match self {
            Self::Run(error) => class(error),
            Self::Turn(TurnError::Stopped { source, .. }) => class(source),
            Self::Turn(_) => "turn",
            Self::Model(error) => class_of_model(error),
            Self::Usage(_) | Self::Select(_) | Self::Config(ConfigError::Flag { .. }) => "usage",
            Self::Config(_) | Self::Project(_) | Self::MissingRecipe(_) => "settings",
            Self::Auth(AuthError::Hashing(_)) | Self::Bug(_) | Self::Runtime(_) => "bug",
            Self::Auth(_) => "key",
            Self::Store(_) | Self::Serve(StartError::Store(_)) => "store",
            Self::Condense(_) => "condense",
            Self::Read { .. } | Self::Write { .. } | Self::NotUtf8 { .. } | Self::Print(_) => "file",
            Self::Token(_) => "tokenizer",
            Self::Pull(_) => "weights",
            Self::Serve(_) => "serve",
            Self::Stopped => "stopped",
            Self::Fixable(_) => "fixable",
        }
    }

    fn code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Select(_) | Self::Config(ConfigError::Flag { .. }) => USAGE,
            Self::Pull(WeightsError::Unknown(_)) => FIXABLE,
            Self::Model(error) => model_code(error),
            Self::Run(error) => run_code(error),
            Self::Turn(error) => turn_code(error),
            Self::Store(error) | Self::Serve(StartError::Store(error)) => store_code(error),
            Self::Write { .. } | Self::Print(_) | Self::Pull(_) => UPSTREAM,
            Self::Bug(_) | Self::Runtime(_) | Self::Auth(AuthError::Hashing(_)) => BUG,
            Self::Stopped => STOPPED,
            _ => FIXABLE,
        }
    }
}

fn run_code(error: &RunError) -> u8 {
    match error {
        RunError::Model { source, .. } => model_code(source),
        RunError::Store(error) => store_code(error),
        _ => FIXABLE,
    }
}

fn turn_code(error: &TurnError) -> u8 {
    match error {
        TurnError::Stopped { source, .. } => run_code(source),
        TurnError::Store(error) | TurnError::Gather(RetrievalError::Store(error)) => store_code(error),
        TurnError::Gather(RetrievalError::NotGranted { .. }) => BUG,
        _ => FIXABLE,
    }
}

fn model_code(error: &ModelError) -> u8 {
    match error {
        ModelError::NotConfigured { .. } | ModelError::Auth { .. } => FIXABLE,
        _ => UPSTREAM,
    }
}

/// A missing entry is the user's to fix; what storage cannot do, or has lost, is not.
fn store_code(error: &StoreError) -> u8 {
    match error {
        StoreError::Index { .. }
        | StoreError::IndexCorrupt { .. }
        | StoreError::KeyMissing { .. }
        | StoreError::KeyInvalid { .. }
        | StoreError::CorruptBlob { .. }
        | StoreError::Io { .. }
        | StoreError::DiskFull { .. }
        | StoreError::ReadOnly { .. }
        | StoreError::Objects { .. }
        | StoreError::Randomness { .. } => UPSTREAM,
        _ => FIXABLE,
    }
}
