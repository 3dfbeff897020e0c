//! Documents over REST: one by its path, and search. Documents of other users do not exist for the caller.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use axum::{Extension, Json};
use larder_gateway::app::App;
use larder_gateway::auth::Caller;
use larder_store::{DocumentHit, DocumentKind, StoreError, UserDocuments};
use larder_vault::{VaultPath, turn_number};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Problem;
use super::endpoint::{Endpoints, routes};
use super::extract::{Path, Query, blocking};
use super::limit;
use super::pointers::raw;

/// The endpoints of documents.
pub(super) fn endpoints(to: &mut impl Endpoints) {
    routes!(to, one, search);
}

/// The signature of a PNG file.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// A document, or a file of a turn that is not committed yet; `None` if there is none. Blocks.
///
/// # Errors
/// The path is another user's, or reading fails.
pub fn document(documents: &UserDocuments, path: &VaultPath) -> Result<Option<Vec<u8>>, StoreError> {
    if let Some(bytes) = documents.files().read(path)? {
        return Ok(Some(bytes));
    }
    let Some((number, name)) = place_in_turn(documents, path) else { return Ok(None) };
    Ok(documents.drafts().get(number)?.and_then(|mut draft| draft.files.remove(name)))
}

/// The turn of a file, and its path in the turn's folder; `None` for files in the archive.
pub fn place_in_turn<'p>(documents: &UserDocuments, path: &'p VaultPath) -> Option<(u32, &'p str)> {
    let index = documents.place().turns_index();
    let rest = path.as_str().strip_prefix(index.folder())?.strip_prefix('/')?;
    let (folder, name) = rest.split_once('/')?;
    Some((turn_number(folder)?, name))
}

/// The documents of a turn, sorted; those of its draft while it is not committed. Blocks.
///
/// # Errors
/// The store fails.
pub fn files_of_turn(documents: &UserDocuments, number: u32) -> Result<Vec<VaultPath>, StoreError> {
    if let Some(row) = documents.catalog().turn(number)? {
        return documents.files().list(row.context.folder());
    }
    let Some(draft) = documents.drafts().get(number)? else { return Ok(Vec::new()) };
    let folder = draft.place.folder();
    Ok(draft.files.keys().filter_map(|name| VaultPath::new(&format!("{folder}/{name}"))).collect())
}

/// Parses the path of a document.
///
/// # Errors
/// If no document can have it.
pub fn vault_path(text: &str) -> Result<VaultPath, Problem> {
    VaultPath::new(text).ok_or_else(|| Problem::not_found("there is no such document"))
}

/// The words to search for.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SearchParams {
    /// Words.
    pub q: String,
    /// Only documents of this kind: `context`, `research`, `page`, `memory` or `other`.
    #[param(value_type = Option<String>)]
    pub kind: Option<DocumentKind>,
    /// The number of entries. Default: 50, at most 500.
    pub limit: Option<u64>,
}

/// Search results.
#[derive(Debug, Serialize, ToSchema)]
pub struct Hits {
    /// Best first.
    pub hits: Vec<DocumentHit>,
}

impl Hits {
    /// Searches. Blocks.
    ///
    /// # Errors
    /// The store fails.
    pub fn read(documents: &UserDocuments, sought: &SearchParams) -> Result<Self, StoreError> {
        let kinds: Vec<DocumentKind> = sought.kind.into_iter().collect();
        Ok(Self { hits: documents.catalog().search(&sought.q, &kinds, limit(sought.limit))? })
    }
}

/// Read a document
#[utoipa::path(
    get, path = "/api/v1/documents/{*path}", tag = "documents",
    params(("path" = String, Path, description = "Its path in the vault", example = "users/local/turns/turn_000001/context.md")),
    responses(
        (status = 200, description = "Its bytes: text where they are UTF-8, a picture where they are a PNG", content(
            (String = "text/plain"),
            (Vec<u8> = "image/png"),
            (Vec<u8> = "application/octet-stream"),
        )),
        (status = 404, description = "Not a document of this user", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn one(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(path): Path<String>,
) -> Result<Response, Problem> {
    let path = vault_path(&path)?;
    let found = blocking(move || document(&app.documents_of(&caller.store)?, &path)).await?;
    let bytes = found.ok_or_else(|| Problem::not_found("there is no such document"))?;
    let png = bytes.starts_with(PNG);
    let mut response = raw(bytes);
    if png {
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("image/png"));
    }
    Ok(response)
}

/// Search documents
#[utoipa::path(
    get, path = "/api/v1/search", tag = "documents", params(SearchParams),
    responses((status = 200, description = "Documents that hold words of the query", body = Hits))
)]
pub async fn search(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Query(sought): Query<SearchParams>,
) -> Result<Json<Hits>, Problem> {
    Ok(Json(blocking(move || Hits::read(&app.documents_of(&caller.store)?, &sought)).await?))
}
