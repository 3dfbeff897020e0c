-- Version 5: round trips between model and gateway that clients do not see, to be put back into their histories.
CREATE TABLE round_trips (
    user     TEXT NOT NULL,
    session  TEXT NOT NULL,
    key      TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (user, session, key)
) STRICT, WITHOUT ROWID;
