//! Where to cut an input, and which limits to apply: derived from the input itself, so that a seed is plain HTTP and a
//! crash runs again from its bytes alone.

use weir_wire::{h1, h2};

pub struct Choices {
    state: u64,
}

impl Choices {
    /// FNV-1a of the input starts the sequence.
    pub fn from(input: &[u8]) -> Choices {
        let step = |hash: u64, b: &u8| (hash ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3);
        Choices { state: input.iter().fold(0xcbf2_9ce4_8422_2325, step) | 1 }
    }

    /// Below `n`, by xorshift.
    fn below(&mut self, n: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize % n
    }

    /// The default, or limits so small that inputs of some hundred bytes reach all of them.
    pub fn limits(&mut self) -> h1::Limits {
        if self.below(2) == 0 {
            return h1::Limits::default();
        }
        h1::Limits {
            head_bytes: 16 + self.below(200),
            headers: self.below(6),
            line_bytes: 8 + self.below(60),
            chunk_line_bytes: 1 + self.below(12),
            trailer_bytes: 2 + self.below(40),
        }
    }

    /// `base`, or windows and limits so small that inputs of some hundred bytes reach all of them.
    pub fn h2(&mut self, base: h2::Config) -> h2::Config {
        let release = if self.below(2) == 0 { h2::Release::OnReceipt } else { h2::Release::ByCaller };
        if self.below(2) == 0 {
            return h2::Config { release, ..base };
        }
        h2::Config {
            header_table_bytes: self.below(200) as u32,
            max_streams: 1 + self.below(4) as u32,
            stream_window: self.below(60) as u32,
            connection_window: 65_535,
            max_header_list_bytes: 100 + self.below(300) as u32,
            release,
            limits: h2::Limits {
                block_bytes: 20 + self.below(100) as u32,
                block_frames: 1 + self.below(4) as u32,
                resets: self.below(4) as u32,
                idle_frames: self.below(10) as u32,
            },
            ..base
        }
    }

    /// Up to eight cuts anywhere; empty pieces are allowed.
    pub fn pieces<'a>(&mut self, input: &'a [u8]) -> Vec<&'a [u8]> {
        let count = 1 + self.below(8);
        let mut at: Vec<usize> = (0..count).map(|_| self.below(input.len() + 1)).collect();
        at.extend([0, input.len()]);
        at.sort_unstable();
        at.windows(2).map(|pair| &input[pair[0]..pair[1]]).collect()
    }
}
