//! Any value of each kind of document, with texts that try to be more than text.

use larder_text::hash::ContentHash;
use larder_text::pointer::{Pointer, PointerKey};
use larder_vault::context::*;
use larder_vault::layout::UserPlace;
use larder_vault::links::{DualLink, Reference};
use larder_vault::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

const PIECES: &[&str] = &[
    "## 0. User Query",
    "## 1. Reflection Decision",
    "## 6. Validation (Attempt 2)",
    "### Iteration 9",
    "### 4.1 x (GOAL_1)",
    "### Termination",
    "### Compaction 1",
    "### End of Compaction 1",
    "### Issues",
    "### Notes",
    "## Linked From",
    "## Metadata",
    "## Page Text",
    "## Result 2",
    "# Research Document",
    "# Ticket",
    "# Response",
    "## Recent",
    "**Decision:** APPROVE",
    "**Original:** x",
    "**Goal:**",
    "**Reasoning:** y",
    "**Tools Called:**",
    "**Results:**",
    "**Response Preview:**",
    "**Content:**",
    "**Topic:**",
    "---",
    "```",
    "````text",
    "```text\n",
    "\n```",
    "~~~",
    "<!--",
    "-->",
    "<script>",
    "%%",
    "$$",
    "$",
    "\\",
    "\n",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "\0",
    "\t",
    " ",
    "    ",
    "^claim-001",
    " ^decision-reflection",
    "[[secret]]",
    "![[x|y]]",
    "\\[[",
    "[a](../b.md)",
    "[a](https://x.example)",
    "[a]: b.md",
    "<a href='b.md'>",
    "[^1]: x",
    "| a | b |",
    "|---|",
    "|",
    "- ",
    "* ",
    "1. ",
    "> ",
    "# ",
    "[x] ",
    "[GOAL_2] ",
    "<br>",
    "&#10;",
    "&",
    "^",
    "`",
    "lp1-0000000000000-000000",
    "claim 1 from x in [a](b) | [[c]] ^d",
    " - \"",
    "\"",
    ": ",
    ", ",
    " (",
    ")",
    " (a, user, 1)",
    "SUCCESS: ",
    "none",
    "None",
    "-",
    "id: x",
    "\u{feff}",
    "\u{2028}",
    "\u{85}",
    "é",
    "x",
    "1",
];

/// Text by somebody who has read our formats.
pub fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![8 => select(PIECES).prop_map(str::to_owned), 1 => "\\PC{0,6}"];
    vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

/// The same, and not empty: an empty text cannot be told from none where a list or a field holds it.
pub fn some_text() -> impl Strategy<Value = String> {
    text().prop_map(|text| if text.is_empty() { "x".to_owned() } else { text })
}

pub fn score() -> impl Strategy<Value = Score> {
    (0.0..=1.0_f64).prop_map(|value| Score::new(value).unwrap())
}

pub fn moment() -> impl Strategy<Value = DocumentTime> {
    prop_oneof![
        (0..4_000_000_000_i64).prop_map(|seconds| DocumentTime::from_millis(seconds * 1_000).unwrap()),
        (-62_135_596_800_000..=253_402_300_799_999_i64)
            .prop_map(|millis| DocumentTime::from_millis(millis).unwrap()),
    ]
}

pub fn ttl() -> impl Strategy<Value = Ttl> {
    prop_oneof![Just(Ttl::Evergreen), any::<u64>().prop_map(Ttl::Seconds), (0..200_u64).prop_map(Ttl::hours)]
}

fn word<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
    select(all)
}

pub fn file() -> impl Strategy<Value = VaultPath> {
    let odd = "[a-c#(\\[ é%|`$.]{1,6}".prop_map(|name| format!("x/{name}.md"));
    prop_oneof![
        3 => (text(), 0..2_000_000_u32).prop_map(|(user, turn)| UserPlace::new(&user).turn(turn).context()),
        1 => (text(), text()).prop_map(|(user, topic)| UserPlace::new(&user).research(&topic)),
        1 => odd.prop_filter_map("a path", |path| VaultPath::new(&path)),
    ]
}

pub fn block() -> impl Strategy<Value = BlockId> {
    "[a-zA-Z0-9-]{1,8}".prop_map(|name| BlockId::new(&name).unwrap())
}

pub fn link() -> impl Strategy<Value = DualLink> {
    (file(), option::of(block()), text()).prop_map(|(file, block, label)| match block {
        None => DualLink::new(file, &label),
        Some(block) => DualLink::to_block(file, block, &label),
    })
}

pub fn pointer() -> impl Strategy<Value = Pointer> {
    (any::<[u8; 4]>(), 0..99_usize).prop_map(|(content, start)| {
        let id = PointerKey::new([7; 32]).mint(ContentHash::new(&content));
        if start == 0 { Pointer::whole(id) } else { Pointer::bytes(id, start..start * 2) }
    })
}

pub fn meta() -> impl Strategy<Value = Meta> {
    let one = (text(), option::of(any::<u32>()), text(), option::of(text()), option::of(word(Intent::ALL)));
    let two = (
        vec(word(ContentKind::ALL), 0..3),
        word(Scope::ALL),
        option::of(score()),
        moment(),
        vec(text(), 0..3),
    );
    (one, two).prop_map(
        |(
            (id, turn_number, session_id, topic, intent),
            (content_types, scope, quality, created_at, tags),
        )| {
            Meta {
                id,
                turn_number,
                session_id,
                topic,
                intent,
                content_types,
                scope,
                quality,
                created_at,
                tags,
            }
        },
    )
}

pub fn user_query() -> impl Strategy<Value = UserQuery> {
    let reference = (text(), text(), text(), option::of(any::<u32>())).prop_map(
        |(title, content_type, site, source_turn)| SourceReference { title, content_type, site, source_turn },
    );
    let resolved = (option::of(text()), word(ReferenceType::ALL), option::of(reference), text());
    let resolved = resolved.prop_map(|(query, query_type, content_reference, reasoning)| ResolvedQuery {
        query,
        query_type,
        content_reference,
        reasoning,
    });
    (some_text(), option::of(resolved)).prop_map(|(original, resolved)| UserQuery { original, resolved })
}

pub fn reflection() -> impl Strategy<Value = Reflection> {
    let one = (word(ReflectionDecision::ALL), score(), any::<[bool; 2]>());
    (one, text(), option::of(text()), option::of(block())).prop_map(
        |((decision, confidence, [is_action, is_follow_up]), reasoning, question, block)| Reflection {
            decision,
            confidence,
            is_action,
            is_follow_up,
            reasoning,
            question,
            block,
        },
    )
}

pub fn gathered() -> impl Strategy<Value = GatheredContext> {
    let preference = (text(), text(), option::of(any::<u32>()))
        .prop_map(|(name, value, source_turn)| Preference { name, value, source_turn });
    let turn = (any::<u32>(), word(Relevance::ALL), text())
        .prop_map(|(turn, relevance, summary)| PriorTurn { turn, relevance, summary });
    let top =
        (text(), text(), text()).prop_map(|(product, price, source)| TopResult { product, price, source });
    let research = (option::of(link()), text(), score(), any::<u32>(), vec(top, 0..3)).prop_map(
        |(document, topic, quality, age, top)| CachedResearch {
            document,
            topic,
            quality,
            age: Hours::tenths(age.into()),
            top,
        },
    );
    let reference = (link(), text()).prop_map(|(link, note)| Reference { link, note });
    let lists = (vec(preference, 0..3), vec(turn, 0..3), vec(research, 0..2), vec(reference, 0..3));
    let user = UserPlace::new("henry");
    let links = (any::<bool>(), option::of(Just(user.memory("facts"))));
    (option::of(word(Sufficiency::ALL)), text(), lists, links).prop_map(
        move |(
            sufficiency,
            information,
            (preferences, prior_turns, research, references),
            (linked, memory),
        )| {
            let stated = preferences.iter().filter_map(|row: &Preference| row.source_turn);
            let numbers = stated.chain(prior_turns.iter().map(|row: &PriorTurn| row.turn));
            let turns = numbers.filter(|_| linked).map(|turn| (turn, user.turn(turn).context())).collect();
            GatheredContext {
                sufficiency,
                information,
                turns,
                memory: memory.into_iter().collect(),
                preferences,
                prior_turns,
                research,
                references,
            }
        },
    )
}

pub fn response() -> impl Strategy<Value = Response> {
    let reference = (link(), text()).prop_map(|(link, note)| Reference { link, note });
    (text(), vec((any::<u32>(), reference), 0..3)).prop_map(|(text, sources)| Response { text, sources })
}

pub fn plan() -> impl Strategy<Value = TaskPlan> {
    let goal_id = || any::<u32>().prop_map(GoalId);
    let step = (option::of(goal_id()), text()).prop_map(|(goal, text)| PlanStep { goal, text });
    let goal = (goal_id(), text(), word(GoalStatus::ALL), vec(goal_id(), 0..3))
        .prop_map(|(id, description, status, dependencies)| Goal { id, description, status, dependencies });
    let one = (option::of(text()), option::of(text()), text(), word(Intent::ALL), option::of(score()));
    let two = (
        vec(step, 0..4),
        vec(goal, 0..3),
        option::of(text()),
        word(NextStep::ALL),
        option::of(text()),
        option::of(link()),
    );
    (one, two).prop_map(
        |(
            (previous_failure, new_approach, goal, intent, confidence),
            (steps, goals, focus, next, question, ticket),
        )| TaskPlan {
            previous_failure,
            new_approach,
            goal,
            intent,
            confidence,
            steps,
            goals,
            focus,
            next,
            question,
            ticket,
        },
    )
}

pub fn claim() -> impl Strategy<Value = Claim> {
    let origin = (block(), option::of(pointer()), option::of(link()))
        .prop_map(|(block, bytes, document)| ClaimOrigin { block, bytes, document });
    (text(), score(), text(), ttl(), option::of(origin))
        .prop_map(|(claim, confidence, source, ttl, origin)| Claim { claim, confidence, source, ttl, origin })
}

pub fn tool_log() -> impl Strategy<Value = ToolLog> {
    let result = (word(CallStatus::ALL), text(), option::of(link()))
        .prop_map(|(status, text, full)| CallResult { status, text, full });
    let goal =
        (any::<u32>(), text()).prop_map(|(id, description)| IterationGoal { id: GoalId(id), description });
    let one = (any::<u32>(), word(Action::ALL), option::of(goal), text());
    let two = (vec(text(), 0..3), vec(result, 0..3), option::of(score()), option::of(text()));
    let iteration =
        (one, two).prop_map(|((number, action, goal, reasoning), (calls, results, confidence, progress))| {
            Iteration { number, action, goal, reasoning, calls, results, confidence, progress }
        });
    let count = || any::<(u32, u32)>().prop_map(|(done, limit)| Quota { done, limit });
    let end = (text(), count(), count()).prop_map(|(reason, iterations, tool_calls)| Termination {
        reason,
        iterations,
        tool_calls,
    });
    (vec(iteration, 0..3), vec(claim(), 0..4), option::of(end))
        .prop_map(|(iterations, claims, termination)| ToolLog { iterations, claims, termination })
}

pub fn synthesis() -> impl Strategy<Value = Synthesis> {
    (text(), option::of(link()), any::<[bool; 4]>()).prop_map(|(preview, full, [a, b, c, d])| Synthesis {
        preview,
        full,
        checklist: Checklist {
            claims_match: a,
            intent_satisfied: b,
            no_hallucinations: c,
            appropriate_format: d,
        },
    })
}

pub fn validation() -> impl Strategy<Value = Validation> {
    let goal =
        (any::<u32>(), any::<bool>(), score(), text()).prop_map(|(goal, addressed, quality, notes)| {
            GoalVerdict { goal: GoalId(goal), addressed, quality, notes }
        });
    let one =
        (word(Verdict::ALL), score(), vec((word(Check::ALL), word(CheckResult::ALL)), 0..5), vec(goal, 0..3));
    let two =
        (vec(some_text(), 0..3), vec(some_text(), 0..3), vec(some_text(), 0..3), text(), option::of(block()));
    (one, two).prop_map(
        |((decision, confidence, checks, goals), (issues, revision_hints, suggested_fixes, notes, block))| {
            Validation {
                decision,
                confidence,
                checks,
                goals,
                issues,
                revision_hints,
                suggested_fixes,
                notes,
                block,
            }
        },
    )
}

pub fn research() -> impl Strategy<Value = Research> {
    let source = (text(), text(), score(), text())
        .prop_map(|(vendor, kind, reliability, url)| ReputableSource { vendor, kind, reliability, url });
    let listing = (text(), text(), text(), word(Stock::ALL), text()).prop_map(
        |(product, price, vendor, in_stock, url)| Listing { product, price, vendor, in_stock, url },
    );
    let backlink = (link(), text()).prop_map(|(link, section)| Backlink { link, section });
    let one = (some_text(), any::<u32>(), text(), text(), text(), word(Intent::ALL), score(), moment());
    let lines = || vec(text(), 0..3);
    let write_up = (text(), text(), lines(), lines(), lines()).prop_map(
        |(title, overview, findings, evergreen, time_sensitive)| WriteUp {
            title,
            overview,
            findings,
            evergreen,
            time_sensitive,
        },
    );
    let two = (
        option::of(moment()),
        option::of(text()),
        option::of(write_up),
        vec(source, 0..3),
        vec(text(), 0..3),
        vec(listing, 0..3),
    );
    (one, two, vec(claim(), 0..3), vec(backlink, 0..3)).prop_map(
        |(
            (id, turn, session, query, topic, intent, quality, created),
            (expires, supersedes, write_up, sources, facts, listings),
            claims,
            linked_from,
        )| {
            Research {
                id,
                turn,
                session,
                query,
                topic,
                intent,
                quality,
                created,
                expires,
                supersedes,
                write_up,
                sources,
                facts,
                listings,
                claims,
                linked_from,
            }
        },
    )
}

pub fn tool_results() -> impl Strategy<Value = ToolResults> {
    let one = (any::<u32>(), text(), any::<u32>(), option::of(any::<u32>().prop_map(GoalId)));
    let two = (word(CallStatus::ALL), moment(), any::<u64>(), option::of(pointer()), text());
    let result =
        (one, two).prop_map(|((number, call, iteration, goal), (status, at, bytes, original, content))| {
            ToolResult { number, call, iteration, goal, status, at, bytes, original, content }
        });
    vec(result, 0..4).prop_map(|results| ToolResults { results })
}

pub fn page() -> impl Strategy<Value = PageContent> {
    let stretch = (any::<bool>(), text()).prop_map(|(main, text)| PageStretch { main, text });
    (text(), text(), moment(), option::of(pointer()), vec(stretch, 0..4), vec(text(), 0..4)).prop_map(
        |(title, url, captured, original, text, visible_elements)| PageContent {
            title,
            url,
            captured,
            original,
            text,
            visible_elements,
        },
    )
}

pub fn preferences() -> impl Strategy<Value = Preferences> {
    let line = (text(), text(), option::of(link())).prop_map(|(name, value, source)| PreferenceLine {
        name,
        value,
        source,
    });
    vec(line, 0..4).prop_map(Preferences)
}

pub fn facts() -> impl Strategy<Value = Facts> {
    let one =
        (option::of(block()), text(), text(), word(Scope::ALL), option::of(score()), option::of(link()));
    let line = one.prop_map(|(id, fact, category, scope, confidence, source)| FactLine {
        id,
        fact,
        category,
        scope,
        confidence,
        source,
    });
    vec(line, 0..4).prop_map(Facts)
}

pub fn wrapper() -> impl Strategy<Value = Wrapper> {
    let fields = vec((text(), text()), 0..4);
    (text(), link(), option::of(link()), fields).prop_map(|(title, source, turn, fields)| Wrapper {
        title,
        source,
        turn,
        fields,
    })
}

pub fn index_note() -> impl Strategy<Value = IndexNote> {
    let entry = (link(), text()).prop_map(|(link, note)| IndexEntry { link, note });
    let topic = (text(), text()).prop_map(|(topic, description)| TopicEntry::new(&topic, &description));
    (text(), vec(entry, 0..4), vec(topic, 0..4)).prop_map(|(title, recent, topics)| IndexNote {
        title,
        recent,
        topics,
    })
}
