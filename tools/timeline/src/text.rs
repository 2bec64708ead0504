// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text of the kernel's trace as events. The clock of the trace is `mono`.

use std::collections::BTreeMap;

use crate::event::{Event, Key, Operation, Record};
use crate::paging::{self, Built};

/// The text has microseconds: something may have happened so many nanoseconds later than it says.
pub const RESOLUTION: u64 = 999;

/// Where the name of a thread ends at the earliest: the kernel puts blanks before a shorter one.
const NAME: usize = 16;

/// What the text writes before what a process has written into the trace.
const MARK: &str = "tracing_mark_write";

/// A trace in the making: text goes in line by line.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// What has happened, in the order of the text.
    pub records: Vec<Record>,
    /// The names of threads, as they were last.
    pub names: BTreeMap<u32, String>,
    /// Lines that are not understood.
    pub strange: u64,
    /// The last line of each CPU.
    last: BTreeMap<u32, u64>,
    /// Events of each CPU that were lost since then.
    missing: BTreeMap<u32, u64>,
}

impl Trace {
    /// Takes a line, without its end. Events of others are left out.
    pub fn line(&mut self, line: &[u8]) {
        if line.is_empty() || line.starts_with(b"#") {
            return;
        }
        if let Some((cpu, count)) = std::str::from_utf8(line).ok().and_then(lost) {
            let missing = self.missing.entry(cpu).or_default();
            *missing = missing.saturating_add(count);
            return;
        }
        let Some(head) = Head::parse(line) else {
            self.strange += 1;
            return;
        };
        let since = self.last.insert(head.cpu, head.time);
        if let Some(count) = self.missing.remove(&head.cpu) {
            // Before the first line anything may be missing.
            let since = since.unwrap_or(0);
            self.push(&head, Event::Lost { since, count });
        }
        match event(head.text, head.time) {
            Ok(Some(event)) => {
                self.names.insert(head.thread, head.name.clone());
                self.push(&head, event);
            }
            Ok(None) => (),
            Err(Strange) => self.strange += 1,
        }
    }

    /// The end of the text: what was lost since the last lines is lost until now.
    pub fn end(&mut self, now: u64) {
        for (cpu, count) in std::mem::take(&mut self.missing) {
            let since = self.last.get(&cpu).copied().unwrap_or(0);
            self.records.push(Record {
                time: now,
                thread: 0,
                event: Event::Lost { since, count },
            });
        }
    }

    fn push(&mut self, head: &Head<'_>, event: Event) {
        self.records.push(Record {
            time: head.time,
            thread: head.thread,
            event,
        });
    }
}

/// `CPU:2 [LOST 34 EVENTS]`; the count is missing if the kernel does not know it.
fn lost(line: &str) -> Option<(u32, u64)> {
    let (cpu, rest) = line.strip_prefix("CPU:")?.split_once(" [LOST ")?;
    let count = match rest.strip_suffix("EVENTS]")?.trim() {
        "" => 1,
        count => count.parse().ok()?,
    };
    Some((cpu.trim().parse().ok()?, count))
}

/// What stands before the event.
struct Head<'a> {
    name: String,
    thread: u32,
    cpu: u32,
    time: u64,
    text: &'a str,
}

impl<'a> Head<'a> {
    /// `            name-1234    [002] d..1.   123.456789: text`. A name may have any characters.
    fn parse(line: &'a [u8]) -> Option<Self> {
        let dashes = line.iter().enumerate().skip(NAME);
        let mut dashes = dashes.filter(|(_, byte)| **byte == b'-');
        dashes.find_map(|(dash, _)| Self::split(&line[..dash], &line[dash + 1..]))
    }

    /// The same, for what is before and behind the dash.
    fn split(name: &[u8], rest: &'a [u8]) -> Option<Self> {
        let (thread, rest) = std::str::from_utf8(rest).ok()?.split_once('[')?;
        let (cpu, rest) = rest.split_once("] ")?;
        let (before, text) = rest.split_once(": ")?;
        let (seconds, micros) = before.split_whitespace().next_back()?.split_once('.')?;
        if micros.len() != 6 {
            return None;
        }
        let seconds: u64 = seconds.parse().ok()?;
        let micros: u64 = micros.parse().ok()?;
        let time = seconds.checked_mul(1_000_000)?.checked_add(micros)?;
        Some(Self {
            name: String::from_utf8_lossy(name).trim_start().to_owned(),
            thread: thread.trim_end().parse().ok()?,
            cpu: cpu.parse().ok()?,
            time: time.checked_mul(1000)?,
            text,
        })
    }
}

/// It has the name of an event, and is none.
struct Strange;

/// The numbers of an event, by name.
struct Fields<'a>(Vec<(&'a str, u64)>);

impl<'a> Fields<'a> {
    fn parse(text: &'a str) -> Result<Self, Strange> {
        let field = |field: &'a str| {
            let (name, value) = field.split_once('=').ok_or(Strange)?;
            let value = match value.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16),
                None => value.parse(),
            };
            Ok((name, value.map_err(|_| Strange)?))
        };
        text.split_whitespace()
            .map(field)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    fn get(&self, name: &str) -> Result<u64, Strange> {
        let found = self.0.iter().find(|(field, _)| *field == name);
        found.map(|(_, value)| *value).ok_or(Strange)
    }

    /// 0 stands for none.
    fn id(&self, name: &str) -> Result<Option<u64>, Strange> {
        self.get(name).map(some)
    }

    fn key(&self) -> Result<Key, Strange> {
        Ok(Key {
            queue: self.get("queue")?,
            operation: Operation::from_number(self.get("operation")?).ok_or(Strange)?,
            fence: self.get("fence")?,
            value: self.get("value")?,
        })
    }
}

fn some(number: u64) -> Option<u64> {
    (number != 0).then_some(number)
}

/// The event in `NAME: FIELDS`; `None` for one of others. A process writes its own after a mark.
fn event(text: &str, time: u64) -> Result<Option<Event>, Strange> {
    let Some((name, rest)) = text.split_once(": ") else {
        return Ok(None);
    };
    let (name, rest, is_mark) = match name {
        MARK => match rest.split_once(": ") {
            Some((name, rest)) => (name, rest, true),
            None => return Ok(None),
        },
        name => (name, rest, false),
    };
    // Processes tell only what they have queued.
    if !name.starts_with("dxg_") || (is_mark && name != "dxg_fence_queued") {
        return Ok(None);
    }
    let fields = Fields::parse(rest)?;
    let get = |name: &str| fields.get(name);
    Ok(Some(match name {
        "dxg_fence_queued" => Event::Queued(fields.key()?),
        "dxg_fence_done" => Event::Done {
            key: fields.key()?,
            observed: None,
            end: None,
        },
        "dxg_log_entry" => Event::Done {
            key: fields.key()?,
            observed: fields.id("observed_ns")?,
            end: fields.id("end_ns")?,
        },
        "dxg_log_lost" => Event::EntriesLost {
            queue: get("queue")?,
            count: get("count")?,
        },
        "dxg_native_interrupt" => Event::Interrupt {
            adapter: get("adapter")?,
            fence: fields.id("fence")?,
            queue: fields.id("queue")?,
        },
        "dxg_wait" => Event::WaitBegins {
            fence: get("object")?,
            value: get("value")?,
            waiter: get("waiter")?,
        },
        "dxg_signal" => Event::Stored {
            fence: get("object")?,
            value: get("value")?,
        },
        "dxg_wake" => Event::Wake {
            waiter: get("waiter")?,
            outcome: get("outcome")?,
        },
        "dxg_run" => Event::Run {
            queue: get("queue")?,
            number: get("number")?,
        },
        "dxg_complete" => Event::Complete {
            queue: get("queue")?,
            number: get("number")?,
        },
        "dxg_block" => Event::Block {
            queue: get("queue")?,
            object: get("object")?,
            value: get("value")?,
        },
        "dxg_unblock" => Event::Unblock {
            queue: get("queue")?,
        },
        "dxg_fault" => Event::Fault {
            queue: get("queue")?,
            packet: get("packet")?,
        },
        "dxg_reset" => Event::Reset {
            adapter: get("adapter")?,
            queue: fields.id("queue")?,
        },
        "dxg_create" => Event::Create {
            object: get("object")?,
            kind: get("kind")?,
        },
        "dxg_page_op_build" | "dxg_pt_update" | "dxg_tlb_flush" => {
            let operation = paging::Operation::from_number(get("operation")?).ok_or(Strange)?;
            let extent = (get("size")?, get("flags")?);
            Event::PageOpBuilt {
                adapter: get("adapter")?,
                batch: get("batch")?,
                built: Built::new(time, operation, extent, get("object")?, get("process")?),
            }
        }
        "dxg_page_op_submit" => Event::PageOpSubmitted {
            adapter: get("adapter")?,
            batch: get("batch")?,
        },
        "dxg_page_op_done" => Event::PageOpDone {
            adapter: get("adapter")?,
            batch: get("batch")?,
        },
        // The others say nothing that is drawn.
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the kernel writes it.
    fn line(name: &str, cpu: u32, time: &str, text: &str) -> String {
        format!("{name:>16}-{:<7} [{cpu:03}] d..1. {time:>12}: {text}\n", 41)
    }

    fn read(text: &str) -> Trace {
        let mut trace = Trace::default();
        text.lines().for_each(|line| trace.line(line.as_bytes()));
        trace
    }

    fn events(trace: &Trace) -> Vec<Event> {
        trace.records.iter().map(|record| record.event).collect()
    }

    const KEY: Key = Key {
        queue: 7,
        operation: Operation::Wait,
        fence: 9,
        value: 5,
    };

    #[test]
    fn gpu_88_gpu_89_the_four_events() {
        let key = "queue=7 fence=9 value=5 operation=1";
        let lines = [
            format!("{MARK}: dxg_fence_queued: {key} process=41 queue_handle=0x40000040"),
            format!("dxg_fence_queued: {key}"),
            format!("dxg_log_entry: {key} observed_ns=12500000001 end_ns=12900000002"),
            format!("dxg_log_entry: {key} observed_ns=0 end_ns=0"),
            format!("dxg_fence_done: {key}"),
        ];
        let lines = lines
            .map(|text| line("demo", 1, "12.000034", &text))
            .concat();
        let trace = read(&format!("# tracer: nop\n#\n{lines}"));
        let done = |observed, end| Event::Done {
            key: KEY,
            observed,
            end,
        };
        let told = done(Some(12_500_000_001), Some(12_900_000_002));
        let untold = done(None, None);
        let queued = Event::Queued(KEY);
        assert_eq!(events(&trace), [queued, queued, told, untold, untold]);
        let first = trace.records[0];
        assert_eq!((first.time, first.thread), (12_000_034_000, 41));
        assert_eq!((trace.names[&41].as_str(), trace.strange), ("demo", 0));
    }

    #[test]
    fn the_others() {
        let lines = [
            (
                "dxg_log_lost: queue=7 count=3",
                Event::EntriesLost { queue: 7, count: 3 },
            ),
            (
                "dxg_native_interrupt: adapter=2 fence=0 queue=7",
                Event::Interrupt {
                    adapter: 2,
                    fence: None,
                    queue: Some(7),
                },
            ),
            (
                "dxg_wait: object=9 value=18446744073709551615 waiter=3",
                Event::WaitBegins {
                    fence: 9,
                    value: u64::MAX,
                    waiter: 3,
                },
            ),
            (
                "dxg_signal: object=9 value=5",
                Event::Stored { fence: 9, value: 5 },
            ),
            (
                "dxg_wake: waiter=3 outcome=2",
                Event::Wake {
                    waiter: 3,
                    outcome: 2,
                },
            ),
            (
                "dxg_run: queue=7 number=1",
                Event::Run {
                    queue: 7,
                    number: 1,
                },
            ),
            (
                "dxg_complete: queue=7 number=1",
                Event::Complete {
                    queue: 7,
                    number: 1,
                },
            ),
            (
                "dxg_block: queue=7 object=9 value=5",
                Event::Block {
                    queue: 7,
                    object: 9,
                    value: 5,
                },
            ),
            ("dxg_unblock: queue=7", Event::Unblock { queue: 7 }),
            (
                "dxg_fault: queue=7 packet=0x1004",
                Event::Fault {
                    queue: 7,
                    packet: 0x1004,
                },
            ),
            (
                "dxg_reset: adapter=2 node=1 queue=0",
                Event::Reset {
                    adapter: 2,
                    queue: None,
                },
            ),
            (
                "dxg_create: object=7 kind=18",
                Event::Create {
                    object: 7,
                    kind: 18,
                },
            ),
        ];
        for (text, event) in lines {
            let trace = read(&line("demo", 0, "1.000000", text));
            assert_eq!((events(&trace), trace.strange), (vec![event], 0));
        }
        for text in [
            "dxg_queue: queue=7",
            "dxg_destroy: object=7 kind=18",
            "hello",
            "a: b",
        ] {
            let trace = read(&line("demo", 0, "1.000000", text));
            assert_eq!((events(&trace), trace.strange), (vec![], 0));
        }
    }

    #[test]
    fn names_may_have_any_characters() {
        let wake = "dxg_wake: waiter=3 outcome=1";
        for name in [
            "",
            "a: dxg_wake: x=1",
            "a-2  [000] 1.0:",
            "a name that is longer than-most",
        ] {
            let trace = read(&line(name, 0, "1.000002", wake));
            assert_eq!((trace.records.len(), trace.strange), (1, 0), "{name}");
            assert_eq!(trace.names[&41], name);
        }
        let mut bytes = b"            \xff\xfe\xe2\x82-8       [000] .....     1.000003: ".to_vec();
        bytes.extend(wake.bytes());
        let mut trace = Trace::default();
        trace.line(&bytes);
        assert_eq!((trace.records[0].thread, trace.strange), (8, 0));
    }

    #[test]
    fn gpu_90_lost_events_have_a_time() {
        let unblock = "dxg_unblock: queue=7";
        let mut trace = read(
            &[
                line("demo", 1, "1.000001", unblock),
                "CPU:1 [LOST 12 EVENTS]\n".into(),
                line("demo", 0, "1.000005", unblock),
                line("demo", 1, "1.000009", "sched_switch: prev_comm=x"),
                "CPU:0 [LOST EVENTS]\n".into(),
            ]
            .concat(),
        );
        trace.end(2_000_000_000);
        let lost = |record: &Record| match record.event {
            Event::Lost { since, count } => Some((since, record.time, count)),
            _ => None,
        };
        let lost: Vec<_> = trace.records.iter().filter_map(lost).collect();
        let expected = [
            (1_000_001_000, 1_000_009_000, 12),
            (1_000_005_000, 2_000_000_000, 1),
        ];
        assert_eq!(lost, expected);
    }

    #[test]
    fn strange_lines_are_counted() {
        for text in [
            "dxg_unblock: queue=x",
            "dxg_unblock: kew=1",
            "dxg_unblock: 7",
            "dxg_log_entry: queue=1 fence=2 value=3 operation=2 observed_ns=0 end_ns=0",
            "dxg_run: queue=7",
            "dxg_signal: object=-1 value=1",
        ] {
            let trace = read(&line("demo", 0, "1.000001", text));
            assert_eq!((trace.records.len(), trace.strange), (0, 1), "{text}");
        }
        // Processes tell only what they have queued.
        let forged = line(
            "demo",
            0,
            "1.000001",
            &format!("{MARK}: dxg_signal: object=4 value=1"),
        );
        let whole = line("demo", 0, "1.000001", "dxg_unblock: queue=7");
        assert_eq!(events(&read(&forged)), []);
        assert_eq!(read(&whole).records.len(), 1);
        for broken in [
            "short".into(),
            whole.replace("1.000001", "1.01"),
            whole.replace("[000]", "[x00]"),
            whole.replace("-41", "-x"),
            whole.replace(": dxg", "; dxg").replace("1:", "1;"),
        ] {
            let trace = read(&broken);
            assert_eq!((trace.records.len(), trace.strange), (0, 1), "{broken}");
        }
    }
}
