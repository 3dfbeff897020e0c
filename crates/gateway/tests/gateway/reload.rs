//! Reloading: what is right holds at once, what is wrong changes nothing.

use std::sync::Arc;

use larder_testkit::stub::StubServer;
use serde_json::{Value, json};

use crate::support::{Gateway, said, write, write_settings};

#[tokio::test]
async fn a_good_change_holds_and_a_bad_one_is_refused_with_its_place() {
    let gateway = Gateway::new([said("hi"), said("hi")]).await;
    let body = json!({"model": "mini", "messages": [{"role": "user", "content": "hi"}]});
    write_settings(gateway.dir.path(), &gateway.provider, "[gateway]\nmax_mesages = 1\n");
    gateway.app.reload();
    let ready: Value = gateway.get("/readyz").send().await.unwrap().json().await.unwrap();
    let refused = ready["refused_change"].as_str().unwrap();
    assert!(refused.contains("larder.toml") && refused.contains("gateway.max_messages"), "{refused}");
    assert_eq!(gateway.chat(&body).await.status(), 200, "the old settings still hold");

    write_settings(gateway.dir.path(), &gateway.provider, "[policy]\nprompt_budget_override = 5\n");
    gateway.app.reload();
    assert!(gateway.app.refused().is_none());
    assert_eq!(gateway.chat(&body).await.status(), 400, "nothing fits into five tokens");

    write(gateway.dir.path().join("recipes/a/b.yaml"), "name: [");
    gateway.app.reload();
    assert!(gateway.app.refused().unwrap().contains("b.yaml"));
}

#[tokio::test]
async fn file_changes_are_detected() {
    let gateway = Gateway::new([]).await;
    let before = gateway.app.current().gateway.max_messages;
    write_settings(gateway.dir.path(), &gateway.provider, "[gateway]\nmax_messages = 7\n");
    while gateway.app.current().gateway.max_messages == before {
        tokio::task::yield_now().await;
    }
    assert_eq!(gateway.app.current().gateway.max_messages, 7);
}

#[tokio::test]
async fn key_file_changes_apply_unless_the_file_is_empty() {
    let provider = StubServer::responding(|_| said("hi")).await;
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let of_table = format!(
        "[models.keyed]\nprovider = \"openai\"\nbase_url = \"{0}/v1\"\nid = \"keyed\"\nwindow = 16000\n\
         max_output = 1000\nretries = 0\napi_key_file = \"inner\"\n",
        provider.address()
    );
    let settings =
        format!("[gateway]\nopenai = \"{}/v1\"\nopenai_key_file = \"outer\"\n{of_table}", provider.address());
    write_settings(dir.path(), &provider, &settings);
    let path = dir.path().to_owned();
    let put = move |file: &str, key: &str| std::fs::write(path.join(file), key).unwrap();
    put("inner", "sk-inner");
    put("outer", "sk-outer");
    let gateway = Gateway::on(dir, provider).await;
    let sent = async |model: &str| {
        let body = json!({"model": model, "messages": [{"role": "user", "content": "hi"}]});
        assert_eq!(gateway.chat(&body).await.status(), 200);
        gateway.seen().last().unwrap().header("authorization").unwrap().to_owned()
    };
    for (file, model) in [("inner", "keyed"), ("outer", "gpt-9")] {
        assert_eq!(sent(model).await, format!("Bearer sk-{file}"));
        put(file, "");
        while gateway.app.refused().is_none() {
            tokio::task::yield_now().await;
        }
        assert!(gateway.app.refused().unwrap().contains("it is empty"));
        assert_eq!(sent(model).await, format!("Bearer sk-{file}"), "the old key still holds");
        put(file, "sk-changed");
        while gateway.app.refused().is_some() {
            tokio::task::yield_now().await;
        }
        assert_eq!(sent(model).await, "Bearer sk-changed");
    }
}

#[tokio::test]
async fn a_request_under_way_ends_under_the_settings_it_began_with() {
    let (answer, pusher) = larder_testkit::stub::Answer::events("").pushed();
    let gateway = Gateway::new([answer]).await;
    pusher.push("data: {\"choices\":[]}\n\n");
    let body = json!({"model": "mini", "stream": true, "messages": [{"role": "user", "content": "hi"}]});
    let response = gateway.chat(&body).await;
    std::fs::write(gateway.dir.path().join("larder.toml"), "").unwrap();
    gateway.app.reload();
    pusher.push("data: [DONE]\n\n");
    drop(pusher);
    assert!(response.text().await.unwrap().ends_with("[DONE]\n\n"));
    assert_eq!(gateway.chat(&body).await.status(), 404, "the model is no longer in the table");
}
