// SPDX-License-Identifier: MIT OR Apache-2.0
//! Callbacks that programs register, and the thread that runs them.
//!
//! The thread exists while something is registered. It looks once a second whether an adapter has
//! come or gone, and whenever another thread has noticed that: nothing in the kernel tells it
//! today. It does not keep the device open. All callbacks run in it, one after the other, so those
//! of a registration never overlap.
//!
//! A registration keeps its object. Unregistering waits for the callback if it runs, except inside
//! it.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::adapter::Adapter;
use super::com::{HResult, Object, Reference};
use super::list::AdapterList;
use super::state;
use super::world::{undisturbed, world};

/// `PFN_DXCORE_NOTIFICATION_CALLBACK`: type, object, context. An exception that leaves it ends the
/// process.
pub(super) type Callback = unsafe extern "C-unwind" fn(u32, *mut c_void, *mut c_void);

/// How long the thread sleeps between looks.
const PERIOD: Duration = Duration::from_secs(1);

/// `DXCoreNotificationType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    ListStale = 0,
    AdapterNoLongerValid = 1,
    BudgetChange = 2,
    /// There is no protected content, so after the first callback there is none.
    ContentProtectionTeardown = 3,
}

impl Kind {
    pub(super) fn of(number: u32) -> Option<Self> {
        let all = [
            Self::ListStale,
            Self::AdapterNoLongerValid,
            Self::BudgetChange,
            Self::ContentProtectionTeardown,
        ];
        all.into_iter().find(|kind| *kind as u32 == number)
    }

    /// Whether there is a callback for each registration, to begin with.
    fn begins_with_a_callback(self) -> bool {
        matches!(self, Self::BudgetChange | Self::ContentProtectionTeardown)
    }
}

/// The object of a registration.
#[derive(Clone)]
pub(super) enum Subject {
    List(Reference<AdapterList>),
    Adapter(Reference<Adapter>),
}

impl Subject {
    /// The object, if it is one that raises such notifications.
    ///
    /// # Safety
    ///
    /// `object` is NULL or the address of a live object.
    pub(super) unsafe fn of(object: *mut c_void, kind: Kind) -> Option<Self> {
        if object.is_null() {
            return None;
        }
        if kind == Kind::ListStale {
            // SAFETY: the caller's promise.
            let list = unsafe { Object::<AdapterList>::recognise(object) }?;
            return Some(Self::List(list.reference()));
        }
        // SAFETY: the caller's promise.
        let adapter = unsafe { Object::<Adapter>::recognise(object) }?;
        Some(Self::Adapter(adapter.reference()))
    }

    fn address(&self) -> *mut c_void {
        match self {
            Self::List(list) => list.address(),
            Self::Adapter(adapter) => adapter.address(),
        }
    }
}

/// The context of a program.
#[derive(Clone, Copy)]
struct Context(*mut c_void);

// SAFETY: the program lets another thread call the function with the context.
unsafe impl Send for Context {}

struct Registration {
    /// Unlike the cookie it is never used again.
    id: u64,
    cookie: u32,
    kind: Kind,
    subject: Subject,
    callback: Callback,
    context: Context,
    /// The callback has to be called.
    due: bool,
    /// What can happen once has happened.
    over: bool,
    budgets: Option<[u64; 2]>,
}

/// What a look found out about a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    None,
    /// The list is stale, or the adapter no longer valid.
    Happened,
    Budgets([u64; 2]),
}

impl Registration {
    fn hear(&mut self, news: News) {
        match news {
            News::None => {}
            News::Happened => {
                self.due |= !self.over;
                self.over = true;
            }
            News::Budgets(new) => {
                let before = self.budgets.replace(new);
                self.due |= before.is_some_and(|before| before != new);
            }
        }
    }
}

/// Looks how things are. No lock is held.
fn look(kind: Kind, subject: &Subject) -> News {
    let happened = match (kind, subject) {
        (Kind::ListStale, Subject::List(list)) => list.is_stale(),
        (Kind::AdapterNoLongerValid, Subject::Adapter(adapter)) => !adapter.is_valid(),
        (Kind::BudgetChange, Subject::Adapter(adapter)) => {
            return state::budgets(adapter).map_or(News::None, News::Budgets);
        }
        _ => false,
    };
    if happened {
        News::Happened
    } else {
        News::None
    }
}

struct Inner {
    registrations: Vec<Registration>,
    last_id: u64,
    last_cookie: u32,
    /// The thread exists.
    has_thread: bool,
    /// The thread, once it runs.
    thread: Option<libc::pthread_t>,
    /// The registration whose callback runs, or at whose object the thread looks.
    running: Option<u64>,
    /// The thread has to look.
    look: bool,
}

/// The registrations.
pub(super) struct Notifier {
    inner: Mutex<Inner>,
    /// Anything the thread or those who wait for it could be interested in.
    changed: Condvar,
}

impl Notifier {
    pub(super) const fn new() -> Self {
        Self {
            inner: Mutex::new(Inner {
                registrations: Vec::new(),
                last_id: 0,
                last_cookie: 0,
                has_thread: false,
                thread: None,
                running: None,
                look: false,
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the thread, if there is one, look.
    pub(super) fn wake(&self) {
        let mut inner = self.lock();
        if inner.has_thread {
            inner.look = true;
            self.changed.notify_all();
        }
    }

    /// RegisterEventNotification. `publish` gets the cookie before the callback can be called.
    pub(super) fn register(
        &self,
        subject: Subject,
        kind: Kind,
        callback: Callback,
        context: *mut c_void,
        publish: impl FnOnce(u32),
    ) -> Result<(), HResult> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        inner
            .registrations
            .try_reserve(1)
            .map_err(|_| HResult::E_OUTOFMEMORY)?;
        if !inner.has_thread {
            start_thread()?;
            inner.has_thread = true;
        }
        let cookie = inner.unused_cookie();
        inner.last_id += 1;
        publish(cookie);
        inner.registrations.push(Registration {
            id: inner.last_id,
            cookie,
            kind,
            subject,
            callback,
            context: Context(context),
            due: kind.begins_with_a_callback(),
            over: false,
            budgets: None,
        });
        inner.look = true;
        self.changed.notify_all();
        Ok(())
    }

    /// UnregisterEventNotification.
    pub(super) fn unregister(&self, cookie: u32) -> Result<(), HResult> {
        let mut inner = self.lock();
        let mut registrations = inner.registrations.iter();
        let index = registrations
            .position(|it| it.cookie == cookie)
            .ok_or(HResult::E_INVALIDARG)?;
        let registration = inner.registrations.swap_remove(index);
        self.changed.notify_all();
        // SAFETY: always sound.
        let this = unsafe { libc::pthread_self() };
        while inner.running == Some(registration.id) && inner.thread != Some(this) {
            inner = wait(&self.changed, inner);
        }
        drop(inner);
        // The last release of the object, perhaps: after the lock.
        drop(registration);
        Ok(())
    }

    /// The thread.
    fn run(&self) {
        let mut inner = self.lock();
        // SAFETY: always sound.
        inner.thread = Some(unsafe { libc::pthread_self() });
        while !inner.registrations.is_empty() {
            inner = self.call_due(inner);
            if core::mem::take(&mut inner.look) {
                inner = self.look_at_all(inner);
            } else if !inner.registrations.is_empty() {
                let timed = self.changed.wait_timeout(inner, PERIOD);
                let (guard, timeout) = timed.unwrap_or_else(PoisonError::into_inner);
                inner = guard;
                inner.look |= timeout.timed_out();
            }
        }
        (inner.has_thread, inner.thread) = (false, None);
        self.changed.notify_all();
    }

    /// Calls every callback that is due.
    fn call_due<'a>(&'a self, mut inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        while let Some(due) = inner.registrations.iter_mut().find(|it| it.due) {
            due.due = false;
            let (id, kind, callback) = (due.id, due.kind, due.callback);
            let (object, context) = (due.subject.address(), due.context);
            inner.running = Some(id);
            drop(inner);
            // SAFETY: promised when it was registered; the registration, or who unregisters it,
            // keeps the object.
            unsafe { callback(kind as u32, object, context.0) };
            inner = self.lock();
            inner.running = None;
            self.changed.notify_all();
        }
        inner
    }

    /// Looks at every registration.
    fn look_at_all<'a>(&'a self, mut inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        let mut last = 0;
        loop {
            let next = inner.registrations.iter().filter(|it| it.id > last);
            let Some(next) = next.min_by_key(|it| it.id) else {
                return inner;
            };
            last = next.id;
            if next.over {
                continue;
            }
            let (kind, subject) = (next.kind, next.subject.clone());
            // Who unregisters waits for the look too, and finds no reference left behind.
            inner.running = Some(last);
            drop(inner);
            let news = undisturbed(|| look(kind, &subject));
            drop(subject);
            inner = self.lock();
            inner.running = None;
            self.changed.notify_all();
            let same = inner.registrations.iter_mut().find(|it| it.id == last);
            if let Some(registration) = same {
                registration.hear(news);
            }
        }
    }
}

impl Inner {
    /// A number that is not 0 and that no registration has.
    fn unused_cookie(&mut self) -> u32 {
        loop {
            self.last_cookie = self.last_cookie.wrapping_add(1);
            let cookie = self.last_cookie;
            if cookie != 0 && self.registrations.iter().all(|it| it.cookie != cookie) {
                return cookie;
            }
        }
    }
}

fn wait<'a>(changed: &Condvar, inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
    changed.wait(inner).unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn thread_main(_: *mut c_void) -> *mut c_void {
    world().notifier.run();
    null_mut()
}

/// Starts the thread, which gets no signals: handlers of the program run in the program's threads.
/// The program may close the library while the thread ends, because the library is never unloaded.
fn start_thread() -> Result<(), HResult> {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let mut thread = MaybeUninit::uninit();
    // SAFETY: live variables; `before` is written before it is read; a thread that was made is
    // detached once.
    let refused = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
        let attributes = core::ptr::null();
        let refused =
            libc::pthread_create(thread.as_mut_ptr(), attributes, thread_main, null_mut());
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), null_mut());
        if refused == 0 {
            libc::pthread_detach(thread.assume_init());
        }
        refused
    };
    if refused == 0 {
        Ok(())
    } else {
        Err(HResult::E_OUTOFMEMORY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{channel, Sender};

    unsafe extern "C-unwind" fn send(kind: u32, object: *mut c_void, context: *mut c_void) {
        // SAFETY: the tests register a live sender.
        let sender = unsafe { &*context.cast::<Sender<(u32, usize)>>() };
        sender.send((kind, object as usize)).unwrap();
    }

    #[test]
    fn numbers_of_the_header() {
        for number in 0..4 {
            assert_eq!(Kind::of(number).unwrap() as u32, number);
        }
        assert_eq!(Kind::of(4), None);
    }

    #[test]
    fn what_can_happen_once_happens_once() {
        let list = AdapterList::of(super::super::attributes::Filter::Nothing).unwrap();
        let (sender, _receiver) = channel::<(u32, usize)>();
        let mut registration = Registration {
            id: 1,
            cookie: 1,
            kind: Kind::ListStale,
            subject: Subject::List(list),
            callback: send,
            context: Context((&raw const sender).cast_mut().cast()),
            due: false,
            over: false,
            budgets: None,
        };
        registration.hear(News::None);
        assert!(!registration.due);
        registration.hear(News::Happened);
        assert!(core::mem::take(&mut registration.due));
        registration.hear(News::Happened);
        assert!(!registration.due);
        registration.hear(News::Budgets([1, 2]));
        assert!(!registration.due);
        registration.hear(News::Budgets([1, 2]));
        assert!(!registration.due);
        registration.hear(News::Budgets([1, 3]));
        assert!(registration.due);
    }

    #[test]
    fn cookies_are_unique_and_not_zero() {
        let list = AdapterList::of(super::super::attributes::Filter::Nothing).unwrap();
        let (sender, receiver) = channel::<(u32, usize)>();
        let notifier = &world().notifier;
        notifier.lock().last_cookie = u32::MAX - 2;
        let mut cookies = Vec::new();
        for _ in 0..5 {
            let subject = Subject::List(list.clone());
            let context = (&raw const sender).cast_mut().cast();
            notifier
                .register(subject, Kind::ListStale, send, context, |cookie| {
                    cookies.push(cookie);
                })
                .unwrap();
        }
        assert_eq!(cookies, [u32::MAX - 1, u32::MAX, 1, 2, 3]);
        for cookie in cookies {
            assert_eq!(notifier.unregister(cookie), Ok(()));
            assert_eq!(notifier.unregister(cookie), Err(HResult::E_INVALIDARG));
        }
        // The list did not become stale, and the thread goes.
        assert!(receiver.try_recv().is_err());
        let mut inner = notifier.lock();
        while inner.has_thread {
            inner = wait(&notifier.changed, inner);
        }
    }
}
