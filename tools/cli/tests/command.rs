// SPDX-License-Identifier: MIT OR Apache-2.0
//! The whole command on a made-up /proc.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// A directory that looks like /proc, removed when dropped.
struct Proc(PathBuf);

impl Proc {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("opendxg-cli-{}-{name}", std::process::id()));
        fs::create_dir_all(path.join("sys")).unwrap();
        fs::create_dir_all(path.join("debug/opendxg")).unwrap();
        fs::write(path.join("debug/opendxg/totals"), "objects:\t6\n").unwrap();
        fs::create_dir_all(path.join("debug/opendxg/adapters")).unwrap();
        let counts = path.join("debug/opendxg/adapters/00000000:0000a4c1");
        fs::write(counts, "objects:\t5\nbytes:\t12288\n").unwrap();
        for directory in ["engines", "queues", "reports"] {
            fs::create_dir_all(path.join("debug/opendxg").join(directory)).unwrap();
        }
        Self(path)
    }

    fn task(&self, pid: u32, command: &str, state: char) -> &Self {
        let task = self.0.join(pid.to_string());
        fs::create_dir_all(task.join("fd")).unwrap();
        fs::create_dir_all(task.join("fdinfo")).unwrap();
        fs::write(
            task.join("stat"),
            format!("{pid} ({command}) {state} 1 1 0"),
        )
        .unwrap();
        self
    }

    fn fd(&self, pid: u32, fd: u32, target: &str, info: &str) -> &Self {
        let task = self.0.join(pid.to_string());
        symlink(target, task.join("fd").join(fd.to_string())).unwrap();
        let info = format!("pos:\t0\nflags:\t02000000\n{info}");
        fs::write(task.join("fdinfo").join(fd.to_string()), info).unwrap();
        self
    }

    /// What the module says of the GPU of an adapter.
    fn gpu(&self, engines: &str, queues: &str) -> &Self {
        let debug = self.0.join("debug/opendxg");
        fs::write(debug.join("engines/00000000:0000a4c1"), engines).unwrap();
        fs::write(debug.join("queues/00000000:0000a4c1"), queues).unwrap();
        self
    }

    /// What the module says of what went wrong there.
    fn reports(&self, reports: &str) -> &Self {
        let file = "debug/opendxg/reports/00000000:0000a4c1";
        fs::write(self.0.join(file), reports).unwrap();
        self
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = opendxg();
        command.env("OPENDXG_DEVICE", NODE);
        command.arg("--proc").arg(&self.0);
        if !args.contains(&"--debugfs") {
            command.arg("--debugfs").arg(self.0.join("debug"));
        }
        command.args(args);
        command
    }

    /// A descriptor of somebody else, whose fdinfo never comes to an end.
    fn stuck(&self, pid: u32, fd: u32, target: &str) -> &Self {
        let task = self.0.join(pid.to_string());
        symlink(target, task.join("fd").join(fd.to_string())).unwrap();
        let fifo = task.join("fdinfo").join(fd.to_string());
        assert!(Command::new("mkfifo").arg(fifo).status().unwrap().success());
        self
    }

    fn text(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, args: &[&str]) -> serde_json::Value {
        let args: Vec<_> = args.iter().copied().chain(["--json"]).collect();
        serde_json::from_str(&self.text(&args)).unwrap()
    }
}

fn opendxg() -> Command {
    Command::new(env!("CARGO_BIN_EXE_opendxg"))
}

/// The output of a command that comes to an end, or a failure after a time that no machine needs
/// for it.
fn output_of(command: &mut Command) -> Output {
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id().to_string();
    let (done, watch) = mpsc::channel::<()>();
    let killer = thread::spawn(move || {
        let stuck = watch.recv_timeout(Duration::from_secs(120)) == Err(RecvTimeoutError::Timeout);
        if stuck {
            let _ = Command::new("kill").args(["-9", &pid]).status();
        }
        stuck
    });
    let output = child.wait_with_output().unwrap();
    drop(done);
    assert!(!killer.join().unwrap(), "still running after two minutes");
    output
}

impl Drop for Proc {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A device that every machine has stands for the driver's.
const NODE: &str = "/dev/zero";

const DRAWER: &str = "dxg-process:\t1\ndxg-process-waiters:\t3\n\
    dxg-process-allocations:\t5\ndxg-process-bytes:\t81920\ndxg-process-resident:\t4096\n\
    dxg-process-files:\t6\ndxg-user:\t1000\ndxg-user-allocations:\t7 of 262144\n\
    dxg-user-names:\tnonsense\n\
    dxg-adapter:\t1 luid=00000000:0000a4c1 state=running Software adapter\n\
    dxg-handle:\t0x40000040 adapter 1 refs=1 access=0x0 waiters=0 name=-\n\
    dxg-handle:\t0x40000080 device 2 refs=1 access=0x0 waiters=0 name=-\n\
    dxg-handle:\t0x400000c0 resource 7 refs=3 access=0xf0001 waiters=0 name=\\BaseNamedObjects\\picture\n\
    dxg-handle:\t0x40000100 allocation 7 refs=3 access=0xf0001 waiters=0 name=\\BaseNamedObjects\\picture\n\
    dxg-handle:\t0x40000140 keyed-mutex 8 refs=3 access=0x1f0003 waiters=2 name=-\n\
    dxg-info:\t7 98fb6f47-3e6a-46bd-bb3f-2e1890bb948c 1 48 2\n\
    dxg-wait:\t8 value=1 pid=12 ago=3000 id=2 receiver=thread mode=all thread=12\n";
const READER: &str = "dxg-process:\t2\n\
    dxg-handle:\t0x40000040 keyed-mutex 8 refs=4 access=0x1 waiters=2 name=-\n\
    dxg-adapter:\t5 luid=00000000:0000a4c5 state=removed Old adapter\n\
    dxg-handle:\t0x40000080 adapter 5\n";
const SHARE: &str =
    "dxg-type:\tDxgkSharedResource\ndxg-object:\t7\ndxg-kind:\tresource\ndxg-object:\t8\n\
    dxg-kind:\tkeyed-mutex\ndxg-owner:\t10\ndxg-object:\t9\ndxg-kind:\tmonitored-fence\ndxg-access:\t0xf0001\n\
    dxg-name:\t\\BaseNamedObjects\\picture\ndxg-references:\t3\n";

const ENGINES: &str = "engine:\t0 kind=3d state=running running=17 busy_ns=5000000 \
    submissions=42 switches=7 ready=1 blocked=0\n\
    engine:\t2 kind=copy state=idle busy_ns=0 submissions=0 switches=0 ready=0 blocked=0 \
    fault_queue=19 fault_pid=15 fault=page address=0x10f000 write=1 packet=0x20000 submission=2\n";
/// How their adapter has recovered.
const RECOVERY: &str = "recovery:\ttdr_delay_ms=2000 engine_resets=3 adapter_resets=1\n";
const REPORTS: &str = "report:\t3 kind=queue-hang done=engine-reset time_ns=9000001000 \
    ago_ns=1500000000 node=0 queue=17 pid=10 packet=0x10000 stale=0\n\
    dwords:\tc0023f00 00010000 00000000 00100004 12345678 00000000\n\
    queue:\t17 pid=10 kind=packets node=0 priority=0 state=running queued=3 in_flight=1 \
    submissions=40 busy_ns=4000000\n\
    queue:\t18 pid=12 kind=hw node=0 priority=0 state=blocked queued=2 in_flight=0 \
    submissions=2 busy_ns=1000000 on=fence:23 value=5\n\
    queues-more:\t7\n\
    report:\t4 kind=fault done=none time_ns=9 ago_ns=1 node=2 queue=19 pid=0 fault=page \
    address=0x700000000 write=1 packet=0x20000 submission=2\n\
    walk:\tdone\n\
    level:\t3 index=0 entry=table segment=0 address=0x9000 kib=4 write=1\n\
    level:\t2 index=28 entry=invalid\n\
    report:\t5 kind=requested done=adapter-stopped time_ns=10 ago_ns=0\n";
const QUEUES: &str = "queue:\t17 pid=10 kind=packets node=0 priority=0 state=running queued=3 \
    in_flight=1 submissions=40 busy_ns=4000000\n\
    queue:\t18 pid=12 kind=hw node=0 priority=-7 state=blocked queued=2 in_flight=0 \
    submissions=2 busy_ns=1000000 on=fence:23 value=5\n\
    queue:\t19 pid=0 kind=hw node=2 state=faulted queued=0 in_flight=0 submissions=1 busy_ns=0 \
    fault=page address=0x10f000 write=1 packet=0x20000 submission=2\n\
    queues-more:\t3\n";

/// Two processes share a picture; a third has inherited the device of the first.
fn world(name: &str) -> Proc {
    let proc = Proc::new(name);
    proc.task(10, "drawer) S (x", 'T')
        .fd(10, 0, "/dev/null", "")
        .fd(10, 3, NODE, DRAWER)
        .fd(10, 4, NODE, DRAWER)
        .fd(10, 5, "anon_inode:[DxgkSharedResource]", SHARE)
        .fd(
            10,
            6,
            "/dmabuf:",
            "size:\t4096\ncount:\t2\nexp_name:\topendxg\n",
        )
        .fd(10, 7, "/home/dxg", "dxg-type:\tnot ours: never read\n");
    proc.task(11, "child", 'S').fd(11, 3, NODE, DRAWER);
    proc.task(12, "reader", 'S').fd(12, 3, NODE, READER);
    proc.task(13, "stranger", 'R')
        .fd(13, 3, "anon_inode:[eventfd]", "eventfd-count: 0\n");
    proc
}

#[test]
fn objects_are_put_together_from_all_descriptors() {
    let document = world("objects").json(&["objects"]);
    let objects = document["objects"].as_array().unwrap();
    let ids: Vec<_> = objects
        .iter()
        .map(|object| object["id"].as_u64().unwrap())
        .collect();
    assert_eq!(
        ids,
        [7, 8, 9],
        "adapters and devices are not shareable objects"
    );
    let (picture, mutex, fence) = (&objects[0], &objects[1], &objects[2]);
    assert_eq!(
        picture["handles"].as_array().unwrap().len(),
        2,
        "resource and allocation, listed once"
    );
    assert_eq!(picture["info"][0]["size"], 48);
    assert_eq!(picture["references"], 3);
    assert_eq!(
        (&mutex["references"], &mutex["waiters"]),
        (&4.into(), &2.into())
    );
    let holders = mutex["handles"].as_array().unwrap();
    let holders: Vec<_> = holders
        .iter()
        .map(|held| (held["pid"].as_u64(), held["handle"].as_u64()))
        .collect();
    assert_eq!(
        holders,
        [(Some(10), Some(0x4000_0140)), (Some(12), Some(0x4000_0040))]
    );
    assert_eq!(
        mutex["files"],
        serde_json::json!([{ "pid": 10, "fd": 5, "type": "DxgkSharedResource", "access": 0xf0001 }])
    );
    assert_eq!(fence["kinds"][0], "monitored-fence");
    assert_eq!(
        fence["references"],
        serde_json::Value::Null,
        "nobody has said"
    );
}

#[test]
fn an_inherited_device_shows_nothing_twice() {
    let processes = world("inherited").json(&["processes"]);
    let list = processes["processes"].as_array().unwrap();
    assert_eq!(list.len(), 3, "the stranger is not listed");
    assert_eq!(
        (&list[0]["command"], &list[0]["state"]),
        (&"drawer) S (x".into(), &"stopped".into())
    );
    assert_eq!(list[0]["devices"].as_array().unwrap().len(), 2);
    assert_eq!(list[0]["handles"].as_array().unwrap().len(), 5);
    assert_eq!(
        list[0]["dma_bufs"],
        serde_json::json!([{ "fd": 6, "size": 4096, "references": 2 }])
    );
    assert_eq!(
        (&list[0]["bytes"], &list[0]["held_files"]),
        (&81920.into(), &6.into())
    );
    assert_eq!(list[1]["bytes"], 0, "what was inherited counts once");
    assert_eq!(list[1]["inherited_from"], 10);
    assert_eq!(list[1]["handles"].as_array().unwrap().len(), 0);
}

#[test]
fn tables() {
    let proc = world("tables");
    let has = |args: &[&str], words: &[&str]| {
        let text = proc.text(args);
        let found = text.lines().any(|line| {
            words
                .iter()
                .all(|word| line.split("  ").any(|cell| cell.trim() == *word))
        });
        assert!(found, "{args:?}: {words:?} in\n{text}");
    };
    has(
        &["adapters"],
        &[
            "1",
            "00000000:0000a4c1",
            "running",
            "5",
            "12288",
            "Software adapter",
        ],
    );
    // The reader has a handle of one that is gone.
    has(
        &["adapters"],
        &["5", "00000000:0000a4c5", "removed", "?", "1", "Old adapter"],
    );
    has(
        &["objects"],
        &["7", "resource", "\\BaseNamedObjects\\picture"],
    );
    has(
        &["names"],
        &["\\BaseNamedObjects\\picture", "8", "keyed-mutex", "10, 12"],
    );
    has(
        &["processes"],
        &["10", "stopped", "5", "81920", "4096", "6", "open"],
    );
    has(&["processes"], &["1000", "allocations", "7", "262144"]);
    has(&["info"], &["7", "48", "direct3d"]);
    has(&["info", "7"], &["7", "48", "direct3d"]);
    has(
        &["waiters"],
        &[
            "8",
            "2",
            "thread 10",
            "10 drawer) S (x (stopped), 12 reader (sleeping)",
        ],
    );
    has(
        &["handles", "--pid", "12"],
        &["0x40000040", "keyed-mutex", "8", "0x1"],
    );
    has(&["object", "8"], &["fd 5", "DxgkSharedResource", "0xf0001"]);
    has(&[], &["objects, all processes", "6"]);
    let hidden = proc.0.join("no debugfs");
    let hidden = proc.text(&["--debugfs", hidden.to_str().unwrap()]);
    assert!(
        hidden.contains("no debugfs: No such file or directory"),
        "{hidden}"
    );
    assert!(!hidden.contains("objects, all processes"), "{hidden}");
    assert!(!proc.text(&["handles", "--pid", "12"]).contains("drawer"));
}

/// Cells of a line that begins with this one.
fn cells<'a>(text: &'a str, first: &str) -> Vec<&'a str> {
    let lines = text.lines().map(|line| line.split("  "));
    let lines = lines.map(|cells| cells.map(str::trim).filter(|cell| !cell.is_empty()));
    let mut lines = lines.map(Iterator::collect);
    lines
        .find(|cells: &Vec<&str>| cells.first() == Some(&first))
        .unwrap_or_else(|| panic!("{first} in\n{text}"))
}

#[test]
fn engines_and_queues() {
    let proc = world("engines");
    proc.gpu(ENGINES, QUEUES);
    let engines = proc.text(&["engines"]);
    let line = engines.lines().nth(1).unwrap();
    for word in ["3d", "running", "17", "10", "drawer) S (x", "42", "7", "5"] {
        assert!(line.contains(word), "{word} in\n{engines}");
    }
    let fault = "queue 19 of 15: write to 0x10f000, packet at 0x20000, submission 2";
    let line = engines.lines().nth(2).unwrap();
    assert!(line.ends_with(fault), "{engines}");

    let queues = proc.text(&["queues"]);
    let blocked = cells(&queues, "18");
    assert_eq!(blocked[3..6], ["12", "reader", "hw"], "{queues}");
    assert_eq!(blocked[6..8], ["-7", "blocked"], "{queues}");
    assert_eq!(blocked.last(), Some(&"fence 23 to reach 5"), "{queues}");
    assert_eq!(cells(&queues, "17").last(), Some(&"-"), "{queues}");
    let left = "(3 more queues are not included: the module shows the first 16384 of an adapter)";
    assert_eq!(queues.lines().last(), Some(left));
    let some = proc.text(&["queues", "--pid", "12"]);
    assert!(some.contains("18") && !some.contains("drawer"), "{some}");

    let document = proc.json(&["queues"]);
    assert_eq!(document["hidden_queues"], 3);
    let list = document["queues"].as_array().unwrap();
    assert_eq!(list.len(), 3);
    assert_eq!(list[0]["luid"], "00000000:0000a4c1");
    assert_eq!((&list[1]["id"], &list[1]["pid"]), (&18.into(), &12.into()));
    assert_eq!(
        (&list[0]["priority"], &list[1]["priority"]),
        (&0.into(), &(-7).into())
    );
    // A module that does not say it.
    assert!(list[2]["priority"].is_null(), "{document}");
    assert_eq!(list[1]["blocked_on"]["object"], 23);
    assert_eq!(list[1]["blocked_on"]["value"], 5);
    assert!(list[1]["fault"].is_null() && list[2]["pid"].is_null());
    assert_eq!(list[2]["fault"]["address"], 0x10_f000);
    let engine = &proc.json(&["engines"])["engines"][0];
    assert_eq!(
        (&engine["running"], &engine["running_pid"]),
        (&17.into(), &10.into())
    );
    let hidden = proc.run(&["queues", "--debugfs", "/no/such/directory"]);
    assert_eq!(hidden.status.code(), Some(1));
}

#[test]
fn how_adapters_have_recovered() {
    let proc = world("recovery");
    proc.gpu(&format!("{RECOVERY}{ENGINES}"), QUEUES);
    let text = proc.text(&["engines"]);
    let line = cells(text.split_once("\n\n").unwrap().1, "00000000:0000a4c1");
    assert_eq!(line[1..], ["2000", "3", "1"], "{text}");
    let document = proc.json(&["engines"]);
    assert_eq!(document["engines"].as_array().unwrap().len(), 2);
    let recovery = &document["recovery"][0];
    assert_eq!(recovery["luid"], "00000000:0000a4c1");
    assert_eq!(recovery["tdr_delay_ms"], 2000);
    assert_eq!(
        (&recovery["engine_resets"], &recovery["adapter_resets"]),
        (&3.into(), &1.into())
    );
}

#[test]
fn the_ring_of_a_queue() {
    let proc = world("ring");
    let queue = "queue:\t20 pid=12 kind=hw node=0 state=running doorbell=connected progress=5 \
        last_queued=7\n";
    proc.gpu(ENGINES, queue);
    let text = proc.text(&["queues"]);
    assert!(text.contains("connected  5/7"), "{text}");
    let queue = &proc.json(&["queues"])["queues"][0];
    assert_eq!(
        (&queue["progress"], &queue["last_queued"]),
        (&5.into(), &7.into())
    );
}

#[test]
fn reports() {
    let proc = world("reports");
    assert_eq!(proc.text(&["report"]), "nothing went wrong\n");
    proc.reports(REPORTS);
    let text = proc.text(&["report"]);
    for line in [
        "Report 3 of adapter 00000000:0000a4c1: the work of a queue took too long",
        "  when    1.500000 s ago, at 9.000001 s",
        "  engine  node 0",
        "  done    the engine was reset",
        "  queue   17 of process 10, drawer) S (x",
        "  packet  0x10000",
        "    0x000000010000  INDIRECT_BUFFER c0023f00 00010000 00000000 00100004",
        "    0x000000010010  not a packet    12345678",
        "    (7 more queues had work)",
        "Report 4 of adapter 00000000:0000a4c1: a queue has faulted",
        "  done    nothing",
        "  queue   19 of a process that was gone",
        "  fault   write to 0x700000000, packet at 0x20000, submission 2",
        "    level 3, entry 0: table at 0x9000 of system memory",
        "    level 2, entry 28: invalid",
        "Report 5 of adapter 00000000:0000a4c1: a reset was requested",
        "  done    the adapter was stopped",
    ] {
        assert!(text.lines().any(|own| own == line), "{line} in\n{text}");
    }
    assert!(cells(&text, "17").contains(&"running"), "{text}");
    assert_eq!(
        cells(&text, "18").last(),
        Some(&"fence 23 to reach 5"),
        "{text}"
    );

    let document = proc.json(&["report", "0:a4c1"]);
    let [hang, fault, requested] = &document["reports"].as_array().unwrap()[..] else {
        panic!("{document}");
    };
    assert_eq!(
        (&hang["luid"], &hang["number"]),
        (&"00000000:0000a4c1".into(), &3.into())
    );
    assert_eq!(
        (&hang["kind"], &hang["done"]),
        (&"queue-hang".into(), &"engine-reset".into())
    );
    assert_eq!(hang["commands"][0]["name"], "INDIRECT_BUFFER");
    assert_eq!(hang["commands"][0]["words"][3], 0x10_0004);
    assert!(
        hang["commands"][1]["name"].is_null() && hang["walk"].is_null(),
        "{hang}"
    );
    assert_eq!(hang["queues"][1]["blocked_on"]["object"], 23);
    assert_eq!(hang["hidden_queues"], 7);
    assert_eq!(fault["fault"]["address"], 0x7_0000_0000_u64);
    assert_eq!(fault["walk"][0]["address"], 0x9000);
    assert_eq!(fault["walk"][1]["entry"], "invalid");
    assert!(requested["node"].is_null() && requested["queue"].is_null());
}

#[test]
fn reports_that_cannot_be_read() {
    let proc = world("no-reports");
    let fails = |args: &[&str], status: i32, message: &str| {
        let output = proc.run(args);
        assert_eq!(output.status.code(), Some(status), "{args:?}");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(message), "{args:?}: {error}");
        assert!(output.stdout.is_empty(), "{args:?}");
    };
    fails(
        &["report", "0:1"],
        1,
        "opendxg: no adapter 00000000:00000001\n",
    );
    fails(&["report", "--debugfs", "/no/such"], 1, "are you root?");
    fails(&["report", "a4c1"], 2, "not HIGH:LOW in hexadecimal digits");
    fails(&["stop", "0:1"], 2, "--node <NODE>");
    fails(&["reset"], 2, "<LUID>");
    // The node is another device.
    for command in [&["reset", "0:1"][..], &["stop", "0:1", "--node", "0"]] {
        fails(command, 3, "is the module opendxg loaded?");
    }
}

#[test]
fn top() {
    let proc = world("top");
    proc.gpu(ENGINES, QUEUES);
    // Nothing has happened in between.
    let text = proc.text(&["top", "--once", "--delay", "0.01"]);
    let engine = cells(&text, "00000000:0000a4c1");
    assert_eq!(engine[1..6], ["0", "3d", "all", "-", "0.0%"], "{text}");
    assert_eq!(cells(&text, "12")[1..4], ["reader", "0.0%", "0"], "{text}");
    let text = proc.text(&["top", "--count", "2", "--delay", "0.01"]);
    assert_eq!(text.matches("ADAPTER").count(), 2, "{text}");

    let mut child = proc.command(&["top", "--once", "--delay", "2", "--json"]);
    let child = child.stdout(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_millis(1000));
    let rise = |text: &str, from: &str, to: &str| {
        assert!(text.contains(from));
        text.replace(from, to)
    };
    let engines = rise(ENGINES, "busy_ns=5000000", "busy_ns=1005000000");
    let queues = rise(QUEUES, "busy_ns=1000000", "busy_ns=501000000");
    proc.gpu(&engines, &rise(&queues, "submissions=2 ", "submissions=9 "));
    let output = child.wait_with_output().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let load = &document["load"][0];
    // The machine may be slow: more than two seconds have gone, never less.
    let busy = load["busy"].as_f64().unwrap();
    assert!(busy > 0.0 && busy <= 50.0, "{load}");
    let first = &load["processes"][0];
    assert_eq!(
        (&first["pid"], &first["submissions"]),
        (&12.into(), &7.into())
    );
    assert_eq!(first["blocked"], 1);
    let share = first["busy"].as_f64().unwrap();
    assert!((share - busy / 2.0).abs() <= 0.1, "{load}");
    assert_eq!(load["processes"][1]["busy"], 0.0);

    for args in [&["--count", "0"][..], &["--delay", "x"], &["--delay", "0"]] {
        let args: Vec<_> = ["top"].iter().chain(args).copied().collect();
        assert_eq!(proc.run(&args).status.code(), Some(2), "{args:?}");
    }
    // Without an end, until nobody reads.
    let mut child = proc.command(&["top", "--delay", "0.01"]);
    let mut child = child.stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn what_does_not_exist() {
    let proc = world("nothing");
    let fails = |args: &[&str], status: i32, message: &str| {
        let output = proc.run(args);
        assert_eq!(output.status.code(), Some(status), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), message, "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
    };
    let nobody =
        "opendxg: process 99999 does not exist, is hidden, or has nothing of the module open\n";
    let no_object = "opendxg: no visible process has an object 4711\n";
    fails(&["object", "4711"], 1, no_object);
    fails(&["info", "4711"], 1, no_object);
    fails(&["handles", "--pid", "99999"], 1, nobody);
    fails(
        &["handles", "--pid", "13"],
        1,
        &nobody.replace("99999", "13"),
    );
    assert_eq!(proc.run(&["nonsense"]).status.code(), Some(2));
    let missing = opendxg()
        .args(["--proc", "/no/such/directory"])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(1));
}

#[test]
fn no_driver() {
    for node in ["/no/such/node", "/dev/null", "/etc/passwd"] {
        let output = opendxg().env("OPENDXG_DEVICE", node).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{node}: {errors}");
        assert!(
            errors.starts_with(&format!("opendxg: {node}: ")),
            "{errors}"
        );
        assert!(errors.contains("is the module opendxg loaded?"), "{errors}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn output_that_cannot_be_written() {
    let proc = world("full");
    let full = fs::OpenOptions::new().write(true).open("/dev/full");
    let output = proc.command(&["objects"]).stdout(full.unwrap()).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.starts_with("opendxg: standard output: "), "{errors}");

    // The reader has seen enough: not an error.
    let mut child = proc.command(&["objects"]);
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.stdin(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), vec![]));
}

#[test]
fn other_drivers_are_not_asked() {
    let proc = world("stuck");
    proc.stuck(12, 8, "/dev/null")
        .stuck(12, 9, "/dev/shm")
        .stuck(12, 10, "anon_inode:[kvm-vcpu:0]")
        .stuck(12, 11, "anon_inode:[DxgkWatch] of another driver")
        .stuck(13, 12, "socket:[4711]");
    let output = output_of(&mut proc.command(&["processes", "--json"]));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["processes"].as_array().unwrap().len(), 3);
}

#[test]
fn no_name_drives_the_terminal() {
    let proc = Proc::new("hostile");
    let text = READER.replace("name=-", "name=\\a\u{9b}2J\u{202e}b\u{200b}");
    proc.task(14, "x\u{9b}\u{feff}y", 'S')
        .fd(14, 3, NODE, &text);
    for args in [&["handles"][..], &["handles", "--json"]] {
        assert!(proc.text(args).is_ascii(), "{args:?}");
    }
    // Programs get the name as it is.
    let document = proc.json(&["handles"]);
    let process = &document["processes"][0];
    assert_eq!(process["command"], "x\u{9b}\u{feff}y");
    assert_eq!(
        process["handles"][0]["name"],
        "\\a\u{9b}2J\u{202e}b\u{200b}"
    );
}

#[test]
fn many_handles() {
    const COUNT: u32 = 400_000;
    let proc = Proc::new("many");
    let line = |n: u32| format!("dxg-handle:\t{:#x} device 3\n", 0x4000_0000 | (n << 6));
    let lines = (0..COUNT).map(line).collect::<Vec<_>>().concat();
    proc.task(15, "many", 'S')
        .fd(15, 3, NODE, &format!("dxg-process:\t7\n{lines}"));
    let output = output_of(&mut proc.command(&["processes"]));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(&COUNT.to_string()), "{text}");
}

/// Collects the names of all members.
fn members(value: &serde_json::Value, names: &mut std::collections::BTreeSet<String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (name, value) in map {
                names.insert(name.clone());
                // The names of counts are the driver's.
                if !["totals", "users", "counts"].contains(&name.as_str()) {
                    members(value, names);
                }
            }
        }
        serde_json::Value::Array(list) => list.iter().for_each(|value| members(value, names)),
        _ => (),
    }
}

#[test]
fn the_document_is_described() {
    let proc = world("schema");
    proc.gpu(&format!("{RECOVERY}{ENGINES}"), QUEUES)
        .reports(REPORTS);
    let mut names = std::collections::BTreeSet::new();
    for args in [
        &[][..],
        &["adapters"],
        &["processes"],
        &["objects"],
        &["object", "7"],
        &["handles"],
        &["names"],
        &["info"],
        &["waiters"],
        &["queues"],
        &["engines"],
        &["report"],
        &["top", "--once", "--delay", "0.01"],
    ] {
        let document = proc.json(args);
        assert_eq!(document["version"], 1, "{args:?}");
        assert_eq!(document["hidden_processes"], 0, "{args:?}");
        members(&document, &mut names);
    }
    assert!(names.len() > 30, "{names:?}");
    let user = &proc.json(&["processes"])["users"]["1000"];
    members(&user["allocations"], &mut names);
    assert!(names.contains("limit"), "{user}");
    let read = |path: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        fs::read_to_string(path).unwrap()
    };
    let (page, manual) = (read("../../Documentation/tool.md"), read("man/extra.roff"));
    let manual = manual.split_once(".SH JSON").expect("a section").1;
    for name in &names {
        assert!(page.contains(&format!("`{name}`")), "tool.md: {name}");
        assert!(manual.contains(&format!(".I {name}")), "manual: {name}");
    }
}

#[test]
fn an_empty_system() {
    let proc = Proc::new("empty");
    for (command, member) in [
        ("adapters", "adapters"),
        ("processes", "processes"),
        ("objects", "objects"),
        ("handles", "processes"),
        ("names", "objects"),
        ("info", "info"),
        ("waiters", "objects"),
        ("queues", "queues"),
        ("engines", "engines"),
        ("report", "reports"),
    ] {
        assert_eq!(
            proc.text(&[command]).lines().count(),
            1,
            "{command}: only the head"
        );
        let empty = serde_json::json!({
            "version": 1,
            "hidden_processes": 0,
            "hidden_handles": 0,
            "hidden_info": 0,
            "hidden_waits": 0,
            "hidden_queues": 0,
            member: [],
        });
        let mut document = proc.json(&[command]);
        if command == "processes" {
            let users = document.as_object_mut().unwrap().remove("users");
            assert_eq!(users, Some(serde_json::json!({})));
        }
        if command == "waiters" {
            let waits = document.as_object_mut().unwrap().remove("waits");
            assert_eq!(waits, Some(serde_json::json!([])));
        }
        if command == "engines" {
            let recovery = document.as_object_mut().unwrap().remove("recovery");
            assert_eq!(recovery, Some(serde_json::json!([])));
        }
        assert_eq!(document, empty, "{command}");
    }
}

/// A process waits for a fence that another one has signalled last.
const FENCE: &str = "dxg-process:\t1\n\
    dxg-handle:\t0x40000040 monitored-fence 7 refs=2 access=0x3 waiters=1 value=4 by=31 \
    ago=5000000000\n\
    dxg-wait:\t7 value=5 pid=30 ago=3000000000 id=2 receiver=thread mode=all thread=33\n";

#[test]
fn the_culprit_of_a_wait() {
    let proc = Proc::new("culprit");
    proc.task(30, "waiter", 'S').fd(30, 3, NODE, FENCE);
    let other = FENCE.replace("dxg-process:\t1", "dxg-process:\t2");
    let wait = || proc.json(&["waiters"])["waits"][0].take();
    let found = |wait: &serde_json::Value| {
        (
            wait["verdict"].as_str().unwrap().to_owned(),
            wait["culprits"].to_string(),
        )
    };

    // The last signaller is gone.
    assert_eq!(found(&wait()), ("last-writer-gone".into(), "[31]".into()));
    let text = proc.text(&["waiters"]);
    assert!(
        text.contains("30 waiter (sleeping) waits in thread 33 for 3.000 s\n"),
        "{text}"
    );
    assert!(
        text.contains("to reach 5; it is 4, by 31 (gone), 5.000 s ago;"),
        "{text}"
    );
    assert!(
        text.contains("culprit  31 (gone): nobody else can"),
        "{text}"
    );

    // Another process has its number: it began 2 s ago.
    proc.task(31, "young", 'S');
    fs::write(proc.0.join("uptime"), "102.00 0.00\n").unwrap();
    let begun = |pid: u32, at: u32| {
        let fields = "0 ".repeat(17);
        let stat = format!("{pid} (signaller) T 1 {fields}{at} 0\n");
        fs::write(proc.0.join(format!("{pid}/stat")), stat).unwrap();
    };
    begun(31, 10_000);
    assert_eq!(found(&wait()).0, "last-writer-gone");
    // It is the one, and stopped.
    begun(31, 1_000);
    proc.fd(31, 3, NODE, &other);
    assert_eq!(found(&wait()), ("stopped".into(), "[31]".into()));
    let wait = wait();
    assert_eq!(
        (
            &wait["elements"][0]["wanted"],
            &wait["elements"][0]["value"]
        ),
        (&5.into(), &4.into())
    );
    let twice = proc.text(&["waiters", "--watch", "--count", "2", "--delay", "0.01"]);
    assert_eq!(
        twice
            .matches("culprit  31 signaller (stopped): stopped")
            .count(),
        2,
        "{twice}"
    );
}

/// Runs `opendxg trace`, whose command would make a file; returns status and errors.
fn trace(root: &Path, output: &Path) -> (Option<i32>, String) {
    let has_run = root.join("has-run");
    let output = opendxg()
        .arg("trace")
        .arg("--tracing")
        .arg(root)
        .arg("-o")
        .arg(output)
        .args(["--", "touch"])
        .arg(&has_run)
        .output()
        .unwrap();
    assert!(!has_run.exists(), "the command ran without a trace");
    let error = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), error)
}

#[test]
fn no_trace() {
    let root = std::env::temp_dir().join(format!("opendxg-trace-{}", std::process::id()));
    fs::create_dir(&root).unwrap();
    let file = root.join("file");
    let (status, error) = trace(&root, &file);
    assert_eq!(status, Some(1));
    assert!(error.contains("is tracefs mounted there?"), "{error}");

    fs::create_dir(root.join("instances")).unwrap();
    let (status, error) = trace(&root, &file);
    assert_eq!(status, Some(3));
    assert!(error.contains("is the module opendxg loaded?"), "{error}");

    // No directory of tracefs: it has no trace_pipe.
    fs::create_dir_all(root.join("events/dxg")).unwrap();
    let (status, error) = trace(&root, &file);
    assert_eq!(status, Some(1));
    assert!(error.contains("trace_pipe: No such file"), "{error}");

    let (status, error) = trace(&root, Path::new("/does/not/exist"));
    assert_eq!(status, Some(1));
    assert!(error.contains("/does/not/exist: No such file"), "{error}");
    fs::remove_dir_all(&root).unwrap();
}

#[test]
fn a_trace_needs_a_command_and_a_file() {
    for args in [
        &["trace"][..],
        &["trace", "-o", "/dev/null"],
        &["trace", "--", "true"],
        &["trace", "-o", "/dev/null", "--buffer", "3", "--", "true"],
    ] {
        assert_eq!(
            opendxg().args(args).output().unwrap().status.code(),
            Some(2),
            "{args:?}"
        );
    }
}
