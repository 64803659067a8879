//! Writing past the system's cache. Nobody reads the log again while it is written, so a copy in the cache only costs the
//! time of making it and of looking for what must be written back. Without it, flushes of 9 and 17 KB took a sixth to a third
//! less time (ext4 on virtio). The system then accepts only whole pages, from page-aligned memory.

use std::fs::File;

/// The size of a page, even on disks with sectors of that size.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Memory for more than twice this is not kept for a shorter write.
const KEPT_BYTES: usize = 1 << 20;

/// Whole pages that are being filled, in page-aligned memory.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    bytes: Vec<u8>,
    /// Where the first page begins.
    start: usize,
}

impl Pages {
    /// Zeroes of this length, which is a multiple of a page's.
    pub(crate) fn zeroes(&mut self, len: usize) -> &mut [u8] {
        debug_assert!(len.is_multiple_of(PAGE_BYTES));
        let room = len + PAGE_BYTES;
        if self.bytes.len() < room || self.bytes.len() > 2 * room.max(KEPT_BYTES) {
            self.bytes = vec![0; room.next_power_of_two()];
            let address = self.bytes.as_ptr().addr();
            self.start = address.next_multiple_of(PAGE_BYTES) - address;
        }
        let pages = &mut self.bytes[self.start..self.start + len];
        pages.fill(0);
        pages
    }
}

/// Makes the system write a file past its cache, if it can. If not, only the speed differs.
pub(crate) fn past_the_cache(file: &File) {
    #[cfg(target_os = "linux")]
    let _ = rustix::fs::fcntl_setfl(file, rustix::fs::OFlags::DIRECT);
    #[cfg(not(target_os = "linux"))]
    let _ = file;
}

/// Makes the system write a file through its cache again, after it has refused a write past it. Says whether that is a
/// change.
pub(crate) fn through_the_cache(file: &File) -> bool {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
        let direct = fcntl_getfl(file).is_ok_and(|flags| flags.contains(OFlags::DIRECT));
        direct && fcntl_setfl(file, OFlags::empty()).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_begin_at_a_page_and_are_zeroes_every_time() {
        let mut pages = Pages::default();
        for len in [1, 3, 700, 2].map(|pages| pages * PAGE_BYTES) {
            let zeroes = pages.zeroes(len);
            assert!(zeroes.as_ptr().addr().is_multiple_of(PAGE_BYTES));
            assert_eq!(zeroes.len(), len);
            assert!(zeroes.iter().all(|byte| *byte == 0));
            zeroes.fill(7);
        }
        assert!(
            pages.bytes.len() <= KEPT_BYTES,
            "a long write's memory goes"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_goes_past_the_cache_and_back() {
        let file = tempfile::tempfile().unwrap();
        assert!(!through_the_cache(&file));
        past_the_cache(&file);
        // A file system without this has refused it, and then there is nothing to take back.
        if through_the_cache(&file) {
            assert!(!through_the_cache(&file));
        }
    }
}
