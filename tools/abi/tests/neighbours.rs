// SPDX-License-Identifier: MIT OR Apache-2.0
//! The headers in one file with those of others: Wine's, and DirectX-Headers.
//!
//! Both declare Windows' types and constants. A file includes theirs first, or ours first with
//! `DXG_NO_WINDOWS_TYPES`. Warnings count in our headers only.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Arc;

use abi::c::Dialect;
use abi::compiler::Compiler;
use abi::root;
use libtest_mimic::{Arguments, Failed, Trial};

/// Wine's headers need the extensions of GNU.
const WITH_WINE: [(&str, Compiler); 4] = [
    ("gcc-gnu89", c("gcc", &["-std=gnu89", PEDANTIC])),
    ("gcc-gnu17-m32", c("gcc", &["-std=gnu17", "-m32", PEDANTIC])),
    ("clang-gnu99", c("clang", &["-std=gnu99", PEDANTIC])),
    (
        "g++-gnu++20-m32",
        cpp("g++", &["-std=gnu++20", "-m32", PEDANTIC]),
    ),
];

const WITH_DIRECTX: [(&str, Compiler); 4] = [
    ("g++-c++11", cpp("g++", &["-std=c++11", PEDANTIC])),
    ("g++-c++23", cpp("g++", &["-std=c++23", PEDANTIC])),
    (
        "g++-c++17-m32",
        cpp("g++", &["-std=c++17", "-m32", PEDANTIC]),
    ),
    ("clang++-c++20", cpp("clang++", &["-std=c++20", PEDANTIC])),
];

const PEDANTIC: &str = "-Wpedantic";

const fn c(program: &'static str, options: &'static [&'static str]) -> Compiler {
    Compiler::standard(program, options, Dialect::C)
}

const fn cpp(program: &'static str, options: &'static [&'static str]) -> Compiler {
    Compiler::standard(program, options, Dialect::Cpp)
}

const OURS: &str = "#include <opendxg.h>\n#include <opendxg/metadata.h>\n";
const LATER: &str = "#define DXG_NO_WINDOWS_TYPES\n";

/// Every file does this in `program`: statuses are compared, a handle is received in 8 bytes, and
/// a function has the calling convention of C whatever APIENTRY is.
const USE: &str = "
static int (*const close_adapter)(const D3DKMT_CLOSEADAPTER *) = D3DKMTCloseAdapter;
int program(D3DKMT_HANDLE object);
int program(D3DKMT_HANDLE object)
{
	D3DKMT_CLOSEADAPTER close;
	__u64 file = 0;
	close.hAdapter = object;
	if (close_adapter(&close) == STATUS_SUCCESS)
		return 0;
	return D3DKMTShareObjects(1, &object, 0, 0, &file) == (int)STATUS_OBJECT_NAME_COLLISION;
}
";

/// What a file that has theirs first may do beyond: their types go into our structs.
const USE_THEIRS: &str = "
LUID luid_of(LUID luid);
LUID luid_of(LUID luid)
{
	D3DKMT_OPENADAPTERFROMLUID open;
	open.AdapterLuid = luid;
	D3DKMTOpenAdapterFromLuid(&open);
	return open.AdapterLuid;
}
int works(NTSTATUS status);
int works(NTSTATUS status)
{
	return NT_SUCCESS(status);
}
";

/// With another d3dkmthk.h there are the additions.
const USE_ADDITIONS: &str = "
int id_of(struct opendxg_query_object *query);
int id_of(struct opendxg_query_object *query)
{
	return opendxg_query_object(query) == (int)STATUS_SUCCESS;
}
";

const WINDOWS: &str = "#define WIN32_LEAN_AND_MEAN\n#include <windows.h>\n";
const NT: &str = "#define WIN32_LEAN_AND_MEAN\n#include <windows.h>\n#include <winternl.h>\n";
const NT_STATUS: &str =
    "#include <ntstatus.h>\n#define WIN32_NO_STATUS\n#define WIN32_LEAN_AND_MEAN\n\
    #include <windows.h>\n#include <winternl.h>\n";
const KERNEL: &str =
    "#define WIN32_LEAN_AND_MEAN\n#include <windows.h>\n#include <ddk/d3dkmthk.h>\n";

fn both_orders(compiler: &Compiler, theirs: &str, include: &[PathBuf]) -> Result<(), Failed> {
    compiler.compile_beside(&[theirs, OURS, USE, USE_THEIRS].concat(), include)?;
    compiler.compile_beside(&[LATER, OURS, theirs, USE].concat(), include)?;
    Ok(())
}

/// Our structs and those of another d3dkmthk.h cannot be in one file: the additions can, and
/// d3dkmt.h says so.
fn with_another_d3dkmthk(compiler: &Compiler, include: &[PathBuf]) -> Result<(), Failed> {
    compiler.compile_beside(&[KERNEL, OURS, USE_ADDITIONS].concat(), include)?;
    let later = [
        "#define DXG_NO_D3DKMT\n",
        LATER,
        OURS,
        KERNEL,
        USE_ADDITIONS,
    ]
    .concat();
    compiler.compile_beside(&later, include)?;
    let both = [KERNEL, "#include <d3dkmt.h>\n"].concat();
    match compiler.compile_beside(&both, include) {
        Err(message) if message.contains("include <opendxg.h>") => Ok(()),
        other => Err(format!("no word of the clash: {other:?}").into()),
    }
}

/// A pointer to a slot of 4 bytes is refused where the library writes 8.
fn refuses_a_narrow_handle(compiler: &Compiler, include: &[PathBuf]) -> Result<(), Failed> {
    let share = |slot: &str| {
        let text = format!(
            "int share(D3DKMT_HANDLE object);\nint share(D3DKMT_HANDLE object)\n{{\n\t{slot} file;\n\
             \treturn D3DKMTShareObjects(1, &object, 0, 0, &file);\n}}\n"
        );
        compiler.compile_beside(&[WINDOWS, OURS, &text].concat(), include)
    };
    share("__u64")?;
    match share("HANDLE") {
        Err(_) => Ok(()),
        Ok(()) => Err("a HANDLE of Windows is taken for a slot of 8 bytes".into()),
    }
}

/// Whichever directory comes first, our headers find their own `d3dkmthk.h`.
fn finds_its_own(compiler: &Compiler, include: &[PathBuf]) -> Result<(), Failed> {
    let text = ["#include <dxg/d3dkmthk.h>\n", OURS, USE].concat();
    let directories = [include[0].join("ddk"), include[0].clone()];
    compiler.compile_beside(&text, &directories)?;
    Ok(())
}

/// Where Wine's headers are, or why there are none.
fn wine() -> Result<PathBuf, String> {
    if std::env::var_os("OPENDXG_CACHE").is_none() {
        return Err("runs in the private tree only: tools/env/enter".into());
    }
    let script = root().join("tools/abi/wine-headers");
    let output = Command::new(script)
        .output()
        .map_err(|why| why.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().into()),
        false => Err("Debian's archive with Wine's headers cannot be reached".into()),
    }
}

fn directx() -> Result<PathBuf, String> {
    let stubs = PathBuf::from("/usr/include/wsl/stubs");
    match stubs.is_dir() {
        true => Ok(stubs),
        false => Err("directx-headers-dev is not installed".into()),
    }
}

type Test = Box<dyn Fn(&Compiler, &[PathBuf]) -> Result<(), Failed> + Send + Sync>;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let with = |theirs: &'static str| -> Test {
        Box::new(move |compiler, include| both_orders(compiler, theirs, include))
    };
    let wine_tests: [(&str, Test); 6] = [
        ("windows.h", with(WINDOWS)),
        ("winternl.h", with(NT)),
        ("ntstatus.h", with(NT_STATUS)),
        ("d3dkmthk.h", Box::new(with_another_d3dkmthk)),
        ("handle", Box::new(refuses_a_narrow_handle)),
        ("file-name", Box::new(finds_its_own)),
    ];
    let directx_tests: [(&str, Test); 2] = [
        (
            "dxcore.h",
            with("#include <wsl/winadapter.h>\n#include <directx/dxcore.h>\n"),
        ),
        (
            "d3d12.h",
            with("#include <wsl/winadapter.h>\n#include <directx/d3d12.h>\n"),
        ),
    ];
    let mut trials = Vec::new();
    let mut add =
        |world: &str, found: &Result<PathBuf, String>, compilers: &[_], tests: Vec<(_, Test)>| {
            for (subject, test) in tests {
                let test = Arc::new(test);
                for (name, compiler) in compilers {
                    let (compiler, test): (Compiler, _) = (*compiler, Arc::clone(&test));
                    let name = format!("{world}/{subject}/{name}");
                    let found = found.clone().and_then(|include| {
                        let missing = || format!("{} does not work here", compiler.name);
                        compiler
                            .is_available()
                            .then_some(include)
                            .ok_or_else(missing)
                    });
                    trials.push(match found {
                        Ok(include) => Trial::test(name, move || test(&compiler, &[include])),
                        Err(why) => {
                            let name = format!("{name} # SKIP {why}");
                            Trial::test(name, || Ok(())).with_ignored_flag(true)
                        }
                    });
                }
            }
        };
    add("wine", &wine(), &WITH_WINE, wine_tests.into());
    add("directx", &directx(), &WITH_DIRECTX, directx_tests.into());
    libtest_mimic::run(&arguments, trials).exit_code()
}
