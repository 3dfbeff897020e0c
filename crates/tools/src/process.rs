//! Local programs: started without a shell, in their own process group, with few variables, and killed with all their
//! children. The only place in this crate that reads the environment.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::sandbox::Sandbox;
use super::spec::ToolError;
use super::watch::Watch;

/// Variables that programs need and that contain no secret.
const USUAL: [&str; 18] = [
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "TZ",
    "TMPDIR",
    "TEMP",
    "TMP",
    "SystemRoot",
    "SystemDrive",
    "PATHEXT",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
];
/// Variables that name the folder of temporary files.
const TEMPORARY: [&str; 3] = ["TMPDIR", "TEMP", "TMP"];
/// Time for children left running by a program to close its output.
const GRACE: Duration = Duration::from_millis(500);

/// A program to run.
pub(super) struct Program<'a> {
    /// The program's file.
    pub(super) path: &'a Path,
    /// Its arguments.
    pub(super) args: &'a [String],
    /// Where it runs.
    pub(super) folder: &'a Path,
    /// Variables that it sees in addition to the usual ones.
    pub(super) env: &'a [String],
    /// Bytes of each output that are kept.
    pub(super) limit: usize,
    /// What it may reach; without, all that this account reaches.
    pub(super) sandbox: Option<&'a Sandbox>,
}

/// The end and the output of a program.
pub(super) struct ProgramOutput {
    /// Its exit code; `None` if it was ended by a signal.
    pub(super) code: Option<i32>,
    /// Its standard output.
    pub(super) stdout: KeptOutput,
    /// Its standard error.
    pub(super) stderr: KeptOutput,
    /// It was killed because it took too long.
    pub(super) late: bool,
}

/// One of its outputs.
pub(super) struct KeptOutput {
    /// Its beginning, up to the limit.
    pub(super) bytes: Vec<u8>,
    /// Bytes that were written in all.
    pub(super) written: usize,
}

/// Where a program of this name is, by the absolute folders of `PATH`.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.find_map(|folder| {
        let plain = folder.join(name);
        let with_ending = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        [plain, with_ending].into_iter().find(|file| file.is_file())
    })
}

/// A path of the settings, in which `~/` is the user's home folder.
pub(super) fn from_home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(inside), Some(home)) => home.join(inside),
        _ => PathBuf::from(path),
    }
}

/// The variables that a program sees: the usual ones and those named.
pub(super) fn environment(named: &[String]) -> Vec<(String, String)> {
    let names = USUAL.into_iter().chain(named.iter().map(String::as_str));
    let mut variables: Vec<(String, String)> =
        names.filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?))).collect();
    // A relative folder in PATH would find programs in the workspace.
    if let Some(path) = std::env::var_os("PATH") {
        let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
        if let Some(path) = std::env::join_paths(folders).ok().and_then(|path| path.into_string().ok()) {
            variables.push(("PATH".to_owned(), path));
        }
    }
    variables
}

/// Kills the program when dropped with all that it started, and of a confined one what left its process group.
struct Group {
    child: Box<dyn ChildWrapper>,
    /// Ends what is in the process group.
    over_group: Option<Watch>,
    /// Ends what is in the sandbox.
    inside: Option<Watch>,
    /// The folder for temporary files, which only this call has.
    temporary: Option<PathBuf>,
}

impl Drop for Group {
    fn drop(&mut self) {
        // Fails when the program and its children have ended already.
        let _ = self.child.start_kill();
        self.over_group.iter().for_each(Watch::kill_group);
        #[cfg(target_os = "linux")]
        if let Some(folder) = &self.temporary {
            end_all_with(folder);
        }
    }
}

/// Kills the processes that were started with this folder for temporary files.
#[cfg(target_os = "linux")]
fn end_all_with(temporary: &Path) {
    use std::os::unix::ffi::OsStrExt;

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    /// How often processes are looked for that others started meanwhile.
    const ROUNDS: usize = 8;
    let mark = [b"TMPDIR=".as_slice(), temporary.as_os_str().as_bytes(), b"\0"].concat();
    for _ in 0..ROUNDS {
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let marked = processes.filter_map(|entry| {
            let number: i32 = entry.file_name().to_str()?.parse().ok()?;
            // Those of other accounts cannot be read.
            let started_with = std::fs::read(entry.path().join("environ")).ok()?;
            started_with.windows(mark.len()).any(|place| place == mark).then(|| Pid::from_raw(number))
        });
        let marked: Vec<Pid> = marked.collect();
        if marked.is_empty() {
            return;
        }
        for process in marked {
            let _ = kill(process, Signal::SIGKILL);
        }
    }
}

/// Runs a program to its end, or kills it after `limit`; its output so far is kept.
///
/// # Errors
/// [`ToolError::Failed`] when it cannot be started, [`ToolError::Denied`] when it cannot be confined.
pub(super) async fn run(program: &Program<'_>, limit: Duration) -> Result<ProgramOutput, ToolError> {
    let failed = |error: std::io::Error| {
        ToolError::Failed(format!("{} cannot be run: {error}", program.path.display()))
    };
    let temporary = program.sandbox.map(|_| tempfile::tempdir()).transpose().map_err(failed)?;
    let mut command = tokio::process::Command::new(program.path);
    command.args(program.args).current_dir(program.folder).env_clear().envs(environment(program.env));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let over_group = Watch::over_group();
    close_inherited(&mut command);
    let mut command = grouped(command, over_group.as_ref().and_then(Watch::group));
    let started = match (program.sandbox, &temporary) {
        (Some(sandbox), Some(folder)) => {
            command.command_mut().envs(TEMPORARY.map(|name| (name, folder.path())));
            sandbox.spawn(&mut command, [program.path, folder.path()])?
        }
        _ => command.spawn().map(|child| (child, None)),
    };
    let (child, inside) = started.map_err(failed)?;
    let temporary_folder = temporary.as_ref().map(|folder| folder.path().to_owned());
    let mut group = Group { child, over_group, inside, temporary: temporary_folder };
    let mut stdout = CappedOutput::of(group.child.stdout().take(), program.limit);
    let mut stderr = CappedOutput::of(group.child.stderr().take(), program.limit);
    let ended = {
        let reading = async { tokio::join!(stdout.read(), stderr.read()) };
        tokio::pin!(reading);
        // A child may keep the output open forever, so only the end of the program counts.
        let ended = tokio::time::timeout(limit, async {
            tokio::select! {
                _ = &mut reading => (group.child.wait().await, true),
                status = group.child.inner_mut().wait() => (status, false),
            }
        })
        .await;
        if matches!(ended, Ok((_, false))) {
            let _ = tokio::time::timeout(GRACE, &mut reading).await;
        }
        ended.map(|(status, _)| status)
    };
    for watch in [group.over_group.take(), group.inside.take()].into_iter().flatten() {
        watch.end().await;
    }
    let (code, late) = match ended {
        Ok(status) => (status.map_err(failed)?.code(), false),
        Err(_) => (None, true),
    };
    Ok(ProgramOutput { code, stdout: stdout.kept, stderr: stderr.kept, late })
}

/// Closes, when the program starts, every file that this process was given by its caller: no sandbox asks how a file was
/// opened. Its three streams remain.
#[cfg_attr(
    not(unix),
    expect(unused_variables, reason = "handles are inherited there only where that is asked for")
)]
pub(super) fn close_inherited(command: &mut tokio::process::Command) {
    #[cfg(unix)]
    #[allow(
        unsafe_code,
        reason = "between fork and exec only system calls may run, which the caller answers for"
    )]
    // SAFETY: `close_on_exec` makes system calls only: it takes no lock and no memory.
    unsafe {
        command.pre_exec(close_on_exec);
    }
}

/// Marks all files but the streams, so that they are closed when the program replaces this process: the pipe by which a
/// failure to start it is reported must be open until then.
#[cfg(unix)]
#[allow(unsafe_code, reason = "system calls without a safe form")]
fn close_on_exec() -> std::io::Result<()> {
    /// The number of files that a process may have open at most, by default.
    const MOST_FILES: i32 = 1 << 20;
    #[cfg(target_os = "linux")]
    // SAFETY: the call takes three numbers and changes flags of files of this process.
    if unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) } == 0 {
        return Ok(());
    }
    // Before Linux 5.11, and on other systems. The limit may have been lowered since a file was opened.
    for file in 3..MOST_FILES {
        // SAFETY: the call takes numbers, and fails where no file has this one.
        let _ = unsafe { libc::fcntl(file, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(())
}

/// A program in this process group, or in one of its own.
#[cfg_attr(windows, expect(unused_variables, reason = "Windows has jobs instead of groups"))]
fn grouped(command: tokio::process::Command, group: Option<i32>) -> CommandWrap {
    let mut wrap = CommandWrap::from(command);
    #[cfg(unix)]
    match group {
        Some(group) => {
            wrap.command_mut().process_group(group);
        }
        None => {
            wrap.wrap(process_wrap::tokio::ProcessGroup::leader());
        }
    }
    #[cfg(windows)]
    wrap.wrap(process_wrap::tokio::JobObject);
    wrap
}

/// The beginning of an output; the bytes beyond the limit are counted.
struct CappedOutput<R> {
    source: Option<R>,
    limit: usize,
    kept: KeptOutput,
}

impl<R: AsyncRead + Unpin> CappedOutput<R> {
    fn of(source: Option<R>, limit: usize) -> Self {
        Self { source, limit, kept: KeptOutput { bytes: Vec::new(), written: 0 } }
    }

    async fn read(&mut self) {
        let Some(source) = &mut self.source else { return };
        let mut chunk = vec![0; 16 << 10];
        while let Ok(read @ 1..) = source.read(&mut chunk).await {
            let kept = read.min(self.limit - self.kept.bytes.len());
            self.kept.bytes.extend_from_slice(&chunk[..kept]);
            self.kept.written += read;
        }
    }
}

/// A variable that the settings name, such as one that holds a key.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
