//! `command.run`: a program that the settings allow, in the workspace, without a shell and never without being asked
//! for.

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use larder_condense::ContentType;
use larder_vault::context::CallStatus;
use serde::Deserialize;
use serde_json::{Value, json};

use super::workspace::Workspace;
use crate::arguments;
use crate::context::ToolContext;
use crate::process::{self, Program, Ran};
use crate::spec::{Tool, ToolClass, ToolError, ToolModes, ToolOutput, ToolSpec};
use larder_engine::settings::ToolSettings;

/// Time for starting and ending a command, beyond its own.
const AROUND: Duration = Duration::from_secs(5);
const NONE_ALLOWED: &str = "no program may be run; list the names of those that may under tools.commands in \
     larder.toml, such as commands = [\"cargo\", \"git\"]";

pub(super) struct Run {
    spec: ToolSpec,
    allowed: Vec<String>,
    env: Vec<String>,
    timeout: Duration,
    limit: usize,
}

#[derive(Deserialize)]
struct Arguments {
    program: String,
    #[serde(default)]
    args: Vec<String>,
    folder: Option<String>,
}

impl Run {
    pub(super) fn new(settings: &ToolSettings) -> Self {
        let mut program = json!({"type": "string", "minLength": 1, "description": "the program's name"});
        if !settings.commands.is_empty() {
            program["enum"] = json!(settings.commands);
        }
        let args = json!({"type": "array", "maxItems": 200, "items": {"type": "string", "maxLength": 100_000},
            "description": "its arguments, each as it is: there is no shell, so quotes, | and * mean nothing"});
        let fields = json!({
            "program": program,
            "args": args,
            "folder": arguments::text("where it runs, from the root of the workspace; there if left out", 4_096),
        });
        let spec = ToolSpec {
            name: "command.run".to_owned(),
            description: "Run an allowed program in the workspace. Gives its exit code and output."
                .to_owned(),
            parameters: arguments::object(&["program"], fields),
            class: ToolClass::Danger,
            summarizable: true,
            timeout: settings.command_timeout + AROUND,
            max_bytes: settings.max_result_bytes,
            modes: ToolModes::Code,
        };
        Self {
            spec,
            allowed: settings.commands.clone(),
            env: settings.command_env.clone(),
            timeout: settings.command_timeout,
            // Standard output and error share what the tool may give.
            limit: settings.max_result_bytes / 2,
        }
    }
}

impl Tool for Run {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: &'a Value,
        context: &'a ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let Arguments { program, args, folder } = arguments::read(arguments)?;
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
            let workspace = Workspace::of(context)?;
            let folder = match &folder {
                Some(folder) => workspace.place(folder)?,
                None => workspace.root().to_owned(),
            };
            let missing = || ToolError::Failed(format!("there is no program {program:?} on this machine"));
            let path = process::find(&program).ok_or_else(missing)?;
            let run =
                Program { path: &path, args: &args, folder: &folder, env: &self.env, limit: self.limit };
            let limit = context.budget.time(self.timeout);
            let ran = process::run(&run, limit).await?;
            Ok(told(&program, ran, limit))
        }
        .boxed()
    }
}

fn told(program: &str, ran: Ran, limit: Duration) -> ToolOutput {
    let Ran { code, stdout, stderr, dropped, late } = ran;
    let (status, ended) = match (code, late) {
        (_, true) => (CallStatus::Timeout, format!("was ended after {} s", limit.as_secs_f64())),
        (Some(0), _) => (CallStatus::Success, "exit code 0".to_owned()),
        (Some(code), _) => (CallStatus::Error, format!("exit code {code}")),
        (None, _) => (CallStatus::Error, "was ended by a signal".to_owned()),
    };
    let mut content = format!("{program}: {ended}\n").into_bytes();
    for (name, bytes) in [("stdout", stdout), ("stderr", stderr)] {
        if !bytes.is_empty() {
            content.extend_from_slice(format!("--- {name}\n").as_bytes());
            content.extend_from_slice(&bytes);
            content.push(b'\n');
        }
    }
    let mut summary = format!("{program}: {ended}");
    if dropped > 0 {
        let note = format!("{dropped} bytes of output beyond the limit were not kept");
        content.extend_from_slice(format!("[{note}]\n").as_bytes());
        summary = format!("{summary}; {note}");
    }
    let output = ToolOutput::success(summary, content).typed(ContentType::ToolResult);
    ToolOutput { status, ..output }
}
