// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls that the module has refused, and which rules of the specification say so.

use opendxg::Status;
use serde::Serialize;

/// A line `dxg-refusal`: the same call with the same answer, once or several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// How long ago it was refused last.
    pub ago_ns: u64,
    /// How often it was refused.
    pub times: Option<u64>,
    /// Number of the call.
    pub call: u32,
    /// Its name in the header, without `DXG_IOCTL_`; `None` if the module has no such call.
    pub name: Option<String>,
    /// The answer; `None` if there is no such call.
    pub status: Option<Status>,
}

/// The same as it is shown.
#[derive(Serialize)]
pub struct Shown<'a> {
    ago_ns: u64,
    times: Option<u64>,
    call: u32,
    name: Option<&'a str>,
    status: Option<u32>,
    status_name: Option<&'static str>,
    rules: Option<&'static str>,
}

impl Refusal {
    /// `AGO times=N call=NUMBER name=NAME status=STATUS`, of which `times` may be missing.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let ago_ns = words.next()?.parse().ok()?;
        let (mut times, mut call, mut name, mut status) = (None, None, None, None);
        for word in words {
            match word.split_once('=') {
                Some(("times", value)) => times = value.parse().ok(),
                Some(("call", value)) => call = hex(value),
                Some(("name", value)) if value != "-" => name = Some(value.to_owned()),
                // CAST: the same bits.
                Some(("status", value)) => status = hex(value).map(|bits| Status(bits as i32)),
                _ => (),
            }
        }
        let call = call?;
        Some(Self {
            ago_ns,
            times,
            call,
            name,
            status,
        })
    }

    /// The requirements that the answer may come from, where they are known.
    pub fn rules(&self) -> Option<&'static str> {
        let name = self.name.as_deref().unwrap_or_default();
        let status = self.status?;
        let own = RULES.iter().find(|rule| rule.0 == name && rule.1 == status);
        let general = GENERAL.iter().find(|rule| rule.0 == status);
        own.map(|rule| rule.2).or(general.map(|rule| rule.1))
    }

    /// For a document.
    pub fn shown(&self) -> Shown<'_> {
        Shown {
            ago_ns: self.ago_ns,
            times: self.times,
            call: self.call,
            name: self.name.as_deref(),
            // CAST: the same bits.
            status: self.status.map(|status| status.0 as u32),
            status_name: self.status.and_then(status_name),
            rules: self.rules(),
        }
    }

    /// The answer in words.
    pub fn answer(&self) -> String {
        match self.status {
            None => "no such call".into(),
            Some(status) => status_name(status)
                .and_then(|name| name.strip_prefix("STATUS_"))
                .map_or_else(|| format!("{:#010x}", status.0), str::to_owned),
        }
    }
}

fn status_name(status: Status) -> Option<&'static str> {
    let named = Status::NAMED.iter().find(|(own, _)| *own == status);
    named.map(|(_, name)| *name)
}

fn hex(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// What the answer means in any call that has no rule of its own below.
const GENERAL: [(Status, &str); 3] = [
    (Status::NO_MEMORY, "RES-105"),
    (Status::QUOTA_EXCEEDED, "RES-105"),
    (Status::DEVICE_REMOVED, "FEN-104"),
];

/// A call, an answer, and the requirements that lead to it.
type Rule = (&'static str, Status, &'static str);

/// The rules of calls.
const RULES: [Rule; 38] = [
    (
        "CREATESYNCHRONIZATIONOBJECT2",
        Status::INVALID_PARAMETER,
        "FEN-3 FEN-4 FEN-5 FEN-49",
    ),
    (
        "DESTROYSYNCHRONIZATIONOBJECT",
        Status::INVALID_PARAMETER,
        "FEN-52 MEM-11",
    ),
    (
        "WAITFORSYNCHRONIZATIONOBJECTFROMCPU",
        Status::INVALID_PARAMETER,
        "FEN-15 FEN-18 FEN-26 FEN-51",
    ),
    (
        "WAITFORSYNCHRONIZATIONOBJECTFROMCPU",
        Status::INVALID_HANDLE,
        "FEN-21 FEN-28",
    ),
    (
        "WAITFORSYNCHRONIZATIONOBJECTFROMCPU",
        Status::OBJECT_TYPE_MISMATCH,
        "FEN-21",
    ),
    (
        "WAITFORSYNCHRONIZATIONOBJECTFROMCPU",
        Status::ACCESS_DENIED,
        "FEN-25",
    ),
    (
        "WAITFORSYNCHRONIZATIONOBJECTFROMCPU",
        Status::ACCESS_VIOLATION,
        "FEN-18",
    ),
    (
        "WAITFORSYNCHRONIZATIONOBJECTFROMCPU",
        Status::NO_MEMORY,
        "FEN-45 RES-105",
    ),
    (
        "SIGNALSYNCHRONIZATIONOBJECTFROMCPU",
        Status::INVALID_PARAMETER,
        "FEN-18 FEN-32 FEN-35 MEM-11",
    ),
    (
        "SIGNALSYNCHRONIZATIONOBJECTFROMCPU",
        Status::ACCESS_DENIED,
        "FEN-37",
    ),
    (
        "OPENSYNCHRONIZATIONOBJECT",
        Status::INVALID_PARAMETER,
        "RES-10 RES-52 RES-103",
    ),
    (
        "OPENSYNCOBJECTFROMNTHANDLE",
        Status::INVALID_HANDLE,
        "RES-52",
    ),
    (
        "OPENSYNCOBJECTFROMNTHANDLE2",
        Status::INVALID_PARAMETER,
        "RES-52",
    ),
    (
        "OPENSYNCOBJECTFROMNTHANDLE2",
        Status::INVALID_HANDLE,
        "RES-52",
    ),
    ("SHAREOBJECTS", Status::INVALID_PARAMETER, "RES-33 RES-38"),
    ("SHAREOBJECTS", Status::INVALID_HANDLE, "RES-38"),
    ("OPENNTHANDLEFROMNAME", Status::INVALID_PARAMETER, "RES-43"),
    (
        "OPENSYNCOBJECTNTHANDLEFROMNAME",
        Status::INVALID_PARAMETER,
        "RES-43",
    ),
    (
        "CREATEALLOCATION",
        Status::INVALID_PARAMETER,
        "RES-23 RES-24",
    ),
    ("DESTROYALLOCATION2", Status::INVALID_PARAMETER, "RES-28"),
    (
        "OPENRESOURCE",
        Status::INVALID_PARAMETER,
        "RES-50 RES-53 RES-69",
    ),
    (
        "OPENRESOURCEFROMNTHANDLE",
        Status::INVALID_PARAMETER,
        "RES-50 RES-53 RES-69",
    ),
    ("OPENRESOURCEFROMNTHANDLE", Status::INVALID_HANDLE, "RES-50"),
    (
        "GETSHAREDRESOURCEADAPTERLUID",
        Status::INVALID_PARAMETER,
        "RES-53",
    ),
    ("CREATEKEYEDMUTEX2", Status::INVALID_PARAMETER, "RES-91"),
    ("OPENKEYEDMUTEX", Status::INVALID_PARAMETER, "RES-92"),
    ("OPENKEYEDMUTEX2", Status::INVALID_PARAMETER, "RES-92"),
    ("DESTROYKEYEDMUTEX", Status::INVALID_PARAMETER, "RES-94"),
    ("ACQUIREKEYEDMUTEX", Status::INVALID_PARAMETER, "RES-95"),
    (
        "ACQUIREKEYEDMUTEX2",
        Status::INVALID_PARAMETER,
        "RES-95 RES-101",
    ),
    ("RELEASEKEYEDMUTEX", Status::INVALID_PARAMETER, "RES-97"),
    (
        "RELEASEKEYEDMUTEX2",
        Status::INVALID_PARAMETER,
        "RES-97 RES-101",
    ),
    ("MAKERESIDENT", Status::INVALID_PARAMETER, "MEM-19"),
    ("EVICT", Status::INVALID_PARAMETER, "MEM-23"),
    (
        "RESERVEGPUVIRTUALADDRESS",
        Status::INVALID_PARAMETER,
        "MEM-41",
    ),
    ("MAPGPUVIRTUALADDRESS", Status::INVALID_PARAMETER, "MEM-43"),
    ("FREEGPUVIRTUALADDRESS", Status::INVALID_PARAMETER, "MEM-49"),
    (
        "CHANGEVIDEOMEMORYRESERVATION",
        Status::INVALID_PARAMETER,
        "MEM-37",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn lines() {
        let line = "2500 times=3 call=0x31 name=SIGNALSYNCHRONIZATIONOBJECTFROMCPU \
                    status=0xc000000d";
        let refusal = Refusal::parse(line).unwrap();
        assert_eq!(
            (refusal.ago_ns, refusal.times, refusal.call),
            (2500, Some(3), 0x31)
        );
        assert_eq!(refusal.status, Some(Status::INVALID_PARAMETER));
        assert_eq!(refusal.answer(), "INVALID_PARAMETER");
        assert_eq!(refusal.rules(), Some("FEN-18 FEN-32 FEN-35 MEM-11"));
        let unknown = Refusal::parse("1 times=1 call=0x7f name=- status=-").unwrap();
        assert_eq!((unknown.name.clone(), unknown.status), (None, None));
        assert_eq!(
            (unknown.answer(), unknown.rules()),
            ("no such call".into(), None)
        );
        let strange = Refusal::parse("1 call=0x7f name=NEW status=0xc0ffee00 more=1").unwrap();
        assert_eq!(
            (strange.answer(), strange.times),
            ("0xc0ffee00".into(), None)
        );
        for bad in ["", "x call=0x1", "1 name=NEW", "1 call=9"] {
            assert_eq!(Refusal::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_rule_of_the_call_comes_before_a_general_one() {
        let of = |name: &str, status: &str| {
            let line = format!("1 call=0x3a name={name} status={status}");
            Refusal::parse(&line).unwrap().rules()
        };
        let wait = "WAITFORSYNCHRONIZATIONOBJECTFROMCPU";
        assert_eq!(of(wait, "0xc0000017"), Some("FEN-45 RES-105"));
        assert_eq!(of("CREATEDEVICE", "0xc0000017"), Some("RES-105"));
        assert_eq!(of("CREATEDEVICE", "0xc0000001"), None);
    }

    /// Every rule is one of the specification and every call is one of the interface, once.
    #[test]
    fn rules_exist() {
        let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Documentation");
        let mut spec = String::new();
        for name in ["fences", "gpu", "memory", "shared-resources"] {
            spec += &fs::read_to_string(documents.join(format!("spec/{name}.md"))).unwrap();
        }
        let general = GENERAL.iter().map(|rule| rule.1);
        for rules in general.chain(RULES.iter().map(|rule| rule.2)) {
            for rule in rules.split(' ') {
                assert!(spec.contains(&format!("**{rule}**")), "{rule}");
            }
        }
        let ioctls = fs::read_to_string(documents.join("abi/ioctls.tsv")).unwrap();
        let mut seen = BTreeSet::new();
        for (name, status, _) in RULES {
            assert!(seen.insert((name, status.0)), "{name}");
            assert!(ioctls.contains(name), "{name}");
        }
    }
}
