// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces that are made up.

use opendxg_timeline::event::{Event, Key, Operation, Record};

/// At so many nanoseconds.
pub fn at(time: u64, event: Event) -> Record {
    Record {
        time,
        thread: 41,
        event,
    }
}

/// A signal.
pub fn signal(queue: u64, fence: u64, value: u64) -> Key {
    Key {
        queue,
        operation: Operation::Signal,
        fence,
        value,
    }
}

/// A wait.
pub fn wait(queue: u64, fence: u64, value: u64) -> Key {
    Key {
        operation: Operation::Wait,
        ..signal(queue, fence, value)
    }
}

/// An entry of a log that is read at `read`.
pub fn entry(read: u64, key: Key, end: u64) -> Record {
    let end = Some(end);
    let done = Event::Done {
        key,
        observed: None,
        end,
    };
    at(read, done)
}
