// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions of the program that run when it should give up memory, or when its budget changes.
//!
//! Each registration has a descriptor of the kernel and a thread that reads it and calls the
//! function. A thread ends when its registration does, and takes no lock. Unregistering waits for
//! the thread, unless it is called by such a function: then functions that run meanwhile may still
//! do so when it returns.
//!
//! A forked child has none of the threads, and none of the registrations.

use core::cell::Cell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use opendxg::node::Process;
use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::Status;

use crate::library;

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Trim,
    Budget,
}

/// A function of the program. An exception that leaves it ends the process.
type Function = unsafe extern "C" fn(*mut core::ffi::c_void);

/// What the thread of a registration knows.
struct Told {
    kind: Kind,
    /// Address of the function.
    callback: u64,
    context: u64,
    /// No function is to be called any more.
    stopped: AtomicBool,
    /// Wakes the thread when it has to look at that.
    stop: OwnedFd,
}

struct Registration {
    handle: u64,
    told: Arc<Told>,
    thread: JoinHandle<()>,
}

/// The registrations of one process.
struct Registry {
    process: Process,
    list: Mutex<Vec<Registration>>,
}

/// Null until the first registration; never freed.
static REGISTRY: AtomicPtr<Registry> = AtomicPtr::new(null_mut());

/// The last handle that was given out.
static LAST: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// A function of the program runs in this thread.
    static CALLING: Cell<bool> = const { Cell::new(false) };
}

impl Registry {
    /// That of this process, if it has one.
    fn own() -> Option<&'static Self> {
        // SAFETY: null or a leaked box.
        let registry = unsafe { REGISTRY.load(Ordering::Acquire).as_ref() };
        registry.filter(|registry| registry.process == Process::current())
    }

    /// That of this process.
    fn make() -> &'static Self {
        loop {
            if let Some(registry) = Self::own() {
                return registry;
            }
            let old = REGISTRY.load(Ordering::Acquire);
            let new = Box::into_raw(Box::new(Self {
                process: Process::current(),
                list: Mutex::new(Vec::new()),
            }));
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            if REGISTRY
                .compare_exchange(old, new, success, failure)
                .is_err()
            {
                // SAFETY: nobody else has seen it.
                drop(unsafe { Box::from_raw(new) });
            }
        }
    }

    fn list(&self) -> MutexGuard<'_, Vec<Registration>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until one of the descriptors has something; false if that is the second one.
fn is_record(records: &OwnedFd, stop: &OwnedFd) -> bool {
    let entry = |fd: &OwnedFd| libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let mut both = [entry(records), entry(stop)];
    loop {
        // SAFETY: an array of that length.
        let ready = unsafe { libc::poll(both.as_mut_ptr(), 2, -1) };
        match both {
            _ if ready <= 0 => {}
            [_, stop] if stop.revents != 0 => return false,
            [records, _] if records.revents & libc::POLLIN != 0 => return true,
            // There will be no more: only the end is waited for.
            _ => both[0].fd = -1,
        }
    }
}

/// Reads do not wait: what there was to read may not be true any more.
fn set_nonblocking(fd: &OwnedFd) {
    // SAFETY: plain system calls on a descriptor of this library.
    unsafe {
        let flags = libc::fcntl(fd.as_raw_fd(), libc::F_GETFL);
        libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK);
    }
}

/// The next record; `None` if there is none after all.
fn read(records: &OwnedFd) -> Option<u64> {
    let mut bytes = [0u8; 8];
    // SAFETY: eight bytes to be written.
    let length = unsafe { libc::read(records.as_raw_fd(), bytes.as_mut_ptr().cast(), 8) };
    (length == 8).then(|| u64::from_ne_bytes(bytes))
}

impl Told {
    /// What the thread does.
    fn run(&self, records: &OwnedFd) {
        while is_record(records, &self.stop) {
            let Some(record) = read(records) else {
                continue;
            };
            if self.stopped.load(Ordering::Acquire) {
                return;
            }
            CALLING.set(true);
            // SAFETY: whoever has registered it promised that it may be called so.
            unsafe { self.call(record) };
            CALLING.set(false);
        }
    }

    /// # Safety
    ///
    /// `callback` must be the address of a function for records of this kind.
    unsafe fn call(&self, record: u64) {
        // SAFETY: the caller's promise; addresses have the size of a pointer here.
        let function = unsafe { core::mem::transmute::<usize, Function>(self.callback as usize) };
        match self.kind {
            Kind::Trim => {
                let mut notice = trim(self.context, record);
                // SAFETY: as above, with a live struct.
                unsafe { function((&raw mut notice).cast()) };
            }
            Kind::Budget => {
                let mut notice = D3DKMT_BUDGETCHANGENOTIFICATION {
                    Context: self.context,
                    Budget: record,
                };
                // SAFETY: as above.
                unsafe { function((&raw mut notice).cast()) };
            }
        }
    }

    /// Nothing is called any more; what runs goes on.
    fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight bytes to be read. An eventfd takes them.
        let _length = unsafe { libc::write(self.stop.as_raw_fd(), one.as_ptr().cast(), 8) };
    }
}

/// What a record says.
fn trim(context: u64, record: u64) -> D3DKMT_TRIMNOTIFICATION {
    let flags = [
        (
            OPENDXG_TRIM_PERIODIC,
            D3DDDI_TRIMRESIDENCYSET_FLAGS_PeriodicTrim,
        ),
        (
            OPENDXG_TRIM_RESTART,
            D3DDDI_TRIMRESIDENCYSET_FLAGS_RestartPeriodicTrim,
        ),
        (
            OPENDXG_TRIM_TO_BUDGET,
            D3DDDI_TRIMRESIDENCYSET_FLAGS_TrimToBudget,
        ),
    ];
    D3DKMT_TRIMNOTIFICATION {
        Context: context,
        Flags: flags.iter().fold(0, |all, (bit, flag)| {
            all | if record & u64::from(*bit) != 0 {
                *flag
            } else {
                0
            }
        }),
        _pad0: 0,
        NumBytesToTrim: record & !u64::from(OPENDXG_TRIM_FLAGS),
    }
}

/// An eventfd; `None` if the process is at a limit.
fn eventfd() -> Option<OwnedFd> {
    // SAFETY: plain system call.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    // SAFETY: a new descriptor that nobody else has.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Starts a thread that handles no signals of the program.
fn start(run: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    // SAFETY: all-zero bytes are a set, which is filled before it is used.
    let (mut all, mut before) = unsafe { core::mem::zeroed::<[libc::sigset_t; 2]>() }.into();
    // SAFETY: sets of this function.
    unsafe {
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
    }
    let builder = std::thread::Builder::new().name("opendxg-notice".into());
    let thread = builder.stack_size(256 << 10).spawn(run);
    // SAFETY: the set from above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, null_mut()) };
    thread.ok()
}

/// Begins to call a function for each record; returns the handle.
fn begin(records: OwnedFd, kind: Kind, callback: u64, context: u64) -> Result<u64, Status> {
    set_nonblocking(&records);

    let stop = eventfd().ok_or(Status::NO_MEMORY)?;
    let told = Arc::new(Told {
        kind,
        callback,
        context,
        stopped: AtomicBool::new(false),
        stop,
    });
    let handle = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    // The function may unregister itself at once: it finds the registration.
    let mut list = Registry::make().list();
    let own = told.clone();
    let thread = start(move || own.run(&records)).ok_or(Status::NO_MEMORY)?;
    list.push(Registration {
        handle,
        told,
        thread,
    });
    Ok(handle)
}

/// Ends the registrations that are meant, all of one kind. INVALID_PARAMETER if there is none.
fn end(is_meant: impl Fn(&Registration) -> bool) -> Status {
    let Some(registry) = Registry::own() else {
        return Status::INVALID_PARAMETER;
    };
    let ended: Vec<Registration> = {
        let mut list = registry.list();
        let (ended, others) = core::mem::take(&mut *list)
            .into_iter()
            .partition(|one| is_meant(one));
        *list = others;
        ended
    };
    if ended.is_empty() {
        return Status::INVALID_PARAMETER;
    }
    for one in &ended {
        one.told.stop();
    }
    if !CALLING.get() {
        for one in ended {
            // A thread that has panicked has ended the process.
            let _result = one.thread.join();
        }
    }
    Status::SUCCESS
}

/// The descriptor of the kernel.
fn descriptor(luid: LUID, device: u32, kind: u32) -> Result<OwnedFd, Status> {
    let mut arg = opendxg_memory_notice::zeroed();
    (arg.adapter_luid_low, arg.adapter_luid_high) = (luid.LowPart, luid.HighPart);
    (arg.device, arg.kind) = (device, kind);
    // SAFETY: the argument holds no address.
    match unsafe { library::call(&mut arg) } {
        // SAFETY: the kernel made the descriptor for this call.
        Status::SUCCESS => Ok(unsafe { OwnedFd::from_raw_fd(arg.fd) }),
        refused => Err(refused),
    }
}

/// D3DKMTRegisterTrimNotification.
pub(crate) unsafe fn register_trim(arg: &mut D3DKMT_REGISTERTRIMNOTIFICATION) -> Status {
    if arg.Callback == 0 {
        return Status::INVALID_PARAMETER;
    }
    let begun = descriptor(arg.AdapterLuid, arg.hDevice, OPENDXG_NOTICE_TRIM)
        .and_then(|records| begin(records, Kind::Trim, arg.Callback, arg.Context));
    match begun {
        Ok(handle) => {
            arg.Handle = handle;
            Status::SUCCESS
        }
        Err(refused) => refused,
    }
}

/// D3DKMTUnregisterTrimNotification: by the handle, or all with a function.
pub(crate) unsafe fn unregister_trim(arg: &mut D3DKMT_UNREGISTERTRIMNOTIFICATION) -> Status {
    let (handle, callback) = (arg.Handle, arg.Callback);
    end(|one| {
        one.told.kind == Kind::Trim
            && match handle {
                0 => one.told.callback == callback,
                handle => one.handle == handle,
            }
    })
}

/// D3DKMTRegisterBudgetChangeNotification.
pub(crate) unsafe fn register_budget(arg: &mut D3DKMT_REGISTERBUDGETCHANGENOTIFICATION) -> Status {
    if arg.Callback == 0 {
        return Status::INVALID_PARAMETER;
    }
    let any = LUID {
        LowPart: 0,
        HighPart: 0,
    };
    let begun = descriptor(any, arg.hDevice, OPENDXG_NOTICE_BUDGET)
        .and_then(|records| begin(records, Kind::Budget, arg.Callback, arg.Context));
    match begun {
        Ok(handle) => {
            arg.Handle = handle;
            Status::SUCCESS
        }
        Err(refused) => refused,
    }
}

/// D3DKMTUnregisterBudgetChangeNotification.
pub(crate) unsafe fn unregister_budget(
    arg: &mut D3DKMT_UNREGISTERBUDGETCHANGENOTIFICATION,
) -> Status {
    let handle = arg.Handle;
    end(|one| one.told.kind == Kind::Budget && one.handle == handle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{channel, Receiver, Sender};
    use std::time::Duration;

    /// What a test's function is given.
    struct Seen {
        sender: Sender<(u32, u64)>,
        /// Lets the function return.
        gate: Mutex<Receiver<()>>,
        /// The registration that the function ends by itself.
        ends: Mutex<Option<u64>>,
    }

    unsafe extern "C" fn trimmed(notice: *mut core::ffi::c_void) {
        // SAFETY: called with such a struct, whose context is that of the test.
        let (notice, seen) = unsafe {
            let notice = &*notice.cast::<D3DKMT_TRIMNOTIFICATION>();
            (notice, &*(notice.Context as *const Seen))
        };
        seen.sender
            .send((notice.Flags, notice.NumBytesToTrim))
            .expect("the test waits");
        let own = seen.ends.lock().expect("one thread").take();
        if let Some(handle) = own {
            assert_eq!(end(|one| one.handle == handle), Status::SUCCESS);
        }
        let _ = seen.gate.lock().expect("one thread").recv();
    }

    /// A descriptor that gives what is written into the other one.
    fn pipe() -> (OwnedFd, OwnedFd) {
        let mut ends = [0; 2];
        // SAFETY: an array of two.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        // SAFETY: new descriptors.
        ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }).into()
    }

    fn tell(fd: &OwnedFd, record: u64) {
        let bytes = record.to_ne_bytes();
        // SAFETY: eight bytes.
        let length = unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), 8) };
        assert_eq!(length, 8);
    }

    struct Scene {
        seen: &'static Seen,
        told: Receiver<(u32, u64)>,
        open: Sender<()>,
    }

    fn scene() -> Scene {
        let ((sender, told), (open, gate)) = (channel(), channel());
        let seen = Box::leak(Box::new(Seen {
            sender,
            gate: Mutex::new(gate),
            ends: Mutex::new(None),
        }));
        Scene { seen, told, open }
    }

    impl Scene {
        fn register(&self, records: OwnedFd, callback: Function) -> u64 {
            let context = core::ptr::from_ref(self.seen) as u64;
            begin(records, Kind::Trim, callback as usize as u64, context).expect("registered")
        }
    }

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn mem_38_a_function_is_called_with_each_record() {
        let (records, kernel) = pipe();
        let scene = scene();
        let handle = scene.register(records, trimmed);
        for (record, expected) in [
            (0x7000 | 4, (4, 0x7000)),
            (1, (1, 0)),
            (2 | 4 | 0x1000, (6, 0x1000)),
        ] {
            tell(&kernel, record);
            assert_eq!(scene.told.recv_timeout(PATIENCE), Ok(expected));
            scene.open.send(()).expect("the function waits");
        }
        // There will be no more; that ends nothing.
        drop(kernel);
        assert_eq!(end(|one| one.handle == handle), Status::SUCCESS);
        let again = end(|one| one.handle == handle);
        assert_eq!(again, Status::INVALID_PARAMETER);
    }

    #[test]
    fn mem_38_the_end_waits_for_a_function_that_runs() {
        let (records, kernel) = pipe();
        let scene = scene();
        let handle = scene.register(records, trimmed);
        tell(&kernel, 1);
        assert_eq!(scene.told.recv_timeout(PATIENCE), Ok((1, 0)));
        // Another record is there, which nobody is told of.
        tell(&kernel, 2);
        let (sender, ended) = channel();
        let ender = std::thread::spawn(move || {
            let status = end(|one| one.handle == handle);
            sender.send(status).expect("the test waits");
        });
        assert!(ended.recv_timeout(Duration::from_millis(50)).is_err());
        scene.open.send(()).expect("the function waits");
        assert_eq!(ended.recv_timeout(PATIENCE), Ok(Status::SUCCESS));
        ender.join().expect("no panic");
        assert!(scene.told.try_recv().is_err());
    }

    #[test]
    fn mem_38_a_function_ends_its_own_registration() {
        let (records, kernel) = pipe();
        let scene = scene();
        let handle = scene.register(records, trimmed);
        *scene.seen.ends.lock().expect("not poisoned") = Some(handle);
        tell(&kernel, 1);
        assert_eq!(scene.told.recv_timeout(PATIENCE), Ok((1, 0)));
        scene.open.send(()).expect("the function waits");
        // The thread goes by itself, and with it the reader.
        while {
            let bytes = [0u8; 8];
            // SAFETY: eight bytes; a signal for a pipe without a reader is ignored by the runtime.
            unsafe { libc::write(kernel.as_raw_fd(), bytes.as_ptr().cast(), 8) == 8 }
        } {
            std::thread::yield_now();
        }
        assert_eq!(end(|one| one.handle == handle), Status::INVALID_PARAMETER);
        assert!(scene.told.try_recv().is_err());
    }

    #[test]
    fn mem_38_all_registrations_of_a_function_end() {
        /// Not the function of other tests.
        unsafe extern "C" fn other(notice: *mut core::ffi::c_void) {
            // SAFETY: as the caller's.
            unsafe { trimmed(notice) }
        }
        let (scene, pipes) = (scene(), [pipe(), pipe(), pipe()]);
        for (records, _) in &pipes {
            let records = records.try_clone().expect("descriptors");
            scene.register(records, other);
        }
        let mut arg = D3DKMT_UNREGISTERTRIMNOTIFICATION {
            Handle: 0,
            Callback: other as usize as u64,
        };
        // SAFETY: the argument holds no address that is used.
        unsafe {
            assert_eq!(unregister_trim(&mut arg), Status::SUCCESS);
            assert_eq!(unregister_trim(&mut arg), Status::INVALID_PARAMETER);
        }
        for (_, kernel) in &pipes {
            tell(kernel, 1);
        }
        assert!(scene.told.try_recv().is_err());
    }
}
