// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `dxg-` lines that the module writes into the fdinfo of its descriptors.
//!
//! A line that is missing or that this version does not understand is left out; it never hides the
//! others.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::refusals::Refusal;
use crate::waiters::Wait;

/// What one descriptor is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Descriptor {
    /// The device node: all handles of the process that opened it.
    Device(Device),
    /// An NT handle, fence point, weak reference or watch.
    Object(ObjectFile),
    /// A dma-buf of the module.
    DmaBuf(DmaBuf),
}

/// An open device node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// Which process object it belongs to; the same in all descriptors of it, inherited ones
    /// included.
    pub process: Option<u64>,
    /// `dxg-process-NAME: COUNT`.
    pub counts: BTreeMap<String, u64>,
    /// `dxg-user: UID`.
    pub user: Option<u64>,
    /// `dxg-user-NAME: COUNT of LIMIT`.
    pub user_counts: BTreeMap<String, Share>,
    /// Adapters that the process has handles of, or of what was made on them.
    pub adapters: Vec<Adapter>,
    /// Local handles.
    pub handles: Vec<Handle>,
    /// Metadata of the objects behind them.
    pub info: Vec<Info>,
    /// Calls that were refused last.
    pub refusals: Vec<Refusal>,
    /// Who waits for the objects behind them.
    pub waits: Vec<Wait>,
    /// How many more waits there are than the module shows.
    pub hidden_waits: u64,
    /// How many more local handles there are than the module shows.
    pub hidden_handles: u64,
    /// How many more metadata entries there are than the module shows.
    pub hidden_info: u64,
}

/// What a user has of something, and may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// How much it is.
    pub used: u64,
    /// The most that it can be.
    pub limit: u64,
}

/// A line `dxg-adapter`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Adapter {
    /// Number of the adapter.
    pub id: u64,
    /// LUID as text.
    pub luid: String,
    /// `running`, or `removed` if only handles are left.
    pub state: String,
    /// What it is.
    pub description: String,
    /// The module's own counts of what belongs to it, by name; empty if they could not be read.
    pub counts: BTreeMap<String, u64>,
}

/// A line `dxg-handle`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Handle {
    /// Value of the local handle.
    pub handle: u32,
    /// Kind of the object.
    pub kind: String,
    /// Number of the object.
    pub object: u64,
    /// Strong references to it.
    pub references: Option<u64>,
    /// Access mask of the handle.
    pub access: Option<u32>,
    /// Waits for the object.
    pub waiters: Option<u64>,
    /// Thread that owns a keyed mutex.
    pub owner: Option<u64>,
    /// Its process may not signal the object through it, whatever the access says.
    #[serde(skip)]
    pub waits_only: bool,
    /// Value of a fence.
    pub value: Option<u64>,
    /// Key of a keyed mutex.
    pub key: Option<u64>,
    /// The process that has signalled a fence last, or has acquired or released a keyed mutex; 0
    /// if that was none, or one that this pid namespace does not know.
    pub by: Option<u32>,
    /// How long ago that was.
    pub ago_ns: Option<u64>,
    /// Name of the object.
    pub name: Option<String>,
}

/// A line `dxg-info`: one entry of an object's store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Info {
    /// Number of the object; 0 while it is that of the descriptor.
    #[serde(skip)]
    pub object: u64,
    /// GUID.
    pub key: String,
    /// Schema.
    pub schema: u64,
    /// Bytes.
    pub size: u64,
    /// Generation of the object when the entry was set.
    pub generation: u64,
}

/// A descriptor of one object, or of several that are shared together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectFile {
    /// Object type, for example `DxgkSharedResource`.
    pub class: String,
    /// Number and kind of each object.
    pub members: Vec<(u64, String)>,
    /// Object and owning thread of each keyed mutex that is owned.
    pub owners: Vec<(u64, u64)>,
    /// Access mask.
    pub access: Option<u32>,
    /// Name of the share.
    pub name: Option<String>,
    /// Local handles of the object.
    pub openings: Option<u64>,
    /// Strong references to the object.
    pub references: Option<u64>,
    /// Waits for the object.
    pub waiters: Option<u64>,
    /// Metadata.
    pub info: Vec<Info>,
}

/// A dma-buf that the module exports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DmaBuf {
    /// Bytes.
    pub size: u64,
    /// References to the buffer.
    pub references: u64,
}

/// Name of the module as exporter of dma-bufs.
const EXPORTER: &str = "opendxg";

/// Reads the fdinfo of a descriptor; `None` if it is not one of the module.
pub fn parse(text: &str) -> Option<Descriptor> {
    let fields = || {
        text.lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(key, value)| (key, value.trim_start_matches([' ', '\t'])))
    };
    let value = |wanted: &str| {
        fields()
            .find(|(key, _)| *key == wanted)
            .map(|(_, value)| value)
    };
    if value("exp_name").is_some_and(|name| name.trim() == EXPORTER) {
        let count = |key| value(key).and_then(number).unwrap_or(0);
        let (size, references) = (count("size"), count("count"));
        return Some(Descriptor::DmaBuf(DmaBuf { size, references }));
    }
    if value("dxg-type").is_some() {
        let mut file = ObjectFile::default();
        fields().for_each(|(key, value)| file.line(key, value));
        file.own_info();
        return Some(Descriptor::Object(file));
    }
    let mut device = Device::default();
    let mut found = false;
    for (key, value) in fields() {
        if let Some(key) = key.strip_prefix("dxg-") {
            found = true;
            device.line(key, value);
        }
    }
    found.then_some(Descriptor::Device(device))
}

impl Device {
    fn line(&mut self, key: &str, value: &str) {
        match key {
            "process" => self.process = number(value),
            "handle" => self.handles.extend(handle(value)),
            "info" => self.info.extend(info(value)),
            "wait" => self.waits.extend(Wait::parse(value)),
            "waits-more" => self.hidden_waits = number(value).unwrap_or(0),
            "refusal" => self.refusals.extend(Refusal::parse(value)),
            "adapter" => self.adapters.extend(adapter(value)),
            "handles-more" => self.hidden_handles = number(value).unwrap_or(0),
            "info-more" => self.hidden_info = number(value).unwrap_or(0),
            "user" => self.user = number(value),
            _ => {
                let share = key.strip_prefix("user-").zip(share(value));
                self.user_counts
                    .extend(share.map(|(name, share)| (name.to_owned(), share)));
                let count = number(value);
                if let (Some(name), Some(count)) = (key.strip_prefix("process-"), count) {
                    self.counts.insert(name.into(), count);
                }
            }
        }
    }
}

/// `USED of LIMIT`.
fn share(value: &str) -> Option<Share> {
    let (used, limit) = value.split_once(" of ")?;
    Some(Share {
        used: number(used)?,
        limit: number(limit)?,
    })
}

impl ObjectFile {
    fn line(&mut self, key: &str, value: &str) {
        match key {
            "dxg-type" => self.class = value.trim().into(),
            "dxg-object" => {
                let ids = value.split_whitespace().filter_map(number);
                self.members.extend(ids.map(|id| (id, String::new())));
            }
            // One line for each object, or one with all of them.
            "dxg-kind" => {
                let mut nameless = self.members.iter_mut().filter(|member| member.1.is_empty());
                for kind in value.split_whitespace() {
                    if let Some(member) = nameless.next() {
                        member.1 = kind.into();
                    }
                }
            }
            // State of the last object that was named.
            "dxg-owner" => {
                let member = self.members.last().map(|member| member.0);
                self.owners.extend(member.zip(thread(value)));
            }
            "dxg-access" => self.access = mask(value),
            "dxg-name" => self.name = name(value),
            "dxg-openings" => self.openings = number(value),
            "dxg-references" => self.references = number(value),
            "dxg-waiters" => self.waiters = number(value),
            "dxg-info" => self.info.extend(info(value)),
            _ => (),
        }
    }

    /// Entries without the number of an object are about the first one.
    fn own_info(&mut self) {
        let first = self.members.first().map_or(0, |member| member.0);
        for entry in self.info.iter_mut().filter(|entry| entry.object == 0) {
            entry.object = first;
        }
    }
}

/// `HANDLE KIND OBJECT refs=N access=MASK waiters=N value=N key=N owner=THREAD by=PID ago=NS
/// name=TEXT`, of which all from `refs` on may be missing; the name comes last and may hold blanks.
fn handle(line: &str) -> Option<Handle> {
    let (line, text) = match line.split_once(" name=") {
        Some((line, text)) => (line, name(text)),
        None => (line, None),
    };
    let mut words = line.split_whitespace();
    let mut handle = Handle {
        handle: mask(words.next()?)?,
        kind: words.next()?.into(),
        object: number(words.next()?)?,
        name: text,
        ..Handle::default()
    };
    for word in words {
        match word.split_once('=') {
            Some(("refs", value)) => handle.references = number(value),
            Some(("access", value)) => handle.access = mask(value),
            Some(("waiters", value)) => handle.waiters = number(value),
            Some(("owner", value)) => handle.owner = thread(value),
            Some(("rights", value)) => handle.waits_only = value == "wait",
            Some(("value", value)) => handle.value = number(value),
            Some(("key", value)) => handle.key = number(value),
            Some(("by", value)) => handle.by = value.parse().ok(),
            Some(("ago", value)) => handle.ago_ns = number(value),
            _ => (),
        }
    }
    Some(handle)
}

/// `[OBJECT] GUID SCHEMA SIZE GENERATION`.
fn info(line: &str) -> Option<Info> {
    let mut words = line.split_whitespace().peekable();
    let object = match words.peek()?.contains('-') {
        true => 0,
        false => number(words.next()?)?,
    };
    Some(Info {
        object,
        key: words.next()?.to_ascii_lowercase(),
        schema: number(words.next()?)?,
        size: number(words.next()?)?,
        generation: words.next().and_then(number).unwrap_or(0),
    })
}

/// `ID luid=LUID state=STATE DESCRIPTION`.
fn adapter(line: &str) -> Option<Adapter> {
    let mut words = line.trim().splitn(4, ' ');
    Some(Adapter {
        id: number(words.next()?)?,
        luid: words.next()?.strip_prefix("luid=")?.into(),
        state: words.next()?.strip_prefix("state=")?.into(),
        description: words.next().unwrap_or_default().into(),
        counts: BTreeMap::new(),
    })
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// 0 stands for nobody, or for a thread outside the reader's PID namespace.
fn thread(text: &str) -> Option<u64> {
    number(text).filter(|&thread| thread != 0)
}

fn mask(text: &str) -> Option<u32> {
    u32::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
}

/// Every name begins with a backslash, so that `-` can stand for none.
fn name(text: &str) -> Option<String> {
    (!text.is_empty() && text != "-").then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: &str = "pos:\t0\nflags:\t02100000\nmnt_id:\t15\ndxg-process:\t9\n\
        dxg-process-handles:\t2\ndxg-adapter:\t1 luid=00000000:0000a4c1 state=running A b\n\
        dxg-handle:\t0x40000040 adapter 1 refs=1 access=0x0 waiters=0 name=-\n\
        dxg-handle:\t0x40000080 keyed-mutex 7 refs=3 access=0x1f0003 waiters=2 owner=77 name=\\BaseNamedObjects\\a b = c\n\
        dxg-info:\t7 1AD4FDB7-7c6c-4b4f-ae9d-f6a39ab932dd 3 120 5\n";

    fn device(text: &str) -> Device {
        match parse(text) {
            Some(Descriptor::Device(device)) => device,
            other => panic!("{other:?}"),
        }
    }

    fn object(text: &str) -> ObjectFile {
        match parse(text) {
            Some(Descriptor::Object(file)) => file,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_device() {
        let device = device(DEVICE);
        assert_eq!((device.process, device.counts["handles"]), (Some(9), 2));
        let adapter = &device.adapters[0];
        assert_eq!(
            (adapter.id, adapter.luid.as_str()),
            (1, "00000000:0000a4c1")
        );
        assert_eq!((&*adapter.state, &*adapter.description), ("running", "A b"));
        let mutex = &device.handles[1];
        assert_eq!(
            (mutex.handle, mutex.kind.as_str(), mutex.object),
            (0x4000_0080, "keyed-mutex", 7)
        );
        assert_eq!(
            (mutex.references, mutex.access, mutex.waiters),
            (Some(3), Some(0x1f_0003), Some(2))
        );
        assert_eq!(mutex.name.as_deref(), Some("\\BaseNamedObjects\\a b = c"));
        assert_eq!((mutex.owner, device.handles[0].owner), (Some(77), None));
        assert_eq!(device.handles[0].name, None);
        assert_eq!(
            (
                device.info[0].object,
                device.info[0].schema,
                device.info[0].size
            ),
            (7, 3, 120)
        );
    }

    #[test]
    fn waits_and_the_last_signal() {
        let device = device(
            "dxg-handle:\t0x40000040 monitored-fence 7 refs=1 access=0x3 waiters=1 value=4 by=10 \
             ago=99 rights=wait\ndxg-wait:\t7 value=5 pid=11 ago=3 id=2 receiver=thread mode=all\n",
        );
        let fence = &device.handles[0];
        assert_eq!((fence.value, fence.key), (Some(4), None));
        assert_eq!((fence.by, fence.ago_ns), (Some(10), Some(99)));
        assert!(fence.waits_only);
        assert_eq!((device.waits[0].object, device.waits[0].pid), (7, Some(11)));
    }

    #[test]
    fn what_is_not_shown() {
        let text =
            format!("{DEVICE}dxg-info-more:\t7\ndxg-handles-more:\t65\ndxg-waits-more:\t3\n");
        let device = device(&text);
        assert_eq!((device.hidden_handles, device.hidden_info), (65, 7));
        assert_eq!(device.hidden_waits, 3);
    }

    #[test]
    fn any_line_may_be_missing_or_strange() {
        for line in DEVICE.lines() {
            device(&DEVICE.replace(line, ""));
        }
        let short = device(
            "dxg-handle:\t0x40000040 fence 3\ndxg-handle:\tnonsense\ndxg-new:\t?\n\
            dxg-adapter:\t1 luid=0:1\n",
        );
        assert_eq!(short.adapters, []);
        assert_eq!(short.handles.len(), 1);
        assert_eq!(short.handles[0].references, None);
    }

    #[test]
    fn an_nt_handle_of_three() {
        let text = "dxg-type:\tDxgkSharedResource\ndxg-object:\t4\ndxg-kind:\tresource\ndxg-object:\t5\n\
            dxg-kind:\tkeyed-mutex\ndxg-owner:\t9\ndxg-object:\t6\ndxg-kind:\tmonitored-fence\ndxg-access:\t0xf0001\n\
            dxg-name:\t\\BaseNamedObjects\\x\ndxg-openings:\t2\ndxg-references:\t3\n\
            dxg-info:\t98fb6f47-3e6a-46bd-bb3f-2e1890bb948c 1 8 1\n";
        let file = object(text);
        let kinds: Vec<_> = file
            .members
            .iter()
            .map(|(id, kind)| (*id, kind.as_str()))
            .collect();
        assert_eq!(
            kinds,
            [(4, "resource"), (5, "keyed-mutex"), (6, "monitored-fence")]
        );
        assert_eq!(
            (file.openings, file.references, file.info[0].object),
            (Some(2), Some(3), 4)
        );
        assert_eq!(file.owners, [(5, 9)]);
        assert_eq!(file.name.as_deref(), Some("\\BaseNamedObjects\\x"));
        let one_line = object("dxg-type:\tX\ndxg-object:\t4 5\ndxg-kind:\tresource keyed-mutex\n");
        assert_eq!(one_line.members[1], (5, "keyed-mutex".into()));
    }

    #[test]
    fn other_files() {
        assert_eq!(
            parse("pos:\t0\nflags:\t02\nmnt_id:\t15\neventfd-count: 0\n"),
            None
        );
        assert_eq!(parse("size:\t4096\ncount:\t2\nexp_name:\tudmabuf\n"), None);
        let ours = DmaBuf {
            size: 4096,
            references: 2,
        };
        assert_eq!(
            parse("size:\t4096\ncount:\t2\nexp_name:\topendxg\n"),
            Some(Descriptor::DmaBuf(ours))
        );
    }
}
