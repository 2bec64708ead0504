// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file system whose server does not answer, and processes that are stuck in it: a page fault of
//! theirs holds the lock of their address space for as long as the server likes.

use std::ffi::CString;
use std::fs::{create_dir, read_to_string, remove_dir, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use rustix::mm::ProtFlags;

use crate::child::{Child, Gate};
use crate::region::Region;
use crate::time::{eventually, soon};
use crate::user::{become_user, needs_root, USER};
use crate::{fds, skip, task, TestResult};

/// Requests of the kernel, by number.
mod request {
    pub(super) const LOOKUP: u32 = 1;
    pub(super) const FORGET: u32 = 2;
    pub(super) const GETATTR: u32 = 3;
    pub(super) const OPEN: u32 = 14;
    pub(super) const READ: u32 = 15;
    pub(super) const INIT: u32 = 26;
    pub(super) const BATCH_FORGET: u32 = 42;
}

/// How many reads fail before one is never answered. The kernel gives up the lock of the address
/// space for the first one, and tries again with it.
const FAILED_READS: usize = 1;
/// The file's inode; that of the directory is 1.
const FILE: u64 = 2;
/// Bytes of the file.
const SIZE: u64 = 4096;

/// A mounted file system with one file, served by a process of its own.
struct Mount {
    /// Killed first: then the kernel answers what is open.
    server: Option<Child>,
    place: PathBuf,
    /// One byte for each read of the file.
    reads: OwnedFd,
}

impl Mount {
    fn new() -> TestResult<Self> {
        needs_root()?;
        // A kernel without FUSE does not list it. One that has it has to let root use it.
        if !read_to_string("/proc/filesystems")?.contains("\tfuse\n") {
            skip!("the kernel has no FUSE");
        }
        let device = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/fuse")?;
        let place = std::env::temp_dir().join(format!("hostile-{}", std::process::id()));
        create_dir(&place)?;
        let options = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0,allow_other",
            device.as_raw_fd()
        );
        let text = |text: &str| CString::new(text).map_err(|_| "a NUL in a path");
        let (target, options) = (text(&place.to_string_lossy())?, text(&options)?);
        // SAFETY: live strings.
        let mounted = unsafe {
            libc::mount(
                c"hostile".as_ptr(),
                target.as_ptr(),
                c"fuse".as_ptr(),
                libc::MS_NOSUID | libc::MS_NODEV,
                options.as_ptr().cast(),
            )
        };
        if mounted != 0 {
            let error = std::io::Error::last_os_error();
            let _ = remove_dir(&place);
            return Err(format!("mounting FUSE: {error}").into());
        }
        let (reads, report) = fds::pipe()?;
        let server = Child::spawn(move || serve(device, File::from(report)))?;
        Ok(Self {
            server: Some(server),
            place,
            reads,
        })
    }

    fn file(&self) -> PathBuf {
        self.place.join("file")
    }

    /// Waits until the kernel has asked for the page so often that it holds the lock.
    fn until_asked(&self) -> TestResult {
        let mut count = 0;
        let mut reads = File::from(self.reads.try_clone()?);
        while count <= FAILED_READS {
            let asked = fds::poll_events(reads.as_fd(), soon())?;
            if asked.is_empty() {
                return Err(format!("the kernel asked {count} times only").into());
            }
            count += reads.read(&mut [0])?;
        }
        Ok(())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        drop(self.server.take());
        if let Ok(place) = CString::new(self.place.to_string_lossy().as_bytes()) {
            // SAFETY: a live string.
            unsafe { libc::umount2(place.as_ptr(), libc::MNT_DETACH) };
        }
        let _ = remove_dir(&self.place);
    }
}

/// Serves until the file system is gone.
fn serve(device: File, mut report: File) -> TestResult {
    let mut message = vec![0; 1 << 17];
    let mut reads = 0;
    loop {
        let Ok(length) = (&device).read(&mut message) else {
            return Ok(());
        };
        let word = |at: usize| -> TestResult<u32> {
            let bytes = message.get(at..at + 4).ok_or("a short request")?;
            Ok(u32::from_ne_bytes(bytes.try_into().map_err(|_| "size")?))
        };
        if length < 40 {
            return Err("a short request".into());
        }
        let (code, node) = (word(4)?, u64::from(word(16)?));
        let unique = [word(8)?, word(12)?];
        let answer = match code {
            request::FORGET | request::BATCH_FORGET => continue,
            request::INIT => Ok(init()),
            request::LOOKUP => Ok(entry()),
            request::GETATTR => Ok([&[0; 16][..], &attributes(node)].concat()),
            request::OPEN => Ok(vec![0; 16]),
            request::READ => {
                reads += 1;
                report.write_all(&[1])?;
                if reads > FAILED_READS {
                    continue;
                }
                Err(libc::EIO)
            }
            _ => Err(libc::ENOSYS),
        };
        let (error, body) = match answer {
            Ok(body) => (0, body),
            Err(error) => (-error, Vec::new()),
        };
        let mut reply = Vec::new();
        reply.extend((16 + body.len() as u32).to_ne_bytes());
        reply.extend(error.to_ne_bytes());
        reply.extend(unique.iter().flat_map(|half| half.to_ne_bytes()));
        reply.extend(body);
        // Who asked may be gone.
        let _ = (&device).write(&reply);
    }
}

/// `struct fuse_init_out`: version 7.31, no flags, 4096 bytes for a write, nothing read ahead.
fn init() -> Vec<u8> {
    let words: [u32; 16] = [7, 31, 0, 0, 0, 4096, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// `struct fuse_entry_out` of the file, which is asked for again each time.
fn entry() -> Vec<u8> {
    let mut bytes = FILE.to_ne_bytes().to_vec();
    bytes.extend([0; 32]);
    bytes.extend(attributes(FILE));
    bytes
}

/// `struct fuse_attr`.
fn attributes(node: u64) -> Vec<u8> {
    let (mode, size) = match node {
        FILE => (libc::S_IFREG | 0o644, SIZE),
        _ => (libc::S_IFDIR | 0o755, 0),
    };
    let mut bytes = Vec::new();
    bytes.extend(node.to_ne_bytes());
    bytes.extend(size.to_ne_bytes());
    bytes.extend([0; 8 + 3 * 8 + 3 * 4]);
    for word in [mode, 1, 0, 0, 0, 4096, 0] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes
}

/// A process of an ordinary user whose own page fault holds the lock of its address space. All of
/// it goes when this is dropped.
pub struct Stuck {
    /// Goes first: the process does not die before.
    _mount: Mount,
    attacker: Child,
    thread: i32,
}

impl Stuck {
    /// Starts the process. It runs `prepare`, gets stuck, and then runs `act` in a second thread.
    pub fn new<T: Send + 'static>(
        prepare: impl FnOnce() -> TestResult<T>,
        act: impl FnOnce(T) + Send + 'static,
    ) -> TestResult<Self> {
        let mount = Mount::new()?;
        let go = Arc::new(Gate::new()?);
        let signal = go.clone();
        let (reader, writer) = fds::pipe()?;
        let file = mount.file();
        let attacker = Child::spawn(move || {
            become_user(USER)?;
            let prepared = prepare()?;
            let memory = Region::map(File::open(file)?, SIZE as usize, ProtFlags::READ)?;
            let (ready, started) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                // The first allocation of a thread maps memory, which is not possible later.
                drop(std::hint::black_box(vec![0u8; 64]));
                let _ = rustix::io::write(&writer, &task::me().to_ne_bytes());
                let _ = ready.send(());
                if go.wait().is_ok() {
                    act(prepared);
                }
                loop {
                    std::thread::park();
                }
            });
            started.recv().map_err(|_| "the thread did not start")?;
            // Comes back, by a signal, when the server is gone.
            let _ = memory.get(0);
            Ok(())
        })?;
        let mut id = [0; 4];
        let started = fds::poll_events(reader.as_fd(), soon())?;
        if started.is_empty() || rustix::io::read(&reader, &mut id)? != id.len() {
            drop(mount);
            attacker.join()?;
            return Err("the process did not start".into());
        }
        mount.until_asked()?;
        signal.open()?;
        Ok(Self {
            _mount: mount,
            attacker,
            thread: i32::from_ne_bytes(id),
        })
    }

    /// Waits until the second thread sleeps in the system call with this number.
    #[track_caller]
    pub fn until_in(&self, call: i64) -> TestResult {
        let thread = self.thread;
        eventually("the thread sleeps in the call", || {
            task::is_in(thread, call)
        })
    }

    /// Kills the process and waits for the end of the second thread; the first one is the file
    /// system's.
    #[track_caller]
    pub fn kill(&self) -> TestResult {
        self.attacker.signal(libc::SIGKILL)?;
        let thread = format!("/proc/{}/task/{}", self.attacker.pid(), self.thread);
        eventually("the killed thread ends", || {
            !std::path::Path::new(&thread).exists()
        })
    }
}

/// Demands that a process ends by itself while another one is stuck, which goes before the process
/// is waited for.
#[track_caller]
pub fn ends_beside(stuck: Stuck, process: Child) -> TestResult {
    let ended = process.ends_soon();
    drop(stuck);
    let outcome = process.join();
    ended?;
    outcome
}
