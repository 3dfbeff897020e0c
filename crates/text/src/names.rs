//! Recognises names of places: web and e-mail addresses, file paths. Sees a single token.

/// Where a web address starts in a token.
pub fn url_start(token: &str) -> Option<usize> {
    if let Some(colon) = token.find("://") {
        let scheme = token[..colon].bytes().rev().take_while(u8::is_ascii_alphanumeric).count();
        return (scheme > 0 && token.len() > colon + 3).then_some(colon - scheme);
    }
    (token.len() > 6 && token.as_bytes()[..4].eq_ignore_ascii_case(b"www.")).then_some(0)
}

/// Whether a token is an e-mail address.
pub fn is_email(token: &str) -> bool {
    let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+' | '%');
    token.split_once('@').is_some_and(|(user, host)| {
        !user.is_empty() && user.chars().all(name) && host.contains('.') && host.chars().all(name)
    })
}

/// Whether a token is the path of a file; `after_angle`: it stands behind `<`, as the name of a tag does.
pub fn is_path(token: &str, after_angle: bool) -> bool {
    let bytes = token.as_bytes();
    if bytes.len() > 3 && bytes[0].is_ascii_alphabetic() && &bytes[1..3] == b":\\" {
        return true;
    }
    let Some((_, last)) = token.rsplit_once('/') else { return is_source_file(token) };
    let letters = token.bytes().filter(u8::is_ascii_alphabetic).count();
    let rooted = ["/", "./", "../", "~/"].iter().any(|root| token.starts_with(root)) && !after_angle;
    let slashes = token.bytes().filter(|&b| b == b'/').count();
    letters >= 2 && (rooted && token.len() >= 4 || has_extension(last) || slashes >= 3)
}

/// `main.rs`, `main.rs:12:5`, `notes.txt`: a stem, a dot, and a short extension that starts with a letter.
fn is_source_file(token: &str) -> bool {
    let file = token.split(':').next().unwrap_or(token);
    let known = [
        "rs", "py", "js", "ts", "tsx", "jsx", "go", "java", "c", "h", "cpp", "cc", "hpp", "rb", "php", "sh",
        "toml", "yaml", "yml", "json", "xml", "html", "css", "md", "txt", "log", "csv", "sql", "lock",
        "conf", "cfg", "ini", "exe", "dll", "so", "jar", "gz", "zip", "tar", "png", "jpg", "pdf",
    ];
    let stem_ok = |stem: &str| {
        !stem.is_empty() && stem.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
    };
    file.rsplit_once('.').is_some_and(|(stem, ext)| stem_ok(stem) && known.contains(&ext))
}

fn has_extension(name: &str) -> bool {
    let name = name.split(':').next().unwrap_or(name);
    name.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty()
            && (1..=5).contains(&extension.len())
            && extension.bytes().all(|b| b.is_ascii_alphanumeric())
            && extension.as_bytes()[0].is_ascii_alphabetic()
    })
}
