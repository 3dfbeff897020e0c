//! What the documents say, and whether they state or yield the values of an answer.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;
use std::ops::Range;

use larder_condense::salience::{self, ErrorSense, SalientSpan, SpanKind};

use super::ages::Moments;
use super::amounts::{self, Amount, Currencies, amounts};
use super::cells::Cells;
use super::counts::{self, is_count, may_be_counted, says_lines};
use super::derived::Derived;
use super::former::Former;
use super::implied::{Groups, Sayings};
use super::lists::{Enumerated, with_parted_lists};
use super::plain::{with_joined_groups, with_tables, without_markup};
use super::present::Present;
use super::rows::Rows;
use super::sites::sites;
use super::tables::Tables;
use super::units::{self, Measures};
use super::{
    Evidence, dates, names, numbers, options, phones, says_about, stands_in, states_month, times, weekdays,
    worded,
};

/// Numbers from this, in thousandths, on may be years.
const YEARS: i128 = 1_000 * 1_000;
/// The part of a price by which it may differ after a word such as `about`.
const ROUNDING: i128 = 50;
/// The same for a price of one significant digit, such as 40.
const COARSE: i128 = 16;
/// Numbers in words up to this are checked only where they count something, and those up to the second only with a unit.
const FEW: i128 = 12;
/// From this, in thousandths, on, a number is stated in digits, too, where it is in words: smaller ones are checked otherwise.
const TEN: i128 = 10 * 1_000;
const UNCHECKED: i128 = 3;

/// What the documents say, as it is read.
pub(super) struct Known<'e> {
    pub(super) text: String,
    tables: Tables,
    numbers: BTreeSet<i128>,
    dates: Vec<dates::Written>,
    calendar: dates::Calendar<()>,
    times: times::Stated,
    currencies: Currencies,
    measures: Measures,
    moments: Moments,
    present: Present,
    rows: Rows,
    cells: Cells,
    former: Former,
    groups: OnceCell<Groups>,
    /// Its numbers in words.
    words: BTreeSet<i128>,
    lines: &'e [usize],
    phones: BTreeSet<String>,
    enumerated: OnceCell<Enumerated>,
}

impl<'e> Known<'e> {
    pub(super) fn of(evidence: Evidence<'e>) -> Self {
        let tables = with_tables(evidence.text);
        let documents = &with_parted_lists(&tables);
        let present = Present::new(evidence.now);
        let text = with_joined_groups(documents, |_| false);
        let dates = dates::stated(&text);
        let is_part = |at: usize| {
            let date = dates.get(dates.partition_point(|date| date.range.end <= at));
            date.is_some_and(|date| {
                date.range.start <= at && !date.is_doubtful && date.days().next().is_some()
            })
        };
        let times = times::of(&text);
        let is_of_time = |at: usize| {
            let time = times.get(times.partition_point(|time| time.range.end <= at));
            time.is_some_and(|time| time.range.start <= at && is_stamp(&text, &time.range))
        };
        // The parts of a whole date, of a time stamp and of an id are no numbers of something else.
        let is_other = |at: usize| is_part(at) || is_of_time(at) || amounts::is_of_id(&text, at);
        let stated: Vec<(usize, i128)> = amounts::readings(&text)
            .filter(|(at, number)| *number >= YEARS && !is_of_time(*at) || !is_other(*at))
            .collect();
        // Plain spaces may group digits.
        let grouped = with_joined_groups(documents, |_| true);
        let loose = amounts::readings(&grouped).filter(|(_, number)| *number >= YEARS);
        let worded = worded::stated(&text);
        let words: BTreeSet<i128> = worded.iter().map(|worded| worded.number * 1_000).collect();
        let large = words.iter().copied().filter(|number| *number >= TEN);
        let numbers: BTreeSet<i128> =
            large.chain(stated.iter().copied().chain(loose).map(|(_, number)| number)).collect();
        let tables = Tables::of(&text);
        Self {
            currencies: Currencies::of(&text, &tables, &grouped, &worded),
            measures: Measures::of(&text, &tables, &stated, &worded),
            rows: Rows::of(&text, &stated),
            cells: Cells::of(&text, &stated),
            former: Former::of(&text, &stated),
            groups: OnceCell::new(),
            enumerated: OnceCell::new(),
            words,
            moments: Moments::new(&numbers, dates.iter().chain(&present.dates)),
            present,
            lines: evidence.lines,
            phones: phones::stated(&text),
            calendar: dates::Calendar::of(dates.iter().map(|date| (date, ()))),
            times: times::Stated::of(&times),
            tables,
            text,
            numbers,
            dates,
        }
    }

    /// Whether a sentence of the documents enumerates as many things as a number of an answer counts: `red, green, blue and
    /// black` are four colours.
    fn enumerates(&self, count: i128, answer: &str, number: &Range<usize>) -> bool {
        let enumerated = self.enumerated.get_or_init(|| Enumerated::of(&self.text));
        usize::try_from(count).is_ok_and(|count| enumerated.has(count, answer, number))
    }

    /// Whether a number is how many lines a document has, with or without a heading, and the answer says so.
    fn counts_lines(&self, text: &str, range: &Range<usize>) -> bool {
        let end = amounts::end(text, range.start);
        let number = numbers(&text[range.start..end]).next().map(|(_, number)| number / 1_000);
        let lines = || self.lines.iter().flat_map(|lines| [*lines, lines.saturating_sub(1)]);
        says_lines(&text[end..]) && lines().any(|lines| number == Some(lines as i128))
    }

    /// An answer as it is read next to the documents.
    pub(super) fn read(&self, answer: &str) -> String {
        let knows = |digits: &str| {
            digits.parse().is_ok_and(|number: i128| self.numbers.contains(&number.saturating_mul(1_000)))
        };
        with_joined_groups(&with_parted_lists(&without_markup(answer)), knows)
    }

    /// The values of an answer that the documents neither state nor yield, with their places.
    pub(super) fn unsupported_values(&self, text: &str) -> Vec<(usize, String)> {
        let states = |date: &dates::Written| self.calendar.says(date, ()) || self.present.states(text, date);
        let (stated, unstated): (Vec<_>, Vec<_>) = dates::of(text).into_iter().partition(states);
        let mut found: Vec<(usize, String)> = Vec::new();
        // A month by itself is rather a word than a date.
        for date in unstated.iter().filter(|date| !date.is_doubtful && date.is_distinct()) {
            found.push((date.range.start, text[date.range.clone()].to_owned()));
        }
        let times = times::of(text);
        for time in times.iter().filter(|time| !self.times.state(time)) {
            let value = &text[time.range.clone()];
            if !stands_in(&self.text, value) {
                found.push((time.range.start, value.to_owned()));
            }
        }
        let phones = phones::same(text, &self.phones);
        let mut spans = salience::scan(text, ErrorSense::Strict);
        spans.retain(|span| {
            let place = &span.range;
            span.kind == SpanKind::Error
                || !is_within(overlapping(&phones, |phone| phone, place), place)
                    && !dates_at(&stated, place).iter().any(dates::Written::is_distinct)
                    && !dates_at(&unstated, place).iter().any(|date| !date.is_doubtful && date.is_distinct())
                    && overlapping(&times, |time| &time.range, place).is_empty()
        });
        for span in &mut spans {
            if let SpanKind::Number | SpanKind::Quantity | SpanKind::Id = span.kind
                && let Some(joined) = counts::joined(text, &span.range)
            {
                (span.range, span.kind) = joined;
            }
            if let Some(price) = amounts::with_currency(text, span) {
                (span.kind, span.range) = (SpanKind::Price, price);
            }
        }
        let derived = Derived::new(
            text,
            &spans,
            &self.numbers,
            &self.text,
            self.measures.numbers().chain(self.words.iter().copied()),
        );
        let checked = Checked {
            known: self,
            text,
            tables: Tables::of(text),
            sayings: OnceCell::new(),
            word: RefCell::default(),
            derived: &derived,
            is_english: names::is_english(text),
        };
        for span in &spans {
            if !checked.is_supported(span) {
                let doubtful = dates_at(&unstated, &span.range).first();
                let mut whole = doubtful.map_or(&span.range, |date| &date.range).clone();
                whole.end = amounts::end_of_scale(text, whole.end);
                found.push((whole.start, text[whole].to_owned()));
            }
        }
        found.extend(checked.unsupported_words());
        found.extend(self.rows.swapped(text));
        found.extend(self.cells.swapped(text));
        found.extend(options::changed(text, &self.text));
        found.extend(weekdays::wrong(text, &stated, &self.text, &self.dates));
        found.sort();
        found.dedup();
        let lower = self.text.to_lowercase();
        found.extend(sites(text).filter(|(_, site)| !stands_in(&lower, &site.to_lowercase())));
        found
    }
}

/// A value of an answer, next to what the documents say.
struct Checked<'c, 'e> {
    known: &'c Known<'e>,
    text: &'c str,
    tables: Tables,
    sayings: OnceCell<Sayings>,
    /// The last word that was looked for, and its length if the documents have it.
    word: RefCell<(Range<usize>, usize)>,
    derived: &'c Derived<'c>,
    is_english: bool,
}

impl Checked<'_, '_> {
    fn is_supported(&self, span: &SalientSpan) -> bool {
        let Self { known, text, derived, .. } = self;
        let value = &text[span.range.clone()];
        match span.kind {
            SpanKind::Error => true,
            SpanKind::Number
                if value.bytes().filter(u8::is_ascii_digit).count() == 1
                    && amounts::scale(text, span.range.end) == 1 =>
            {
                let number = value.parse::<i128>().map_or(0, |digit| digit * 1_000);
                !is_count(text, &span.range, self.is_english)
                    || (value.parse().map_or(true, |count| derived.yields_count(&span.range, count))
                        || known.enumerates(number / 1_000, text, &span.range))
                        && known.measures.allow(text, span.range.start, number)
                    || known.counts_lines(text, &span.range)
                    || known.moments.yield_age(text, &span.range)
                    || known.measures.state(text, &self.tables, &span.range)
                    || self.leads_to_scale(&span.range)
            }
            SpanKind::Date => stands_in(&known.text, value) || states_month(&known.dates, value),
            SpanKind::Number | SpanKind::Quantity | SpanKind::Price => {
                let shown: Vec<_> = amounts(text, &span.range).collect();
                shown.is_empty() && stands_in(&known.text, value)
                    || !shown.is_empty() && shown.iter().all(|shown| self.is_shown(span, shown))
                    || known.measures.state(text, &self.tables, &span.range)
                    || known.moments.yield_age(text, &span.range)
                    || known.present.is_year(text, &span.range)
                    || known.counts_lines(text, &span.range)
                    || self.is_part_of_word(&span.range)
            }
            // Ids may be cut.
            SpanKind::Hash | SpanKind::Id => known.text.contains(value),
            _ => stands_in(&known.text, value),
        }
    }

    /// Whether the documents state a digit with the scale of the number that it leads to, as in `3 to 4 million`.
    fn leads_to_scale(&self, range: &Range<usize>) -> bool {
        let mut readings = amounts(self.text, range).flat_map(|shown| shown.readings().collect::<Vec<_>>());
        readings.any(|number| number >= YEARS && self.known.numbers.contains(&number))
    }

    /// Whether the documents state or yield an amount.
    fn is_shown(&self, span: &SalientSpan, shown: &Amount) -> bool {
        let Self { known, text, derived, .. } = self;
        let is_stated = |number: i128| {
            known.numbers.contains(&number)
                && known.currencies.allow(shown, number)
                && (span.kind == SpanKind::Price || known.measures.allow(text, shown.at, number))
                && !known.former.is_contradicted(text, &span.range, number)
        };
        let are_prices = |addends: &[i128]| {
            let is_price = |one: &i128| known.numbers.contains(one) && known.currencies.allow(shown, *one);
            addends.iter().all(is_price)
        };
        let is_about = says_about(&text[..span.range.start]);
        let is_known = |number: i128| {
            is_stated(number)
                || derived.yields(span.kind, &span.range, number)
                || derived.written_sums(&span.range, number).iter().any(|addends| are_prices(addends))
                || is_about && self.is_rounded(span, shown, number)
        };
        let is_scaled = || {
            known.currencies.scales.contains(&shown.scale)
                && known.numbers.contains(&(shown.number / shown.scale))
        };
        let groups = || known.groups.get_or_init(|| Groups::of(&known.text, &known.tables));
        let sayings = || self.sayings.get_or_init(|| Sayings::of(text));
        shown.readings().any(is_known)
            || is_scaled()
            || groups().yield_value(text, sayings(), &span.range, shown)
    }

    /// Whether a price of the documents is this one as it is rounded.
    fn is_rounded(&self, span: &SalientSpan, shown: &Amount, number: i128) -> bool {
        let known = self.known;
        let digits = number.to_string();
        let is_coarse = digits.trim_end_matches('0').len() == 1;
        let room = number / if is_coarse { COARSE } else { ROUNDING };
        let is_near = |near: &i128| {
            known.currencies.allow(shown, *near)
                && !known.former.is_contradicted(self.text, &span.range, *near)
        };
        span.kind == SpanKind::Price && known.numbers.range(number - room..=number + room).any(is_near)
    }

    /// Whether the documents have the whole word, such as the number of a part, that a number is in.
    fn is_part_of_word(&self, range: &Range<usize>) -> bool {
        let is_part = |char: char| char.is_alphanumeric() || matches!(char, '-' | '_');
        let (last, length) = self.word.borrow().clone();
        if last.contains(&range.start) {
            return length > range.len();
        }
        let start = self.text[..range.start].trim_end_matches(is_part).len();
        let after = &self.text[range.end..];
        let end = range.end + after.len() - after.trim_start_matches(is_part).len();
        let word = self.text[start..end].trim_matches(['-', '_']);
        let is_known = word.contains(char::is_alphabetic) && stands_in(&self.known.text, word);
        let length = if is_known { word.len() } else { 0 };
        self.word.replace((start..end, length));
        length > range.len()
    }

    /// The numbers in words that the documents neither state nor yield: large ones, and those that count something.
    fn unsupported_words(&self) -> Vec<(usize, String)> {
        let Self { known, text, derived, .. } = self;
        let is_unsupported = |worded: &worded::Worded| {
            let number = worded.number * 1_000;
            let unit = units::unit_from(&text[worded.range.end..]);
            let is_small = worded.number <= FEW && !units::is_unit(&unit);
            let counts = || {
                may_be_counted(&unit)
                    || worded.number > UNCHECKED && counts::counts_noun(text, &worded.range, self.is_english)
            };
            let is_checked = !worded.is_vague && (!is_small || counts());
            let is_shown = || {
                derived.yields_some(&worded.range, worded.number)
                    || known.enumerates(worded.number, text, &worded.range)
            };
            let near = number / ROUNDING * 2;
            let is_rounded = || known.numbers.range(number - near..=number + near).next().is_some();
            let is_allowed = known.measures.allow_unit(&unit, number);
            let is_stated = is_allowed
                && (!is_small && known.numbers.contains(&number)
                    || derived.yields_worded(&worded.range, worded.number));
            let is_repeated = || is_allowed && known.words.contains(&number);
            let is_about = || says_about(&text[..worded.range.start]) && is_rounded();
            let is_known = || {
                is_stated
                    || known.measures.state_unit(&unit, number)
                    || is_about()
                    || is_repeated()
                    || is_small && is_shown()
            };
            is_checked && !is_known()
        };
        let found = worded::of(text).into_iter().filter(is_unsupported);
        found.map(|worded| (worded.range.start, text[worded.range].to_owned())).collect()
    }
}

/// Those of a list of stretches, in order, that overlap a place.
fn overlapping<'l, T>(list: &'l [T], range: impl Fn(&T) -> &Range<usize>, place: &Range<usize>) -> &'l [T] {
    let first = list.partition_point(|one| range(one).end <= place.start);
    let end = list.partition_point(|one| range(one).start < place.end);
    &list[first..end.max(first)]
}

/// Whether one of some stretches holds all of a place.
fn is_within(stretches: &[Range<usize>], place: &Range<usize>) -> bool {
    stretches.iter().any(|stretch| stretch.start <= place.start && place.end <= stretch.end)
}

fn dates_at<'l>(dates: &'l [dates::Written], place: &Range<usize>) -> &'l [dates::Written] {
    overlapping(dates, |date| &date.range, place)
}

/// Whether a time of day is that of a time stamp, such as `2026-11-27T12:29:37Z`.
fn is_stamp(text: &str, range: &Range<usize>) -> bool {
    text[..range.start].ends_with('T') || text[range.clone()].matches(':').count() > 1
}
