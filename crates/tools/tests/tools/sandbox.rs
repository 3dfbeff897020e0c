//! Programs that a model asks for reach the workspace and nothing else: many ways out are tried, and each is one indeed
//! without the sandbox.

use std::collections::BTreeMap;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::Path;

use larder_engine::settings::ToolSettings;
use larder_vault::context::CallStatus;
use serde_json::json;

use crate::support::{Fixture, words};

/// Scripts that leave the workspace: `$O` is a folder outside, `$P` this process, `$T`, `$U` ports of it.
const WAYS_OUT: [&str; 28] = [
    "cat $O/secret",
    "cat < $O/secret",
    "cp $O/secret stolen && cat stolen",
    "cd $O && cat secret",
    "cat $(realpath --relative-to=. $O)/secret",
    "ln -s $O link && cat link/secret",
    "ln $O/secret hard && cat hard",
    "mv $O/secret stolen",
    "ls $O",
    "tar -cf - -C $O secret | tr -d '\\000'",
    "cat /proc/$P/root$O/secret",
    "find $O -name secret -exec cat {} +",
    "perl -e 'open(F, q(<), shift) and print <F>' $O/secret",
    "echo x > $O/new",
    "echo x >> $O/secret",
    ": > $O/secret",
    "truncate -s 0 $O/secret",
    "perl -e 'truncate(shift, 0)' $O/secret",
    "rm $O/secret",
    "mkdir $O/folder",
    "mkfifo $O/pipe",
    "ln -s /etc $O/link",
    "touch note && mv note $O/note",
    "dd if=/dev/zero of=$O/disk bs=1 count=1",
    "env -i /bin/sh -c \"(echo x > $O/late) & wait\"",
    "perl -MSocket -e 'socket(S, PF_INET, SOCK_STREAM, 0); connect(S, sockaddr_in(shift, INADDR_LOOPBACK))' $T",
    "perl -MSocket -e 'socket(S, PF_INET, SOCK_DGRAM, 0); send(S, 1, 0, sockaddr_in(shift, INADDR_LOOPBACK))' $U",
    "perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un(shift))' $O/socket",
];

fn confined() -> ToolSettings {
    ToolSettings { commands: vec!["sh".to_owned()], ..ToolSettings::default() }
}

/// What is outside of the workspace, and whether anything came from there or got there.
struct Outside {
    folder: tempfile::TempDir,
    tcp: TcpListener,
    udp: UdpSocket,
    unix: UnixListener,
    before: BTreeMap<String, Vec<u8>>,
}

impl Outside {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("secret"), "nobody may know\n").unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let unix = UnixListener::bind(folder.path().join("socket")).unwrap();
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        unix.set_nonblocking(true).unwrap();
        let before = entries(folder.path());
        Self { folder, tcp, udp, unix, before }
    }

    fn script(&self, way: &str) -> String {
        let tcp = self.tcp.local_addr().unwrap().port();
        let udp = self.udp.local_addr().unwrap().port();
        let process = std::process::id();
        format!("O={}; P={process}; T={tcp}; U={udp}; {way}", self.folder.path().display())
    }

    fn is_reached(&self, said: &str) -> bool {
        let read = ["nobody may know", "secret\nsocket"].iter().any(|mark| said.contains(mark));
        let called =
            self.tcp.accept().is_ok() || self.udp.recv(&mut [0; 8]).is_ok() || self.unix.accept().is_ok();
        read || called || entries(self.folder.path()) != self.before
    }
}

fn entries(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            let content = if path.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
            (path.file_name().unwrap().to_string_lossy().into_owned(), content)
        })
        .collect()
}

/// Runs a script in an empty folder of the workspace; gives whether the outside was reached, and what it printed.
async fn run(fixture: &Fixture, way: &str) -> (bool, CallStatus, String) {
    let outside = Outside::new();
    let folder = tempfile::tempdir_in(&fixture.workspace).unwrap();
    let arguments = json!({"program": "sh", "args": ["-c", outside.script(way)], "folder": folder.path()});
    let output = fixture.call("command.run", arguments).await;
    let said = words(&output);
    (outside.is_reached(&said), output.status, said)
}

#[tokio::test]
async fn no_program_leaves_the_workspace() {
    let free = Fixture::code(&ToolSettings { command_unconfined: true, ..confined() });
    let confined = Fixture::code(&confined());
    for way in WAYS_OUT {
        let (reached, _, said) = run(&confined, way).await;
        assert!(!reached, "{way}: {said}");
        assert!(run(&free, way).await.0, "it is no way out even without a sandbox: {way}");
    }
}

#[tokio::test]
async fn a_confined_program_works_in_the_workspace_and_has_a_folder_for_temporary_files() {
    let work = "set -e; mkdir a; echo one > a/b; mv a/b c; cat c | sort > d; ln c e; ln -s c f; chmod +x d; \
                t=$(mktemp); echo two > $t; cp $t g; cat f g; rm -r a c; perl -e 'print qq(three\n)'; echo $TMPDIR";
    let (reached, status, said) = run(&Fixture::code(&confined()), work).await;
    assert!(status == CallStatus::Success && !reached, "{said}");
    assert!(said.contains("one\ntwo\nthree\n"), "{said}");
    let temporary = said.lines().last().unwrap();
    assert!(!Path::new(temporary).exists(), "it is removed: {temporary}");
}

#[tokio::test]
async fn nothing_is_shared_with_other_programs_or_asked_of_the_machine() {
    let calls = [
        ("shared memory", format!("{}, 0, 4096, 0600", libc::SYS_shmget)),
        ("queues", format!("{}, 0, 0600", libc::SYS_msgget)),
        ("semaphores", format!("{}, 0, 1, 0600", libc::SYS_semget)),
        // The size of the kernel's log.
        ("the log", format!("{}, 10, 0, 0", libc::SYS_syslog)),
        ("queues of others", format!("{}, $n", libc::SYS_mq_unlink)),
        ("the files that others open", format!("{}, 0, 0", libc::SYS_fanotify_init)),
        ("the terminal", format!("{}", libc::SYS_vhangup)),
        ("another root", format!("{}, $n", libc::SYS_chroot)),
        ("mounts", format!("{}, $n, 0", libc::SYS_fsopen)),
    ];
    for (what, call) in calls {
        let ask = format!(
            "perl -e '$n = qq(larder); $got = syscall({call}); print $got < 0 ? qq(refused $!\n) : qq(got $got\n)'"
        );
        let (_, _, said) = run(&Fixture::code(&confined()), &ask).await;
        assert!(said.contains("refused Operation not permitted"), "{what}: {said}");
    }
}

#[tokio::test]
async fn no_namespace_is_made_and_programs_start_others_all_the_same() {
    let fixture = Fixture::code(&confined());
    let (clone, clone3) = (libc::SYS_clone, libc::SYS_clone3);
    let made = |call: String| format!("perl -e '$made = {call}; exit if $made == 0; print qq($made $!\n)'");
    for flag in [libc::CLONE_NEWUSER, libc::CLONE_NEWNS, libc::CLONE_NEWPID | libc::CLONE_FS] {
        let (_, _, said) = run(&fixture, &made(format!("syscall({clone}, {}, 0, 0, 0, 0)", flag | 17))).await;
        assert!(said.contains("-1 Operation not permitted"), "{flag}: {said}");
    }
    let (_, _, said) = run(&fixture, &made(format!("syscall({clone3}, 0, 0)"))).await;
    assert!(said.contains("-1 Function not implemented"), "{said}");
    let (_, status, said) = run(&fixture, &made(format!("syscall({clone}, 17, 0, 0, 0, 0)"))).await;
    assert!(status == CallStatus::Success && !said.contains("-1"), "{said}");
    let (_, status, said) = run(&fixture, "(echo one & wait) | sort; perl -e 'print qx(echo two)'").await;
    assert!(status == CallStatus::Success && said.contains("one\ntwo\n"), "{said}");
}

#[tokio::test]
async fn settings_let_programs_reach_more() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("library"), "found\n").unwrap();
    let path = outside.path().display().to_string();
    let reading = Fixture::code(&ToolSettings { command_read: vec![path.clone()], ..confined() });
    let writing = Fixture::code(&ToolSettings { command_write: vec![path.clone()], ..confined() });
    let read = format!("cat {path}/library");
    let write = format!("echo made > {path}/made");
    assert!(run(&reading, &read).await.2.contains("found"));
    let (_, status, said) = run(&reading, &write).await;
    assert!(status == CallStatus::Error && !outside.path().join("made").exists(), "{said}");
    assert!(said.contains("tools.command_write"), "the output names the setting that allows more: {said}");
    assert_eq!(run(&writing, &write).await.1, CallStatus::Success);
    let online = Fixture::code(&ToolSettings { command_network: true, ..confined() });
    let [.., tcp, udp, unix] = WAYS_OUT;
    assert!(run(&online, tcp).await.0 && run(&online, udp).await.0);
    assert!(!run(&online, unix).await.0, "a daemon of this machine would do what it is asked to");
}

#[tokio::test]
async fn what_is_private_is_out_of_reach_at_any_depth_and_behind_any_link() {
    let mut fixture = Fixture::code(&confined());
    let at = |path: &str| fixture.workspace.join(path);
    for folder in ["data/real", "data/notes", "src"] {
        std::fs::create_dir_all(at(folder)).unwrap();
    }
    for path in ["data/real/key", "data/notes/a", "src/a"] {
        fixture.write(path, "needle\n");
    }
    fixture.write("data/real/key", "needle that nobody may know\n");
    // The store is named by a link to a folder that is named by a link.
    std::os::unix::fs::symlink("data", at("linked")).unwrap();
    std::os::unix::fs::symlink("linked/real", at("store")).unwrap();
    std::os::unix::fs::symlink("../store", at("src/back")).unwrap();
    let private = vec![at("./src/../store"), at("project/larder.toml")];
    let read = vec![fixture.workspace.display().to_string()];
    let settings = ToolSettings { private, command_read: read, ..confined() };
    fixture.toolbox = larder_tools::ToolBox::new(&settings).unwrap();
    let run = |script: &str| fixture.call("command.run", json!({"program": "sh", "args": ["-c", script]}));
    for script in [
        "cat store/key",
        "cat data/real/key",
        "cd data/notes && cat ../real/key",
        "cat src/back/key",
        "cp -r data/real src/",
        "echo x >> data/real/key",
        "mv store src/store",
        "rm linked && mkdir linked",
        "ln -sfn src store",
        "mv data/real data/notes/",
        "ln data/real/key src/key",
        "mkdir project",
    ] {
        let output = run(script).await;
        assert_eq!(output.status, CallStatus::Error, "{script}: {}", words(&output));
        assert!(!words(&output).contains("nobody may know"), "{script}");
    }
    let work = run("cat data/notes/a src/a; echo two >> src/a; echo new > data/notes/new; ls data").await;
    assert_eq!(work.status, CallStatus::Success, "{}", words(&work));
    for path in ["store/key", "data/real/key", "linked/real/key", "src/back/key", "DATA/real/../real/key"] {
        let edit = json!({"path": path, "old": "needle", "new": "x"});
        let search = json!({"path": path, "pattern": "needle"});
        for (tool, arguments) in
            [("file.read", json!({"path": path})), ("file.edit", edit), ("file.search", search)]
        {
            let output = fixture.call(tool, arguments).await;
            assert_ne!(output.status, CallStatus::Success, "{tool} {path}: {}", words(&output));
        }
    }
    let found = fixture.call("file.search", json!({"pattern": "needle"})).await;
    assert_eq!(words(&found), "data/notes/a:1: needle\nsrc/a:1: needle\n");
    assert_eq!(
        fixture.call("file.search", json!({"pattern": "x", "path": "data"})).await.status,
        CallStatus::Success
    );
    // A folder of Larder's own is no workspace.
    fixture.workspace = fixture.workspace.join("data/real");
    for (tool, arguments) in [
        ("file.search", json!({"pattern": "needle"})),
        ("file.read", json!({"path": "key"})),
        ("command.run", json!({"program": "sh", "args": ["-c", "cat key"]})),
    ] {
        assert_eq!(fixture.call(tool, arguments).await.status, CallStatus::Denied, "{tool}");
    }
}

#[tokio::test]
async fn settings_and_store_in_a_workspace_are_out_of_reach() {
    let outside = Outside::new();
    let fixture = Fixture::code(&confined());
    fixture.write("larder.toml", "[tools]\n");
    fixture.write("notes.txt", "one\n");
    for folder in [".larder", "src"] {
        std::fs::create_dir(fixture.workspace.join(folder)).unwrap();
    }
    fixture.write(".larder/key", "nobody may know\n");
    std::os::unix::fs::symlink(outside.folder.path(), fixture.workspace.join("link")).unwrap();
    let run = |script: &str| fixture.call("command.run", json!({"program": "sh", "args": ["-c", script]}));
    for script in [
        "cat .larder/key",
        "cat src/../.larder/key",
        "echo x >> larder.toml",
        "mv larder.toml src/",
        "rm -r .larder",
        "mv src .larder/",
        "cat link/secret",
    ] {
        let output = run(script).await;
        assert_eq!(output.status, CallStatus::Error, "{script}: {}", words(&output));
        assert!(!words(&output).contains("nobody may know"), "{script}");
    }
    assert_eq!(std::fs::read_to_string(fixture.workspace.join("larder.toml")).unwrap(), "[tools]\n");
    assert!(fixture.workspace.join(".larder/key").exists() && fixture.workspace.join("src").exists());
    let work = run("set -e; ls; cat notes.txt; echo two >> notes.txt; echo new > src/new; cat src/new").await;
    assert_eq!(work.status, CallStatus::Success, "{}", words(&work));
    for path in ["larder.toml", ".larder/key", "./larder.toml", "src/../larder.toml"] {
        let edit = json!({"path": path, "old": "", "new": "x"});
        for (tool, arguments) in [("file.read", json!({"path": path})), ("file.edit", edit)] {
            let output = fixture.call(tool, arguments).await;
            assert_eq!(output.status, CallStatus::Denied, "{tool} {path}: {}", words(&output));
        }
    }
    let hidden = run("cat /etc/shadow; true").await;
    assert!(words(&hidden).contains("tools.command_read"), "the output says why: {}", words(&hidden));
}
