//! How rarely an invented price follows from the prices of a document by chance.

use super::*;

#[test]
fn an_invented_price_rarely_follows_from_others() {
    // Numbers from 10 to 2,000, each range of the same ratio as often as another.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut price = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let part = (state >> 11) as f64 / (1_u64 << 53) as f64;
        (10.0 * 200.0_f64.powf(part)).round() as i128 * 1_000
    };
    let rounds = 20_000;
    for (less, sum, average, times, most) in [
        (true, false, false, vec![], 0.02),
        (false, true, false, vec![], 0.02),
        (false, false, true, vec![], 0.02),
        (false, false, false, vec![(0, 2)], 0.02),
    ] {
        let hits = (0..rounds)
            .filter(|_| {
                let values: Vec<i128> = (0..MOST_VALUES).map(|_| price()).collect();
                let says = Says { less, sum, average };
                let said = Said { says, times: &times, sentence: "", place: 0..0 };
                let invented = price();
                !values.contains(&invented) && said.yields(&values, invented)
            })
            .count();
        let share = hits as f64 / f64::from(rounds);
        println!("{less} {sum} {average} {times:?}: {share}");
        assert!(share <= most, "{share}");
    }
}
