//! What each side says of itself (RFC 9113 section 6.5), and what we bear from the other.

use super::connection::ConnectionError;
use super::frame::ErrorCode;

pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
pub(crate) const ENABLE_PUSH: u16 = 2;
pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
pub(crate) const MAX_FRAME_SIZE: u16 = 5;
pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 6;

/// The window of a stream or connection about which nothing was said.
pub(crate) const WINDOW: u32 = 65_535;
/// The largest window, and the largest stream id.
pub(crate) const MAX_31: u32 = 0x7fff_ffff;
/// The largest frame of a peer about which nothing was said.
pub(crate) const FRAME: u32 = 16_384;

/// When received content makes room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// At once: whoever takes the events takes the content with them.
    OnReceipt,
    /// When `release` is called: a slow reader slows the peer down.
    ByCaller,
}

/// What we announce, and how we receive. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The dynamic table in which the peer may keep fields that it sends to us.
    pub header_table_bytes: u32,
    /// Server: streams that the client may have open at a time. A client announces nothing.
    pub max_streams: u32,
    /// Client: streams that it opens at most before the server has said how many it takes.
    pub assumed_max_streams: u32,
    /// Content that the peer may send on one stream before we release some. At most 2^31 - 1.
    pub stream_window: u32,
    /// The same for all streams together; from 65,535 (the protocol has no way to begin with less) to 2^31 - 1.
    pub connection_window: u32,
    /// The largest frame that we take, from 16,384 to 2^24 - 1.
    pub max_frame_bytes: u32,
    /// Names and values of one message, counting 32 more per field. More is `ENHANCE_YOUR_CALM`.
    pub max_header_list_bytes: u32,
    pub release: Release,
    /// Values that framing does not need stay Huffman-coded until they are read. Then nobody checks what nobody reads.
    pub lazy_values: bool,
    pub limits: Limits,
}

/// What a peer may do that costs us more than it costs the peer. Exceeding one ends the connection with
/// `ENHANCE_YOUR_CALM`. Useful frames earn useless ones, so that no limit grows with a connection's age;
/// [`super::Connection::calm`] lets time earn them too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one header block, as sent.
    pub block_bytes: u32,
    /// Frames that one header block comes in.
    pub block_frames: u32,
    /// Server: streams that the client resets, or makes us reset, beyond those that it lets us finish.
    pub resets: u32,
    /// Frames that ask for work and move nothing: PING, SETTINGS, PRIORITY, unknown ones, empty DATA, WINDOW_UPDATE,
    /// interim responses, RST_STREAM of what is closed, streams above a limit that was not acknowledged. A message or a piece of content, either way, earns eight.
    pub idle_frames: u32,
}

impl Limits {
    pub const DEFAULT: Limits =
        Limits { block_bytes: 128 << 10, block_frames: 64, resets: 200, idle_frames: 10_000 };
}

impl Config {
    /// Windows so large that they rarely need an update; content is taken as it comes.
    pub const CLIENT: Config = Config {
        header_table_bytes: 4096,
        max_streams: 0,
        assumed_max_streams: 100,
        stream_window: 1 << 24,
        connection_window: 1 << 30,
        max_frame_bytes: FRAME,
        max_header_list_bytes: 64 << 10,
        release: Release::OnReceipt,
        lazy_values: true,
        limits: Limits::DEFAULT,
    };

    pub const SERVER: Config = Config {
        header_table_bytes: 4096,
        max_streams: 128,
        assumed_max_streams: 0,
        stream_window: 1 << 20,
        connection_window: 1 << 24,
        max_frame_bytes: FRAME,
        max_header_list_bytes: 64 << 10,
        release: Release::OnReceipt,
        lazy_values: false,
        limits: Limits::DEFAULT,
    };

    pub(crate) fn assert_valid(&self) {
        assert!(self.stream_window <= MAX_31, "expected a stream window below 2^31");
        assert!(
            (WINDOW..=MAX_31).contains(&self.connection_window),
            "expected a connection window from 65535 to 2^31 - 1"
        );
        assert!(
            (FRAME..1 << 24).contains(&self.max_frame_bytes),
            "expected a largest frame from 16384 to 2^24 - 1"
        );
    }

    /// What differs from the initial values, and what is worth saying all the same.
    pub(crate) fn announced(&self, server: bool) -> impl Iterator<Item = (u16, u32)> + Clone {
        let all = [
            // A client says even what is assumed anyway: nginx then gives up its table, which it would only fill with
            // fields that it never refers to, and we need not decode them.
            (HEADER_TABLE_SIZE, self.header_table_bytes, self.header_table_bytes != 4096 || !server),
            (ENABLE_PUSH, 0, !server),
            (MAX_CONCURRENT_STREAMS, self.max_streams, server),
            (INITIAL_WINDOW_SIZE, self.stream_window, self.stream_window != WINDOW),
            (MAX_FRAME_SIZE, self.max_frame_bytes, self.max_frame_bytes != FRAME),
            (MAX_HEADER_LIST_SIZE, self.max_header_list_bytes, true),
        ];
        all.into_iter().filter(|setting| setting.2).map(|(id, value, _)| (id, value))
    }
}

/// What the peer has announced so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerSettings {
    pub header_table_bytes: u32,
    /// Streams that we may have open at a time; `u32::MAX` if the peer sets no limit.
    pub max_streams: u32,
    /// Content that we may send on a new stream, bytes.
    pub stream_window: u32,
    pub max_frame_bytes: u32,
    /// `u32::MAX` if the peer sets no limit. Advisory; we do not hold requests to it.
    pub max_header_list_bytes: u32,
}

impl PeerSettings {
    pub(crate) const INITIAL: PeerSettings = PeerSettings {
        header_table_bytes: 4096,
        max_streams: u32::MAX,
        stream_window: WINDOW,
        max_frame_bytes: FRAME,
        max_header_list_bytes: u32::MAX,
    };

    /// Takes over one setting; unknown ones are ignored.
    pub(crate) fn set(&mut self, id: u16, value: u32, from_server: bool) -> Result<(), ConnectionError> {
        match id {
            HEADER_TABLE_SIZE => self.header_table_bytes = value,
            ENABLE_PUSH if value > 1 || (from_server && value == 1) => {
                return Err(ConnectionError::new(ErrorCode::PROTOCOL_ERROR, "invalid ENABLE_PUSH"));
            }
            MAX_CONCURRENT_STREAMS => self.max_streams = value,
            INITIAL_WINDOW_SIZE if value > MAX_31 => {
                return Err(ConnectionError::new(
                    ErrorCode::FLOW_CONTROL_ERROR,
                    "INITIAL_WINDOW_SIZE above 2^31 - 1",
                ));
            }
            INITIAL_WINDOW_SIZE => self.stream_window = value,
            MAX_FRAME_SIZE if !(FRAME..1 << 24).contains(&value) => {
                return Err(ConnectionError::new(ErrorCode::PROTOCOL_ERROR, "invalid MAX_FRAME_SIZE"));
            }
            MAX_FRAME_SIZE => self.max_frame_bytes = value,
            MAX_HEADER_LIST_SIZE => self.max_header_list_bytes = value,
            _ => {}
        }
        Ok(())
    }
}
