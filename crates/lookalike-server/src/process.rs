//! Figures of this process, from /proc, under the names that every Prometheus client has for them.

use std::fmt::Write;

/// Clock ticks per second in /proc, the same on every Linux.
const TICKS: f64 = 100.0;

/// One figure: name, type, help, value.
type Figure = (&'static str, &'static str, &'static str, f64);

/// Writes the figures that are known; none where there is no /proc.
pub(crate) fn write_figures(out: &mut String) {
    for (name, kind, help, value) in figures() {
        // Writing to a string does not fail.
        let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
    }
}

fn figures() -> Vec<Figure> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{name}")).unwrap_or_default();
    let mut figures = Vec::new();
    let stat = read("self/stat");
    // The second field is a name in parentheses, which may have spaces.
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).and_then(|field| field.parse::<f64>().ok());
    let page_bytes = rustix::param::page_size() as f64;
    if let (Some(user), Some(system)) = (field(14), field(15)) {
        let seconds = (user + system) / TICKS;
        figures.push(("process_cpu_seconds_total", "counter", "CPU time of the process, user and system.", seconds));
    }
    let boot = read("stat").lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<f64>().ok());
    if let (Some(start), Some(boot)) = (field(22), boot) {
        let help = "When the process was started, in seconds since 1970.";
        figures.push(("process_start_time_seconds", "gauge", help, boot + start / TICKS));
    }
    for (number, name, help, unit) in [
        (20, "process_threads", "Threads of the process.", 1.0),
        (23, "process_virtual_memory_bytes", "Virtual memory, mapped segments included.", 1.0),
        (24, "process_resident_memory_bytes", "Resident memory, mapped segments included.", page_bytes),
    ] {
        figures.extend(field(number).map(|value| (name, "gauge", help, value * unit)));
    }
    if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
        figures.push(("process_open_fds", "gauge", "Open files and connections.", files.count() as f64));
    }
    if let Some(most) = rustix::process::getrlimit(rustix::process::Resource::Nofile).current {
        figures.push(("process_max_fds", "gauge", "Limit of open files and connections.", most as f64));
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_those_of_this_process() {
        let figures = figures();
        let of = |name: &str| figures.iter().find(|figure| figure.0 == name).unwrap().3;
        assert!(of("process_resident_memory_bytes") > 1e6 && of("process_threads") >= 1.0);
        assert!(of("process_open_fds") >= 3.0 && of("process_max_fds") >= of("process_open_fds"));
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
        assert!((0.0..86400.0).contains(&(now - of("process_start_time_seconds"))));
    }
}
