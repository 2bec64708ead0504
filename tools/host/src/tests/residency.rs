// SPDX-License-Identifier: MIT OR Apache-2.0

//! What QueryAllocationResidency says of an allocation and of a resource.

use crate::logic::residency::{
    of_allocation, of_resource, IN_GPU_MEMORY, IN_SHARED_MEMORY, NOT_RESIDENT,
};

#[test]
fn mem_9_a_resource_is_not_resident_if_one_allocation_is_not() {
    let of = |statuses: &[u32]| of_resource(statuses.iter().copied());

    assert_eq!(
        [None, Some(0), Some(1), Some(2)].map(of_allocation),
        [3, 2, 1, 1]
    );
    assert_eq!(
        [IN_GPU_MEMORY, IN_SHARED_MEMORY, NOT_RESIDENT],
        [1, 2, 3],
        "D3DKMT_ALLOCATIONRESIDENCYSTATUS"
    );
    for (statuses, expected) in [
        (&[][..], IN_SHARED_MEMORY),
        (&[1], 1),
        (&[2], 2),
        (&[3], 3),
        (&[1, 2], 1),
        (&[2, 1], 2),
        (&[3, 1], 3),
        (&[1, 2, 3, 1], 3),
    ] {
        assert_eq!(of(statuses), expected, "{statuses:?}");
    }
}
