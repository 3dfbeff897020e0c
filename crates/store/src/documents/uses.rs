//! The track record of documents and sites. It cannot be derived from documents, so it is stored in the main
//! database.

use larder_vault::lifecycle::{TrackRecord, promoted};
use larder_vault::{DocumentTime, Scope, Score, VaultPath};
use rusqlite::{OptionalExtension, params};

use super::UserDocuments;
use super::index::{self, Wanted};
use super::types::SourceRow;
use crate::pointers::to_sql;
use larder_disk::StoreError;

/// How far documents and sites proved reliable for one user; from [`UserDocuments::uses`].
#[derive(Debug, Clone, Copy)]
pub struct Uses<'d> {
    pub(super) docs: &'d UserDocuments,
}

impl Uses<'_> {
    /// Records that a document was used, and whether it was right; returns its scope. New research with a good record
    /// counts for its user from then on (R1-12.6 to R1-12.8); its trust is the share of uses in which it was right.
    ///
    /// # Errors
    /// The path is not one of this user, or the main database cannot be written.
    pub fn record(&self, document: &VaultPath, ok: bool) -> Result<Scope, StoreError> {
        self.docs.require_own(document)?;
        let now = self.docs.now();
        let research = self.docs.index().read(|tx| index::research(tx, Wanted::Document(document), 1))?;
        let research = research.first();
        let scope = self.docs.store.write_unsynced(|tx| {
            let mut query =
                tx.prepare_cached("SELECT uses, ok, scope FROM document_uses WHERE user = ?1 AND path = ?2")?;
            let row = query.query_row(params![self.docs.user(), document.as_str()], |row| {
                Ok((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?, row.get::<_, String>(2)?))
            });
            let (uses, right, scope) = row.optional()?.unwrap_or((0, 0, String::new()));
            let (uses, right) = (uses.saturating_add(1), right.saturating_add(u32::from(ok)));
            let learned = scope.parse().unwrap_or(Scope::New).min(Scope::User);
            let scope = research.map_or(learned, |research| {
                let standing = TrackRecord {
                    trust: share(right, uses),
                    uses,
                    age: now.seconds_since(research.created_at),
                    evergreen: research.expires_at.is_none(),
                };
                promoted(learned.max(research.scope), &standing)
            });
            tx.prepare_cached(
                "INSERT OR REPLACE INTO document_uses (user, path, uses, ok, scope) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![self.docs.user(), document.as_str(), uses, right, scope.as_str()])?;
            Ok(scope)
        })?;
        if let Some(research) = research {
            self.docs.notes().write_research([research.topic.as_str()].into_iter())?;
        }
        Ok(scope)
    }

    /// The record of a document: its uses, and the share of them in which it was right.
    ///
    /// # Errors
    /// The main database cannot be read.
    pub fn of(&self, document: &VaultPath) -> Result<(u32, Score), StoreError> {
        self.docs.store.index().read(|tx| {
            let sql = "SELECT uses, ok FROM document_uses WHERE user = ?1 AND path = ?2";
            let mut query = tx.prepare_cached(sql)?;
            let row = query.query_row(params![self.docs.user(), document.as_str()], |row| {
                Ok((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?))
            });
            let (uses, right) = row.optional()?.unwrap_or_default();
            Ok((uses, share(right, uses)))
        })
    }

    /// Records that a site was relied on, and whether it proved right.
    ///
    /// # Errors
    /// The domain is not a valid name, or the main database cannot be written.
    pub fn record_source(&self, domain: &str, ok: bool) -> Result<(), StoreError> {
        larder_disk::user::check_name("the site", domain)?;
        let now = self.docs.now().as_millis();
        self.docs.store.write_unsynced(|tx| {
            tx.prepare_cached(
                "INSERT INTO document_sources (user, domain, ok, failed, used) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET ok = ok + excluded.ok, failed = failed + excluded.failed,
                 used = max(used, excluded.used)",
            )?
            .execute(params![
                self.docs.user(),
                domain.to_lowercase(),
                i64::from(ok),
                i64::from(!ok),
                now
            ])?;
            Ok(())
        })
    }

    /// The track record of a site; `None` if it was never used.
    ///
    /// # Errors
    /// The main database cannot be read.
    pub fn source(&self, domain: &str) -> Result<Option<SourceRow>, StoreError> {
        let domain = domain.to_lowercase();
        self.docs.store.index().read(|tx| {
            let mut query = tx.prepare_cached(
                "SELECT ok, failed, used FROM document_sources WHERE user = ?1 AND domain = ?2",
            )?;
            let row = query.query_row(params![self.docs.user(), domain], |row| {
                Ok((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?, row.get(2)?))
            });
            let Some((ok, failed, used)) = row.optional()? else { return Ok(None) };
            let used = DocumentTime::from_millis(used);
            Ok(used.map(|last_used| SourceRow {
                domain,
                ok: u64::from(ok),
                failed: u64::from(failed),
                reliability: share(ok.saturating_add(1), ok.saturating_add(failed).saturating_add(2))
                    .rounded(),
                last_used,
            }))
        })
    }

    /// Moves the record of a document to another path, where it now is.
    pub(super) fn rename(&self, from: &VaultPath, to: &VaultPath) -> Result<(), StoreError> {
        self.docs.store.write_unsynced(|tx| {
            tx.execute(
                "UPDATE OR REPLACE document_uses SET path = ?3 WHERE user = ?1 AND path = ?2",
                params![self.docs.user(), from.as_str(), to.as_str()],
            )?;
            Ok(())
        })
    }

    /// Moves the records of a folder to another one, where its documents now are.
    pub(super) fn rename_folder(&self, from: &str, to: &str) -> Result<(), StoreError> {
        self.docs.store.write_unsynced(|tx| {
            tx.execute(
                "UPDATE OR REPLACE document_uses SET path = ?3 || substr(path, ?4)
                 WHERE user = ?1 AND path >= ?2 || '/' AND path < ?2 || '0'",
                params![self.docs.user(), from, to, to_sql(from.chars().count() as u64 + 1)],
            )?;
            Ok(())
        })
    }
}

fn share(part: u32, whole: u32) -> Score {
    Score::new(f64::from(part) / f64::from(whole.max(1))).unwrap_or_default()
}
