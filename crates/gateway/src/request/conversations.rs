//! Requests whose model is a conversation type: the user's last message is posted, and everything before it is the
//! conversation's own already. Replies are written by [`replies`], whoever waits for them.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Response, StatusCode};
use bytes::Bytes;
use larder_conversation::resume::{Continuation, Remembered};
use larder_conversation::{Conversation, Reply};
use larder_engine::blocking;
use larder_engine::executor::Spending;
use larder_engine::history;
use larder_proxy::record::{Outcome, RequestSummary};
use larder_proxy::wire::{ApiDialect, Item, RecipeReply, ReplyPart, Request};
use larder_store::Speaker;
use larder_text::message::Role;
use larder_text::pointer::PointerKey;
use larder_text::usage::Usage;
use larder_text::words::{is_blank, plural};

use crate::app::App;
use crate::auth::Caller;
use crate::error::RequestError;
use crate::problem::Problem;
use crate::replies::{self, ReplyEvent, ReplyReader};
use crate::request::active::ActiveRequest;
use crate::request::fields::{Answerer, Fields};
use crate::request::reply;
use crate::sessions;

/// The header with the participant.
const PARTICIPANT: &str = "x-larder-participant";
/// The header that makes a repeated post the same one.
const KEY: &str = "idempotency-key";

/// A message for a conversation.
pub struct ConversationRequest {
    kind: String,
    /// The conversation that the client names.
    id: Option<String>,
    participant: Option<String>,
    key: Option<String>,
    before: Vec<Remembered>,
    text: String,
    /// The most tokens of the reply, if the client says so.
    max_output: Option<usize>,
    stream: bool,
    include_usage: bool,
}

/// Reads which conversation a request is for, and what is said. What is left out is listed in the record.
///
/// # Errors
/// The last message is not the user's, or the request has something that a conversation cannot take.
pub fn job(
    kind: &str,
    request: &Request<'_>,
    headers: &HeaderMap,
    record: &mut RequestSummary,
    key: &PointerKey,
) -> Result<ConversationRequest, RequestError> {
    let Fields { max_output, mut ignored, mut problems } = Fields::judge(request, Answerer::Conversation);
    problems.extend(history::read(request.body, key).err().into_iter().flatten());
    problems.extend(not_said(&request.items));
    if !problems.is_empty() {
        return Err(RequestError::invalid(format!("nothing was sent: {}", problems.join("; "))));
    }
    let instructions = request.items.iter().filter(|item| item.role() == Role::System);
    ignored.extend(instructions.map(|item| match item.message {
        Some(at) => format!("message {}: instructions", at + 1),
        None => "instructions".to_owned(),
    }));
    record.ignored = ignored;
    let said = |role: Role| match role {
        Role::User => Some(Speaker::Participant),
        Role::Assistant => Some(Speaker::Assistant),
        _ => None,
    };
    let remembered =
        |item: &Item<'_>| Some(Remembered { speaker: said(item.role())?, text: item.text().to_owned() });
    let mut before: Vec<Remembered> = request.items.iter().filter_map(remembered).collect();
    let last = before.pop().filter(|last| last.speaker == Speaker::Participant && !is_blank(&last.text));
    let Some(last) = last else {
        let words =
            "the last message has to be the user's and to have text: it is what the conversation answers";
        return Err(RequestError::invalid(words));
    };
    let named = |header: &str, field: &str| {
        let in_body = || request.metadata(field).map(|name| name.trim().to_owned());
        let in_header = sessions::named(headers, header)?.map(str::to_owned);
        Ok::<_, RequestError>(in_header.or_else(in_body).filter(|name| !name.is_empty()))
    };
    Ok(ConversationRequest {
        kind: kind.to_owned(),
        id: named(sessions::HEADER, "conversation")?,
        participant: named(PARTICIPANT, "participant")?,
        key: sessions::named(headers, KEY)?.map(str::to_owned),
        before,
        text: last.text,
        max_output,
        stream: request.stream,
        include_usage: request.include_usage,
    })
}

/// What of a request cannot be part of a conversation, which is text alone: each kind once, with its messages.
fn not_said(items: &[Item<'_>]) -> Vec<String> {
    let is_calling = |item: &Item<'_>| item.role() == Role::Tool || !item.calls.is_empty();
    let has_files = |item: &Item<'_>| item.role() == Role::User && !item.opaque.is_empty();
    let problem = |what: &str, is_it: &dyn Fn(&Item<'_>) -> bool| {
        let places = items.iter().filter(|item| is_it(item)).map(|item| item.message.map_or(1, |at| at + 1));
        let numbers: Vec<String> = places.collect::<BTreeSet<_>>().iter().map(ToString::to_string).collect();
        let plural = plural(numbers.len() as u64);
        let words = format!("a conversation takes text, and no {what}; leave them out");
        (!numbers.is_empty()).then(|| format!("message{plural} {}: {words}", numbers.join(", ")))
    };
    let calls = problem("calls of tools or their results", &is_calling);
    let files = problem("pictures or files", &|item| !is_calling(item) && has_files(item));
    calls.into_iter().chain(files).collect()
}

/// Posts the message and answers in the request's own format. The reply is written to its end and stored even if the client
/// leaves.
pub async fn run(mut active: ActiveRequest, dialect: ApiDialect, job: ConversationRequest) -> Response<Body> {
    // The reply takes a place of its own, so that as many can be written as there are places.
    active.leave_place();
    let (app, caller) = (Arc::clone(active.app()), active.caller.clone());
    let (stream, include_usage) = (job.stream, job.include_usage);
    let started = blocking::spawn(async move { start(&app, &caller, job).await }).await;
    let (id, reader) = match started {
        Ok(Ok(started)) => started,
        Ok(Err(problem)) => return reply::refuse(active, dialect, refused(&problem)),
        Err(error) => return reply::refuse(active, dialect, RequestError::bug(&error.to_string())),
    };
    active.record.summary.session = Some(id);
    // There is a conversation, so there is such a type.
    active.record.summary.model_is_known = true;
    let mut answer = Answer { active, dialect, include_usage, pieces: 0, text: String::new() };
    if stream {
        return answer.stream(reader).await;
    }
    match reader.ended().await {
        Ok(reply) => {
            answer.complete(&reply);
            let body = answer.with(&reply.text, Some(&reply), |form| form.whole(dialect).into_bytes());
            answer.end("application/json", body)
        }
        Err(problem) => reply::refuse(answer.active, dialect, refused(&problem)),
    }
}

/// Posts the message, and begins to answer it; returns the conversation's id and the reader of the reply.
async fn start(
    app: &Arc<App>,
    caller: &Caller,
    job: ConversationRequest,
) -> Result<(String, ReplyReader), Problem> {
    let (conversation, number) = posted(app, caller, &job).await?;
    let id = conversation.id().to_owned();
    // A stream in the format of a model cannot take text back.
    let takes_restarts = !job.stream;
    let conversation = conversation.with_max_output(job.max_output);
    Ok((id, replies::answer(app, caller, conversation, number, takes_restarts)?.read(None)))
}

/// The message in the conversation that is meant, or in a new one.
async fn posted(
    app: &App,
    caller: &Caller,
    job: &ConversationRequest,
) -> Result<(Conversation, u64), Problem> {
    let all = app.conversations(caller);
    let (participant, key) = (job.participant.as_deref(), job.key.as_deref());
    if let Some(id) = &job.id {
        let conversation = all.open(id, participant)?;
        let kind = &conversation.kind().kind.name;
        if *kind != job.kind {
            let words = format!("{id} is a conversation of type {kind}: ask the model `conversation/{kind}`");
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, words));
        }
        let number = match conversation.continuation(&job.before, &job.text)? {
            Continuation::New => conversation.post(&job.text, key)?.number,
            Continuation::Posted(number) => {
                conversation.await_reply(number)?;
                number
            }
            Continuation::Revised => conversation.revise(Some(&job.text), None).await?.number,
        };
        return Ok((conversation, number));
    }
    let found = all.resume(&job.kind, participant, &job.before, (&job.text, key)).await?;
    found.ok_or_else(|| {
        let words = format!(
            "the earlier messages are those of no conversation of type {}: name the conversation in the header {} or as \
             metadata.conversation, as the first reply named it in that header, or send the last message alone to begin one",
            job.kind,
            sessions::HEADER
        );
        Problem::new(StatusCode::CONFLICT, words)
    })
}

/// A problem as the formats of models report it.
fn refused(problem: &Problem) -> RequestError {
    let status = problem.status();
    let (class, outcome) = match status {
        StatusCode::NOT_FOUND => ("not_found", Outcome::Invalid),
        StatusCode::TOO_MANY_REQUESTS => ("budget_exceeded", Outcome::Refused),
        // What providers answer where a prompt does not fit.
        StatusCode::PAYLOAD_TOO_LARGE => return RequestError::too_long(problem.detail.clone()),
        StatusCode::SERVICE_UNAVAILABLE => ("overloaded", Outcome::Refused),
        StatusCode::GATEWAY_TIMEOUT => ("upstream_timeout", Outcome::UpstreamFailed),
        StatusCode::BAD_GATEWAY => ("upstream_failed", Outcome::UpstreamFailed),
        status if status.is_client_error() => ("invalid_request", Outcome::Invalid),
        _ => ("internal_error", Outcome::Failed),
    };
    RequestError::new(status, class, outcome, problem.detail.clone())
}

/// A reply on its way to the client.
struct Answer {
    active: ActiveRequest,
    dialect: ApiDialect,
    include_usage: bool,
    /// Pieces of the text that were sent, and all of them together.
    pieces: u64,
    text: String,
}

impl Answer {
    /// `reply` is what is known at its end.
    fn with<T>(&self, text: &str, reply: Option<&Reply>, of: impl FnOnce(&RecipeReply<'_>) -> T) -> T {
        let summary = &self.active.record.summary;
        of(&RecipeReply {
            id: &summary.id,
            created: summary.time.as_millis() / 1_000,
            model: &summary.model,
            text,
            draft: reply.and_then(|reply| reply.draft.as_deref()),
            is_cut: reply.is_some_and(|reply| reply.is_cut),
            usage: reply.map_or_else(Usage::default, |reply| reply.usage),
            include_usage: self.include_usage,
        })
    }

    fn part(&self, part: &ReplyPart<'_>) -> Vec<u8> {
        self.with("", None, |form| form.part(self.dialect, part))
    }

    /// The request ended well; the key was charged by whoever wrote the reply.
    fn complete(&mut self, reply: &Reply) {
        let spent = Spending { usage: reply.usage, cost: reply.cost };
        self.active.record_run(spent, Default::default());
        self.active.complete(StatusCode::OK);
    }

    fn end(self, kind: &str, body: Vec<u8>) -> Response<Body> {
        let response = head(&self.active, kind, Body::from(body));
        self.active.finish();
        response
    }

    /// Streams the reply. Nothing is sent before something of it is there, so that a failure has a status.
    async fn stream(mut self, mut reader: ReplyReader) -> Response<Body> {
        let first = loop {
            match reader.next().await {
                Some(ReplyEvent::Restart | ReplyEvent::Draft(_)) => {}
                Some(ReplyEvent::Problem(problem)) => {
                    return reply::refuse(self.active, self.dialect, refused(&problem));
                }
                Some(event) => break event,
                None => {
                    return reply::refuse(self.active, self.dialect, RequestError::bug("a reply has no end"));
                }
            }
        };
        self.active.respond(StatusCode::OK);
        let kind = self.dialect.stream_type();
        let begin = Bytes::from(self.part(&ReplyPart::Begin));
        let headers = head(&self.active, kind, Body::empty());
        let mut state = Streaming { answer: Some(self), reader, ready: VecDeque::from([begin]) };
        state.take(first);
        let events = futures::stream::unfold(state, Streaming::step);
        headers.map(|_| Body::from_stream(events))
    }
}

/// The head of a reply with our own headers.
fn head(active: &ActiveRequest, kind: &str, body: Body) -> Response<Body> {
    let mut response = Response::builder().header(CONTENT_TYPE, kind).body(body).unwrap_or_default();
    response.headers_mut().extend(reply::ours(&active.record));
    response
}

/// A stream under way.
struct Streaming {
    /// There until its end.
    answer: Option<Answer>,
    reader: ReplyReader,
    ready: VecDeque<Bytes>,
}

impl Streaming {
    async fn step(mut self) -> Option<(Result<Bytes, std::convert::Infallible>, Self)> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Some((Ok(bytes), self));
            }
            self.answer.as_ref()?;
            let event = self.reader.next().await?;
            self.take(event);
        }
    }

    /// What an event of the reply is to the client. Formats of models cannot take text back: a reply that begins anew
    /// behind some text is an error, and the next request gets it whole.
    fn take(&mut self, event: ReplyEvent) {
        let Some(mut answer) = self.answer.take() else { return };
        match event {
            ReplyEvent::Text { text, .. } => {
                let part = ReplyPart::Text { piece: &text, at: answer.pieces };
                self.ready.push_back(answer.part(&part).into());
                answer.pieces += 1;
                answer.text.push_str(&text);
                self.answer = Some(answer);
            }
            ReplyEvent::Restart if answer.pieces > 0 => {
                let words = "the reply was begun anew; send the same request again to get it whole";
                let problem = Problem::new(StatusCode::BAD_GATEWAY, words);
                self.fail(answer, &problem);
            }
            ReplyEvent::Restart | ReplyEvent::Draft(_) => self.answer = Some(answer),
            ReplyEvent::Done(reply) => {
                answer.complete(&reply);
                let part = ReplyPart::End { pieces: answer.pieces };
                let end = answer.with(&answer.text, Some(&reply), |form| form.part(answer.dialect, &part));
                self.ready.push_back(end.into());
                answer.active.finish();
            }
            ReplyEvent::Problem(problem) => self.fail(answer, &problem),
        }
    }

    fn fail(&mut self, mut answer: Answer, problem: &Problem) {
        let error = answer.active.fail(refused(problem));
        let failure = RecipeReply::failure(answer.dialect, &error.problem(), answer.pieces);
        self.ready.push_back(failure.into());
        answer.active.finish();
    }
}
