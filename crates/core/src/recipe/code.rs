//! The table of diagnostic codes: each is stable and has a severity and an explanation.

use super::diagnostic::Severity;

macro_rules! codes {
    ($($variant:ident $code:literal $severity:ident $title:literal $explanation:literal)*) => {
        /// A stable name for one kind of problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum DiagnosticCode {
            $(#[doc = $title] $variant,)*
        }

        impl DiagnosticCode {
            /// Every code, ascending.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code, such as `L012`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// A one-line title.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }

            /// Why it is a problem and how to fix it.
            pub const fn explanation(self) -> &'static str {
                match self { $(Self::$variant => $explanation,)* }
            }

            /// Whether it prevents a recipe from being used.
            pub const fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)* }
            }
        }
    };
}

impl DiagnosticCode {
    /// What repairs it where nothing more particular is known; may be empty.
    pub(crate) const fn usual_fix(self) -> &'static str {
        match self {
            Self::Syntax => {
                "quote a value that contains `: ` or ` #` or begins with a sign; indent with spaces"
            }
            Self::Empty => "give it a value, or omit it if it is not required",
            Self::Duplicate => "remove one of the two",
            _ => "",
        }
    }
}

codes! {
    // Files and YAML.
    NotUtf8 "L001" Error "File is not UTF-8"
        "Recipes and prompts must be UTF-8. Save the file with that encoding."
    ControlCharacter "L002" Error "Control character in the text"
        "NUL and other control characters are not allowed in recipes or prompts: they are invisible, and \
         models and terminals interpret them differently. Line endings may be LF or CRLF."
    TooLarge "L003" Error "File is too large"
        "A recipe or prompt file may have at most 1 MiB, and a project at most 10,000 such files. Put text \
         that the model works on in documents."
    Syntax "L004" Error "Not valid YAML"
        "The file could not be parsed beyond this point. Problems after it are not reported yet."
    TooDeep "L005" Error "Nested too deeply, or too many values"
        "A recipe may nest 32 levels deep and contain 20,000 values."
    YamlFeature "L006" Error "Anchor, alias, tag or directive"
        "The recipe format has no anchors (&), aliases (*), tags (!) or directives (%), so that a small file \
         cannot expand into a large one. Write the value out."
    DuplicateKey "L007" Error "Duplicate key"
        "A mapping may contain a key only once; YAML parsers disagree on which of two counts."
    NotOneDocument "L008" Error "Not exactly one YAML document"
        "A recipe file contains one mapping. It must not be empty or contain several documents separated by \
         ---."
    Unreadable "L009" Error "File cannot be read"
        "Symbolic links inside a project are not followed, so that a project cannot read files outside its \
         folder."
    // Fields.
    MissingField "L010" Error "Required field is missing"
        "Required are name, description, model_layer, token_budget, output_format, and exactly one of system_prompt \
         and prompt_files."
    UnknownKey "L011" Error "Unknown key"
        "Keys that are not part of the recipe format are rejected; otherwise a misspelled key would be \
         silently ignored."
    WrongType "L012" Error "Value has the wrong type"
        "The message names the expected type. A number or true/false in quotes is text."
    NotOneOf "L013" Error "Value is not one of those allowed"
        "The help lists the allowed values or the closest one."
    OutOfRange "L014" Error "Number is out of range"
        "The message names the range."
    Empty "L015" Error "Value is empty"
        "Omit the key if it has no value."
    Duplicate "L016" Error "Duplicate entry in a list"
        "Remove one of the two."
    BadName "L017" Error "Name contains invalid characters"
        "Names become file names, template variables and log fields, so their characters are restricted. \
         Paths with .., a leading / or a backslash are always rejected."
    // Budgets.
    BudgetExceeded "L020" Error "Budget parts exceed the total"
        "prompt + input + output + response_reserve must not exceed total; an omitted response_reserve \
         counts as 0."
    SmallReserve "L021" Warning "Little slack for message framing"
        "Chat messages cost tokens beyond their text. Leave about 200 tokens, as response_reserve or \
         unallocated in total."
    PromptTooLong "L022" Error "Prompt text does not fit its allocation"
        "The prompt, rendered with empty variables, has more tokens than are allocated to it, so no call \
         could succeed."
    SlotsExceedBudget "L023" Error "Slots exceed the budget"
        "Slots filled from prompts share token_budget.prompt, all others share token_budget.input. \
         Percentages may add up to 100 % at most."
    // Prompts and templates.
    PromptSource "L030" Error "Not exactly one prompt source"
        "A recipe has either system_prompt (text) or prompt_files (a list of files)."
    PromptNotFound "L031" Error "Prompt file not found"
        "Prompt files are Markdown files under prompts/. Leading folders can be omitted if only one prompt \
         matches the rest of the path."
    PromptAmbiguous "L032" Error "Several prompts match"
        "Write enough of the path to identify one."
    TemplateSyntax "L034" Error "Template syntax error"
        "Prompts are Jinja templates: {{ name }}, {% if %}, {% for %}, {% include \"category/name\" %}. To write \
         braces as text, use {% raw %}."
    UndeclaredVariable "L035" Error "Undeclared variable"
        "A template may use the built-in names and the names that the recipe declares under variables."
    Include "L036" Error "Include cannot be resolved"
        "include takes the quoted name of a prompt of this project, such as \"shared/style\". Circular \
         includes are not allowed."
    UnusedVariable "L037" Warning "Variable is used by no prompt"
        "Remove it, or correct the name where it was meant to be used."
    // Output.
    SchemaMissing "L040" Error "output_schema is missing"
        "A recipe with output_format json needs the JSON Schema of the answer."
    SchemaInvalid "L041" Error "Not a valid JSON Schema"
        "The schema is validated against its meta-schema and compiled; external references are not allowed."
    Tags "L042" Error "Tags do not match the format"
        "output_tags is required with output_format tagged and not allowed with any other format."
    GateUnmeetable "L043" Error "Gate can never pass"
        "confidence_threshold is compared with the field `confidence` of the answer, so the schema or the \
         tags must define it; Markdown and plain text have no fields. evidence_required needs documents, sections or \
         messages that an answer can cite."
    // Inputs, slots, variants.
    NoInput "L050" Error "Recipe reads nothing"
        "At least one of input_docs, input_sections and variables is required."
    QueryRequired "L051" Error "Only condensing may omit the query"
        "Every prompt includes the user's query. needs_query: false is allowed only in category compress."
    CompressionLayer "L052" Error "Condensing always runs on NERVES"
        "Omit compression.model_layer, or write NERVES."
    Slot "L053" Error "Inconsistent slots"
        "The message names the violated rule: each input document, and context.md where input_sections are \
         read, is in exactly one slot; there is one slot for the prompt, one for variants if there are any, \
         and at most one for messages; docs is allowed only in slots of documents, protect_last and soft only \
         in slots of messages, role only in slots of prompts, floor, priority and shares only in others; \
         drop_oldest only in slots of messages, and not together with refuse. A soft trigger needs a cap in \
         tokens above it and an overflow that condenses; a floor and min_remaining are within the cap of their \
         slot, a share counted from the largest prompt."
    Variant "L054" Error "Unknown or missing variant"
        "default_variant is required with variants and must name one of them; input_docs.variants must name \
         declared ones."
    // Project.
    Layout "L060" Error "File is in the wrong place"
        "Recipes are recipes/{category}/{name}.yaml, prompts prompts/{category}/{name}.md, routers \
         routes/{name}.yaml, conversation types conversations/{name}.yaml. Path components may contain letters, digits, - and _ only."
    NameTaken "L061" Error "Name is already taken"
        "The name, file stem and aliases of a recipe must be unique in the project, because each of them \
         loads it. Slots and documents cannot be called as the parts that Larder adds to prompts itself: query, note, \
         marks, citing, output_schema."
    ModeMismatch "L062" Error "Mode does not match the name"
        "Mode code loads {phase}_code and mode chat loads {phase}_chat, so a recipe with such a name must \
         declare that mode."
    ModeCounterpart "L063" Warning "Chat counterpart is missing"
        "A project with {phase}_code but no {phase}_chat runs the built-in {phase}_chat in mode chat, or fails \
         with \"Recipe not found\" where there is none."
    RegistryStale "L064" Warning "registry.yaml is out of date"
        "registry.yaml is generated from recipes and prompts and keeps the history of their versions. Run \
         `larder check --write-registry`."
    // Routers.
    Router "L075" Error "Inconsistent router"
        "A router has two tiers or more; every tier but the first has a threshold, and thresholds rise. Every factor \
         says when it holds, and all factors together reach the highest threshold."
    SingleFactor "L076" Error "One factor decides"
        "The weight of a factor reaches a threshold, so that this sign alone chooses the larger tier. Presets for \
         which this is meant say `single_factor: allowed`."
    RouterNotFound "L077" Error "Router not found"
        "A recipe names a preset of the router: routes/{name}.yaml of the project, or one that ships with Larder."
    // Conversation types.
    UnknownReference "L080" Error "Name does not exist"
        "A conversation type names stages, recipes, actions, fields and tags; each must exist, and a recipe must be \
         free of errors. The help has the nearest name."
    UnfitRecipe "L081" Error "Recipe does not fit its use"
        "A recipe of replies has a variant for each stage, a slot of messages and all blocks as documents that are \
         not required; an action's recipe takes what the action reads; tags and fields are those that the type reads."
    Contradiction "L082" Error "Values contradict each other"
        "The message names both. For example, a summary must keep out fewer messages than it starts after, and \
         protect_last of the recipe must be the type's number."
    Flow "L083" Error "Stage or action can never happen"
        "Each stage is reached by a transition or begun as an aside, no transition leads to an aside, and what starts \
         an action must exist."
}
