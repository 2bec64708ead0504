// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the memory manager does, from a recorded trace to the files.

use opendxg_timeline::builder::Timeline;
use opendxg_timeline::paging::{Direction, Operation, Run};
use opendxg_timeline::{perfetto, picture, Trace};
use prost::Message;
use tracing_perfetto_sdk_schema as schema;

use schema::trace_packet::Data;
use schema::track_descriptor::StaticOrDynamicName;
use schema::track_event::{NameField, Type};

fn recorded() -> Timeline {
    let mut trace = Trace::default();
    for line in include_str!("paging.txt").lines() {
        trace.line(line.as_bytes());
    }
    assert_eq!(trace.strange, 0);
    Timeline::new(&trace)
}

#[test]
fn mem_103_a_batch_has_what_was_built_for_it() {
    let timeline = recorded();
    assert_eq!(timeline.paging.keys().copied().collect::<Vec<_>>(), [1, 2]);
    let paging = &timeline.paging[&1];
    let titles: Vec<_> = paging.runs.iter().map(Run::title).collect();
    assert_eq!(
        titles,
        [
            "FillVirtual 64 KiB, UpdatePageTable, FlushTlb",
            "TransferVirtual 1.0 MiB local to system",
            "TransferVirtual 1.0 MiB local to system",
            "TransferVirtual 8 KiB local to local",
        ]
    );
    let extents: Vec<_> = paging.runs.iter().map(Run::extent).collect();
    let at = |micros: u64| 12_000_000_000 + micros * 1000;
    assert_eq!(
        extents,
        [
            (at(10), Some(at(40))),
            (at(60), Some(at(75))),
            (at(80), Some(at(95))),
            // Nobody has told that it was done.
            (at(100), None),
        ]
    );
    assert_eq!(paging.runs[0].submitted, at(16));
    assert_eq!(paging.runs[0].bytes(), 64 << 10);
    let transfer = paging.runs[1].main().expect("an operation");
    assert_eq!(transfer.operation, Operation::TransferVirtual);
    assert_eq!(transfer.direction, Some(Direction::LocalToSystem));
    assert_eq!((transfer.object, transfer.bytes), (50, 1 << 20));
    // Tables that the processor has written are of no paging buffer.
    let others: Vec<_> = paging.others.iter().map(|built| built.operation).collect();
    assert_eq!(others, [Operation::UpdatePageTable, Operation::FlushTlb]);
    assert!(paging.others.iter().all(|built| built.process == 7));
    let other = &timeline.paging[&2];
    assert!(other.runs.is_empty());
    assert_eq!(other.others[0].operation, Operation::NotifyResidency);
}

#[test]
fn mem_103_operations_have_their_public_names() {
    let names = (0..20).filter_map(Operation::from_number);
    let names: Vec<_> = names.map(Operation::name).collect();
    assert_eq!(
        names,
        [
            "MapApertureSegment",
            "UnmapApertureSegment",
            "TransferVirtual",
            "FillVirtual",
            "InitContextResource",
            "UpdatePageTable",
            "FlushTlb",
            "UpdateContextAllocation",
            "NotifyResidency",
        ]
    );
    let directions = [0, 0x40, 0x80, 0xc0].map(Direction::from_flags);
    let names = directions.map(|direction| direction.map(Direction::name));
    assert_eq!(
        names,
        [
            None,
            Some("local to system"),
            Some("system to local"),
            Some("local to local")
        ]
    );
}

#[test]
fn mem_103_the_lanes_of_perfetto() {
    let file = perfetto::trace(&recorded());
    let (mut tracks, mut slices, mut marks, mut ends) = (vec![], vec![], vec![], 0);
    for packet in schema::Trace::decode(&*file).expect("a trace").packet {
        match packet.data.expect("data") {
            Data::TrackDescriptor(track) => match track.static_or_dynamic_name {
                Some(StaticOrDynamicName::Name(name)) => tracks.push(name),
                other => panic!("{other:?}"),
            },
            Data::TrackEvent(event) => match (event.r#type(), event.name_field) {
                (Type::SliceBegin, Some(NameField::Name(name))) => slices.push(name),
                (Type::Instant, Some(NameField::Name(name))) => marks.push(name),
                (Type::SliceEnd, _) => ends += 1,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        tracks,
        [
            "paging node of adapter 1",
            "batches",
            "by the processor",
            "paging node of adapter 2",
            "by the processor",
        ]
    );
    // Each batch, and inside of it the time on the node; the last one does not end.
    assert_eq!(slices.len(), 8);
    assert_eq!(ends, 6);
    let on_node = slices.iter().filter(|name| *name == "on the node");
    assert_eq!(on_node.count(), 4);
    assert!(slices.contains(&"TransferVirtual 8 KiB local to local".to_owned()));
    assert_eq!(marks.len(), 3 + 2 + 2 + 1 + 1);
}

#[test]
fn mem_103_the_rows_of_the_picture() {
    let svg = picture::draw(&recorded()).unwrap();
    for words in [
        "paging node of adapter 1",
        "paging node of adapter 2",
        "to system memory",
        // As many words as a box has room for.
        "\nFillVirtual 64 KiB, UpdatePageTable, FlushTlb\n",
        "\nTransferVirtual\n",
    ] {
        assert!(svg.contains(words), "{words}");
    }
    // Solid boxes while the node has them, and the one in the legend.
    let solid = |colour: &str| {
        let fill = format!("opacity=\"1\" fill=\"{colour}\"");
        svg.matches(&fill).count()
    };
    assert_eq!(solid("#C27BA0"), 1 + 2, "to system memory");
    assert_eq!(solid("#A3B18A"), 1 + 1, "filled");
}
