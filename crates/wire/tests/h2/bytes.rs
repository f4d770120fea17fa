//! Frames put together by hand, valid or not.

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const PADDED: u8 = 8;
pub const PRIO: u8 = 0x20;
/// HEADERS that are a whole message.
pub const WHOLE: u8 = END_HEADERS | END_STREAM;

/// `GET http://a/`, as a block.
pub const GET: &[u8] = &[0x82, 0x86, 0x84, 0x01, 1, b'a'];
/// `POST http://a/`.
pub const POST: &[u8] = &[0x83, 0x86, 0x84, 0x01, 1, b'a'];
/// `:status: 200`.
pub const OK: &[u8] = &[0x88];

pub fn frame(kind: u8, flags: u8, stream: u32, payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

pub fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> = settings
        .iter()
        .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat())
        .collect();
    frame(SETTINGS, 0, 0, payload)
}

pub fn window_update(stream: u32, by: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, by.to_be_bytes())
}

pub fn rst_stream(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, code.to_be_bytes())
}

pub fn goaway(last: u32, code: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, [last.to_be_bytes(), code.to_be_bytes()].concat())
}

/// A literal without indexing and without Huffman code.
pub fn literal(name: &str, value: &str) -> Vec<u8> {
    let string = |s: &str| [&[s.len() as u8], s.as_bytes()].concat();
    assert!(name.len() < 127 && value.len() < 127);
    [vec![0], string(name), string(value)].concat()
}

/// A block followed by a field.
pub fn with(block: &[u8], name: &str, value: &str) -> Vec<u8> {
    [block, &literal(name, value)].concat()
}
