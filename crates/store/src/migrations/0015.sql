-- Version 15: conversations, and what is remembered of the persons who take part in them.

CREATE TABLE conversations (
    id      TEXT PRIMARY KEY,
    user    TEXT NOT NULL,
    type    TEXT NOT NULL,
    title   TEXT NOT NULL,
    created INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX conversations_of_owners ON conversations (user, created);

-- session: the number of the newest one. state: JSON of whoever leads the conversation.
CREATE TABLE conversation_participants (
    conversation TEXT NOT NULL,
    name         TEXT NOT NULL,
    user         TEXT NOT NULL,
    session      INTEGER NOT NULL,
    state        TEXT NOT NULL,
    PRIMARY KEY (conversation, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX participants_of_users ON conversation_participants (user, conversation);

-- opening: JSON of what a session was begun with.
CREATE TABLE conversation_sessions (
    conversation TEXT NOT NULL,
    participant  TEXT NOT NULL,
    session      INTEGER NOT NULL,
    user         TEXT NOT NULL,
    opening      TEXT NOT NULL,
    created      INTEGER NOT NULL,
    PRIMARY KEY (conversation, participant, session)
) STRICT, WITHOUT ROWID;

-- role: 0 the participant, 1 the assistant. pointer: the name of an original with the text. key: what a client gave to
-- post it once.
CREATE TABLE conversation_messages (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    user         TEXT NOT NULL,
    conversation TEXT NOT NULL,
    participant  TEXT NOT NULL,
    session      INTEGER NOT NULL,
    role         INTEGER NOT NULL,
    text         TEXT NOT NULL,
    pointer      TEXT,
    reply_to     INTEGER,
    pending      INTEGER NOT NULL,
    key          TEXT,
    data         TEXT NOT NULL,
    created      INTEGER NOT NULL
) STRICT;

CREATE INDEX messages_of_sessions ON conversation_messages (conversation, participant, session, number);
CREATE INDEX pending_messages ON conversation_messages (conversation, participant, number) WHERE pending = 1;
CREATE UNIQUE INDEX keyed_messages ON conversation_messages (conversation, participant, key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX replies ON conversation_messages (reply_to) WHERE reply_to IS NOT NULL;
CREATE INDEX messages_of_pointers ON conversation_messages (user, pointer) WHERE pointer IS NOT NULL;

-- What is known of a person, which is a user and the name of a participant: consents, facts, summaries and the like.
-- consent: the id of the consent under which it was made. ended: when it stopped to hold.
CREATE TABLE memory_records (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    user         TEXT NOT NULL,
    participant  TEXT NOT NULL,
    kind         TEXT NOT NULL,
    id           TEXT NOT NULL,
    conversation TEXT,
    session      INTEGER,
    consent      TEXT,
    data         TEXT NOT NULL,
    vector       BLOB,
    created      INTEGER NOT NULL,
    ended        INTEGER
) STRICT;

CREATE UNIQUE INDEX memory_ids ON memory_records (user, kind, id);
CREATE INDEX memory_of_persons ON memory_records (user, participant, kind, conversation, session);
CREATE INDEX memory_of_conversations ON memory_records (conversation, kind) WHERE conversation IS NOT NULL;

-- What conversations cost, summed as it is spent. day: days since 1970. call: the reply, or the kind of a job behind it.
CREATE TABLE conversation_costs (
    user         TEXT NOT NULL,
    conversation TEXT NOT NULL,
    type         TEXT NOT NULL,
    stage        TEXT NOT NULL,
    call         TEXT NOT NULL,
    day          INTEGER NOT NULL,
    calls        INTEGER NOT NULL,
    input        INTEGER NOT NULL,
    cached_input INTEGER NOT NULL,
    output       INTEGER NOT NULL,
    picos        INTEGER NOT NULL,
    PRIMARY KEY (user, conversation, stage, call, day)
) STRICT, WITHOUT ROWID;

CREATE INDEX conversation_costs_of_days ON conversation_costs (user, day);
