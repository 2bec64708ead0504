// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace of the kernel around a command: an instance of its own, so that nobody else's trace is
//! touched, which is gone afterwards.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use crate::debugfs;
use opendxg_timeline::Trace;
use rustix::fs::OFlags;
use rustix::process::{kill_process, Pid, Signal};
use rustix::time::{clock_gettime, ClockId};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;

/// Where the kernel has its tracing files.
pub const MOUNT: &str = "/sys/kernel/tracing";

/// Tells runtimes where to write what they queue.
const MARKER: &str = "OPENDXG_TRACE_MARKER";

/// How long to wait for more.
const PAUSE: Duration = Duration::from_millis(10);

/// Why there is no trace.
#[derive(Debug)]
pub enum Failure {
    /// There is no module.
    NoDriver(String),
    /// Everything else.
    Error(String),
}

/// The trace, and how the command ended.
#[derive(Debug)]
pub struct Captured {
    /// What has happened.
    pub trace: Trace,
    /// The end of the command.
    pub status: ExitStatus,
}

/// Runs `command` and records meanwhile what happens in the module, with `kib` KiB for the events
/// of each CPU that are not read yet.
///
/// # Errors
///
/// The module is not loaded, the caller is not root, or the command cannot be started.
pub fn capture(root: &Path, kib: u32, command: &mut Command) -> Result<Captured, Failure> {
    let instance = Instance::new(root)?;
    let captured = instance.record(kib, command);
    let removed = instance.remove();
    let captured = captured?;
    removed?;
    Ok(captured)
}

/// A trace of our own, removed when dropped.
struct Instance {
    path: PathBuf,
    is_removed: bool,
}

impl Instance {
    fn new(root: &Path) -> Result<Self, Failure> {
        let error = |path: &Path, error: io::Error| {
            let hint = match error.kind() {
                ErrorKind::PermissionDenied => ": are you root?",
                ErrorKind::NotFound => ": is tracefs mounted there?",
                _ => "",
            };
            Failure::Error(format!("{}: {error}{hint}", path.display()))
        };
        let instances = root.join("instances");
        fs::metadata(&instances).map_err(|why| error(&instances, why))?;
        let events = root.join("events/dxg");
        match fs::metadata(&events) {
            Ok(_) => (),
            Err(why) if why.kind() == ErrorKind::NotFound => {
                let why = format!("{}: {why}: is the module opendxg loaded?", events.display());
                return Err(Failure::NoDriver(why));
            }
            Err(why) => return Err(error(&events, why)),
        }
        let path = instances.join(format!("opendxg-{}", std::process::id()));
        fs::create_dir(&path).map_err(|why| error(&path, why))?;
        Ok(Self {
            path,
            is_removed: false,
        })
    }

    fn set(&self, file: &str, value: &str) -> Result<(), Failure> {
        let path = self.path.join(file);
        fs::write(&path, value).map_err(|error| about(&path, &error))
    }

    fn record(&self, kib: u32, command: &mut Command) -> Result<Captured, Failure> {
        self.set("trace_clock", "mono")?;
        self.set("buffer_size_kb", &kib.to_string())?;
        let mut pipe = Pipe::open(&self.path.join("trace_pipe"))?;
        self.set("events/dxg/enable", "1")?;
        // Of every call of a KMD a verifier tells, which is much, and nothing that is drawn.
        self.set("events/dxg/dxg_kmd/enable", "0")?;

        // A terminal sends these to the command, too, which decides what they do.
        let _told = flags(&[SIGINT, SIGQUIT])?;
        let asked = flags(&[SIGTERM, SIGHUP])?;
        let mut child = command
            .env(MARKER, self.path.join("trace_marker"))
            .spawn()
            .map_err(|error| about(Path::new(command.get_program()), &error))?;
        let status = until_end(&mut child, &asked, &mut pipe);
        if status.is_err() {
            // Nobody reads any more what it causes.
            let _ = child.kill().and_then(|()| child.wait());
        }
        let status = status?;
        debugfs::read_logs(Path::new(debugfs::MOUNT));
        self.set("tracing_on", "0")?;
        while pipe.read()? {}
        Ok(Captured {
            trace: pipe.end(),
            status,
        })
    }

    fn remove(mut self) -> Result<(), Failure> {
        self.is_removed = true;
        // What the command has left behind may just be writing to it.
        for _ in 0..100 {
            match fs::remove_dir(&self.path) {
                Err(error) if error.kind() == ErrorKind::ResourceBusy => std::thread::sleep(PAUSE),
                done => return done.map_err(|error| about(&self.path, &error)),
            }
        }
        fs::remove_dir(&self.path).map_err(|error| about(&self.path, &error))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if !self.is_removed {
            let _ = fs::remove_dir(&self.path);
        }
    }
}

fn about(path: &Path, error: &io::Error) -> Failure {
    Failure::Error(format!("{}: {error}", path.display()))
}

/// Signals that only set this from now on. A program that is started has its own again.
fn flags(signals: &[i32]) -> Result<Arc<AtomicBool>, Failure> {
    let seen = Arc::new(AtomicBool::new(false));
    for signal in signals {
        flag::register(*signal, seen.clone())
            .map_err(|error| Failure::Error(format!("signal {signal}: {error}")))?;
    }
    Ok(seen)
}

/// Reads until the child has ended. Who wants this command to end wants the child to end.
fn until_end(
    child: &mut Child,
    asked: &AtomicBool,
    pipe: &mut Pipe,
) -> Result<ExitStatus, Failure> {
    loop {
        let has_read = pipe.read()?;
        let ended = child.try_wait();
        if let Some(status) = ended.map_err(|error| Failure::Error(error.to_string()))? {
            return Ok(status);
        }
        if asked.swap(false, Ordering::Relaxed) {
            // Not waited for yet, so that the number is still its own.
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
        }
        // A queue that nobody waits for interrupts nobody, and writes over its log after a while.
        debugfs::read_logs(Path::new(debugfs::MOUNT));
        if !has_read {
            std::thread::sleep(PAUSE);
        }
    }
}

/// The text of the trace while it grows.
struct Pipe {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    /// What is behind the last end of a line.
    rest: Vec<u8>,
    trace: Trace,
}

impl Pipe {
    fn open(path: &Path) -> Result<Self, Failure> {
        let flags = OFlags::NONBLOCK.bits() as i32;
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(flags).open(path);
        Ok(Self {
            path: path.into(),
            file: file.map_err(|error| about(path, &error))?,
            buffer: vec![0; 1 << 16],
            rest: Vec::new(),
            trace: Trace::default(),
        })
    }

    /// Reads what is there; false if there is nothing.
    fn read(&mut self) -> Result<bool, Failure> {
        let count = match self.file.read(&mut self.buffer) {
            Ok(0) => return Ok(false),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(true),
            Err(error) => return Err(about(&self.path, &error)),
        };
        self.rest.extend_from_slice(&self.buffer[..count]);
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n');
        if let Some(end) = whole {
            for line in self.rest[..end].split(|byte| *byte == b'\n') {
                self.trace.line(line);
            }
            self.rest.drain(..=end);
        }
        Ok(true)
    }

    fn end(mut self) -> Trace {
        let now = clock_gettime(ClockId::Monotonic);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or(0);
        self.trace.line(&self.rest);
        self.trace.end(seconds * 1_000_000_000 + nanoseconds);
        self.trace
    }
}

/// The status of a shell for a command that ended so.
pub fn exit_code(status: ExitStatus) -> u8 {
    let number = status.code().or(status.signal().map(|signal| 128 + signal));
    number
        .and_then(|number| u8::try_from(number).ok())
        .unwrap_or(1)
}
