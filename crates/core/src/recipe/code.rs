//! The table of diagnostic codes: each stable, with its severity and an explanation.

use super::diagnostic::Severity;

macro_rules! codes {
    ($($variant:ident $code:literal $severity:ident $title:literal $explanation:literal)*) => {
        /// A stable name for one kind of problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $title] $variant,)*
        }

        impl Code {
            /// Every code, ascending.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code, such as `L012`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// One short line.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }

            /// Why it is a problem and how to mend it.
            pub const fn explanation(self) -> &'static str {
                match self { $(Self::$variant => $explanation,)* }
            }

            /// Whether it stops a recipe from being used.
            pub const fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)* }
            }
        }
    };
}

codes! {
    // Files and YAML.
    NotUtf8 "L001" Error "File is not UTF-8"
        "Recipes and prompts are UTF-8 text. Save the file with that encoding."
    ControlCharacter "L002" Error "Control character in the text"
        "NUL and other control characters do not belong in recipes or prompts: they are invisible, and models and \
         terminals read them in different ways. Line ends may be LF or CRLF."
    TooLarge "L003" Error "File is too large"
        "A recipe or prompt file may hold at most 1 MiB, and a project at most 10,000 such files. Text for the model \
         to work on belongs in documents."
    Syntax "L004" Error "Not valid YAML"
        "The file could not be read any further; problems behind this place are not reported yet."
    TooDeep "L005" Error "Nested too deeply, or too many values"
        "A recipe may nest 32 levels and hold 20,000 values."
    YamlFeature "L006" Error "Anchor, alias, tag or directive"
        "Anchors (&), aliases (*), tags (!) and directives (%) are not part of the recipe format, so that a small \
         file cannot unfold into a large one. Write the value out."
    DuplicateKey "L007" Error "Duplicate key"
        "A key may stand once in a mapping; YAML readers disagree on which of two would count."
    NotOneDocument "L008" Error "Not exactly one YAML document"
        "A recipe file holds one mapping: not an empty file, not two documents split by ---."
    Unreadable "L009" Error "File cannot be read"
        "Symbolic links are not followed inside a project, so that it cannot read files outside its folder."
    // Fields.
    MissingField "L010" Error "Required field is missing"
        "Required are name, description, model_layer, token_budget, output_format, and exactly one of system_prompt \
         and prompt_files."
    UnknownKey "L011" Error "Unknown key"
        "Keys that are not part of the recipe format are refused, because a misspelt setting would be silently lost."
    WrongType "L012" Error "Value has the wrong type"
        "The message names the type expected. A number or true/false in quotes is text."
    NotOneOf "L013" Error "Value is not one of those allowed"
        "The help lists the allowed values, or the nearest one."
    OutOfRange "L014" Error "Number is out of range"
        "The message names the range."
    Empty "L015" Error "Value is empty"
        "Leave the key out when there is nothing to say."
    Duplicate "L016" Error "Entry stands twice in a list"
        "Remove one of the two."
    BadName "L017" Error "Name has characters that names may not have"
        "Names become file names, template variables and log fields, so their characters are limited. Paths with .., \
         a leading / or a backslash are refused everywhere."
    // Budgets.
    BudgetExceeded "L020" Error "Budget parts exceed the total"
        "prompt + input + output + response_reserve must not exceed total; an absent response_reserve counts as 0."
    SmallReserve "L021" Warning "Little slack for message framing"
        "Chat messages cost tokens beyond their text. Leave about 200 tokens: as response_reserve, or unallotted in \
         total."
    PromptTooLong "L022" Error "Prompt text does not fit its allotment"
        "The prompt, rendered with empty variables, takes more tokens than it is allotted, so no call could ever be \
         made."
    SlotsExceedBudget "L023" Error "Slots exceed the budget"
        "Slots filled from prompts share token_budget.prompt, all others share token_budget.input. Shares add up to \
         100 % at most."
    // Prompts and templates.
    PromptSource "L030" Error "Not exactly one prompt source"
        "A recipe has either system_prompt (text) or prompt_files (a list of files)."
    PromptNotFound "L031" Error "Prompt file not found"
        "Prompt files are Markdown files under prompts/. A path may leave out leading folders when only one prompt \
         ends in it."
    PromptAmbiguous "L032" Error "Several prompts match"
        "Write enough of the path to name one."
    TemplateSyntax "L034" Error "Template syntax error"
        "Prompts are Jinja templates: {{ name }}, {% if %}, {% for %}, {% include \"category/name\" %}. To write \
         braces as text, use {% raw %}."
    UndeclaredVariable "L035" Error "Undeclared variable"
        "A template may use the built-in names and those that the recipe declares under variables."
    Include "L036" Error "Include cannot be resolved"
        "include takes the quoted name of a prompt of this project, such as \"shared/style\". Prompts may not include \
         each other in a circle."
    UnusedVariable "L037" Warning "Variable is used by no prompt"
        "Remove it, or correct the name where it was meant to be used."
    // Output.
    SchemaMissing "L040" Error "output_schema is missing"
        "A recipe that answers in JSON states the JSON Schema of the answer."
    SchemaInvalid "L041" Error "Not a valid JSON Schema"
        "The schema is checked against its meta-schema and compiled; references must stay inside it."
    Tags "L042" Error "Tags do not go with the format"
        "output_tags is required for output_format tagged and not allowed for any other."
    GateUnmeetable "L043" Error "Gate can never be met"
        "confidence_threshold compares the field `confidence` of the answer, so the schema or the tags must have it; \
         Markdown and plain text have no fields."
    // Inputs, slots, variants.
    NoInput "L050" Error "Recipe reads nothing"
        "At least one of input_docs, input_sections and variables is required."
    QueryRequired "L051" Error "Only condensing may do without the query"
        "Every prompt holds the user's query. needs_query: false is legal in category compress alone."
    CompressionLayer "L052" Error "Condensing always runs on NERVES"
        "Leave compression.model_layer out, or write NERVES."
    Slot "L053" Error "Slot does not fit together"
        "The message says which rule: each input document stands in exactly one slot; there is one slot for the \
         prompt, one for variants when there are any, and at most one for messages; docs and protect_last belong to \
         the kinds of slot that have them."
    Variant "L054" Error "Unknown or missing variant"
        "default_variant is required with variants and names one of them; input_docs.variants names declared ones."
    // Project.
    Layout "L060" Error "File is not where recipes live"
        "Recipes are recipes/{category}/{name}.yaml, prompts are prompts/{category}/{name}.md; each part of the path \
         has letters, digits, - and _ only."
    NameTaken "L061" Error "Name is already taken"
        "name, file stem and aliases of a recipe must be unique in the project, because each of them loads it."
    ModeMismatch "L062" Error "Mode does not go with the name"
        "Mode code loads {phase}_code, every other mode loads {phase}_chat, so a recipe with such a name states that \
         mode."
    ModeCounterpart "L063" Warning "Chat counterpart is missing"
        "Every mode but code loads {phase}_chat; with only {phase}_code those calls halt."
    RegistryStale "L064" Warning "registry.yaml is out of date"
        "registry.yaml is generated from recipes and prompts, and keeps the history of their versions."
}
