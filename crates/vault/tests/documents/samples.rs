//! The samples of the formats: a `context.md` with one goal, one with two, and a `research.md`, as data in
//! `tests/samples`. Each is read without a problem and written back unchanged (R1-3.53, R1-3.85, R1-4.9).

use larder_text::sections::{Section, SectionId, Sections};
use larder_vault::context::*;
use larder_vault::*;

fn at() -> VaultPath {
    VaultPath::new("users/henry/turns/turn_000815/context.md").unwrap()
}

/// Reads one section and writes it after those before it.
fn rewritten<T: SectionValue>(sample: &str, section: &Section, written: &mut String) -> T {
    let parsed = read::<T>(sample, section, &at());
    assert_eq!(parsed.problems, [], "{:?}", section.id);
    let value = parsed.value.unwrap();
    let added = append(written, &value, &at());
    written.push_str(&added);
    value
}

/// What a sample of a `context.md` says; the newest of each section.
#[derive(Default)]
struct Sample {
    query: Option<UserQuery>,
    reflection: Option<Reflection>,
    gathered: Option<GatheredContext>,
    plan: Option<TaskPlan>,
    log: Option<ToolLog>,
    verdicts: Vec<Validation>,
}

impl Sample {
    fn read(sample: &str) -> Self {
        let (mut found, mut written) = (Self::default(), String::new());
        for section in &Sections::parse(sample).sections {
            let at = &mut written;
            match section.id {
                SectionId::UserQuery => found.query = Some(rewritten(sample, section, at)),
                SectionId::Reflection => found.reflection = Some(rewritten(sample, section, at)),
                SectionId::GatheredContext => found.gathered = Some(rewritten(sample, section, at)),
                SectionId::TaskPlan => found.plan = Some(rewritten(sample, section, at)),
                SectionId::ToolExecution => found.log = Some(rewritten(sample, section, at)),
                SectionId::Synthesis => drop(rewritten::<Synthesis>(sample, section, at)),
                SectionId::Validation => found.verdicts.push(rewritten(sample, section, at)),
            }
        }
        // `Outcome` is read, and written as `Decision` (C10).
        assert_eq!(written.trim_end(), sample.replace("**Outcome:**", "**Decision:**").trim_end());
        found
    }
}

#[test]
fn the_sample_with_one_goal_is_read_and_written_back_unchanged() {
    let sample = Sample::read(include_str!("../samples/single_goal.md"));
    let reference = sample.query.unwrap().resolved.unwrap().content_reference.unwrap();
    assert_eq!((reference.site.as_str(), reference.source_turn), ("GarageJournal", Some(814)));
    let reflection = sample.reflection.unwrap();
    assert_eq!((reflection.decision, reflection.confidence.get()), (ReflectionDecision::Proceed, 0.95));
    let gathered = sample.gathered.unwrap();
    let preferences: Vec<_> = gathered
        .preferences
        .iter()
        .map(|known| (known.name.as_str(), known.value.as_str(), known.source_turn))
        .collect();
    assert_eq!(preferences, [("budget", "$500-800", Some(808)), ("location", "California", Some(790))]);
    assert_eq!(gathered.prior_turns.iter().map(|turn| turn.turn).collect::<Vec<_>>(), [811, 809]);
    let research = &gathered.research[0];
    assert_eq!((research.topic.as_str(), research.quality.get()), ("commerce.laptop", 0.88));
    assert_eq!(research.age, Hours::tenths(12));
    let claims: Vec<_> = sample
        .log
        .unwrap()
        .claims
        .into_iter()
        .map(|claim| (claim.claim, claim.confidence.get(), claim.ttl))
        .collect();
    let claim = |text: &str, confidence| (text.to_owned(), confidence, Ttl::hours(6));
    assert_eq!(claims, [claim("Lenovo LOQ 15 @ $697", 0.92), claim("HP Victus 15 @ $649", 0.90)]);
    let verdicts: Vec<_> =
        sample.verdicts.iter().map(|verdict| (verdict.decision, verdict.confidence.get())).collect();
    assert_eq!(verdicts, [(Verdict::Revise, 0.65), (Verdict::Approve, 0.92)]);
    assert!(sample.verdicts[0].issues[0].contains("$599"));
}

#[test]
fn the_sample_with_two_goals_is_read_and_written_back_unchanged() {
    let sample = Sample::read(include_str!("../samples/multi_goal.md"));
    let plan = sample.plan.unwrap();
    let goals: Vec<_> = plan.goals.iter().map(|goal| goal.description.as_str()).collect();
    assert_eq!(goals, ["Find gaming laptop under $1500", "Find mechanical keyboard"]);
    let log = sample.log.unwrap();
    let sure: Vec<_> =
        log.iterations.iter().map(|round| round.confidence.map(Score::get).unwrap_or_default()).collect();
    assert_eq!(sure, [0.85, 0.80]);
    assert_eq!(sample.verdicts[0].overall_quality().unwrap().get(), 0.825);
}

#[test]
fn the_sample_of_research_is_read_and_written_back_unchanged() {
    let sample = include_str!("../samples/research.md");
    let at = VaultPath::new("users/henry/turns/turn_000759/research.md").unwrap();
    let parsed = Document::<Research>::read(sample, &at);
    assert_eq!(parsed.problems, []);
    let document = parsed.value.unwrap();
    assert_eq!(document.write(&at), sample);
    let research = document.value;
    assert_eq!(research.id, "research_759_abc123");
    assert_eq!(research.created, "2025-12-06T18:44:00Z".parse().unwrap());
    assert_eq!(research.expires, Some("2025-12-07T00:44:00Z".parse().unwrap()));
    assert_eq!(
        research.sources.iter().map(|source| source.reliability.get()).collect::<Vec<_>>(),
        [0.85, 0.80]
    );
    assert_eq!(research.facts[0], "Price range: $10-$70");
    assert_eq!(
        research.listings.iter().map(|offer| offer.price.as_str()).collect::<Vec<_>>(),
        ["$25-$35", "$10"]
    );
    assert_eq!(research.linked_from[0].section, "§2 Gathered Context");
}
