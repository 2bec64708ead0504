// SPDX-License-Identifier: MIT OR Apache-2.0
//! Making adapters: directories, attributes, who may, what clients see.

use std::io::ErrorKind;

use opendxg::raw::Argument;
use opendxg::uapi::*;
use opendxg::{AdapterFilter, AdapterType, Dxg, Luid, Status};
use rustix::io::Errno;
use selftests::call::succeeds;
use selftests::child::in_child;
use selftests::soft_adapter::{SoftAdapter, ROOT};
use selftests::user::{become_user, needs_root, USER};
use selftests::{ensure, ensure_eq, fails_with, fixture, module, Failure, Suite, TestResult};

/// What can be configured.
const CONFIGURATION: [&str; 20] = [
    "local_memory",
    "system_memory",
    "nodes",
    "compute_only",
    "wddm_version",
    "profile",
    "idle_updates",
    "use_64kb_pages",
    "native_fences",
    "native_interrupts",
    "monitored_values",
    "cpu_events",
    "features",
    "fence_addresses",
    "fence_stride",
    "intra_gpu_fences",
    "lazy_logs",
    "map_to_gpu_system_process",
    "fence_doorbells",
    "fence_memory",
];

/// `KMTQAITYPE_GETSEGMENTSIZE`: three 64-bit sizes.
const SEGMENT_SIZE: u32 = 3;

pub(crate) fn tests(suite: Suite) -> Suite {
    suite
        .test("GPU-1 what is configured is what clients see", configured)
        .test(
            "GPU-1 bad values are refused and change nothing",
            bad_values,
        )
        .test(
            "FEN-111 FEN-114 features that are configured away",
            features,
        )
        .test("FEN-114 what is refused of them", bad_features)
        .test("GPU-57 what a CMP with copies cannot do", shadow)
        .test("GPU-1 MEM-51 profiles and how much memory", profiles)
        .test(
            "GPU-1 the configuration is fixed while there is the adapter",
            fixed,
        )
        .test("ABI-6.1 an adapter is found while it is enabled", found)
        .test(
            "ABI-6.1 an adapter that only computes is listed where it is asked for",
            compute_only,
        )
        .test("ABI-6.10 the version of WDDM is as configured", version)
        .test("ABI-6.1 a LUID never comes back", luids)
        .test("ABI-6.1 no more adapters than the limit", limit)
        .test("RES-107 making adapters is for root", root_only)
        .test(
            "GPU-114 the module stays while there is a directory",
            pinned,
        )
}

/// Demands an error of the system.
#[track_caller]
fn errs<T: core::fmt::Debug>(result: std::io::Result<T>, errno: Errno) -> TestResult {
    let place = core::panic::Location::caller();
    match result {
        Err(error) if Errno::from_io_error(&error) == Some(errno) => Ok(()),
        other => Err(Failure::Failed(format!(
            "{place}: {errno} was due: {other:?}"
        ))),
    }
}

/// The LUIDs of an enumeration.
fn listed() -> TestResult<Vec<Luid>> {
    let adapters = Dxg::open()?.adapters()?;
    Ok(adapters.iter().map(|adapter| adapter.luid()).collect())
}

fn configured() -> TestResult {
    let soft = SoftAdapter::new("configured")?;
    ensure_eq!(soft.get("enabled")?, "0");
    ensure_eq!(soft.get("local_memory")?, "67108864");
    ensure_eq!(soft.get("system_memory")?, "0");
    ensure_eq!(soft.get("nodes")?, "4");
    ensure_eq!(soft.get("compute_only")?, "0");
    ensure_eq!(soft.get("wddm_version")?, "3200");
    ensure_eq!(soft.get("profile")?, "vram4");
    ensure_eq!(soft.get("idle_updates")?, "0");
    ensure_eq!(soft.get("use_64kb_pages")?, "0");
    ensure_eq!(soft.get("native_fences")?, "1");
    ensure_eq!(soft.get("native_interrupts")?, "exact");
    ensure_eq!(soft.get("monitored_values")?, "direct");
    ensure_eq!(soft.get("cpu_events")?, "local");
    ensure_eq!(soft.get("features")?, "");
    ensure_eq!(soft.get("fence_addresses")?, "0-0");
    ensure_eq!(soft.get("fence_stride")?, "64");
    ensure_eq!(soft.get("intra_gpu_fences")?, "1");
    ensure_eq!(soft.get("lazy_logs")?, "0");
    ensure_eq!(soft.get("map_to_gpu_system_process")?, "0");
    ensure_eq!(soft.get("fence_doorbells")?, "0");
    ensure_eq!(soft.get("fence_memory")?, "default");
    errs(soft.get("luid"), Errno::NODEV)?;
    for (local, system, nodes) in [(64 << 20, 1 << 30, 1u32), (0, 4096, 3)] {
        soft.set("local_memory", &format!("{local}\n"))?;
        soft.set("system_memory", &format!(" {system} "))?;
        soft.set("nodes", &nodes.to_string())?;
        soft.set("enabled", "1\n")?;
        ensure_eq!(soft.get("enabled")?, "1");
        let device = soft.device()?;
        let mut payload = [0xff; 24];
        device.adapter().query(SEGMENT_SIZE, &mut payload)?;
        let words: Vec<u64> = payload
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
            .collect();
        ensure_eq!(words, [local, 0, system]);
        for node in 0..4 {
            let context = device.create_context(node);
            let clock = device.adapter().clock_calibration(node);
            if node < nodes {
                context?;
                clock?;
            } else {
                fails_with(context, Status::INVALID_PARAMETER)?;
                fails_with(clock, Status::INVALID_PARAMETER)?;
            }
        }
        soft.disable()?;
        ensure_eq!(soft.get("enabled")?, "0");
    }
    // Saying it twice changes nothing.
    soft.disable()?;
    soft.set("enabled", "1")?;
    let luid = soft.get("luid")?;
    soft.set("enabled", "1")?;
    ensure_eq!(soft.get("luid")?, luid);
    Ok(())
}

fn bad_values() -> TestResult {
    let soft = SoftAdapter::new("bad")?;
    soft.set("local_memory", "8192")?;
    soft.set("system_memory", "12288")?;
    soft.set("nodes", "2")?;
    soft.set("compute_only", "1")?;
    soft.set("wddm_version", "2600")?;
    let state = || -> TestResult<Vec<String>> {
        let all = CONFIGURATION.iter().copied();
        all.chain(["enabled"])
            .map(|name| Ok(soft.get(name)?))
            .collect()
    };
    let before = state()?;
    let numbers = [
        "x",
        "-1",
        "-4096",
        "1",
        "4095",
        "4097",
        "0x1000",
        "4096 4096",
        "1e6",
        "64M",
        "\n",
        "\u{fc}",
        "281474976714752",
        "18446744073709547520",
        "18446744073709551616",
        "99999999999999999999999",
    ];
    for memory in ["local_memory", "system_memory"] {
        for value in numbers {
            errs(soft.set(memory, value), Errno::INVAL)
                .map_err(|_| Failure::Failed(format!("{memory}={value:?} was not refused")))?;
        }
    }
    for memory in ["local", "Default", "optimized,hidden", "1"] {
        errs(soft.set("fence_memory", memory), Errno::INVAL)?;
    }
    for value in ["0", "5", "-1", "4294967297", "two", "1.5"] {
        errs(soft.set("nodes", value), Errno::INVAL)?;
    }
    for flag in ["enabled", "compute_only", "idle_updates", "use_64kb_pages"] {
        for value in ["2", "-1", "maybe", "\n"] {
            errs(soft.set(flag, value), Errno::INVAL)?;
        }
    }
    for value in ["0", "1300", "1999", "2050", "3001", "3300", "4294970496"] {
        errs(soft.set("wddm_version", value), Errno::INVAL)?;
    }
    for profile in [" ", "vram", "vram4x", "VRAM4", "doc2 uma", "0", "\u{fc}"] {
        errs(soft.set("profile", profile), Errno::INVAL)?;
    }
    for way in [" ", "copy", "Direct", "direct shadow"] {
        errs(soft.set("monitored_values", way), Errno::INVAL)?;
    }
    for way in [" ", "far", "Border", "border secure"] {
        errs(soft.set("cpu_events", way), Errno::INVAL)?;
    }
    for way in ["border\n", "secure", "local"] {
        soft.set("cpu_events", way)?;
        ensure_eq!(soft.get("cpu_events")?, way.trim());
    }
    for stride in ["0", "4", "12", "96", "4095", "8192", "x", "-8"] {
        errs(soft.set("fence_stride", stride), Errno::INVAL)?;
    }
    for addresses in [
        "4096",
        "-",
        "4096-",
        "-4096",
        "8192-4096",
        "4096-4096",
        "1-4096",
        "4096-8193",
        "0x1000-0",
    ] {
        errs(soft.set("fence_addresses", addresses), Errno::INVAL)?;
    }
    // It has memory of its own.
    errs(soft.set("profile", "uma"), Errno::INVAL)?;
    errs(soft.set("luid", "00000000:0d9a0000"), Errno::ACCESS)?;
    ensure_eq!(state()?, before);
    // No other files, and no directories inside.
    errs(std::fs::create_dir(soft.path().join("inside")), Errno::PERM)?;
    errs(soft.set("name", "x"), Errno::ACCESS)
        .or_else(|_| errs(soft.set("name", "x"), Errno::NOENT))
}

/// What is configured away is not enabled, whatever the driver says, and neither is what needs it.
/// The driver hears of that, so that its adapter starts (FEN-112).
fn features() -> TestResult {
    let soft = SoftAdapter::new("features")?;
    let known = [
        DXGK_FEATURE_HWSCH,
        DXGK_FEATURE_KMD_SIGNAL_CPU_EVENT,
        DXGK_FEATURE_USER_MODE_SUBMISSION,
        DXGK_FEATURE_NATIVE_FENCE,
    ];
    for (line, enabled) in [
        ("37", [true, true, true, true]),
        ("37 enabled=1 min_version=1 max_version=7", [true; 4]),
        ("37 enabled=0", [true, true, false, false]),
        ("37 min_version=2 max_version=2", [true, true, false, false]),
        ("37 allow_experimental=0", [true; 4]),
        ("3 enabled=0", [true, false, true, true]),
        ("0 enabled=0", [false, true, false, false]),
    ] {
        soft.set("features", line)?;
        soft.set("enabled", "1")?;
        let device = soft.device()?;
        for (id, enabled) in known.into_iter().zip(enabled) {
            let answer = device.adapter().feature(id)?;
            ensure_eq!(
                (answer.enabled, answer.known),
                (enabled, true),
                "{line}: {id}"
            );
            ensure_eq!(answer.version, u16::from(enabled), "{line}: {id}");
            ensure!(answer.supported_by_driver && answer.supported_on_current_config);
        }
        let fence = device.create_native_fence(1);
        if enabled[3] {
            fence?;
        } else {
            fails_with(fence, Status::NOT_SUPPORTED)?;
            // FEN-115, FEN-125: progress fences of HW queues are monitored ones then.
            let context = device.create_hw_context(0)?;
            let queue = context.create_hw_queue()?;
            ensure_eq!(queue.progress().value(), 0);
        }
        soft.disable()?;
        // Only one line is left behind.
        soft.set("features", line.split(' ').next().unwrap_or_default())?;
        ensure_eq!(soft.get("features")?, "");
    }
    Ok(())
}

fn bad_features() -> TestResult {
    let soft = SoftAdapter::new("bad-features")?;
    soft.set("features", "37 min_version=1 max_version=2 enabled=0\n")?;
    soft.set("features", "3 allow_experimental=0")?;
    let both = "3 enabled=1 allow_experimental=0\n\
                37 enabled=0 min_version=1 max_version=2 allow_experimental=1";
    ensure_eq!(soft.get("features")?, both);
    for line in [
        "\n",
        "native",
        "37 enabled=2",
        "37 min_version=1",
        "37 max_version=1",
        "37 min_version=2 max_version=1",
        "37 min_version=0 max_version=1",
        "37 enabled=1 enabled=1",
        "37 version=1",
        "6 enabled=0",
        "47 enabled=0",
        "268435493 enabled=0",
        "37 enabled=1\n3 enabled=1",
    ] {
        errs(soft.set("features", line), Errno::INVAL)
            .map_err(|_| Failure::Failed(format!("{line:?} was not refused")))?;
        ensure_eq!(soft.get("features")?, both);
    }
    Ok(())
}

/// A CMP with copies interrupts without knowing for which queue.
fn shadow() -> TestResult {
    let soft = SoftAdapter::new("shadow")?;
    soft.set("monitored_values", "shadow")?;
    ensure_eq!(soft.get("monitored_values")?, "shadow");
    for mode in ["queue", "engine"] {
        errs(soft.set("native_interrupts", mode), Errno::INVAL)?;
    }
    soft.set("monitored_values", "direct")?;
    soft.set("native_interrupts", "queue")?;
    errs(soft.set("monitored_values", "shadow"), Errno::INVAL)
}

fn profiles() -> TestResult {
    let soft = SoftAdapter::new("profiles")?;
    soft.set("profile", " doc2\n")?;
    ensure_eq!(soft.get("profile")?, "doc2");
    soft.set("local_memory", &(4u64 << 30).to_string())?;
    errs(
        soft.set("local_memory", &((4u64 << 30) + 4096).to_string()),
        Errno::INVAL,
    )?;
    errs(soft.set("profile", "uma"), Errno::INVAL)?;
    ensure_eq!(soft.get("profile")?, "doc2");
    soft.set("local_memory", "0")?;
    soft.set("profile", "uma")?;
    errs(soft.set("local_memory", "4096"), Errno::INVAL)?;
    ensure_eq!(soft.get("local_memory")?, "0");
    soft.set("enabled", "1")?;
    ensure_eq!(soft.get("profile")?, "uma");
    Ok(())
}

fn fixed() -> TestResult {
    let soft = SoftAdapter::new("fixed")?;
    soft.set("features", "3 allow_experimental=0")?;
    soft.set("enabled", "1")?;
    for attribute in CONFIGURATION {
        let value = soft.get(attribute)?;
        errs(soft.set(attribute, &value), Errno::BUSY)?;
        // The others have names, and a number is none.
        if value.parse::<u64>().is_ok() {
            errs(soft.set(attribute, "1"), Errno::BUSY)?;
        }
        ensure_eq!(soft.get(attribute)?, value);
    }
    soft.disable()?;
    Ok(soft.set("nodes", "1")?)
}

fn found() -> TestResult {
    let before = listed()?;
    let soft = SoftAdapter::new("found")?;
    ensure_eq!(listed()?, before);
    soft.set("enabled", "1")?;
    let luid = soft.luid()?;
    let with: Vec<Luid> = before.iter().copied().chain([luid]).collect();
    ensure_eq!(listed()?, with);
    ensure_eq!(Dxg::open()?.adapter_count()?, with.len());
    for bits in 0..4 {
        let filter = AdapterFilter::from_bits_truncate(bits);
        ensure_eq!(Dxg::open()?.adapters_filtered(filter)?.len(), with.len());
    }
    let adapter = Dxg::open()?.open_adapter(luid)?;
    ensure!(adapter.adapter_type().is_ok());
    soft.disable()?;
    ensure_eq!(listed()?, before);
    fails_with(Dxg::open()?.open_adapter(luid), Status::INVALID_PARAMETER)?;
    // The directory is enough to end it.
    soft.set("enabled", "1")?;
    ensure_eq!(listed()?.len(), with.len());
    soft.remove()?;
    ensure_eq!(listed()?, before);
    Ok(())
}

/// The adapters that D3DKMTEnumAdapters2 lists, and how many it says there are.
fn graphics() -> TestResult<(Vec<Luid>, usize)> {
    let raw = fixture::raw()?;
    let mut entries = [D3DKMT_ADAPTERINFO::default(); 16];
    let mut arg = D3DKMT_ENUMADAPTERS2::zeroed();
    succeeds(&raw, &mut arg)?;
    let count = arg.NumAdapters as usize;
    (arg.NumAdapters, arg.pAdapters) = (16, entries.as_mut_ptr() as u64);
    succeeds(&raw, &mut arg)?;
    let listed = entries.iter().take(arg.NumAdapters as usize);
    let mut luids = Vec::new();
    for entry in listed {
        let mut close = D3DKMT_CLOSEADAPTER::zeroed();
        close.hAdapter = entry.hAdapter;
        succeeds(&raw, &mut close)?;
        luids.push(Luid::from(entry.AdapterLuid));
    }
    Ok((luids, count))
}

fn compute_only() -> TestResult {
    let dxg = Dxg::open()?;
    let before = listed()?;
    let soft = SoftAdapter::new("compute-only")?;
    for (only, kind, engine, name) in [
        ("1", AdapterType::COMPUTE_ONLY, 0, "Compute 0"),
        ("0", AdapterType::RENDER_SUPPORTED, 1, "3D"),
    ] {
        soft.set("compute_only", only)?;
        soft.set("enabled", "1")?;
        let luid = soft.luid()?;
        let with: Vec<Luid> = before.iter().copied().chain([luid]).collect();
        for bits in 0..4 {
            let filter = AdapterFilter::from_bits_truncate(bits);
            let found = dxg.adapters_filtered(filter)?;
            let found: Vec<Luid> = found.iter().map(|adapter| adapter.luid()).collect();
            let hidden = only == "1" && !filter.contains(AdapterFilter::INCLUDE_COMPUTE_ONLY);
            let expected = if hidden { &before } else { &with };
            ensure_eq!(&found, expected, "filter {bits}");
        }
        let expected = if only == "1" { &before } else { &with };
        ensure_eq!(graphics()?, (expected.clone(), expected.len()));
        // Its LUID finds it in any case.
        let adapter = dxg.open_adapter(luid)?;
        ensure_eq!(adapter.adapter_type()?, kind | AdapterType::SOFTWARE_DEVICE);
        let mut node = [0; 78];
        adapter.query(KMTQAITYPE_NODEMETADATA, &mut node)?;
        ensure_eq!(node[4], engine);
        let text: Vec<u8> = name.bytes().flat_map(|byte| [byte, 0]).chain([0]).collect();
        ensure_eq!(node[8..8 + text.len()], text);
        adapter.create_device()?.create_context(0)?;
        soft.disable()?;
    }
    Ok(())
}

fn version() -> TestResult {
    let soft = SoftAdapter::new("version")?;
    for version in [2000, 2700, 3200] {
        soft.set("wddm_version", &version.to_string())?;
        soft.set("enabled", "1")?;
        let adapter = soft.open()?;
        ensure_eq!(adapter.query_u32(KMTQAITYPE_DRIVERVERSION)?, version);
        ensure_eq!(adapter.query_u32(KMTQAITYPE_DRIVERVERSION_RENDER)?, version);
        soft.disable()?;
    }
    Ok(())
}

fn luids() -> TestResult {
    let mut seen = listed()?;
    for round in 0..20 {
        let (a, b) = (
            SoftAdapter::enabled(&format!("luid-{}", round % 2))?,
            SoftAdapter::enabled("other")?,
        );
        for soft in [&a, &b] {
            let luid = soft.luid()?;
            ensure!(!seen.contains(&luid), "{luid} came back");
            seen.push(luid);
        }
        b.disable()?;
        b.set("enabled", "1")?;
        let again = b.luid()?;
        ensure!(!seen.contains(&again), "{again} came back");
        seen.push(again);
    }
    Ok(())
}

fn limit() -> TestResult {
    let mut all = Vec::new();
    let start = Dxg::open()?.adapter_count()?;
    for number in start..16 {
        all.push(SoftAdapter::enabled(&format!("limit-{number}"))?);
    }
    ensure_eq!(Dxg::open()?.adapter_count()?, 16);
    let more = SoftAdapter::new("limit-more")?;
    let before = listed()?;
    errs(more.set("enabled", "1"), Errno::NOSPC)?;
    ensure_eq!(more.get("enabled")?, "0");
    ensure_eq!(listed()?, before);
    if let Some(last) = all.pop() {
        last.remove()?;
        more.set("enabled", "1")?;
    }
    Ok(())
}

fn root_only() -> TestResult {
    let soft = SoftAdapter::new("root")?;
    in_child(|| {
        become_user(USER)?;
        let refused = |result: std::io::Result<()>| match result {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
            other => Err(Failure::Failed(format!("a user may: {other:?}"))),
        };
        refused(std::fs::create_dir(format!("{ROOT}/users")))?;
        refused(std::fs::remove_dir(soft.path()))?;
        refused(soft.set("enabled", "1"))?;
        refused(soft.get("nodes").map(drop))
    })?;
    ensure_eq!(soft.get("enabled")?, "0");
    Ok(())
}

fn pinned() -> TestResult {
    needs_root()?;
    let soft = SoftAdapter::new("pinned")?;
    // Nothing of this process has the node open: the watches of the runner do, so that this only
    // shows the directory when they are gone. The use count tells.
    let uses = || -> TestResult<usize> {
        let text = std::fs::read_to_string("/sys/module/opendxg/refcnt")?;
        Ok(text.trim().parse().map_err(|_| "no count")?)
    };
    let with = uses()?;
    soft.remove()?;
    ensure!(uses()? < with, "the directory does not keep the module");
    ensure!(module::parameter("adapters").is_ok());
    Ok(())
}
