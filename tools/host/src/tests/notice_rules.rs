// SPDX-License-Identifier: MIT OR Apache-2.0

//! What processes are told about memory (MEM-38, MEM-39).

use crate::logic::{
    notice_rules::{record, Kind, News, Sight, BUDGET_INTERVAL, PERIOD},
    Invalid,
};

const PAGE: u64 = 4096;

fn sight(now: u64, over: u64, pressed: Option<u64>) -> Sight {
    Sight {
        now,
        over,
        budget: 100,
        pressed,
    }
}

/// Sees a budget.
fn look(budget: u64, news: &mut News) {
    news.look(&Sight {
        budget,
        ..sight(0, 5, Some(0))
    });
}

#[test]
fn mem_38_kinds() {
    assert_eq!(Kind::new(1), Ok(Kind::Trim));
    assert_eq!(Kind::new(2), Ok(Kind::Budget));
    for kind in [0, 3, u32::MAX] {
        assert_eq!(Kind::new(kind), Err(Invalid), "{kind}");
    }
}

#[test]
fn mem_39_the_latest_bytes_at_most_once_in_the_interval() {
    let mut news = News::new(Kind::Trim, 100);
    news.look(&sight(0, 0, None));
    assert_eq!((news.peek(0), news.held_back(0)), (None, None));
    // What was not read is replaced.
    news.look(&sight(1, 1, None));
    news.look(&sight(2, 2 * PAGE + 1, None));
    assert_eq!(news.take(2), Some((3 * PAGE) | record::TO_BUDGET));
    assert_eq!(news.take(3), None, "the same is told once");
    news.look(&sight(3, 3 * PAGE, None));
    assert_eq!(news.peek(3), None);
    // The next one is held back.
    news.look(&sight(4, PAGE, None));
    assert_eq!(news.peek(4), None);
    assert_eq!(news.held_back(4), Some(2 + BUDGET_INTERVAL - 4));
    news.look(&sight(5, 7 * PAGE, None));
    let due = 2 + BUDGET_INTERVAL;
    assert_eq!(news.peek(due - 1), None);
    assert_eq!(news.take(due), Some((7 * PAGE) | record::TO_BUDGET));
    // What is not true any more is not told.
    news.look(&sight(due + 1, 9 * PAGE, None));
    news.look(&sight(due + 2, 0, None));
    assert_eq!(news.peek(2 * due), None);
    assert_eq!(news.held_back(2 * due), None);
}

#[test]
fn mem_39_periodic_while_memory_is_short() {
    let mut news = News::new(Kind::Trim, 100);
    news.look(&sight(10, 0, Some(10)));
    assert_eq!(news.next_period(10), Some(PERIOD));
    assert_eq!(news.take(10), Some(record::RESTART));
    // More of the same is not told again before it is due.
    news.look(&sight(20, 0, Some(20)));
    news.look(&sight(9 + PERIOD, 0, Some(9 + PERIOD)));
    assert_eq!(news.take(9 + PERIOD), None);
    news.look(&sight(10 + PERIOD, 0, Some(9 + PERIOD)));
    // Together with bytes.
    news.look(&sight(11 + PERIOD, PAGE, Some(9 + PERIOD)));
    assert_eq!(
        news.take(11 + PERIOD),
        Some(PAGE | record::TO_BUDGET | record::PERIODIC)
    );
    // It is over, and begins again.
    news.look(&sight(10 + 2 * PERIOD, PAGE, Some(9 + PERIOD)));
    assert_eq!(news.take(10 + 2 * PERIOD), None);
    assert_eq!(news.next_period(10 + 2 * PERIOD), None);
    news.look(&sight(5 * PERIOD, PAGE, Some(5 * PERIOD)));
    news.look(&sight(6 * PERIOD, PAGE, Some(6 * PERIOD)));
    // Never both.
    assert_eq!(news.take(6 * PERIOD), Some(record::RESTART));
}

#[test]
fn mem_38_budgets() {
    let mut news = News::new(Kind::Budget, 100);
    look(100, &mut news);
    assert_eq!(news.peek(0), None);
    look(90, &mut news);
    look(80, &mut news);
    assert_eq!(news.take(0), Some(80));
    assert_eq!(news.take(0), None);
    look(0, &mut news);
    assert_eq!(news.take(0), Some(0), "as often as it changes");
    assert_eq!((news.held_back(0), news.next_period(0)), (None, None));
}

#[test]
fn mem_39_what_did_not_reach_the_reader() {
    let mut news = News::new(Kind::Trim, 100);
    news.look(&sight(1, PAGE, Some(1)));
    let told = news.take(1).expect("news");
    news.put_back();
    assert_eq!(news.take(2), Some(told));
    // What came later counts more.
    news.look(&sight(3, 2 * PAGE, Some(3)));
    news.put_back();
    assert_eq!(
        news.take(3),
        Some((2 * PAGE) | record::TO_BUDGET | record::RESTART)
    );
    let mut news = News::new(Kind::Budget, 100);
    news.put_back();
    assert_eq!(news.take(0), None, "nothing was read");
    look(70, &mut news);
    assert_eq!(news.take(0), Some(70));
    news.put_back();
    assert_eq!(news.take(0), Some(70));
}
