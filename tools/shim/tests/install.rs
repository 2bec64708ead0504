// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `tools/install` installs is enough to build and run the C program of the documentation; it
//! copies, and nothing of others is lost.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PREFIX: &str = "/opt/dxg";

fn source(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs a command and returns its output; a command that cannot be started fails the test.
fn output(command: &mut Command) -> Output {
    command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

#[track_caller]
fn run(command: &mut Command) -> String {
    let output = output(command);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// An empty directory.
fn scratch(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// What `make build` would have built: the library of these tests, and any program.
fn built(name: &str) -> PathBuf {
    let from = scratch(&format!("{name}-built"));
    let tests = std::env::current_exe().unwrap();
    fs::copy(
        tests.with_file_name("libd3dkmt.so"),
        from.join("libd3dkmt.so.1"),
    )
    .unwrap();
    fs::copy("/bin/true", from.join("opendxg")).unwrap();
    from
}

/// The command that installs below `destination`.
fn installer(name: &str, destination: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(source("../install"));
    command.arg("--from").arg(built(name)).args(arguments);
    command.arg("--destdir").arg(destination);
    command
}

fn install(name: &str) -> PathBuf {
    let destination = scratch(name);
    run(&mut installer(name, &destination, &["--prefix", PREFIX]));
    destination.join(PREFIX.trim_start_matches('/'))
}

/// Every file below a directory: a link with its target, a file with its size and mode.
fn files(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut left = vec![root.to_path_buf()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let about = fs::symlink_metadata(&path).unwrap();
            let what = match fs::read_link(&path) {
                Ok(target) => format!("-> {}", target.display()),
                Err(_) if about.is_dir() => {
                    left.push(path);
                    continue;
                }
                Err(_) => format!("{} {:o}", about.len(), about.permissions().mode()),
            };
            found.insert(path.strip_prefix(root).unwrap().into(), what);
        }
    }
    found
}

/// The first C program of a page.
fn example(page: &str) -> String {
    let page = fs::read_to_string(source("../..").join(page)).unwrap();
    let start = page.split_once("```c\n").expect("a C program").1;
    start.split_once("```").expect("its end").0.into()
}

#[test]
fn all_names_are_one_library() {
    let root = install("names");
    for name in ["libd3dkmt.so", "libdxg.so", "libdxg.so.1", "libdxcore.so"] {
        let target = fs::read_link(root.join("lib").join(name)).unwrap();
        assert_eq!(target, Path::new("libd3dkmt.so.1"), "{name}");
    }
    let module = fs::read_to_string(root.join("lib/pkgconfig/d3dkmt.pc")).unwrap();
    assert!(module.contains(&format!("prefix={PREFIX}\n")), "{module}");
    assert!(module.contains("libdir=${prefix}/lib\n"), "{module}");
    assert!(module.contains(env!("CARGO_PKG_VERSION")), "{module}");
    for file in [
        "share/man/man1/opendxg.1",
        "share/man/man3/libd3dkmt.3",
        "share/bash-completion/completions/opendxg",
        "share/zsh/site-functions/_opendxg",
        "share/fish/vendor_completions.d/opendxg.fish",
    ] {
        assert!(root.join(file).is_file(), "{file}");
    }
}

#[test]
fn the_program_of_the_documentation_runs() {
    let root = install("program");
    let program = root.join("program");
    let text = root.join("program.c");
    fs::write(&text, example("Documentation/shim.md")).unwrap();
    run(Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(root.join("include"))
        .arg(&text)
        .arg("-L")
        .arg(root.join("lib"))
        .args(["-ld3dkmt", "-o"])
        .arg(&program));
    let output = output(
        Command::new(&program)
            .env("LD_LIBRARY_PATH", root.join("lib"))
            .env("OPENDXG_DEVICE", "/dev/no-such-device"),
    );
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), &*errors),
        (Some(1), "no adapters: 0xc0000001\n")
    );
}

/// The fragments are statements of a function, after the headers that they name.
#[test]
fn the_fragments_compile() {
    let root = install("fragments");
    let watch = fs::read_to_string(source("../../Documentation/metadata.md")).unwrap();
    let watch = watch.split_once("## Watching for changes").unwrap().1;
    let watch = watch
        .split_once("```c\n")
        .unwrap()
        .1
        .split_once("```")
        .unwrap()
        .0;
    for (name, fragment, before) in [
        (
            "readme",
            example("README.md").as_str(),
            "D3DKMT_HANDLE device = 0;",
        ),
        ("watch", watch, "__u32 nt_handle = 0;"),
    ] {
        let (headers, statements): (Vec<&str>, Vec<&str>) = fragment
            .lines()
            .partition(|line| line.starts_with("#include"));
        let text = format!(
            "#include <stdint.h>\n#include <opendxg.h>\n{}\nvoid fragment(void)\n{{\n{before}\n{}\n}}\n",
            headers.join("\n"),
            statements.join("\n")
        );
        let path = root.join(name).with_extension("c");
        fs::write(&path, text).unwrap();
        run(Command::new("cc")
            .args([
                "-std=c11",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wno-unused",
                "-fsyntax-only",
                "-I",
            ])
            .arg(root.join("include"))
            .arg(&path));
    }
}

#[test]
fn the_header_is_cplusplus_too() {
    let root = install("cplusplus");
    let text = root.join("program.cc");
    let call = "#include <d3dkmt.h>\n\
        int main() { return NT_SUCCESS(D3DKMTEnumAdapters2(nullptr)); }\n";
    fs::write(&text, call).unwrap();
    run(Command::new("c++")
        .args(["-std=c++11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(root.join("include"))
        .arg(&text)
        .arg("-L")
        .arg(root.join("lib"))
        .args(["-ld3dkmt", "-o"])
        .arg(root.join("program")));
}

#[test]
fn nothing_is_built_and_nothing_is_copied_when_a_part_is_missing() {
    let destination = scratch("unbuilt");
    let mut command = installer("unbuilt", &destination, &[]);
    fs::remove_file(
        Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("unbuilt-built")
            .join("opendxg"),
    )
    .unwrap();
    let output = output(&mut command);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.ends_with("run 'make build' first\n"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(files(&destination).is_empty());

    // Neither does make: as root of somebody else's checkout it must not enter the tree.
    let makefile = fs::read_to_string(source("../../Makefile")).unwrap();
    let recipe = makefile.split_once("\ninstall: ").unwrap().1;
    let recipe = recipe.split_once("\n\n").unwrap().0;
    assert!(!recipe.contains("$(enter)"), "{recipe}");
}

#[test]
fn directories_of_a_distribution() {
    let destination = scratch("multiarch");
    let multiarch = "/usr/lib/x86_64-linux-gnu";
    let arguments = [
        "--prefix",
        "/usr",
        "--libdir",
        multiarch,
        "--bindir",
        "/usr/sbin",
        "--includedir",
        "/usr/include/opendxg-1",
    ];
    run(&mut installer("multiarch", &destination, &arguments));
    let found = files(&destination);
    for file in [
        "usr/lib/x86_64-linux-gnu/libdxcore.so",
        "usr/lib/x86_64-linux-gnu/pkgconfig/d3dkmt.pc",
        "usr/sbin/opendxg",
        "usr/include/opendxg-1/dxg/base.h",
    ] {
        assert!(found.contains_key(Path::new(file)), "{file}: {found:?}");
    }
    let flags = |arguments: &[&str]| {
        let directory = destination.join("usr/lib/x86_64-linux-gnu/pkgconfig");
        run(Command::new("pkg-config")
            .args(arguments)
            .arg("d3dkmt")
            .env("PKG_CONFIG_PATH", directory)
            .env("PKG_CONFIG_ALLOW_SYSTEM_LIBS", "1"))
    };
    assert_eq!(flags(&["--variable=libdir"]), format!("{multiarch}\n"));
    assert_eq!(flags(&["--cflags"]).trim(), "-I/usr/include/opendxg-1");
}

#[test]
fn any_prefix() {
    let destination = scratch("strange");
    let prefix = "/opt/a&b|c'd";
    run(&mut installer(
        "strange",
        &destination,
        &["--prefix", prefix],
    ));
    let root = destination.join(prefix.trim_start_matches('/'));
    let shown = run(Command::new("pkg-config")
        .args(["--variable=prefix", "d3dkmt"])
        .env("PKG_CONFIG_PATH", root.join("lib/pkgconfig")));
    assert_eq!(shown, format!("{prefix}\n"));

    // The same through make, which has its own quotes.
    let line = run(Command::new("make")
        .args(["-n", "install", "-C"])
        .arg(source("../.."))
        .arg(format!("PREFIX={prefix}"))
        .env_remove("MAKEFLAGS"));
    assert!(line.contains(r"--prefix '/opt/a&b|c'\''d'"), "{line}");
}

#[test]
fn files_of_others_stay() {
    for (name, make) in [
        (
            "libdxcore.so",
            (|path| fs::write(path, "another").unwrap()) as fn(&Path),
        ),
        ("libdxg.so", |path| symlink("libdxg.so.9", path).unwrap()),
        ("libd3dkmt.so.1", |path| fs::write(path, "another").unwrap()),
    ] {
        let destination = scratch("foreign");
        let directory = destination.join("usr/local/lib");
        fs::create_dir_all(&directory).unwrap();
        make(&directory.join(name));
        let before = files(&destination);
        let output = output(&mut installer("foreign", &destination, &[]));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {errors}");
        assert!(
            errors.contains(&format!("/{name} is of another package")),
            "{errors}"
        );
        assert_eq!(files(&destination), before, "{name}");
    }
    // Without the other names nothing is in the way.
    let destination = scratch("foreign");
    let other = destination.join("usr/local/lib/libdxcore.so");
    fs::create_dir_all(other.parent().unwrap()).unwrap();
    fs::write(&other, "another").unwrap();
    run(&mut installer("foreign", &destination, &["--no-aliases"]));
    assert_eq!(fs::read_to_string(&other).unwrap(), "another");
    assert!(!other.with_file_name("libdxg.so").exists());
    run(&mut installer("foreign", &destination, &["--uninstall"]));
    assert_eq!(fs::read_to_string(&other).unwrap(), "another");
    assert_eq!(files(&destination).len(), 1);
}

#[test]
fn again_and_away() {
    let destination = scratch("again");
    let other = destination.join("usr/local/include/dxg/other.h");
    fs::create_dir_all(other.parent().unwrap()).unwrap();
    fs::write(&other, "of somebody else").unwrap();
    let arguments = ["--wsldir", "/usr/lib/wsl/lib"];
    run(&mut installer("again", &destination, &arguments));
    let first = files(&destination);
    let library = destination.join("usr/local/lib/libd3dkmt.so.1");
    let touched = fs::metadata(&library).unwrap().modified().unwrap();
    run(&mut installer("again", &destination, &arguments));
    assert_eq!(files(&destination), first);
    assert_eq!(fs::metadata(&library).unwrap().modified().unwrap(), touched);
    // Where Mesa and others look under WSL, the names lead to the installed library.
    for name in [
        "libdxcore.so",
        "libdxg.so",
        "libd3dkmt.so",
        "libd3dkmt.so.1",
    ] {
        let link = destination.join("usr/lib/wsl/lib").join(name);
        let target = fs::read_link(link).unwrap();
        assert_eq!(target, Path::new("/usr/local/lib/libd3dkmt.so.1"), "{name}");
    }
    let away = ["--wsldir", "/usr/lib/wsl/lib", "--uninstall"];
    run(&mut installer("again", &destination, &away));
    let left: Vec<_> = files(&destination).into_keys().collect();
    assert_eq!(left, [Path::new("usr/local/include/dxg/other.h")]);
}

#[test]
fn ldconfig_is_named() {
    let prefix = scratch("real");
    let mut command = Command::new(source("../install"));
    command
        .arg("--from")
        .arg(built("real"))
        .arg("--prefix")
        .arg(&prefix);
    assert!(run(&mut command).contains("'ldconfig'"));
}

/// Root who came through sudo finds the user's cache, and makes no second one.
#[test]
fn the_cache_of_the_user_under_sudo() {
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let home = users
        .lines()
        .find(|line| line.starts_with("root:"))
        .unwrap();
    let home = Path::new(home.split(':').nth(5).unwrap()).join(".cache/opendxg");
    let made = !home.exists();
    fs::create_dir_all(&home).unwrap();
    let found = run(Command::new("sh")
        .args([
            "-c",
            ". \"$repo/tools/env/lib.sh\"; find_cache; echo \"$cache\"",
        ])
        .env("repo", source("../..").canonicalize().unwrap())
        .env("HOME", scratch("home"))
        .env("SUDO_USER", "root")
        .env_remove("OPENDXG_CACHE")
        .env_remove("XDG_CACHE_HOME"));
    let real = home.canonicalize().unwrap();
    if made {
        fs::remove_dir(&home).unwrap();
    }
    assert_eq!(Path::new(found.trim()), real);
}

/// Two checkouts in different directories make the same library, and nothing of it says where they
/// were.
#[test]
fn the_place_of_the_sources_does_not_matter() {
    let Some(tree) = std::env::var_os("OPENDXG_TREE") else {
        eprintln!("not run: this is not the private tree");
        return;
    };
    let top = source("../..").canonicalize().unwrap();
    let build = |checkout: &Path| {
        let out = scratch("reproduced");
        run(Command::new(checkout.join("tools/env/build"))
            .arg("--library")
            .arg(&out)
            .env("OPENDXG_REPO", checkout));
        fs::read(out.join("libd3dkmt.so.1")).unwrap()
    };
    let checkout = scratch("another checkout");
    for part in ["tools", "rust", "uapi", "Documentation"] {
        run(Command::new("cp")
            .arg("-a")
            .arg(top.join(part))
            .arg(&checkout));
    }
    let (one, other) = (build(&top), build(&checkout));
    assert!(one == other, "the libraries differ");
    assert!(one.len() < 2 << 20, "{} bytes: not stripped", one.len());
    for place in [
        top.to_str().unwrap(),
        tree.to_str().unwrap(),
        "another checkout",
    ] {
        let found = one
            .windows(place.len())
            .any(|bytes| bytes == place.as_bytes());
        assert!(!found, "the library contains {place}");
    }
}
