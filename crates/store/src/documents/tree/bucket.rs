//! Documents in an object store. Objects are written whole and are safe once they are written, so there is nothing to
//! sync and nothing to tidy.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use larder_vault::VaultPath;
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt};

use super::{Done, Level, Tree};
use crate::error::StoreError;

/// Objects that are removed at once.
const AT_ONCE: usize = 16;

/// A part of a bucket.
#[derive(Debug)]
pub(super) struct Bucket {
    objects: Arc<dyn ObjectStore>,
    /// Empty, or with `/` at its end.
    prefix: String,
}

impl Bucket {
    /// Opens `s3://bucket/prefix` with what the environment says about credentials, region and endpoint.
    pub(super) fn open(url: &str) -> Result<Self, StoreError> {
        let bad = |reason: String| StoreError::BadPlace { place: url.to_owned(), reason };
        let rest = url.strip_prefix("s3://");
        let rest = rest.ok_or_else(|| bad("expected s3://bucket or s3://bucket/prefix".to_owned()))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.trim_matches('/');
        if bucket.is_empty() || !prefix.is_empty() && VaultPath::new(prefix).is_none() {
            return Err(bad("expected s3://bucket or s3://bucket/prefix".to_owned()));
        }
        // rustls wants one provider per process; where the embedding program has chosen one, its choice stands.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let built = AmazonS3Builder::from_env().with_bucket_name(bucket).build();
        let objects = built.map_err(|error| bad(format!("{error}; set the variables AWS_…")))?;
        Ok(Self::new(Arc::new(objects), prefix))
    }

    /// A part of any object store.
    pub(super) fn new(objects: Arc<dyn ObjectStore>, prefix: &str) -> Self {
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        Self { objects, prefix }
    }

    fn key(&self, path: &str) -> Result<Path, StoreError> {
        let key = format!("{}{path}", self.prefix);
        let key = Path::parse(key.trim_end_matches('/'));
        key.map_err(|error| failed(path, "naming an object")(error.into()))
    }

    fn path(&self, key: &Path) -> Option<VaultPath> {
        VaultPath::new(key.as_ref().strip_prefix(&self.prefix)?)
    }

    async fn get(&self, path: &VaultPath) -> Result<Option<Vec<u8>>, StoreError> {
        let action = "reading a document";
        let got = match self.objects.get(&self.key(path.as_str())?).await {
            Err(Error::NotFound { .. }) => return Ok(None),
            got => got.map_err(failed(path.as_str(), action))?,
        };
        let bytes = got.bytes().await.map_err(failed(path.as_str(), action))?;
        Ok(Some(bytes.into()))
    }

    async fn delete(&self, path: &VaultPath) -> Result<(), StoreError> {
        match self.objects.delete(&self.key(path.as_str())?).await {
            Err(Error::NotFound { .. }) => Ok(()),
            done => done.map_err(failed(path.as_str(), "removing a document")),
        }
    }

    async fn all(&self, folder: &str) -> Result<Vec<VaultPath>, StoreError> {
        let folder = folder.trim_matches('/');
        let key = self.key(folder)?;
        let listed: Vec<_> =
            self.objects.list(Some(&key)).try_collect().await.map_err(failed(folder, "listing documents"))?;
        let hidden = |path: &VaultPath| path.as_str().split('/').any(|name| name.starts_with('.'));
        let mut paths: Vec<_> = listed.iter().filter_map(|object| self.path(&object.location)).collect();
        paths.retain(|path| !hidden(path));
        paths.sort();
        Ok(paths)
    }
}

/// Names the document in an error of the object store.
fn failed(path: &str, action: &'static str) -> impl Fn(Error) -> StoreError {
    move |source| StoreError::Objects { path: path.to_owned(), action, source: Box::new(source) }
}

impl Tree for Bucket {
    fn read<'a>(&'a self, path: &'a VaultPath) -> Done<'a, Option<Vec<u8>>> {
        Box::pin(self.get(path))
    }

    fn write<'a>(&'a self, path: &'a VaultPath, bytes: &'a [u8]) -> Done<'a, ()> {
        Box::pin(async move {
            let put = self.objects.put(&self.key(path.as_str())?, bytes.to_vec().into()).await;
            put.map(|_| ()).map_err(failed(path.as_str(), "writing a document"))
        })
    }

    fn remove<'a>(&'a self, path: &'a VaultPath) -> Done<'a, ()> {
        Box::pin(self.delete(path))
    }

    fn remove_folder<'a>(&'a self, folder: &'a str) -> Done<'a, ()> {
        Box::pin(async move {
            let key = self.key(folder)?;
            let gone = self.objects.list(Some(&key)).map(|object| async move {
                match self.objects.delete(&object?.location).await {
                    Err(Error::NotFound { .. }) => Ok(()),
                    done => done,
                }
            });
            let gone = gone.buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await;
            gone.map(|_| ()).map_err(failed(folder, "removing documents"))
        })
    }

    fn list<'a>(&'a self, folder: &'a str) -> Done<'a, Vec<VaultPath>> {
        Box::pin(self.all(folder))
    }

    fn level<'a>(&'a self, folder: &'a str) -> Done<'a, Level> {
        Box::pin(async move {
            let key = self.key(folder)?;
            let listed = self.objects.list_with_delimiter(Some(&key)).await;
            let listed = listed.map_err(failed(folder, "listing documents"))?;
            let names = listed.common_prefixes.iter().filter_map(|prefix| prefix.filename());
            let mut level = Level {
                folders: names.filter(|name| !name.starts_with('.')).map(str::to_owned).collect(),
                files: listed.objects.iter().filter_map(|object| self.path(&object.location)).collect(),
            };
            level.files.retain(|file| !file.name().starts_with('.'));
            level.folders.sort();
            level.files.sort();
            Ok(level)
        })
    }

    fn sync<'a>(&'a self, _: &'a [VaultPath]) -> Done<'a, ()> {
        Box::pin(futures::future::ready(Ok(())))
    }

    fn tidy<'a>(&'a self, _: &'a str) -> Done<'a, ()> {
        Box::pin(futures::future::ready(Ok(())))
    }

    fn folders_now(&self, _: &str) -> Option<Result<Vec<String>, StoreError>> {
        None
    }

    fn has_folder_now(&self, _: &str) -> bool {
        false
    }
}
