//! Tools that give what a script says, in place of those that are built in.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use larder_tools::{Tool, ToolBox, ToolClass, ToolContext, ToolError, ToolModes, ToolOutput, ToolSpec};
use larder_vault::Mode;
use larder_vault::context::{CallStatus, Claim};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// What one call gives.
#[derive(Clone, Debug)]
pub struct Given {
    pub tool: String,
    /// What the call must be given; null if that does not matter.
    pub arguments: Value,
    pub status: CallStatus,
    pub summary: String,
    pub content: Vec<u8>,
    pub claims: Vec<Claim>,
    pub files: BTreeMap<String, Vec<u8>>,
    /// It never comes to its end.
    pub hangs: bool,
}

impl Given {
    /// A call that never comes to its end.
    pub fn hanging(tool: &str) -> Self {
        Self { hangs: true, ..Self::text(tool, "never", "never") }
    }

    pub fn text(tool: &str, summary: &str, content: impl Into<Vec<u8>>) -> Self {
        Self {
            tool: tool.to_owned(),
            arguments: Value::Null,
            status: CallStatus::Success,
            summary: summary.to_owned(),
            content: content.into(),
            claims: Vec::new(),
            files: BTreeMap::new(),
            hangs: false,
        }
    }
}

/// The script, and what was called.
#[derive(Default)]
pub struct Script {
    pub given: Mutex<VecDeque<Given>>,
    pub called: Mutex<Vec<String>>,
    pub wrong: Mutex<Vec<String>>,
    /// Notified when a call hangs.
    pub hangs: Mutex<Arc<Notify>>,
}

struct Scripted {
    spec: ToolSpec,
    script: Arc<Script>,
}

impl Tool for Scripted {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: &'a Value,
        _: &'a ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let (output, hangs) = self.script.next(&self.spec.name, arguments);
        async move {
            if hangs {
                self.script.hangs.lock().unwrap().notify_one();
                std::future::pending::<()>().await;
            }
            Ok(output)
        }
        .boxed()
    }
}

const NAMES: [&str; 12] = [
    "internet.research",
    "web.visit",
    "web.search",
    "memory.query",
    "memory.create",
    "doc.search",
    "doc.read",
    "file.read",
    "file.search",
    "file.edit",
    "command.run",
    "test.echo",
];

impl Script {
    /// Puts scripted tools in the place of all that are built in.
    pub fn install(toolbox: &mut ToolBox, mode: Mode) -> Arc<Self> {
        let script = Arc::new(Self::default());
        for name in NAMES {
            let known = toolbox.specs(mode, &[name.to_owned()]).first().map(|spec| (*spec).clone());
            let spec = known.unwrap_or_else(|| ToolSpec {
                name: name.to_owned(),
                description: "A tool of the test.".to_owned(),
                parameters: json!({"type": "object"}),
                class: ToolClass::Read,
                summarizable: true,
                timeout: Duration::from_secs(10),
                max_bytes: 64 * 1024 * 1024,
                modes: ToolModes::Both,
            });
            let spec = ToolSpec { parameters: json!({"type": "object"}), ..spec };
            toolbox.register(Box::new(Scripted { spec, script: Arc::clone(&script) }));
        }
        script
    }

    pub fn gives(&self, given: impl IntoIterator<Item = Given>) {
        self.given.lock().unwrap().extend(given);
    }

    /// What comes of a call, and whether it never comes to its end.
    fn next(&self, name: &str, arguments: &Value) -> (ToolOutput, bool) {
        self.called.lock().unwrap().push(name.to_owned());
        let Some(given) = self.given.lock().unwrap().pop_front() else {
            return (ToolOutput::success("done", "done"), false);
        };
        let other = given.tool != name || !given.arguments.is_null() && given.arguments != *arguments;
        if other {
            let expected = format!("{}({})", given.tool, given.arguments);
            self.wrong.lock().unwrap().push(format!("called {name}({arguments}), expected {expected}"));
        }
        let output = ToolOutput {
            status: given.status,
            claims: given.claims,
            files: given.files,
            ..ToolOutput::success(given.summary, given.content)
        };
        (output, given.hangs)
    }
}
