// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lanes: what overlaps in time stands one below the other.

/// From and to; `None` for what has not ended.
pub type Extent = (u64, Option<u64>);

/// The lane of each extent, so that none overlap on a lane, and how many lanes there are. They are
/// sorted by their begin.
pub fn lanes(extents: impl Iterator<Item = Extent>) -> (Vec<usize>, usize) {
    // The ends on lanes that will be free again.
    let mut ends: Vec<(u64, usize)> = Vec::new();
    let mut count = 0;
    let place = |(begin, end): Extent| {
        // What begins where another ends is not beside it.
        let free = ends.iter().zip(0..).filter(|((end, _), _)| *end < begin);
        let lowest = free.min_by_key(|((_, lane), _)| *lane);
        let lane = match lowest.map(|(_, index)| index) {
            Some(index) => ends.swap_remove(index).1,
            None => {
                count += 1;
                count - 1
            }
        };
        ends.extend(end.map(|end| (end, lane)));
        lane
    };
    let places = extents.map(place).collect();
    (places, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps() {
        let extents = [
            (0, Some(10)),
            (5, Some(6)),
            (7, None),
            (11, Some(11)),
            (11, Some(12)),
        ];
        let (places, count) = lanes(extents.into_iter());
        assert_eq!((places, count), (vec![0, 1, 1, 0, 2], 3));
        assert_eq!(lanes([].into_iter()), (vec![], 0));
    }
}
