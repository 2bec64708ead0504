// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is in the files.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{at, entry, signal, wait};
use opendxg_timeline::builder::Timeline;
use opendxg_timeline::event::{Event, Record};
use opendxg_timeline::perfetto::{self, track};
use opendxg_timeline::picture;
use prost::Message;
use tracing_perfetto_sdk_schema as schema;

use schema::trace_packet::Data;
use schema::track_descriptor::StaticOrDynamicName;
use schema::track_event::{NameField, Type};

/// Two queues: one waits twice for what the other signals, and the CPU waits, too.
fn pipeline() -> Vec<Record> {
    vec![
        at(1_000, Event::Queued(wait(1, 9, 5))),
        at(2_000, Event::Queued(wait(1, 9, 6))),
        at(3_000, Event::Queued(signal(2, 9, 6))),
        at(
            3_000,
            Event::WaitBegins {
                fence: 9,
                value: 6,
                waiter: 70,
            },
        ),
        // Never done.
        at(4_000, Event::Queued(signal(2, 9, 7))),
        at(
            5_000,
            Event::Run {
                queue: 2,
                number: 1,
            },
        ),
        at(
            8_000,
            Event::Complete {
                queue: 2,
                number: 1,
            },
        ),
        entry(9_000, signal(2, 9, 6), 6_500),
        Record {
            event: Event::Done {
                key: wait(1, 9, 5),
                observed: Some(5_500),
                end: Some(7_000),
            },
            ..at(9_000, Event::Unblock { queue: 1 })
        },
        entry(9_000, wait(1, 9, 6), 7_200),
        // Queued before the trace.
        entry(9_000, wait(1, 9, 4), 7_100),
        at(
            9_000,
            Event::Interrupt {
                adapter: 3,
                fence: Some(9),
                queue: None,
            },
        ),
        at(
            9_000,
            Event::Interrupt {
                adapter: 3,
                fence: None,
                queue: Some(2),
            },
        ),
        at(9_000, Event::Stored { fence: 9, value: 6 }),
        at(
            9_000,
            Event::Wake {
                waiter: 70,
                outcome: 1,
            },
        ),
        at(
            9_500,
            Event::EntriesLost {
                queue: 2,
                count: 12,
            },
        ),
        at(
            9_600,
            Event::Block {
                queue: 1,
                object: 9,
                value: 8,
            },
        ),
        at(
            9_700,
            Event::Fault {
                queue: 1,
                packet: 0x1000,
            },
        ),
        at(
            9_800,
            Event::Reset {
                adapter: 3,
                queue: Some(1),
            },
        ),
    ]
}

/// A slice or an instant that was read from a file.
#[derive(Clone, Debug, PartialEq)]
struct Read {
    name: String,
    category: String,
    begin: u64,
    /// `None` for an instant.
    end: Option<u64>,
    depth: usize,
    flows: (Vec<u64>, Vec<u64>),
}

/// Names of tracks, and what they are below of.
type Tracks = BTreeMap<u64, (String, Option<u64>)>;
/// What is on each track.
type Events = BTreeMap<u64, Vec<Read>>;

/// Reads a file as Perfetto does: in the order of time, with a stack for each track. What never
/// ends has `u64::MAX`.
fn read(file: &[u8]) -> (Tracks, Events) {
    let trace = schema::Trace::decode(file).expect("a trace");
    let (mut tracks, mut events) = (Tracks::new(), Events::new());
    let mut open: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    let mut last = 0;
    for packet in trace.packet {
        let time = packet.timestamp.unwrap_or(0);
        match packet.data.expect("data") {
            Data::TrackDescriptor(descriptor) => {
                let Some(StaticOrDynamicName::Name(name)) = descriptor.static_or_dynamic_name
                else {
                    panic!("no name");
                };
                let old = tracks.insert(descriptor.uuid.unwrap(), (name, descriptor.parent_uuid));
                assert_eq!(old, None);
            }
            Data::TrackEvent(event) => {
                assert!(time >= last, "in the order of time");
                last = time;
                let track = event.track_uuid.unwrap();
                assert!(
                    tracks.contains_key(&track),
                    "a track comes before its events"
                );
                let (all, open) = (
                    events.entry(track).or_default(),
                    open.entry(track).or_default(),
                );
                let kind = event.r#type();
                if kind == Type::SliceEnd {
                    let begun: &mut Read = &mut all[open.pop().expect("a begin")];
                    assert!(begun.begin <= time);
                    begun.end = Some(time);
                    continue;
                }
                let Some(NameField::Name(name)) = event.name_field else {
                    panic!("no name");
                };
                all.push(Read {
                    name,
                    category: event.categories.concat(),
                    begin: time,
                    end: (kind == Type::SliceBegin).then_some(u64::MAX),
                    depth: open.len(),
                    flows: (event.flow_ids, event.terminating_flow_ids),
                });
                if kind == Type::SliceBegin {
                    open.push(all.len() - 1);
                }
            }
            other => panic!("{other:?}"),
        }
    }
    (tracks, events)
}

#[test]
fn gpu_91_tracks_slices_and_flows_of_perfetto() {
    let (tracks, events) = read(&perfetto::trace(&Timeline::of(&pipeline())));
    let roots: Vec<_> = tracks
        .values()
        .filter(|(_, parent)| parent.is_none())
        .collect();
    let roots: Vec<_> = roots.iter().map(|(name, _)| name.as_str()).collect();
    // One for each queue, and those that are of no queue.
    assert_eq!(
        roots,
        [
            "queue 1 of 41",
            "queue 2 of 41",
            track::INTERRUPTS,
            track::WAKES,
            track::STORES,
            track::RESETS,
        ]
    );
    let under = |root: &str, name: &str| -> Vec<Read> {
        let (root, _) = tracks.iter().find(|(_, (name, _))| name == root).unwrap();
        let below = tracks
            .iter()
            .filter(|(_, track)| **track == (name.into(), Some(*root)));
        below.flat_map(|(uuid, _)| events[uuid].clone()).collect()
    };
    let shape = |all: &[Read]| -> BTreeSet<(String, u64, Option<u64>)> {
        let all = all.iter();
        all.map(|read| (read.name.clone(), read.begin, read.end))
            .collect()
    };
    let waits = under("queue 1 of 41", track::FENCES);
    assert_eq!(
        shape(&waits),
        BTreeSet::from([
            ("wait fence 9 for 5".into(), 1_000, Some(7_000)),
            ("blocked".into(), 5_500, Some(7_000)),
            ("unblocked: wait fence 9 for 5".into(), 7_000, None),
            ("wait fence 9 for 6".into(), 2_000, Some(7_200)),
            ("unblocked: wait fence 9 for 6".into(), 7_200, None),
            // GPU-90: a point.
            ("unblocked: wait fence 9 for 4".into(), 7_100, None),
        ])
    );
    let signals = under("queue 2 of 41", track::FENCES);
    assert_eq!(
        shape(&signals),
        BTreeSet::from([
            ("signal fence 9 to 6".into(), 3_000, Some(6_500)),
            ("executed: signal fence 9 to 6".into(), 6_500, None),
            // GPU-90: it stays open.
            ("signal fence 9 to 7".into(), 4_000, Some(u64::MAX)),
        ])
    );
    // Two colours: the names differ only in numbers, and the categories.
    assert!(waits.iter().all(|read| read.category == "wait"));
    assert!(signals.iter().all(|read| read.category == "signal"));
    // Whole boxes do not lie on each other.
    assert!(waits
        .iter()
        .filter(|read| read.name.starts_with("wait"))
        .all(|read| read.depth == 0));

    // Four arrows begin at the end of the one signal, each ends at a wait.
    let named =
        |all: &[Read], name: &str| all.iter().find(|read| read.name == name).cloned().unwrap();
    let begun = named(&signals, "executed: signal fence 9 to 6").flows;
    assert_eq!((begun.0.len(), begun.1), (4, vec![]));
    let root = |name: &str| {
        let (uuid, _) = tracks
            .iter()
            .find(|(_, track)| **track == (name.into(), None))
            .unwrap();
        events[uuid].clone()
    };
    let mut ended: Vec<u64> = Vec::new();
    for read in waits.iter().chain(&root(track::WAKES)) {
        assert_eq!(read.flows.0, Vec::<u64>::new());
        assert!(read.flows.1.len() <= 1);
        ended.extend(&read.flows.1);
    }
    ended.sort();
    assert_eq!(ended, begun.0);
    assert_eq!(named(&waits, "wait fence 9 for 5").flows, (vec![], vec![]));

    let interrupts = root(track::INTERRUPTS);
    let names: Vec<_> = interrupts.iter().map(|read| read.name.as_str()).collect();
    assert_eq!(names, ["interrupt of fence 9", "interrupt of queue 2"]);
    assert_eq!(root(track::WAKES)[0].name, "woken: fence 9 has 6");
    assert_eq!(root(track::STORES)[0].name, "fence 9 has 6");
    assert_eq!(root(track::RESETS)[0].name, "reset of adapter 3");
    assert_eq!(root("queue 1 of 41")[0].name, "fault");
    let lost = under("queue 2 of 41", track::LOST);
    assert_eq!(
        shape(&lost),
        BTreeSet::from([("events lost".into(), 6_500, Some(9_500))])
    );
    let commands = under("queue 2 of 41", track::COMMANDS);
    assert_eq!(
        shape(&commands),
        BTreeSet::from([("commands 1".into(), 5_000, Some(8_000))])
    );
    let blocked = under("queue 1 of 41", track::BLOCKED);
    let expected = ("blocked on 9 for 8".into(), 9_600, Some(u64::MAX));
    assert_eq!(shape(&blocked), BTreeSet::from([expected]));
}

/// Elements with a name, and those of one colour.
fn elements<'a>(svg: &'a str, name: &str, colour: &str) -> Vec<&'a str> {
    let head = format!("<{name} ");
    svg.match_indices(&head)
        .map(|(at, _)| &svg[at..at + svg[at..].find('>').unwrap_or(0)])
        .filter(|element| element.contains(colour))
        .collect()
}

#[test]
fn gpu_91_the_picture_has_what_the_trace_has() {
    let svg = picture::draw(&Timeline::of(&pipeline())).unwrap();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    for words in [
        "queue 1 of 41",
        "queue 2 of 41",
        "interrupts",
        "CPU wakes",
        "stored by the CPU",
    ] {
        assert!(svg.contains(words), "{words}");
    }
    let filled = |colour: &str| {
        let all = elements(&svg, "rect", &format!("fill=\"{colour}\""));
        all.len()
    };
    // Each colour is once in the legend.
    assert_eq!(filled("#E0A84E"), 1 + 2, "waits");
    assert_eq!(filled("#5B9BD5"), 1 + 2, "signals, one of them pale");
    assert_eq!(filled("#C77F1B"), 1 + 1, "blocked");
    assert_eq!(filled("#7FB07F"), 1 + 1, "commands");
    assert_eq!(filled("#B3261E"), 1 + 1, "events lost");
    // Heads of arrows, and the point.
    assert_eq!(elements(&svg, "polygon", "#333A44").len(), 4);
    assert_eq!(elements(&svg, "polygon", "#E0A84E").len(), 1);
}

#[test]
fn nothing_at_all_and_very_much() {
    let nothing = Timeline::of(&[]);
    assert_eq!(read(&perfetto::trace(&nothing)).0.len(), 0);
    assert!(picture::draw(&nothing).unwrap().contains("<svg "));
    let records: Vec<_> = (0..20_000)
        .map(|count| at(count * 1000, Event::Queued(signal(1, 9, count))))
        .collect();
    let timeline = Timeline::of(&records);
    let (_, events) = read(&perfetto::trace(&timeline));
    assert_eq!(events.values().flatten().count(), 20_000);
    let svg = picture::draw(&timeline).unwrap();
    assert!(svg.contains("what begins later is in the file for Perfetto"));
    let height = svg
        .split_once(" height=\"")
        .unwrap()
        .1
        .split_once('"')
        .unwrap()
        .0;
    assert!(height.parse::<u32>().unwrap() < 1000, "{height}");
    // The rest of 20000 is left out.
    assert!(elements(&svg, "rect", "#5B9BD5").len() < 9_000);
    // All at one time, and at the end of time.
    let timeline = Timeline::of(&[
        at(0, Event::Unblock { queue: 1 }),
        at(
            u64::MAX,
            Event::Fault {
                queue: 1,
                packet: 0,
            },
        ),
    ]);
    picture::draw(&timeline).unwrap();
}
