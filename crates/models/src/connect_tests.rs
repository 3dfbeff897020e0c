//! Keys and addresses: where they come from, and where they must not go.

use super::*;

fn models(toml: &str, env: &[(&str, &str)]) -> Models {
    let table = ModelTable::parse(toml).unwrap_or_else(|problems| panic!("{problems}"));
    Models::new(table, "/nowhere", &|name| {
        env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    })
}

fn model(lines: &str) -> String {
    format!("[models.m]\nprovider = \"openai\"\nid = \"x\"\nwindow = 100\nmax_output = 10\n{lines}")
}

fn error(models: &Models, name: &str) -> String {
    models.chat(name).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn unset_variables_are_reported_for_every_model_that_needs_one() {
    let more = "window = 100\nmax_output = 10\n";
    let toml = format!(
        "[models.a]\nprovider = \"openai\"\nid = \"x\"\napi_key_env = \"A\"\n{more}\
         [models.b]\nprovider = \"openai\"\nid = \"x\"\nbase_url = \"${{HOST}}/v1\"\n{more}\
         [models.c]\nprovider = \"anthropic\"\nid = \"x\"\napi_key_file = \"none\"\n{more}\
         [models.d]\nprovider = \"openai\"\nid = \"x\"\nbase_url = \"http://127.0.0.1:9/v1\"\n{more}\
         [models.e]\nprovider = \"embedded\"\nid = \"x\"\n{more}"
    );
    let told = |env: &[(&str, &str)]| -> Vec<String> {
        models(&toml, env).unset_variables().iter().map(ToString::to_string).collect()
    };
    let all = told(&[]);
    assert!(
        all.len() == 2 && all[0].starts_with("a: no key: ") && all[1].contains("variable HOST"),
        "{all:?}"
    );
    assert_eq!(told(&[("A", "key"), ("HOST", "http://127.0.0.1:9")]), Vec::<String>::new());
}

#[test]
fn a_missing_key_says_which_variable_to_set() {
    let toml = model("api_key_env = \"MY_KEY\"");
    assert!(error(&models(&toml, &[]), "m").contains("set the environment variable MY_KEY"));
    assert!(error(&models(&toml, &[("MY_KEY", " ")]), "m").contains("MY_KEY"));
    assert!(models(&toml, &[("MY_KEY", "k")]).chat("m").is_ok());
    assert!(error(&models(&model("api_key_file = \"key\""), &[]), "m").contains("/nowhere/key"));
    assert!(
        error(&models(&model(""), &[]), "m").contains("OPENAI_API_KEY"),
        "the provider's own server wants a key"
    );
    assert!(error(&models(&model(""), &[]), "n").contains("does not define this model"));
}

#[test]
fn the_usual_key_goes_to_the_usual_server_alone() {
    let elsewhere = models(&model("base_url = \"http://127.0.0.1:1/v1\""), &[("OPENAI_API_KEY", "k")]);
    assert_eq!(elsewhere.key("m", elsewhere.spec("m").unwrap()).unwrap(), None);
    assert!(elsewhere.variables.is_empty(), "what is not needed is not read");
}

#[test]
fn addresses_take_variables_with_defaults() {
    let toml = model("base_url = \"https://a.${AWS_REGION:-us-east-1}.b/${PATH_X}/v1\"");
    let expanded = |env: &[(&str, &str)]| {
        let models = models(&toml, env);
        models.expand("m", models.spec("m").unwrap().base_url.as_deref().unwrap())
    };
    assert_eq!(expanded(&[("PATH_X", "p")]).unwrap(), "https://a.us-east-1.b/p/v1");
    let both = [("PATH_X", "p"), ("AWS_REGION", "eu-west-1")];
    assert_eq!(expanded(&both).unwrap(), "https://a.eu-west-1.b/p/v1");
    assert!(expanded(&[]).unwrap_err().to_string().contains("PATH_X"));
    let odd = models(&toml, &[]);
    for text in ["", "${", "${}", "a}b", "${a${b}", "${:-}"] {
        let _ = odd.expand("m", text);
    }
}

/// Which way requests to a Bedrock model of the conversation's table are authenticated: by key, or signed, which only
/// some builds can.
#[test]
fn bedrock_is_asked_with_a_key_or_with_a_signature() {
    let table = || ModelTable::shipped("conversation").unwrap();
    let key = |name: &str| (name == "AWS_BEARER_TOKEN_BEDROCK").then(|| "k".to_owned());
    let with_key = Models::new(table(), "/nowhere", &key);
    for name in ["sonnet", "haiku", "kimi"] {
        assert!(with_key.chat(name).is_ok());
        assert!(with_key.target(name).unwrap().has_key());
    }
    assert!(with_key.embedding("titan").is_ok());
    let without = Models::new(table(), "/nowhere", &|_| None);
    assert!(!without.target("sonnet").unwrap().has_key(), "clients of the gateway send their own");
    let profile = "[models]\ntable = \"conversation\"\n[models.sonnet]\naws_profile = \"default\"\n";
    let signed = models(profile, &[("AWS_BEARER_TOKEN_BEDROCK", "k")]);
    if cfg!(feature = "bedrock") {
        assert!(without.chat("sonnet").is_ok() && signed.target("sonnet").unwrap().has_key());
    } else {
        let words = [error(&without, "sonnet"), signed.target("sonnet").map(|_| ()).unwrap_err().to_string()];
        for words in words {
            assert!(
                words.contains("AWS_BEARER_TOKEN_BEDROCK") && words.contains("--features bedrock"),
                "{words}"
            );
        }
    }
}

#[test]
fn a_model_is_opened_once() {
    let models = models(&model("base_url = \"http://127.0.0.1:1/v1\""), &[]);
    assert!(Arc::ptr_eq(&models.chat("m").unwrap(), &models.chat("m").unwrap()));
    assert!(models.embedding("m").map(|_| ()).unwrap_err().to_string().contains("is not an embedding model"));
}

#[test]
fn the_embedded_table_asks_for_its_factory() {
    let models = Models::new(ModelTable::shipped("embedded").unwrap(), ".", &|_| None);
    assert!(error(&models, "smollm2").contains("has no embedded model"));
}
