//! What participants start explicitly in the types that ship: openings, meditations, quizzes, steps to another stage, sharing
//! after a judged preview, and the comparison of what both released for it.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::path::Path;

use larder_conversation::sharing::NewShare;
use larder_conversation::{Conversation, ConversationError};
use larder_engine::executor::NoopObserver;
use larder_store::{DocumentPlace, Documents, Retention, StoreError};
use larder_testkit::layers::Outcome;
use larder_testkit::talks::Talks;
use serde_json::{Value, json};

/// Answers as the recipes of the types ask for it.
fn answer(prompt: &str) -> Outcome {
    let fields = |tag: &str, fields: &str, text: &str| format!("<{tag}>\n{fields}\n</{tag}>{text}");
    let draft = if prompt.trim_end().ends_with("draft please\"") {
        "<draft>I was scared that day.</draft>"
    } else {
        ""
    };
    match prompt {
        _ if prompt.contains("Write the first message of a conversation") => {
            "Welcome. What brings you here?".into()
        }
        _ if prompt.contains("guided meditation of about") => "Feel your feet …".into(),
        _ if prompt.contains("They want to note something good") => {
            format!("Good: {}", prompt.contains("the tea")).into()
        }
        _ if prompt.contains("Write a short check on what the learner") => "1. What is a half?".into(),
        _ if prompt.contains("Decide whether it attacks the")
            || prompt.contains("is about to pass on to a colleague") =>
        {
            let attacks = prompt.contains("idiot") || prompt.contains("x7");
            let spans: Vec<&str> = if attacks { vec!["idiot"] } else { Vec::new() };
            json!({"attacks": attacks, "spans": spans, "suggestion": if attacks { "Please listen." } else { "" }}).to_string().into()
        }
        _ if prompt.contains("have each released that text") => {
            let pair = |about: &str, by: &str| {
                json!({"about": about, "guessedBy": by, "alignment": 0.5, "matches": [], "next": "share",
                    "gaps": [{"text": format!("gap of {about}"), "quote": "q", "weight": 2}]})
            };
            json!({"pairs": [pair("Ann", "Ben"), pair("Ben", "Ann")]}).to_string().into()
        }
        _ if prompt.contains("says what the other person has not yet understood") => {
            "Something may still be missing.<draft>I was alone with it.</draft>".into()
        }
        _ if prompt.contains("Someone writes before any session is open. Decide") => {
            r#"{"intent": "explain", "confidence": 0.9}"#.into()
        }
        _ if prompt.contains("Someone writes before any session is open. `result`") => {
            "Hello. Shall I explain?".into()
        }
        _ if prompt.contains("<notes>") => {
            fields("notes", "Mode: ASK\nFrustration: 2\nUnderstanding: 1\nStrategy: ask", "And you?").into()
        }
        _ if prompt.contains("<case>") => fields(
            "case",
            "Mode: ASK\nTopic: DEVICE\nFrustration: 2\nKnown: N\nSolved: N\nNeedsPerson: N\nStrategy: ask",
            "What happened?",
        )
        .into(),
        _ => fields(
            "thinking",
            "Mode: WITNESS\nUserIntensity: 4\nStrategy: listen",
            &format!("I hear you.{draft}"),
        )
        .into(),
    }
}

fn world() -> Talks {
    Talks::new(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/base"), answer)
}

/// Ann's and Ben's sides of a mediation.
fn mediation(world: &Talks) -> (Conversation, Conversation) {
    let people = [("Ann".to_owned(), "ann".to_owned()), ("Ben".to_owned(), "ben".to_owned())];
    let id = world.all.begin("mediation", "", &people).unwrap().id;
    (world.all.open(&id, Some("Ann")).unwrap(), world.of("ben").open(&id, Some("Ben")).unwrap())
}

async fn act(
    talk: &Conversation,
    name: &str,
) -> Result<larder_conversation::ActionResult, ConversationError> {
    talk.act(name, None, &NoopObserver).await
}

fn to_ben(text: Option<&str>) -> NewShare {
    NewShare { text: text.map(str::to_owned), to: vec!["Ben".into()], ..NewShare::default() }
}

fn released(text: &str) -> NewShare {
    NewShare { text: Some(text.to_owned()), purpose: Some("reconcile".into()), ..NewShare::default() }
}

async fn release(talk: &Conversation, text: &str) -> larder_conversation::sharing::Shared {
    let preview = talk.preview_share(&released(text), &NoopObserver).await.unwrap();
    talk.share(&preview.confirm, &NoopObserver).await.unwrap()
}

#[tokio::test]
async fn the_assistant_speaks_first_and_steps_and_requests_are_started_by_name() {
    let world = world();
    let (ann, _) = mediation(&world);
    assert!(ann.actions().unwrap().iter().any(|name| name == "open"), "{:?}", ann.actions());
    let opened = act(&ann, "open").await.unwrap();
    assert_eq!(opened.reply.unwrap().text, "Welcome. What brings you here?");
    assert_eq!(ann.messages(None).unwrap().len(), 1);
    let refused = act(&ann, "open").await.unwrap_err().to_string();
    assert!(refused.contains("use begin, explain_process, gratitude, invite, meditation"), "{refused}");
    assert_eq!(act(&ann, "begin").await.unwrap().stage, "witnessing");
    assert!(act(&ann, "begin").await.is_err(), "it leads on from the stage before");
    ann.say("Ben lied to me", &NoopObserver).await.unwrap();
    assert!(
        world.last_prompt().contains("Welcome. What brings you here?"),
        "the opening is part of the history"
    );
    let calm = act(&ann, "meditation").await.unwrap();
    assert_eq!(calm.reply.unwrap().action.as_deref(), Some("meditation"));
    assert!(world.last_prompt().contains("Ben lied to me"), "it reads the messages");
    let thanks = ann.act("gratitude", Some("For the tea"), &NoopObserver).await.unwrap();
    assert_eq!(thanks.reply.unwrap().text, "Good: true");
    assert_eq!(ann.messages(None).unwrap().len(), 5);
    assert!(act(&ann, "reconcile").await.is_err(), "nobody has released anything");
    let costs = world.all.engine.store.conversations().costs(0).unwrap();
    let calls: Vec<&str> = costs.iter().map(|row| row.call.as_str()).collect();
    assert_eq!(calls, ["open", "gratitude", "meditation", "reply"], "{costs:?}");
}

#[tokio::test]
async fn at_the_size_limit_no_action_begins_and_steps_are_taken() {
    let world = world();
    let (ann, _) = mediation(&world);
    let store = world.all.engine.store.store();
    let place = DocumentPlace::Folder(world.home.path().join("documents"));
    let documents = Documents::open(store, &place).unwrap();
    let tiny = Retention { max_bytes: Some(1), ..Retention::default() };
    assert!(documents.collect(&tiny, &|_| true).unwrap().over_limit);
    for name in ["open", "meditation"] {
        let refused = act(&ann, name).await.unwrap_err();
        assert!(matches!(refused, ConversationError::Store(StoreError::OverLimit)), "{name}: {refused}");
    }
    assert!(world.prompts.lock().unwrap().is_empty(), "nothing was asked");
    assert_eq!(act(&ann, "begin").await.unwrap().stage, "witnessing");
    documents.collect(&Retention::default(), &|_| true).unwrap();
    act(&ann, "meditation").await.unwrap();
}

#[tokio::test]
async fn what_attacks_is_stopped_before_it_is_shared_and_only_what_was_confirmed_is_given() {
    let world = world();
    let (ann, ben) = mediation(&world);
    ann.say("draft please", &NoopObserver).await.unwrap();
    let stopped =
        ann.preview_share(&to_ben(Some("You idiot, you never listen")), &NoopObserver).await.unwrap();
    assert!(!stopped.may_be_shared());
    assert_eq!(stopped.verdicts.len(), 1, "the check of the type and the action are one recipe");
    assert_eq!(
        (stopped.verdicts[0].spans.as_slice(), stopped.verdicts[0].suggestion.as_str()),
        (&["idiot".to_owned()][..], "Please listen.")
    );
    assert_eq!(stopped.warnings, ["you never", "You idiot"], "its words, in the order of the phrases");
    assert!(ann.share(&stopped.confirm, &NoopObserver).await.is_err());
    let warned = ann.preview_share(&to_ben(Some("You never listen")), &NoopObserver).await.unwrap();
    assert!(warned.may_be_shared() && warned.warnings == ["You never"], "by rule, whatever the judge says");
    for harmless in ["I felt like an idiot.", "You are not lazy; we both want to grow up."] {
        let preview = ann.preview_share(&to_ben(Some(harmless)), &NoopObserver).await.unwrap();
        assert_eq!(preview.warnings, [""; 0], "{harmless}");
    }
    let draft = ann.preview_share(&to_ben(None), &NoopObserver).await.unwrap();
    assert_eq!((draft.text.as_str(), draft.warnings.len()), ("I was scared that day.", 0));
    assert!(ann.share(&stopped.confirm, &NoopObserver).await.is_err(), "only the newest preview counts");
    ben.say("Hello", &NoopObserver).await.unwrap();
    assert!(!world.last_prompt().contains("scared"), "a preview gives nothing");
    let given = ann.share(&draft.confirm, &NoopObserver).await.unwrap();
    let again = ann.share(&draft.confirm, &NoopObserver).await.unwrap();
    assert_eq!(
        (given.share.id.clone(), 1),
        (again.share.id, ben.memory(&larder_text::tokens::Counter::cl100k()).shared_with_me().unwrap().len())
    );
    ben.say("And now?", &NoopObserver).await.unwrap();
    assert!(world.last_prompt().contains("Ann shared: I was scared that day."));
    ann.say("Done", &NoopObserver).await.unwrap();
    let milestones = ann.standing().unwrap().1.milestones;
    assert!(milestones.iter().any(|reached| reached.name == "shared"), "{milestones:?}");
    let nobody = NewShare { to: vec!["Eve".into()], ..to_ben(Some("Hi")) };
    assert!(ann.preview_share(&nobody, &NoopObserver).await.is_err());
}

#[tokio::test]
async fn a_comparison_reads_only_what_both_released_and_shows_each_what_is_about_them() {
    let world = world();
    let (ann, ben) = mediation(&world);
    for (talk, secret) in [(&ann, "I once stole a violin"), (&ben, "I never wanted the house")] {
        act(talk, "begin").await.unwrap();
        talk.say(secret, &NoopObserver).await.unwrap();
        assert!(talk.preview_share(&released("x"), &NoopObserver).await.is_err(), "not in this stage");
        act(talk, "feel_heard").await.unwrap();
    }
    let first = release(&ann, "Ben must have been tired.").await;
    assert!(first.result.is_none() && first.share.to.is_empty());
    assert!(ben.memory(&larder_text::tokens::Counter::cl100k()).shared_with_me().unwrap().is_empty());
    ben.say("What did she say?", &NoopObserver).await.unwrap();
    assert!(!world.last_prompt().contains("tired"));
    let last = release(&ben, "Ann felt left alone.").await;
    let compared = world.prompts_with("have each released that text").remove(0);
    assert!(
        compared.contains("Ann wrote:\nBen must have been tired.")
            && compared.contains("Ben wrote:\nAnn felt left alone.")
    );
    assert!(!compared.contains("violin") && !compared.contains("house"), "{compared}");
    let result = last.result.unwrap();
    let about = |data: &Value| -> Vec<String> {
        data["pairs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pair| pair["about"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(about(&result.data.unwrap()), ["Ben"]);
    assert_eq!(result.reply.unwrap().draft.as_deref(), Some("I was alone with it."));
    assert!(
        world.prompts_with("says what the other person has not yet understood")[0].contains("gap of Ben")
    );
    // Nothing of it is Ann's until Ben shares it; she asks for what is about her.
    ann.say("Is there news?", &NoopObserver).await.unwrap();
    let prompt = world.last_prompt();
    assert!(
        !prompt.contains("alone with it")
            && prompt.contains("Everyone has released a statement for `reconcile`")
    );
    let own = act(&ann, "reconcile").await.unwrap();
    assert_eq!(about(&own.data.unwrap()), ["Ann"]);
}

#[tokio::test]
async fn a_learner_asks_for_a_quiz_and_a_case_with_a_secret_is_not_passed_on() {
    let world = world();
    let tutor = world.begin("tutor");
    assert!(act(&tutor, "quiz").await.is_err(), "not in the first stage");
    assert_eq!(act(&tutor, "practise").await.unwrap().stage, "practice");
    let quiz = act(&tutor, "quiz").await.unwrap();
    assert_eq!((quiz.stage.as_str(), quiz.reply.unwrap().text.as_str()), ("practice", "1. What is a half?"));
    let people = [("Cleo".to_owned(), "ann".to_owned()), ("Desk".to_owned(), "desk".to_owned())];
    let id = world.all.begin("support", "", &people).unwrap().id;
    let customer = world.all.open(&id, Some("Cleo")).unwrap();
    customer.say("It does not start", &NoopObserver).await.unwrap();
    let case =
        |text: &str| NewShare { text: Some(text.into()), to: vec!["Desk".into()], ..NewShare::default() };
    let stopped = customer.preview_share(&case("The password is x7"), &NoopObserver).await.unwrap();
    assert!(!stopped.may_be_shared());
    let passed = customer.preview_share(&case("It does not start"), &NoopObserver).await.unwrap();
    customer.share(&passed.confirm, &NoopObserver).await.unwrap();
    let tutor_shares = tutor.preview_share(&case("x"), &NoopObserver).await.unwrap_err().to_string();
    assert!(tutor_shares.contains("see nothing of each other"), "{tutor_shares}");
}

#[tokio::test]
async fn a_message_before_any_conversation_is_routed_and_answered() {
    let world = world();
    let started = world.all.start("mediation", "What is this?", &NoopObserver).await.unwrap();
    assert_eq!(
        (&started.data["intent"], started.text.as_str()),
        (&json!("explain"), "Hello. Shall I explain?")
    );
    assert_eq!(started.calls.iter().map(|call| call.call.as_str()).collect::<Vec<_>>(), ["route", "greet"]);
    assert!(world.last_prompt().contains(r#""intent":"explain""#), "the answer knows what was found");
    assert_eq!(world.all.engine.store.conversations().list().unwrap(), []);
    assert!(world.all.start("tutor", "Hi", &NoopObserver).await.is_err(), "it has no action for that");
}

#[tokio::test]
async fn what_comes_before_a_conversation_is_among_the_costs() {
    let world = world();
    world.all.start("mediation", "What is this?", &NoopObserver).await.unwrap();
    let costs = world.all.engine.store.conversations().costs(0).unwrap();
    let rows: Vec<_> = costs.iter().map(|row| (row.conversation.as_str(), row.call.as_str())).collect();
    assert_eq!(rows, [("mediation", "greet"), ("mediation", "route")]);
    assert!(costs.iter().all(|row| row.kind == "mediation" && row.picos > 0), "{costs:?}");
}

#[tokio::test]
async fn a_text_is_shared_by_its_own_act_and_what_waits_for_statements_is_not_done_by_naming_it() {
    let world = world();
    let (ann, _) = mediation(&world);
    act(&ann, "invite").await.unwrap();
    let refused = act(&ann, "share").await.unwrap_err();
    assert!(matches!(refused, ConversationError::NoAction { .. }), "{refused}");
    let (_, state) = ann.standing().unwrap();
    assert_eq!(
        (state.stage.as_deref(), state.milestones.len()),
        (Some("invitation"), 0),
        "nothing was shared"
    );
}

#[tokio::test]
async fn a_stage_that_waits_for_the_other_is_left_as_soon_as_the_other_comes() {
    let world = world();
    let (ann, ben) = mediation(&world);
    let stage = |talk: &Conversation| talk.standing().unwrap().1.stage.unwrap();
    for step in ["begin", "feel_heard"] {
        act(&ann, step).await.unwrap();
    }
    ann.say("draft please", &NoopObserver).await.unwrap();
    let draft = ann.preview_share(&to_ben(None), &NoopObserver).await.unwrap();
    assert_eq!(ann.share(&draft.confirm, &NoopObserver).await.unwrap().stage, "perspective");
    for step in ["begin", "feel_heard"] {
        act(&ben, step).await.unwrap();
    }
    assert_eq!(stage(&ann), "needs", "what was shared counts once the other is there");
    assert_eq!(ann.say("On", &NoopObserver).await.unwrap().stage, "needs");
    act(&ben, "understood").await.unwrap();
    act(&ben, "needs_named").await.unwrap();
    assert_eq!(stage(&ben), "repair");
    // Whoever has gone back has been there.
    act(&ben, "hurt_again").await.unwrap();
    assert_eq!(stage(&ben), "witnessing");
    assert_eq!(act(&ann, "needs_named").await.unwrap().stage, "repair");
}

#[tokio::test]
async fn a_turn_that_was_shared_from_stays_and_what_actions_gave_goes_with_a_turn() {
    let world = world();
    let (ann, _) = mediation(&world);
    act(&ann, "begin").await.unwrap();
    ann.say("Ben lied to me", &NoopObserver).await.unwrap();
    act(&ann, "meditation").await.unwrap();
    assert_eq!(ann.messages(None).unwrap().len(), 3);
    let again = ann.revise(Some("draft please"), None).await.unwrap();
    assert_eq!(ann.messages(None).unwrap().len(), 1);
    ann.answer(again.number, &NoopObserver).await.unwrap();
    let draft = ann.preview_share(&to_ben(None), &NoopObserver).await.unwrap();
    ann.share(&draft.confirm, &NoopObserver).await.unwrap();
    let refused = ann.revise(None, None).await.unwrap_err();
    assert!(matches!(refused, ConversationError::Acted { .. }), "{refused}");
    let milestones = ann.standing().unwrap().1.milestones;
    assert!(milestones.iter().any(|reached| reached.name == "shared"), "{milestones:?}");
    assert_eq!(ann.messages(None).unwrap().len(), 2);
}
