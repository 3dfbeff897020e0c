-- The index over the documents of one user. Everything here is made from paths and bytes of documents, so the file
-- may be deleted at any time.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Documents with words or links. text is a zstd frame; ids grow, so newer documents have larger ones.
CREATE TABLE documents (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL UNIQUE,
    kind INTEGER NOT NULL,
    turn INTEGER,
    text BLOB
) STRICT;
CREATE INDEX memory_documents ON documents (path) WHERE kind = 3;

-- One column for each kind of document, so that a search can be of some kinds only.
CREATE VIRTUAL TABLE words USING fts5(
    context, research, page, memory, other,
    content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);

CREATE TABLE links (
    source INTEGER NOT NULL,
    target TEXT NOT NULL,
    PRIMARY KEY (source, target)
) STRICT, WITHOUT ROWID;
CREATE INDEX links_by_target ON links (target);

CREATE TABLE turns (
    number   INTEGER PRIMARY KEY,
    document TEXT NOT NULL UNIQUE,
    user     TEXT NOT NULL,
    status   TEXT NOT NULL,
    query    TEXT NOT NULL,
    summary  TEXT,
    topic    TEXT,
    intent   TEXT,
    quality  REAL,
    created  INTEGER NOT NULL,
    session  TEXT,
    archived INTEGER NOT NULL
) STRICT;
CREATE INDEX turns_by_created ON turns (archived, created);
CREATE INDEX turns_by_topic ON turns (topic, number);
CREATE INDEX turns_by_session ON turns (session, number);

CREATE TABLE research (
    document TEXT PRIMARY KEY,
    id       TEXT NOT NULL,
    turn     INTEGER NOT NULL,
    topic    TEXT NOT NULL,
    intent   TEXT NOT NULL,
    quality  REAL NOT NULL,
    created  INTEGER NOT NULL,
    expires  INTEGER,
    supersedes TEXT,
    scope    TEXT NOT NULL,
    title    TEXT NOT NULL,
    archived INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX research_by_topic ON research (topic, created, turn, id);
CREATE INDEX research_by_created ON research (created, turn, id);
CREATE INDEX research_by_turn ON research (turn);
CREATE INDEX research_by_superseded ON research (supersedes) WHERE supersedes IS NOT NULL;

CREATE TABLE captures (
    manifest TEXT PRIMARY KEY,
    turn     INTEGER NOT NULL,
    url      TEXT NOT NULL,
    title    TEXT NOT NULL,
    captured INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX captures_by_turn ON captures (turn);
CREATE INDEX captures_by_url ON captures (url, captured);
CREATE INDEX captures_by_time ON captures (captured);

-- Other addresses that were asked for and led to a captured page.
CREATE TABLE redirects (
    manifest TEXT NOT NULL,
    url      TEXT NOT NULL,
    PRIMARY KEY (manifest, url)
) STRICT, WITHOUT ROWID;
CREATE INDEX redirects_by_url ON redirects (url);

-- How many turns (of: 0) or pieces of research (of: 1) there are on each topic, and the newest turn among them.
CREATE TABLE topics (
    of     INTEGER NOT NULL,
    topic  TEXT NOT NULL,
    count  INTEGER NOT NULL,
    newest INTEGER NOT NULL,
    PRIMARY KEY (of, topic)
) STRICT, WITHOUT ROWID;
CREATE INDEX topics_by_newest ON topics (of, newest);

-- What turns (of: 0) and research (of: 1) say in short: the texts that vectors are made of.
CREATE TABLE gists (
    document TEXT NOT NULL PRIMARY KEY,
    of       INTEGER NOT NULL,
    turn     INTEGER NOT NULL,
    hash     BLOB NOT NULL,
    text     TEXT NOT NULL
) STRICT;
CREATE INDEX gists_by_turn ON gists (turn);
CREATE INDEX gists_by_hash ON gists (hash, of, turn);

-- Vectors by the hash of their text, each model apart. Making them takes long, so they outlive their documents until the
-- index has been built anew: what is still said then keeps its vector.
CREATE TABLE spaces (
    id         INTEGER PRIMARY KEY,
    model      TEXT NOT NULL,
    of         INTEGER NOT NULL,
    dimensions INTEGER NOT NULL,
    UNIQUE (model, of, dimensions)
) STRICT;

-- numbers: one signed byte each, scaled so that the largest is 127.
CREATE TABLE vectors (
    space   INTEGER NOT NULL,
    slot    INTEGER NOT NULL,
    hash    BLOB NOT NULL,
    numbers BLOB NOT NULL,
    PRIMARY KEY (space, slot)
) STRICT;
CREATE UNIQUE INDEX vectors_by_hash ON vectors (space, hash);

-- The signs of the numbers, a bit each, of 256 slots together; zeros where a slot is empty.
CREATE TABLE signs (
    space INTEGER NOT NULL,
    block INTEGER NOT NULL,
    bits  BLOB NOT NULL,
    PRIMARY KEY (space, block)
) STRICT;
