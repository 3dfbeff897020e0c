//! Documents in an object store. Objects are written atomically and durably, so nothing needs syncing or tidying.

use std::sync::{Arc, mpsc};

use futures::TryStreamExt;
use larder_vault::VaultPath;
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt};
use tokio::runtime::{Builder, Runtime};

use super::{Level, Tree};
use crate::StoreError;

/// The number of objects removed concurrently.
const AT_ONCE: usize = 16;

/// A part of a bucket.
#[derive(Debug)]
pub struct Bucket {
    objects: Arc<dyn ObjectStore>,
    /// Talks to the server; there until the bucket is dropped.
    runtime: Option<Runtime>,
    /// Empty, or ending with `/`.
    prefix: String,
}

impl Bucket {
    /// Opens `s3://bucket/prefix` with the credentials, region and endpoint of the environment.
    ///
    /// # Errors
    /// The address or the environment cannot be used.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        let bad = |reason: String| StoreError::BadPlace { place: url.to_owned(), reason };
        let rest = url.strip_prefix("s3://");
        let rest = rest.ok_or_else(|| bad("expected s3://bucket or s3://bucket/prefix".to_owned()))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.trim_matches('/');
        if bucket.is_empty() || !prefix.is_empty() && VaultPath::new(prefix).is_none() {
            return Err(bad("expected s3://bucket or s3://bucket/prefix".to_owned()));
        }
        // rustls allows one provider per process; one installed by the embedding program is kept.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let built = AmazonS3Builder::from_env().with_bucket_name(bucket).build();
        let objects = built.map_err(|error| bad(format!("{error}; set the variables AWS_…")))?;
        Self::new(Arc::new(objects), prefix)
    }

    /// A part of any object store.
    fn new(objects: Arc<dyn ObjectStore>, prefix: &str) -> Result<Self, StoreError> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("documents").enable_all().build();
        let runtime = runtime.map_err(|error| StoreError::BadPlace {
            place: prefix.to_owned(),
            reason: format!("its thread cannot be started: {error}"),
        })?;
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        Ok(Self { objects, runtime: Some(runtime), prefix })
    }

    fn key(&self, path: &str) -> Result<Path, StoreError> {
        let key = format!("{}{path}", self.prefix);
        let key = Path::parse(key.trim_end_matches('/'));
        key.map_err(|error| failed(path, "naming an object")(error.into()))
    }

    fn path(&self, key: &Path) -> Option<VaultPath> {
        VaultPath::new(key.as_ref().strip_prefix(&self.prefix)?)
    }

    /// Runs work of the object store on the bucket's own runtime and waits for it, on any thread.
    fn wait<T: Send + 'static>(
        &self,
        path: &str,
        action: &'static str,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        if let Some(runtime) = &self.runtime {
            runtime.spawn(async move {
                let _ = sender.send(work.await);
            });
        }
        let done = receiver
            .recv()
            .unwrap_or_else(|source| Err(Error::Generic { store: "S3", source: Box::new(source) }));
        done.map_err(failed(path, action))
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        // Dropping a runtime waits for its threads, which an asynchronous caller must not do.
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

/// Names the document in an error of the object store.
fn failed(path: &str, action: &'static str) -> impl Fn(Error) -> StoreError {
    move |source| StoreError::Objects { path: path.to_owned(), action, source: Box::new(source) }
}

impl Tree for Bucket {
    fn read(&self, path: &VaultPath) -> Result<Option<Vec<u8>>, StoreError> {
        let (objects, key) = (Arc::clone(&self.objects), self.key(path.as_str())?);
        self.wait(path.as_str(), "reading a document", async move {
            match objects.get(&key).await {
                Err(Error::NotFound { .. }) => Ok(None),
                got => Ok(Some(got?.bytes().await?.into())),
            }
        })
    }

    fn write(&self, path: &VaultPath, bytes: &[u8]) -> Result<(), StoreError> {
        let (objects, key) = (Arc::clone(&self.objects), self.key(path.as_str())?);
        let bytes = bytes.to_vec();
        self.wait(path.as_str(), "writing a document", async move {
            objects.put(&key, bytes.into()).await.map(|_| ())
        })
    }

    fn remove(&self, path: &VaultPath) -> Result<(), StoreError> {
        let (objects, key) = (Arc::clone(&self.objects), self.key(path.as_str())?);
        self.wait(path.as_str(), "removing a document", async move { delete(&*objects, &key).await })
    }

    fn remove_folder(&self, folder: &str) -> Result<(), StoreError> {
        let (objects, key) = (Arc::clone(&self.objects), self.key(folder)?);
        self.wait(folder, "removing documents", async move {
            let listed = objects.list(Some(&key));
            let gone = listed.try_for_each_concurrent(AT_ONCE, |object| {
                let objects = &objects;
                async move { delete(&**objects, &object.location).await }
            });
            gone.await
        })
    }

    fn list(&self, folder: &str) -> Result<Vec<VaultPath>, StoreError> {
        let folder = folder.trim_matches('/');
        let (objects, key) = (Arc::clone(&self.objects), self.key(folder)?);
        let listed: Vec<_> = self
            .wait(folder, "listing documents", async move { objects.list(Some(&key)).try_collect().await })?;
        let hidden = |path: &VaultPath| path.as_str().split('/').any(|name| name.starts_with('.'));
        let mut paths: Vec<_> = listed.iter().filter_map(|object| self.path(&object.location)).collect();
        paths.retain(|path| !hidden(path));
        paths.sort();
        Ok(paths)
    }

    fn level(&self, folder: &str) -> Result<Level, StoreError> {
        let (objects, key) = (Arc::clone(&self.objects), self.key(folder)?);
        let listed =
            self.wait(
                folder,
                "listing documents",
                async move { objects.list_with_delimiter(Some(&key)).await },
            )?;
        let names = listed.common_prefixes.iter().filter_map(|prefix| prefix.filename());
        let mut level = Level {
            folders: names.filter(|name| !name.starts_with('.')).map(str::to_owned).collect(),
            files: listed.objects.iter().filter_map(|object| self.path(&object.location)).collect(),
        };
        level.files.retain(|file| !file.name().starts_with('.'));
        level.folders.sort();
        level.files.sort();
        Ok(level)
    }

    fn sync(&self, _: &[VaultPath]) -> Result<(), StoreError> {
        Ok(())
    }

    fn tidy(&self, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    fn folders_now(&self, _: &str) -> Option<Result<Vec<String>, StoreError>> {
        None
    }

    fn has_folder_now(&self, _: &str) -> bool {
        false
    }
}

/// Deletes an object; succeeds if it does not exist.
async fn delete(objects: &dyn ObjectStore, key: &Path) -> Result<(), Error> {
    match objects.delete(key).await {
        Err(Error::NotFound { .. }) => Ok(()),
        done => done,
    }
}
