-- Version 17: one number says that something of a user was erased or rewritten (`memory_records` of kind `erasure`).

ALTER TABLE conversation_participants DROP COLUMN erasures;
