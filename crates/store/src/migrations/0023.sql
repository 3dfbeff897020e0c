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

-- Of messages so far, what begins like a pointer and has the name of an original, even of one that has expired.
WITH RECURSIVE found (number, at) AS (
    SELECT number, instr(text, 'lp1-') FROM conversation_messages WHERE instr(text, 'lp1-') > 0
    UNION ALL
    SELECT f.number, f.at + 3 + instr(substr(m.text, f.at + 4), 'lp1-')
    FROM found AS f JOIN conversation_messages AS m ON m.number = f.number
    WHERE instr(substr(m.text, f.at + 4), 'lp1-') > 0
)
INSERT OR IGNORE INTO message_pointers (user, name, number)
SELECT m.user, o.name, m.number
FROM found AS f JOIN conversation_messages AS m ON m.number = f.number
     JOIN (SELECT user, name FROM pointers UNION SELECT user, name FROM tombstones) AS o
     ON o.user = m.user AND o.name = substr(m.text, f.at + 4, 13);
