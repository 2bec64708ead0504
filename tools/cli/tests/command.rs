// SPDX-License-Identifier: MIT OR Apache-2.0
//! The whole command on a made-up /proc.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory that looks like /proc, removed when dropped.
struct Proc(PathBuf);

impl Proc {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("opendxg-cli-{}-{name}", std::process::id()));
        fs::create_dir_all(path.join("sys")).unwrap();
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

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_opendxg"));
        command
            .arg("--proc")
            .arg(&self.0)
            .args(args)
            .output()
            .unwrap()
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

impl Drop for Proc {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const DRAWER: &str = "dxg-process:\t1\ndxg-process-waiters:\t3\ndxg-total-objects:\t5\n\
    dxg-process-allocations:\t5\ndxg-process-bytes:\t81920\ndxg-process-resident:\t4096\n\
    dxg-process-files:\t6\ndxg-user:\t1000\ndxg-user-allocations:\t7 of 262144\n\
    dxg-user-names:\tnonsense\n\
    dxg-adapter:\t1 luid=00000000:0000a4c1 Software adapter\n\
    dxg-handle:\t0x40000040 adapter 1 refs=1 access=0x0 waiters=0 name=-\n\
    dxg-handle:\t0x40000080 device 2 refs=1 access=0x0 waiters=0 name=-\n\
    dxg-handle:\t0x400000c0 resource 7 refs=3 access=0xf0001 waiters=0 name=\\BaseNamedObjects\\picture\n\
    dxg-handle:\t0x40000100 allocation 7 refs=3 access=0xf0001 waiters=0 name=\\BaseNamedObjects\\picture\n\
    dxg-handle:\t0x40000140 keyed-mutex 8 refs=3 access=0x1f0003 waiters=2 name=-\n\
    dxg-info:\t7 98fb6f47-3e6a-46bd-bb3f-2e1890bb948c 1 48 2\n";
const READER: &str = "dxg-process:\t2\ndxg-total-objects:\t6\n\
    dxg-handle:\t0x40000040 keyed-mutex 8 refs=4 access=0x1 waiters=2 name=-\n";
const SHARE: &str =
    "dxg-type:\tDxgkSharedResource\ndxg-object:\t7\ndxg-kind:\tresource\ndxg-object:\t8\n\
    dxg-kind:\tkeyed-mutex\ndxg-owner:\t10\ndxg-object:\t9\ndxg-kind:\tmonitored-fence\ndxg-access:\t0xf0001\n\
    dxg-name:\t\\BaseNamedObjects\\picture\ndxg-references:\t3\n";

/// Two processes share a picture; a third has inherited the device of the first.
fn world(name: &str) -> Proc {
    let proc = Proc::new(name);
    proc.task(10, "drawer) S (x", 'T')
        .fd(10, 0, "/dev/null", "")
        .fd(10, 3, "/dev/dxg", DRAWER)
        .fd(10, 4, "/dev/dxg", DRAWER)
        .fd(10, 5, "anon_inode:[dxg]", SHARE)
        .fd(
            10,
            6,
            "/dmabuf:",
            "size:\t4096\ncount:\t2\nexp_name:\topendxg\n",
        )
        .fd(10, 7, "/home/dxg", "dxg-type:\tnot ours: never read\n");
    proc.task(11, "child", 'S').fd(11, 3, "/dev/dxg", DRAWER);
    proc.task(12, "reader", 'S').fd(12, 3, "/dev/dxg", READER);
    proc.task(13, "stranger", 'R')
        .fd(13, 3, "anon_inode:[eventfd]", "eventfd-count: 0\n");
    proc
}

#[test]
fn objects_are_put_together_from_all_descriptors() {
    let objects = world("objects").json(&["objects"]);
    let ids: Vec<_> = objects
        .as_array()
        .unwrap()
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
    assert_eq!(mutex["handles"].as_array().unwrap().len(), 2);
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
    let list = processes.as_array().unwrap();
    assert_eq!(list.len(), 3, "the stranger is not listed");
    assert_eq!(
        (&list[0]["command"], &list[0]["state"]),
        (&"drawer) S (x".into(), &"stopped".into())
    );
    assert_eq!(list[0]["devices"].as_array().unwrap().len(), 2);
    assert_eq!(list[0]["handles"].as_array().unwrap().len(), 5);
    assert_eq!(list[0]["dma_bufs"][0][1]["size"], 4096);
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
        &["1", "00000000:0000a4c1", "Software adapter"],
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
    assert!(!proc.text(&["handles", "--pid", "12"]).contains("drawer"));
}

#[test]
fn what_does_not_exist() {
    let proc = world("nothing");
    let output = proc.run(&["object", "4711"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "opendxg: no visible process has an object 4711\n"
    );
    assert_eq!(proc.run(&["nonsense"]).status.code(), Some(2));
    let mut command = Command::new(env!("CARGO_BIN_EXE_opendxg"));
    let missing = Path::new("/no/such/directory");
    assert_eq!(
        command
            .arg("--proc")
            .arg(missing)
            .output()
            .unwrap()
            .status
            .code(),
        Some(1)
    );
}

#[test]
fn an_empty_system() {
    let proc = Proc::new("empty");
    for command in [
        "adapters",
        "processes",
        "objects",
        "handles",
        "names",
        "info",
        "waiters",
    ] {
        assert_eq!(
            proc.text(&[command]).lines().count(),
            1,
            "{command}: only the head"
        );
        assert_eq!(proc.json(&[command]), serde_json::json!([]), "{command}");
    }
}
