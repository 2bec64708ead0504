// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines about engines and queues that the module writes into debugfs: a number, and words
//! `NAME=VALUE`. A word that is missing or that this version does not understand is left out.

use serde::Serialize;

/// A line `engine:`: an engine of an adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Engine {
    /// Its node.
    pub node: u64,
    /// What it is for: `3d`, `compute`, `copy`, `paging` …
    pub kind: String,
    /// `running`, `idle` or `stopped`.
    pub state: String,
    /// The queue that it runs.
    pub running: Option<u64>,
    /// Nanoseconds that it has run queues.
    pub busy_ns: Option<u64>,
    /// Command buffers that it has done.
    pub submissions: Option<u64>,
    /// How often it went from one queue to another.
    pub switches: Option<u64>,
    /// Queues that could run.
    pub ready: Option<u64>,
    /// Queues that wait for a value in memory.
    pub blocked: Option<u64>,
    /// The last fault of a queue that it ran.
    pub last_fault: Option<LastFault>,
}

/// A fault, and whose it was: both may be gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LastFault {
    /// The queue.
    pub queue: Option<u64>,
    /// The process.
    pub pid: Option<u64>,
    /// What it was.
    #[serde(flatten)]
    pub fault: Fault,
}

/// The line `recovery:`: how an adapter has recovered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Recovery {
    /// Work that takes longer hangs, in milliseconds.
    pub tdr_delay_ms: Option<u64>,
    /// How often an engine was reset.
    pub engine_resets: Option<u64>,
    /// How often all of the adapter was.
    pub adapter_resets: Option<u64>,
}

/// A line `queue:`: a context of packets or a hardware queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Queue {
    /// Its number.
    pub id: u64,
    /// The process whose it is.
    pub pid: Option<u64>,
    /// `packets` or `hw`.
    pub kind: String,
    /// The node that it is for.
    pub node: Option<u64>,
    /// Its priority among all queues: -7 to 7, and up to 31 for real time.
    pub priority: Option<i64>,
    /// `idle`, `queued`, `submitted`, `running`, `blocked`, `faulted`, `closing` or `stopped`.
    pub state: String,
    /// What is not over: command buffers, waits and signals.
    pub queued: Option<u64>,
    /// Command buffers among them that the engine has.
    pub in_flight: Option<u64>,
    /// Command buffers that are done.
    pub submissions: Option<u64>,
    /// Nanoseconds that its commands have run.
    pub busy_ns: Option<u64>,
    /// Whether its process reaches the GPU by its doorbell, if it fills the queue by itself:
    /// `connected`, `notify`, `retry` or `abort`.
    pub doorbell: Option<String>,
    /// The value of its progress fence, of such a queue.
    pub progress: Option<u64>,
    /// What that will be when all is done that the process has queued, as the process says.
    pub last_queued: Option<u64>,
    /// What it waits for, if its next item is a wait that is not satisfied.
    pub blocked_on: Option<Blocked>,
    /// Why it has stopped.
    pub fault: Option<Fault>,
}

/// What a queue waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Blocked {
    /// Kind of the object.
    pub kind: String,
    /// Number of the object.
    pub object: u64,
    /// The value that it has to reach.
    pub value: Option<u64>,
}

/// Why a queue has stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// `page` for a bad access, `packet` for a packet that is none.
    pub kind: String,
    /// The address that was accessed.
    pub address: Option<u64>,
    /// Whether it was to be written to.
    pub write: Option<bool>,
    /// First word of the packet, if that was the reason.
    pub header: Option<u64>,
    /// Address of the packet.
    pub packet: Option<u64>,
    /// Which submission of the queue it was.
    pub submission: Option<u64>,
}

/// Reads a line `engine:`.
pub fn engine(line: &str) -> Option<Engine> {
    let (node, words) = Words::of(line, "engine")?;
    Some(Engine {
        node,
        kind: words.text("kind"),
        state: words.text("state"),
        running: words.number("running"),
        busy_ns: words.number("busy_ns"),
        submissions: words.number("submissions"),
        switches: words.number("switches"),
        ready: words.number("ready"),
        blocked: words.number("blocked"),
        last_fault: fault(&words).map(|fault| LastFault {
            queue: words.number("fault_queue"),
            pid: words.number("fault_pid").filter(|&pid| pid != 0),
            fault,
        }),
    })
}

/// Reads the line `recovery:`.
pub fn recovery(line: &str) -> Option<Recovery> {
    let words = Words(line.strip_prefix("recovery:")?);
    Some(Recovery {
        tdr_delay_ms: words.number("tdr_delay_ms"),
        engine_resets: words.number("engine_resets"),
        adapter_resets: words.number("adapter_resets"),
    })
}

/// Reads a line `queue:`.
pub fn queue(line: &str) -> Option<Queue> {
    let (id, words) = Words::of(line, "queue")?;
    Some(Queue {
        id,
        // 0 stands for a process that is gone.
        pid: words.number("pid").filter(|&pid| pid != 0),
        kind: words.text("kind"),
        node: words.number("node"),
        priority: words.signed("priority"),
        state: words.text("state"),
        queued: words.number("queued"),
        in_flight: words.number("in_flight"),
        submissions: words.number("submissions"),
        busy_ns: words.number("busy_ns"),
        doorbell: words.value("doorbell").map(Into::into),
        progress: words.number("progress"),
        last_queued: words.number("last_queued"),
        blocked_on: blocked(&words),
        fault: fault(&words),
    })
}

/// Reads a line `queues-more:`: how many there are that are not shown.
pub fn hidden(line: &str) -> Option<u64> {
    line.strip_prefix("queues-more:")?.trim().parse().ok()
}

fn blocked(words: &Words<'_>) -> Option<Blocked> {
    let (kind, object) = words.value("on")?.split_once(':')?;
    Some(Blocked {
        kind: kind.into(),
        object: object.parse().ok()?,
        value: words.number("value"),
    })
}

pub(crate) fn fault(words: &Words<'_>) -> Option<Fault> {
    Some(Fault {
        kind: words.value("fault")?.into(),
        address: words.address("address"),
        write: words.number("write").map(|write| write != 0),
        header: words.address("header"),
        packet: words.address("packet"),
        submission: words.number("submission"),
    })
}

/// The words of a line.
pub(crate) struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    /// The number of a line of this name, and its words.
    pub(crate) fn of(line: &'a str, name: &str) -> Option<(u64, Self)> {
        let line = line.strip_prefix(name)?.strip_prefix(':')?.trim_start();
        let (number, words) = line.split_once(' ').unwrap_or((line, ""));
        Some((number.parse().ok()?, Self(words)))
    }

    pub(crate) fn value(&self, name: &str) -> Option<&'a str> {
        let mut words = self.0.split_whitespace();
        words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.value(name).unwrap_or("?").into()
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.value(name)?.parse().ok()
    }

    fn signed(&self, name: &str) -> Option<i64> {
        self.value(name)?.parse().ok()
    }

    pub(crate) fn address(&self, name: &str) -> Option<u64> {
        let digits = self.value(name)?.strip_prefix("0x")?;
        u64::from_str_radix(digits, 16).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines() {
        let line = "engine:\t1 kind=compute state=running running=17 busy_ns=1234 submissions=42 \
                    switches=7 ready=1 blocked=2";
        let found = engine(line).unwrap();
        assert_eq!((found.node, &*found.kind), (1, "compute"));
        assert_eq!((&*found.state, found.running), ("running", Some(17)));
        assert_eq!((found.busy_ns, found.submissions), (Some(1234), Some(42)));
        assert_eq!((found.switches, found.ready), (Some(7), Some(1)));
        assert_eq!(found.blocked, Some(2));
    }

    #[test]
    fn queues() {
        let line = "queue:\t17 pid=1234 kind=packets node=1 priority=-7 state=blocked queued=3 \
                    in_flight=1 submissions=40 busy_ns=9999 on=fence:23 value=5";
        let found = queue(line).unwrap();
        assert_eq!((found.id, found.pid, found.node), (17, Some(1234), Some(1)));
        assert_eq!(found.priority, Some(-7));
        assert_eq!((found.queued, found.in_flight), (Some(3), Some(1)));
        assert_eq!((found.submissions, found.busy_ns), (Some(40), Some(9999)));
        let blocked = found.blocked_on.unwrap();
        assert_eq!((&*blocked.kind, blocked.object), ("fence", 23));
        assert_eq!((blocked.value, found.fault), (Some(5), None));
    }

    #[test]
    fn faults() {
        let page = "queue:\t1 state=faulted fault=page address=0x10f000 write=1 packet=0x20000 \
                    submission=4";
        let page = queue(page).unwrap().fault.unwrap();
        assert_eq!((&*page.kind, page.address), ("page", Some(0x10_f000)));
        assert_eq!((page.write, page.packet), (Some(true), Some(0x2_0000)));
        assert_eq!((page.header, page.submission), (None, Some(4)));
        let packet = queue("queue:\t1 fault=packet header=0xdeadbeef packet=0x8").unwrap();
        let packet = packet.fault.unwrap();
        assert_eq!((packet.header, packet.address), (Some(0xdead_beef), None));
    }

    #[test]
    fn any_word_may_be_missing_or_strange() {
        for bad in ["", "engine", "engine:", "engine:\tx", "queue:\t1 kind=hw"] {
            assert_eq!(engine(bad), None, "{bad}");
        }
        let bare = queue("queue:\t9 pid=0 on=fence new=1 node=many").unwrap();
        assert_eq!((bare.id, bare.pid, bare.node), (9, None, None));
        assert_eq!((bare.blocked_on, &*bare.state), (None, "?"));
        assert_eq!(hidden("queues-more:\t7"), Some(7));
        assert_eq!(hidden("queue:\t7"), None);
    }
}
