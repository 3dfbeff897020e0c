//! What a program may reach that the model asked for: the workspace, the programs and libraries of the system, a folder
//! for its temporary files, and what the settings add. Landlock and seccomp hold it on Linux; other systems have nothing
//! like it that needs no further program, so nothing is run there unless the settings accept that.
//!
//! Both restrict the thread that asks for it, for ever, and the programs that it starts: each program is started by a
//! thread of its own.

use std::io;
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    Scope, path_beneath_rules,
};
use larder_engine::settings::ToolSettings;
use process_wrap::tokio::{ChildWrapper, CommandWrap};

use super::private::PrivatePlaces;
use super::process::from_home;
use super::spec::ToolError;
use super::watch::Watch;

/// Files and folders of the system that programs read to run at all. Nothing in them belongs to a user or is secret.
const SYSTEM: [&str; 34] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki/tls/certs",
    "/etc/resolv.conf",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/vm/overcommit_memory",
    "/sys/devices/system/cpu",
    "/dev/random",
    "/dev/urandom",
];
/// Devices that swallow or give bytes of no meaning.
#[cfg(target_os = "linux")]
const DEVICES: [&str; 3] = ["/dev/full", "/dev/null", "/dev/zero"];

/// System calls that no confined program makes.
#[cfg(target_os = "linux")]
const REFUSED: [i64; 60] = [
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_setup,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_semctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmget,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];
/// System calls whose first argument is the process that they change, 0 for the caller.
#[cfg(target_os = "linux")]
const OF_PROCESS: [i64; 5] = [
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// A program that was started, and a watch over everything that it starts.
pub(super) type Started = (Box<dyn ChildWrapper>, Option<Watch>);

/// What a program may reach.
#[derive(Debug, Clone)]
pub(super) struct Sandbox {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    /// Folders whose names may be read, with those of the folders below.
    list: Vec<PathBuf>,
    network: bool,
}

impl Sandbox {
    /// The system's own programs and libraries, and what the settings allow.
    pub(super) fn new(settings: &ToolSettings) -> Self {
        let system = SYSTEM.into_iter().map(PathBuf::from);
        Self {
            read: system.chain(settings.command_read.iter().map(|path| from_home(path))).collect(),
            write: settings.command_write.iter().map(|path| from_home(path)).collect(),
            list: Vec::new(),
            network: settings.command_network,
        }
    }

    /// The same, and everything in this workspace, but nothing that is private. The kernel takes no exceptions from a
    /// folder, so of one with something private in it only what stands next to that may be reached, and nothing new is
    /// made there.
    pub(super) fn around(&self, workspace: &Path, private: &PrivatePlaces) -> Self {
        let write = self.write.iter().map(PathBuf::as_path).chain([workspace]);
        Self {
            read: self.read.iter().flat_map(|path| private.around(path)).collect(),
            write: write.flat_map(|path| private.around(path)).collect(),
            list: vec![workspace.to_owned()],
            network: self.network,
        }
    }

    /// The note on the output of a program that failed.
    pub(super) const fn limits(&self) -> &'static str {
        if self.network {
            "it ran confined to the workspace; tools.command_read and tools.command_write allow more"
        } else {
            "it ran confined to the workspace, without network; tools.command_read, tools.command_write and \
             tools.command_network allow more"
        }
    }

    /// Starts a program that reaches nothing else but these: a file to run and a folder to write to. With it a watch over
    /// everything that it starts, where the system confines signals.
    ///
    /// # Errors
    /// [`ToolError::Denied`] when this system cannot hold it to that. The result is that of starting the program.
    pub(super) fn spawn(
        &self,
        command: &mut CommandWrap,
        [program, temporary]: [&Path; 2],
    ) -> Result<io::Result<Started>, ToolError> {
        let mut sandbox = self.clone();
        sandbox.read.push(program.to_path_buf());
        sandbox.write.push(temporary.to_path_buf());
        let runtime = tokio::runtime::Handle::current();
        let started = std::thread::scope(|scope| {
            let confined = scope.spawn(|| {
                let _entered = runtime.enter();
                sandbox.enter().map(|watch| Ok((command.spawn()?, watch)))
            });
            confined.join().unwrap_or_else(|_| Err("the thread that starts it failed".to_owned()))
        });
        started.map_err(|reason| {
            ToolError::Denied(format!(
                "programs cannot be confined on this machine, so none is run: {reason}. To run them with everything \
                 that your account can reach, set tools.command_unconfined = true"
            ))
        })
    }

    /// Restricts this thread and all programs that it starts. Gives a watch over them, where signals are confined.
    #[cfg(target_os = "linux")]
    fn enter(&self) -> Result<Option<Watch>, String> {
        self.restrict_files()
            .map_err(|error| format!("Landlock of Linux 6.2 or newer is needed ({error})"))?;
        let confines_signals =
            Ruleset::default().set_compatibility(CompatLevel::HardRequirement).scope(Scope::Signal).is_ok();
        self.restrict_calls(confines_signals).map_err(|error| format!("seccomp is needed ({error})"))?;
        let watch = confines_signals.then(Watch::inside).flatten();
        if watch.is_some() {
            // From a sandbox within that of the watch, no signal reaches the watch.
            let within =
                Ruleset::default().set_compatibility(CompatLevel::HardRequirement).scope(Scope::Signal);
            let within = within.and_then(Ruleset::create).and_then(|within| within.restrict_self());
            within.map_err(|error| format!("Landlock cannot be nested ({error})"))?;
        }
        Ok(watch)
    }

    #[cfg(not(target_os = "linux"))]
    fn enter(&self) -> Result<Option<Watch>, String> {
        Err("only Linux has the sandbox that is used".to_owned())
    }

    #[cfg(target_os = "linux")]
    fn restrict_files(&self) -> Result<(), landlock::RulesetError> {
        // Older versions cannot keep files from being emptied; newer ones hold more.
        let needed = AccessFs::from_all(ABI::V3);
        let all = AccessFs::from_all(ABI::V9);
        let read = AccessFs::from_read(ABI::V9);
        // A device of one's own making would be a way to the disk.
        let write = all & !(AccessFs::MakeBlock | AccessFs::MakeChar | AccessFs::IoctlDev);
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(needed)?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)?
            .scope(Scope::from_all(ABI::V6))?;
        let ruleset =
            if self.network { ruleset } else { ruleset.handle_access(AccessNet::from_all(ABI::V4))? };
        ruleset
            .create()?
            .add_rules(path_beneath_rules(&self.read, read))?
            .add_rules(path_beneath_rules(&self.write, write))?
            .add_rules(path_beneath_rules(&self.list, AccessFs::ReadDir))?
            .add_rules(path_beneath_rules(DEVICES, AccessFs::ReadFile | AccessFs::WriteFile))?
            .restrict_self()?;
        Ok(())
    }

    /// Refuses system calls that reach around the file system: sockets, other processes, what they share, namespaces,
    /// devices, clocks, names of the machine, the kernel itself.
    #[cfg(target_os = "linux")]
    fn restrict_calls(&self, confines_signals: bool) -> Result<(), seccompiler::Error> {
        use std::collections::BTreeMap;

        use seccompiler::{
            BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
            SeccompRule,
        };
        // What is mounted in a namespace of one's own is not where it was.
        const NAMESPACES: [i32; 7] = [
            libc::CLONE_NEWCGROUP,
            libc::CLONE_NEWIPC,
            libc::CLONE_NEWNET,
            libc::CLONE_NEWNS,
            libc::CLONE_NEWPID,
            libc::CLONE_NEWUSER,
            libc::CLONE_NEWUTS,
        ];
        // Landlock of Linux 6.12 keeps signals inside. Before, no signals are sent at all.
        const SIGNALS: [i64; 6] = [
            libc::SYS_kill,
            libc::SYS_pidfd_send_signal,
            libc::SYS_rt_sigqueueinfo,
            libc::SYS_rt_tgsigqueueinfo,
            libc::SYS_tgkill,
            libc::SYS_tkill,
        ];
        let signals: &[i64] = if confines_signals { &[] } else { &SIGNALS };
        // Sockets of files are no way out either: a daemon that listens on one does what it is asked to.
        let domains = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
        let of_other_domains =
            |domain: i32| SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, domain as u64);
        let sockets = if self.network {
            vec![SeccompRule::new(domains.into_iter().map(of_other_domains).collect::<Result<_, _>>()?)?]
        } else {
            Vec::new()
        };
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
            REFUSED.iter().chain(signals).map(|&call| (call, Vec::new())).collect();
        rules.insert(libc::SYS_socket, sockets);
        // Of other processes, neither limits nor scheduling are changed.
        let of_another = |argument: u8| {
            let is_other = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?;
            Ok::<_, seccompiler::Error>(vec![SeccompRule::new(vec![is_other])?])
        };
        for call in OF_PROCESS {
            rules.insert(call, of_another(0)?);
        }
        rules.insert(libc::SYS_setpriority, of_another(1)?);
        let of_namespace = |flag: i32| {
            let flag = u64::from(flag.cast_unsigned());
            let is_set = SeccompCmpOp::MaskedEq(flag);
            SeccompRule::new(vec![SeccompCondition::new(0, SeccompCmpArgLen::Dword, is_set, flag)?])
        };
        rules.insert(libc::SYS_clone, NAMESPACES.into_iter().map(of_namespace).collect::<Result<_, _>>()?);
        let apply = |mut rules: BTreeMap<i64, Vec<SeccompRule>>, error: i32| {
            // The same calls in the numbers of 32-bit programs with 64-bit registers.
            if cfg!(target_arch = "x86_64") {
                let short = rules.iter().map(|(call, rules)| (call | 0x4000_0000, rules.clone()));
                let short: Vec<_> = short.collect();
                rules.extend(short);
            }
            let refuse = SeccompAction::Errno(error.cast_unsigned());
            let filter =
                SeccompFilter::new(rules, SeccompAction::Allow, refuse, std::env::consts::ARCH.try_into()?)?;
            let program: BpfProgram = filter.try_into()?;
            seccompiler::apply_filter(&program)
        };
        apply(rules, libc::EPERM)?;
        // Its flags are in memory, which no filter sees. Where it does not exist, libraries use `clone`.
        apply(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)
    }
}
