//! One contract for every model. [`everyone`] has the cases that hold wherever a model runs; [`cases`] and [`errors`]
//! those of a wire, against a stub server that speaks its format. Adding a provider means writing its
//! [`support::Wire`], or its [`everyone::Provider`] where there is no wire, and one line below.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at what it does not expect"
)]

mod anthropic;
mod bedrock;
mod cases;
mod errors;
mod everyone;
mod openai;
mod replay;
mod subjects;
mod support;

/// All cases of the contract over one wire format, each a test of its own.
macro_rules! contract {
    ($name:ident, $wire:expr, [$($module:ident: $($case:ident),+;)+]) => {
        mod $name {
            use super::*;
            $($(
                #[tokio::test]
                async fn $case() {
                    $module::$case(&$wire).await;
                }
            )+)+
        }
    };
}

macro_rules! every_case {
    ($name:ident, $wire:expr) => {
        contract!($name, $wire, [
            cases: text_comes_whole, text_streams_in_any_chunking, parallel_tool_calls_come_whole,
                parallel_tool_calls_stream, usage_is_told, a_cut_reply_says_so, a_refusal_says_so,
                the_schema_is_sent_where_it_is_enforced, the_request_holds_the_prompt, the_key_goes_into_its_header,
                what_the_model_cannot_do_is_refused_before_it_is_sent, an_unstreamed_model_streams_in_one_piece;
            errors: every_status_has_its_class, every_wording_of_a_full_window_is_known, retry_after_is_read,
                a_closed_port_is_unreachable, a_stream_that_breaks_off_is_an_error,
                broken_streams_are_errors, garbage_is_an_error, an_error_inside_a_stream_has_its_class,
                silence_times_out, a_dropped_call_closes_the_connection, huge_error_bodies_are_cut,
                no_error_tells_the_key;
        ]);
    };
}

every_case!(openai_compatible, openai::OpenAiModel);
every_case!(anthropic_messages, anthropic::Anthropic);
every_case!(bedrock_converse, bedrock::Bedrock);

/// The cases that every provider runs, and more of [`everyone`] that it can run.
macro_rules! replies {
    ($name:ident, $provider:expr $(, $more:ident)*) => {
        contract!($name, $provider, [
            everyone: text_comes_whole_and_streamed, a_stream_is_read_at_any_pace, calls_of_tools_are_whole,
                an_answer_under_a_schema_satisfies_it, usage_adds_up, a_cut_reply_says_so,
                a_dropped_stream_leaves_the_model_free, calls_at_once_are_all_answered $(, $more)*;
        ]);
    };
}

replies!(
    openai_seam,
    subjects::Wired(openai::OpenAiModel),
    time_runs_out,
    a_prompt_beyond_the_window_is_an_error_of_its_own
);
replies!(
    anthropic_seam,
    subjects::Wired(anthropic::Anthropic),
    time_runs_out,
    a_prompt_beyond_the_window_is_an_error_of_its_own
);
replies!(
    bedrock_seam,
    subjects::Wired(bedrock::Bedrock),
    time_runs_out,
    a_prompt_beyond_the_window_is_an_error_of_its_own
);
replies!(
    embedded_seam,
    subjects::InProcess,
    time_runs_out,
    a_prompt_beyond_the_window_is_an_error_of_its_own
);
// A recording has no clock and no window: a request that it does not know is `NotConfigured` (module `replay`).
replies!(replay_seam, subjects::Recorded);
