//! `command.run`: a program that the settings allow, in the workspace, without a shell and only with the user's consent.

use std::time::Duration;

use larder_condense::ContentType;
use larder_vault::context::CallStatus;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::workspace::Workspace;
use crate::context::ToolContext;
use crate::planted::PlantedSettings;
use crate::private::PrivatePaths;
use crate::process::{self, KeptOutput, Program, ProgramOutput};
use crate::sandbox::Sandbox;
use crate::spec::{ToolClass, ToolError, ToolModes, ToolOutput, ToolSpec};
use crate::typed::TypedTool;
use larder_engine::settings::ToolSettings;

/// Time for starting and ending a command, beyond its own.
const AROUND: Duration = Duration::from_secs(5);
/// Bytes of a result besides the program's output.
const AROUND_OUTPUT: usize = 2_048;
const NONE_ALLOWED: &str = "no program may be run; list the names of those that may under tools.commands in \
     larder.toml, such as commands = [\"cargo\", \"git\"]";

pub(super) struct CommandRun {
    allowed: Vec<String>,
    env: Vec<String>,
    private: PrivatePaths,
    /// What programs reach besides the workspace; `None` if they are not confined.
    sandbox: Option<Sandbox>,
    timeout: Duration,
    max_bytes: usize,
}

/// Run an allowed program in the workspace. Gives its exit code and output.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CommandRunArgs {
    /// the program's name
    #[schemars(length(min = 1))]
    program: String,
    /// its arguments, each as it is: there is no shell, so quotes, | and * mean nothing
    #[serde(default)]
    #[schemars(length(max = 200), inner(length(max = 100_000)))]
    args: Vec<String>,
    /// where it runs, from the root of the workspace; the root by default
    #[schemars(length(min = 1, max = 4_096))]
    folder: Option<String>,
}

impl CommandRun {
    pub(super) fn new(settings: &ToolSettings, private: PrivatePaths) -> Self {
        Self {
            allowed: settings.commands.clone(),
            env: settings.command_env.clone(),
            private,
            sandbox: (!settings.command_unconfined).then(|| Sandbox::new(settings)),
            timeout: settings.command_timeout,
            max_bytes: settings.max_result_bytes,
        }
    }
}

impl TypedTool for CommandRun {
    type Args = CommandRunArgs;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::from_args::<CommandRunArgs>("command.run");
        if !self.allowed.is_empty() {
            spec.parameters["properties"]["program"]["enum"] = json!(self.allowed);
        }
        ToolSpec {
            class: ToolClass::Danger,
            timeout: self.timeout + AROUND,
            max_bytes: self.max_bytes,
            modes: ToolModes::Code,
            ..spec
        }
    }

    async fn run(&self, args: CommandRunArgs, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let CommandRunArgs { program, args, folder } = args;
        if self.allowed.is_empty() {
            return Err(ToolError::Denied(NONE_ALLOWED.to_owned()));
        }
        // A name with a folder in it would be a program of the workspace.
        if !self.allowed.contains(&program) || program.contains(['/', '\\']) {
            return Err(ToolError::Denied(format!(
                "{program:?} may not be run; allowed are {}",
                self.allowed.join(", ")
            )));
        }
        let workspace = Workspace::of(context, &self.private)?;
        let folder = match &folder {
            Some(folder) => workspace.place(folder)?,
            None => workspace.root().to_owned(),
        };
        let missing = || ToolError::Failed(format!("there is no program {program:?} on this machine"));
        let path = process::find(&program).ok_or_else(missing)?;
        // Standard output and error share the bytes that the tool may return, with what is said about them.
        let limit = self.max_bytes - AROUND_OUTPUT.min(self.max_bytes / 2);
        let sandbox =
            self.sandbox.as_ref().map(|sandbox| sandbox.around(workspace.root(), workspace.private()));
        let sandbox = sandbox.as_ref();
        let run = Program { path: &path, args: &args, folder: &folder, env: &self.env, limit, sandbox };
        let time = context.budget.time(self.timeout);
        let planted = PlantedSettings::watch([workspace.root(), &folder]);
        let mut ran = process::run(&run, time).await?;
        share(&mut ran, limit);
        let mut output = output(&program, ran, time, sandbox.map(Sandbox::limits));
        for note in planted.set_aside() {
            output.content.extend_from_slice(format!("[{note}]\n").as_bytes());
            output.summary = format!("{}; {note}", output.summary);
        }
        Ok(output)
    }
}

/// Cuts both outputs to `limit` bytes together: half for each, and what one leaves for the other.
fn share(ran: &mut ProgramOutput, limit: usize) {
    let (out, err) = (ran.stdout.bytes.len(), ran.stderr.bytes.len());
    let half = limit / 2;
    ran.stdout.bytes.truncate(limit - err.min(half));
    ran.stderr.bytes.truncate(limit - out.min(limit - err.min(half)));
}

fn output(program: &str, ran: ProgramOutput, limit: Duration, confined: Option<&str>) -> ToolOutput {
    let ProgramOutput { code, stdout, stderr, late } = ran;
    let (status, ended) = match (code, late) {
        (_, true) => (CallStatus::Timeout, format!("was ended after {} s", limit.as_secs_f64())),
        (Some(0), _) => (CallStatus::Success, "exit code 0".to_owned()),
        (Some(code), _) => (CallStatus::Error, format!("exit code {code}")),
        (None, _) => (CallStatus::Error, "was ended by a signal".to_owned()),
    };
    let mut content = format!("{program}: {ended}\n").into_bytes();
    let mut notes = Vec::new();
    for (name, KeptOutput { bytes, written }) in [("stdout", stdout), ("stderr", stderr)] {
        if bytes.len() < written {
            notes.push(format!("of {written} bytes of {name} the first {} are kept", bytes.len()));
        }
        if !bytes.is_empty() {
            content.extend_from_slice(format!("--- {name}\n").as_bytes());
            content.extend_from_slice(&bytes);
            content.push(b'\n');
        }
    }
    // A program says only that something is not permitted, and may end well all the same.
    let said = String::from_utf8_lossy(&content).into_owned();
    let refused = ["Permission denied", "Operation not permitted"];
    if let Some(limits) = confined
        && (status == CallStatus::Error || refused.iter().any(|words| said.contains(words)))
    {
        content.extend_from_slice(format!("[{limits}]\n").as_bytes());
    }
    let mut summary = format!("{program}: {ended}");
    if !notes.is_empty() {
        let note = notes.join("; ");
        content.extend_from_slice(format!("[{note}; the limit is tools.max_result_bytes]\n").as_bytes());
        summary = format!("{summary}; {note}");
    }
    let output = ToolOutput::success(summary, content).typed(ContentType::ToolResult);
    ToolOutput { status, ..output }
}
