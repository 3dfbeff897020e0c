-- Version 16: how often something of a participant was erased or rewritten, for what is kept in memory.

ALTER TABLE conversation_participants ADD COLUMN erasures INTEGER NOT NULL DEFAULT 0;
