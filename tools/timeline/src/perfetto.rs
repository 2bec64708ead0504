// SPDX-License-Identifier: MIT OR Apache-2.0
//! The timeline as a trace of Perfetto (GPU-91).
//!
//! Each queue has a track. What overlaps there stands on tracks below it that have one name, which
//! Perfetto draws as one. Perfetto gives slices a colour by their name without its numbers: waits
//! have one, signals have another.

use std::collections::HashMap;

use prost::Message;
use tracing_perfetto_sdk_schema as schema;

use schema::debug_annotation::{NameField as Named, Value};
use schema::trace_packet::{Data, OptionalTrustedPacketSequenceId, SequenceFlags};
use schema::track_descriptor::StaticOrDynamicName;
use schema::track_event::{NameField, Type};
use schema::{DebugAnnotation, TracePacket, TrackDescriptor, TrackEvent};

use crate::builder::{Gap, Queue, Spot, Timeline};
use crate::event::{Key, Operation};
use crate::lanes::{lanes, Extent};
use crate::paging::{Built, Paging};

/// The names of tracks. Those of queues are made by [`Timeline::title`].
pub mod track {
    /// Waits and signals, below a queue.
    pub const FENCES: &str = "fences";
    /// Command buffers, below a queue.
    pub const COMMANDS: &str = "commands";
    /// When it waited, below a kernel-mode queue.
    pub const BLOCKED: &str = "blocked";
    /// Where something is missing, below a queue.
    pub const LOST: &str = "events lost";
    /// Interrupts of native fences.
    pub const INTERRUPTS: &str = "interrupts";
    /// Ends of waits on the CPU.
    pub const WAKES: &str = "CPU wakes";
    /// Values that the OS part has stored.
    pub const STORES: &str = "values stored by the CPU";
    /// What the paging node had, below an adapter.
    pub const BATCHES: &str = "batches";
    /// What the processor has done for the memory manager, below an adapter.
    pub const BY_PROCESSOR: &str = "by the processor";
    /// Resets of engines and adapters.
    pub const RESETS: &str = "resets";
}

/// The bytes of the file.
pub fn trace(timeline: &Timeline) -> Vec<u8> {
    let mut file = File::default();
    for (flow, number) in timeline.flows.iter().zip(1..) {
        file.flows.entry(flow.from).or_default().begin.push(number);
        file.flows.entry(flow.to).or_default().end.push(number);
    }
    for (id, queue) in &timeline.queues {
        file.queue(timeline, *id, queue);
    }
    for (adapter, paging) in &timeline.paging {
        file.paging(*adapter, paging);
    }
    file.others(timeline);
    file.packets.sort_by_key(|(time, _)| *time);
    if let Some((_, first)) = file.tracks.first_mut() {
        first.sequence_flags = Some(SequenceFlags::SeqIncrementalStateCleared as u32);
    }
    let packets = file.tracks.into_iter().chain(file.packets);
    let packet = packets.map(|(_, packet)| packet).collect();
    schema::Trace { packet }.encode_to_vec()
}

/// What a wait or a signal is called.
pub fn name(key: &Key) -> String {
    let preposition = match key.operation {
        Operation::Signal => "to",
        Operation::Wait => "for",
    };
    let Key { fence, value, .. } = key;
    format!(
        "{} fence {fence} {preposition} {value}",
        key.operation.name()
    )
}

/// Everything writes to one sequence.
const SEQUENCE: OptionalTrustedPacketSequenceId =
    OptionalTrustedPacketSequenceId::TrustedPacketSequenceId(1);

/// A file in the making.
#[derive(Default)]
struct File {
    /// The arrows that begin and that end at a spot.
    flows: HashMap<Spot, Flows>,
    tracks: Vec<(u64, TracePacket)>,
    packets: Vec<(u64, TracePacket)>,
}

/// A number that is shown with an event.
type Argument = (&'static str, u64);

/// Numbers of arrows. Each has one of its own, so that none goes on to the next wait.
#[derive(Clone, Default)]
struct Flows {
    begin: Vec<u64>,
    end: Vec<u64>,
}

/// An event on a track.
struct Mark<'a> {
    track: u64,
    category: &'a str,
    name: &'a str,
    arguments: &'a [Argument],
    flows: Flows,
}

impl<'a> Mark<'a> {
    fn new(track: u64, category: &'a str, name: &'a str, arguments: &'a [Argument]) -> Self {
        Self {
            track,
            category,
            name,
            arguments,
            flows: Flows::default(),
        }
    }
}

impl File {
    /// A new track, and its number.
    fn track(&mut self, parent: Option<u64>, name: &str) -> u64 {
        let uuid = self.tracks.len() as u64 + 1;
        let track = TrackDescriptor {
            uuid: Some(uuid),
            parent_uuid: parent,
            static_or_dynamic_name: Some(StaticOrDynamicName::Name(name.into())),
            ..TrackDescriptor::default()
        };
        self.tracks.push((0, packet(Data::TrackDescriptor(track))));
        uuid
    }

    fn flows_at(&self, spot: Spot) -> Flows {
        self.flows.get(&spot).cloned().unwrap_or_default()
    }

    fn event(&mut self, time: u64, kind: Type, mark: Mark<'_>) {
        let argument = |(name, value): &Argument| DebugAnnotation {
            name_field: Some(Named::Name((*name).into())),
            value: Some(Value::UintValue(*value)),
            ..DebugAnnotation::default()
        };
        let is_end = kind == Type::SliceEnd;
        let event = TrackEvent {
            r#type: Some(kind as i32),
            track_uuid: Some(mark.track),
            categories: match is_end {
                true => Vec::new(),
                false => vec![mark.category.into()],
            },
            name_field: (!is_end).then(|| NameField::Name(mark.name.into())),
            debug_annotations: mark.arguments.iter().map(argument).collect(),
            flow_ids: mark.flows.begin,
            terminating_flow_ids: mark.flows.end,
            ..TrackEvent::default()
        };
        let mut packet = packet(Data::TrackEvent(event));
        packet.timestamp = Some(time);
        self.packets.push((time, packet));
    }

    fn begin(&mut self, time: u64, mark: Mark<'_>) {
        self.event(time, Type::SliceBegin, mark);
    }

    fn end(&mut self, time: u64, track: u64) {
        self.event(time, Type::SliceEnd, Mark::new(track, "", "", &[]));
    }

    fn instant(&mut self, time: u64, mark: Mark<'_>) {
        self.event(time, Type::Instant, mark);
    }

    /// The tracks below `parent` on which none of these overlap, one for each.
    fn lanes(
        &mut self,
        parent: u64,
        name: &str,
        extents: impl Iterator<Item = Extent>,
    ) -> impl Iterator<Item = u64> {
        let (places, count) = lanes(extents);
        let tracks: Vec<u64> = (0..count).map(|_| self.track(Some(parent), name)).collect();
        places.into_iter().map(move |lane| tracks[lane])
    }

    fn queue(&mut self, timeline: &Timeline, id: u64, queue: &Queue) {
        let parent = self.track(None, &timeline.title(id, queue));
        let places = self.lanes(
            parent,
            track::FENCES,
            queue.work.iter().map(|work| work.extent()),
        );
        for ((work, index), track) in queue.work.iter().zip(0..).zip(places) {
            let category = work.key.operation.name();
            let name = name(&work.key);
            let arguments = [("fence", work.key.fence), ("value", work.key.value)];
            let mark = |name| Mark::new(track, category, name, &arguments);
            if let Some(queued) = work.queued {
                self.begin(queued, mark(&name));
            }
            let Some(done) = work.done else { continue };
            let observed = work.observed.filter(|observed| *observed < done);
            // A slice that begins before the one around it would end that.
            let observed =
                observed.filter(|observed| work.queued.is_some_and(|at| at <= *observed));
            if let Some(observed) = observed {
                self.begin(observed, Mark::new(track, category, "blocked", &[]));
                self.end(done, track);
            }
            let verb = work.key.operation.done();
            let name = format!("{verb}: {name}");
            let spot = Spot::Work { queue: id, index };
            let flows = self.flows_at(spot);
            self.instant(
                done,
                Mark {
                    flows,
                    ..mark(&name)
                },
            );
            if work.queued.is_some() {
                self.end(done, track);
            }
        }

        let extents = queue.commands.iter().map(|span| (span.begin, span.end));
        let places = self.lanes(parent, track::COMMANDS, extents);
        for (span, track) in queue.commands.iter().zip(places) {
            let name = format!("commands {}", span.number);
            self.begin(span.begin, Mark::new(track, "commands", &name, &[]));
            if let Some(end) = span.end {
                self.end(end, track);
            }
        }

        let extents = queue.blocked.iter().map(|span| (span.begin, span.end));
        let places = self.lanes(parent, track::BLOCKED, extents);
        for (span, track) in queue.blocked.iter().zip(places) {
            let name = format!("blocked on {} for {}", span.number, span.value);
            let arguments = [("object", span.number), ("value", span.value)];
            self.begin(span.begin, Mark::new(track, "blocked", &name, &arguments));
            if let Some(end) = span.end {
                self.end(end, track);
            }
        }

        let extents = queue.gaps.iter().map(|gap| (gap.begin, Some(gap.end)));
        let places = self.lanes(parent, track::LOST, extents);
        for (gap, track) in queue.gaps.iter().zip(places) {
            let Gap { begin, end, count } = *gap;
            let arguments = [("count", count)];
            self.begin(begin, Mark::new(track, "lost", track::LOST, &arguments));
            self.end(end, track);
        }
        for (time, packet) in &queue.faults {
            let arguments = [("packet", *packet)];
            self.instant(*time, Mark::new(parent, "fault", "fault", &arguments));
        }
    }

    /// What the memory manager of an adapter did.
    fn paging(&mut self, adapter: u64, paging: &Paging) {
        let parent = self.track(None, &paging_title(adapter));
        let extents = paging.runs.iter().map(|run| run.extent());
        let places = self.lanes(parent, track::BATCHES, extents);
        for (run, track) in paging.runs.iter().zip(places) {
            let arguments = [
                ("batch", run.batch),
                ("bytes", run.bytes()),
                ("operations", run.operations.len() as u64),
                ("object", run.main().map_or(0, |built| built.object)),
            ];
            let title = run.title();
            let mark = Mark::new(track, "paging", &title, &arguments);
            self.begin(run.extent().0, mark);
            for built in &run.operations {
                self.built(track, built);
            }
            self.begin(
                run.submitted,
                Mark::new(track, "submitted", "on the node", &[]),
            );
            if let Some(done) = run.done {
                self.end(done, track);
                self.end(done, track);
            }
        }
        if !paging.others.is_empty() {
            let track = self.track(Some(parent), track::BY_PROCESSOR);
            for built in &paging.others {
                self.built(track, built);
            }
        }
    }

    fn built(&mut self, track: u64, built: &Built) {
        let arguments = [
            ("object", built.object),
            ("process", built.process),
            ("bytes", built.bytes),
        ];
        let name = built.operation.name();
        self.instant(built.time, Mark::new(track, "build", name, &arguments));
    }

    /// What is of no queue.
    fn others(&mut self, timeline: &Timeline) {
        if !timeline.interrupts.is_empty() {
            let track = self.track(None, track::INTERRUPTS);
            for interrupt in &timeline.interrupts {
                let ids = [("fence", interrupt.fence), ("queue", interrupt.queue)];
                let mut arguments = vec![("adapter", interrupt.adapter)];
                arguments.extend(ids.into_iter().filter_map(|(name, id)| Some((name, id?))));
                let name = match (interrupt.fence, interrupt.queue) {
                    (Some(fence), _) => format!("interrupt of fence {fence}"),
                    (None, Some(queue)) => format!("interrupt of queue {queue}"),
                    (None, None) => format!("interrupt of adapter {}", interrupt.adapter),
                };
                self.instant(
                    interrupt.time,
                    Mark::new(track, "interrupt", &name, &arguments),
                );
            }
        }
        if !timeline.wakes.is_empty() {
            let track = self.track(None, track::WAKES);
            for (wake, index) in timeline.wakes.iter().zip(0..) {
                let outcome = outcome(wake.outcome);
                let name = match wake.fences.as_slice() {
                    [(fence, value)] => format!("{outcome}: fence {fence} has {value}"),
                    _ => format!("{outcome}: waiter {}", wake.waiter),
                };
                let mut arguments = vec![("waiter", wake.waiter)];
                arguments.extend(
                    wake.begin
                        .map(|begin| ("waited_ns", wake.time.saturating_sub(begin))),
                );
                for (fence, value) in &wake.fences {
                    arguments.extend([("fence", *fence), ("value", *value)]);
                }
                let mark = Mark {
                    flows: self.flows_at(Spot::Wake(index)),
                    ..Mark::new(track, "wake", &name, &arguments)
                };
                self.instant(wake.time, mark);
            }
        }
        if !timeline.stores.is_empty() {
            let track = self.track(None, track::STORES);
            for (store, index) in timeline.stores.iter().zip(0..) {
                let name = format!("fence {} has {}", store.fence, store.value);
                let arguments = [
                    ("fence", store.fence),
                    ("value", store.value),
                    ("thread", store.thread.into()),
                ];
                let mark = Mark {
                    flows: self.flows_at(Spot::Store(index)),
                    ..Mark::new(track, "store", &name, &arguments)
                };
                self.instant(store.time, mark);
            }
        }
        if !timeline.resets.is_empty() {
            let track = self.track(None, track::RESETS);
            for (time, adapter) in &timeline.resets {
                let name = format!("reset of adapter {adapter}");
                self.instant(*time, Mark::new(track, "reset", &name, &[]));
            }
        }
    }
}

/// What the paging node of an adapter is called.
pub fn paging_title(adapter: u64) -> String {
    format!("paging node of adapter {adapter}")
}

/// How a wait ended, in a word.
fn outcome(number: u64) -> &'static str {
    match number {
        1 => "woken",
        2 => "orphaned",
        _ => "cancelled",
    }
}

fn packet(data: Data) -> TracePacket {
    TracePacket {
        optional_trusted_packet_sequence_id: Some(SEQUENCE),
        data: Some(data),
        ..TracePacket::default()
    }
}
