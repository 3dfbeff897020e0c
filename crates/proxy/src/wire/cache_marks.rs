//! What a request has its provider write to the prompt cache, and for how long. Knows no prices.

use larder_text::json::Value;
use larder_text::price::CacheWrites;

use super::ApiDialect;
use super::request::{BREAKPOINTS, CACHE_POINT, Request};

impl<'b> Request<'b> {
    /// What the request has its provider write to the cache. The last mark says how long: what follows the one before it
    /// is written for that long, so it holds for the newest messages. Where providers cache without being asked, for their
    /// usual lifetime.
    pub fn cache_writes(&self) -> CacheWrites {
        match self.last_mark() {
            Some(mark) if mark.given("ttl").is_some_and(|ttl| ttl.is("1h")) => CacheWrites::Hour,
            None if self.is_cached_by_marks() => CacheWrites::Nothing,
            _ => CacheWrites::Usual,
        }
    }

    /// Whether only what is marked is cached.
    fn is_cached_by_marks(&self) -> bool {
        match self.dialect {
            ApiDialect::Messages | ApiDialect::Invoke | ApiDialect::Converse => true,
            ApiDialect::Chat | ApiDialect::Responses => false,
        }
    }

    /// The last mark in the order in which a provider reads a prompt: tools, instructions, messages; one of the whole
    /// request is at its end.
    fn last_mark(&self) -> Option<Value<'_, 'b>> {
        let root = self.doc.root();
        let of_messages = || {
            self.elements.iter().rev().find_map(|&id| {
                let objects = self.marked_objects(id);
                objects.into_iter().filter_map(|object| mark(self.doc.value(object))).next_back()
            })
        };
        let of_fixed = || {
            let wrapped = root.given("toolConfig").and_then(|tools| tools.given("tools"));
            let tools = wrapped.or_else(|| root.given("tools"));
            let lists = [root.given("system"), tools].into_iter().flatten();
            lists.filter_map(|list| list.items().filter_map(mark).last()).next()
        };
        mark(root).or_else(of_messages).or_else(of_fixed)
    }
}

/// The mark on an object, or that it is.
fn mark<'d, 'b>(object: Value<'d, 'b>) -> Option<Value<'d, 'b>> {
    object.given(BREAKPOINTS[0]).or_else(|| object.given(CACHE_POINT))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::wire;

    fn writes(dialect: ApiDialect, body: &Value) -> CacheWrites {
        wire::read(dialect, &body.to_string()).unwrap().cache_writes()
    }

    #[test]
    fn the_last_mark_of_a_request_says_how_long_it_is_cached() {
        let (usual, hour) = (json!({"type": "ephemeral"}), json!({"type": "ephemeral", "ttl": "1h"}));
        let text = |mark: &Value| json!([{"type": "text", "text": "about \"1h\"", "cache_control": mark}]);
        let with = |system: &Value, user: &Value| {
            json!({"model": "m", "max_tokens": 9, "system": text(system), "messages": [
                {"role": "user", "content": text(user)}, {"role": "assistant", "content": "so"},
                {"role": "user", "content": "and"}]})
        };
        let none = Value::Null;
        for (system, user, expected) in [
            (&none, &none, CacheWrites::Nothing),
            (&usual, &none, CacheWrites::Usual),
            (&hour, &none, CacheWrites::Hour),
            (&hour, &usual, CacheWrites::Usual),
            (&hour, &hour, CacheWrites::Hour),
        ] {
            assert_eq!(writes(ApiDialect::Messages, &with(system, user)), expected, "{system} {user}");
        }
        let mut whole = with(&none, &none);
        whole["cache_control"] = hour.clone();
        assert_eq!(writes(ApiDialect::Messages, &whole), CacheWrites::Hour);
        let result = json!({"type": "tool_result", "tool_use_id": "a", "content": text(&hour)});
        let nested = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [result]}],
            "tools": [{"name": "f", "input_schema": {}, "cache_control": usual}]});
        assert_eq!(writes(ApiDialect::Messages, &nested), CacheWrites::Hour);
        let chat = json!({"model": "m", "messages": [{"role": "user", "content": "a"}]});
        assert_eq!(writes(ApiDialect::Chat, &chat), CacheWrites::Usual);
    }

    #[test]
    fn blocks_mark_what_bedrock_caches() {
        let body = |point: &Value| {
            json!({"messages": [{"role": "user", "content": [{"text": "a"}, {"cachePoint": point}]}],
                "toolConfig": {"tools": [{"cachePoint": {"type": "default"}}]}})
        };
        let hour = body(&json!({"type": "default", "ttl": "1h"}));
        assert_eq!(writes(ApiDialect::Converse, &hour), CacheWrites::Hour);
        assert_eq!(writes(ApiDialect::Converse, &body(&json!({"type": "default"}))), CacheWrites::Usual);
        let bare = json!({"messages": [{"role": "user", "content": [{"text": "a"}]}]});
        assert_eq!(writes(ApiDialect::Converse, &bare), CacheWrites::Nothing);
    }
}
