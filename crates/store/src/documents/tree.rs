//! The storage of documents: a folder or a bucket. Knows paths and bytes, not their meaning.

use std::sync::Arc;

use larder_disk::StoreError;
#[cfg(feature = "s3")]
use larder_disk::tree::Bucket;
use larder_disk::tree::{Folder, Tree};

use super::types::DocumentPlace;

/// The tree at a place.
pub(super) fn open(place: &DocumentPlace) -> Result<Arc<dyn Tree>, StoreError> {
    match place {
        DocumentPlace::Folder(root) => Ok(Arc::new(Folder::open(root)?)),
        #[cfg(feature = "s3")]
        DocumentPlace::Url(url) => Ok(Arc::new(Bucket::open(url)?)),
        #[cfg(not(feature = "s3"))]
        DocumentPlace::Url(url) => Err(StoreError::BadPlace {
            place: url.clone(),
            reason: "this Larder was built without S3; build it with the feature s3, or name a folder"
                .to_owned(),
        }),
    }
}
