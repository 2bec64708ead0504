// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything that was found, put together.
//!
//! The descriptors are read one after the other while the rest of the system goes on, so what they
//! say may differ a little. Where they do, the larger number is taken.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::Serialize;

use crate::fdinfo::{Adapter, Descriptor, Device, DmaBuf, Handle, Info, ObjectFile, Share};
use crate::proc::Scan;
use crate::refusals::Refusal;
use crate::reports::Report;
use crate::top::{Load, Reading};
use crate::waiters::Wait;

/// The state of the module.
#[derive(Clone, Debug, Default, Serialize)]
pub struct World {
    /// Processes of other users that could not be read.
    #[serde(skip)]
    pub hidden_processes: usize,
    /// Local handles that the module did not show, because their process has very many.
    #[serde(skip)]
    pub hidden_handles: u64,
    /// Metadata entries that the module did not show, for the same reason.
    #[serde(skip)]
    pub hidden_info: u64,
    /// Waits that the module did not show, for the same reason.
    #[serde(skip)]
    pub hidden_waits: u64,
    /// Who waits, one element of a wait each.
    #[serde(skip)]
    pub waits: Vec<Wait>,
    /// Name and state of the processes that these and the objects mention: `None` for one that is
    /// gone.
    #[serde(skip)]
    pub mentioned: BTreeMap<u32, Option<(String, String)>>,
    /// Engines and queues, if they were asked for.
    #[serde(skip)]
    pub reading: Reading,
    /// What went wrong, if that was asked for, by LUID.
    #[serde(skip)]
    pub reports: BTreeMap<String, Vec<Report>>,
    /// How busy engines are, if that was asked for.
    #[serde(skip)]
    pub loads: Vec<Load>,
    /// Why there are no totals.
    #[serde(skip)]
    pub no_totals: Option<String>,
    /// The module's own counts of all processes, by name.
    pub totals: BTreeMap<String, u64>,
    /// Adapters that run, and removed ones that a visible process still uses, ordered by number.
    pub adapters: Vec<Adapter>,
    /// Processes with a descriptor of the module, ordered by process id.
    pub processes: Vec<Process>,
    /// What the users of these processes have of everything that is limited, by name.
    pub users: BTreeMap<u64, BTreeMap<String, Share>>,
    /// Objects that a visible process has a handle or an NT handle of.
    pub objects: Vec<Object>,
}

/// A process.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Name of the program.
    pub command: String,
    /// What it does: `running`, `sleeping`, `blocked`, `stopped`, `traced`, `zombie` or a letter.
    pub state: String,
    /// Its threads.
    #[serde(skip)]
    pub threads: Vec<u32>,
    /// Descriptors of the device node.
    pub devices: Vec<u32>,
    /// The process that opened the node, if it was only inherited here.
    pub inherited_from: Option<u32>,
    /// Pending asynchronous waits and fence points.
    pub waiters: u64,
    /// What it has made, even if others use it now: allocations.
    pub allocations: u64,
    /// Bytes of these, touched or not.
    pub bytes: u64,
    /// Bytes that were touched and stay in memory.
    pub resident: u64,
    /// Files that are kept open for them.
    pub held_files: u64,
    /// Its calls that were refused last, the last one first; empty if the node was inherited.
    #[serde(skip)]
    pub refusals: Vec<Refusal>,
    /// Local handles; empty if the node was inherited.
    pub handles: Vec<Handle>,
    /// Descriptors of objects.
    pub files: Vec<File>,
    /// Descriptors of dma-bufs that the module exports.
    pub dma_bufs: Vec<BufferFile>,
}

/// A descriptor of a dma-buf.
#[derive(Clone, Debug, Serialize)]
pub struct BufferFile {
    /// Descriptor number.
    pub fd: u32,
    /// What is behind it.
    #[serde(flatten)]
    pub buffer: DmaBuf,
}

/// A descriptor of an object: NT handle, fence point, weak reference, watch.
#[derive(Clone, Debug, Serialize)]
pub struct File {
    /// Descriptor number.
    pub fd: u32,
    /// Object type.
    #[serde(rename = "type")]
    pub class: String,
    /// Numbers of the objects behind it.
    pub objects: Vec<u64>,
    /// Access mask.
    pub access: Option<u32>,
    /// Name of the share.
    pub name: Option<String>,
}

/// An object.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Object {
    /// Number of the object.
    pub id: u64,
    /// Kinds of it and of what is part of it: a resource and its allocations have one number.
    pub kinds: BTreeSet<String>,
    /// Strong references.
    pub references: Option<u64>,
    /// Waits for it.
    pub waiters: Option<u64>,
    /// Thread that owns it, of a keyed mutex.
    pub owner: Option<u64>,
    /// Value of a fence.
    pub value: Option<u64>,
    /// Key of a keyed mutex.
    pub key: Option<u64>,
    /// The process that signalled a fence last, or acquired or released a keyed mutex.
    pub by: Option<u32>,
    /// How long ago that was.
    pub ago_ns: Option<u64>,
    /// Its names.
    pub names: BTreeSet<String>,
    /// Metadata.
    pub info: BTreeSet<Info>,
    /// Local handles of it.
    pub handles: Vec<HeldHandle>,
    /// Descriptors of it.
    pub files: Vec<HeldFile>,
}

/// A local handle of an object.
#[derive(Clone, Debug, Serialize)]
pub struct HeldHandle {
    /// Process that has it.
    pub pid: u32,
    /// The handle.
    #[serde(flatten)]
    pub handle: Handle,
}

/// A descriptor of an object.
#[derive(Clone, Debug, Serialize)]
pub struct HeldFile {
    /// Process that has it.
    pub pid: u32,
    /// Descriptor number.
    pub fd: u32,
    /// Object type.
    #[serde(rename = "type")]
    pub class: String,
    /// Access mask.
    pub access: Option<u32>,
}

impl Object {
    /// The kind that says most: that of the container.
    pub fn kind(&self) -> &str {
        let kinds = || self.kinds.iter().map(String::as_str);
        kinds()
            .find(|&kind| kind != "allocation")
            .or(kinds().next())
            .unwrap_or("?")
    }

    /// Processes that have it open.
    pub fn holders(&self) -> BTreeSet<u32> {
        let handles = self.handles.iter().map(|held| held.pid);
        handles
            .chain(self.files.iter().map(|held| held.pid))
            .collect()
    }
}

impl World {
    /// A process that was seen.
    pub fn process(&self, pid: u32) -> Option<&Process> {
        let index = self
            .processes
            .binary_search_by_key(&pid, |process| process.pid);
        self.processes.get(index.ok()?)
    }
}

impl World {
    /// Asks for the name and state letter of each process that did something to an object so long
    /// ago.
    pub fn mention(&mut self, life: impl Fn(u32, u64) -> Option<(String, char)>) {
        let by = self.objects.iter();
        let by = by.filter_map(|object| Some((object.by?, object.ago_ns?)));
        self.mentioned = by
            .map(|(pid, ago_ns)| {
                let found = life(pid, ago_ns);
                (pid, found.map(|(name, letter)| (name, state(letter))))
            })
            .collect();
    }
}

/// Kinds that belong to one process and are not shareable objects.
const PRIVATE_KINDS: [&str; 5] = ["adapter", "device", "context", "hw-queue", "paging-queue"];

/// Puts together what was found.
pub fn build(scan: Scan, own: Option<Descriptor>) -> World {
    let mut world = Builder::default();
    world.result.hidden_processes = scan.hidden;
    if let Some(Descriptor::Device(device)) = &own {
        world.adapters(device);
    }
    for task in scan.tasks {
        let mut process = Process {
            pid: task.pid,
            command: task.command,
            state: state(task.state),
            threads: task.threads,
            ..Process::default()
        };
        for (fd, descriptor) in task.descriptors {
            match descriptor {
                Descriptor::Device(device) => world.device(&mut process, fd, device),
                Descriptor::Object(file) => world.file(&mut process, fd, file),
                Descriptor::DmaBuf(buffer) => process.dma_bufs.push(BufferFile { fd, buffer }),
            }
        }
        world.result.processes.push(process);
    }
    world.finish()
}

#[derive(Default)]
struct Builder {
    result: World,
    adapters: BTreeMap<u64, Adapter>,
    objects: BTreeMap<u64, Object>,
    /// Who has shown each process object first.
    seen: BTreeMap<u64, u32>,
    /// Waits that were shown, by object and number.
    waits: BTreeMap<(u64, u64), Wait>,
}

impl Builder {
    /// The adapters that a device descriptor names: this process has all that run, others have
    /// those that they use, also removed ones.
    fn adapters(&mut self, device: &Device) {
        for adapter in &device.adapters {
            let known = self.adapters.entry(adapter.id);
            let known = known.or_insert_with(|| adapter.clone());
            // A removed one does not run again: it went meanwhile.
            if known.state != adapter.state {
                known.state = "removed".into();
            }
        }
    }

    /// What a device descriptor says of the user who opened it.
    fn user(&mut self, device: &Device) {
        let Some(user) = device.user else { return };
        let known = self.result.users.entry(user).or_default();
        for (name, share) in &device.user_counts {
            let kept = known.entry(name.clone()).or_insert(*share);
            kept.used = kept.used.max(share.used);
        }
    }

    fn device(&mut self, process: &mut Process, fd: u32, device: Device) {
        self.adapters(&device);
        self.user(&device);
        process.devices.push(fd);
        if let Some(number) = device.process {
            // Parents have smaller numbers as a rule, and the second one shows nothing new.
            let is_new = !self.seen.contains_key(&number);
            let first = *self.seen.entry(number).or_insert(process.pid);
            if first != process.pid {
                process.inherited_from = Some(first);
                return;
            }
            if is_new {
                process.refusals.extend(device.refusals);
                process.refusals.sort_by_key(|refusal| refusal.ago_ns);
            }
        }
        if process.devices.len() == 1 {
            self.result.hidden_handles += device.hidden_handles;
            self.result.hidden_info += device.hidden_info;
            self.result.hidden_waits += device.hidden_waits;
        }
        for wait in device.waits {
            // Each process that has the object shows its waits.
            self.waits.entry((wait.object, wait.id)).or_insert(wait);
        }
        let count = |name: &str| device.counts.get(name).copied().unwrap_or(0);
        process.waiters = process.waiters.max(count("waiters"));
        process.allocations = process.allocations.max(count("allocations"));
        process.bytes = process.bytes.max(count("bytes"));
        process.resident = process.resident.max(count("resident"));
        process.held_files = process.held_files.max(count("files"));
        // Two descriptors of one process show the same handles.
        let mut known: HashSet<u32> = process.handles.iter().map(|one| one.handle).collect();
        for handle in device.handles {
            if !known.insert(handle.handle) {
                continue;
            }
            self.handle(process.pid, &handle);
            process.handles.push(handle);
        }
        for entry in device.info {
            self.object(entry.object).info.insert(entry);
        }
    }

    fn handle(&mut self, pid: u32, handle: &Handle) {
        if PRIVATE_KINDS.contains(&handle.kind.as_str()) {
            return;
        }
        let object = self.object(handle.object);
        object.kinds.insert(handle.kind.clone());
        object.references = object.references.max(handle.references);
        object.waiters = object.waiters.max(handle.waiters);
        object.owner = object.owner.or(handle.owner);
        object.key = object.key.or(handle.key);
        object.value = object.value.max(handle.value);
        // The last one that was seen.
        if handle.ago_ns.is_some() && (object.ago_ns.is_none() || handle.ago_ns < object.ago_ns) {
            object.by = handle.by.filter(|&by| by != 0);
            object.ago_ns = handle.ago_ns;
        }
        object.names.extend(handle.name.clone());
        object.handles.push(HeldHandle {
            pid,
            handle: handle.clone(),
        });
    }

    fn file(&mut self, process: &mut Process, fd: u32, file: ObjectFile) {
        for (index, (id, kind)) in file.members.iter().enumerate() {
            let object = self.object(*id);
            if !kind.is_empty() {
                object.kinds.insert(kind.clone());
            }
            // The counts are those of the first object.
            if index == 0 {
                object.references = object.references.max(file.references);
                object.waiters = object.waiters.max(file.waiters);
            }
            object.names.extend(file.name.clone());
            object.files.push(HeldFile {
                pid: process.pid,
                fd,
                class: file.class.clone(),
                access: file.access,
            });
        }
        for (object, owner) in file.owners {
            self.object(object).owner.get_or_insert(owner);
        }
        for entry in file.info {
            self.object(entry.object).info.insert(entry);
        }
        process.files.push(File {
            fd,
            class: file.class,
            objects: file.members.into_iter().map(|(id, _)| id).collect(),
            access: file.access,
            name: file.name,
        });
    }

    fn object(&mut self, id: u64) -> &mut Object {
        self.objects.entry(id).or_insert_with(|| Object {
            id,
            ..Object::default()
        })
    }

    fn finish(mut self) -> World {
        self.result.adapters = self.adapters.into_values().collect();
        self.result.objects = self.objects.into_values().collect();
        self.result.waits = self.waits.into_values().collect();
        self.result
    }
}

/// What the state letter of a process means.
pub fn state(letter: char) -> String {
    match letter {
        'R' => "running".into(),
        'S' => "sleeping".into(),
        'D' => "blocked".into(),
        'T' => "stopped".into(),
        't' => "traced".into(),
        'Z' => "zombie".into(),
        other => other.into(),
    }
}
