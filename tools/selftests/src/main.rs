// SPDX-License-Identifier: MIT OR Apache-2.0
//! All test programs in one file. The name it is called by says which one runs, as in busybox:
//! `tools/selftests/build` makes a link for each of them. `selftests --list` prints the names.

#[path = "bin/run-all/main.rs"]
mod run_all;
#[path = "bin/t-access-any.rs"]
mod t_access_any;
#[path = "bin/t-access-none.rs"]
mod t_access_none;
#[path = "bin/t-adapters/main.rs"]
mod t_adapters;
#[path = "bin/t-attach-drivers.rs"]
mod t_attach_drivers;
#[path = "bin/t-bounds/main.rs"]
mod t_bounds;
#[path = "bin/t-context-allocations/main.rs"]
mod t_context_allocations;
#[path = "bin/t-cpu-border.rs"]
mod t_cpu_border;
#[path = "bin/t-cpu-events/main.rs"]
mod t_cpu_events;
#[path = "bin/t-crate.rs"]
mod t_crate;
#[path = "bin/t-create/main.rs"]
mod t_create;
#[path = "bin/t-cross-adapter/main.rs"]
mod t_cross_adapter;
#[path = "bin/t-destroy/main.rs"]
mod t_destroy;
#[path = "bin/t-dmabuf/main.rs"]
mod t_dmabuf;
#[path = "bin/t-failslab/main.rs"]
mod t_failslab;
#[path = "bin/t-fence-timeline.rs"]
mod t_fence_timeline;
#[path = "bin/t-fences/main.rs"]
mod t_fences;
#[path = "bin/t-fuzz/main.rs"]
mod t_fuzz;
#[path = "bin/t-gpu-client/main.rs"]
mod t_gpu_client;
#[path = "bin/t-gpu-fair/main.rs"]
mod t_gpu_fair;
#[path = "bin/t-gpu-faults/main.rs"]
mod t_gpu_faults;
#[path = "bin/t-gpu-machine/main.rs"]
mod t_gpu_machine;
#[path = "bin/t-gpu-memory/main.rs"]
mod t_gpu_memory;
#[path = "bin/t-gpu-packets/main.rs"]
mod t_gpu_packets;
#[path = "bin/t-gpu-races/main.rs"]
mod t_gpu_races;
#[path = "bin/t-gpu-random/main.rs"]
mod t_gpu_random;
#[path = "bin/t-gpu-submit/main.rs"]
mod t_gpu_submit;
#[path = "bin/t-gpu-tdr/main.rs"]
mod t_gpu_tdr;
#[path = "bin/t-harness.rs"]
mod t_harness;
#[path = "bin/t-hoard/main.rs"]
mod t_hoard;
#[path = "bin/t-hostile/main.rs"]
mod t_hostile;
#[path = "bin/t-keyed-mutex/main.rs"]
mod t_keyed_mutex;
#[path = "bin/t-kinds/main.rs"]
mod t_kinds;
#[path = "bin/t-lifetime/main.rs"]
mod t_lifetime;
#[path = "bin/t-limits/main.rs"]
mod t_limits;
#[path = "bin/t-lock/main.rs"]
mod t_lock;
#[path = "bin/t-many-adapters.rs"]
mod t_many_adapters;
#[path = "bin/t-mmap.rs"]
mod t_mmap;
#[path = "bin/t-names/main.rs"]
mod t_names;
#[path = "bin/t-native-fences/main.rs"]
mod t_native_fences;
#[path = "bin/t-native-shadow.rs"]
mod t_native_shadow;
#[path = "bin/t-negative/main.rs"]
mod t_negative;
#[path = "bin/t-nt-handle/main.rs"]
mod t_nt_handle;
#[path = "bin/t-open/main.rs"]
mod t_open;
#[path = "bin/t-paging/main.rs"]
mod t_paging;
#[path = "bin/t-process/main.rs"]
mod t_process;
#[path = "bin/t-questions.rs"]
mod t_questions;
#[path = "bin/t-quota/main.rs"]
mod t_quota;
#[path = "bin/t-races/main.rs"]
mod t_races;
#[path = "bin/t-reclaim/main.rs"]
mod t_reclaim;
#[path = "bin/t-security/main.rs"]
mod t_security;
#[path = "bin/t-soft-adapters/main.rs"]
mod t_soft_adapters;
#[path = "bin/t-store/main.rs"]
mod t_store;
#[path = "bin/t-sync-files/main.rs"]
mod t_sync_files;
#[path = "bin/t-tool/main.rs"]
mod t_tool;
#[path = "bin/t-trace.rs"]
mod t_trace;
#[path = "bin/t-unload.rs"]
mod t_unload;
#[path = "bin/t-user-queues/main.rs"]
mod t_user_queues;
#[path = "bin/t-verifier.rs"]
mod t_verifier;
#[path = "bin/t-waiters/main.rs"]
mod t_waiters;
#[path = "bin/t-weak/main.rs"]
mod t_weak;

use std::process::exit;

use selftests::program;

/// The programs by name.
const PROGRAMS: [(&str, fn()); 61] = [
    ("run-all", run_all::main),
    ("t-access-any", t_access_any::main),
    ("t-access-none", t_access_none::main),
    ("t-adapters", t_adapters::main),
    ("t-attach-drivers", t_attach_drivers::main),
    ("t-bounds", t_bounds::main),
    ("t-context-allocations", t_context_allocations::main),
    ("t-cpu-border", t_cpu_border::main),
    ("t-cpu-events", t_cpu_events::main),
    ("t-crate", t_crate::main),
    ("t-create", t_create::main),
    ("t-destroy", t_destroy::main),
    ("t-cross-adapter", t_cross_adapter::main),
    ("t-dmabuf", t_dmabuf::main),
    ("t-failslab", t_failslab::main),
    ("t-fence-timeline", t_fence_timeline::main),
    ("t-fences", t_fences::main),
    ("t-fuzz", t_fuzz::main),
    ("t-gpu-client", t_gpu_client::main),
    ("t-gpu-fair", t_gpu_fair::main),
    ("t-gpu-faults", t_gpu_faults::main),
    ("t-gpu-machine", t_gpu_machine::main),
    ("t-gpu-memory", t_gpu_memory::main),
    ("t-gpu-packets", t_gpu_packets::main),
    ("t-gpu-races", t_gpu_races::main),
    ("t-gpu-random", t_gpu_random::main),
    ("t-gpu-submit", t_gpu_submit::main),
    ("t-gpu-tdr", t_gpu_tdr::main),
    ("t-harness", t_harness::main),
    ("t-hoard", t_hoard::main),
    ("t-hostile", t_hostile::main),
    ("t-keyed-mutex", t_keyed_mutex::main),
    ("t-kinds", t_kinds::main),
    ("t-lifetime", t_lifetime::main),
    ("t-limits", t_limits::main),
    ("t-lock", t_lock::main),
    ("t-many-adapters", t_many_adapters::main),
    ("t-mmap", t_mmap::main),
    ("t-names", t_names::main),
    ("t-native-fences", t_native_fences::main),
    ("t-native-shadow", t_native_shadow::main),
    ("t-negative", t_negative::main),
    ("t-nt-handle", t_nt_handle::main),
    ("t-open", t_open::main),
    ("t-paging", t_paging::main),
    ("t-process", t_process::main),
    ("t-questions", t_questions::main),
    ("t-quota", t_quota::main),
    ("t-races", t_races::main),
    ("t-reclaim", t_reclaim::main),
    ("t-security", t_security::main),
    ("t-soft-adapters", t_soft_adapters::main),
    ("t-store", t_store::main),
    ("t-sync-files", t_sync_files::main),
    ("t-tool", t_tool::main),
    ("t-trace", t_trace::main),
    ("t-unload", t_unload::main),
    ("t-user-queues", t_user_queues::main),
    ("t-verifier", t_verifier::main),
    ("t-waiters", t_waiters::main),
    ("t-weak", t_weak::main),
];

fn main() {
    let name = program::name();
    match PROGRAMS.iter().find(|(known, _)| *known == name) {
        Some((_, main)) => main(),
        None if std::env::args().nth(1).as_deref() == Some("--list") => {
            PROGRAMS.iter().for_each(|(name, _)| println!("{name}"));
        }
        None => {
            println!("Bail out! no program is called {name}");
            exit(1);
        }
    }
}
