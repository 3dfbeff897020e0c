//! Words by which questions and their answers are recognized, in English and German.

/// German stop words.
pub(super) const GERMAN: &str = "der, die, das, den, dem, des, ein, eine, einen, einem, einer, eines, und, oder, aber, nicht, ist, \
     sind, war, waren, wird, werden, wurde, wurden, hat, haben, hatte, kann, muss, soll, von, vom, zu, \
     zum, zur, mit, für, auf, an, am, im, in, bei, aus, nach, über, unter, um, wann, wer, wem, wen, wo, \
     wie, was, warum, wieso, weshalb, welche, welcher, welches, welchem, es, sie, er, man";
/// Those of them that rarely occur in English questions.
pub(super) const ONLY_GERMAN: &str = "der, das, dem, ein, eine, einen, und, nicht, ist, wird, wurde, wann, wer, wem, wo, wie, warum, wieso, \
     weshalb, welche, welcher, welches";
/// Words of questions that name the kind of answer and not its subject.
pub(super) const ASKING: &str = "much, many, long, old, often, far, kind, sort, please, tell, say, says, get, use, used, date, day, \
     viel, viele, lange, hoch, groß, oft, alt, mean, means, happens, happen, whose, whom, any, heißt";
/// Words that make a question wherever they stand.
pub(super) const INTERROGATIVE: &str = "who, whom, whose, what, when, where, why, how, which, wer, wem, wen, wessen, wann, wo, warum, wieso, \
     wie, welche, welcher, welches";
/// Words that make a question where they begin it.
pub(super) const AUXILIARY: &str = "is, are, was, were, do, does, did, can, could, should, will, would, has, have, had, must, may, ist, \
     sind, war, kann, darf, muss, hat, gibt";
/// Words for prices, treated as synonyms.
pub(super) const PRICE: &str = "price, prices, cost, costs, fee, fees, pay, paid, charge, preis, preise, kosten, kostet, gebühr, usd, \
     eur, euro, euros, dollar, dollars";
pub(super) const MONTHS: &str = "january, february, march, april, may, june, july, august, september, october, november, december, \
     januar, jänner, februar, märz, mai, juni, juli, oktober, dezember, sept";
pub(super) const DAYS: &str = "monday, tuesday, wednesday, thursday, friday, saturday, sunday, today, tomorrow, yesterday, montag, \
     dienstag, mittwoch, donnerstag, freitag, samstag, sonntag, heute, morgen, gestern, week, woche";
pub(super) const NUMBERS: &str = "one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, twenty, hundred, thousand, \
     half, none, eins, zwei, drei, vier, fünf, sechs, sieben, acht, neun, zehn, zwölf, hundert, tausend";
pub(super) const REASONS: &str = "because, since, due to, so that, therefore, otherwise, in order to, caused by, weil, damit, wegen, \
     denn, deshalb, sonst, reason, cause, caused, grund";
/// Words before a place.
pub(super) const AT: &str = "in, at, on, under, beneath, behind, near, inside, within, between, im, am, auf, unter, hinter, neben, \
     bei, beim, zwischen, vor";

/// Verbs between a subject and what it is.
pub(super) const IS: &str = "is, are, means, ist, sind, bedeutet, heißt";
/// Articles before a subject, and the definite ones.
pub(super) const ARTICLES: &str = "a, an, the, ein, eine, der, die, das";
pub(super) const DEFINITE: &str = "the, der, die, das";

/// Phrases of questions that ask for a price, a way, a date, an amount, a person, a place, a reason.
pub(super) const ASKS_ELSE_THAN_PRICE: &str = "why, warum, who, wer, when, wann";
pub(super) const ASKS_WAY: &str =
    "how do i, how can i, how do you, how does one, how should i, how to, wie kann ich, wie kann man";
pub(super) const ASKS_DATE: &str = "when, wann, what date, which date, what day, which day, what time, what year, welchem tag, welchen tag, \
     welches datum, deadline";
pub(super) const ASKS_AMOUNT: &str = "how many, how much, how long, how old, how large, how big, how fast, how often, how far, how high, \
     what size, what percentage, limit, maximum, minimum, wie viel, wie viele, wieviel, wieviele, wie lange, \
     wie groß, wie hoch, wie alt, wie oft, wie weit, wie schnell";
pub(super) const ASKS_PERSON: &str = "who, whom, whose, wer, wem, wen, wessen";
pub(super) const ASKS_PLACE: &str =
    "where, wo, wohin, woher, which file, what file, which folder, welche datei";
pub(super) const ASKS_REASON: &str = "why, warum, wieso, weshalb";
/// Phrases before a subject in questions that ask for a definition.
pub(super) const ASKS_MEANING: &str =
    "what is, what are, what does, what s, was ist, was sind, was bedeutet, was heißt";

/// Whether a list, separated by `, `, contains a word.
pub(super) fn lists(list: &str, word: &str) -> bool {
    list.split(", ").any(|listed| listed == word)
}

/// Whether some phrase of a list is among these words.
pub(super) fn says(words: &[String], list: &str) -> bool {
    let text = format!(" {} ", words.join(" "));
    list.split(", ").any(|phrase| text.contains(&format!(" {phrase} ")))
}
