//! The streams that are open, found by their id.
//!
//! Open addressing with linear probing: ids of one client ascend by two, so `id / 2` modulo the size spreads them
//! perfectly, and a stream that lives long costs its neighbours one more step and no memory. A stream has no allocation
//! of its own.

use std::ops::{Index, IndexMut};

/// No length was announced.
pub(crate) const UNKNOWN: u64 = u64::MAX;

pub(crate) mod is {
    /// We have sent END_STREAM.
    pub(crate) const LOCAL_CLOSED: u8 = 1;
    /// We have received END_STREAM.
    pub(crate) const REMOTE_CLOSED: u8 = 2;
    /// The final head was received.
    pub(crate) const HEAD_SEEN: u8 = 4;
    /// The final head was sent.
    pub(crate) const HEAD_SENT: u8 = 8;
    /// More was to be sent than the window took.
    pub(crate) const BLOCKED: u8 = 16;
    /// The response has no content, whatever its fields say: the request was HEAD.
    pub(crate) const TO_HEAD: u8 = 32;
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    /// 0 marks a free place.
    pub(crate) id: u32,
    /// The caller's.
    pub(crate) tag: u32,
    /// Bytes of content that we may send; negative after the peer has shrunk it.
    pub(crate) send_window: i32,
    /// Bytes of content that the peer may send.
    pub(crate) receive_window: i32,
    /// Bytes that were released, of which the peer was not yet told.
    pub(crate) owed: u32,
    pub(crate) flags: u8,
    /// Bytes of content that are still to come by the announced length, or `UNKNOWN`.
    pub(crate) expected: u64,
}

impl Stream {
    const FREE: Stream =
        Stream { id: 0, tag: 0, send_window: 0, receive_window: 0, owed: 0, flags: 0, expected: UNKNOWN };

    pub(crate) fn new(id: u32, tag: u32, send_window: u32, receive_window: u32) -> Stream {
        Stream {
            id,
            tag,
            send_window: send_window as i32,
            receive_window: receive_window as i32,
            ..Stream::FREE
        }
    }

    #[inline(always)]
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    #[inline(always)]
    pub(crate) fn is_closed(&self) -> bool {
        self.flags & (is::LOCAL_CLOSED | is::REMOTE_CLOSED) == is::LOCAL_CLOSED | is::REMOTE_CLOSED
    }
}

#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// A power of two of them, or none; at most half are in use.
    places: Vec<Stream>,
    len: usize,
}

impl Streams {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Where the stream is, until the next insertion or removal.
    #[inline(always)]
    pub(crate) fn find(&self, id: u32) -> Option<usize> {
        if self.places.is_empty() {
            return None;
        }
        let mask = self.places.len() - 1;
        let mut at = home(id, mask);
        loop {
            let found = self.places[at & mask].id;
            if found == id {
                return Some(at & mask);
            }
            if found == 0 {
                return None;
            }
            at += 1;
        }
    }

    /// `stream.id` is not among them.
    #[inline]
    pub(crate) fn insert(&mut self, stream: Stream) {
        if 2 * (self.len + 1) > self.places.len() {
            self.grow();
        }
        self.place(stream);
        self.len += 1;
    }

    fn place(&mut self, stream: Stream) {
        let mask = self.places.len() - 1;
        let mut at = home(stream.id, mask);
        while self.places[at].id != 0 {
            at = (at + 1) & mask;
        }
        self.places[at] = stream;
    }

    #[cold]
    fn grow(&mut self) {
        let size = (2 * self.places.len()).max(16);
        let old = std::mem::replace(&mut self.places, vec![Stream::FREE; size]);
        old.into_iter().filter(|stream| stream.id != 0).for_each(|stream| self.place(stream));
    }

    /// Closes the gap, so that no probe ends too early: whoever is further from home than the gap moves into it.
    #[inline]
    pub(crate) fn remove(&mut self, at: usize) -> Stream {
        let removed = self.places[at];
        let mask = self.places.len() - 1;
        let (mut gap, mut next) = (at, at);
        loop {
            next = (next + 1) & mask;
            let stream = self.places[next];
            if stream.id == 0 {
                break;
            }
            let from_home = next.wrapping_sub(home(stream.id, mask)) & mask;
            let from_gap = next.wrapping_sub(gap) & mask;
            if from_home >= from_gap {
                self.places[gap] = stream;
                gap = next;
            }
        }
        self.places[gap].id = 0;
        self.len -= 1;
        removed
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.places.iter().filter(|stream| stream.id != 0)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.places.iter_mut().filter(|stream| stream.id != 0)
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.places.capacity() * size_of::<Stream>()
    }
}

#[inline(always)]
fn home(id: u32, mask: usize) -> usize {
    (id >> 1) as usize & mask
}

impl Index<usize> for Streams {
    type Output = Stream;

    #[inline(always)]
    fn index(&self, at: usize) -> &Stream {
        &self.places[at]
    }
}

impl IndexMut<usize> for Streams {
    #[inline(always)]
    fn index_mut(&mut self, at: usize) -> &mut Stream {
        &mut self.places[at]
    }
}

/// Streams that we have reset: the peer may not know yet, so what it still sends on them is no error.
#[derive(Debug, Default)]
pub(crate) struct ResetLog {
    ids: Vec<u32>,
    /// Which of `ids` is overwritten next.
    oldest: usize,
    /// Some were forgotten: nothing can be said of an id that is not here.
    full: bool,
}

const LOG_IDS: usize = 1024;

impl ResetLog {
    pub(crate) fn add(&mut self, id: u32) {
        if self.ids.len() < LOG_IDS {
            return self.ids.push(id);
        }
        self.full = true;
        self.ids[self.oldest] = id;
        self.oldest = (self.oldest + 1) % LOG_IDS;
    }

    /// May we have reset this closed stream?
    pub(crate) fn may_hold(&self, id: u32) -> bool {
        self.full || self.ids.contains(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn the_table_agrees_with_a_map(steps in prop::collection::vec((any::<bool>(), 0..60u32), 0..400)) {
            let mut streams = Streams::default();
            let mut map = BTreeMap::new();
            for (number, (insert, pick)) in steps.into_iter().enumerate() {
                let id = 2 * (number as u32 * 37 + pick) + 1;
                if insert && !map.contains_key(&id) {
                    streams.insert(Stream::new(id, number as u32, 0, 0));
                    map.insert(id, number as u32);
                } else if let Some(&id) = map.keys().nth(pick as usize % map.len().max(1)) {
                    let at = streams.find(id).unwrap();
                    prop_assert_eq!(Some(streams.remove(at).tag), map.remove(&id));
                }
                for (&id, &tag) in &map {
                    prop_assert_eq!(streams.find(id).map(|at| streams[at].tag), Some(tag));
                }
                prop_assert_eq!(streams.len(), map.len());
                prop_assert_eq!(streams.iter().count(), map.len());
            }
        }
    }
}
