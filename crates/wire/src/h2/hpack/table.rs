//! The dynamic table (RFC 7541 section 2.3.2): a ring of entries over one buffer of text.
//!
//! ```text
//! text:  . . dead . . | oldest . . | . . . | newest |  <- appended here
//! ring:                 back                 front
//! ```
//!
//! Text is appended and never overwritten before `compact`, so that what an evicted entry said can still be read while
//! the header block that evicted it is being used. No entry has an allocation of its own.

use std::collections::VecDeque;

/// Bytes that each entry counts for beyond its text (section 4.1).
pub(crate) const OVERHEAD: usize = 32;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Where the name begins in the text; the value follows it.
    pub(crate) at: u32,
    pub(crate) name_len: u32,
    pub(crate) value_len: u32,
    /// The owner's: what the decoder found the field to mean, or the encoder's hash.
    pub(crate) meta: u32,
}

impl Entry {
    fn size(&self) -> usize {
        self.name_len as usize + self.value_len as usize + OVERHEAD
    }
}

#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) text: Vec<u8>,
    entries: VecDeque<Entry>,
    size: usize,
    size_max: usize,
}

impl Table {
    pub(crate) fn new(size_max: usize) -> Table {
        Table { text: Vec::new(), entries: VecDeque::new(), size: 0, size_max }
    }

    pub(crate) fn size_max(&self) -> usize {
        self.size_max
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// `index` 0 is the newest.
    #[inline]
    pub(crate) fn entry(&self, index: usize) -> Option<Entry> {
        self.entries.get(index).copied()
    }

    /// Newest first.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub(crate) fn name(&self, entry: &Entry) -> &[u8] {
        &self.text[entry.at as usize..][..entry.name_len as usize]
    }

    pub(crate) fn value(&self, entry: &Entry) -> &[u8] {
        &self.text[(entry.at + entry.name_len) as usize..][..entry.value_len as usize]
    }

    pub(crate) fn resize(&mut self, size_max: usize) {
        self.size_max = size_max;
        self.evict(size_max);
    }

    /// The entry's text must have been appended to `text`. Too large an entry empties the table (section 4.4).
    pub(crate) fn insert(&mut self, entry: Entry) {
        let size = entry.size();
        self.evict(self.size_max.saturating_sub(size));
        if size <= self.size_max {
            self.size += size;
            self.entries.push_front(entry);
        }
    }

    fn evict(&mut self, size_max: usize) {
        while self.size > size_max {
            let Some(oldest) = self.entries.pop_back() else { break };
            self.size -= oldest.size();
        }
    }

    /// Removes dead text, when there is so much of it that the work is paid for. Nothing may refer to it any more.
    #[inline]
    pub(crate) fn compact(&mut self) {
        if self.text.len() > 2 * self.size_max + 1024 || (self.entries.is_empty() && !self.text.is_empty()) {
            self.drop_dead();
        }
    }

    fn drop_dead(&mut self) {
        let dead = self.entries.back().map_or(self.text.len(), |oldest| oldest.at as usize);
        self.text.drain(..dead);
        self.entries.iter_mut().for_each(|entry| entry.at -= dead as u32);
    }
}
