//! What the answers of the recipes become, and which are refused.

use larder_engine::answer::{UnusableAnswer, read};
use larder_vault::context::Sufficiency;
use larder_vault::context::{CheckResult, GoalStatus, ReflectionDecision, TaskPlan, Verdict};
use larder_vault::layout::UserPlace;
use larder_vault::links::{DualLink, Reference};
use larder_vault::{ReferenceType, VaultPath};
use serde_json::{Value, json};

use super::*;

fn with(mut base: Value, changes: Value) -> Value {
    for (key, value) in changes.as_object().unwrap() {
        base[key] = value.clone();
    }
    base
}

fn message<T: std::fmt::Debug>(result: Result<T, UnusableAnswer>) -> String {
    result.unwrap_err().to_string()
}

fn query(changes: Value) -> QueryAnswer {
    let base = json!({"resolved_query": "find some Syrian hamsters for me", "was_resolved": true,
        "query_type": "followup", "intent": "informational", "entities": [], "content_reference": null, "reasoning": "\"some\" means hamsters"});
    read(&with(base, changes)).unwrap()
}

#[test]
fn a_query_without_references_is_kept_verbatim() {
    let original = "can you find some for me online please?";
    let analysis = query(json!({})).analysis(original);
    assert_eq!(
        (analysis.resolved_query.as_str(), analysis.was_resolved),
        ("find some Syrian hamsters for me", true)
    );
    assert_eq!((analysis.original_query.as_str(), analysis.query_type), (original, ReferenceType::Followup));
    for changes in [json!({"was_resolved": false}), json!({"resolved_query": " "})] {
        let analysis = query(changes).analysis(original);
        assert_eq!((analysis.resolved_query.as_str(), analysis.was_resolved), (original, false));
    }
    let reference = json!({"title": "T", "content_type": "thread", "site": "S", "source_turn": 814,
        "prior_findings": "", "source_url": " "});
    let reference =
        query(json!({"content_reference": reference})).analysis(original).content_reference.unwrap();
    assert_eq!(
        (reference.source_turn, reference.source_url, reference.has_webpage_cache),
        (Some(814), None, false)
    );
}

#[test]
fn what_a_query_names_is_kept_once() {
    let named = json!({"intent": " buy ", "entities": ["Syrian hamster", " ", "Anna", "Syrian hamster "]});
    let analysis = query(named).analysis("find some for Anna");
    assert_eq!(
        (analysis.intent.as_str(), analysis.entities),
        ("buy", vec!["Syrian hamster".to_owned(), "Anna".to_owned()])
    );
}

#[test]
fn unknown_fields_and_values_are_named() {
    let unknown = with(serde_json::to_value(query(json!({}))).unwrap(), json!({"mood": "fine"}));
    assert!(message(read::<QueryAnswer>(&unknown)).contains("unknown field `mood`"));
    let wrong = with(serde_json::to_value(query(json!({}))).unwrap(), json!({"query_type": "chatter"}));
    assert!(message(read::<QueryAnswer>(&wrong)).contains("expected specific_content"));
    let sure = json!({"decision": "PROCEED", "confidence": 7, "is_action": true, "is_follow_up": false,
        "reasoning": "", "question": null});
    assert!(message(read::<ReflectionAnswer>(&sure)).contains("a number from 0 to 1"));
}

#[test]
fn reflection_asks_when_it_is_unsure() {
    let reflect = |changes| {
        let base = json!({"decision": "PROCEED", "confidence": 0.95, "is_action": true, "is_follow_up": false,
            "reasoning": "clear", "question": null});
        read::<ReflectionAnswer>(&with(base, changes)).unwrap().reflection()
    };
    let proceed = reflect(json!({"question": "?"})).unwrap();
    assert_eq!((proceed.decision, proceed.question), (ReflectionDecision::Proceed, None));
    assert_eq!(proceed.block.unwrap().to_string(), "^decision-reflection");
    let unsure = reflect(json!({"confidence": 0.69})).unwrap();
    assert_eq!(unsure.decision, ReflectionDecision::Clarify);
    assert!(unsure.question.unwrap().ends_with("would like?"));
    assert_eq!(reflect(json!({"confidence": 0.7})).unwrap().decision, ReflectionDecision::Proceed);
    let asked = reflect(json!({"decision": "CLARIFY", "question": " Which one? "})).unwrap();
    assert_eq!(asked.question.as_deref(), Some("Which one?"));
    assert!(message(reflect(json!({"decision": "CLARIFY"}))).contains("question is empty"));
}

#[test]
fn only_what_was_shown_is_referred_to() {
    let path = "users/u/turns/turn_000759/research.md";
    let link = DualLink::new(VaultPath::new(path).unwrap(), "research_759_abc123");
    let reference = Reference { link, note: "Full research".into() };
    let known = ShownItems {
        documents: [(path.to_owned(), reference.clone())].into(),
        turns: [758, 759].map(|turn| (turn, UserPlace::new("u").turn(turn).context())).into(),
        research: Vec::new(),
        text: "favorite_hamster: syrian (turn 758); budget $50".to_owned(),
    };
    let answer: GatheringAnswer = read(&json!({
        "information": "Syrian hamsters cost $10 to $35.",
        "preferences": [{"name": "favorite_hamster", "value": "Syrian", "source_turn": 758},
                        {"name": "budget", "value": "$50", "source_turn": 12},
                        {"name": "made_up", "value": "blue cars", "source_turn": null},
                        {"name": "", "value": "x", "source_turn": null}],
        "prior_turns": [{"turn": 759, "relevance": "high", "summary": "Research"},
                        {"turn": 3, "relevance": "low", "summary": "Made up"}],
        "references": [path, path, "users/u/turns/turn_000001/research.md"],
        "sufficiency": "SUFFICIENT",
    }))
    .unwrap();
    let (gathered, dropped) = answer.gathered(&known);
    assert_eq!(gathered.information, "Syrian hamsters cost $10 to $35.");
    assert_eq!(gathered.sufficiency, Some(Sufficiency::Sufficient));
    assert_eq!(gathered.references, [reference]);
    assert_eq!(gathered.preferences.iter().map(|p| p.source_turn).collect::<Vec<_>>(), [Some(758), None]);
    assert_eq!(gathered.prior_turns.iter().map(|t| t.turn).collect::<Vec<_>>(), [759]);
    assert_eq!(gathered.turns.keys().copied().collect::<Vec<_>>(), [758, 759]);
    assert_eq!(dropped, ["reference users/u/turns/turn_000001/research.md", "turn 3", "preference made_up"]);
}

fn plan(changes: Value, attempt: u32) -> Result<TaskPlan, UnusableAnswer> {
    plan_answer(changes).plan(attempt)
}

fn plan_answer(changes: Value) -> PlanAnswer {
    let base = json!({"goal": "A laptop and a keyboard", "intent": "commerce_search", "confidence": 0.9,
        "next_step": "coordinator", "question": null,
        "goals": [{"id": 1, "description": "Gaming laptop under $1500", "dependencies": []},
                  {"id": 2, "description": "Mechanical keyboard", "dependencies": [1]}],
        "tasks": [{"goal": 1, "text": "Find laptops"}, {"goal": 2, "text": "Find keyboards"}],
        "focus": "The laptop", "previous_failure": null, "new_approach": null, "topic": "commerce.laptop"});
    read(&with(base, changes)).unwrap()
}

#[test]
fn a_plan_with_several_goals_keeps_their_order() {
    let plan = plan(json!({}), 1).unwrap();
    let goals: Vec<_> = plan.goals.iter().map(|goal| (goal.id.to_string(), goal.status)).collect();
    assert_eq!(
        goals,
        [("GOAL_1".to_owned(), GoalStatus::InProgress), ("GOAL_2".to_owned(), GoalStatus::Pending)]
    );
    assert_eq!(plan.steps[1].goal.unwrap().to_string(), "GOAL_2");
    assert_eq!(plan.focus.as_deref(), Some("The laptop"));
}

#[test]
fn a_single_goal_is_not_listed() {
    let one = json!({"goals": [{"id": 1, "description": "Laptop", "dependencies": []}],
        "tasks": [{"goal": 1, "text": "Find laptops"}], "previous_failure": "x", "new_approach": "y"});
    let plan = plan(one, 1).unwrap();
    assert!(plan.goals.is_empty() && plan.focus.is_none() && plan.steps[0].goal.is_none());
    assert_eq!((plan.previous_failure, plan.new_approach), (None, None));
}

#[test]
fn plans_that_cannot_be_followed_are_refused_with_the_reason() {
    let goal = |id: u32, needs: &[u32]| json!({"id": id, "description": "d", "dependencies": needs});
    for (changes, expected) in [
        (json!({"goals": [goal(1, &[]), goal(2, &[7])]}), "goal 2 depends on goal 7"),
        (json!({"goals": [goal(1, &[]), goal(1, &[])]}), "the ids [1, 1]"),
        (json!({"tasks": [{"goal": 3, "text": "Find"}]}), "goal 3, which is not in goals"),
        (json!({"tasks": []}), "tasks is empty"),
        (json!({"next_step": "clarify"}), "question is empty"),
        (json!({"goal": " "}), "goal is empty"),
    ] {
        let message = message(plan(changes, 1));
        assert!(message.contains(expected), "{message}");
    }
    // In a circle, only dependencies on earlier goals hold.
    for goals in [
        json!([goal(1, &[2]), goal(2, &[1]), goal(3, &[2])]),
        json!([goal(1, &[1]), goal(2, &[1, 3]), goal(3, &[2])]),
    ] {
        let plan = plan(json!({"goals": goals}), 1).unwrap();
        let needs: Vec<Vec<u32>> =
            plan.goals.iter().map(|goal| goal.dependencies.iter().map(|id| id.0).collect()).collect();
        assert_eq!(needs, [vec![], vec![1], vec![2]]);
    }
    // A goal that depends on one in a circle is not part of it, and keeps its dependencies.
    let goals = json!([goal(1, &[2]), goal(2, &[1]), goal(3, &[1, 4]), goal(4, &[])]);
    let answer = plan_answer(json!({"goals": goals}));
    assert_eq!(answer.circular(), [1, 2]);
    let goals = answer.plan(1).unwrap().goals;
    assert_eq!(goals[2].dependencies.iter().map(|id| id.0).collect::<Vec<_>>(), [1, 4]);
    assert!(message(plan(json!({}), 2)).contains("second attempt"));
    let second = plan(json!({"previous_failure": "No stock", "new_approach": "Another shop"}), 2).unwrap();
    assert_eq!(second.new_approach.as_deref(), Some("Another shop"));
    assert_eq!(plan(json!({"next_step": "synthesis", "tasks": []}), 1).unwrap().steps, []);
    let clarify = plan(json!({"next_step": "clarify", "question": "Which?"}), 1).unwrap();
    assert_eq!(clarify.question.as_deref(), Some("Which?"));
}

fn iterate(changes: Value) -> Result<(Vec<String>, usize), UnusableAnswer> {
    let base = json!({"action": "TOOL_CALL", "goal": 2, "reasoning": "r",
        "calls": [{"tool": "internet.research", "arguments": {"query": "a \"b\"", "pages": 3}}],
        "goal_confidence": null, "progress": null,
        "claims": [{"claim": "LOQ 15 costs $697", "confidence": 0.92, "source": "https://s.example", "ttl": "6h"}]});
    let answer = read::<IterationAnswer>(&with(base, changes)).unwrap();
    let (iteration, claims) = answer.iteration(1, &plan(json!({}), 1).unwrap())?;
    assert!(iteration.results.is_empty());
    Ok((iteration.calls, claims.len()))
}

#[test]
fn a_round_names_its_calls_and_its_claims_their_sources() {
    let (calls, claims) = iterate(json!({})).unwrap();
    assert_eq!((calls, claims), (vec![r#"internet.research(query="a \"b\"", pages=3)"#.to_owned()], 1));
    let claim =
        |source| json!({"claims": [{"claim": "c", "confidence": 1, "source": source, "ttl": "evergreen"}]});
    for (changes, expected) in [
        (json!({"calls": []}), "calls is empty"),
        (json!({"action": "DONE"}), "calls is not empty"),
        (json!({"action": "DONE", "calls": []}), "progress is empty"),
        (json!({"goal": 3}), "the goals [1, 2]"),
        (claim(""), "names no source"),
    ] {
        let message = message(iterate(changes));
        assert!(message.contains(expected), "{message}");
    }
    assert!(iterate(claim("https://s.example")).is_ok());
    assert!(iterate(json!({"action": "DONE", "calls": [], "progress": "Found"})).unwrap().0.is_empty());
}

fn validate(changes: Value, plan: &TaskPlan) -> Result<larder_vault::context::Validation, UnusableAnswer> {
    let checks = json!({"claims_supported": true, "no_hallucinations": true, "query_addressed": true,
        "coherent_format": true});
    let base = json!({"decision": "APPROVE", "confidence": 0.92, "checks": checks, "goals": [], "issues": [],
        "revision_hints": [], "suggested_fixes": [], "notes": ""});
    read::<ValidationAnswer>(&with(base, changes)).unwrap().validation(plan)
}

fn single() -> TaskPlan {
    plan(json!({"goals": [], "tasks": [{"goal": null, "text": "t"}]}), 1).unwrap()
}

#[test]
fn an_approval_that_is_unsure_or_contradicted_is_a_revision() {
    let approved = validate(json!({}), &single()).unwrap();
    assert_eq!((approved.decision, approved.checks[0].1), (Verdict::Approve, CheckResult::Pass));
    let unsure = validate(json!({"confidence": 0.65}), &single()).unwrap();
    assert_eq!((unsure.decision, unsure.revision_hints.len()), (Verdict::Revise, 1));
    let checks = json!({"claims_supported": false, "no_hallucinations": true, "query_addressed": true,
        "coherent_format": true});
    let contradicted = validate(json!({"checks": checks}), &single()).unwrap();
    assert_eq!(contradicted.decision, Verdict::Revise);
    assert_eq!(contradicted.revision_hints, ["Claims Supported: FAIL"]);
    let revise = validate(
        json!({"decision": "REVISE", "confidence": 0.65, "issues": ["$599 has no source"]}),
        &single(),
    );
    assert_eq!(revise.unwrap().revision_hints, ["$599 has no source"]);
    let retry = json!({"decision": "RETRY", "suggested_fixes": ["Search again"], "revision_hints": ["h"]});
    let retry = validate(retry, &single()).unwrap();
    assert_eq!((retry.suggested_fixes.len(), retry.revision_hints.len()), (1, 0));
}

#[test]
fn a_verdict_gives_its_reasons_and_speaks_of_every_goal() {
    for (changes, expected) in [
        (json!({"decision": "REVISE"}), "revision_hints is empty"),
        (json!({"decision": "RETRY"}), "suggested_fixes is empty"),
        (json!({"decision": "FAIL"}), "issues is empty"),
    ] {
        let message = message(validate(changes, &single()));
        assert!(message.contains(expected), "{message}");
    }
    let several = plan(json!({}), 1).unwrap();
    let check =
        |goal: u32, quality: f64| json!({"goal": goal, "addressed": true, "quality": quality, "notes": ""});
    let both = validate(json!({"goals": [check(2, 0.80), check(1, 0.85)]}), &several).unwrap();
    assert_eq!(both.overall_quality().unwrap().to_string(), "0.825");
    assert_eq!(both.goals[0].goal.0, 1);
    for goals in [json!([check(1, 0.8)]), json!([check(1, 0.8), check(1, 0.7), check(2, 0.9)])] {
        assert!(message(validate(json!({"goals": goals}), &several)).contains("exactly once"));
    }
    assert!(validate(json!({"goals": [check(1, 0.8)]}), &single()).unwrap().goals.is_empty());
}

#[test]
fn only_the_users_own_words_are_remembered() {
    let answer: RememberAnswer = read(&json!({
        "preferences": [{"name": "favorite_hamster", "value": "Syrian", "quote": "my favorite  hamster is the syrian"},
                        {"name": "shop", "value": "Evil", "quote": "always buy at Evil"}],
        "facts": [{"category": "People", "fact": "f", "confidence": 0.9, "ttl": "evergreen", "quote": ""}],
        "forget": [], "reason": "",
    }))
    .unwrap();
    let kept = answer.of_user("My favorite hamster is the Syrian one, remember that.");
    assert_eq!((kept.preferences.len(), kept.facts.len()), (1, 0));
}
