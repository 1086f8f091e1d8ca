//! `lookalike text`

use std::io::{self, Write};

use anyhow::{Context, Result};
use lookalike::Config;
use lookalike::compare::{BlockPart, blocks_html, page_blocks};
use lookalike::config::Named;
use serde_json::json;

use crate::Ending;
use crate::args::TextArguments;

pub(crate) fn run(arguments: &TextArguments) -> Result<Ending> {
    let mut config = Config::default();
    config.content.scope = arguments.content;
    if let Some(path) = &arguments.html {
        let blocks = |name: &String| Ok((name.clone(), page_blocks(name, arguments.within.as_deref(), &config)?));
        let pages = arguments.pages.iter().map(blocks).collect::<lookalike::Result<Vec<_>>>()?;
        std::fs::write(path, blocks_html(&pages)?).with_context(|| format!("{}: cannot write", path.display()))?;
        return Ok(Ending::Done);
    }
    let mut out = io::stdout().lock();
    for (number, name) in arguments.pages.iter().enumerate() {
        let blocks = page_blocks(name, arguments.within.as_deref(), &config)?;
        if !arguments.plain && !arguments.json && arguments.pages.len() > 1 {
            let gap = if number > 0 { "\n" } else { "" };
            writeln!(out, "{gap}{name}")?;
        }
        for block in blocks {
            if arguments.json {
                let mut value = serde_json::to_value(&block)?;
                value["page"] = json!(name);
                writeln!(out, "{value}")?;
            } else if !arguments.plain {
                let pages = block.pages.map_or_else(String::new, |pages| pages.to_string());
                writeln!(out, "{:<8} {pages:>5}  {}", block.part.name(), block.text)?;
            } else if block.part == BlockPart::Compared {
                writeln!(out, "{}", block.text)?;
            }
        }
    }
    Ok(Ending::Done)
}
