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
