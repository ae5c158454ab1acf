//! Reduction of a failing list: delta debugging by ever smaller pieces (Zeller, Hildebrandt 2002).

/// Removes parts of `all`, in ever smaller pieces, as long as the rest still fails.
pub(crate) fn reduce<T: Clone>(mut all: Vec<T>, fails: &mut impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut piece = all.len().div_ceil(2);
    while piece > 0 {
        let mut at = 0;
        while at < all.len() {
            let mut fewer = all.clone();
            fewer.drain(at..(at + piece).min(all.len()));
            if fails(&fewer) {
                all = fewer;
            } else {
                at += piece;
            }
        }
        piece /= 2;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_that_a_failure_does_not_need_are_left_out() {
        let mut tries = 0;
        let mut fails = |numbers: &[u32]| {
            tries += 1;
            numbers.contains(&7) && numbers.contains(&23)
        };
        assert_eq!(reduce((0..30).collect(), &mut fails), [7, 23]);
        assert!(tries < 60, "{tries} tries");
    }
}
