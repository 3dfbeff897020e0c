-- Version 10: numbered revisions of what is learned at run time, and the one that each conversation uses.

-- changes: JSON, the new text of each changed setting by its key, or null if nothing is learned for it any more.
CREATE TABLE revisions (
    number  INTEGER PRIMARY KEY,
    created INTEGER NOT NULL,
    cause   TEXT NOT NULL,
    changes TEXT NOT NULL
) STRICT;

CREATE TABLE session_revisions (
    user     TEXT NOT NULL,
    session  TEXT NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (user, session)
) STRICT, WITHOUT ROWID;
