//! `larder serve` as a process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command};

use serde_json::Value;

use super::Shop;

/// A gateway under way.
pub struct Served {
    pub process: Child,
    pub address: String,
    pub greeting: String,
}

impl Served {
    pub fn start(shop: &Shop, args: &[&str]) -> Self {
        Self::of(shop.start(&[&["serve", "--listen", "127.0.0.1:0"], args].concat()))
    }

    /// A gateway whose process was started with its output piped.
    pub fn of(mut process: Child) -> Self {
        let mut out = BufReader::new(process.stdout.take().unwrap());
        let mut greeting = String::new();
        // The last line says whether there are keys.
        while !greeting.contains("keys") && out.read_line(&mut greeting).unwrap() > 0 {}
        let address =
            greeting.lines().next().unwrap().strip_prefix("larder serves http://").unwrap().to_owned();
        Self { process, address, greeting }
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.process.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Status and body of the reply to a request.
    pub fn post(&self, path: &str, body: &Value) -> (u16, String) {
        self.request("POST", path, &body.to_string())
    }

    /// The same for a request without a body.
    pub fn get(&self, path: &str) -> (u16, String) {
        self.request("GET", path, "")
    }

    fn request(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let (status, _, body) = self.ask(method, path, "", body);
        (status, body)
    }

    /// Status, head and body of the reply to a request with more headers, each with its line end.
    pub fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String, String) {
        let mut reply = String::new();
        self.send(method, path, headers, body).read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_owned(), body.to_owned())
    }

    /// Sends a request, and leaves its reply to be read.
    pub fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        stream
    }

    /// Waits for the end; gives the exit code and what was said on stderr.
    pub fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.process.wait().unwrap().code(), said)
    }
}

impl Drop for Served {
    /// A test that fails leaves no server behind.
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
