// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command `opendxg` on live objects: it shows what other processes have, also while they are
//! stopped or blocked in the driver. `PATH` has to lead to it.

mod refusals;

use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use opendxg::pm4::Pm4;
use opendxg::{
    Access, Acquired, Dxg, ExecutionState, Guid, InfoItem, KeyedMutex, LocalHandle, NtHandle,
    Object, Resource, ShareOptions, Timeout,
};
use selftests::child::{Child, Gate};
use selftests::gpu::{one, Gpu};
use selftests::soft_adapter::SoftAdapter;
use selftests::time::eventually;
use selftests::{ensure, ensure_eq, fixture, task, Failure, Suite, TestResult};
use serde_json::Value;

const NAME: &str = r"\BaseNamedObjects\t-tool picture";
const KEY: Guid = Guid::VULKAN;
const BYTES: [u8; 48] = [0x5a; 48];

pub(crate) fn main() {
    Suite::new("tool")
        .test("RES-15 RES-42 RES-58 an object with handles, name and metadata, seen from outside", from_outside)
        .test("RES-15 a stopped process is shown with all it has", stopped)
        .test("RES-15 RES-95 who waits for a keyed mutex, and who has it, while all of them are stuck", stuck)
        .test("RES-8 RES-15 a device that a child inherited is not counted twice", inherited)
        .test("RES-15 RES-107 other users see neither objects nor names", other_user)
        .test("RES-86 exported dma-bufs are listed with their sizes", dma_bufs)
        .test("RES-15 adapters with their LUIDs, also without any handle", adapters)
        .test("RES-15 a removed adapter is listed while somebody uses it", removed_adapter)
        .test("RES-15 the node under another name, and no node", other_names)
        .test("GPU-9 FEN-46 a queue and what it waits for, while nobody signals that", blocked_queue)
        .test("GPU-36 GPU-67 a queue that has stopped, and why", faulted_queues)
        .test("GPU-50 how busy an engine is, and with whose work", busy_engine)
        .test("RES-107 only root sees queues and engines", other_user_sees_no_queues)
        .with(refusals::tests)
        .run()
}

/// The command with arguments, as it is installed.
fn tool(args: &[&str]) -> Command {
    let mut command = Command::new("opendxg");
    command.args(args);
    command
}

fn text(output: Output) -> TestResult<String> {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{}: {error}", output.status);
    ensure_eq!(error, "");
    String::from_utf8(output.stdout).map_err(|_| Failure::Failed("output is not UTF-8".into()))
}

/// The content of a document: the member of this name.
fn json(args: &[&str], member: &str) -> TestResult<Value> {
    let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    let mut document = parse(tool(&args).output()?)?;
    ensure_eq!(document["version"].as_u64(), Some(1));
    ensure_eq!(document["hidden_processes"].as_u64(), Some(0));
    Ok(document[member].take())
}

fn parse(output: Output) -> TestResult<Value> {
    serde_json::from_str(&text(output)?).map_err(|error| Failure::Failed(error.to_string()))
}

/// The elements of an array.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A picture as one process has it.
struct Picture {
    dxg: Dxg,
    resource: Resource,
    _nt_handle: NtHandle,
}

impl Picture {
    fn new() -> TestResult<Self> {
        let device = fixture::device()?;
        let dxg = Dxg::open()?;
        let resource = device.new_resource().linear(8192).nt_shared().create()?;
        resource.set_info(&[InfoItem::new(KEY, 3, &BYTES)])?;
        let nt_handle = dxg.share(
            &[resource.handle()],
            &ShareOptions::new(Access::RESOURCE_ALL).name(NAME),
        )?;
        Ok(Self {
            dxg,
            resource,
            _nt_handle: nt_handle,
        })
    }
}

/// A child that has a picture until the gate opens; ready when this returns.
fn child_with_picture(end: &Gate) -> TestResult<Child> {
    let ready = Gate::new()?;
    let child = Child::spawn(|| {
        let _picture = Picture::new()?;
        ready.open()?;
        end.wait()
    })?;
    ready.wait()?;
    Ok(child)
}

/// Checks the picture of a child, whose state the tool has to name; returns the object's number.
fn check_picture(child: &Child, state: &str) -> TestResult<u64> {
    let names = json(&["names"], "objects")?;
    let [object] = list(&names) else {
        return Err(format!("one name was due: {names}").into());
    };
    ensure_eq!(list(&object["names"]), [NAME]);
    let id = object["id"].as_u64().ok_or("no number")?;

    let object = json(&["object", &id.to_string()], "object")?;
    ensure!(
        list(&object["kinds"]).contains(&"resource".into()),
        "{object}"
    );
    let [entry] = list(&object["info"]) else {
        return Err(format!("one entry was due: {object}").into());
    };
    ensure_eq!(entry["key"], KEY.to_string());
    ensure_eq!(
        (entry["schema"].as_u64(), entry["size"].as_u64()),
        (Some(3), Some(48))
    );
    // The open resource and the share.
    ensure_eq!(object["references"].as_u64(), Some(2));
    let pid = u64::try_from(child.pid()).map_err(|_| "a process id")?;
    for holder in list(&object["handles"])
        .iter()
        .chain(list(&object["files"]))
    {
        ensure_eq!(holder["pid"].as_u64(), Some(pid));
    }
    // The resource, its allocation, and the descriptor.
    ensure_eq!(
        (list(&object["handles"]).len(), list(&object["files"]).len()),
        (2, 1)
    );

    let processes = json(&["processes"], "processes")?;
    let process = list(&processes)
        .iter()
        .find(|process| process["pid"].as_u64() == Some(pid));
    let process = process.ok_or("the process is not listed")?;
    ensure_eq!(process["state"], state);
    Ok(id)
}

fn from_outside() -> TestResult {
    let end = Gate::new()?;
    let child = child_with_picture(&end)?;
    let id = eventually_sleeping(&child).and_then(|()| check_picture(&child, "sleeping"))?;

    // The driver itself says the same.
    let dxg = Dxg::open()?;
    let nt_handle = dxg.open_resource_name(NAME, Access::RESOURCE_ALL)?;
    ensure_eq!(nt_handle.query()?.id, id);
    drop(nt_handle);

    end.open()?;
    child.join()?;
    ensure_eq!(json(&["names"], "objects")?, serde_json::json!([]));
    let output = tool(&["object", &id.to_string()]).output()?;
    ensure_eq!(output.status.code(), Some(1));
    Ok(())
}

fn eventually_sleeping(child: &Child) -> TestResult {
    eventually("the child sleeps", || state_of(child.pid()) == 'S')
}

fn state_of(pid: i32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    after.chars().next().unwrap_or('?')
}

fn stopped() -> TestResult {
    let end = Gate::new()?;
    let child = child_with_picture(&end)?;
    child.signal(libc::SIGSTOP)?;
    eventually("the child is stopped", || state_of(child.pid()) == 'T')?;
    check_picture(&child, "stopped")?;
    child.kill()
}

/// The owner is stopped, and the other process sleeps in the driver for ever.
fn stuck() -> TestResult {
    let mutex = Dxg::open()?.create_keyed_mutex(0)?;
    let number = mutex.global_handle().ok_or("no global handle")?;
    let id = mutex.query()?.id;
    let (owns, never) = (Gate::new()?, Gate::new()?);
    let open = || -> TestResult<KeyedMutex> { Ok(Dxg::open()?.open_keyed_mutex(number)?) };
    let owner = Child::spawn(|| {
        let mutex = open()?;
        ensure_eq!(mutex.acquire(0, Timeout::Forever)?, Acquired::Owned(0));
        owns.open()?;
        never.wait()
    })?;
    owns.wait()?;
    let waiter = Child::spawn(|| {
        open()?.acquire(1, Timeout::Forever)?;
        Err("acquired a key that nobody released".into())
    })?;
    task::until_blocked(waiter.pid())?;
    owner.signal(libc::SIGSTOP)?;
    eventually("the owner is stopped", || state_of(owner.pid()) == 'T')?;

    let waited = json(&["waiters"], "objects")?;
    let [object] = list(&waited) else {
        return Err(format!("one object was due: {waited}").into());
    };
    ensure_eq!(
        (object["id"].as_u64(), object["waiters"].as_u64()),
        (Some(id), Some(1))
    );
    ensure_eq!(list(&object["kinds"]), ["keyed-mutex"]);
    let table = text(tool(&["waiters"]).output()?)?;
    for (pid, state) in [(owner.pid(), "stopped"), (waiter.pid(), "sleeping")] {
        ensure!(
            table.contains(&format!("{pid} t-tool ({state})")),
            "{table}"
        );
    }

    waiter.kill()?;
    eventually("nobody waits any more", || {
        json(&["waiters"], "objects").is_ok_and(|waited| list(&waited).is_empty())
    })?;
    owner.kill()?;
    Ok(mutex.destroy()?)
}

fn inherited() -> TestResult {
    let picture = Picture::new()?;
    let LocalHandle(handle) = picture.resource.handle();
    let (ready, end) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        ready.open()?;
        end.wait()
    })?;
    ready.wait()?;
    let processes = json(&["handles"], "processes")?;
    let found = |pid: u64| {
        list(&processes)
            .iter()
            .find(move |process| process["pid"].as_u64() == Some(pid))
    };
    let own = found(std::process::id().into()).ok_or("this process is not listed")?;
    let other = found(child.pid() as u64).ok_or("the child is not listed")?;
    let has = |process: &Value| {
        list(&process["handles"])
            .iter()
            .filter(|one| one["handle"].as_u64() == Some(handle.into()))
            .count()
    };
    // Two nodes of this process are open: of the fixture and of the picture.
    ensure!(list(&own["devices"]).len() >= 2, "{own}");
    ensure_eq!((has(own), has(other)), (1, 0));
    ensure_eq!(
        other["inherited_from"].as_u64(),
        Some(std::process::id().into())
    );
    // The child has inherited the NT handle as well, and that is its own.
    ensure_eq!(list(&other["files"]).len(), 1);
    end.open()?;
    child.join()?;
    drop(picture.dxg);
    Ok(())
}

fn other_user() -> TestResult {
    let end = Gate::new()?;
    let child = child_with_picture(&end)?;
    let as_user =
        |args: &[&str]| -> TestResult<Output> { Ok(tool(args).uid(1000).gid(1000).output()?) };
    let world = parse(as_user(&["--json"])?)?;
    ensure!(world["hidden_processes"].as_u64() > Some(0), "{world}");
    ensure_eq!(world["processes"], serde_json::json!([]));
    ensure_eq!(world["objects"], serde_json::json!([]));
    ensure_eq!(luids(&world["adapters"]), open_luids()?);
    for command in ["objects", "names", "info", "handles"] {
        let table = text(as_user(&[command])?)?;
        ensure!(!table.contains("t-tool"), "{table}");
        // Every document says that something is missing.
        let document = parse(as_user(&[command, "--json"])?)?;
        ensure!(
            document["hidden_processes"].as_u64() > Some(0),
            "{document}"
        );
    }
    end.open()?;
    child.join()
}

fn dma_bufs() -> TestResult {
    let (ready, end) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let device = fixture::device()?;
        let resource = device.new_resource().linear(12288).create()?;
        let allocation = resource.allocations().first().ok_or("no allocation")?;
        let _buffer = allocation.export_dmabuf()?;
        ready.open()?;
        end.wait()
    })?;
    ready.wait()?;
    let processes = json(&["processes"], "processes")?;
    let pid = u64::try_from(child.pid()).ok();
    let process = list(&processes)
        .iter()
        .find(|one| one["pid"].as_u64() == pid);
    let process = process.ok_or("the process is not listed")?;
    let [buffer] = list(&process["dma_bufs"]) else {
        return Err(format!("one dma-buf was due: {process}").into());
    };
    ensure_eq!(buffer["size"].as_u64(), Some(12288));
    end.open()?;
    child.join()
}

/// The node has any name, and other descriptors of the process are not of the driver.
fn other_names() -> TestResult {
    let node = std::env::temp_dir().join(format!("t-tool-{}", std::process::id()));
    let copied = Command::new("cp")
        .arg("-a")
        .arg("/dev/dxg")
        .arg(&node)
        .status()?;
    ensure!(copied.success(), "cp: {copied}");
    let output = tool(&["--json"]).env("OPENDXG_DEVICE", &node).output();
    let _ = std::fs::remove_file(&node);
    let world = parse(output?)?;
    ensure!(!list(&world["adapters"]).is_empty(), "{world}");
    let missing = tool(&[]).env("OPENDXG_DEVICE", &node).output()?;
    ensure_eq!(missing.status.code(), Some(3));
    Ok(())
}

/// The LUIDs of listed adapters.
fn luids(shown: &Value) -> Vec<String> {
    let luids = list(shown).iter();
    luids
        .filter_map(|adapter| Some(adapter["luid"].as_str()?.to_owned()))
        .collect()
}

/// Those of the adapters that can be opened.
fn open_luids() -> TestResult<Vec<String>> {
    let adapters = Dxg::open()?.adapters()?;
    Ok(adapters.iter().map(|one| one.luid().to_string()).collect())
}

fn adapters() -> TestResult {
    let shown = json(&["adapters"], "adapters")?;
    let expected = open_luids()?;
    ensure!(!expected.is_empty(), "there is no adapter");
    ensure_eq!(luids(&shown), expected);
    for adapter in list(&shown) {
        ensure_eq!(adapter["state"], "running");
    }
    Ok(())
}

fn removed_adapter() -> TestResult {
    let soft = SoftAdapter::enabled("t-tool")?;
    let (luid, adapter) = (soft.luid()?.to_string(), soft.open()?);
    let description = adapter.description()?;
    let shown = || -> TestResult<Option<Value>> {
        let all = json(&["adapters"], "adapters")?;
        let found = list(&all).iter().find(|one| one["luid"] == luid);
        Ok(found.cloned())
    };
    let named = |state: &str| -> TestResult {
        let shown = shown()?.ok_or("the adapter is not listed")?;
        ensure_eq!(shown["state"], state);
        ensure_eq!(shown["description"], description);
        // The command has closed its own handle.
        ensure_eq!(shown["counts"]["handles"], 1);
        Ok(())
    };
    named("running")?;
    soft.disable()?;
    named("removed")?;
    drop(adapter);
    ensure_eq!(shown()?, None);
    Ok(())
}

/// The queues of a process.
fn queues_of(pid: i32) -> TestResult<Vec<Value>> {
    let queues = json(&["queues", "--pid", &pid.to_string()], "queues")?;
    Ok(list(&queues).to_vec())
}

fn blocked_queue() -> TestResult {
    let (ready, end) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let gpu = Gpu::new()?;
        let fence = gpu.device().create_shareable_fence(3)?;
        gpu.context().wait(&one(&fence, 5))?;
        gpu.submit(&gpu.commands(&Pm4::new().nop(0))?)?;
        let hw_context = gpu.device().create_hw_context(2)?;
        hw_context.set_priority(-3)?;
        let _idle = hw_context.create_hw_queue()?;
        ready.open()?;
        end.wait()?;
        fence.signal(5)?;
        gpu.finish()
    })?;
    ready.wait()?;

    let found = queues_of(child.pid())?;
    let [blocked, idle] = &found[..] else {
        return Err(format!("two queues were due: {found:?}").into());
    };
    ensure_eq!(
        (&blocked["state"], &blocked["kind"]),
        (&"blocked".into(), &"packets".into())
    );
    ensure_eq!(
        (blocked["queued"].as_u64(), blocked["in_flight"].as_u64()),
        (Some(2), Some(0))
    );
    let on = &blocked["blocked_on"];
    ensure_eq!(
        (&on["kind"], on["value"].as_u64()),
        (&"monitored-fence".into(), Some(5))
    );
    ensure_eq!(
        (&idle["state"], &idle["kind"]),
        (&"idle".into(), &"hw".into())
    );
    ensure_eq!(idle["node"].as_u64(), Some(2));
    ensure!(idle["blocked_on"].is_null(), "{idle}");
    ensure_eq!(
        (blocked["priority"].as_i64(), idle["priority"].as_i64()),
        (Some(0), Some(-3))
    );

    // The object says who could end the wait.
    let id = on["object"].as_u64().ok_or("no object")?;
    let object = json(&["object", &id.to_string()], "object")?;
    let [handle] = list(&object["handles"]) else {
        return Err(format!("one handle was due: {object}").into());
    };
    ensure_eq!(handle["pid"].as_i64(), Some(child.pid().into()));
    let table = text(tool(&["queues"]).output()?)?;
    let why = format!("monitored-fence {id} to reach 5");
    ensure!(table.lines().any(|line| line.ends_with(&why)), "{table}");

    child.signal(libc::SIGSTOP)?;
    eventually("the child is stopped", || state_of(child.pid()) == 'T')?;
    ensure_eq!(queues_of(child.pid())?.len(), 2);
    child.signal(libc::SIGCONT)?;
    end.open()?;
    let pid = child.pid();
    child.join()?;
    eventually("the queues are gone", || {
        queues_of(pid).is_ok_and(|queues| queues.is_empty())
    })
}

fn faulted_queues() -> TestResult {
    const NOWHERE: u64 = 0x7_0000_0000;
    let (ready, end) = (Gate::new()?, Gate::new()?);
    let child = Child::spawn(|| {
        let page = Gpu::node(0)?;
        page.fails(
            &Pm4::new().nop(0).write64(NOWHERE, 1),
            ExecutionState::DmaPageFault,
        )?;
        let packet = Gpu::node(1)?;
        packet.fails(&Pm4::new().word(0x1234_5678), ExecutionState::DmaFault)?;
        ready.open()?;
        end.wait()
    })?;
    ready.wait()?;
    let pid = i64::from(child.pid());
    let engines = json(&["engines"], "engines")?;
    let fault = &engine_of_node(&engines, 0)?["last_fault"];
    ensure_eq!(
        (&fault["kind"], &fault["write"]),
        (&"page".into(), &true.into())
    );
    ensure_eq!(fault["address"].as_u64(), Some(NOWHERE));
    ensure_eq!(fault["submission"].as_u64(), Some(1));
    // Behind the NOP.
    ensure_eq!(fault["packet"].as_u64().map(|at| at % 4096), Some(4));
    ensure_eq!(fault["pid"].as_i64(), Some(pid));
    let fault = &engine_of_node(&engines, 1)?["last_fault"];
    ensure_eq!(
        (&fault["kind"], fault["header"].as_u64()),
        (&"packet".into(), Some(0x1234_5678))
    );
    ensure!(fault["queue"].is_u64(), "{fault}");
    end.open()?;
    child.join()?;

    // It is told of a process that is gone, too.
    let table = text(tool(&["engines"]).output()?)?;
    let why = format!("of {pid}: write to {NOWHERE:#x}");
    ensure!(table.contains(&why), "{table}");
    Ok(())
}

fn busy_engine() -> TestResult {
    let ready = Gate::new()?;
    let child = Child::spawn(|| {
        let gpu = Gpu::node(1)?;
        let buffer = gpu.buffer(1 << 20)?;
        let fill = Pm4::new().fill(buffer.address(), 7, buffer.bytes());
        let fills = gpu.commands(&(0..200).fold(Pm4::new(), |all, _| all.append(&fill)))?;
        ready.open()?;
        // Until it is killed.
        loop {
            gpu.submit(&fills)?;
            gpu.finish()?;
        }
    })?;
    ready.wait()?;
    let before = engine_of_node(&json(&["engines"], "engines")?, 1)?;
    let load = json(&["top", "--once", "--delay", "0.5"], "load")?;
    let load = engine_of_node(&load, 1)?;
    let busy = load["busy"].as_f64().ok_or("no time")?;
    ensure!(busy > 0.0 && busy <= 100.0, "{load}");
    let pid = i64::from(child.pid());
    let share = list(&load["processes"])
        .iter()
        .find(|one| one["pid"].as_i64() == Some(pid));
    let share = share.ok_or_else(|| Failure::Failed(format!("no process {pid}: {load}")))?;
    ensure_eq!(share["command"], "t-tool");
    // Nobody else has work for this engine.
    let part = share["busy"].as_f64().ok_or("no time")?;
    ensure!(part > busy * 0.8 && part < busy * 1.2 + 0.2, "{load}");
    let idle = json(&["top", "--once", "--delay", "0.1"], "load")?;
    ensure_eq!(engine_of_node(&idle, 2)?["busy"].as_f64(), Some(0.0));
    child.kill()?;
    let now = || engine_of_node(&json(&["engines"], "engines")?, 1);
    eventually("the engine is idle", || {
        now().is_ok_and(|engine| engine["state"] == "idle")
    })?;
    let after = now()?;
    for what in ["busy_ns", "submissions"] {
        ensure!(
            after[what].as_u64() > before[what].as_u64(),
            "{what}: {before} {after}"
        );
    }
    Ok(())
}

/// The engine of a node of the adapter of the tests.
fn engine_of_node(engines: &Value, node: u64) -> TestResult<Value> {
    let luid = fixture::device()?.adapter().luid().to_string();
    let found = list(engines)
        .iter()
        .find(|one| one["luid"] == luid && one["node"].as_u64() == Some(node));
    Ok(found.ok_or("no such engine")?.clone())
}

fn other_user_sees_no_queues() -> TestResult {
    for command in ["queues", "engines"] {
        let output = tool(&[command]).uid(1000).gid(1000).output()?;
        ensure_eq!(output.status.code(), Some(1));
        ensure!(output.stdout.is_empty(), "{command}");
    }
    Ok(())
}
