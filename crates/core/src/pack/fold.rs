//! Decides which messages of a slot are sent as they are, and which older ones are condensed together as one text.
//!
//! A pure function of the history: the messages are replayed, and nothing is decided again until their tokens cross a
//! mark. Then the newest stay, everything older becomes one text, and a new epoch begins. Between two such steps a
//! growing conversation only extends its prompt. Which text comes next is decided at the soft share of the mark, so that
//! it can be written before it is needed. Knows costs, no texts.

use super::receipt::Epoch;

/// The shares of the cap, in per cent. After a step, text and messages together take at least `LOW`; above `HIGH` the
/// next step follows, so both are within 50 to 75 % of the cap (C52) and below the usual soft threshold (N23), unless the
/// newest messages alone take more.
const LOW: usize = 55;
const HIGH: usize = 75;
/// What the messages that stay may take, at most and usually, and the least that is left to the text, unless the
/// smallest text needs more.
const MOST_KEPT: usize = 55;
const USUALLY_KEPT: usize = 25;
const LEAST_TEXT: usize = 15;
/// The newest messages stay, whatever `protect_last` says.
const NEWEST: usize = 2;

/// How many numbers of newest messages are tried at most.
const TRIES: usize = 64;

/// The messages to decide.
pub(super) struct FoldInput<'a> {
    /// Up to this many tokens, every message is sent as it is. Beyond that, the cap keeps room for the line that lists the
    /// messages left out.
    pub whole: usize,
    /// Tokens of each.
    pub sizes: &'a [usize],
    /// Tokens of the smallest form in which each can be a message of its own.
    pub least: &'a [usize],
    /// The first message of each one's group: a call and its results stay together.
    pub group_of: &'a [usize],
    /// `settled[i]`: no call is waiting for a result after message `i`.
    pub settled: &'a [bool],
    /// Messages that must be whole.
    pub critical: &'a [bool],
    /// The first request of the user, which stays.
    pub request: Option<usize>,
    /// The number of newest messages that stay.
    pub protect_last: usize,
    /// Tokens of the smallest text that may take the place of older messages; `None` if a line that points to them does.
    pub text: Option<usize>,
    /// The share of the mark above which the text of the next step is decided.
    pub soft: Option<f64>,
    /// Whether the next step is taken at once where its text is decided.
    pub ahead: bool,
}

/// What becomes of the messages.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fold {
    /// Older messages, except critical ones and those in `kept`, are represented by one text.
    pub until: usize,
    /// The first request of the user, if it stays.
    pub kept: Option<usize>,
    /// Tokens that the text may take.
    pub allowance: usize,
    /// Messages before `at_message` that stay are shortened to this many tokens.
    pub level: usize,
}

/// The decision about all messages.
pub(super) struct Folded {
    /// `None` while everything is sent as it is.
    pub fold: Option<Fold>,
    /// The newest step.
    pub epoch: Epoch,
    /// Tokens of what is sent.
    pub used: usize,
    /// The number of tokens above which the next step follows.
    pub high: usize,
}

/// Replays the messages within `cap` tokens.
pub(super) fn fold(input: &FoldInput<'_>, cap: usize) -> Folded {
    let count = input.sizes.len();
    let mut so_far = Folded {
        fold: None,
        epoch: Epoch { number: 0, at_message: 0, from_message: 0, moved_prefix: false },
        used: 0,
        high: cap.max(input.whole),
    };
    let (mut critical, mut next) = (0, None);
    for at in 0..count {
        so_far.used = so_far.used.saturating_add(input.sizes[at]);
        if input.critical[at] {
            critical += input.sizes[at];
        }
        let last = at + 1 == count;
        let left = so_far.high.checked_sub(so_far.used);
        let is_soon = |share: f64| so_far.used as f64 > so_far.high as f64 * share;
        if let Some(left) = left
            && next.is_none()
            && input.settled[at]
            && input.soft.is_some_and(is_soon)
        {
            next = next_text(input, at + 1, (critical, left), cap);
        }
        let ahead = if last && left.is_some() && input.ahead { next.take() } else { None };
        if left.is_some() && ahead.is_none() || !(input.settled[at] || last) {
            continue;
        }
        let (fold, used) = match (ahead, next.take()) {
            (Some(fold), _) => (fold, so_far.used),
            (None, Some(next)) => taken(input, at + 1, critical, cap, next),
            (None, None) => step(input, at + 1, critical, cap),
        };
        let first = (0..fold.until).find(|&at| !input.critical[at] && fold.kept != Some(at));
        so_far.epoch = Epoch {
            number: so_far.epoch.number + 1,
            at_message: at + 1,
            from_message: first.unwrap_or(fold.until),
            moved_prefix: last,
        };
        so_far.fold = Some(fold);
        so_far.used = used;
        // Where the newest message alone takes more, the next step waits until the cap is full.
        so_far.high = if input.text.is_some() && used <= share(cap, HIGH) { share(cap, HIGH) } else { cap };
    }
    so_far
}

/// Decides the first `count` messages anew; `critical` are the tokens of those that must be whole. Returns the tokens
/// that are then used, too.
fn step(input: &FoldInput<'_>, count: usize, critical: usize, cap: usize) -> (Fold, usize) {
    let request = input.request.filter(|&at| at < count && !input.critical[at]);
    let cost = |at: usize, sizes: &[usize]| if input.critical[at] { 0 } else { sizes[at] };
    let least_text = least_text(input, cap);
    let widest = cap.saturating_sub(least_text.unwrap_or(0));
    let most = share(cap, if least_text.is_some() { MOST_KEPT } else { HIGH }).min(widest);
    let group = start_of_last(input, count, 1);
    let staying = |(kept, start): (Option<usize>, usize)| {
        kept.filter(|&kept| kept < start).into_iter().chain(start..count)
    };
    let sum = |way: (Option<usize>, usize), sizes: &[usize]| {
        staying(way).map(|at| cost(at, sizes)).fold(critical, usize::saturating_add)
    };
    let fits = |&way: &(Option<usize>, usize)| sum(way, input.least) <= most;
    // The newest messages are what the model is asked about: they stay whole, at the expense of the others, as far as
    // the cap has room for them.
    let is_whole = |&way: &(Option<usize>, usize)| sum(way, input.sizes) <= widest;
    // Of more newest messages than the cap has room for, as many stay as it has.
    let wanted = input.protect_last.min(count).max(NEWEST);
    let numbers = (NEWEST..=wanted).rev().step_by(wanted / TRIES + 1);
    let starts = numbers.map(|number| start_of_last(input, count, number));
    let whole = starts.clone().map(|start| (request, start)).find(is_whole);
    let newest = starts.clone().find(|&start| fits(&(request, start)) || whole == Some((request, start)));
    let newest = newest.or(starts.last()).unwrap_or(group);
    let ways = [(request, newest), (request, group), (None, group), (None, count)];
    let way = ways.into_iter().find(fits);
    let room = most.saturating_sub(critical);
    let sizes_of = |way: (Option<usize>, usize)| -> Vec<(usize, usize)> {
        staying(way).map(|at| (cost(at, input.least), cost(at, input.sizes))).collect()
    };
    let fit = way.map(|way| (way, level(&sizes_of(way), room)));
    let is_cut = |from: usize, level: usize| (from..count).any(|at| cost(at, input.sizes) > level);
    // A few messages whole say more than many that are all cut, but one long message is no reason to leave out the others.
    let uncut = |way, level: usize| staying(way).filter(|&at| cost(at, input.sizes) <= level).count();
    let has_more_whole = |way, level| whole.is_none_or(|whole| uncut(way, level) >= uncut(whole, usize::MAX));
    let ((kept, mut start), level) = match fit {
        Some((way, level)) if !is_cut(newest, level) => (way, level),
        _ if whole == Some((request, newest)) => ((request, newest), usize::MAX),
        Some((way, level)) if !is_cut(group, level) && has_more_whole(way, level) => (way, level),
        _ => match whole.into_iter().chain([(request, group), (None, group)]).find(is_whole) {
            Some(way) => (way, usize::MAX),
            None => fit.unwrap_or(((None, count), usize::MAX)),
        },
    };
    let sizes = sizes_of((kept, start));
    let mut stays: usize = sizes.iter().map(|&(least, size)| size.min(level).max(least)).sum();
    if level == usize::MAX {
        let usual =
            share(cap, if least_text.is_some() { USUALLY_KEPT } else { HIGH }).saturating_sub(critical);
        (start, stays) = extended(input, (start, stays), kept, usual);
    }
    let used = critical.saturating_add(stays);
    let allowance = least_text
        .map_or(0, |least| share(cap, LOW).saturating_sub(used).max(least).min(cap.saturating_sub(used)));
    let kept = kept.filter(|&kept| kept < start);
    (Fold { until: start, kept, allowance, level }, used.saturating_add(allowance))
}

/// The least that is left to the text. A small cap has room for the smallest text or for messages, but not for both.
fn least_text(input: &FoldInput<'_>, cap: usize) -> Option<usize> {
    input.text.map(|least| share(cap, LEAST_TEXT).max(if least <= cap / 2 { least } else { 0 }))
}

/// The next step, `left` tokens before it, if it is like most: the newest of these messages that it leaves, and as much
/// text as there will be room for.
fn next_text(
    input: &FoldInput<'_>,
    count: usize,
    (critical, left): (usize, usize),
    cap: usize,
) -> Option<Fold> {
    let least = least_text(input, cap)?;
    let cost = |at: usize| if input.critical[at] { 0 } else { input.sizes[at] };
    let request = input.request.filter(|&at| at < count && !input.critical[at]);
    let newest = start_of_last(input, count, 1);
    let first = request.filter(|&at| at < newest).map_or(0, cost);
    let stays = (newest..count).map(cost).fold(first, usize::saturating_add);
    let usual = share(cap, USUALLY_KEPT).saturating_sub(critical.saturating_add(left));
    let (until, stays) = extended(input, (newest, stays), request, usual);
    let kept = request.filter(|&at| at < until);
    let is_older = |at: usize| !input.critical[at] && kept != Some(at);
    let then = critical.saturating_add(stays).saturating_add(left);
    let allowance = share(cap, LOW).saturating_sub(then).max(least);
    (0..until).any(is_older).then_some(Fold { until, kept, allowance, level: usize::MAX })
}

/// The step whose text was decided before, unless the messages since then take too much or are too few.
fn taken(input: &FoldInput<'_>, count: usize, critical: usize, cap: usize, next: Fold) -> (Fold, usize) {
    let stays = next.kept.into_iter().chain(next.until..count).filter(|&at| !input.critical[at]);
    let stays = stays.map(|at| input.sizes[at]).fold(critical, usize::saturating_add);
    let used = stays.saturating_add(next.allowance);
    let newest = start_of_last(input, count, NEWEST.max(input.protect_last));
    if next.until <= newest && stays <= share(cap, MOST_KEPT) && used <= share(cap, HIGH) {
        return (next, used);
    }
    step(input, count, critical, cap)
}

/// Where the last `number` of the first `count` messages begin, with the rest of the group of the first of them.
fn start_of_last(input: &FoldInput<'_>, count: usize, number: usize) -> usize {
    let mut start = count.saturating_sub(number);
    let mut from = count;
    while from > start {
        from -= 1;
        start = start.min(input.group_of[from]);
    }
    start
}

/// Moves the start of the newest messages back, to the beginning of a group, while they take at most `usual` tokens.
fn extended(
    input: &FoldInput<'_>,
    (mut start, mut stays): (usize, usize),
    kept: Option<usize>,
    usual: usize,
) -> (usize, usize) {
    let (mut sum, mut first) = (stays, start);
    for at in (0..start).rev() {
        if !input.critical[at] && kept != Some(at) {
            sum = sum.saturating_add(input.sizes[at]);
        }
        if sum > usual {
            break;
        }
        first = first.min(input.group_of[at]);
        if first >= at {
            (start, stays) = (at, sum);
        }
    }
    (start, stays)
}

/// The tokens to which messages, with their smallest and their whole size, are limited so that all take at most `room`.
fn level(messages: &[(usize, usize)], room: usize) -> usize {
    let used = |level: usize| messages.iter().map(|&(least, size)| size.min(level).max(least)).sum::<usize>();
    if used(usize::MAX) <= room {
        return usize::MAX;
    }
    let (mut fits, mut exceeds) = (0, messages.iter().map(|&(_, size)| size).max().unwrap_or(0));
    while fits + 1 < exceeds {
        let middle = fits + (exceeds - fits) / 2;
        if used(middle) <= room { fits = middle } else { exceeds = middle }
    }
    fits
}

fn share(tokens: usize, per_cent: usize) -> usize {
    (tokens as u128 * per_cent as u128 / 100) as usize
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
