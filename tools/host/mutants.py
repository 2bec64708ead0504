#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Break one rule at a time in a copy of rust/{ddi,engine,kmd,logic} and see whether a test notices.

Arguments select mutants by file name; without any, all are tried. Prints TAP: "ok" is a mutant that
was killed, with the tool that did it. A mutant whose text is no longer in the source, or that does
not compile, is "not ok": the table below has to follow the code.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

REPO = pathlib.Path(__file__).resolve().parents[2]
WORK = REPO / "build/mutants"
# A mutant may hang. How much longer it may run than the source does, and at least.
SLOWER, AT_LEAST_SECONDS = 10, 60

# The folders that the host crate includes by path. Files of MUTANTS are relative to logic, or begin
# with another one of them.
FOLDERS = ["ddi", "engine", "kmd", "logic"]

# (file, text that occurs once, what replaces it, the tool that has to notice)
MUTANTS = [
    ("fence_value.rs", "current >= wanted", "current > wanted", "unit"),
    ("fence_value.rs", "value >= current || allow_rewind", "value > current || allow_rewind", "unit"),
    ("fence_value.rs", "value >= current || allow_rewind", "value >= current", "unit"),
    ("fence_value.rs", "value.saturating_sub(1)", "value", "unit"),
    ("propagation.rs", "Self::Adapter(own) => id == own,", "Self::Adapter(_) => false,", "unit"),
    ("propagation.rs", "id == own && place == Place::Monitored", "id == own", "unit"),
    ("waiters.rs", "if self.always_signaled {", "if false {", "unit"),
    ("waiters.rs", "        self.always_signaled = true;\n", "", "unit"),
    ("waiters.rs", "let due = self.due(u64::MAX, u64::MAX);", "let due = self.due(current.load(), current.load());", "unit"),
    ("waiters.rs", "if self.always_signaled || fence_value", "if fence_value", "unit"),
    ("waiters.rs", "if self.always_signaled || fence_value::satisfies(current.load(), value) {", "if false {", "loom"),
    ("waiters.rs", "        self.sample(current)\n    }\n\n    /// What MonitoredValue", "        None\n    }\n\n    /// What MonitoredValue", "loom"),
    ("waiters.rs", "        monitored.store(wanted);\n", "", "loom"),
    ("waiters.rs", "self.orphaned.then_some(News::Orphaned)", "None", "loom"),
    ("waiters.rs", "if !fence_value::satisfies(sweep.due.value, key.value) {", "if sweep.due.value <= key.value {", "unit"),
    ("waiters.rs", "key.seq < self.before.get()", "true", "unit"),
    ("waiters.rs", "if key.seq >= sweep.due.before.get() {", "if false {", "loom"),
    ("waiters.rs", "(self.queued != 0).then_some(sweep)", "None", "unit"),
    ("waiters.rs", "for _ in 0..FEW {", "for _ in 0..0 {", "unit"),
    ("waiters.rs", "                add(taken);\n", "                drop(taken);\n", "unit"),
    ("waiters.rs", "match of_list == Some(key) {", "match of_list.is_some() {", "unit"),
    ("waiters.rs", "self.next_seq.saturating_add(1)", "self.next_seq", "unit"),
    ("waiters.rs", "        let node = self.map.take(key)?;\n", "        let _ = key;\n        let node = None::<M::Node>?;\n", "unit"),
    ("waiters.rs", "lower(self.map.first(), self.sleepers.first())", "self.map.first().or(self.sleepers.first())", "unit"),
    ("waiters.rs", "lower(self.map.next(key), self.sleepers.next(key))", "self.map.next(key).or(self.sleepers.next(key))", "unit"),
    ("waiters.rs", "*lowest = key.value.min(*lowest);", "let _ = lowest;", "unit"),
    ("waiters.rs", "if !fence_value::satisfies(reached, lowest) {", "if reached <= lowest {", "unit"),
    ("waiters.rs", "self.ahead = Ahead::Lowest(0);", "self.ahead = Ahead::Lowest(u64::MAX);", "unit"),
    ("waiters.rs", "        self.orphaned |= is_alone;\n", "", "unit"),
    ("waiters.rs", "let is_alone = self.queued == 0;", "let is_alone = true;", "unit"),
    ("waiters.rs", "None if self.sleepers.is_full() =>", "None if false =>", "unit"),
    ("waiters.rs", "woken.add(key, News::Satisfied, wake),", "drop((key, wake)),", "loom"),
    ("waiters.rs", "self.map.put(M::name(new_node, *key));", "self.put(key.value, new_node);", "unit"),
    ("waiters.rs", "true => News::Satisfied,", "true => News::Orphaned,", "unit"),
    ("waiters.rs", "        if was_queued {\n", "        if false {\n", "unit"),
    ("sleepers.rs", "load32_acquire(&self.0) == IN", "false", "loom"),
    ("sleepers.rs", "(Some(one), Some(other)) => Some(one.min(other)),", "(Some(one), Some(_)) => Some(one),", "unit"),
    ("sleepers.rs", "key.is_none_or(|key| *own < *key)", "true", "unit"),
    ("freed_room.rs", "        platform::fetch_add(&self.leaving, 1);\n", "", "loom"),
    ("freed_room.rs", "        platform::fetch_add(&self.count, 1);\n", "", "loom"),
    ("freed_room.rs", "            platform::fetch_sub(&self.leaving, 1);\n", "", "loom"),
    ("freed_room.rs", "if platform::load32_acquire(&self.leaving) != 0", "if false", "loom"),
    ("watched.rs", "platform::cmpxchg(&self.0, UNWATCHED, QUEUED)", "platform::cmpxchg(&self.0, UNWATCHED, QUEUED) || true", "loom"),
    ("watched.rs", "        platform::cmpxchg(&self.0, QUEUED, LOOKS);\n", "", "loom"),
    ("watched.rs", "        platform::cmpxchg(&self.0, LOOKS, UNWATCHED);\n", "", "loom"),
    ("watched.rs", "wants_more() && self.begins()", "self.begins()", "loom"),
    ("watched.rs", "wants_more() && self.begins()", "wants_more()", "loom"),
    ("watched.rs", "platform::load32_acquire(&self.0) == QUEUED", "false", "loom"),
    ("watched.rs", "platform::load32_acquire(&self.0) == QUEUED", "platform::load32_acquire(&self.0) != UNWATCHED", "loom"),
    ("wait_set.rs", "fetch_sub(&self.missing, 1) == 1 &&", "fetch_sub(&self.missing, 1) >= 1 &&", "unit"),
    ("wait_set.rs", "Mode::All => true,", "Mode::All => false,", "unit"),
    ("wait_set.rs", "fetch_sub(&self.alive, 1) == 1", "fetch_sub(&self.alive, 1) >= 1", "unit"),
    ("wait_set.rs", "(0..told).map(is_over)", "(0..0 * told).map(is_over)", "unit"),
    ("wait_set.rs", "            Mode::All => self.satisfy(),\n", "            Mode::All => false,\n", "loom"),
    ("wait_set.rs", "            Mode::Any => self.orphan(),\n", "            Mode::Any => self.satisfy(),\n", "unit"),
    ("wait_set.rs", "fetch_add(&self.through, 1) == 1", "fetch_add(&self.through, 1) <= 1", "loom"),
    ("wait_set.rs", "cmpxchg(&self.state, PENDING, state)", "cmpxchg(&self.state, PENDING, state) || true", "loom"),
    ("keyed_mutex.rs", "if self.owner.is_some() || key != self.key {", "if key != self.key {", "unit"),
    ("keyed_mutex.rs", "if !self.owner.as_ref().is_some_and(is_owner) {", "if self.owner.is_none() {", "unit"),
    ("keyed_mutex.rs", ".filter(|place| place.value == self.key)?", "?", "unit"),
    ("keyed_mutex.rs", "            seq: 0,", "            seq: 1,", "unit"),
    ("keyed_mutex.rs", "        self.owner = Some(owner);\n        Some(taken)", "        let _ = owner;\n        Some(taken)", "unit"),
    ("keyed_mutex.rs", "        self.abandoned = true;\n", "", "unit"),
    ("driver_names.rs", "if *byte == b'-' { b'_' }", "if false { b'_' }", "unit"),
    ("driver_names.rs", "!name.is_empty()", "true", "unit"),
    ("keyed_mutex.rs", "self.waiters.next(&before_all),", "None,", "unit"),
    ("keyed_mutex.rs", "            woken.add(place, News::Orphaned, wake);\n", "            let _ = wake;\n", "unit"),
    ("keyed_mutex.rs", "if self.sleepers.is_full() ||", "if", "unit"),
    ("fence_slots.rs", "        self.taken |= places;\n", "", "unit"),
    ("fence_slots.rs", "!is_alone || check.changes", "check.changes", "unit"),
    ("fence_slots.rs", " || check.changes != self.changes", "", "unit"),
    ("fence_slots.rs", "            self.stale |= !self.taken;", "", "unit"),
    ("value_windows.rs", "self.taken != u64::MAX", "true", "unit"),
    ("value_windows.rs", "&& !self.is_spoiled", "", "unit"),
    ("value_windows.rs", "        if !found.has_room() {\n", "        if true {\n", "unit"),
    ("value_windows.rs", "            if found.taken == 0 {", "            if true {", "unit"),
    ("value_windows.rs", "        } else if !had_room {", "        } else {", "unit"),
    ("value_windows.rs", "            self.take_out(list, place.window, next);", "", "unit"),
    ("value_windows.rs", "        self.make_vacant(list, window);\n        at", "        at", "unit"),
    ("value_windows.rs", "                found.next = next;\n                return;", "                return;", "unit"),
    ("classes.rs", "            self.free += 1;", "", "unit"),
    ("classes.rs", "            exchange(&mut at, self.free);\n            self.free += 1;", "            self.free += 1;", "unit"),
    ("waiters.rs", "if self.keeps_value || self.always_signaled {", "if self.always_signaled {", "unit"),
    ("timeout.rs", "UNIT_NS: u64 = 100", "UNIT_NS: u64 = 99", "unit"),
    ("timeout.rs", "Some(0) => Deadline::Now", "Some(0) => Deadline::Never", "unit"),
    ("handle.rs", "if index >= LAST_INDEX {", "if index > LAST_INDEX {", "unit"),
    ("handle.rs", "&& index >= FIRST_INDEX", "", "unit"),
    ("handle.rs", "known && handle & INSTANCE_MASK == instance", "known || handle == instance", "unit"),
    ("handle.rs", "(1..=LAST_FD).contains(&fd)", "(0..=LAST_FD).contains(&fd)", "unit"),
    ("handle.rs", "LAST_FD: u32 = (1 << UNIQUE_SHIFT) - 1", "LAST_FD: u32 = (2 << UNIQUE_SHIFT) - 1", "unit"),
    ("handle.rs", "if Self::after(index) == self.next {", "if true {", "unit"),
    ("ddi/index_map.rs", "if *used == 0 && index >> LEAF_BITS != self.kept {", "if *used == 0 {", "unit"),
    ("ddi/index_map.rs", "if *used == 0 && index >> LEAF_BITS != self.kept {", "if false {", "unit"),
    ("ddi/index_map.rs", "if is_empty && kept != self.kept {", "if false {", "unit"),
    ("ddi/index_map.rs", "if is_empty && kept != self.kept {", "if kept != self.kept {", "unit"),
    ("ddi/index_map.rs", "if *used > 1 {", "if true {", "unit"),
    ("ddi/index_map.rs", "if *used > 1 {", "if false {", "unit"),
    ("ddi/index_map.rs", "if self.missing_node(index) != Some(MissingNode { bits }) {", "if self.missing_node(index).is_none() {", "unit"),
    ("ddi/index_map.rs", "                children[0] = old;\n", "                children[1] = old;\n", "unit"),
    ("handle_tree.rs", "entry.links_mut().younger = links.younger;", "", "unit"),
    ("handle_tree.rs", "entry.links_mut().older = links.older;", "", "unit"),
    ("handle_tree.rs", "entry.links_mut().last_child = links.older;", "entry.links_mut().last_child = NONE;", "unit"),
    ("handle_tree.rs", "entry.links_mut().younger = index;", "", "unit"),
    ("handle_tree.rs", "        .filter(|entry| accept(entry))?", "?", "unit"),
    ("handle_tree.rs", "self.stage() == Stage::Reserved && self.last_child == reservation", "self.stage() == Stage::Reserved", "unit"),
    ("handle_tree.rs", "self.stage() == Stage::Reserved && self.last_child == reservation", "self.last_child == reservation", "unit"),
    ("handle_tree.rs", "            self.last_child = NONE;", "", "unit"),
    ("handle_tree.rs", "(self.parent_and_stage & PUBLISHED != 0)", "true", "unit"),
    ("handle_tree.rs", "child.links_mut().mark_ending();", "", "unit"),
    ("handle_tree.rs", "self.at = links.parent().unwrap_or(NONE);", "self.at = self.root;", "unit"),
    ("handle_tree.rs", "if !entries.get(self.at).is_some_and(Node::is_ending) {", "if false {", "unit"),
    ("handle_tree.rs", "for _ in 0..LEVELS {", "loop {", "unit"),
    ("handle_tree.rs", "if leaf == self.root {", "if false {", "unit"),
    ("handle_tree.rs", "        _ => Stage::Ending,", "        ENDING => Stage::Ending,\n            _ => Stage::Published,", "unit"),
    ("ddi/index_map.rs", "bound.checked_sub(1)?.min(self.end)", "bound.min(self.end)", "unit"),
    ("ddi/index_map.rs", "u32::from(*shift).saturating_add(INNER_BITS)", "u32::from(*shift)", "unit"),
    ("bucket_map.rs", "if bucket_of(self.secret.hash(link.key), count) == new {", "if false {", "unit"),
    ("bucket_map.rs", "key.wrapping_mul(self.0).swap_bytes()", "key", "unit"),
    ("bucket_map.rs", "key.wrapping_mul(self.0).swap_bytes()", "key.wrapping_mul(self.0)", "unit"),
    ("bucket_map.rs", "        *chain = link.next.take();\n", "", "unit"),
    ("bucket_map.rs", "        self.count = last;\n", "", "unit"),
    ("bucket_map.rs", "                    older.push(link);\n", "                    drop(link);\n", "unit"),
    ("access.rs", "(left & !(ty.all() | SYNCHRONIZE) == 0)", "true", "unit"),
    ("access.rs", "self.is_part_of(may | READ_CONTROL)", "true", "unit"),
    ("access.rs", "if self.maximum { may }", "if false { may }", "unit"),
    ("name.rs", "if components().any(|component| component.is_empty()) {", "if false {", "unit"),
    ("name.rs", "if rest.peek().is_none() =>", "if true =>", "unit"),
    ("name.rs", "if matches!(component, [ZERO, _, ..]) {", "if false {", "unit"),
    ("name.rs", "Self::Names(_) if is(\"Global\") => Some(Self::Names(0))", "Self::Names(n) if is(\"Global\") => Some(Self::Names(n))", "unit"),
    ("name_mode.rs", "        0 => Ok(None),\n", "", "unit"),
    ("name_mode.rs", "if rights & READ_CONTROL != 0 {", "if true {", "unit"),
    ("name_mode.rs", ".filter(|wanted| wanted.is_part_of(rights))", "", "unit"),
    ("name_mode.rs", "rights == 0 || self.ty != ty", "rights == 0", "unit"),
    ("name_mode.rs", "(self.may | READ_CONTROL) & (granted", "(granted", "unit"),
    ("quota.rs", "filter(|more| *more <= limit)", "filter(|more| *more < limit)", "unit"),
    ("quota.rs", "if cmpxchg(&self.0, used, more) {", "if cmpxchg(&self.0, used, more) || true {", "loom"),
    ("upcase.rs", "run.first <= unit", "run.first < unit", "unit"),
    ("upcase.rs", "&& unit.wrapping_sub(run.first).checked_rem(run.step) == Some(0)", "", "unit"),
    ("info_rules.rs", "flags & !known == 0 && ", "", "unit"),
    ("info_rules.rs", "&& !(attach && flags & REMOVE_FD != 0)", "", "unit"),
    ("info_rules.rs", "(attach || fd == 0)", "true", "unit"),
    ("info_rules.rs", "entry(other).id <= best", "entry(other).id < best", "unit"),
    ("info_rules.rs", "(id.key == key).then_some(id.schema)", "Some(id.schema)", "unit"),
    ("info_rules.rs", "    if present.sealed {\n", "    if false {\n", "unit"),
    ("info_rules.rs", "if expected != 0 && expected != present.generation {", "if expected > present.generation {", "unit"),
    ("info_rules.rs", "Some(_) if item.flags & CREATE_ONLY != 0 => return Err(Refused::Exists),", "", "unit"),
    ("info_rules.rs", "fits &= limits.check_entry(item.size).is_ok();", "", "unit"),
    ("info_rules.rs", "if size > self.entry_bytes {", "if size >= self.entry_bytes {", "unit"),
    ("info_rules.rs", "count == 0 || count > MAX_ITEMS", "count > MAX_ITEMS", "unit"),
    ("info_rules.rs", "count > MAX_ITEMS", "count >= MAX_ITEMS", "unit"),
    ("info_rules.rs", " || items == 0", "", "unit"),
    ("info_rules.rs", "        check_address(item.data, item.size)?;\n", "", "unit"),
    ("info_rules.rs", "        invalid_if(!are_flags_valid(item.flags, item.fd))?;\n", "", "unit"),
    ("info_rules.rs", "invalid_if(!are_distinct(items, |item| given(item).id))", "Ok(())", "unit"),
    ("info_rules.rs", "flags & !GET_FD != 0", "flags & !(GET_FD | 2) != 0", "unit"),
    ("info_rules.rs", "    check_address(data, size)\n", "    let _ = (data, size);\n    Ok(())\n", "unit"),
    ("info_rules.rs", "if size > room {", "if size >= room {", "unit"),
    ("info_rules.rs", "if self.has_file { HAS_FD }", "if self.has_file { 0 }", "unit"),
    ("mod.rs", "size != 0 && address == 0", "size != 0", "unit"),
    ("mod.rs", "size != 0 && address == 0", "address == 0", "unit"),
    ("info_rules.rs", "self.bytes <= limits.bytes", "true", "unit"),
    ("info_rules.rs", "self.files <= limits.files", "true", "unit"),
    ("info_rules.rs", "self.bytes = self.bytes.saturating_sub(present.size);", "", "unit"),
    ("info_rules.rs", "(had_file && flags & REMOVE_FD == 0)", "had_file", "unit"),
    ("global_access.rs", "0 => opener.same_user,", "0 => true,", "unit"),
    ("global_access.rs", "_ => return false,", "_ => false,", "unit"),
    ("global_access.rs", "opener.same_namespace\n        && match", "match", "unit"),
    ("global_access.rs", "usual || policy.allow_nonsecure", "policy.allow_nonsecure", "unit"),
    ("global_access.rs", "usual && opener.admitted", "opener.admitted", "unit"),
    ("keyed_mutex_rules.rs", "self.size != 0 && self.size as usize != own", "self.size as usize != own", "unit"),
    ("keyed_mutex_rules.rs", "self.size != 0 && self.size as usize != own", "(self.size as usize) < own", "unit"),
    ("keyed_mutex_rules.rs", "self.size != 0 && (self.size as usize) < own", "(self.size as usize) < own", "unit"),
    ("keyed_mutex_rules.rs", "self.size != 0 && (self.size as usize) < own", "self.size != 0 && (self.size as usize) <= own", "unit"),
    ("keyed_mutex_rules.rs", "self.size > MAX_PRIVATE_DATA", "self.size >= MAX_PRIVATE_DATA", "unit"),
    ("keyed_mutex_rules.rs", "self.size > MAX_PRIVATE_DATA", "self.size > 2 * MAX_PRIVATE_DATA", "unit"),
    ("keyed_mutex_rules.rs", "        check_address(address, size)?;\n", "", "unit"),
    ("keyed_mutex_rules.rs", "        _ => Err(Invalid),", "        _ => Ok(Sharing::Nt),", "unit"),
    ("open_rules.rs", "(!bits::KNOWN | bits::SIGNAL_BY_KMD)", "!bits::KNOWN", "unit"),
    ("open_rules.rs", "flags & bits::NO_SIGNAL != 0 && flags & bits::NO_WAIT != 0", "false", "unit"),
    ("open_rules.rs", "return Err(SyncRefusal::Mismatch);", "return Err(SyncRefusal::Invalid);", "unit"),
    ("open_rules.rs", "!self.is_for_device || self", "self", "unit"),
    ("open_rules.rs", "self.is_fence && !self.has_engines", "!self.has_engines", "unit"),
    ("open_rules.rs", "self.is_fence && !self.has_engines", "false", "unit"),
    ("open_rules.rs", "given.count != 0 && !self.has_infos", "!self.has_infos", "unit"),
    ("open_rules.rs", "!self.by_nt && given.runtime_data == 0", "given.runtime_data == 0", "unit"),
    ("open_rules.rs", "self.by_nt && !self.has_runtime_data", "false", "unit"),
    ("open_rules.rs", "given.total_driver_data < own.total_driver_data", "given.total_driver_data <= own.total_driver_data", "unit"),
    ("rotation_rules.rs", ".min_by_key(", ".max_by_key(", "unit"),
    ("rotation_rules.rs", "        .filter(|(_, turn)| turn.is_suspended)\n", "", "unit"),
    ("rotation_rules.rs", "const TIMES: u64 = 4;", "const TIMES: u64 = 1;", "unit"),
    ("rotation_rules.rs", ".clamp(SHORTEST, LONGEST)", ".max(SHORTEST)", "unit"),
    ("rotation_rules.rs", "since.saturating_add(slice)", "since", "unit"),
    ("share_rules.rs", "!(1..=max).contains(&count) || handles", "handles", "unit"),
    ("share_rules.rs", "handles == 0 || output == 0", "output == 0", "unit"),
    ("share_rules.rs", "handles == 0 || output == 0", "handles == 0", "unit"),
    ("share_rules.rs", "MAX_OBJECTS: usize = 3", "MAX_OBJECTS: usize = 4", "unit"),
    ("share_rules.rs", "wanted.within(may)", "wanted.within(u32::MAX)", "unit"),
    ("share_rules.rs", "grant(ty, self.desired, own)?", "grant(ty, self.desired, u32::MAX)?", "unit"),
    ("share_rules.rs", "self.has(!(dup::SAME_ACCESS | dup::INHERIT))", "false", "unit"),
    ("share_rules.rs", "self.has(dup::SAME_ACCESS) && self.desired != 0", "false", "unit"),
    ("share_rules.rs", "            return Ok(own);\n", "            return Ok(own | 1 << 16);\n", "unit"),
    ("share_rules.rs", "!member.by_nt || is_elsewhere(member)", "!member.by_nt", "unit"),
    ("share_rules.rs", "!member.by_nt || is_elsewhere(member)", "is_elsewhere(member)", "unit"),
    ("allocation_rules.rs", "self.has(!KNOWN)\n                || ", "", "unit"),
    ("allocation_rules.rs", "self.has(NT_SECURITY_SHARING) && !self.has(CREATE_SHARED)", "false", "unit"),
    ("allocation_rules.rs", "self.has(EXISTING_SYS_MEM) && self.has(EXISTING_SECTION)", "false", "unit"),
    ("allocation_rules.rs", "        flags & !bits::ZEROED\n", "        flags\n", "unit"),
    ("allocation_rules.rs", "self.count != 1", "self.count > 1", "unit"),
    ("allocation_rules.rs", "|| self.size % PAGE != 0", "", "unit"),
    ("allocation_rules.rs", "describes && address == 0", "false", "unit"),
    ("allocation_rules.rs", "flags & !KNOWN_ENTRY_FLAGS != 0\n                || ", "", "unit"),
    ("allocation_rules.rs", "!reserved_is_zero\n                || ", "", "unit"),
    ("allocation_rules.rs", "                || driver_data_size > MAX_PRIVATE_DATA", "", "unit"),
    ("allocation_rules.rs", "self.existing.ok_or(Invalid)?", "self.existing.unwrap_or(0)", "unit"),
    ("allocation_rules.rs", "Source::new(flags, existing, page).map(drop)", "Ok(())", "unit"),
    ("allocation_rules.rs", "has_existing || existing != 0", "has_existing", "unit"),
    ("allocation_rules.rs", "self.has(bits::CREATE_SHARED) && !self.creates_resource()\n                || ", "", "unit"),
    ("allocation_rules.rs", "self.count > MAX_ALLOCATIONS\n", "self.count > MAX_ALLOCATIONS + 1\n", "unit"),
    ("allocation_rules.rs", "                || !existing.is_whole\n", "", "unit"),
    ("allocation_rules.rs", "existing == 0 || existing % page != 0", "existing % page != 0", "unit"),
    ("allocation_rules.rs", "existing == 0 || existing % page != 0", "existing == 0 || existing % PAGE != 0", "unit"),
    ("allocation_lists.rs", "list != 0 || count != 0", "list != 0 && count != 0", "unit"),
    ("allocation_lists.rs", "list == 0 || count == 0 || count > MAX_ALLOCATIONS", "list == 0 || count > MAX_ALLOCATIONS", "unit"),
    ("allocation_lists.rs", "list == 0 || count == 0 || count > MAX_ALLOCATIONS", "list == 0 || count == 0", "unit"),
    ("allocation_lists.rs", "count > MAX_DESTROYED", "count >= MAX_DESTROYED", "unit"),
    ("allocation_lists.rs", "count != 0 && (list == 0", "(list == 0", "unit"),
    ("allocation_lists.rs", "!(destroy::ASSUME_NOT_IN_USE | destroy::SYNCHRONOUS)", "!destroy::ASSUME_NOT_IN_USE", "unit"),
    ("allocation_lists.rs", "if one == next", "if one > next", "unit"),
    ("allocation_lists.rs", "own.is_none_or(|own| own == device)\n            && ", "", "unit"),
    ("allocation_lists.rs", "*self.0.get_or_insert(resource) == resource", "{ let _ = resource; true }", "unit"),
    ("engine/log.rs", "Ok(self.store64_release(log.va, (u64", "Ok(self.store64(log.va, (u64", "loom"),
    ("ddi/interrupt_lock.rs", "let _held = self.0.lock();", "let _held = 0;", "unit"),
    ("kmd/soft/native_fences.rs", "            self.copy_monitored_value(update);\n", "", "loom"),
    ("kmd/soft/native_fences.rs", "            self.look_for(class, update)?;\n", "", "loom"),
    ("users.rs", "user.device == device && wants(user)", "wants(user)", "unit"),
    ("users.rs", "        if user.offer.is_some() {\n            return false;\n        }\n", "", "unit"),
    ("users.rs", "(true, false) => self.space.sub_usage(usage),", "", "unit"),
    ("fence_log.rs", "(ahead < self.entries)", "(ahead <= self.entries)", "unit"),
    ("fence_log.rs", "        self.next = self.further(end, self.numbers() - fresh);\n", "", "unit"),
    ("fence_log.rs", "(index < self.entries).then", "(index <= self.entries).then", "unit"),
    ("fence_log.rs", "entries: entries.max(1).into(),", "entries: LogSize::FIRST.entries().into(),", "unit"),
    ("fence_log.rs", "match self < Self::LAST {", "match true {", "unit"),
    ("fence_log.rs", "if *operation != self.ty.operation() {", "if false {", "unit"),
    ("fence_log.rs", "if entry.end < self.last_end {", "if entry.end <= self.last_end {", "unit"),
    ("fence_log.rs", "self.cpu_ns.saturating_sub(apart_ns)", "self.cpu_ns.saturating_add(apart_ns)", "unit"),
    ("interrupt_record.rs", "            self.post_all();\n        }\n    }\n\n    /// Tells of everything", "        }\n    }\n\n    /// Tells of everything", "unit"),
    ("interrupt_record.rs", "        platform::cmpxchg(&self.is_full, 1, 0)\n", "        platform::load32_acquire(&self.is_full) != 0\n", "unit"),
    ("engine/log.rs", "if index >= log.entries =>", "if index > log.entries =>", "unit"),
    ("engine/log.rs", "(0, wraparounds.wrapping_add(1))", "(0, wraparounds)", "unit"),
    ("engine/log.rs", "index.checked_rem(log.entries).ok_or(Illegal::Log)?", "index", "unit"),
    ("engine/command_processor/native_fences.rs", "            self.observe();\n            return", "            return", "unit"),
    ("engine/command_processor/native_fences.rs", "self.waited(wait.fence.value, self.queue.observed)", "self.waited(wait.fence.value, None)", "unit"),
    ("engine/command_processor/native_fences.rs", "        logged?;\n", "", "unit"),
    ("engine/queue.rs", "            logs: self.logs,\n", "            logs: Logs::NONE,\n", "unit"),
    ("kmd/soft/allocation_data.rs", "data.alignment > MAX_ALIGNMENT", "data.alignment > 2 * MAX_ALIGNMENT", "unit"),
    ("kmd/soft/allocation_data.rs", "!data.alignment.is_power_of_two()", "false", "unit"),
    ("kmd/soft/allocation_data.rs", "|| word(44) != 0", "", "unit"),
    ("kmd/soft/allocation_data.rs", "height: word(32),", "height: word(36),", "unit"),
    ("sync_flags.rs", "self.has(SIGNAL_BY_KMD) && self.has(!SIGNAL_BY_KMD)", "false", "unit"),
    ("sync_flags.rs", "self.has(SHARED) && !self.has(NT_SECURITY_SHARING) && is_value_fence", "false", "unit"),
    ("sync_flags.rs", "self.has(SHARED) && is_notification", "false", "unit"),
    ("sync_flags.rs", "(!is_value_fence || !self.has(NT_SECURITY_SHARING))", "!is_value_fence", "unit"),
    ("sync_flags.rs", "self.wait && other.wait", "self.wait || other.wait", "unit"),
    ("feature_agreement.rs", "if !is_known(id) {\n            return", "if false {\n            return", "unit"),
    ("start_rules.rs", "if caps.no_64_bit_atomics || ", "if ", "unit"),
    ("start_rules.rs", " || caps.swizzling_ranges != 0", "", "unit"),
    ("start_rules.rs", "if caps.native_gpu_fence && ", "if ", "unit"),
    ("start_rules.rs", "!enabled.has(NATIVE_FENCE)", "false", "unit"),
    ("feature_agreement.rs", "match self.enabled.has(id) {", "match true {", "unit"),
    ("feature_agreement.rs", "support.by_driver && support.on_current_config", "support.by_driver", "unit"),
    ("feature_agreement.rs", "support.by_driver && support.on_current_config", "support.on_current_config", "unit"),
    ("feature_agreement.rs", "offered?.and(versions)?.ends().1", "offered?.and(versions)?.ends().0.wrapping_add(9)", "unit"),
    ("feature.rs", "if min == 0 || min > max {", "if min > max {", "unit"),
    ("feature.rs", "self.min.max(other.min)", "self.min", "unit"),
    ("feature.rs", "self.max.min(other.max)", "self.max", "unit"),
    ("feature_overrides.rs", "_ if !self.enabled => None,", "_ if false => None,", "unit"),
    ("feature_overrides.rs", "Some(versions) => all.and(versions),", "Some(versions) => Some(versions),", "unit"),
    ("feature_overrides.rs", "if place.replace(number(value)?).is_some() {", "if place.replace(number(value)?) == Some(9) {", "unit"),
    ("feature_overrides.rs", "if !feature::is_known(id.into()) {", "if false {", "unit"),
    ("start_rules.rs", "record.enable(id, version);", "record.enable(id, version.wrapping_add(1));", "unit"),
    ("start_rules.rs", "functions == NativeFenceFunctions::ALL", "true", "unit"),
    ("start_rules.rs", "!caps.stride.is_power_of_two() || ", "", "unit"),
    ("start_rules.rs", "if caps.map_to_gpu_system_process && !has_addresses {", "if false {", "unit"),
    ("kept_pages.rs", "end: kept.first.checked_sub(kept.first.checked_rem(table)?)?,", "end: kept.first,", "unit"),
    ("kept_pages.rs", "first: kept.end.checked_next_multiple_of(table)?,", "first: kept.end,", "unit"),
    ("kept_pages.rs", "size(below) > size(above)", "size(below) < size(above)", "unit"),
    ("kept_pages.rs", "wish.first.max(lowest)", "wish.first", "unit"),
    ("kept_pages.rs", "wish.end.min(pages)", "pages", "unit"),
    ("feature.rs", "self.0 & Self::bit(id) != 0", "self.0 & Self::bit(id & 63) != 0", "unit"),
    ("adapter_info.rs", "buf.len().min(size.max)", "buf.len()", "unit"),
    ("adapter_info.rs", "if payload.u32_at(at)? < asked.caps.physical_adapters {", "if payload.u32_at(at)? <= asked.caps.physical_adapters {", "unit"),
    ("adapter_info.rs", ".get(out.u32_at(0)? as usize)", ".get(out.u32_at(0)? as usize & 3)", "unit"),
    ("adapter_info/identity.rs", "[d, c, b, a, f, e, h, g, ", "[a, b, c, d, e, f, g, h, ", "unit"),
    ("adapter_info/identity.rs", "matches!(position, 4 | 6 | 8 | 10)", "matches!(position, 4 | 6 | 8)", "unit"),
    ("kmd/soft/identity.rs", "        config.index,\n        luid.low,", "        0,\n        luid.low,", "unit"),
    ("adapter_info.rs", "|| ordinal >= asked.caps.nodes", "", "unit"),
    ("adapter_info.rs", "out.u32_at(0)? < asked.caps.video_present_sources", "out.u32_at(0)? <= asked.caps.video_present_sources", "unit"),
    ("adapter_info/caps.rs", "            ty.acg,\n            false,\n", "            ty.acg,\n", "unit"),
    ("adapter_info/caps.rs", "!caps.no_64_bit_atomics", "true", "unit"),
    ("adapter_info/identity.rs", "ids.sub_system", "ids.sub_vendor", "unit"),
    ("adapter_info/filter.rs", "&& !ty.compute_only;", ";", "unit"),
    ("adapter_info/filter.rs", "(self.compute_only || !ty.compute_only)", "self.compute_only", "unit"),
    ("kmd/soft/identity.rs", "&& version % 100 == 0", "", "unit"),
    ("kmd/soft/nodes.rs", "(EngineType::ThreeD, _) if compute_only", "(EngineType::ThreeD, _) if false", "unit"),
    ("residency.rs", "status == NOT_RESIDENT", "status == IN_GPU_MEMORY", "unit"),
    ("adapter_info/registry.rs", "& !KNOWN_FLAGS != 0", "& 0 != 0", "unit"),
    ("adapter_info/payload.rs", "capacity.saturating_sub(1)", "capacity", "unit"),
    ("adapter_info.rs", "if buf.len() < size.min {", "if false {", "unit"),
    ("adapter_info/registry.rs", "out.len() < size(asked.caps).max", "out.len() + 1 < size(asked.caps).max", "unit"),
    ("ddi/cpu_event.rs", "        drop(self.gate.close());\n", "", "loom"),
    ("ddi/border/mailbox.rs", "platform::cmpxchg(place, event.generation, 0);", "let _ = place;", "unit"),
    ("ddi/border/host.rs", ".filter(|place| place.as_ref().is_some_and(|event| event.id == id))", "", "unit"),
    ("ddi/border/receiver.rs", ".filter(|_| place.generation == event.generation)", "", "unit"),
    ("ddi/border/guest.rs", "        self.receiver.look();\n", "", "unit"),
    ("ddi/gate.rs", "0 => Some(STOPPING),", "0 => Some(CLOSED),", "loom"),
    ("ddi/gate.rs", "CLOSED => STOPPING,", "CLOSED => CLOSED,", "loom"),
    ("ddi/gate.rs", "self.enter_unless(ANY_STOP | ANY_RESET)", "self.enter_unless(STOPPING)", "loom"),
    ("ddi/gate.rs", "(state & (STOPPING | RESETTING) == 0).then(|| count(state))", "Some(count(state))", "loom"),
    ("ddi/gate.rs", "if closed != STOPPING {", "if false {", "loom"),
    ("ddi/gate.rs", "if state & STOPPED != 0 {", "if true {", "loom"),
    ("ddi/gate.rs", "(state & (STOPPING | STOPPED | RESETTING) == 0).then(|| count(state))", "(state & (ANY_STOP | RESETTING) == 0).then(|| count(state))", "loom"),
    ("ddi/gate.rs", "DRAINING => RESETTING,", "DRAINING => DRAINING,", "loom"),
    ("ddi/gate.rs", "if state != RESETTING {", "if false {", "loom"),
    ("tdr.rs", "Some(request) if look.obeyed >= request.number", "Some(_) if look.obeyed > 0", "unit"),
    ("tdr.rs", "if is_over || look.is_idle {", "if is_over {", "unit"),
    ("tdr.rs", "request.looks >= LOOKS\n", "true\n", "unit"),
    ("tdr.rs", "since.reached == reached && !look.is_stopped", "since.reached == reached", "unit"),
    ("tdr.rs", "oldest.is_some_and(|at| now_ns.saturating_sub(at) < WINDOW_NS)", "false", "unit"),
    ("table_tree.rs", "        // MEM-76.\n        self.suspend(tables);\n", "", "unit"),
    ("table_tree.rs", "        if self.rules.is_idle {", "        if false {", "unit"),
    ("table_tree.rs", "            self.is_stale |= pages.were_valid;\n", "", "unit"),
    ("table_tree.rs", "        self.is_stale |= !is_there;\n", "", "unit"),
    ("table_tree.rs", "                self.initialise(tables, key);\n", "", "unit"),
    ("table_tree.rs", "        self.suspend(tables);\n        self.is_stale = true;\n", "", "unit"),
    ("table_tree.rs", "            if tables.page_size(leaf) == PageSize::Kib64 {", "            if false {", "unit"),
    ("table_tree.rs", "            if self.rules.explicit_invalidation {", "            if false {", "unit"),
    ("table_tree.rs", "        if !self.rules.explicit_invalidation {", "        if true {", "unit"),
    ("table_tree.rs", "self.is_stale || !self.rules.invalid_not_cached", "self.is_stale", "unit"),
    ("table_tree.rs", "            match self.has_dead {", "            match false {", "unit"),
    ("table_tree.rs", "        if index >= self.root_entries {", "        if index > self.root_entries {", "unit"),
    ("table_tree.rs", "        self.shrink_root(tables);\n", "", "unit"),
    ("table_tree.rs", "                self.sweep(tables, at, at.saturating_add(1));\n", "", "unit"),
    ("table_tree.rs", "        if self.is_idle {\n            tables.resume();\n        }\n", "", "unit"),
    ("kmd_ranges.rs", "pages != 0 && pages.checked_rem(self.table) == Some(0)", "pages != 0", "unit"),
    ("kmd_ranges.rs", "            true => self.left.end = pages.first,", "            true => self.left.end = pages.end,", "unit"),
    ("kmd_ranges.rs", "(first >= self.left.first && end <= self.left.end)", "(end <= self.left.end)", "unit"),
    ("gpu_ranges.rs", "        .all(|reservation| reservation.owner != Owner::Kmd { is_shared: false })", "        .all(|_| true)", "unit"),
    ("gpu_ranges.rs", "        self.freed() != Some(self)", "        true", "unit"),
    ("gpu_ranges.rs", "            if hint.pages >= pages || align(hint.below) == Some(first) {", "            if true {", "unit"),
    ("gpu_ranges.rs", "            if hint.pages <= room {", "            if false {", "unit"),
    ("gpu_ranges.rs", "                hint.below = hint.below.min(start);", "                hint.below = hint.below.min(first);", "unit"),
    ("gpu_ranges.rs", "                *own = Hint { pages, below: end };", "", "unit"),
    ("gpu_ranges.rs", "        if bounds.first > self.start(pages) {", "        if false {", "unit"),
    ("kmd/soft/page_tables.rs", "let other = platform::load_acquire(word) & !mask;", "let other = 0 & mask;", "unit"),
    ("kmd/soft/page_tables.rs", "u32::try_from(bits).map_or(Entry::INVALID.bits(), u64::from)", "bits & u64::from(u32::MAX)", "unit"),
    ("kmd/soft/config.rs", "self != Self::Doc2 || end <= REACH_OF_4_BYTES", "true", "unit"),
    ("ddi/object/suspension.rs", "suspend == Suspend::Pending || !suspension.take(id.into())", "false", "unit"),
    ("kmd/fake/journal.rs", "may_sleep != entry.is_passive()", "false", "unit"),
    ("ddi/object/allocation.rs", "        if !Shared::ptr_eq(&device.process.port, &allocation.port) {", "        if false {", "unit"),
    ("ddi/object/allocation.rs", "        let _turn = device.turns.take();\n\n        Ok(Some(Self {", "        Ok(Some(Self {", "unit"),
    ("ddi/port.rs", "            self.kmd.stop_device(class);\n", "", "unit"),
    ("kmd/soft/mod.rs", "(KNOWN_ESCAPE, KNOWN_ESCAPE_SIZE) =>", "(KNOWN_ESCAPE, _) =>", "unit"),
    ("adapter_info/payload.rs", "rest.fill(0);", "", "unit"),
    ("engine/packet.rs", "bits(header, 7, 2) != 0 || bit(header, 0)", "bits(header, 7, 2) != 0", "unit"),
    ("engine/packet.rs", "packet.is_paging && privilege != Privilege::Paging", "false", "unit"),
    ("engine/packet.rs", "Self::AtLeast(first) if count >= first", "Self::AtLeast(first) if count >= first - 1", "unit"),
    ("engine/packets.rs", "fields.rest == 2 && to % 8 == 0 && !fixed", "fields.rest == 2 && !fixed", "unit"),
    ("engine/packets.rs", "    check(bits(command, 27, 26) == 0)?;\n", "", "unit"),
    ("engine/packets.rs", "        1 | 2 | 4 => Interrupt::MonitoredFence,", "        1 | 2 | 4 | 6 => Interrupt::MonitoredFence,", "unit"),
    ("engine/command_processor/native_fences.rs", "if value > monitored_value {", "if value >= monitored_value {", "unit"),
    ("engine/command_processor/native_fences.rs", "        self.fences.stored(fence);\n        Ok(())", "        Ok(())", "unit"),
    ("engine/command_processor/native_fences.rs", "            always_signal(&mut self.space)?;\n", "", "unit"),
    ("engine/run_list/fence_waits.rs", "        arena.set_waiting_for(fence, queues);\n        self.0 = self.0.wrapping_sub(1);", "        self.0 = self.0.wrapping_sub(1);", "unit"),
    ("engine/command_processor.rs", "if size > left {", "if size > left.saturating_add(1) {", "unit"),
    ("engine/command_processor/native_fences.rs", "return self.space.as_system().store64(va, value);", "return self.space.store64(va, value);", "unit"),
    ("engine/command_processor.rs", "            atomic.expected = found;\n", "", "unit"),
    ("engine/command_processor.rs", "        if !self.queue.has(dwords) {", "        if false {", "unit"),
    ("engine/operation.rs", "MIN_POLL_NS.max(u64::from(interval).saturating_mul(TICKS_PER_INTERVAL))", "u64::from(interval).saturating_mul(TICKS_PER_INTERVAL)", "unit"),
    ("engine/queue.rs", "        *self.callers.get_mut(self.nesting)? = self.current;\n", "        self.callers.get_mut(self.nesting)?;\n", "unit"),
    ("engine/queue.rs", "            && callers.copied().all(|caller| caller.dwords == 0)\n", "", "unit"),
    ("engine/operation.rs", "matches!(self, Self::Write(_) | Self::WriteQword { .. })", "false", "unit"),
    ("submission_order.rs", "self.fetched.max(self.completed) >= self.submitted", "self.fetched >= self.submitted", "unit"),
    ("engine/space.rs", "self.find_run(to, some, true)?", "self.find_run(to, some, false)?", "unit"),
    ("engine/translation.rs", "Ok((target, bytes.min(run)))", "Ok((target, bytes))", "unit"),
    ("engine/translation.rs", "&& self.root == root.table\n    }\n\n", "\n    }\n\n", "unit"),
    ("engine/translation.rs", "&& self.root == root.table\n    }\n}", "\n    }\n}", "unit"),
    ("engine/translation.rs", "        self.tables = [None; TABLES];\n", "", "unit"),
    ("engine/translation.rs", "Entries::Small(all) if start < first || last < end => {", "Entries::Small(all) if false => {", "unit"),
    ("engine/translation.rs", "                entries.keep(&line.entries);\n", "", "unit"),
    ("engine/translation.rs", "^ (number >> 8) ", "", "unit"),
    ("engine/translation.rs", "|| profile.index(va, top) >= root.entries", "|| profile.index(va, top) > root.entries", "unit"),
    ("engine/translation.rs", "self.lines.get_mut(place(number, root.process))", "None::<&mut Option<Line>>", "unit"),
    ("engine/translation.rs", "if entry.is_system_only() && !access.system {", "if entry.is_system_only() && access.system {", "unit"),
    ("engine/run_list/ready.rs", "self.slices < LOWER_EVERY || others == 0", "true || others == 0", "unit"),
    ("engine/run_list/mod.rs", "        node.has_work = false;\n", "", "unit"),
    ("kmd/soft/polls.rs", "            self.wakeup.ring();\n", "", "loom"),
    ("kmd/soft/cmp.rs", "at == NEVER || at == *woken", "at == NEVER || *woken != NEVER", "loom"),
    ("engine/run_list/blocked.rs", "units * UNIT_NS", "(units - 1) * UNIT_NS", "unit"),
    ("engine/run_list/blocked.rs", "\n            .max(class_within(waited_ns / LATE_BY / UNIT_NS))", "", "unit"),
    ("engine/run_list/mod.rs", "            if !again {", "            if false {", "unit"),
    ("engine/command_processor.rs", "            again = false;\n", "", "unit"),
    ("engine/command_processor.rs", "            .div_ceil(PAGE / BYTES_PER_UNIT)\n", "", "unit"),
    ("engine/page_table.rs", "**entry == first.further(*pages)", "entry.is_valid()", "unit"),
    ("ddi/slab.rs", "if is_empty && self.empty >= SPARE {", "if false {", "unit"),
    ("ddi/slab.rs", "self.there.put(number, gone.is_none());", "", "unit"),
    ("engine/run_list/suspension.rs", "        node.request = is_running.then_some(fence_id);\n", "        node.request = node.request.or(is_running.then_some(fence_id));\n", "unit"),
]


def source(top, file):
    """Where a file of the table is, below `top`."""
    folder = "" if file.split("/")[0] in FOLDERS else "logic"
    return top / "rust" / folder / file


def copy_tree():
    """A workspace with the host crate alone, next to copies of the folders that it includes.

    The copies are new files, so that cargo does not take what an earlier run left for up to date.
    """
    shutil.rmtree(WORK / "rust", ignore_errors=True)
    shutil.rmtree(WORK / "tools", ignore_errors=True)
    for folder in FOLDERS:
        shutil.copytree(REPO / "rust" / folder, WORK / "rust" / folder, copy_function=shutil.copy)
    shutil.copytree(REPO / "tools/host", WORK / "tools/host", copy_function=shutil.copy)
    shutil.copy(REPO / "tools/Cargo.lock", WORK / "tools/Cargo.lock")
    manifest = (REPO / "tools/Cargo.toml").read_text()
    start = manifest.index("members = [")
    end = manifest.index("]", start)
    manifest = manifest[:start] + 'members = ["host"' + manifest[end:]
    (WORK / "tools/Cargo.toml").write_text(manifest)


def environment(tool):
    """What cargo gets for one tool."""
    environment = dict(os.environ, CARGO_TARGET_DIR=str(WORK / "target" / tool))
    if tool == "loom":
        environment.update(
            RUSTFLAGS="--cfg loom",
            CARGO_PROFILE_RELEASE_LTO="off",
            CARGO_PROFILE_RELEASE_CODEGEN_UNITS="16",
            CARGO_PROFILE_RELEASE_DEBUG="false",
        )
    return environment


def cargo(tool, *arguments, limit=None):
    """Runs cargo test for one tool, for so many seconds at most; true if it succeeded."""
    command = ["cargo", "test", "--quiet", "-p", "host"]
    if tool == "loom":
        command.append("--release")
    run = subprocess.Popen(
        command + list(arguments),
        cwd=WORK / "tools",
        env=environment(tool),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return run.wait(limit) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        # Also the test itself, which cargo does not take with it.
        if run.returncode is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()


def judge(file, old, new, tool, limit):
    """What is wrong with a mutant; None if it was killed."""
    path = source(WORK, file)
    text = path.read_text()
    if text.count(old) != 1:
        return "the text to replace does not occur exactly once"
    path.write_text(text.replace(old, new))
    try:
        if not cargo(tool, "--no-run"):
            return "does not compile"
        if cargo(tool, limit=limit):
            return "survived"
        return None
    finally:
        path.write_text(text)


def main():
    chosen = [mutant for mutant in MUTANTS if not sys.argv[1:] or mutant[0] in sys.argv[1:]]
    copy_tree()
    print("TAP version 13")
    limits = {}
    for tool in sorted({mutant[3] for mutant in chosen}):
        cargo(tool, "--no-run")
        began = time.monotonic()
        if not cargo(tool):
            print(f"Bail out! {tool} fails without a mutant", flush=True)
            return 1
        limits[tool] = max(AT_LEAST_SECONDS, SLOWER * (time.monotonic() - began))
    print(f"1..{len(chosen)}", flush=True)
    failed = 0
    for number, (file, old, new, tool) in enumerate(chosen, 1):
        problem = judge(file, old, new, tool, limits[tool])
        failed += problem is not None
        verdict = "not ok" if problem else "ok"
        change = f"{' '.join(old.split())} -> {' '.join(new.split()) or 'nothing'}"
        print(f"{verdict} {number} - {tool}: {file}: {change}", flush=True)
        if problem:
            print(f"# {problem}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
