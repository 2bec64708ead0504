// SPDX-License-Identifier: MIT OR Apache-2.0
//! Collects the values to be tried with a field.

use opendxg::Status;
use selftests::memory::{KERNEL_HALF, UNMAPPED};
use selftests::TestResult;

use crate::t_negative::image::Image;
use crate::t_negative::table::{Field, Kind};

/// A change of the argument.
type Change<'a> = Box<dyn Fn(&mut Image) -> TestResult + 'a>;

/// One value of one field.
pub(crate) struct Case<'a> {
    /// In words.
    pub(crate) what: String,
    /// Makes the change.
    pub(crate) change: Change<'a>,
    /// What the call has to answer; `None` for what it answers unchanged.
    pub(crate) status: Option<Status>,
}

/// Collects the cases of one field.
pub(crate) struct Cases<'a> {
    field: &'a Field,
    list: Vec<Case<'a>>,
}

impl<'a> Cases<'a> {
    /// None yet.
    pub(crate) fn of(field: &'a Field) -> Self {
        Self {
            field,
            list: Vec::new(),
        }
    }

    /// All of them.
    pub(crate) fn into_list(self) -> Vec<Case<'a>> {
        self.list
    }

    /// One more.
    pub(crate) fn add(
        &mut self,
        what: String,
        status: Option<Status>,
        change: impl Fn(&mut Image) -> TestResult + 'a,
    ) {
        let change = Box::new(change);
        self.list.push(Case {
            what,
            change,
            status,
        });
    }

    /// The field has this value.
    pub(crate) fn value(&mut self, what: &str, value: u64, status: Option<Status>) {
        let (at, size) = (self.field.at, self.field.size);
        self.add(format!("{what} {value:#x}"), status, move |image| {
            image.put(at, size, value);
            Ok(())
        });
    }

    /// Each of these, which are none, where the field has local handles.
    pub(crate) fn handles(&mut self, handles: &[(&'static str, u32)]) {
        let invalid = Some(Status::INVALID_PARAMETER);
        let at = self.field.at;
        for (what, handle) in handles.iter().copied() {
            match self.field.kind {
                Kind::OptionalHandle { zero, .. } if handle == 0 => self.value(what, 0, zero),
                Kind::OptionalHandle { bad, .. } => self.value(what, handle.into(), Some(bad)),
                Kind::HandleArray { count_at, .. } => {
                    for place in [0, 1, 2] {
                        let what = format!("{what} {handle:#x} in place {place}");
                        self.add(what, invalid, move |image| {
                            let length = 4 * image.get(count_at, 4) as usize;
                            let mut contents = image.pointed(at, length);
                            let last = contents.len() / 4 - 1;
                            let place = 4 * (place * last / 2);
                            contents[place..place + 4].copy_from_slice(&handle.to_ne_bytes());
                            image.point(at, &contents)
                        });
                    }
                }
                _ => self.value(what, handle.into(), invalid),
            }
        }
    }

    /// Addresses at which nothing may be read or written.
    pub(crate) fn bad_addresses(&mut self, status: Status) {
        for address in [1, UNMAPPED, KERNEL_HALF, u64::MAX - 7] {
            self.value("address", address, Some(status));
        }
    }

    /// The memory that the field points to ends too early: behind nothing, half, all but one byte.
    pub(crate) fn cut_off(&mut self, length: impl Fn(&Image) -> usize + Clone + 'a) {
        let at = self.field.at;
        for missing in [Cut::All, Cut::Half, Cut::Byte] {
            let length = length.clone();
            let what = format!("memory ends too early: {missing:?}");
            self.add(what, Some(Status::ACCESS_VIOLATION), move |image| {
                let length = length(image);
                let missing = match missing {
                    Cut::All => length,
                    Cut::Half => length.div_ceil(2),
                    Cut::Byte => 1,
                };
                let contents = image.pointed(at, length - missing);
                image.point(at, &contents)
            });
        }
    }

    /// The memory may not be written.
    pub(crate) fn read_only(&mut self, length: impl Fn(&Image) -> usize + 'a) {
        let at = self.field.at;
        self.add(
            "read-only memory".into(),
            Some(Status::ACCESS_VIOLATION),
            move |image| {
                let contents = image.pointed(at, length(image));
                image.point_read_only(at, &contents)
            },
        );
    }
}

/// How much of an array is missing.
#[derive(Clone, Copy, Debug)]
enum Cut {
    All,
    Half,
    Byte,
}
