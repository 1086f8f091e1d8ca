//! Signals: SIGTERM and SIGINT end the service, SIGHUP makes it read its settings again.

use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::Service;
use crate::log::{LAST_TIME, log};
use crate::reload::{ReadSettings, reload};

/// Time to write what is in memory, after accepted requests were finished or cut off.
const CLOSING_TIME: Duration = Duration::from_secs(5);

/// The signals that stop the service: SIGTERM and SIGINT.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

pub(crate) fn signals() -> std::io::Result<Signals> {
    Ok(Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
}

impl Signals {
    pub(crate) async fn recv(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// The signal that makes the service read its settings again.
pub(crate) fn hang_ups() -> std::io::Result<Signal> {
    signal(SignalKind::hangup())
}

/// Reads the settings again whenever SIGHUP arrives.
pub(crate) async fn keep_reloading(mut hang_ups: Signal, service: Arc<Service>, read: ReadSettings) {
    while hang_ups.recv().await.is_some() {
        // Files may be on a slow disk.
        tokio::task::block_in_place(|| reload(&service, &read));
    }
}

/// Ends the process in that time and a little more, whatever hangs: a thread of its own waits for it.
pub(crate) fn end_in_any_case(time: Duration) {
    let end = move || {
        std::thread::sleep(time + CLOSING_TIME);
        exit("the store did not stop in time, and is left as it is; everything that was acknowledged is on disk");
    };
    if let Err(error) = std::thread::Builder::new().name("end".to_owned()).spawn(end) {
        tracing::warn!("the service may take long to stop: {error}");
    }
}

/// Ends the process without waiting for anything.
pub(crate) fn exit(reason: &str) -> ! {
    tracing::warn!("{reason}");
    log().flush(LAST_TIME);
    std::process::exit(1);
}
