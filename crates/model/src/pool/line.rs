//! Sets of dense ids from which one is picked by position: first, last, any, oldest or youngest.
//!
//! Insertion, removal and picking are O(1) and allocate only when an id is larger than any before it; picking by age is
//! O(log n). They know nothing of requests or connections.

use std::collections::BTreeSet;

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

/// No neighbour.
const END: u32 = u32::MAX;
/// Not in the list.
const OUT: u32 = u32::MAX - 1;

#[derive(Clone, Copy, Debug)]
struct Link {
    prev: u32,
    next: u32,
}

/// A doubly linked list whose links lie in one array, indexed by id.
#[derive(Clone, Debug)]
pub(super) struct List {
    links: Vec<Link>,
    head: u32,
    tail: u32,
    len: u32,
}

impl List {
    pub(super) fn new() -> List {
        List { links: Vec::new(), head: END, tail: END, len: 0 }
    }

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn contains(&self, id: u32) -> bool {
        self.links.get(id as usize).is_some_and(|link| link.next != OUT)
    }

    pub(super) fn front(&self) -> Option<u32> {
        (self.head != END).then_some(self.head)
    }

    pub(super) fn back(&self) -> Option<u32> {
        (self.tail != END).then_some(self.tail)
    }

    /// The id must not be in the list.
    #[inline]
    pub(super) fn push_back(&mut self, id: u32) {
        if id as usize >= self.links.len() {
            self.make_room(id);
        }
        self.links[id as usize] = Link { prev: self.tail, next: END };
        match self.tail {
            END => self.head = id,
            tail => self.links[tail as usize].next = id,
        }
        self.tail = id;
        self.len += 1;
    }

    #[cold]
    fn make_room(&mut self, id: u32) {
        self.links.resize(id as usize + 1, Link { prev: OUT, next: OUT });
    }

    /// The id must be in the list.
    #[inline]
    pub(super) fn remove(&mut self, id: u32) {
        let Link { prev, next } = self.links[id as usize];
        match prev {
            END => self.head = next,
            prev => self.links[prev as usize].next = next,
        }
        match next {
            END => self.tail = prev,
            next => self.links[next as usize].prev = prev,
        }
        self.links[id as usize] = Link { prev: OUT, next: OUT };
        self.len -= 1;
    }

    pub(super) fn next(&self, id: u32) -> Option<u32> {
        let next = self.links[id as usize].next;
        (next != END).then_some(next)
    }
}

/// An array of ids with the place of each, so that any one can be drawn.
#[derive(Clone, Debug, Default)]
struct Bag {
    items: Vec<u32>,
    places: Vec<u32>,
}

impl Bag {
    fn insert(&mut self, id: u32) {
        if id as usize >= self.places.len() {
            self.places.resize(id as usize + 1, OUT);
        }
        self.places[id as usize] = self.items.len() as u32;
        self.items.push(id);
    }

    fn remove(&mut self, id: u32) {
        let place = self.places[id as usize] as usize;
        self.items.swap_remove(place);
        if let Some(&moved) = self.items.get(place) {
            self.places[moved as usize] = place as u32;
        }
    }

    fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> Option<u32> {
        (!self.items.is_empty()).then(|| self.items[rng.random_range(0..self.items.len())])
    }
}

/// Which member `Line::pick` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    First,
    Last,
    Any,
}

/// A list in order of insertion, picked from at one end or at random.
#[derive(Clone, Debug)]
pub(super) struct Line {
    end: End,
    list: List,
    /// The same members; kept only for `End::Any`.
    bag: Bag,
}

impl Line {
    pub(super) fn new(end: End) -> Line {
        Line { end, list: List::new(), bag: Bag::default() }
    }

    pub(super) fn len(&self) -> u32 {
        self.list.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn contains(&self, id: u32) -> bool {
        self.list.contains(id)
    }

    /// The one that has been in it longest.
    pub(super) fn front(&self) -> Option<u32> {
        self.list.front()
    }

    pub(super) fn push(&mut self, id: u32) {
        self.list.push_back(id);
        if self.end == End::Any {
            self.bag.insert(id);
        }
    }

    pub(super) fn remove(&mut self, id: u32) {
        self.list.remove(id);
        if self.end == End::Any {
            self.bag.remove(id);
        }
    }

    /// Names a member and leaves it in.
    pub(super) fn pick(&self, rng: &mut Xoshiro256PlusPlus) -> Option<u32> {
        match self.end {
            End::First => self.list.front(),
            End::Last => self.list.back(),
            End::Any => self.bag.draw(rng),
        }
    }
}

/// Connections that run nothing. Their order is kept only for those policies that ask for it.
#[derive(Clone, Debug)]
pub(super) struct Idle {
    len: u32,
    longest_first: Option<List>,
}

impl Idle {
    pub(super) fn new(ordered: bool) -> Idle {
        Idle { len: 0, longest_first: ordered.then(List::new) }
    }

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn insert(&mut self, id: u32) {
        self.len += 1;
        if let Some(list) = &mut self.longest_first {
            list.push_back(id);
        }
    }

    pub(super) fn remove(&mut self, id: u32) {
        self.len -= 1;
        if let Some(list) = &mut self.longest_first {
            list.remove(id);
        }
    }

    /// The one that has been idle longest, in an ordered set.
    pub(super) fn front(&self) -> Option<u32> {
        self.longest_first.as_ref().and_then(List::front)
    }

    /// The next after it.
    pub(super) fn after(&self, id: u32) -> Option<u32> {
        self.longest_first.as_ref().and_then(|list| list.next(id))
    }
}

/// Connections with a free slot, in the order in which `IdlePick` wants them.
#[derive(Clone, Debug)]
pub(super) enum Free {
    /// By their last release.
    Recency(Line),
    /// By age: `(birth, id)`.
    Oldest(BTreeSet<(u64, u32)>),
    Youngest(BTreeSet<(u64, u32)>),
}

impl Free {
    /// A member is moved to the end that was used last.
    pub(super) fn insert(&mut self, id: u32, birth: u64) {
        match self {
            Free::Recency(line) => {
                if line.contains(id) {
                    line.remove(id);
                }
                line.push(id);
            }
            Free::Oldest(set) | Free::Youngest(set) => {
                set.insert((birth, id));
            }
        }
    }

    pub(super) fn remove(&mut self, id: u32, birth: u64) {
        match self {
            Free::Recency(line) => {
                if line.contains(id) {
                    line.remove(id);
                }
            }
            Free::Oldest(set) | Free::Youngest(set) => {
                set.remove(&(birth, id));
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Free::Recency(line) => line.is_empty(),
            Free::Oldest(set) | Free::Youngest(set) => set.is_empty(),
        }
    }

    pub(super) fn pick(&self, rng: &mut Xoshiro256PlusPlus) -> Option<u32> {
        match self {
            Free::Recency(line) => line.pick(rng),
            Free::Oldest(set) => set.first().map(|&(_, id)| id),
            Free::Youngest(set) => set.last().map(|&(_, id)| id),
        }
    }
}
