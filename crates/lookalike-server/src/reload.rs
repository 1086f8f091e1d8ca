//! Settings that change while the service runs: SIGHUP reads them again.

use std::sync::Arc;

use lookalike::Result;

use crate::Service;
use crate::limits::Limits;
use crate::settings::Settings;
use crate::tokens::Tokens;

/// Settings that can change while the service runs.
#[derive(Clone)]
pub(crate) struct LiveSettings {
    pub(crate) limits: Limits,
    pub(crate) tokens: Tokens,
    pub(crate) hosts: Vec<String>,
    pub(crate) origins: Vec<String>,
}

impl LiveSettings {
    pub(crate) fn new(settings: &Settings) -> LiveSettings {
        LiveSettings {
            limits: settings.limits,
            tokens: settings.tokens.clone(),
            hosts: settings.hosts.clone(),
            origins: settings.origins.clone(),
        }
    }
}

/// Reads settings.
pub(crate) type ReadSettings = Arc<dyn Fn() -> Result<Settings> + Send + Sync>;

/// Reads the settings again and says what became of it; if anything is wrong with them, all stays as it is.
pub(crate) fn reload(service: &Service, read: &ReadSettings) {
    match read().and_then(|settings| apply(service, &settings)) {
        Ok(done) => tracing::info!("SIGHUP: {done}"),
        Err(error) => tracing::error!("SIGHUP: nothing is changed: {error}"),
    }
}

fn apply(service: &Service, settings: &Settings) -> Result<String> {
    // The address stays as it is, whatever the settings say now: others may reach it.
    Settings { listen: service.settings.listen, ..settings.clone() }.check()?;
    #[cfg(feature = "tls")]
    let mut done = match (&service.tls, &settings.tls) {
        (Some(tls), Some(files)) => {
            tls.reload(files)?;
            vec!["the certificates were read again".to_owned()]
        }
        _ => Vec::new(),
    };
    #[cfg(not(feature = "tls"))]
    let mut done: Vec<String> = Vec::new();
    let before = service.live.load_full();
    let after = LiveSettings::new(settings);
    done.push(match after.tokens.len() {
        1 => "1 token".to_owned(),
        count => format!("{count} tokens"),
    });
    for (name, has_changed) in [
        ("limits", before.limits != after.limits),
        ("hosts", before.hosts != after.hosts),
        ("origins", before.origins != after.origins),
    ] {
        done.extend(has_changed.then(|| format!("new {name}")));
    }
    service.memory.resize(after.limits.body_memory);
    if let Ok(collections) = service.collections() {
        collections.set_most_open(after.limits.open_collections);
    }
    service.live.store(Arc::new(after));
    let fixed = fixed_that_differ(&service.settings, settings);
    if !fixed.is_empty() {
        done.push(format!("a restart is needed for: {}", fixed.join(", ")));
    }
    Ok(done.join("; "))
}

/// Settings that are other than those the service was started with, and cannot change while it runs.
fn fixed_that_differ(old: &Settings, new: &Settings) -> Vec<&'static str> {
    let differ = [
        ("listen", old.listen != new.listen),
        ("admin_listen", old.admin_listen != new.admin_listen),
        ("tls_cert and tls_key", old.tls.is_some() != new.tls.is_some()),
        ("backups", old.backups != new.backups),
        ("access_log", old.access_log != new.access_log),
        ("log_format", old.log_format != new.log_format),
        ("skip_damaged", old.skip_damaged != new.skip_damaged),
        ("read_only", old.read_only != new.read_only),
        ("ship and follow", old.ship != new.ship || old.follow != new.follow || old.keep_bases != new.keep_bases),
        ("follow_lag_seconds", old.follow_lag_seconds != new.follow_lag_seconds),
        ("threads", old.threads != new.threads),
        ("memory", old.memory_bytes != new.memory_bytes),
        ("memory_rows", old.memory_rows != new.memory_rows),
        ("collections", old.collections != new.collections),
    ];
    differ.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_that_others_reach_does_not_lose_its_tokens() {
        let mut settings = Settings::new("not-there".into());
        settings.listen = "0.0.0.0:8700".parse().unwrap();
        settings.tokens = Tokens::parse("read aaaaaaaaaaaaaaaa").unwrap();
        let service = Service::new(settings.clone(), tokio::runtime::Handle::current()).unwrap();
        assert!(apply(&service, &Settings::new("not-there".into())).is_err());
        assert_eq!(service.live.load().tokens.len(), 1);
        settings.hosts = vec!["seen.example".to_owned()];
        assert_eq!(apply(&service, &settings).unwrap(), "1 token; new hosts");
        assert_eq!(service.live.load().hosts, settings.hosts);
    }
}
