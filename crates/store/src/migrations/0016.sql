-- Version 16: the order of messages that were posted while a reply was written, the keys of messages that are gone, and how
-- often something of a participant was erased or rewritten, for what is kept in memory.

ALTER TABLE conversation_participants ADD COLUMN erasures INTEGER NOT NULL DEFAULT 0;

-- turn: of a reply the turn of its message, and of a message that waits for its reply again where it stands now; otherwise
-- its own number. Messages are in the order of turns.
ALTER TABLE conversation_messages ADD COLUMN turn INTEGER;

UPDATE conversation_messages SET turn = reply_to WHERE reply_to IS NOT NULL;

-- number: the message that took the place of the one with this key, if it was not deleted.
CREATE TABLE conversation_keys (
    conversation TEXT NOT NULL,
    participant  TEXT NOT NULL,
    key          TEXT NOT NULL,
    user         TEXT NOT NULL,
    number       INTEGER,
    PRIMARY KEY (conversation, participant, key)
) STRICT, WITHOUT ROWID;
