// SPDX-License-Identifier: MIT OR Apache-2.0
//! `opendxg trace`: what a program queues and what its queues do with it comes out as a file for
//! Perfetto and as a picture. `PATH` has to lead to the command.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{exit, Command, Output, Stdio};

use opendxg::pm4::Pm4;
use opendxg::{EventFd, EvictFlags, Object};
use opendxg_timeline::perfetto::track;
use prost::Message;
use rustix::process::{kill_process, Pid, Signal};
use selftests::gpu::{one, Gpu, PAGE};
use selftests::time::eventually;
use selftests::trace::ROOT;
use selftests::user_queue::{user_queue, UserQueue};
use selftests::{ensure, ensure_eq, skip, Failure, Suite, TestResult};
use tracing_perfetto_sdk_schema as schema;

use schema::trace_packet::Data;
use schema::track_descriptor::StaticOrDynamicName;
use schema::track_event::{NameField, Type};

/// How this program calls itself to be traced.
const PIPELINE: &str = "--pipeline";
/// The status of the program that is traced.
const STATUS: i32 = 7;

pub(crate) fn main() {
    if std::env::args().nth(1).as_deref() == Some(PIPELINE) {
        match pipeline() {
            Ok(()) => exit(STATUS),
            Err(failure) => panic!("{failure:?}"),
        }
    }
    Suite::new("fence timeline")
        .test(
            "GPU-88 GPU-89 GPU-90 GPU-91 MEM-103 what queues and the CPU do with fences, and paging \
             nodes with memory",
            program,
        )
        .test(
            "a command that cannot be started leaves no trace behind",
            no_command,
        )
        .test(
            "who ends the trace ends the command, and gets the file",
            ended,
        )
        .test("only root traces", other_user)
        .run()
}

/// What is traced: a queue waits for another one, the CPU waits for it, and a process fills a queue
/// by itself. Then memory comes to the adapter and goes. Says which fences these are.
fn pipeline() -> TestResult {
    let gpu = Gpu::new()?;
    let device = gpu.device();
    let (first, second) = (device.create_hw_context(0)?, device.create_hw_context(1)?);
    let (first, second) = (first.create_hw_queue()?, second.create_hw_queue()?);
    let (between, end) = (device.create_fence(0)?, device.create_fence(0)?);
    let event = EventFd::new()?;

    end.wait_async(6, &event)?;
    second.wait(&one(&between, 5))?;
    second.signal(&one(&end, 6))?;
    first.signal(&one(&between, 5))?;
    // It has ended already: nothing blocks.
    eventually("the end", || end.value() == 6)?;
    second.wait(&one(&between, 4))?;
    // It is not over when the queue is destroyed.
    first.wait(&one(&between, 99))?;
    first.destroy()?;

    let context = device.create_hw_context(2)?;
    let queue = user_queue(&context)?;
    let filled = UserQueue::new(&gpu, &queue)?;
    let native = device.create_native_fence(0)?;
    let commands = queue.record_signal(Pm4::new(), &native, 3);
    let commands = queue.record_wait(commands, &native, 2);
    filled.run(&commands)?;

    let memory = gpu.local_buffer(8 * PAGE)?;
    memory.set64(0, 7);
    device.evict(&[memory.allocation()], EvictFlags::empty())?;
    ensure_eq!(memory.get64(0), 7);
    println!(
        "{} {} {}",
        between.query()?.id,
        end.query()?.id,
        native.query()?.id
    );
    Ok(())
}

/// `opendxg trace` with arguments.
fn trace(args: &[&str], command: &[&str]) -> Command {
    let mut all = Command::new("opendxg");
    all.arg("trace").args(args).arg("--").args(command);
    all
}

/// A file of this test, removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("t-fence-timeline-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn name(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Slices and instants of one name on one track.
#[derive(Clone, Debug)]
struct Event {
    /// The track, and the one that it is below of.
    track: (String, Option<String>),
    category: String,
    begin: u64,
    /// `None` for an instant, `u64::MAX` if it never ends.
    end: Option<u64>,
    /// Arrows that begin and that end here.
    flows: (Vec<u64>, Vec<u64>),
}

/// All of a file, by name.
fn read(path: &Path) -> TestResult<BTreeMap<String, Vec<Event>>> {
    let bytes = std::fs::read(path)?;
    let trace = schema::Trace::decode(bytes.as_slice());
    let trace = trace.map_err(|error| Failure::Failed(error.to_string()))?;
    let mut tracks: BTreeMap<u64, (String, Option<u64>)> = BTreeMap::new();
    let mut events: BTreeMap<String, Vec<Event>> = BTreeMap::new();
    let mut open: BTreeMap<u64, Vec<(String, usize)>> = BTreeMap::new();
    for packet in trace.packet {
        let time = packet.timestamp.unwrap_or(0);
        match packet.data {
            Some(Data::TrackDescriptor(track)) => {
                if let Some(StaticOrDynamicName::Name(name)) = track.static_or_dynamic_name {
                    tracks.insert(track.uuid.unwrap_or(0), (name, track.parent_uuid));
                }
            }
            Some(Data::TrackEvent(event)) => {
                let uuid = event.track_uuid.unwrap_or(0);
                let stack = open.entry(uuid).or_default();
                let kind = event.r#type();
                if kind == Type::SliceEnd {
                    let (name, index) = stack.pop().ok_or("an end without a begin")?;
                    if let Some(begun) = events.get_mut(&name).and_then(|all| all.get_mut(index)) {
                        begun.end = Some(time);
                    }
                    continue;
                }
                let Some(NameField::Name(name)) = event.name_field else {
                    return Err("an event without a name".into());
                };
                let (track, parent) = tracks.get(&uuid).ok_or("an event without a track")?;
                let parent = parent.and_then(|parent| tracks.get(&parent));
                let all = events.entry(name.clone()).or_default();
                if kind == Type::SliceBegin {
                    stack.push((name, all.len()));
                }
                all.push(Event {
                    track: (track.clone(), parent.map(|(name, _)| name.clone())),
                    category: event.categories.concat(),
                    begin: time,
                    end: (kind == Type::SliceBegin).then_some(u64::MAX),
                    flows: (event.flow_ids, event.terminating_flow_ids),
                });
            }
            _ => (),
        }
    }
    Ok(events)
}

fn program() -> TestResult {
    if !Path::new(ROOT).join("events/dxg").is_dir() {
        skip!("no tracepoints at {ROOT}");
    }
    let this = std::env::current_exe()?.with_file_name(selftests::program::name());
    let this = this.to_str().ok_or("a name that is text")?;
    let (file, picture) = (Scratch::new("trace"), Scratch::new("svg"));
    let args = ["-o", file.name(), "--svg", picture.name()];
    let mut command = trace(&args, &[this, PIPELINE]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let instance = instance_of(child.id());
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output()?;
    let (said, error) = (
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr),
    );
    // The status is that of the program, and nothing was lost.
    ensure_eq!((status.code(), &*error), (Some(STATUS), ""));
    ensure!(!instance.exists(), "{}", instance.display());
    let ids: Vec<u64> = said.split_whitespace().flat_map(str::parse).collect();
    let [between, end, native] = ids[..] else {
        return Err(format!("said {said}").into());
    };

    let events = read(&file.0)?;
    // The event of this name, of which there is one.
    let the = |name: String| -> TestResult<Event> {
        match events.get(&name).map(Vec::as_slice) {
            Some([event]) => Ok(event.clone()),
            other => Err(format!("{name}: {other:?} in {:?}", events.keys()).into()),
        }
    };

    // GPU-88: four conditions of kernel-mode queues, two of them in each.
    let wait = the(format!("wait fence {between} for 5"))?;
    let unblocked = the(format!("unblocked: wait fence {between} for 5"))?;
    let signal = the(format!("signal fence {between} to 5"))?;
    let executed = the(format!("executed: signal fence {between} to 5"))?;
    ensure_eq!(wait.end, Some(unblocked.begin));
    ensure_eq!(signal.end, Some(executed.begin));
    ensure!(wait.begin <= signal.begin && executed.begin <= unblocked.begin);
    ensure_eq!((&*wait.category, &*signal.category), ("wait", "signal"));
    // GPU-91: a track for each queue, and arrows.
    ensure!(wait.track.1 != signal.track.1 && wait.track.0 == track::FENCES);
    ensure!(wait.track.1.is_some_and(|name| name.starts_with("queue ")));
    let arrow = &unblocked.flows.1;
    ensure!(
        arrow.len() == 1 && executed.flows.0.contains(&arrow[0]),
        "{unblocked:?} {executed:?}"
    );
    let woken = the(format!("woken: fence {end} has 6"))?;
    let executed = the(format!("executed: signal fence {end} to 6"))?;
    ensure_eq!(woken.track, (track::WAKES.to_owned(), None));
    ensure_eq!(woken.flows.1, executed.flows.0);
    ensure_eq!(executed.flows.0.len(), 1);
    // One that is satisfied is a box, too.
    let passed = the(format!("wait fence {between} for 4"))?;
    ensure!(passed.end.is_some_and(|end| end < u64::MAX));
    // GPU-90: what was never done stays open.
    let never = the(format!("wait fence {between} for 99"))?;
    ensure_eq!(never.end, Some(u64::MAX));
    // GPU-89: what the process has put into its ring.
    let signal = the(format!("signal fence {native} to 3"))?;
    let wait = the(format!("wait fence {native} for 2"))?;
    ensure!(signal.begin <= wait.begin && signal.track.1 == wait.track.1);
    ensure!(signal.track.1 != passed.track.1 && signal.track.1 != never.track.1);
    // And what the engine has logged of that.
    let executed = the(format!("executed: signal fence {native} to 3"))?;
    let unblocked = the(format!("unblocked: wait fence {native} for 2"))?;
    ensure_eq!(signal.end, Some(executed.begin));
    ensure_eq!(wait.end, Some(unblocked.begin));

    // MEM-103: what the paging node did.
    const NODE: &str = "paging node of adapter ";
    for what in [
        "FillVirtual 32 KiB",
        "TransferVirtual 32 KiB local to system",
    ] {
        let batches = events.iter().find(|(name, _)| name.starts_with(what));
        let (_, batches) = batches.ok_or_else(|| format!("{what}: {:?}", events.keys()))?;
        ensure!(batches[0].end.is_some_and(|end| end < u64::MAX));
        let parent = batches[0].track.1.as_ref();
        ensure!(parent.is_some_and(|name| name.starts_with(NODE)));
    }

    let svg = std::fs::read_to_string(&picture.0)?;
    ensure!(svg.contains(NODE));
    ensure!(svg.starts_with("<svg") && svg.contains("queue ") && svg.contains("CPU wakes"));
    Ok(())
}

/// Where the trace of a process `opendxg` is while it runs.
fn instance_of(process: u32) -> PathBuf {
    Path::new(ROOT).join(format!("instances/opendxg-{process}"))
}

fn no_command() -> TestResult {
    let file = Scratch::new("none");
    let mut command = trace(&["-o", file.name()], &["/does/not/exist"]);
    let child = command.stderr(Stdio::piped()).spawn()?;
    let instance = instance_of(child.id());
    let output = child.wait_with_output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure_eq!(output.status.code(), Some(1));
    ensure!(error.contains("/does/not/exist: No such file"), "{error}");
    ensure!(!instance.exists());
    Ok(())
}

fn ended() -> TestResult {
    let file = Scratch::new("ended");
    let command = ["sh", "-c", "echo begun; exec sleep 1000"];
    let mut child = trace(&["-o", file.name()], &command)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    ensure_eq!(line, "begun\n");
    let instance = instance_of(child.id());
    ensure!(instance.exists());
    let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    kill_process(process.ok_or("no process")?, Signal::TERM)?;
    // As a shell says it: 128 and the number of the signal.
    ensure_eq!(child.wait()?.code(), Some(128 + 15));
    ensure!(!instance.exists());
    read(&file.0)?;
    Ok(())
}

fn other_user() -> TestResult {
    let file = Scratch::new("other");
    let mut command = trace(&["-o", file.name()], &["true"]);
    let output = command.uid(1000).gid(1000).output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure_eq!(output.status.code(), Some(1));
    ensure!(error.contains("are you root?"), "{error}");
    Ok(())
}
