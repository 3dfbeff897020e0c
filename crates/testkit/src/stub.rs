//! A stub HTTP/1.1 server on the loopback address: it answers requests in order from a script, in any chunking, and
//! can break off, hang, and notice that its client left. Knows no wire format of any provider.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::task::JoinHandle;

/// Longest wait for something that a test expects to happen; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(120);

/// How the body of an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// As HTTP wants it.
    Clean,
    /// The connection closes in the middle of the body.
    Break,
    /// Nothing more is sent, and the connection stays open until the client leaves.
    Hang,
    /// The sending side closes in the middle of the body, and the connection stays open until the client leaves.
    HalfClose,
}

/// One answer.
#[derive(Debug, Clone)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    chunks: Vec<Vec<u8>>,
    /// More of the body, as the test sends it.
    pushed: Option<Arc<AsyncMutex<UnboundedReceiver<Vec<u8>>>>>,
    end: End,
}

/// The test's end of a body that it sends piece by piece; the body ends when this is dropped.
#[derive(Debug)]
pub struct Pusher(UnboundedSender<Vec<u8>>);

impl Pusher {
    /// Sends a piece.
    pub fn push(&self, piece: impl Into<Vec<u8>>) {
        // A server whose client has left accepts no more.
        let _ = self.0.send(piece.into());
    }
}

impl Answer {
    /// An answer whose body is sent at once.
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self { status, headers, chunks: vec![body.into()], pushed: None, end: End::Clean }
    }

    /// A JSON answer.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", body.to_string())
    }

    /// An event stream.
    pub fn events(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "text/event-stream", body)
    }

    /// Makes the body continue as the test sends it.
    #[must_use]
    pub fn pushed(mut self) -> (Self, Pusher) {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.pushed = Some(Arc::new(AsyncMutex::new(receiver)));
        (self, Pusher(sender))
    }

    /// With one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With the length of its body in a header, instead of chunks.
    #[must_use]
    pub fn sized(self) -> Self {
        let length = self.chunks.concat().len();
        self.header("content-length", &length.to_string())
    }

    /// With the body cut at these byte offsets.
    #[must_use]
    pub fn cut_at(mut self, cuts: impl IntoIterator<Item = usize>) -> Self {
        let body = self.chunks.concat();
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut < body.len()).collect();
        cuts.extend([0, body.len()]);
        cuts.sort_unstable();
        cuts.dedup();
        self.chunks = cuts.windows(2).map(|pair| body[pair[0]..pair[1]].to_vec()).collect();
        self
    }

    /// With the body sent byte by byte.
    #[must_use]
    pub fn byte_by_byte(self) -> Self {
        let bytes = self.chunks.concat().len();
        self.cut_at(0..bytes)
    }

    /// With another end.
    #[must_use]
    pub fn ending(mut self, end: End) -> Self {
        self.end = end;
        self
    }
}

/// A request as received.
#[derive(Debug, Clone)]
pub struct Seen {
    /// `POST /v1/messages`.
    pub line: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Seen {
    /// The first header of that lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body of a request is JSON")
    }
}

/// What answers requests: the rest of a script, or a function of the request.
type Responder = dyn Fn(&Seen) -> Answer + Send + Sync;

struct Shared {
    respond: Box<Responder>,
    seen: Mutex<Vec<Seen>>,
}

/// The server. It stops when dropped.
pub struct StubServer {
    address: String,
    shared: Arc<Shared>,
    left: watch::Receiver<usize>,
    task: JoinHandle<()>,
}

impl StubServer {
    /// Starts a server that returns `answers` in order, over any number of connections, and 599 after the last.
    pub async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::start_on(0, answers).await
    }

    /// The same on a port of the caller's choice.
    pub async fn start_on(port: u16, answers: impl IntoIterator<Item = Answer>) -> Self {
        let script: Mutex<VecDeque<Answer>> = Mutex::new(answers.into_iter().collect());
        let next = move |_: &Seen| {
            let answer = script.lock().expect("no other test thread has panicked").pop_front();
            answer.unwrap_or_else(|| Answer::new(599, "text/plain", "the script has no more answers"))
        };
        Self::respond_on(port, next).await
    }

    /// Starts a server that computes each answer from the request.
    pub async fn responding(respond: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        Self::respond_on(0, respond).await
    }

    async fn respond_on(port: u16, respond: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("the loopback port is free");
        let address = format!("http://{}", listener.local_addr().expect("a bound socket has an address"));
        let shared = Arc::new(Shared { respond: Box::new(respond), seen: Mutex::default() });
        let (tell_left, left) = watch::channel(0);
        let state = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&state), tell_left.clone()));
            }
        });
        Self { address, shared, left, task }
    }

    /// `http://127.0.0.1:port`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Every request so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().expect("no other test thread has panicked").clone()
    }

    /// Waits until a client has closed its connection during an answer that hangs or is being pushed.
    pub async fn client_left(&self) {
        let mut left = self.left.clone();
        let waited = tokio::time::timeout(PATIENCE, left.wait_for(|count| *count > 0)).await;
        waited.expect("the client closes its connection").expect("the server is alive");
    }
}

impl Drop for StubServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>, left: watch::Sender<usize>) {
    stream.set_nodelay(true).expect("a TCP socket takes options");
    let mut buffer = Vec::new();
    while let Some(seen) = read_request(&mut stream, &mut buffer).await {
        let answer = (shared.respond)(&seen);
        shared.seen.lock().expect("no other test thread has panicked").push(seen);
        if write_answer(&mut stream, &answer).await.is_err() {
            if answer.pushed.is_some() {
                left.send_modify(|count| *count += 1);
            }
            return;
        }
        match answer.end {
            End::Clean => {}
            End::Break => return,
            End::Hang | End::HalfClose => {
                if answer.end == End::HalfClose {
                    let _ = stream.shutdown().await;
                }
                let mut rest = [0; 64];
                while matches!(stream.read(&mut rest).await, Ok(count) if count > 0) {}
                left.send_modify(|count| *count += 1);
                return;
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Seen> {
    let head_end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
    buffer.drain(..head_end + 4);
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length =
        headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    let length: usize = length.unwrap_or(0);
    while buffer.len() < length {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let body = buffer.drain(..length).collect();
    Some(Seen { line, headers, body })
}

/// Each chunk is one chunk of HTTP's own encoding, so the client sees these boundaries regardless of the network.
async fn write_answer(stream: &mut TcpStream, answer: &Answer) -> std::io::Result<()> {
    let is_sized = answer.headers.iter().any(|(name, _)| name == "content-length");
    let framing = if is_sized { "" } else { "transfer-encoding: chunked\r\n" };
    let mut head = format!("HTTP/1.1 {} Stub\r\n{framing}", answer.status);
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    if is_sized {
        stream.write_all(&answer.chunks.concat()).await?;
        return stream.flush().await;
    }
    for chunk in answer.chunks.iter().filter(|chunk| !chunk.is_empty()) {
        write_chunk(stream, chunk).await?;
        tokio::task::yield_now().await;
    }
    if let Some(pushed) = &answer.pushed {
        let mut pushed = pushed.lock().await;
        let mut gone = [0; 1];
        loop {
            tokio::select! {
                piece = pushed.recv() => match piece {
                    Some(piece) => write_chunk(stream, &piece).await?,
                    None => break,
                },
                // The client sends nothing while it receives an answer, so this ends only when it leaves.
                _ = stream.read(&mut gone) => return Err(std::io::ErrorKind::BrokenPipe.into()),
            }
        }
    }
    if answer.end == End::Clean {
        stream.write_all(b"0\r\n\r\n").await?;
    }
    stream.flush().await
}

async fn write_chunk(stream: &mut TcpStream, chunk: &[u8]) -> std::io::Result<()> {
    stream.write_all(&[format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat()).await
}
