//! The settings of tools, as the one schema has them. Knows no tool.

use larder_models::web::Network;

use super::{Known, address, boolean, list, names, positive, text};

fn networks(text: &str) -> bool {
    list(text).is_some_and(|names| names.iter().all(|name| name.parse::<Network>().is_ok()))
}

pub(super) const TOOLS: &[Known] = &[
    Known::new(
        "tools.search_url",
        &["LARDER_SEARCH_URL"],
        "",
        address,
        "the JSON endpoint of a search engine in the manner of SearXNG; without it web.search fails",
    )
    .like("http://127.0.0.1:8080/search"),
    Known::new(
        "tools.private_hosts",
        &["LARDER_PRIVATE_HOSTS"],
        "",
        networks,
        "addresses and networks that are not public and that pages may be visited at all the same",
    )
    .like("10.0.0.0/8"),
    Known::new("tools.robots", &["LARDER_ROBOTS"], "true", boolean, "heed the robots.txt of sites"),
    Known::new(
        "tools.page_max_bytes",
        &["LARDER_PAGE_MAX_BYTES"],
        "5000000",
        positive,
        "bytes of one page that are read",
    ),
    Known::new(
        "tools.page_timeout_s",
        &["LARDER_PAGE_TIMEOUT"],
        "30",
        positive,
        "seconds that one page may take, with its redirects",
    ),
    Known::new(
        "tools.screenshots",
        &["LARDER_SCREENSHOTS"],
        "false",
        boolean,
        "keep a picture of each visited page, by a Chromium of this machine",
    ),
    Known::new(
        "tools.browser",
        &["LARDER_BROWSER"],
        "",
        text,
        "the Chromium that takes these pictures; looked for in PATH if it is not named",
    )
    .like("/usr/bin/chromium"),
    Known::new(
        "tools.research_pages",
        &["LARDER_RESEARCH_PAGES"],
        "6",
        positive,
        "pages that one piece of research visits",
    ),
    Known::new(
        "tools.research_tokens",
        &["LARDER_RESEARCH_TOKENS"],
        "60000",
        positive,
        "tokens that one piece of research may take, prompts and replies",
    ),
    Known::new(
        "tools.commands",
        &["LARDER_COMMANDS"],
        "",
        names,
        "names of programs that turns in code mode may run, each time after being asked",
    )
    .like("[\"cargo\", \"git\"]"),
    Known::new(
        "tools.command_env",
        &["LARDER_COMMAND_ENV"],
        "",
        names,
        "names of variables of the environment that these programs see besides the usual ones",
    )
    .like("CARGO_HOME"),
    Known::new(
        "tools.command_timeout_s",
        &["LARDER_COMMAND_TIMEOUT"],
        "120",
        positive,
        "seconds after which such a program is ended, with all that it started",
    ),
    Known::new(
        "tools.max_result_bytes",
        &["LARDER_MAX_RESULT_BYTES"],
        "4000000",
        positive,
        "bytes that are kept of what such a program or the tool of an MCP server gives",
    ),
];
