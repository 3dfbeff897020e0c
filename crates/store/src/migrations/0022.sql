-- Version 22: what is left of an expired original is removed in time, too.

CREATE INDEX tombstones_by_time ON tombstones (expired);
