//! What this machine, or the container that the process lives in, lets it use.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// The memory that this process can have, where the system says: that of the machine, or less where the process is in
/// a control group with a limit, as in a container.
///
/// Found once: limits follow from it at every batch of pages.
#[must_use]
pub fn memory_bytes() -> Option<u64> {
    static FOUND: OnceLock<Option<u64>> = OnceLock::new();
    *FOUND.get_or_init(|| memory_below(Path::new("/")))
}

/// The same, with the system's files below `root`.
fn memory_below(root: &Path) -> Option<u64> {
    let installed = installed_bytes(&fs::read_to_string(root.join("proc/meminfo")).ok()?);
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().filter_map(|line| group_limit(line, &root.join("sys/fs/cgroup")));
    installed.into_iter().chain(limits).min()
}

fn installed_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The least limit of a control group and those around it. A line is `HIERARCHY:CONTROLLERS:PATH`; in the one hierarchy of
/// version 2 there are no controllers.
fn group_limit(line: &str, mount: &Path) -> Option<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?);
    let (mount, file) = if controllers.is_empty() {
        (mount.to_path_buf(), "memory.max")
    } else if controllers.split(',').any(|controller| controller == "memory") {
        (mount.join("memory"), "memory.limit_in_bytes")
    } else {
        return None;
    };
    // Inside a container the path can be that of the host, which is not mounted there: what is mounted is the group itself.
    // "max", and a number beyond all memory, is not a limit.
    Path::new(path.trim_start_matches('/'))
        .ancestors()
        .filter_map(|group| fs::read_to_string(mount.join(group).join(file)).ok()?.trim().parse().ok())
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory that is found with these files.
    fn found(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        memory_below(root.path())
    }

    const MACHINE: (&str, &str) = ("proc/meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\n");

    #[test]
    fn a_machine_without_limits_is_taken_whole() {
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[MACHINE]), Some(16 << 20));
        let v2 = ("proc/self/cgroup", "0::/user.slice/session.scope\n");
        assert_eq!(found(&[MACHINE, v2, ("sys/fs/cgroup/user.slice/memory.max", "max\n")]), Some(16 << 20));
    }

    #[test]
    fn containers_and_slices_have_less() {
        let container = ("proc/self/cgroup", "0::/\n");
        assert_eq!(found(&[MACHINE, container, ("sys/fs/cgroup/memory.max", "4194304\n")]), Some(4 << 20));
        // The limit of a group around it counts as well.
        let slice = ("proc/self/cgroup", "0::/system.slice/lookalike.service\n");
        let limits = [
            ("sys/fs/cgroup/system.slice/memory.max", "3145728\n"),
            ("sys/fs/cgroup/system.slice/lookalike.service/memory.max", "8388608\n"),
        ];
        assert_eq!(found(&[&[MACHINE, slice], &limits[..]].concat()), Some(3 << 20));
    }

    #[test]
    fn control_groups_of_the_first_version_count() {
        let groups =
            ("proc/self/cgroup", "12:cpu,cpuacct:/docker/abc\n5:memory:/docker/abc\n1:name=systemd:/docker/abc\n");
        let unlimited = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(found(&[MACHINE, groups, unlimited]), Some(16 << 20));
        let on_the_host = ("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "2097152\n");
        assert_eq!(found(&[MACHINE, groups, unlimited, on_the_host]), Some(2 << 20));
        let inside = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "1048576\n");
        assert_eq!(found(&[MACHINE, groups, inside]), Some(1 << 20));
    }
}
