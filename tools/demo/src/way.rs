// SPDX-License-Identifier: MIT OR Apache-2.0
//! The four ways to wait for a fence.

use opendxg::{EventFd, MonitoredFence};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;

use demo::Result;

/// A way to wait until a fence has reached a value.
pub trait Way {
    /// Short name, for the table.
    fn name(&self) -> &'static str;
    /// What happens, for a newcomer.
    fn story(&self) -> &'static str;
    /// Waits.
    fn wait(&mut self, fence: &MonitoredFence, value: u64) -> Result;
}

/// All ways, in the order of `fence_wait` in `c/fence.c`.
pub fn all() -> Result<[Box<dyn Way>; 4]> {
    Ok([
        Box::new(Blocking),
        Box::new(EventLoop::new()?),
        Box::new(Descriptor),
        Box::new(Polling),
    ])
}

/// Sleeps inside the call.
struct Blocking;

impl Way for Blocking {
    fn name(&self) -> &'static str {
        "blocking wait"
    }

    fn story(&self) -> &'static str {
        "each program sleeps inside the wait call until the other has signalled"
    }

    fn wait(&mut self, fence: &MonitoredFence, value: u64) -> Result {
        Ok(fence.wait(value)?)
    }
}

/// Asks for an event and sleeps in an epoll loop.
struct EventLoop {
    event: EventFd,
    epoll: std::os::fd::OwnedFd,
    ready: Vec<epoll::Event>,
}

impl EventLoop {
    fn new() -> Result<Self> {
        let event = EventFd::new()?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(0);
        epoll::add(&epoll, &event, data, epoll::EventFlags::IN)?;
        let ready = Vec::with_capacity(1);
        Ok(Self {
            event,
            epoll,
            ready,
        })
    }
}

impl Way for EventLoop {
    fn name(&self) -> &'static str {
        "event in an epoll loop"
    }

    fn story(&self) -> &'static str {
        "the wait call returns at once; later the driver signals an eventfd in an epoll loop"
    }

    fn wait(&mut self, fence: &MonitoredFence, value: u64) -> Result {
        fence.wait_async(value, &self.event)?;
        self.ready.clear();
        epoll::wait(&self.epoll, spare_capacity(&mut self.ready), None)?;
        match self.event.take()? {
            1 => Ok(()),
            count => Err(format!("the event of one wait was signalled {count} times").into()),
        }
    }
}

/// Polls a descriptor made for the value.
struct Descriptor;

impl Way for Descriptor {
    fn name(&self) -> &'static str {
        "pollable descriptor"
    }

    fn story(&self) -> &'static str {
        "a descriptor made for one fence value becomes readable; the program polls it"
    }

    fn wait(&mut self, fence: &MonitoredFence, value: u64) -> Result {
        fence.point(value)?.wait(None)?;
        Ok(())
    }
}

/// Looks at the mapped value until it is there.
struct Polling;

impl Way for Polling {
    fn name(&self) -> &'static str {
        "polling the value"
    }

    fn story(&self) -> &'static str {
        "the value is mapped into both programs: they just read it, without a system call"
    }

    fn wait(&mut self, fence: &MonitoredFence, value: u64) -> Result {
        let mut looks = 0u32;
        while !fence.is_reached(value) {
            core::hint::spin_loop();
            looks += 1;
            if looks % 4096 == 0 {
                std::thread::yield_now(); // Perhaps there is only one processor.
            }
        }
        Ok(())
    }
}
