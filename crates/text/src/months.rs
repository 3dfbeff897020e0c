//! Names of months, in lower case.

/// English months in order.
pub const ENGLISH: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
/// German and Austrian months that are not spelled as in English.
pub const GERMAN: [&str; 10] =
    ["januar", "jänner", "februar", "feber", "märz", "mai", "juni", "juli", "oktober", "dezember"];
/// Months in French, Spanish, Italian, Portuguese, Dutch, Polish, and the languages of Scandinavia, with their numbers; those
/// that are spelled as in English or German are left out.
pub const ELSEWHERE: [(u32, &[&str]); 12] = [
    (
        1,
        &[
            "janvier", "janv", "enero", "ene", "gennaio", "gen", "janeiro", "januari", "stycznia", "styczeń",
            "sty",
        ],
    ),
    (
        2,
        &[
            "février",
            "fevrier",
            "févr",
            "fevr",
            "fév",
            "febrero",
            "febbraio",
            "fevereiro",
            "fev",
            "februari",
            "lutego",
            "luty",
            "lut",
        ],
    ),
    (3, &["mars", "marzo", "março", "marco", "maart", "mrt", "marca", "marzec", "marts"]),
    (4, &["avril", "avr", "abril", "abr", "aprile", "kwietnia", "kwiecień", "kwi"]),
    (5, &["mayo", "maggio", "mag", "maio", "mei", "maja", "maj"]),
    (6, &["juin", "junio", "giugno", "giu", "junho", "czerwca", "czerwiec", "cze"]),
    (7, &["juillet", "juil", "julio", "luglio", "lug", "julho", "lipca", "lipiec", "lip"]),
    (8, &["août", "aout", "agosto", "ago", "augustus", "augusti", "sierpnia", "sierpień", "sie"]),
    (
        9,
        &[
            "septembre",
            "septiembre",
            "setiembre",
            "settembre",
            "set",
            "setembro",
            "września",
            "wrzesień",
            "wrz",
        ],
    ),
    (10, &["octobre", "octubre", "ottobre", "ott", "outubro", "out", "października", "październik", "paź"]),
    (11, &["novembre", "noviembre", "novembro", "listopada", "listopad", "lis"]),
    (
        12,
        &[
            "décembre",
            "decembre",
            "déc",
            "diciembre",
            "dic",
            "dicembre",
            "dezembro",
            "grudnia",
            "grudzień",
            "gru",
        ],
    ),
];
