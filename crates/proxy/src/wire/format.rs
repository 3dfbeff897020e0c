//! The specifics of each wire format. To add a format, implement this trait and add a variant to [`ApiDialect`]; the
//! compiler then reports what is missing. Knows no HTTP and no policy.

use larder_text::json::{Edit, Value};
use larder_text::provider::Provider;
use larder_text::usage::Usage;
use serde_json::Value as Json;

use super::api_error::ApiError;
use super::framing::Framing;
use super::hidden::{HiddenStep, HiddenSteps};
use super::read::ReadError;
use super::recipe_reply::{RecipeReply, ReplyPart};
use super::reply::{ReplyClose, ReplyRound, Tally};
use super::request::Request;

/// A wire format. Units are the elements of replies that histories repeat: entries of `tool_calls`, blocks or items.
pub(super) trait WireFormat: Sync {
    /// Its name in records, metrics and pages.
    fn name(&self) -> &'static str;

    /// The path to which its requests are posted, where their body names the model and says whether to stream; `None`
    /// where the path does ([`ModelPath`](super::ModelPath)).
    fn path(&self) -> Option<&'static str>;

    /// The provider whose servers support it.
    fn provider(&self) -> Provider;

    /// A header that only clients of the format send, in lower case; `None` if they are known by the path alone.
    fn client_header(&self) -> Option<&'static str>;

    /// How its streams are laid out.
    fn framing(&self) -> Framing {
        Framing::Events
    }

    /// A model in a list of models.
    fn listed_model(&self, id: &str) -> Json;

    /// Whether its clients ask for lists of models by the page: `after_id`, `before_id` and `limit`.
    fn pages_models(&self) -> bool {
        false
    }

    /// A list of models that this format's clients can read; `has_more` where there are other pages.
    fn model_list(&self, models: Vec<Json>, has_more: bool) -> Json;

    /// Reads a request body.
    fn read<'b>(&self, root: Value<'_, 'b>, request: &mut Request<'b>) -> Result<(), ReadError>;

    /// Strings of which at least one is in every request whose history contains an answer of the model; other
    /// requests may contain them too.
    fn answer_marks(&self) -> &'static [&'static str] {
        &["assistant"]
    }

    /// The member of an assistant's message that lists its units; `None` where the elements of the history are units.
    fn units_member(&self) -> Option<&'static str>;

    /// The model's text in a unit of a reply or a message of a history; `None` if it is not text, or has a call.
    fn said(&self, unit: Value<'_, '_>) -> Option<String> {
        super::place::said_in_content(unit)
    }

    /// The keys of a unit that occurs in a reply and in later histories: the provider's ids, or none for plain text.
    /// Calls are also identified by name and arguments, since some servers count their ids from 0 in each
    /// conversation. `answers`: the calls may be elsewhere, so their results are identified by id alone.
    fn keys(&self, unit: Value<'_, '_>, answers: bool) -> Vec<String>;

    /// Puts hidden steps back before their anchor, a unit of element `at` of the history.
    fn put_back(
        &self,
        request: &Request<'_>,
        hidden: &HiddenSteps,
        at: usize,
        unit: Value<'_, '_>,
    ) -> Vec<Edit>;

    /// The definition of Larder's tool; the arguments are JSON.
    fn tool(&self, name: &str, description: &str, parameters: &str) -> String;

    /// The member of a request that defines these tools, where it defines none.
    fn tools_member(&self, tools: &str) -> String {
        format!(r#""tools":{tools}"#)
    }

    /// How a list of allowed tools names Larder's tool.
    fn tool_reference(&self, name: &str) -> String;

    /// A result of Larder's tool; the arguments are JSON.
    fn tool_result(&self, id: &str, text: &str) -> String;

    /// A block of text; the argument is JSON.
    fn text_block(&self, text: &str) -> String {
        format!(r#"{{"type":"text","text":{text}}}"#)
    }

    /// Whether a unit is a call, and the members with a call's id and arguments.
    fn call(&self, unit: Value<'_, '_>) -> (bool, &'static str, &'static str);

    /// Whether the text of a reply is one string for all its rounds, outside of its units.
    fn has_one_text(&self) -> bool {
        false
    }

    /// The request member with the history, and what to append there to continue: what the model `said`, its calls
    /// and our results.
    fn next_step(&self, step: &HiddenStep, said: &str) -> (&'static str, String);

    /// Whether the provider itself adds a request and its reply to the history of the next one.
    fn is_history_held(&self, _request: Value<'_, '_>) -> bool {
        false
    }

    /// Whether the history may be absent from a request.
    fn may_lack_history(&self) -> bool {
        false
    }

    /// Whether a unit may be sent back to the provider. Some refuse text without letters, and thoughts that they can
    /// neither look up nor unseal.
    fn may_be_said_again(&self, round: &ReplyRound, unit: Value<'_, '_>) -> bool;

    /// A provider's report in Larder's terms.
    fn usage(&self, tally: &Tally) -> Usage;

    /// Reads how a complete reply ended and what is outside its units; returns the list of units.
    fn read_reply<'d, 't>(&self, root: Value<'d, 't>, round: &mut ReplyRound) -> Option<Value<'d, 't>>;

    /// The edits that turn the last complete reply into the client's.
    fn close_reply(&self, root: Value<'_, '_>, close: &ReplyClose<'_>) -> Vec<Edit>;

    /// The edits that remove Larder's tool where a reply repeats the tools of its request.
    fn unoffered(&self, _reply: Value<'_, '_>, _tool: &str) -> Vec<Edit> {
        Vec::new()
    }

    /// Bytes of text in a complete reply, as its stream would be counted: without markup, log probabilities or
    /// images.
    fn said_bytes(&self, root: Value<'_, '_>) -> usize;

    /// The words by which clients recognise that a prompt is too long, and then shorten their own history.
    fn too_long(&self, tokens: usize, budget: usize) -> String;

    /// The body of an error.
    fn error(&self, error: &ApiError) -> String;

    /// An error as an event that ends a stream. `sequence` numbers the event where the format does so.
    fn error_event(&self, error: &ApiError, sequence: u64) -> String;

    /// A reply that no provider wrote, in one piece.
    fn recipe_reply(&self, reply: &RecipeReply<'_>) -> String;

    /// A part of a reply that no provider wrote, as events of a stream.
    fn recipe_events(&self, reply: &RecipeReply<'_>, part: &ReplyPart<'_>) -> String;
}
