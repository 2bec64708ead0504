// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reports that the module writes into debugfs: what went wrong on an adapter. A line `report:`
//! begins one; what follows belongs to it. Lines and words that this version does not understand
//! are left out.

use opendxg::pm4;
use serde::Serialize;

use crate::engines::{self, Fault, Queue, Words};

/// What went wrong once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Its number among all of the adapter.
    pub number: u64,
    /// `queue-hang`, `engine-hang`, `requested` or `fault`.
    pub kind: String,
    /// `in-progress`, `engine-reset`, `adapter-reset`, `adapter-stopped` or `none`.
    pub done: String,
    /// When it was, by CLOCK_MONOTONIC.
    pub time_ns: Option<u64>,
    /// How long ago that is.
    pub ago_ns: Option<u64>,
    /// Of the engine; none if it is about the whole adapter.
    pub node: Option<u64>,
    /// The queue that is the reason.
    pub queue: Option<u64>,
    /// Whose it was.
    pub pid: Option<u64>,
    /// Address of the packet that the queue was in, or came to.
    pub packet: Option<u64>,
    /// The engine did not answer, so that this is what it has told last.
    pub stale: Option<bool>,
    /// The packets from there on.
    pub commands: Vec<Packet>,
    /// Why the queue has stopped, if that was a fault.
    pub fault: Option<Fault>,
    /// How the engine comes to the address of a page fault, from the root down.
    pub walk: Option<Vec<Step>>,
    /// Queues with work at that moment, the one that is the reason first.
    pub queues: Vec<Queue>,
    /// More queues that had work.
    pub hidden_queues: u64,
}

/// A packet of a command buffer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Packet {
    /// What it is called; none for one that is none.
    pub name: Option<&'static str>,
    /// The header and what follows it, as far as that is known.
    pub words: Vec<u32>,
    /// There are more.
    pub cut: bool,
}

/// An entry of a page table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Of the table; 0 has the pages.
    pub level: u64,
    /// Which entry it is.
    pub index: Option<u64>,
    /// `table`, `page`, `zero`, `invalid`, or `busy` if it was being changed.
    pub entry: String,
    /// The segment that this leads to; 0 is system memory.
    pub segment: Option<u64>,
    /// Where it is in the segment.
    pub address: Option<u64>,
    /// How large pages are.
    pub kib: Option<u64>,
    /// Whether they may be written to.
    pub write: Option<bool>,
}

/// Reads a file of reports, which are in order.
pub fn reports(text: &str) -> Vec<Report> {
    let mut reports: Vec<Report> = Vec::new();
    for line in text.lines() {
        if let Some(report) = head(line) {
            reports.push(report);
        } else if let Some(report) = reports.last_mut() {
            add(report, line);
        }
    }
    reports
}

fn head(line: &str) -> Option<Report> {
    let (number, words) = Words::of(line, "report")?;
    Some(Report {
        number,
        kind: words.text("kind"),
        done: words.text("done"),
        time_ns: words.number("time_ns"),
        ago_ns: words.number("ago_ns"),
        node: words.number("node"),
        queue: words.number("queue"),
        pid: words.number("pid").filter(|&pid| pid != 0),
        packet: words.address("packet"),
        stale: words.number("stale").map(|stale| stale != 0),
        fault: engines::fault(&words),
        ..Report::default()
    })
}

/// A line that belongs to a report.
fn add(report: &mut Report, line: &str) {
    if let Some(words) = line.strip_prefix("dwords:") {
        let words = words.split_whitespace();
        let words = words.map_while(|word| u32::from_str_radix(word, 16).ok());
        report.commands = decoded(&words.collect::<Vec<_>>());
    } else if line
        .strip_prefix("walk:")
        .is_some_and(|state| state.trim() == "done")
    {
        report.walk = Some(Vec::new());
    } else if let (Some((level, words)), Some(walk)) =
        (Words::of(line, "level"), report.walk.as_mut())
    {
        walk.push(Step {
            level,
            index: words.number("index"),
            entry: words.text("entry"),
            segment: words.number("segment"),
            address: words.address("address"),
            kib: words.number("kib"),
            write: words.number("write").map(|write| write != 0),
        });
    } else if let Some(queue) = engines::queue(line) {
        report.queues.push(queue);
    } else if let Some(count) = engines::hidden(line) {
        report.hidden_queues = count;
    }
}

fn decoded(words: &[u32]) -> Vec<Packet> {
    let packets = pm4::packets(words).map(|packet| Packet {
        name: packet.name(),
        words: [&[packet.header], packet.words].concat(),
        cut: packet.words.len() < packet.count,
    });
    packets.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let text = "queue:\t9 state=idle\n\
            report:\t3 kind=queue-hang done=engine-reset time_ns=9000 ago_ns=10 node=1 queue=17 \
            pid=0 packet=0x10000 stale=0 news=1\n\
            dwords:\tc0023f00 00010000 00000000 00100004 c0031000\n\
            queue:\t17 pid=0 state=running in_flight=1\nqueues-more:\t2\nnews:\t1\n\
            report:\t4 kind=fault done=none fault=page address=0x7000 write=1 packet=0x8 submission=1\n\
            walk:\tdone\nlevel:\t1 index=0 entry=table segment=0 address=0x9000 kib=4 write=1\n\
            level:\t0 index=7 entry=invalid\n\
            report:\t5 kind=fault done=none\nwalk:\tbusy\n";
        let [hang, fault, busy] = &reports(text)[..] else {
            panic!("three reports");
        };
        assert_eq!(
            (hang.number, &*hang.kind, &*hang.done),
            (3, "queue-hang", "engine-reset")
        );
        assert_eq!((hang.node, hang.queue, hang.pid), (Some(1), Some(17), None));
        assert_eq!((hang.packet, hang.stale), (Some(0x1_0000), Some(false)));
        let [chain, cut] = &hang.commands[..] else {
            panic!("{hang:?}");
        };
        assert_eq!(
            (chain.name, chain.words.len(), chain.cut),
            (Some("INDIRECT_BUFFER"), 4, false)
        );
        assert_eq!((cut.name, cut.words.len(), cut.cut), (Some("NOP"), 1, true));
        assert_eq!((hang.queues.len(), hang.hidden_queues), (1, 2));
        assert_eq!(hang.walk, None);
        let walk = fault.walk.as_ref().unwrap();
        assert_eq!((walk[0].level, walk[0].address), (1, Some(0x9000)));
        assert_eq!((walk[1].index, &*walk[1].entry), (Some(7), "invalid"));
        assert_eq!(fault.fault.as_ref().unwrap().address, Some(0x7000));
        assert_eq!((busy.walk.as_ref(), busy.fault.as_ref()), (None, None));
    }
}
