//! Removing everything of a user. The deletion is noted first, so that `recover` finishes one that was interrupted.

use larder_vault::layout::UserPlace;

use super::Documents;
use super::index::name_of;
use larder_disk::StoreError;

impl Documents {
    /// Removes everything that belongs to a user: documents, index, drafts, journal, and what
    /// [`crate::Store::delete_user`] removes.
    ///
    /// # Errors
    /// If a turn of the user is running, which would write documents again: nothing is removed then. Or if removing
    /// fails; another call, or [`Documents::recover`], continues it.
    pub fn forget(&self, user: &str) -> Result<(), StoreError> {
        larder_disk::user::check(user)?;
        require_rest(self, user)?;
        self.store().index().write(|tx| {
            tx.execute("INSERT INTO document_forgets (id) VALUES (?1) ON CONFLICT DO NOTHING", [user])?;
            Ok(())
        })?;
        forget_noted(self, user)
    }
}

/// Fails if a turn of the user is running.
fn require_rest(all: &Documents, user: &str) -> Result<(), StoreError> {
    let numbers: Vec<u32> = all.store().index().read(|tx| {
        let mut query = tx.prepare("SELECT number FROM turn_drafts WHERE user = ?1 ORDER BY number")?;
        Ok(query.query_map([user], |row| row.get(0))?.collect::<Result<_, _>>()?)
    })?;
    let documents = all.user(user)?;
    match numbers.into_iter().find(|number| documents.leases().is_held(*number)) {
        None => Ok(()),
        Some(number) => {
            let reason = format!("under way; stop it or wait for its end, then {user} can be forgotten");
            Err(StoreError::BadTurn { number, reason })
        }
    }
}

/// Finishes the deletions that a crash interrupted.
pub(super) fn finish_forgets(all: &Documents) -> Result<(), StoreError> {
    let users: Vec<String> = all.store().index().read(|tx| {
        let mut query = tx.prepare("SELECT id FROM document_forgets")?;
        Ok(query.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
    })?;
    for user in users {
        forget_noted(all, &user)?;
    }
    Ok(())
}

fn forget_noted(all: &Documents, user: &str) -> Result<(), StoreError> {
    // First the journal, which would bring documents back.
    all.store().delete_user(user)?;
    let name = &name_of(&UserPlace::new(user));
    all.tree().remove_folder(&format!("users/{name}"))?;
    for month in all.tree().level("archive")?.folders {
        all.tree().remove_folder(&format!("archive/{month}/{name}"))?;
    }
    all.remove_handles(name)?.index.destroy()?;
    all.store().index().write(|tx| {
        tx.execute("DELETE FROM document_forgets WHERE id = ?1", [user])?;
        Ok(())
    })
}
