-- Version 14: what users published for all users.

CREATE TABLE publications (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    user       TEXT NOT NULL,
    origin     TEXT NOT NULL,
    category   TEXT NOT NULL,
    source     TEXT NOT NULL,
    statements TEXT NOT NULL,
    published  INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX publications_of_origins ON publications (user, origin);
