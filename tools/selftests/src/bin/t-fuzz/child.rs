// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a program in a process of its own.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{pidfd_open, pidfd_send_signal, Pid, PidfdFlags, Signal};
use selftests::time::scaled;
use selftests::TestResult;

use super::choices::Choices;
use super::coverage::Kcov;
use super::lang::{Call, Lang, System};
use super::program::{Program, Step};
use super::value::{Arena, Pool};

/// A call that waits is interrupted after so many microseconds, again and again.
const TICK: i64 = 20_000;

/// How long a program may take until it is killed, which a slow machine only does more often, and
/// then until it is dead.
const PATIENCE: Duration = Duration::from_millis(500);
const DEATH: Duration = Duration::from_secs(30);

/// How a program ended.
#[derive(PartialEq)]
pub(crate) enum End {
    /// By itself.
    Over,
    /// It was killed after a while.
    Killed,
    /// It does not die.
    Stuck,
}

/// Runs it. What it writes to the memory is lost with it.
pub(crate) fn run(
    lang: &Lang,
    program: &Program,
    kcov: &Kcov,
    arenas: &mut [Arena; 2],
) -> TestResult<End> {
    // SAFETY: this process has one thread, so the child may do what it wants. It ends by `_exit`.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: plain system call.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        let _ = inside(lang, program, Some(kcov), arenas);
        // SAFETY: ends the process.
        unsafe { libc::_exit(0) };
    }
    wait(Pid::from_raw(pid).ok_or("fork failed")?)
}

/// What the child does.
pub(crate) fn inside(
    lang: &Lang,
    program: &Program,
    kcov: Option<&Kcov>,
    [mine, other]: &mut [Arena; 2],
) -> TestResult {
    interrupt_often();
    let node = File::options().read(true).write(true).open("/dev/dxg")?;
    if let Some(kcov) = kcov {
        kcov.enable()?;
    }
    let pool = Mutex::new(Pool::new(lang));
    if program.is_double {
        std::thread::scope(|scope| {
            scope.spawn(|| steps(lang, &program.steps, &node, &pool, other));
            steps(lang, &program.steps, &node, &pool, mine);
        });
    } else {
        steps(lang, &program.steps, &node, &pool, mine);
    }
    if !program.leaves {
        // What is behind the descriptors is released while KCOV still looks.
        drop(node);
        // SAFETY: nothing of this process needs its descriptors any more.
        unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
    }
    Ok(())
}

fn steps(lang: &Lang, steps: &[Step], node: &File, pool: &Mutex<Pool>, arena: &mut Arena) {
    for step in steps {
        let call = &lang.calls[step.call];
        let mut choices = Choices::new(&step.bytes);
        one(lang, call, node, pool, arena, &mut choices);
    }
}

/// Makes one call.
fn one(
    lang: &Lang,
    call: &Call,
    node: &File,
    pool: &Mutex<Pool>,
    arena: &mut Arena,
    choices: &mut Choices<'_>,
) {
    let take = || pool.lock().unwrap_or_else(|broken| broken.into_inner());
    let on = match call.on {
        Some(kind) if lang.kind("fd_dxg").ok() != Some(kind) => {
            take().pick(lang, kind, choices) as i32
        }
        _ => node.as_raw_fd(),
    };
    if on <= 2 {
        return;
    }
    let mut buffer = [0u8; 64];
    // SAFETY: the kernel checks every address; those that it may write to are in `arena` and in
    // `buffer`, or nowhere.
    let result = unsafe {
        match &call.system {
            System::Ioctl(code, argument) => {
                let address = match argument {
                    Some(kind) => arena.argument(lang, kind, &take(), choices),
                    None => choices.word(),
                };
                libc::ioctl(on, u64::from(*code), address)
            }
            System::Read => libc::read(on, buffer.as_mut_ptr().cast(), buffer.len()) as i32,
            System::Close => libc::close(on),
            System::Eventfd => libc::eventfd(0, libc::EFD_NONBLOCK),
        }
    };
    match (&call.system, call.returns) {
        (System::Ioctl(..), _) if result >= 0 => arena.collect(&mut take()),
        (_, Some(kind)) if result > 2 => take().add(kind, result as u64),
        _ => {}
    }
}

/// Has a signal come all the time, which ends every wait.
fn interrupt_often() {
    extern "C" fn nothing(_: i32) {}

    // SAFETY: the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(i32) as usize;
        libc::sigaction(libc::SIGALRM, &action, core::ptr::null_mut());
        let tick = libc::timeval {
            tv_sec: 0,
            tv_usec: TICK,
        };
        let timer = libc::itimerval {
            it_interval: tick,
            it_value: tick,
        };
        libc::setitimer(libc::ITIMER_REAL, &timer, core::ptr::null_mut());
    }
}

/// Waits for the end of a child, and kills it if that does not come.
fn wait(pid: Pid) -> TestResult<End> {
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    let ends_within = |time: Duration| -> TestResult<bool> {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let left = Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: left.subsec_nanos().into(),
            };
            let mut polled = [PollFd::new(&process, PollFlags::IN)];
            match poll(&mut polled, Some(&left)) {
                Ok(count) => return Ok(count > 0),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    };
    let mut end = End::Over;
    if !ends_within(PATIENCE)? {
        end = End::Killed;
        pidfd_send_signal(&process, Signal::KILL)?;
        if !ends_within(scaled(DEATH))? {
            return Ok(End::Stuck);
        }
    }
    rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty())?;
    Ok(end)
}
