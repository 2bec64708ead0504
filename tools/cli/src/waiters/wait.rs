// SPDX-License-Identifier: MIT OR Apache-2.0
//! A line `dxg-wait`: one element of a wait.

use serde::Serialize;

/// Somebody waits for an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// Number of the object.
    pub object: u64,
    /// The value of a fence, or the key of a keyed mutex.
    pub value: u64,
    /// The process; `None` for one that this pid namespace does not know.
    pub pid: Option<u32>,
    /// The thread that sleeps, if one does.
    pub thread: Option<u32>,
    /// How long ago it began.
    pub ago_ns: u64,
    /// Number of the wait; of a keyed mutex only among those of the mutex.
    pub id: u64,
    /// What is told of the end: `thread`, `event`, `poll`, `stream`, `queue`.
    pub receiver: String,
    /// Whether one of several elements is enough.
    pub any: bool,
}

impl Wait {
    /// `OBJECT value=N pid=N ago=NS id=N receiver=WORD mode=any|all thread=N`.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let mut wait = Self {
            object: words.next()?.parse().ok()?,
            value: 0,
            pid: None,
            thread: None,
            ago_ns: 0,
            id: 0,
            receiver: "?".into(),
            any: false,
        };
        let mut has_value = false;
        for (name, value) in words.filter_map(|word| word.split_once('=')) {
            let pid = || value.parse().ok().filter(|&pid| pid != 0);
            match name {
                "value" => {
                    wait.value = value.parse().ok()?;
                    has_value = true;
                }
                "pid" => wait.pid = pid(),
                "thread" => wait.thread = pid(),
                "ago" => wait.ago_ns = value.parse().ok()?,
                "id" => wait.id = value.parse().ok()?,
                "receiver" => wait.receiver = value.into(),
                "mode" => wait.any = value == "any",
                _ => (),
            }
        }
        has_value.then_some(wait)
    }

    /// Whether it holds up its process: nobody waits in a stream that nobody reads.
    pub fn holds_up(&self) -> bool {
        self.receiver != "stream"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line() {
        let wait = Wait::parse("7 value=5 pid=10 ago=99 id=3 receiver=thread mode=any thread=11");
        let wait = wait.unwrap();
        assert_eq!((wait.object, wait.value, wait.id), (7, 5, 3));
        assert_eq!(
            (wait.pid, wait.thread, wait.any),
            (Some(10), Some(11), true)
        );
        assert!(wait.holds_up());
        let other = Wait::parse("7 value=0 pid=0 new=1 receiver=stream").unwrap();
        assert_eq!((other.pid, other.thread, other.any), (None, None, false));
        assert!(!other.holds_up());
        for bad in ["", "x value=1", "7 pid=1", "7 value=x"] {
            assert_eq!(Wait::parse(bad), None, "{bad}");
        }
    }
}
