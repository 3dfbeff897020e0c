-- Version 18: invitations. Whom another user named takes part in a conversation only after accepting, and has nothing of it
-- before.

CREATE TABLE conversation_invitations (
    conversation TEXT NOT NULL,
    name         TEXT NOT NULL,
    user         TEXT NOT NULL,
    created      INTEGER NOT NULL,
    PRIMARY KEY (conversation, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX invitations_of_users ON conversation_invitations (user, created);
