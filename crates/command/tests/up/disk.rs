//! Small disks that a test can fill.

use std::path::Path;
use std::process::Command;

/// A file system in memory, unmounted at the end.
pub(crate) struct Disk<'a>(&'a Path);

impl<'a> Disk<'a> {
    /// Nothing where this user may not mount.
    pub(crate) fn mount(at: &'a Path, size: &str) -> Option<Disk<'a>> {
        let options = format!("size={size}");
        mount(&["-t", "tmpfs", "-o", &options, "testigo", at.to_str()?]).then_some(Disk(at))
    }

    pub(crate) fn resize(&self, size: &str) {
        let options = format!("remount,size={size}");
        assert!(mount(&["-o", &options, self.0.to_str().unwrap()]));
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.0).status();
        // A later unmount by hand is all that is left then.
        let _ = unmounted;
    }
}

fn mount(arguments: &[&str]) -> bool {
    let mounted = Command::new("mount").args(arguments).output();
    mounted.is_ok_and(|output| output.status.success())
}
