//! Streams that are read whole, cut anywhere, or read again later.

use larder_conversation::Reply;

use super::*;

fn reply(text: &str) -> Reply {
    Reply {
        number: 2,
        to: Some(1),
        text: text.into(),
        stage: String::new(),
        next_stage: String::new(),
        draft: None,
        action: None,
        safety: false,
        is_cut: false,
        left_out: 0,
        model: String::new(),
        usage: larder_text::usage::Usage::default(),
        cost: None,
        latency_ms: 0,
        problems: Vec::new(),
        notices: Vec::new(),
    }
}

/// What a client has after reading: its text, and the id that it would resume with.
async fn read(stream: &Arc<ReplyStream>, most: usize, text: &mut String, last: &mut Option<String>) -> bool {
    let mut reader = stream.read(last.as_deref());
    for _ in 0..most {
        match reader.next().await {
            Some(ReplyEvent::Text { id, text: piece }) => {
                text.push_str(&piece);
                *last = Some(id);
            }
            Some(ReplyEvent::Restart) => {
                text.clear();
                *last = None;
            }
            Some(ReplyEvent::Done(_)) => return true,
            _ => {}
        }
    }
    false
}

#[tokio::test]
async fn a_stream_that_is_cut_anywhere_gives_the_same_text() {
    let pieces = ["Hel", "lo, ", "wörld", " again"];
    let whole = pieces.concat();
    let lengths: Vec<usize> = pieces.iter().map(|piece| piece.len()).collect();
    for cut in 0..8 {
        let live = Arc::new(ReplyStream::new(1));
        // Another model began before.
        live.text("Hal");
        let (mut text, mut last) = (String::new(), None);
        read(&live, 1, &mut text, &mut last).await;
        live.restart();
        pieces.iter().for_each(|piece| live.text(piece));
        live.done(reply(&whole), &lengths);
        if !read(&live, cut, &mut text, &mut last).await {
            let later = ReplyStream::of(
                1,
                reply(&whole),
                &ReplyRecord { pieces: lengths.clone(), ..ReplyRecord::default() },
            );
            assert!(read(&later, 100, &mut text, &mut last).await);
        }
        assert_eq!(text, whole, "{cut}");
    }
}

#[tokio::test]
async fn a_reply_that_was_written_elsewhere_comes_in_its_pieces() {
    let stream = Arc::new(ReplyStream::new(1));
    stream.done(reply("abc"), &[1, 2]);
    let mut reader = stream.read(None);
    let mut pieces = Vec::new();
    while let Some(event) = reader.next().await {
        if let ReplyEvent::Text { text, .. } = event {
            pieces.push(text);
        }
    }
    assert_eq!(pieces, ["a", "bc"]);
    assert_eq!(divided("äb", &[1, 2]), ["äb"], "no piece ends within a character");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_that_a_reply_failed_begins_a_new_one() {
    for _ in 0..500 {
        let replies = Arc::new(RunningReplies::default());
        let stream = Arc::new(ReplyStream::new(1));
        replies.lock().unwrap().insert(1, Arc::clone(&stream));
        let (listed, written) = (Arc::clone(&replies), Arc::clone(&stream));
        let writing = tokio::spawn(async move {
            Running::new(written, &listed)
                .end(Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no model")));
        });
        stream.read(None).ended().await.unwrap_err();
        assert!(replies.lock().unwrap().is_empty());
        writing.await.unwrap();
    }
}
