-- Version 23: the originals that texts of messages refer to; they do not expire.

CREATE TABLE message_pointers (
    user   TEXT NOT NULL,
    name   TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (user, name, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX pointers_of_messages ON message_pointers (number);

CREATE TRIGGER message_gone AFTER DELETE ON conversation_messages
BEGIN
    DELETE FROM message_pointers WHERE number = OLD.number;
END;

CREATE TRIGGER message_replaced AFTER UPDATE OF text ON conversation_messages
BEGIN
    DELETE FROM message_pointers WHERE number = OLD.number;
END;

-- Of messages so far, what begins like a pointer and has the name of an original.
WITH RECURSIVE found (user, number, text) AS (
    SELECT user, number, substr(text, instr(text, 'lp1-') + 4) FROM conversation_messages WHERE instr(text, 'lp1-') > 0
    UNION ALL
    SELECT user, number, substr(text, instr(text, 'lp1-') + 4) FROM found WHERE instr(text, 'lp1-') > 0
)
INSERT OR IGNORE INTO message_pointers (user, name, number)
SELECT f.user, p.name, f.number FROM found AS f JOIN pointers AS p ON p.user = f.user AND p.name = substr(f.text, 1, 13);
